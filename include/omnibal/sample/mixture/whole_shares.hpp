#pragma once

/// \file
/// Weights as whole numbers.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The most sources that can be mixed.
inline constexpr std::size_t most_sources = std::size_t{1} << 31;

/// Weights in the type of computation; throws for one that is negative or not finite.
template <class Working, sample_range Sources, class Weight>
[[nodiscard]] std::vector<Working> checked_weights(std::string_view function,
                                                   Sources const& sources, Weight const& weight) {
  std::vector<Working> result;
  result.reserve(std::ranges::size(sources));
  for (auto&& source : sources) {
    auto const value =
        to_working<Working>({function, "weight", result.size()}, std::invoke(weight, source));
    check_weight(function, "weight", result.size(), value);
    result.push_back(value);
  }
  return result;
}

/// Whole numbers in proportion to `weights`, with a sum below 2^32: the weights themselves where
/// they are integers and small enough, else multiples of 2^-31 of their sum.
template <sample_range Sources, class Weight>
[[nodiscard]] std::vector<std::uint64_t> whole_shares(std::string_view function,
                                                      Sources const& sources,
                                                      Weight const& weight) {
  if (std::ranges::empty(sources)) throw_invalid(function, "there are no sources");
  if (std::ranges::size(sources) > most_sources) {
    throw_length(function, "sources", std::ranges::size(sources));
  }
  using working = working_weight<demand_result<Weight, sample_reference<Sources>>>;
  auto const weights = checked_weights<working>(function, sources, weight);
  // The sum as a floating-point number, so that it cannot overflow.
  double sum = 0;
  for (working const value : weights) {
    checked_add(function, "the sum of the weights", sum, static_cast<double>(value));
  }
  if (sum == 0) throw_invalid(function, "all weights are zero");
  bool const is_whole = std::integral<working> && sum <= static_cast<double>(max_index_count);
  std::vector<std::uint64_t> shares;
  shares.reserve(weights.size());
  for (working const value : weights) {
    double const share = std::floor(static_cast<double>(value) / sum * 0x1p31 + 0.5);
    shares.push_back(is_whole || value == 0 ? static_cast<std::uint64_t>(value)
                                            : static_cast<std::uint64_t>(std::max(share, 1.0)));
  }
  return shares;
}

}  // namespace omnibal::inline v0::detail
