// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The common steps of the partitions with general stage costs, and the reason if no stages exist.

#include <omnibal/check.hpp>
#include <omnibal/partition/detail/chain_dp.hpp>
#include <omnibal/partition/detail/chain_rules.hpp>
#include <omnibal/partition/detail/device_label_dp.hpp>
#include <omnibal/partition/detail/device_local_search.hpp>
#include <omnibal/partition/detail/device_time.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/partition_layers_options.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Reports the stage that lacks memory if more memory would make stages possible; returns false
/// otherwise. Precondition: each device has one stage.
template <class C, class Stages>
[[nodiscard]] bool report_missing_memory(Stages const& stages, partition_result<C>& result) {
  if (!stages.knows_memory()) return false;
  auto const function = stages.function();
  stage_memory const unlimited(function, stages.layers(), stages.stages(), {});
  stage_bound<std::int64_t> const unknown(function, stages.layers(), stages.stages(), {}, {});
  std::int64_t most = infinite_cost<std::int64_t>;
  auto const shortfall = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return std::clamp<std::int64_t>(stages.missing_bytes(stage, first, last), 0, most);
  };
  auto const admits = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return stages.admits(stage, first, last);
  };
  stage_costs const chain(function, stages.rules(), unknown, unlimited, shortfall, admits,
                          "missing_bytes");
  bottleneck_search finder(chain);
  std::int64_t missing = finder.run();
  if (missing == infinite_cost<std::int64_t>) {
    // The missing bytes can also equal the value of impossible stages. In this case all stages have
    // a shortfall that is cut off here.
    most = infinite_cost<std::int64_t> - 1;
    missing = finder.run();
  }
  if (missing == 0 || missing == infinite_cost<std::int64_t>) return false;
  std::vector<std::uint32_t> boundaries;
  finder.cut_leftmost(missing, boundaries);
  missing += infinite_cost<std::int64_t> - most;
  std::size_t stage = 0;
  while (boundaries[stage] == boundaries[stage + 1] ||
         stages.missing_bytes(stage, boundaries[stage], boundaries[stage + 1]) != missing) {
    if (++stage == stages.stages()) chain.throw_changed(boundaries);
  }
  result.stage = static_cast<std::uint32_t>(stage);
  result.missing_bytes = missing;
  return true;
}

/// Returns the first stage that no layers reach, or whose end leaves layers that later stages
/// cannot run.
template <class Stages>
[[nodiscard]] std::uint32_t first_unreached_stage(Stages const& stages) {
  auto const& rules = stages.rules();
  std::vector<std::uint8_t> reached(stages.layers() + 1, 0);
  std::vector<std::uint8_t> next(reached.size());
  reached[0] = 1;
  std::size_t s = 0;
  for (; s + 1 != stages.stages(); ++s) {
    bool is_reached = false;
    for (std::size_t last = 0; last != next.size(); ++last) {
      bool found = false;
      bool const is_legal = rules.may_cut[last] != 0 && rules.first_cut[s + 1] <= last &&
                            last <= rules.last_cut[s + 1];
      if (is_legal && rules.may_be_empty) found = reached[last] != 0;
      for (std::size_t first = 0; is_legal && !found && first + rules.shortest[s] <= last;
           ++first) {
        found = reached[first] != 0 && stages.can_be(s, first, last);
      }
      next[last] = found;
      is_reached = is_reached || found;
    }
    if (!is_reached) break;
    reached.swap(next);
  }
  return static_cast<std::uint32_t>(s);
}

/// Returns the bytes by which each device exceeds its memory; negative if memory remains.
[[nodiscard]] inline std::vector<std::int64_t> shortfalls(
    stage_memory const& memory, std::span<std::uint32_t const> boundaries) {
  std::vector<std::int64_t> result(memory.devices());
  for (std::size_t d = 0; d != result.size(); ++d) result[d] = -memory.capacity(d);
  for (std::size_t s = 0; s + 1 != boundaries.size(); ++s) {
    result[s % result.size()] += memory.bytes(boundaries[s], boundaries[s + 1]);
  }
  return result;
}

/// The stage with the largest shortfall, and its bytes. If a device has several stages, its first
/// stage represents the device.
struct missing_memory {
  std::size_t stage = 0;
  std::int64_t bytes = std::numeric_limits<std::int64_t>::min();

  void offer(std::size_t other, std::int64_t missing) {
    if (missing > bytes || (missing == bytes && other < stage)) *this = {other, missing};
  }
};

template <class Stages>
[[nodiscard]] missing_memory max_missing(Stages const& stages,
                                         std::span<std::uint32_t const> boundaries) {
  missing_memory result;
  auto const on_devices = shortfalls(stages.memory(), boundaries);
  for (std::size_t d = 0; d != on_devices.size(); ++d) result.offer(d, on_devices[d]);
  for (std::size_t s = 0; s + 1 != boundaries.size(); ++s) {
    if (boundaries[s] == boundaries[s + 1]) continue;
    result.offer(s, stages.missing_by_rule(s, boundaries[s], boundaries[s + 1]));
  }
  return result;
}

/// Returns boundaries that rules and predicate allow and that balance the bytes best; empty if
/// there are none.
template <class Stages, class Bytes>
[[nodiscard]] std::vector<std::uint32_t> most_even_bytes(Stages const& stages,
                                                         stage_bound<std::int64_t> const& bound,
                                                         Bytes const& bytes_of) {
  stage_memory const unlimited(stages.function(), stages.layers(), stages.stages(), {});
  auto const admits = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return stages.admits(stage, first, last);
  };
  stage_costs const chain(stages.function(), stages.rules(), bound, unlimited, bytes_of, admits);
  bottleneck_search finder(chain);
  std::vector<std::uint32_t> result;
  std::int64_t const bytes = finder.run();
  if (bytes != infinite_cost<std::int64_t>) finder.cut_leftmost(bytes, result);
  return result;
}

/// Reports a stage or device that lacks memory if devices run several stages each. Returns false if
/// memory is not the reason. `proven` states whether the missing bytes are the smallest possible.
template <class C, class Stages>
[[nodiscard]] bool report_missing_on_devices(Stages const& stages, std::size_t labels,
                                             partition_result<C>& result) {
  // The search first tries stages with similar bytes, because they leave each boundary a short
  // window.
  constexpr std::int64_t most = infinite_cost<std::int64_t>;
  auto const bytes_of = [&](std::size_t, std::size_t first, std::size_t last) {
    return std::min(stages.memory().bytes(first, last), most - 1);
  };
  std::vector<std::int64_t> bytes(stages.layers());
  for (std::size_t l = 0; l != bytes.size(); ++l) bytes[l] = bytes_of(0, l, l + 1);
  // The sum of the bytes of all layers is cut off at `most`, and a bound must not exceed it.
  if (stages.memory().bytes(0, bytes.size()) == most)
    --*std::max_element(bytes.begin(), bytes.end());
  stage_bound<std::int64_t> const bound(stages.function(), stages.layers(), stages.stages(), bytes,
                                        {});
  missing_memory enough;
  bool is_least = true;
  auto const is_enough = [&](std::int64_t more) {
    stage_memory memory = stages.memory();
    memory.enlarge(more);
    auto const fits = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return stages.missing_by_rule(stage, first, last) <= more &&
             stages.admits(stage, first, last);
    };
    stage_costs const chain(stages.function(), stages.rules(), bound, memory, bytes_of, fits);
    device_label_dp finder(chain, some_of(labels), device_loads::ignored);
    if (!run_with_limits(finder, bound.min_bottleneck())) {
      is_least = is_least && finder.is_complete();
      return false;
    }
    std::vector<std::uint32_t> boundaries;
    finder.cut_leftmost(boundaries);
    enough = max_missing(stages, boundaries);
    return true;
  };
  if (is_enough(0)) return false;
  auto const even = most_even_bytes(stages, bound, bytes_of);
  if (even.empty()) return false;
  enough = max_missing(stages, even);
  if (enough.bytes <= 0) return false;
  std::int64_t low = 0;
  // If the search dropped labels, the last bits of the result are not worth the time.
  while (enough.bytes - low > (is_least ? 1 : enough.bytes / 256 + 1)) {
    std::int64_t const half = low + (enough.bytes - low) / 2;
    if (!is_enough(half)) {
      low = half;
    } else if (enough.bytes > half) {
      throw_invalid(stages.function(), "missing_bytes(" + to_text(enough.stage) +
                                           ", ...) was at most " + to_text(half) + " and is now " +
                                           to_text(enough.bytes) +
                                           ", must be equal for equal arguments");
    }
  }
  result.stage = static_cast<std::uint32_t>(enough.stage);
  result.missing_bytes = enough.bytes;
  result.proven = is_least;
  return true;
}

/// Sets the result to the reason why no stages exist.
template <class C, class Stages>
void report_infeasible(Stages const& stages, std::size_t labels, partition_result<C>& result) {
  result = {};
  result.status = solve_status::infeasible;
  result.proven = true;
  bool const is_memory = stages.memory().is_shared()
                             ? report_missing_on_devices(stages, labels, result)
                             : report_missing_memory(stages, result);
  if (!is_memory) result.stage = first_unreached_stage(stages);
}

/// Finds the stages with the least time. The search finds the stages with the smallest sum whose
/// bottleneck is at most a limit, and lowers the limit from one bottleneck to the next. It ends
/// when the time of a sum with the least bottleneck exceeds the best time.
///
/// `result` has the stages with the smallest bottleneck.
template <class C, class Cost, class Fits>
void search_throughput(stage_costs<C, Cost, Fits> const& stages, step_time<C> const& time,
                       partition_result<C>& result) {
  C const least = result.bottleneck;
  chain_dp sums(stages, as_sum<C>{stages.function()});
  C const first_sum = sums.run(least);
  if (first_sum == infinite_cost<C>) stages.throw_changed(0, 0, 1, stages.rules().last_cut[1]);
  wide_weight<C> best = time(least, first_sum);
  static_cast<void>(sums.cut_leftmost(result.boundaries));

  C limit = time.highest_bottleneck(best, stages.bound().min_sum());
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

/// Returns a lower bound of the sum of the costs of stages that cost at most `limit` each.
template <class C, class Stages>
[[nodiscard]] C min_sum_within(Stages const& stages, C limit) {
  chain_dp sums(stages, as_sum<C>{stages.function()});
  C const found = sums.run(limit);
  return found == infinite_cost<C> ? stages.bound().min_sum() : found;
}

/// Finds the best stages if stages share devices, by the rules of `partition_layers` and
/// `partition_throughput`.
///
/// Local search from several starts finds stages, and their largest load is a limit. A label search
/// within this limit is exact unless it drops labels. Otherwise the lower bound assumes that the
/// devices share all work evenly.
template <class C, class Stages>
void share_devices(Stages const& stages, step_time<C> const& one, std::size_t labels,
                   partition_result<C>& result) {
  std::size_t const devices = stages.memory().devices();
  device_time<C> const time(one, stages.stages() / devices);
  bool const has_steps = one.of_sum != 0;
  bottleneck_search bottlenecks(stages);
  C const least = bottlenecks.run();
  if (least == infinite_cost<C>) return report_infeasible(stages, labels, result);

  device_local_search search(stages, has_steps ? one.of_bottleneck + 1 : 0);
  for (longer_stages const longer : {longer_stages::spread, longer_stages::spread_from_first,
                                     longer_stages::first, longer_stages::last}) {
    search.offer(equal_boundaries(stages.layers(), stages.stages(), longer));
  }
  std::vector<std::uint32_t> boundaries;
  bottlenecks.cut_leftmost(least, boundaries);
  search.offer(boundaries);
  for (std::size_t const kept : {some_of(labels), labels}) {
    if (search.has_found()) break;
    device_label_dp room(stages, kept, device_loads::ignored);
    if (run_with_limits(room, least)) {
      room.cut_leftmost(boundaries);
      search.offer(boundaries);
    } else if (room.is_complete()) {
      return report_infeasible(stages, labels, result);
    }
  }
  if (!search.has_found()) {
    result.status = solve_status::not_found;
    return;
  }
  auto const time_of = [&] { return time.step(search.quality().load, search.quality().sum); };
  C const limit = time.step.highest_bottleneck(time_of(), stages.bound().min_sum());
  C const sum = min_sum_within(stages, limit);
  C mean = min_largest(sum, devices);
  if constexpr (std::floating_point<C>) {
    // Loads and the sum add the costs in different orders.
    mean *= 1 - static_cast<C>(2 * stages.stages()) * std::numeric_limits<C>::epsilon();
  }
  wide_weight<C> const bound = time.step(std::max(mean, least), sum);
  bool is_best = time_of() <= bound;
  if (!is_best && !has_steps) {
    device_label_dp all(stages, labels);
    if (all.run(limit)) {
      all.cut_leftmost(boundaries);
      search.offer(boundaries);
    }
    is_best = all.is_complete() || time_of() <= bound;
  }
  result.boundaries = search.boundaries();
  result.bottleneck = search.quality().bottleneck;
  result.objective = checked_time<C>(stages.function(), time(time_of()));
  result.lower_bound = is_best ? result.objective : checked_time<C>(stages.function(), time(bound));
  result.proven = result.lower_bound == result.objective;
}

/// Finds the leftmost stages with the smallest bottleneck among the stages with the least time.
/// Returns the smallest bottleneck of any stages, which may be smaller; `infinite_cost` if there
/// are no stages.
template <class C, class Stages>
[[nodiscard]] C find_stages(Stages const& chain, step_time<C> const& time,
                            partition_result<C>& result) {
  bottleneck_search bottlenecks(chain);
  C const least = bottlenecks.run();
  if (least == infinite_cost<C>) return least;
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

/// Returns the best stages, as `find_stages` defines them, within the memory of the options.
/// `Options` has the members `base`, `speeds`, `constraints` and `labels`.
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
  if (memory.devices() != stages) {
    share_devices(chain, time, options.labels, result);
  } else if (find_stages(chain, time, result) == infinite_cost<C>) {
    report_infeasible(chain, options.labels, result);
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
