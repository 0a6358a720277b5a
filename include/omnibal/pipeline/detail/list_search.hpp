// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Candidates for the lists of a pipeline, and the best candidate.

#include <omnibal/detail/search_budget.hpp>
#include <omnibal/pipeline/detail/list_bound.hpp>
#include <omnibal/pipeline/detail/list_problem.hpp>
#include <omnibal/pipeline/detail/list_times.hpp>
#include <omnibal/pipeline/detail/micro_batch_exchange.hpp>
#include <omnibal/pipeline/detail/pass_order.hpp>
#include <omnibal/pipeline/detail/periodic_order.hpp>
#include <omnibal/pipeline/detail/weight_filler.hpp>
#include <omnibal/pipeline/list_objective.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns tables in which all units have the same times and transfers take no time.
template <class T>
[[nodiscard]] unit_times<T> uniform_times(list_problem<T> const& problem,
                                          stage_time<T> const& time) {
  return {.work = std::vector<stage_time<T>>(problem.bytes.size(), time),
          .transfer = std::vector<transfer_time<T>>(problem.bytes.size())};
}

/// Returns tables in which each virtual stage has the average times of its micro-batches and
/// transfers take no time.
template <class T>
[[nodiscard]] unit_times<T> average_times(list_problem<T> const& problem) {
  unit_times<T> result = uniform_times(problem, stage_time<T>{});
  auto const batches = static_cast<T>(problem.layout.micro_batches);
  for (std::size_t v = 0; v != problem.virtual_stages(); ++v) {
    stage_time<T> sum;
    for (std::size_t m = 0; m != problem.layout.micro_batches; ++m) {
      auto const& time = problem.times.work[problem.index(v, m)];
      sum.forward += time.forward;
      sum.backward += time.backward;
      sum.weight += time.weight;
    }
    stage_time<T> const average{sum.forward / batches, sum.backward / batches,
                                sum.weight / batches};
    for (std::size_t m = 0; m != problem.layout.micro_batches; ++m) {
      result.work[problem.index(v, m)] = average;
    }
  }
  return result;
}

/// The best lists that have been found for a problem.
template <class T>
class list_search {
 public:
  list_search(list_problem<T> const& problem, list_objective objective)
      : problem_(problem),
        objective_(objective),
        filler_(problem, objective),
        bound_(list_bound<T>(problem).value(objective)) {}

  [[nodiscard]] T bound() const { return bound_; }
  [[nodiscard]] operation_lists const& lists() const { return lists_; }

  /// Keeps lists if they are better than the best lists so far.
  void propose(list_times<T> const& times, operation_lists const& lists) {
    if (best_ <= times.of(objective_)) return;
    best_ = times.of(objective_);
    lists_ = lists;
  }

  /// Tries the orders of patterns, and the orders of all rules at several times. Equal times result
  /// in orders without gaps, which often are the best orders even if the real times differ.
  void try_orders() {
    for (auto const& [forward, backward, weight] : equal_times) {
      stage_time<T> const time{static_cast<T>(forward), static_cast<T>(backward),
                               problem_.splits_backward ? static_cast<T>(weight) : T{}};
      try_rules(uniform_times(problem_, time));
    }
    try_patterns();
    try_rules(average_times(problem_));
    try_rules(problem_.times);
    if (best_ > bound_) fill(best_passes_, best_targets);
  }

  /// Improves the best lists by exchanging micro-batches. First improves several starts.
  void exchange_micro_batches(std::string_view function) {
    if (best_ <= bound_) return;
    micro_batch_exchange<T> search(function, problem_, objective_);
    rng::engine random(1);
    auto const improve = [&](operation_lists lists, std::size_t tries) {
      if (best_ <= bound_) return;
      auto const times = search.improve(lists, bound_, search_budget(tries), random);
      if (!times) return;
      propose(*times, lists);
      for (auto& list : lists) {
        std::erase_if(list, [](auto const& one) { return one.kind == operation_kind::weight; });
      }
      fill(lists, exchange_targets);
    };
    std::vector<operation_lists> starts{lists_};
    for (candidate const& one : starts_) {
      if (starts.size() != max_starts && one.times.of(objective_) != best_) {
        starts.push_back(one.lists);
      }
    }
    // The tables of large problems do not fit into the cache, so an exchange takes twice as long.
    std::size_t const cost = problem_.bytes.size() > cached_units ? 2 : 1;
    for (operation_lists const& start : starts) improve(start, start_tries / cost);
    for (int round = 0; round != best_rounds; ++round) improve(lists_, best_tries / cost);
  }

 private:
  struct candidate {
    list_times<T> times;
    operation_lists lists;
  };

  /// The equal times of all units for which orders are tried: forward, backward, weight.
  static constexpr std::array<stage_time<int>, 3> equal_times{
      {{10, 10, 10}, {10, 14, 8}, {10, 11, 10}}};
  /// The numbers of target times for the gradients of the weights: for each order, for the best
  /// order, and for lists after an exchange of micro-batches.
  static constexpr int order_targets = 3;
  static constexpr int best_targets = 32;
  static constexpr int exchange_targets = 8;
  /// The number of starts in which micro-batches are exchanged first, and the exchanges that are
  /// tried in each. Then the exchanges that are tried in the best lists, and how often this is
  /// repeated.
  static constexpr std::size_t max_starts = 3;
  static constexpr std::size_t start_tries = 150;
  static constexpr std::size_t best_tries = 250;
  static constexpr int best_rounds = 2;
  /// The number of units of the largest problem whose tables fit into the cache.
  static constexpr std::size_t cached_units = 4096;
  static constexpr std::array<pass_rule, 4> rules{
      {{.takes_turns = true, .prefers_backward = false, .fills_every_gap = false},
       {.takes_turns = true, .prefers_backward = true, .fills_every_gap = false},
       {.takes_turns = true, .prefers_backward = true, .fills_every_gap = true},
       {.takes_turns = false, .prefers_backward = true, .fills_every_gap = true}}};

  void try_rules(unit_times<T> const& times) {
    for (pass_rule const& rule : rules) {
      if (best_ <= bound_) return;
      try_order(pass_order<T>(problem_, times, rule).run());
    }
  }

  /// Tries the orders of patterns, which require little memory.
  void try_patterns() {
    if (best_ <= bound_) return;
    auto const period =
        static_cast<std::int64_t>(problem_.layout.chunks * (problem_.splits_backward ? 3 : 2));
    for (pass_pattern const& shape : patterns_without_collisions(problem_.layout, period)) {
      try_order(periodic_order(problem_, pattern_slots(problem_.layout, shape), period));
      if (best_ <= bound_) return;
    }
  }

  void try_order(operation_lists const& passes) {
    T const before = best_;
    candidate found = fill(passes, order_targets);
    if (best_ < before) best_passes_ = passes;
    if (found.lists.empty()) return;
    T const time = found.times.of(objective_);
    auto const place = std::ranges::lower_bound(
        starts_, time, {}, [&](candidate const& one) { return one.times.of(objective_); });
    if (place != starts_.end() && place->times.of(objective_) == time) return;
    starts_.insert(place, std::move(found));
    if (starts_.size() > max_starts) starts_.pop_back();
  }

  /// Inserts the gradients of the weights into an order, for targets between the bound and the best
  /// time. Returns the best lists with this order of passes.
  candidate fill(operation_lists const& passes, int count) {
    candidate found{list_times<T>::unfit(), {}};
    auto const fill_until = [&](T target) {
      list_times<T> const times = filler_.run(passes, target, filled_);
      if (times.of(objective_) >= found.times.of(objective_)) return;
      found = {times, filled_};
      propose(times, filled_);
    };
    fill_until(bound_);
    T const gap = best_ - bound_;
    bool const is_hopeless =
        objective_ == list_objective::makespan && (found.times.of(objective_) - bound_) / 2 > gap;
    if (is_hopeless || !problem_.splits_backward) return found;
    // More than `gap` targets would repeat, because integer times have only `gap` values above the
    // bound.
    T const targets =
        std::integral<T> ? std::min(static_cast<T>(count), gap) : static_cast<T>(count);
    for (T k = 1; k <= targets; ++k) fill_until(bound_ + gap / targets * k);
    return found;
  }

  list_problem<T> const& problem_;
  list_objective objective_;
  weight_filler<T> filler_;
  /// The lists of the last call of the filler.
  operation_lists filled_;
  T bound_;
  T best_ = std::numeric_limits<T>::max();
  operation_lists lists_;
  /// The order of passes of the best lists, without the gradients of the weights.
  operation_lists best_passes_;
  /// The best lists for local search, in ascending order of their times, which all differ.
  std::vector<candidate> starts_;
};

}  // namespace omnibal::inline v0::detail
