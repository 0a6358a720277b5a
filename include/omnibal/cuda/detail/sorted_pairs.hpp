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

  /// Sorts the first `n` pairs, ascending by key and then by value, where every run of `width` of
  /// them is sorted. Each pair finds its place in the other one of two runs; with each doubling of
  /// the runs both memories change places.
  template <class Group>
  OMNIBAL_HOST_DEVICE void merge(Group& group, std::size_t n, std::size_t width) {
    for (; width < n; width *= 2) {
      group.for_each(n, [&](std::size_t i) {
        std::size_t const place = place_of(i, width, n);
        spare_keys[place] = keys[i];
        spare_values[place] = values[i];
      });
      swap();
    }
  }
  /// Lets the next such merge end in the memory that is the first now.
  OMNIBAL_HOST_DEVICE void begin_merge(std::size_t n, std::size_t width) {
    for (; width < n; width *= 2) swap();
  }

 private:
  /// Where pair i comes where its run of `width` pairs and the neighbouring one are merged.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t place_of(std::size_t i, std::size_t width,
                                                         std::size_t n) const {
    std::size_t const run = i / width;
    std::size_t const other = smaller_of((run ^ 1) * width, n);
    std::size_t const other_last = smaller_of(other + width, n);
    std::uint64_t const key = keys[i];
    std::uint32_t const value = values[i];
    std::size_t const first = first_false(other, other_last, [&](std::size_t k) {
      return keys[k] < key || (keys[k] == key && values[k] < value);
    });
    std::size_t const before_both = run / 2 * 2 * width;
    return before_both + (i - run * width) + (first - other);
  }
};

}  // namespace omnibal::inline v0::gpu::detail
