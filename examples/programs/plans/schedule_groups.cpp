// SPDX-License-Identifier: Apache-2.0
#include "schedule_groups.hpp"

#include "pack_samples.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/step_spread.hpp>
#include <omnibal/steps.hpp>

#include <utility>

namespace examples {

namespace {

using loads_view = std::span<omnibal::resources<2> const>;

omnibal::steps random_steps(pack_options const& options, std::size_t groups, std::uint64_t epoch) {
  return omnibal::make_steps(dealing_order(groups, options.seed, epoch), options.ranks);
}

omnibal::steps scheduled_steps(pack_options const& options, loads_view loads, std::uint64_t epoch,
                               std::vector<std::uint32_t> const& carried) {
  return omnibal::schedule_steps(loads, options.ranks,
                                 {.seed = options.seed,
                                  .epoch = epoch,
                                  .max_dist_ratio = options.max_dist_ratio,
                                  .remainder = options.remainder,
                                  .carried = carried});
}

measured_steps measured(omnibal::steps steps, omnibal::steps const& next, loads_view loads) {
  // One group per cell, and empty cells at the end alone.
  auto waiting = waiting_per_step(steps.cells().items(), steps.ranks(), loads);
  auto const ratio = omnibal::dist_ratio(steps, loads);
  double const overlap = omnibal::step_overlap(steps, next);
  auto const mix = omnibal::step_spread(steps, loads).totals;
  return {.steps = std::move(steps),
          .waiting = std::move(waiting),
          .dist_ratio = ratio,
          .overlap = overlap,
          .mix = mix};
}

}  // namespace

std::size_t repeats(omnibal::steps const& schedule) {
  if (schedule.empty()) return 0;
  std::size_t result = 0;
  for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
    result += schedule.is_repeat(schedule.size() - 1, rank) ? 1u : 0u;
  }
  return result;
}

measured_steps deal_at_random(pack_options const& options, loads_view loads) {
  return measured(random_steps(options, loads.size(), options.epoch),
                  random_steps(options, loads.size(), options.epoch + 1), loads);
}

measured_steps schedule_groups(pack_options const& options, loads_view loads) {
  bool const carries = options.remainder == omnibal::remainder_policy::carry;
  std::uint64_t epoch = carries ? 0 : options.epoch;
  std::vector<std::uint32_t> carried;
  omnibal::steps steps = scheduled_steps(options, loads, epoch, carried);
  auto left_out = omnibal::unscheduled_groups(steps, loads.size(), carried);
  while (epoch != options.epoch) {
    carried = std::move(left_out);
    steps = scheduled_steps(options, loads, ++epoch, carried);
    left_out = omnibal::unscheduled_groups(steps, loads.size(), carried);
  }
  auto const next = scheduled_steps(options, loads, epoch + 1, left_out);
  auto result = measured(std::move(steps), next, loads);
  result.carried = std::move(carried);
  result.left_out = std::move(left_out);
  return result;
}

}  // namespace examples
