// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The concepts of the code of kernels: a backend runs phases one after the other, a block or a
/// grid runs the phases of one kernel, and an arena returns arrays.
///
/// Each algorithm is a template over these concepts. Therefore the same code runs on the device, on
/// the host in tests, and with a meter that only counts memory.

#include <omnibal/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// Functors with which the concepts check calls. Nothing calls them.
namespace sample_functors {

struct of_nothing {
  OMNIBAL_HOST_DEVICE void operator()() const;
};
struct of_index {
  OMNIBAL_HOST_DEVICE std::uint32_t operator()(std::size_t) const;
};
struct of_pair {
  OMNIBAL_HOST_DEVICE std::uint32_t operator()(std::size_t, std::size_t) const;
};
struct of_index_and_result {
  OMNIBAL_HOST_DEVICE void operator()(std::size_t, std::uint32_t) const;
};
struct of_warp {
  template <class Warp>
  OMNIBAL_HOST_DEVICE void operator()(Warp&, std::size_t) const;
};
struct of_block {
  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block&, std::size_t) const;
};
struct of_grid {
  template <class Grid>
  OMNIBAL_HOST_DEVICE void operator()(Grid&) const;
};
struct sum {
  template <class T>
  OMNIBAL_HOST_DEVICE T operator()(T, T) const;
};

}  // namespace sample_functors

/// A source of arrays.
/// - `take<T>(n)` returns an array of n elements, uninitialized, which no other array overlaps. A
///   meter returns null.
template <class Arena>
concept array_arena = requires(Arena& arena, std::size_t n) {
  { arena.template take<std::uint32_t>(n) } -> std::same_as<std::uint32_t*>;
};

/// Threads that run phases together: a warp, a block or a grid. All threads call each member with
/// the same arguments. A call is a phase: it ends with a barrier, and later code sees its writes.
/// Each thread executes the code between phases for itself.
/// - `reduce(n, f, op, init)` returns in all threads the `op` over `init` and `f(i)` for all i < n.
///   `op` is associative and commutative.
/// - `once(f)` calls `f()` in one thread.
template <class Team>
concept thread_team = requires(Team& team, std::size_t n, std::uint32_t init) {
  {
    team.reduce(n, sample_functors::of_index{}, sample_functors::sum{}, init)
    } -> std::same_as<std::uint32_t>;
  team.once(sample_functors::of_nothing{});
};

/// A team with phases over indices: a block or a grid.
/// - `for_each(n, f)` calls `f(i)` for all i < n, in any order, concurrently.
template <class Group>
concept thread_group = thread_team<Group> && requires(Group& group, std::size_t n) {
  group.for_each(n, sample_functors::of_index{});
};

/// A block of threads with shared memory: `device_block`, or `serial_block` in tests.
/// - `take<T>(n)` returns an array in the shared memory of the block, as an arena.
/// - `for_each_load(n, f)` is `for_each` for an `f` that does little except load from device
///   memory.
/// - `for_each_warp(n, f)` calls `f(warp, i)` for all i < n; a whole warp runs each call.
/// - `reduce_each(n, m, f, op, neutral, done)` calls `done(i, r)` for all i < n. Its r is the `op`
///   over `f(i, j)` for all j < m.
/// - `exclusive_sum(data, n)` replaces each element by the sum of the elements before it. It
///   returns the sum of all elements.
/// - `exclusive_sum_of(n, f, out)` writes to `out[i]` the sum of `f(j)` for all j < i, and returns
///   the sum for all j < n. It calls `f` twice, and `f(i)` may read `out[i]`.
/// - `inclusive_scan_of(n, f, out, op, neutral, carry)` writes to `out[i]` the `op` over `carry`
///   and `f(j)` for all j <= i. It returns the last result.
/// - `sort_numbered(keys, numbers, n)` sorts keys in shared memory, ascending, and writes the
///   former position of each key to `numbers`. Equal keys keep their order. A thread sorts at most
///   16 keys.
/// - `is_last_of(blocks, arrived)` returns true in the last of `blocks` blocks that call it.
///   `*arrived` must be zero before, and is zero again afterwards.
template <class Block>
concept thread_block = thread_group<Block> && array_arena<Block> &&
    requires(Block& block, std::size_t n, std::uint32_t* words, std::uint64_t* keys,
             std::uint32_t word) {
  block.for_each_load(n, sample_functors::of_index{});
  block.for_each_warp(n, sample_functors::of_warp{});
  block.reduce_each(n, n, sample_functors::of_pair{}, sample_functors::sum{}, word,
                    sample_functors::of_index_and_result{});
  { block.exclusive_sum(words, n) } -> std::same_as<std::uint32_t>;
  { block.exclusive_sum_of(n, sample_functors::of_index{}, words) } -> std::same_as<std::uint32_t>;
  {
    block.inclusive_scan_of(n, sample_functors::of_index{}, words, sample_functors::sum{}, word,
                            word)
    } -> std::same_as<std::uint32_t>;
  block.sort_numbered(words, words, n);
  block.sort_numbered(keys, words, n);
  { block.is_last_of(n, words) } -> std::same_as<bool>;
};

/// A runner of phases, one after the other, which the host submits: `device_backend`,
/// `scratch_meter`, or `serial_backend` in tests. The host knows every count; a count that only the
/// device knows is in memory, and functors read it.
/// - `scratch<T>(n)` returns an array in device memory, valid until the algorithm ends,
///   uninitialized.
/// - `for_each(n, f)` calls `f(i)` for all i < n, in any order, concurrently.
/// - `for_each_block<Threads>(blocks, shared_bytes, f)` calls `f(block, index)` for each block of
///   `Threads` threads, in any order, concurrently.
/// - `for_grid<Threads>(threads, shared_bytes, f)` calls `f(grid)` once; all its blocks run at
///   once.
/// - `sort_pairs(keys, values, n, begin_bit, end_bit)` sorts pairs by these bits of unsigned keys,
///   ascending, stably and in place.
/// - `fill_zero(to, n)` sets n elements to zero.
template <class Backend>
concept kernel_backend = requires(Backend& backend, std::size_t n, std::uint64_t* keys,
                                  std::uint32_t* values, int bit) {
  { backend.template scratch<std::uint32_t>(n) } -> std::same_as<std::uint32_t*>;
  backend.for_each(n, sample_functors::of_index{});
  backend.template for_each_block<512>(n, n, sample_functors::of_block{});
  backend.sort_pairs(keys, values, n, bit, bit);
  backend.fill_zero(values, n);
};

/// A backend that also runs kernels as a single grid.
/// - `for_grid<Threads>(threads, shared_bytes, f)` calls `f(grid)` once; all blocks of the grid run
///   at once.
template <class Backend>
concept grid_backend = kernel_backend<Backend> && requires(Backend& backend, std::size_t n) {
  backend.template for_grid<512>(n, n, sample_functors::of_grid{});
};

}  // namespace omnibal::inline v0::gpu::detail
