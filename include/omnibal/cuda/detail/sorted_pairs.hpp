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

/// Distinct pairs of a key and a value, and spare memory for the same number of pairs.
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

  /// Returns the pairs from index `first` on.
  [[nodiscard]] OMNIBAL_HOST_DEVICE sorted_pairs from(std::size_t first) const {
    return {keys + first, values + first, spare_keys + first, spare_values + first};
  }

  /// Sorts the first `n` pairs, ascending by key and then by value, by merging runs. Precondition:
  /// every run of `width` pairs is sorted, and `width` is a power of two. Two runs are merged by
  /// binary searches: the place of a pair follows from the number of pairs of the other run before
  /// it. Each pass doubles the width of the runs and swaps the pairs with the spare memory.
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
  /// Merges the sorted runs [0, middle) and [middle, n).
  template <thread_group Group>
  OMNIBAL_HOST_DEVICE void merge_two(Group& group, std::size_t n, std::size_t middle) {
    if (middle == 0 || middle == n) return;
    group.for_each(n, [&](std::size_t i) {
      move(i,
           i < middle ? i + count_before(i, middle, n) : i - middle + count_before(i, 0, middle));
    });
    swap();
  }
  /// Swaps the two memories if necessary, so that the next `merge` with these arguments leaves its
  /// result in the memory that `keys` and `values` name before this call.
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
