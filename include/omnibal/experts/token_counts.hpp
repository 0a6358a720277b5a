// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Numbers of tokens of experts.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

/// A range of integers: the number of tokens of each expert in a batch.
template <class Range>
concept token_range =
    sample_range<Range> && scalar_measure<std::remove_cvref_t<sample_reference<Range>>> &&
    std::integral<std::remove_cvref_t<sample_reference<Range>>>;

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

/// Returns value / divisor, rounded up, without overflow. Preconditions: the value is not negative,
/// and the divisor is positive.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::int64_t ceiled_mean(std::int64_t value,
                                                                     std::int64_t divisor) {
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}

/// Copies the tokens of experts. Errors: `std::invalid_argument` for a negative number,
/// `std::length_error` above 2^32 - 1 experts, `std::overflow_error` if the sum exceeds 2^63 - 1.
template <token_range Tokens>
void copy_tokens(std::string_view function, Tokens const& tokens,
                 std::vector<std::int64_t>& result) {
  check_index_count(function, "tokens", std::ranges::size(tokens));
  result.clear();
  std::int64_t sum = 0;
  for (auto const count : tokens) {
    result.push_back(checked_cost<std::int64_t>(function, "tokens", result.size(), count));
    checked_add(function, "the sum of the tokens", sum, result.back());
  }
}

}  // namespace omnibal::inline v0::detail
