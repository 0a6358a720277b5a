#pragma once

/// \file
/// Why there are no stages.

#include <omnibal/partition/detail/bottleneck_search.hpp>
#include <omnibal/partition/detail/device_search.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/detail/stage_limits.hpp>
#include <omnibal/partition/detail/step_time.hpp>
#include <omnibal/partition/partition_options.hpp>
#include <omnibal/partition/partition_result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// What a stage alone on its device lacks in memory.
struct stage_shortfall {
  stage_memory const& memory;

  [[nodiscard]] std::int64_t operator()(std::size_t stage, std::size_t first,
                                        std::size_t last) const {
    return std::max<std::int64_t>(0, memory.bytes(first, last) - memory.capacity(stage));
  }
};

/// Says that a stage lacks memory; false where the stages could all have enough.
template <class C, class Stages>
[[nodiscard]] bool report_missing_memory(Stages const& stages, partition_result<C>& result) {
  if (!stages.memory().is_limited()) return false;
  auto const function = stages.function();
  stage_memory const unlimited(function, stages.layers(), stages.stages(), {});
  stage_bound<std::int64_t> const unknown(function, stages.layers(), stages.stages(), {}, {});
  stage_shortfall const shortfall{stages.memory()};
  fits_always const always;
  stage_costs const chain(function, stages.rules(), unknown, unlimited, shortfall, always);
  bottleneck_search finder(chain);
  std::int64_t const missing = finder.run();
  if (missing == 0) return false;
  std::vector<std::uint32_t> boundaries;
  finder.cut_leftmost(missing, boundaries);
  std::size_t stage = 0;
  while (shortfall(stage, boundaries[stage], boundaries[stage + 1]) != missing) ++stage;
  result.stage = static_cast<std::uint32_t>(stage);
  result.missing_bytes = missing;
  return true;
}

/// The first stage that no layers are left for, or that cannot take what is left.
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

/// What each device lacks in memory, negative where it has more than enough.
[[nodiscard]] inline std::vector<std::int64_t> shortfalls(
    stage_memory const& memory, std::span<std::uint32_t const> boundaries) {
  std::vector<std::int64_t> result(memory.devices());
  for (std::size_t d = 0; d != result.size(); ++d) result[d] = -memory.capacity(d);
  for (std::size_t s = 0; s + 1 != boundaries.size(); ++s) {
    result[s % result.size()] += memory.bytes(boundaries[s], boundaries[s + 1]);
  }
  return result;
}

/// The same where devices hold more than one stage each; exact as far as the labels suffice.
template <class C, class Stages>
[[nodiscard]] bool report_missing_on_devices(Stages const& stages, std::size_t labels,
                                             partition_result<C>& result) {
  auto const free_of_charge = [](std::size_t, std::size_t, std::size_t) { return std::int64_t{0}; };
  fits_always const always;
  stage_bound<std::int64_t> const unknown(stages.function(), stages.layers(), stages.stages(), {},
                                          {});
  step_time<std::int64_t> const time;
  std::vector<std::uint32_t> boundaries;
  auto const is_enough = [&](std::int64_t more) {
    stage_memory memory = stages.memory();
    memory.enlarge(more);
    stage_costs const chain(stages.function(), stages.rules(), unknown, memory, free_of_charge,
                            always);
    device_search finder(chain, time, std::int64_t{0}, labels);
    bool const found = finder.run(0);
    if (found) finder.cut_leftmost(boundaries);
    return found;
  };
  if (is_enough(0)) return false;
  std::int64_t low = 0;
  std::int64_t high = stages.memory().bytes(0, stages.layers());
  while (high - low > 1) {
    std::int64_t const half = low + (high - low) / 2;
    (is_enough(half) ? high : low) = half;
  }
  static_cast<void>(is_enough(high));
  auto const missing = shortfalls(stages.memory(), boundaries);
  auto const largest = std::max_element(missing.begin(), missing.end());
  result.stage = static_cast<std::uint32_t>(largest - missing.begin());
  result.missing_bytes = *largest;
  return true;
}

/// Makes the result one that says why there are no stages.
template <class C, class Stages>
void report_infeasible(Stages const& stages, std::size_t labels, partition_result<C>& result) {
  result = {};
  result.status = partition_status::infeasible;
  result.proven = true;
  bool const is_memory = stages.memory().is_shared()
                             ? report_missing_on_devices(stages, labels, result)
                             : report_missing_memory(stages, result);
  if (!is_memory) result.stage = first_unreached_stage(stages);
}

}  // namespace omnibal::inline v0::detail
