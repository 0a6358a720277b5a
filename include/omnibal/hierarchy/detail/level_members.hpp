#pragma once

/// \file
/// Which samples belong to which level.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// True where `Demand` gives the tokens of a sample, in integers.
template <class Samples, class Demand>
concept token_samples =
    sample_range<Samples> && demand_function<Demand, sample_reference<Samples>> &&
    integral_amount<demand_result<Demand, sample_reference<Samples>>> &&
    same_kinds<demand_result<Demand, sample_reference<Samples>>, std::int64_t>;

/// The tokens of each sample; throws for a negative number.
template <class Samples, class Demand>
[[nodiscard]] std::vector<std::int64_t> measured_lengths(std::string_view function,
                                                         Samples const& samples,
                                                         Demand const& demand) {
  check_index_count(function, "samples", std::ranges::size(samples));
  std::vector<std::int64_t> result;
  result.reserve(std::ranges::size(samples));
  for (auto&& sample : samples) {
    result.push_back(checked_costs<std::int64_t>(function, "demand", result.size(),
                                                 std::invoke(demand, sample))[0]);
  }
  return result;
}

/// The first level that holds this length; their number where none does.
[[nodiscard]] inline std::size_t level_for(std::span<packing_level const> levels,
                                           std::int64_t length) {
  auto const holds =
      std::find_if(levels.begin(), levels.end(),
                   [length](packing_level const& level) { return length <= level.length; });
  return static_cast<std::size_t>(holds - levels.begin());
}

/// The samples of each level, ascending; in a last group those that are longer than all.
[[nodiscard]] inline grouping level_members(std::span<packing_level const> levels,
                                            std::span<std::int64_t const> lengths) {
  std::vector<std::uint32_t> level_of(lengths.size());
  for (std::size_t i = 0; i != lengths.size(); ++i) {
    level_of[i] = static_cast<std::uint32_t>(level_for(levels, lengths[i]));
  }
  return collect_parts(level_of, levels.size() + 1);
}

}  // namespace omnibal::inline v0::detail
