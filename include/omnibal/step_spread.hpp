// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The variation of the steps of a schedule.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <ranges>
#include <string_view>

namespace omnibal::inline v0 {

/// Measures of how a schedule mixes the groups, separately for each resource.
template <class Ratio>
struct step_spread_result {
  /// The standard deviation of the totals of steps, divided by the standard deviation that is
  /// expected in random order. The ratio is 1 for random order, and below 1 if a step is a better
  /// sample of all groups than a random step. If the groups of each step are similar, the ratio is
  /// above 1 and at most the square root of the number of groups of a step.
  Ratio totals{};
  /// The variance among the groups of a step, divided by the variance that is expected in random
  /// order. The ratio is 0 if the groups of each step are equal.
  Ratio within{};
  /// The coefficient of variation of the totals of steps: their standard deviation divided by their
  /// mean.
  Ratio variation{};
};

struct step_spread_fn {
  /// Returns how much the steps vary in each resource, and how similar the groups of a step are.
  /// `loads` contains the amounts that each group adds to its step. These are the amounts that are
  /// balanced, or other amounts for which a step should represent all groups. Examples are the
  /// tokens with a loss and the tokens from one source.
  ///
  /// Let the loads of all N groups have the mean m and the variance v. In random order the total of
  /// n groups has the mean n m and the variance n v (N - n) / (N - 1). The variance among these n
  /// groups is v N / (N - 1). The squares of all steps are added up before they are divided, so
  /// that steps may have different numbers of groups. If all groups have the same load, `totals`
  /// and `within` are 1 and `variation` is 0. The values `totals` and `within` are also 1 if the
  /// order makes no difference, because there is one step or each step has one group.
  ///
  /// Cells that repeat groups are left out. A last step with fewer groups than the largest step is
  /// left out too, because schedules put the remaining groups there.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: as sums of `double`s in the order of the
  /// cells. Errors: `std::invalid_argument` for a load that is negative or not finite and for a
  /// group index without a load.
  template <amount_range GroupLoads>
    requires sample_range<GroupLoads>
  [[nodiscard]] auto operator()(steps const& schedule, GroupLoads const& loads) const {
    std::size_t const groups = std::ranges::size(loads);
    return (*this)(schedule, [&](std::uint32_t group) -> detail::amount_of<GroupLoads> {
      if (group < groups) return detail::element_at(loads, group);
      detail::throw_invalid(name, "the schedule names group ", group, " of ", groups);
    });
  }

  /// Returns how much the steps vary, from `load(group)`, a weight or resources. The functor is
  /// called twice for each group, but only once for the groups of a last step that is left out.
  template <class Load>
    requires demand_function<Load, std::uint32_t>
  [[nodiscard]] auto operator()(steps const& schedule, Load const& load) const
      -> step_spread_result<detail::ratio_of<demand_result<Load, std::uint32_t>>> {
    using load_type = demand_result<Load, std::uint32_t>;
    constexpr std::size_t kinds = detail::kinds_of<load_type>;
    std::size_t const counted = counted_steps(schedule);
    auto const for_each_load = [&](std::size_t step, auto const& body) {
      for_each_group(schedule, step, [&](std::uint32_t group) {
        auto const amounts = detail::checked_costs<detail::working_weight<load_type>>(
            name, "loads", group, std::invoke(load, group));
        for (std::size_t r = 0; r != kinds; ++r) body(r, static_cast<double>(amounts[r]));
      });
    };
    moments all[kinds];
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      for_each_load(step, [&](std::size_t r, double amount) {
        if (step < counted) all[r].add(amount);
      });
    }
    for (moments& one : all) one.set_scale();
    for (std::size_t step = 0; step != counted; ++step) {
      for_each_load(step, [&](std::size_t r, double amount) { all[r].add_to_step(amount); });
      for (moments& one : all) one.end_step();
    }
    resources<kinds, double> totals, within, variation;
    for (std::size_t r = 0; r != kinds; ++r) {
      bool const varies = all[r].smallest < all[r].largest;
      totals[r] = varies ? all[r].totals() : 1.0;
      within[r] = varies ? all[r].within() : 1.0;
      variation[r] = varies ? all[r].variation() : 0.0;
    }
    return {detail::to_ratio<load_type>(totals), detail::to_ratio<load_type>(within),
            detail::to_ratio<load_type>(variation)};
  }

 private:
  static constexpr std::string_view name = "step_spread";

  /// Sums that are collected in two passes: first over all groups, then over the steps.
  struct moments {
    double smallest = 0, largest = 0, sum = 0, count = 0;
    /// The sum of the amounts times 2^-64, which cannot overflow.
    double small_sum = 0;
    /// Amounts are divided by 2 to the power of `exponent`, so that their squares neither overflow
    /// nor become zero.
    int exponent = 0;
    /// For the current step, the number of groups and the sum of their deviations from the mean.
    /// `squares` is the sum of the squares of the deviations of all groups.
    double in_step = 0, deviation = 0, squares = 0;
    /// Sums over the steps: the squares of the deviations of the steps, these squares divided by
    /// the number of groups of the step, and the squares of the numbers of groups. The member
    /// `step_count` is the number of steps.
    double step_squares = 0, step_means = 0, count_squares = 0, step_count = 0;

    void add(double amount) {
      smallest = count == 0 ? amount : std::min(smallest, amount);
      largest = std::max(largest, amount);
      sum += amount;
      small_sum += amount * 0x1p-64;
      ++count;
    }
    /// Sets `exponent` after all amounts have been added. If the largest amount is between 2^-200
    /// and 2^200, no scale is required.
    void set_scale() {
      if (largest == 0 || std::abs(std::ilogb(largest)) <= 200) return;
      exponent = std::ilogb(largest);
      sum = detail::is_finite(sum) ? std::ldexp(sum, -exponent)
                                   : std::ldexp(small_sum, 64 - exponent);
    }
    void add_to_step(double amount) {
      double const scaled = exponent == 0 ? amount : std::ldexp(amount, -exponent);
      double const apart = scaled - sum / count;
      squares += apart * apart;
      deviation += apart;
      ++in_step;
    }
    void end_step() {
      if (in_step == 0) return;
      step_squares += deviation * deviation;
      step_means += deviation * deviation / in_step;
      count_squares += in_step * in_step;
      ++step_count;
      in_step = deviation = 0;
    }
    [[nodiscard]] double totals() const {
      double const choices = count * count - count_squares;
      if (!(choices > 0)) return 1.0;
      return std::sqrt(step_squares * count * (count - 1) / (squares * choices));
    }
    [[nodiscard]] double within() const {
      if (!(step_count < count)) return 1.0;
      return std::max(0.0, squares - step_means) * (count - 1) / (squares * (count - step_count));
    }
    [[nodiscard]] double variation() const {
      return std::sqrt(step_squares / count_squares) * count / sum;
    }
  };

  template <class Body>
  static void for_each_group(steps const& schedule, std::size_t step, Body const& body) {
    for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
      if (schedule.is_repeat(step, rank)) continue;
      for (std::uint32_t const group : schedule(step, rank)) body(group);
    }
  }

  [[nodiscard]] static std::size_t counted_steps(steps const& schedule) {
    std::size_t most = 0;
    std::size_t count = 0;
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      count = 0;
      for_each_group(schedule, step, [&](std::uint32_t) { ++count; });
      most = std::max(most, count);
    }
    return schedule.size() - (count < most ? 1 : 0);
  }
};

/// Returns how much steps vary; see `step_spread_fn`.
inline constexpr step_spread_fn step_spread{};

}  // namespace omnibal::inline v0
