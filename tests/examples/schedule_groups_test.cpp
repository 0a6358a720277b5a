// SPDX-License-Identifier: Apache-2.0
#include "schedule_groups.hpp"

#include "balance_report.hpp"

#include <omnibal/metrics.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using examples::pack_options;

std::vector<omnibal::resources<2>> some_loads(std::size_t count) {
  omnibal::rng::engine random(count);
  std::vector<omnibal::resources<2>> loads(count);
  for (auto& load : loads) {
    load = {static_cast<std::int64_t>(5 + omnibal::rng::below(random, 5)),
            static_cast<std::int64_t>(3000 + omnibal::rng::below(random, 1000))};
  }
  return loads;
}

std::string printed(pack_options const& options, examples::measured_steps const& random,
                    examples::measured_steps const& scheduled) {
  std::ostringstream out;
  examples::print_schedule(options, random, scheduled, {}, out);
  return out.str();
}

}  // namespace

TEST_CASE("the schedule waits less than random steps and meets more of the same groups") {
  auto const loads = some_loads(4001);
  pack_options const options;
  auto const random = examples::deal_at_random(options, loads);
  auto const scheduled = examples::schedule_groups(options, loads);
  CHECK(random.overlap == Approx(1).margin(0.3));
  CHECK(random.dist_ratio[0] > 0.1);
  for (double const waiting : scheduled.dist_ratio.amounts)
    CHECK(waiting <= options.max_dist_ratio);
  CHECK(scheduled.overlap > 1.5);
  CHECK(scheduled.dist_ratio == omnibal::dist_ratio(scheduled.steps, loads));
  CHECK(scheduled.waiting.size() == scheduled.steps.size());
  CHECK(examples::repeats(scheduled.steps) == 0);
  CHECK(printed(options, random, scheduled).find("tolerance of") == std::string::npos);
}

TEST_CASE("a tolerance that is out of reach is a warning") {
  auto const loads = some_loads(80);
  pack_options options;
  options.max_dist_ratio = 0.0001;
  auto const scheduled = examples::schedule_groups(options, loads);
  std::string const text = printed(options, examples::deal_at_random(options, loads), scheduled);
  CHECK(text.find("Ranks wait for more than the tolerance of 0.0001") != std::string::npos);
}

TEST_CASE("every epoch runs the groups that the one before left out") {
  auto const loads = some_loads(45);
  pack_options options;
  options.remainder = omnibal::remainder_policy::carry;
  std::vector<std::size_t> runs(loads.size(), 0);
  std::vector<std::uint32_t> left_out;
  for (options.epoch = 0; options.epoch != 6; ++options.epoch) {
    auto const scheduled = examples::schedule_groups(options, loads);
    CHECK(scheduled.carried == left_out);
    left_out = scheduled.left_out;
    CHECK(left_out.size() == (45 * (options.epoch + 1)) % 8);
    for (std::uint32_t const group : scheduled.steps.cells().items()) ++runs[group];
  }
  for (std::uint32_t const group : left_out) ++runs[group];
  for (std::size_t const count : runs) CHECK(count == 6);
}

TEST_CASE("repeated groups are counted") {
  auto const loads = some_loads(45);
  pack_options options;
  options.remainder = omnibal::remainder_policy::repeat;
  auto const scheduled = examples::schedule_groups(options, loads);
  CHECK(examples::repeats(scheduled.steps) == 3);
  CHECK(examples::repeats(omnibal::steps(4)) == 0);
  CHECK(scheduled.left_out.empty());
}

TEST_CASE("no groups are a schedule without steps") {
  std::vector<omnibal::resources<2>> const none;
  for (auto const policy : {omnibal::remainder_policy::short_step,
                            omnibal::remainder_policy::repeat, omnibal::remainder_policy::carry}) {
    pack_options options;
    options.remainder = policy;
    auto const scheduled = examples::schedule_groups(options, none);
    CHECK(scheduled.steps.empty());
    CHECK(scheduled.overlap == 1.0);
    CHECK(printed(options, examples::deal_at_random(options, none), scheduled) != "");
  }
}
