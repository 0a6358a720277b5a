#pragma once

/// \file
/// What the rounds of `best_fit_rounds` keep in memory.

#include <omnibal/config.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

struct fit_state {
  /// The samples that are not oversized, and those of them that take something.
  std::uint32_t fitting;
  std::uint32_t positive;
  std::uint32_t group_count;
  std::uint64_t lower_bound;
  std::uint64_t rounds;
  std::uint64_t item_rounds;
};

/// Arrays of an element for each sample, since no more groups than samples are opened. Samples are
/// named by their position in the order of descending size.
struct fit_arrays {
  fit_state* state;
  std::uint64_t* sizes;
  /// The group of each sample.
  std::uint32_t* group_of;
  /// The samples that wait, and those that a round leaves.
  std::uint32_t* waiting;
  std::uint32_t* left;
  /// The room of each group.
  std::uint64_t* rooms;
  /// The groups with room by descending room, the keys by which they are sorted, and both once more.
  std::uint32_t* order;
  std::uint32_t* spare_order;
  std::uint64_t* keys;
  std::uint64_t* spare_keys;
  /// For the samples of a round: how many single groups hold it, and how many samples found none.
  std::uint32_t* reach;
  std::uint32_t* without;
  /// For the single groups of a round: how many of them are free, and the minima of 32, 32^2, ...
  std::uint32_t* depth;
  std::uint32_t* minima;
};

template <class Backend>
[[nodiscard]] fit_arrays make_fit_arrays(Backend& backend, std::size_t count) {
  fit_arrays result{};
  result.state = backend.template scratch<fit_state>(1);
  result.sizes = backend.template scratch<std::uint64_t>(count);
  result.group_of = backend.template scratch<std::uint32_t>(count);
  result.waiting = backend.template scratch<std::uint32_t>(count);
  result.left = backend.template scratch<std::uint32_t>(count);
  result.rooms = backend.template scratch<std::uint64_t>(count);
  result.order = backend.template scratch<std::uint32_t>(count);
  result.spare_order = backend.template scratch<std::uint32_t>(count);
  result.keys = backend.template scratch<std::uint64_t>(count);
  result.spare_keys = backend.template scratch<std::uint64_t>(count);
  result.reach = backend.template scratch<std::uint32_t>(count);
  result.without = backend.template scratch<std::uint32_t>(count);
  result.depth = backend.template scratch<std::uint32_t>(count);
  // 1/32 + 1/32^2 + ..., each rounded up.
  result.minima = backend.template scratch<std::uint32_t>(count / 31 + 8);
  return result;
}

/// The sizes of sorted keys; every sample that takes something waits.
struct fit_unpack {
  fit_arrays arrays;
  std::uint64_t capacity;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t k) const {
    if (k >= arrays.state->fitting) return;
    arrays.sizes[k] = capacity - arrays.keys[k];
    arrays.waiting[k] = static_cast<std::uint32_t>(k);
  }
};

}  // namespace omnibal::inline v0::gpu::detail
