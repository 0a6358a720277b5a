// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Metrics by which hierarchies of levels are compared.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace omnibal::inline v0 {

/// The metrics of packs in levels, as `level_metrics` returns them.
struct level_figures {
  /// DBR: the share of the time of a step in which ranks are idle until the rank with the most
  /// tokens ends.
  double data_balance = 0.0;
  /// ABR: the same share if the time of a rank is its attention; see `attention_balance`.
  double attention_balance = 0.0;
  /// CR: the share of tokens that several ranks share; see `communication_ratio`.
  double communication_ratio = 0.0;
  /// PR: the share of padding if every pack is padded to the length of its level, on average over
  /// the packs of the levels, weighted by their lengths. A pack of an oversized sample has no
  /// padding.
  double pad_ratio = 0.0;
};

struct level_metrics_fn {
  /// Returns the metrics of packs in levels and of their steps. `schedules` has one schedule for
  /// each level, as `level_steps` returns them. The balance ratios are means over the steps of all
  /// levels together, including short last steps.
  ///
  /// Complexity: linear. Memory: 8 bytes per group. Determinism: portable. Errors: the errors of
  /// `dist_ratio`, `attention_balance` and `communication_ratio`; `std::invalid_argument` if the
  /// numbers of schedules and levels differ. Source: Yao et al., "Hierarchical balance packing",
  /// NeurIPS 2025; Yao et al., OmniBal, ICML 2025.
  template <class Samples, class Length = std::identity>
    requires detail::samples_with_length<Samples, Length>
  [[nodiscard]] level_figures operator()(level_packing const& packed,
                                         std::span<steps const> schedules, Samples const& samples,
                                         Length const& length = {}) const {
    detail::check_size(name, "schedules", schedules.size(), packed.levels.size(), "levels");
    auto const groups = packed.groups.view();
    auto const loads = detail::add_up_groups(name, "length", groups, samples, length);
    detail::check_loads(name, packed, loads.size());
    level_figures result;
    double step_count = 0;
    double space = 0;
    double used = 0;
    for (std::size_t level = 0; level != schedules.size(); ++level) {
      steps const& schedule = schedules[level];
      auto const count = static_cast<double>(schedule.size());
      result.data_balance += count * dist_ratio(schedule, loads)[0];
      result.attention_balance += count * attention_balance(schedule, groups, samples, length);
      step_count += count;
      packed_level const& own = packed.levels[level];
      for (std::uint32_t g = 0; g != own.group_count; ++g) {
        auto const load = static_cast<double>(loads[own.first_group + g][0]);
        space += std::max(load, static_cast<double>(own.setting.length));
        used += load;
      }
    }
    if (step_count > 0) {
      result.data_balance /= step_count;
      result.attention_balance /= step_count;
    }
    auto const degree = [&](std::uint32_t group) {
      return packed.levels[packed.level_of(group)].setting.sequence;
    };
    result.communication_ratio = communication_ratio(groups, samples, degree, length);
    if (space > 0) result.pad_ratio = 1.0 - used / space;
    return result;
  }

 private:
  static constexpr std::string_view name = "level_metrics";
};

/// Computes the metrics of packs in levels; see `level_metrics_fn`.
inline constexpr level_metrics_fn level_metrics{};

}  // namespace omnibal::inline v0
