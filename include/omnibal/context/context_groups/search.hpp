#pragma once

/// \file
/// The best of many fillings.

#include <omnibal/context/context_groups/bound.hpp>
#include <omnibal/context/context_groups/filling.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Tries deadlines: first how long a micro-step may be, then between the bound and what was found;
/// where that stays far from the bound, the same again with more ranks for all samples. More effort
/// first does all that less effort does, so that its plan is never worse.
class context_search {
 public:
  /// Gives the best filling, whose pieces are valid until the next call.
  context_filling const& operator()(context_instance const& instance, context_bound const& bound,
                                    context_memory memory, double lower_bound, effort level) {
    instance_ = &instance;
    bound_ = &bound;
    memory_ = &memory;
    lower_bound_ = lower_bound;
    best_time_ = std::numeric_limits<double>::infinity();
    try_micro_steps(0);
    if (!(best_time_ <= std::numeric_limits<double>::max())) {
      throw_overflow("context_groups", "the time of all samples");
    }
    try_lengths();
    if (level != effort::fast) {
      refine(0, few_refinements);
      if (try_degrees()) refine(0, few_refinements);
    }
    if (level == effort::thorough) refine(few_refinements, many_refinements);
    memory_ = nullptr;
    return best_;
  }

 private:
  /// How much longer than need be micro-steps may be to keep long samples on few ranks.
  static constexpr double lengths[] = {1.2, 1.5, 2};
  static constexpr int few_refinements = 4;
  static constexpr int many_refinements = 40;
  /// How many numbers of micro-steps are tried.
  static constexpr int most_numbers = 12;
  /// Where between the bound and the best time the next aim is: the golden section and its powers
  /// hit no place twice.
  static constexpr double spread[] = {0.62, 0.38, 0.85, 0.24, 0.5, 0.73, 0.12, 0.95};
  static constexpr int spread_count = 8;
  /// What is so near the bound is not refined, or not tried with more ranks.
  static constexpr double near = 1.001;
  static constexpr double far = 1.03;

  /// Where memory is scarce, what is left over would make an expensive micro-step, and ranks with
  /// short samples have no memory left long before a deadline: more and shorter micro-steps, as
  /// long as one of the last two was better than all before.
  void try_micro_steps(std::uint32_t least_degree) {
    std::uint64_t steps = instance_->rounded(bound_->fewest_steps());
    double const shortest = bound_->area_from(0) / instance_->ranks;
    int misses = 0;
    for (int k = 0; k != most_numbers && misses != 2; ++k) {
      double const before = best_time_;
      if (instance_->fixed_time(steps) + shortest >= before) return;
      attempt(first_target(steps, least_degree));
      misses = best_time_ < before ? 0 : misses + 1;
      steps = instance_->rounded(steps + 1);
    }
  }

  [[nodiscard]] context_target first_target(std::uint64_t steps, std::uint32_t least_degree) const {
    double const mean =
        bound_->area_from(0) / (static_cast<double>(steps) * static_cast<double>(instance_->ranks));
    double longest = std::max(bound_->longest(), mean);
    if (steps == 1 && least_degree != 0) {
      longest = std::max(longest, aim(spread[0]) - instance_->fixed_time(1));
    }
    return {.micro_steps = steps, .longest = longest, .least_degree = least_degree};
  }

  void try_lengths() {
    context_target const from = best_target_;
    if (from.micro_steps == 1) return;
    double const natural = instance_->alone(instance_->samples.front(), bound_->natural(0));
    for (double const factor : lengths) {
      context_target target = from;
      target.longest *= factor;
      attempt(target);
      // No deadline makes the longest sample take more ranks than it would without one.
      if (target.longest >= natural) return;
    }
  }

  /// Twice as many ranks for all samples, and again, though they may take more rank-seconds: fewer
  /// and larger groups share the work more evenly where many samples are long, and hold more
  /// where memory is short. False where no such plan was better.
  bool try_degrees() {
    double const before = best_time_;
    std::uint32_t ranks = instance_->degrees.front().ranks;
    for (std::uint32_t d = 1; d < instance_->degrees.size(); ++d) {
      if (best_time_ <= far * lower_bound_) break;
      if (instance_->degrees[d].ranks / 2 < ranks) continue;
      ranks = instance_->degrees[d].ranks;
      double const best = best_time_;
      try_micro_steps(d);
      if (best_time_ < best) try_lengths();
    }
    return best_time_ < before;
  }

  void refine(int first, int last) {
    if (bound_->area_from(0) <= 0) return;
    for (int k = first; k != last && best_time_ > near * lower_bound_; ++k) {
      double const time = aim(spread[k % spread_count]);
      context_target target = best_target_;
      double const fixed = instance_->fixed_time(target.micro_steps);
      target.pace = std::max(1.0, (time - fixed) * instance_->ranks / bound_->area_from(0));
      if (target.micro_steps == 1) target.longest = time - fixed;
      attempt(target);
    }
  }

  /// A time between the bound and the best.
  [[nodiscard]] double aim(double part) const {
    return lower_bound_ + part * (best_time_ - lower_bound_);
  }

  void attempt(context_target const& target) {
    tried_(*instance_, *bound_, *memory_, target);
    if (tried_.makespan() >= best_time_) return;
    best_time_ = tried_.makespan();
    best_target_ = target;
    std::swap(tried_, best_);
  }

  context_instance const* instance_ = nullptr;
  context_bound const* bound_ = nullptr;
  context_memory const* memory_ = nullptr;
  double lower_bound_ = 0;
  double best_time_ = 0;
  context_target best_target_{};
  context_filling tried_;
  context_filling best_;
};

}  // namespace omnibal::inline v0::detail
