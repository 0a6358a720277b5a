// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The sort of indices by a key.

#include <omnibal/detail/radix_sort.hpp>

#include <bit>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Words with a key in the upper half and an index in the lower half, and the memory of their sort.
struct keyed_indices {
  std::vector<std::uint64_t> words{};
  std::vector<std::uint64_t> sort_memory{};

  /// Sorts by key. Equal keys keep their order.
  void sort(std::uint64_t max_key) {
    radix_sort(words, sort_memory, 32, static_cast<unsigned>(std::bit_width(max_key)));
  }
};

}  // namespace omnibal::inline v0::detail
