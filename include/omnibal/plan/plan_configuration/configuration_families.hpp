// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The best configurations that a search has found: of all, of each family, and of each set of
/// degrees.

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/plan/configuration_plan.hpp>
#include <omnibal/plan/training_step.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The values of `configuration_choice::schedule`.
enum class step_schedule : std::int64_t { one_f_one_b = 1, interleaved = 2 };

[[nodiscard]] constexpr step_schedule schedule_of(std::int64_t chunks) {
  return chunks > 1 ? step_schedule::interleaved : step_schedule::one_f_one_b;
}

/// The values of all choices of a configuration, in the order of `configuration_choice`.
using choice_values = std::array<std::int64_t, 9>;

/// Returns the values of the choices of a configuration; `batch` is the value of
/// `configuration_choice::micro_batch`.
[[nodiscard]] constexpr choice_values values_of(parallel_degrees const& degrees,
                                                std::int64_t chunks, std::int64_t batch,
                                                recompute_choice recomputed,
                                                std::int64_t offload_percent) {
  return {degrees.tensor,
          degrees.pipeline,
          degrees.sequence,
          degrees.expert,
          static_cast<std::int64_t>(schedule_of(chunks)),
          batch,
          static_cast<std::int64_t>(recomputed),
          static_cast<std::int64_t>(degrees.sharding),
          offload_percent};
}
[[nodiscard]] constexpr choice_values values_of(planned_configuration const& given) {
  training_step const& step = given.step;
  std::int64_t const batch = given.token_capacity != 0 ? given.token_capacity : step.sequences;
  return values_of(step.degrees, step.chunks, batch, step.recomputed, given.offload_percent);
}

/// The indices of the families of a branch: one for each choice, and both schedules. The indices
/// have 16 bits to save memory, because each branch keeps a list.
class family_list {
 public:
  void add(std::size_t family) { numbers_[size_++] = static_cast<std::uint16_t>(family); }
  [[nodiscard]] std::uint16_t const* begin() const { return numbers_.data(); }
  [[nodiscard]] std::uint16_t const* end() const { return numbers_.data() + size_; }

 private:
  std::array<std::uint16_t, std::tuple_size_v<choice_values> + 1> numbers_{};
  std::size_t size_ = 0;
};

/// The best configurations that the search has found so far.
class configuration_record {
 public:
  static constexpr double infinite = std::numeric_limits<double>::infinity();

  configuration_record(std::size_t layouts, std::size_t runners_up)
      : layout_seconds_(layouts, infinite), runners_up_(runners_up) {}

  /// Returns the index of a family; creates the family if it does not exist.
  [[nodiscard]] std::size_t family(configuration_choice choice, std::int64_t value) {
    for (std::size_t i = 0; i != families_.size(); ++i) {
      if (families_[i].choice == choice && families_[i].value == value) return i;
    }
    families_.push_back({choice, value});
    return families_.size() - 1;
  }

  /// Returns true if a configuration with these families and degrees can be better than a recorded
  /// one; `bound` is a lower bound of its seconds.
  [[nodiscard]] bool may_improve(double bound, family_list const& families,
                                 std::size_t layout) const {
    if (bound < layout_seconds_[layout] && bound < last_ranked_) return true;
    return std::ranges::any_of(families,
                               [&](std::uint16_t i) { return bound < families_[i].seconds; });
  }

  /// Records that a configuration of these families exceeds the memory; `bytes` is a lower bound of
  /// the bytes that it needs.
  void add_unfit(std::int64_t bytes, family_list const& families) {
    for (std::uint16_t const i : families) {
      families_[i].min_bytes = std::min(families_[i].min_bytes, bytes);
    }
    min_bytes_ = std::min(min_bytes_, bytes);
  }

  /// Records a configuration that fits into the memory.
  void add_fitting(planned_configuration const& found, family_list const& families,
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
    last_ranked_ = ranking_.back().configuration.prediction.total();
  }

  /// Writes the best configurations and the families to a plan.
  void write(configuration_plan& plan) {
    if (ranking_.empty()) {
      plan.min_bytes = min_bytes_;
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
      // The family has no configuration, or the search ended before it tried one.
      if (family.seconds == infinite && family.min_bytes == untried) continue;
      configuration_family& written =
          plan.families.emplace_back(configuration_family{family.choice, family.value});
      if (family.seconds == infinite) {
        written.min_bytes = family.min_bytes;
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
    std::int64_t min_bytes = untried;
  };

  struct ranked {
    std::size_t layout = 0;
    planned_configuration configuration{};
  };

  /// Returns the seconds of the parts of a step in the order of `loss_reason`, from `computation`
  /// on.
  [[nodiscard]] static std::array<double, 4> parts_of(planned_configuration const& given) {
    step_seconds const& parts = given.prediction.seconds;
    double const work =
        parts.matmul + parts.attention + parts.memory + parts.launch + parts.optimizer;
    return {work * (1 - given.padding), parts.bubble,
            parts.tensor + parts.context + parts.expert + parts.transfer + parts.gradients +
                parts.offload,
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
  /// The seconds of the best configuration of each set of degrees, and the configurations of the
  /// best sets.
  std::vector<double> layout_seconds_;
  std::vector<ranked> ranking_{};
  std::size_t runners_up_;
  /// The seconds of the last configuration in the ranking if the ranking is full; infinite
  /// otherwise.
  double last_ranked_ = infinite;
  std::int64_t min_bytes_ = untried;
};

}  // namespace omnibal::inline v0::detail
