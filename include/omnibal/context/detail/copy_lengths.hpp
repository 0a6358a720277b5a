// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The lengths of samples, checked.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>

#include <concepts>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Copies lengths to `result`. Throws if one is negative or above `most`, which `Length` can hold.
template <sample_range Lengths, std::integral Length>
void copy_lengths(std::string_view function, Lengths const& lengths, std::int64_t most,
                  std::vector<Length>& result) {
  result.clear();
  result.reserve(std::ranges::size(lengths));
  for (auto const given : lengths) {
    // Characters are numbers too, but only promoted characters can be compared.
    auto const length = +given;
    if (std::cmp_less(length, 0) || std::cmp_greater(length, most)) {
      throw_invalid(function, "lengths[", result.size(), "] is ", length, ", must be from 0 to ",
                    most);
    }
    result.push_back(static_cast<Length>(length));
  }
}

}  // namespace omnibal::inline v0::detail
