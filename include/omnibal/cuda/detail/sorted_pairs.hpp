#pragma once

/// \file
/// Merge sort of pairs by the threads of a block or of a grid.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// Distinct pairs of a key and a value, and memory for as many again.
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

  /// Those from a pair on.
  [[nodiscard]] OMNIBAL_HOST_DEVICE sorted_pairs from(std::size_t first) const {
    return {keys + first, values + first, spare_keys + first, spare_values + first};
  }

  /// Sorts the first `n` pairs, ascending by key and then by value, where every run of `width` of
  /// them, a power of two, is sorted. Each pair finds its place in the other one of two runs; with
  /// each doubling of the runs both memories change places.
  template <class Group>
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
  /// The same of two sorted runs, of which the first ends at `middle`.
  template <class Group>
  OMNIBAL_HOST_DEVICE void merge_two(Group& group, std::size_t n, std::size_t middle) {
    if (middle == 0 || middle == n) return;
    group.for_each(n, [&](std::size_t i) {
      move(i,
           i < middle ? i + count_before(i, middle, n) : i - middle + count_before(i, 0, middle));
    });
    swap();
  }
  /// Lets the next such merge end in the memory that is the first now.
  OMNIBAL_HOST_DEVICE void begin_merge(std::size_t n, std::size_t width) {
    for (; width < n; width *= 2) swap();
  }

 private:
  OMNIBAL_HOST_DEVICE void move(std::size_t i, std::size_t place) const {
    spare_keys[place] = keys[i];
    spare_values[place] = values[i];
  }
  /// How many pairs of the sorted run [first, last) come before pair i.
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

}  // namespace omnibal::inline v0::gpu::detail
