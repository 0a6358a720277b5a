// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The load of each group: the sum of the demands of its samples.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// Returns the load of each group. The texts of errors contain `function`, and `argument` as the
/// name of the measured amount.
template <class Samples, class Demand>
[[nodiscard]] auto add_up_groups(std::string_view function, std::string_view argument,
                                 grouping_view groups, Samples const& samples,
                                 Demand const& demand) {
  using load_type = measured_amounts<Samples, Demand>;
  using working = typename load_type::value_type;

  std::vector<load_type> loads(groups.size(), load_type{});
  for (std::size_t g = 0; g != groups.size(); ++g) {
    for (std::uint32_t const item : groups[g]) {
      auto&& sample = sample_at(function, samples, g, item);
      auto const amounts =
          to_resources<working>({function, argument, item}, std::invoke(demand, sample));
      for (std::size_t r = 0; r != load_type::size(); ++r) {
        check_weight(function, argument, item, amounts[r]);
        checked_add(function, "a group's load", loads[g][r], amounts[r]);
      }
    }
  }
  return loads;
}

}  // namespace detail

struct group_loads_fn {
  /// Returns the load of each group as resources, in the order of the groups.
  ///
  /// `demand` returns resources or one weight. The amounts of the loads are `std::int64_t`, or
  /// `double` if the demand is floating-point. Complexity: linear in the number of items and
  /// groups. Allocates the result. Determinism: portable. Errors: `std::invalid_argument` for an
  /// index that is not in `samples` or a demand that is negative or not finite;
  /// `std::overflow_error` for a load that exceeds its type.
  template <sample_range Samples, class Demand>
    requires demand_function<Demand, sample_reference<Samples>>
  [[nodiscard]] auto operator()(groups_argument groups, Samples const& samples,
                                Demand const& demand) const {
    return detail::add_up_groups("group_loads", "demand", groups, samples, demand);
  }
};

inline constexpr group_loads_fn group_loads{};

}  // namespace omnibal::inline v0
