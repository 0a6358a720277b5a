// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Arrays of a block in shared or in device memory, and the scratch of an algorithm.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>

#include <cstddef>
#include <type_traits>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// The largest number of bytes of shared memory for the arrays of a block. `device_block` reserves
/// further bytes for itself. Every device from compute capability 8.0 on has enough shared memory
/// for both.
inline constexpr std::size_t max_shared_bytes = 96 * 1024;

/// The alignment of every array of an arena, in bytes.
inline constexpr std::size_t arena_alignment = 16;

/// An arena that only counts the bytes of the arrays that are taken from it. Algorithms take their
/// arrays in a template over the arena. Therefore the taken and the counted bytes cannot disagree.
class arena_meter {
 public:
  template <class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE T* take(std::size_t count) {
    bytes_ += (count * sizeof(T) + arena_alignment - 1) / arena_alignment * arena_alignment;
    return nullptr;
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// Arrays in given memory. Precondition: the memory is aligned and large enough.
class memory_arena {
 public:
  OMNIBAL_HOST_DEVICE explicit memory_arena(unsigned char* memory) : memory_(memory) {}

  template <class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE T* take(std::size_t count) {
    T* const result = reinterpret_cast<T*>(memory_);
    memory_ += (count * sizeof(T) + arena_alignment - 1) / arena_alignment * arena_alignment;
    return result;
  }

 private:
  unsigned char* memory_;
};

/// Arrays of a block in its shared memory.
struct shared_arrays {
  template <thread_block Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE Block& of(Block& block, std::size_t /*index*/) const {
    return block;
  }
};

/// Arrays of a block in device memory, with `bytes` bytes for each block.
struct scratch_arrays {
  unsigned char* scratch;
  std::size_t bytes;

  template <thread_block Block>
  [[nodiscard]] OMNIBAL_HOST_DEVICE memory_arena of(Block& /*block*/, std::size_t index) const {
    return memory_arena(scratch + index * bytes);
  }
};

/// Runs the functor `make(arrays)` in `blocks` blocks, each with `bytes` bytes for arrays: in
/// shared memory if they fit, otherwise in scratch in device memory. The code is compiled for each
/// kind of memory separately, because generic access to both kinds is slow.
template <int Threads, kernel_backend Backend, class Make>
void for_each_block_with_arrays(Backend& backend, std::size_t blocks, std::size_t bytes,
                                Make const& make) {
  if (bytes <= max_shared_bytes) {
    return backend.template for_each_block<Threads>(blocks, bytes, make(shared_arrays{}));
  }
  auto* const scratch = backend.template scratch<unsigned char>(bytes * blocks);
  backend.template for_each_block<Threads>(blocks, 0, make(scratch_arrays{scratch, bytes}));
}

/// Returns the number of bytes that `take(arena)` allocates.
template <class Take>
[[nodiscard]] std::size_t arena_bytes(Take const& take) {
  arena_meter meter;
  take(meter);
  return meter.bytes();
}

/// The largest number of blocks of a grid.
inline constexpr std::size_t max_grid_blocks = 1024;

/// The size in bytes of the memory by which the blocks of a grid exchange values. Each block has
/// two values of at most 48 bytes, so that one can be written while other blocks still read the
/// other one.
inline constexpr std::size_t grid_exchange_bytes = 2 * 48 * max_grid_blocks;

/// A backend that runs nothing and only counts the scratch that an algorithm takes. Therefore the
/// measured and the used scratch cannot disagree. The returned pointers are not null and must not
/// be dereferenced.
class scratch_meter {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T* scratch(std::size_t count) {
    auto* const result = reinterpret_cast<T*>(alignment + bytes_);
    bytes_ += (count * sizeof(T) + alignment - 1) / alignment * alignment;
    return result;
  }

  template <class F>
  void for_each(std::size_t, F const&) {}
  template <int Threads, class F>
  void for_each_block(std::size_t, std::size_t, F const&) {}
  template <int Threads, class F>
  void for_grid(std::size_t, std::size_t, F const&) {
    static_cast<void>(scratch<unsigned char>(grid_exchange_bytes));
  }

  template <class Key, class Value>
  void sort_pairs(Key*, Value*, std::size_t, int = 0, int = static_cast<int>(8 * sizeof(Key))) {}

  template <class T>
  void fill_zero(T*, std::size_t) {}

  /// Returns the number of bytes of scratch taken so far, with each array rounded up to the
  /// alignment.
  [[nodiscard]] std::size_t scratch_bytes() const { return bytes_; }

  /// The alignment of each array of scratch, in bytes.
  static constexpr std::size_t alignment = 256;

 private:
  std::size_t bytes_ = 0;
};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
