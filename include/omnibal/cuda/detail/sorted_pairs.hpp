// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Merge sort of pairs by the threads of a block or of a grid.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Distinct pairs of a key and a value, and memory for the same number of pairs.
struct sorted_pairs {
  std::uint64_t* keys;
  std::uint32_t* values;
  std::uint64_t* spare_keys;
  std::uint32_t* spare_values;

  OMNIBAL_HOST_DEVICE void swap() {
    std::uint64_t* const other_keys = spare_keys;
    std::uint32_t* const other_values = spare_values;
    spare_keys = keys;
    spare_values = values;
    keys = other_keys;
    values = other_values;
  }

  /// Returns the pairs from a pair on.
  [[nodiscard]] OMNIBAL_HOST_DEVICE sorted_pairs from(std::size_t first) const {
    return {keys + first, values + first, spare_keys + first, spare_values + first};
  }

  /// Sorts the first `n` pairs, ascending by key and then by value, if every run of `width` pairs,
  /// a power of two, is sorted. Each pair finds its place in the other one of two runs. After each
  /// doubling of the runs both memories exchange their roles.
  template <thread_group Group>
  OMNIBAL_HOST_DEVICE void merge(Group& group, std::size_t n, std::size_t width) {
    for (; width < n; width *= 2) {
      group.for_each(n, [&](std::size_t i) {
        std::size_t const in_run = i & (width - 1);
        std::size_t const other = smaller_of((i - in_run) ^ width, n);
        std::size_t const before_both = (i - in_run) & ~width;
        move(i, before_both + in_run + count_before(i, other, smaller_of(other + width, n)));
      });
      swap();
    }
  }
  /// Merges two sorted runs, of which the first ends at `middle`.
  template <thread_group Group>
  OMNIBAL_HOST_DEVICE void merge_two(Group& group, std::size_t n, std::size_t middle) {
    if (middle == 0 || middle == n) return;
    group.for_each(n, [&](std::size_t i) {
      move(i,
           i < middle ? i + count_before(i, middle, n) : i - middle + count_before(i, 0, middle));
    });
    swap();
  }
  /// Chooses the memories such that the next merge ends in the memory that is now the first.
  OMNIBAL_HOST_DEVICE void begin_merge(std::size_t n, std::size_t width) {
    for (; width < n; width *= 2) swap();
  }

 private:
  OMNIBAL_HOST_DEVICE void move(std::size_t i, std::size_t place) const {
    spare_keys[place] = keys[i];
    spare_values[place] = values[i];
  }
  /// Returns the number of pairs of the sorted run [first, last) that come before pair i.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t count_before(std::size_t i, std::size_t first,
                                                             std::size_t last) const {
    std::uint64_t const key = keys[i];
    std::uint32_t const value = values[i];
    return first_false(first, last,
                       [&](std::size_t k) {
                         return keys[k] < key || (keys[k] == key && values[k] < value);
                       }) -
           first;
  }
};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
