#pragma once

/// \file
/// The best of many fillings.

#include <omnibal/context/context_groups/bound.hpp>
#include <omnibal/context/context_groups/filling.hpp>
#include <omnibal/context/context_groups/instance.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Tries deadlines: first how long a micro-step may be, then between the bound and what was found.
class context_search {
 public:
  /// Gives the best filling, whose pieces are valid until the next call.
  context_filling const& operator()(context_instance const& instance, context_bound const& bound,
                                    context_memory memory, double lower_bound, int refinements) {
    instance_ = &instance;
    bound_ = &bound;
    memory_ = &memory;
    best_time_ = std::numeric_limits<double>::infinity();
    try_micro_steps();
    if (!(best_time_ <= std::numeric_limits<double>::max())) {
      throw_overflow("context_groups", "the time of all samples");
    }
    if (best_target_.micro_steps != 1) try_lengths(best_target_);
    bool const has_work = bound.area_from(0) > 0;
    for (int k = 0; has_work && k != refinements && best_time_ > near * lower_bound; ++k) {
      refine(lower_bound, spread[k % spread_count]);
    }
    memory_ = nullptr;
    return best_;
  }

 private:
  /// How much longer than need be micro-steps may be to keep long samples on few ranks.
  static constexpr double lengths[] = {1.2, 1.5, 2};
  /// How many numbers of micro-steps are tried.
  static constexpr int most_numbers = 12;
  /// Where between the bound and the best time the next aim is: the golden section and its powers
  /// hit no place twice.
  static constexpr double spread[] = {0.62, 0.38, 0.85, 0.24, 0.5, 0.73, 0.12, 0.95};
  static constexpr int spread_count = 8;
  /// What is so near the bound is not refined.
  static constexpr double near = 1.001;

  /// Where memory is scarce, what is left over would make an expensive micro-step, and ranks with
  /// short samples have no memory left long before a deadline: more and shorter micro-steps, as
  /// long as one of the last two was better than all before.
  void try_micro_steps() {
    std::uint64_t steps = instance_->rounded(bound_->fewest_steps());
    double const shortest = bound_->area_from(0) / instance_->ranks;
    int misses = 0;
    for (int k = 0; k != most_numbers && misses != 2; ++k) {
      double const before = best_time_;
      if (instance_->fixed_time(steps) + shortest >= before) return;
      attempt(first_target(steps));
      misses = best_time_ < before ? 0 : misses + 1;
      steps = instance_->rounded(steps + 1);
    }
  }

  [[nodiscard]] context_target first_target(std::uint64_t steps) const {
    double const mean =
        bound_->area_from(0) / (static_cast<double>(steps) * static_cast<double>(instance_->ranks));
    return {.micro_steps = steps, .longest = std::max(bound_->longest(), mean)};
  }

  void try_lengths(context_target const& from) {
    double const natural = instance_->alone(instance_->samples.front(), bound_->natural(0));
    for (double const factor : lengths) {
      context_target target = from;
      target.longest *= factor;
      attempt(target);
      // No deadline makes the longest sample take more ranks than it would without one.
      if (target.longest >= natural) return;
    }
  }

  void refine(double lower_bound, double part) {
    double const aim = lower_bound + part * (best_time_ - lower_bound);
    context_target target = best_target_;
    double const fixed = instance_->fixed_time(target.micro_steps);
    target.pace = std::max(1.0, (aim - fixed) * instance_->ranks / bound_->area_from(0));
    if (target.micro_steps == 1) target.longest = aim - fixed;
    attempt(target);
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
  double best_time_ = 0;
  context_target best_target_{};
  context_filling tried_;
  context_filling best_;
};

}  // namespace omnibal::inline v0::detail
