#pragma once

/// \file
/// The common course of the partitions with general stage costs.

#include <omnibal/check.hpp>
#include <omnibal/partition/detail/bottleneck_search.hpp>
#include <omnibal/partition/detail/chain_rules.hpp>
#include <omnibal/partition/detail/device_label_dp.hpp>
#include <omnibal/partition/detail/missing_memory.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/partition_layers_options.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Dynamic programming over the boundaries, from the last stage to the first. Sums are added in
/// that order.
template <class C, class Cost, class Fits>
class min_sum_dp {
 public:
  explicit min_sum_dp(stage_costs<C, Cost, Fits> const& stages) : stages_(stages) {}

  /// The smallest sum of stages that each cost at most `limit`, or `never`.
  [[nodiscard]] C run(C limit) {
    limit_ = limit;
    if (!windows_.narrow(stages_, limit)) return never<C>;
    std::size_t const count = stages_.stages();
    cells_.resize(windows_.offsets[count + 1]);
    cells_.back() = C{};
    for (std::size_t s = count; s-- != 0;) {
      std::size_t high = windows_.last[s + 1];
      for (std::size_t first = windows_.last[s] + std::size_t{1}; first-- != windows_.first[s];) {
        auto const low =
            std::max<std::size_t>(windows_.first[s + 1], first + stages_.rules().shortest[s]);
        while (high >= low && stages_.is_over(s, first, high, limit)) --high;
        cells_[windows_.cell(s, first)] = least_sum(s, first, low, high);
      }
    }
    return cells_.front();
  }

  /// The first boundaries, in lexicographic order, with the sum and the limit of the last `run`.
  /// Returns their bottleneck. Precondition: `run` has found a sum.
  C cut_leftmost(std::vector<std::uint32_t>& boundaries) const {
    boundaries.assign(stages_.stages() + 1, 0);
    C bottleneck{};
    std::size_t first = 0;
    for (std::size_t s = 0; s != stages_.stages(); ++s) {
      C const wanted = cells_[windows_.cell(s, first)];
      if (!stays(s, first, wanted)) {
        std::size_t const last = first_end(s, first, wanted);
        bottleneck = std::max(bottleneck, stages_(s, first, last));
        // Limits fall from one bottleneck to the next only where none is above its limit.
        if (bottleneck > limit_) stages_.throw_changed(s, first, last, last);
        first = last;
      }
      boundaries[s + 1] = static_cast<std::uint32_t>(first);
    }
    return bottleneck;
  }

 private:
  static constexpr std::string_view sum_name = "the sum over the stages";

  [[nodiscard]] C after(std::size_t boundary, std::size_t position) const {
    return cells_[windows_.cell(boundary, position)];
  }

  /// The first end of a stage that leads to the sum.
  [[nodiscard]] std::size_t first_end(std::size_t s, std::size_t first, C wanted) const {
    std::size_t const low =
        std::max<std::size_t>(windows_.first[s + 1], first + stages_.rules().shortest[s]);
    std::size_t const high = windows_.last[s + 1];
    for (std::size_t last = low; last <= high; ++last) {
      if (sum_with(s, first, last, never<C>) == wanted) return last;
    }
    stages_.throw_changed(s, first, low, high);
  }

  /// Whether the sum is that of an empty stage.
  [[nodiscard]] bool stays(std::size_t s, std::size_t first, C wanted) const {
    return stages_.rules().may_be_empty && windows_.contains(s + 1, first) &&
           after(s + 1, first) == wanted;
  }

  [[nodiscard]] C least_sum(std::size_t s, std::size_t first, std::size_t low,
                            std::size_t high) const {
    C best = never<C>;
    if (stages_.rules().may_cut[first] == 0) return best;
    if (stages_.rules().may_be_empty && windows_.contains(s + 1, first)) {
      best = after(s + 1, first);
    }
    for (std::size_t last = low; last <= high; ++last) {
      best = std::min(best, sum_with(s, first, last, best));
    }
    return best;
  }

  /// The sum of a stage and of what follows, or `never` where that is not less than `best` or not
  /// possible.
  [[nodiscard]] C sum_with(std::size_t s, std::size_t first, std::size_t last, C best) const {
    C sum = after(s + 1, last);
    if (sum == never<C> || stages_.bound()(s, first, last) >= best - sum) return never<C>;
    C const cost = stages_(s, first, last);
    if (cost > limit_ || cost == never<C>) return never<C>;
    checked_add(stages_.function(), sum_name, sum, cost);
    // The largest value stands for what cannot be.
    if (sum == never<C>) throw_overflow(stages_.function(), sum_name);
    return sum < best && stages_.fits(s, first, last) ? sum : never<C>;
  }

  stage_costs<C, Cost, Fits> const& stages_;
  cut_windows windows_;
  std::vector<C> cells_;
  C limit_{};
};

/// The largest number below `value`.
template <class C>
[[nodiscard]] C just_below(C value) {
  if constexpr (std::floating_point<C>) {
    return std::nextafter(value, C{});
  } else {
    return static_cast<C>(value - 1);
  }
}

/// The stages with the least time: of those with the smallest sum up to a limit, for limits that
/// fall from one bottleneck to the next lower one, until the sum alone is too much.
///
/// `result` has the stages with the smallest bottleneck.
template <class C, class Cost, class Fits>
void search_throughput(stage_costs<C, Cost, Fits> const& stages, step_time<C> const& time,
                       partition_result<C>& result) {
  C const least = result.bottleneck;
  min_sum_dp sums(stages);
  C const first_sum = sums.run(least);
  if (first_sum == never<C>) stages.throw_changed(0, 0, 1, stages.rules().last_cut[1]);
  wide_weight<C> best = time(least, first_sum);
  sums.cut_leftmost(result.boundaries);

  C limit = time.highest_bottleneck(best, stages.bound().least_sum());
  std::vector<std::uint32_t> boundaries;
  while (limit > least) {
    C const sum = sums.run(limit);
    if (time(least, sum) > best) break;
    C const bottleneck = sums.cut_leftmost(boundaries);
    wide_weight<C> const found = time(bottleneck, sum);
    if (found < best || (found == best && bottleneck < result.bottleneck)) {
      best = found;
      result.bottleneck = bottleneck;
      result.boundaries.swap(boundaries);
    }
    if (bottleneck == least) break;
    limit = std::min(just_below(bottleneck), time.highest_bottleneck(best, sum));
  }
  result.objective = checked_time<C>(stages.function(), best);
}

[[nodiscard]] inline bool all_fit(stage_memory const& memory,
                                  std::span<std::uint32_t const> boundaries) {
  auto const missing = shortfalls(memory, boundaries);
  return *std::max_element(missing.begin(), missing.end()) <= 0;
}

/// Makes `result`, the best stages if every stage had the memory of its device for itself, the best
/// stages that share the memory.
///
/// A search with some of the labels finds stages, and so a limit for one with all of them.
template <class C, class Stages>
void share_devices(Stages const& stages, step_time<C> const& time, std::size_t labels,
                   C least_bottleneck, partition_result<C>& result) {
  C const alone = result.objective;
  result = {};
  auto const take = [&](auto& found, bool proven) {
    found.cut_leftmost(result.boundaries);
    result.bottleneck = found.best_bottleneck();
    result.objective = checked_time<C>(stages.function(), found.best_time());
    result.proven = proven;
    result.lower_bound = proven ? result.objective : alone;
  };
  device_label_dp some(stages, time, least_bottleneck, some_of(labels));
  bool const is_known = run_with_limits(some, least_bottleneck);
  if (!is_known && some.is_complete()) return report_infeasible(stages, labels, result);
  C const limit =
      is_known ? time.highest_bottleneck(some.best_time(), stages.bound().least_sum()) : never<C>;
  if (is_known && some.is_complete() && limit <= some.limit()) return take(some, true);

  device_label_dp all(stages, time, least_bottleneck, labels);
  bool const is_found = all.run(limit);
  if (is_found && (all.is_complete() || !is_known || all.best_time() <= some.best_time())) {
    take(all, all.is_complete());
  } else if (is_known) {
    take(some, false);
  } else if (all.is_complete()) {
    report_infeasible(stages, labels, result);
  } else {
    result.status = solve_status::not_found;
  }
}

/// Finds the stages with the least time, of several those with the smallest bottleneck, of several
/// of these the leftmost. Returns the smallest bottleneck of any stages, which may be less than
/// theirs; `never` where there are none.
template <class C, class Stages>
[[nodiscard]] C find_stages(Stages const& chain, step_time<C> const& time,
                            partition_result<C>& result) {
  bottleneck_search bottlenecks(chain);
  C const least = bottlenecks.run();
  if (least == never<C>) return least;
  result.bottleneck = least;
  if (time.of_sum == 0) {
    bottlenecks.cut_leftmost(least, result.boundaries);
    result.objective = least;
  } else {
    search_throughput(chain, time, result);
  }
  result.lower_bound = result.objective;
  result.proven = true;
  return least;
}

/// The best stages as `find_stages` says, in the memory that is given. `Options` has `base`,
/// `speeds`, `constraints` and `labels`.
template <class C, class Cost, class Fits, class Options>
[[nodiscard]] partition_result<C> solve_stages(std::string_view function, std::size_t layers,
                                               std::size_t stages, Cost const& cost,
                                               Fits const& fits, Options const& options,
                                               step_time<C> const& time) {
  check_stages(function, layers, stages, options.constraints.empty);
  chain_rules const rules = rule_book(function, layers, stages, options.constraints).rules();
  stage_bound<C> const bound(function, layers, stages, options.base.values(),
                             options.speeds.values());
  stage_memory const memory(function, layers, stages, options.constraints);
  stage_costs const chain(function, rules, bound, memory, cost, fits);

  partition_result<C> result;
  C const least = find_stages(chain, time, result);
  if (least == never<C>) {
    report_infeasible(chain, options.labels, result);
  } else if (memory.is_shared() && !all_fit(memory, result.boundaries)) {
    share_devices(chain, time, options.labels, least, result);
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
