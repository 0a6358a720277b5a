// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The best configurations of a search so far: of all, of each family, and of each set of degrees.

#include <omnibal/plan/configuration_plan.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The values of all choices of a configuration, in the order of `configuration_choice`.
using choice_values = std::array<std::int64_t, 8>;

/// The best configurations so far.
class configuration_record {
 public:
  static constexpr double infinite = std::numeric_limits<double>::infinity();

  configuration_record(std::size_t layouts, std::size_t runners_up)
      : layout_seconds_(layouts, infinite), runners_up_(runners_up) {}

  /// Returns the number of a family, which is created if there is none.
  [[nodiscard]] std::size_t family(configuration_choice choice, std::int64_t value) {
    for (std::size_t i = 0; i != families_.size(); ++i) {
      if (families_[i].choice == choice && families_[i].value == value) return i;
    }
    families_.push_back({choice, value});
    return families_.size() - 1;
  }

  /// Returns true if a configuration of these families and degrees matters whose seconds are at
  /// least `bound`.
  [[nodiscard]] bool matters(double bound, std::span<std::uint16_t const> families,
                             std::size_t layout) const {
    if (bound < layout_seconds_[layout] && bound < needed_) return true;
    return std::ranges::any_of(families,
                               [&](std::uint16_t i) { return bound < families_[i].seconds; });
  }

  /// Records that a configuration of these families needs at least this number of bytes, which are
  /// too many.
  void refuse(std::int64_t bytes, std::span<std::uint16_t const> families) {
    for (std::uint16_t const i : families) {
      families_[i].least_bytes = std::min(families_[i].least_bytes, bytes);
    }
    least_bytes_ = std::min(least_bytes_, bytes);
  }

  /// Records a configuration that fits.
  void accept(planned_configuration const& found, std::span<std::uint16_t const> families,
              std::size_t layout) {
    double const seconds = found.prediction.total();
    for (std::uint16_t const i : families) {
      if (seconds >= families_[i].seconds) continue;
      families_[i].seconds = seconds;
      families_[i].best = found;
    }
    if (seconds >= layout_seconds_[layout]) return;
    layout_seconds_[layout] = seconds;
    std::erase_if(ranking_, [&](ranked const& entry) { return entry.layout == layout; });
    auto const place = std::ranges::upper_bound(ranking_, seconds, {}, [](ranked const& entry) {
      return entry.configuration.prediction.total();
    });
    ranking_.insert(place, {layout, found});
    if (ranking_.size() <= runners_up_) return;
    ranking_.resize(runners_up_ + 1);
    needed_ = ranking_.back().configuration.prediction.total();
  }

  /// Writes the best configurations and the families to a plan. `values_of` returns the values of
  /// the choices of a configuration.
  template <class ValuesOf>
  void write(configuration_plan& plan, ValuesOf const& values_of) {
    if (ranking_.empty()) {
      plan.least_bytes = least_bytes_;
      return;
    }
    plan.best = ranking_.front().configuration;
    choice_values const best = values_of(plan.best);
    for (std::size_t i = 1; i < ranking_.size(); ++i) {
      plan.runners_up.push_back(ranking_[i].configuration);
    }
    std::ranges::stable_sort(families_, {}, [](family_record const& family) {
      return std::pair{family.choice, family.value};
    });
    for (family_record const& family : families_) {
      if (family.value == best[static_cast<std::size_t>(family.choice)]) continue;
      // The family has no configuration, or the search ended before it.
      if (family.seconds == infinite && family.least_bytes == untried) continue;
      configuration_family& written =
          plan.families.emplace_back(configuration_family{family.choice, family.value});
      if (family.seconds == infinite) {
        written.least_bytes = family.least_bytes;
        continue;
      }
      written.best = family.best;
      written.reason = reason_of(family.best, plan.best);
    }
  }

 private:
  static constexpr std::int64_t untried = std::numeric_limits<std::int64_t>::max();

  struct family_record {
    configuration_choice choice{};
    std::int64_t value = 0;
    double seconds = infinite;
    planned_configuration best{};
    std::int64_t least_bytes = untried;
  };

  struct ranked {
    std::size_t layout = 0;
    planned_configuration configuration{};
  };

  /// Returns the parts of a step in the order of `loss_reason`, from `computation`.
  [[nodiscard]] static std::array<double, 4> parts_of(planned_configuration const& given) {
    step_seconds const& parts = given.prediction.seconds;
    double const work =
        parts.matmul + parts.attention + parts.memory + parts.launch + parts.optimizer;
    return {work * (1 - given.padding), parts.bubble,
            parts.tensor + parts.context + parts.expert + parts.transfer + parts.gradients,
            work * given.padding};
  }

  [[nodiscard]] static loss_reason reason_of(planned_configuration const& loser,
                                             planned_configuration const& best) {
    auto const ours = parts_of(loser);
    auto const theirs = parts_of(best);
    std::size_t worst = 0;
    for (std::size_t i = 1; i != ours.size(); ++i) {
      if (ours[i] - theirs[i] > ours[worst] - theirs[worst]) worst = i;
    }
    return static_cast<loss_reason>(worst + 1);
  }

  std::vector<family_record> families_{};
  /// The seconds of the best configuration of each set of degrees, and the best sets.
  std::vector<double> layout_seconds_;
  std::vector<ranked> ranking_{};
  std::size_t runners_up_;
  /// The seconds of the last configuration in the ranking, once the ranking is full.
  double needed_ = infinite;
  std::int64_t least_bytes_ = untried;
};

}  // namespace omnibal::inline v0::detail
