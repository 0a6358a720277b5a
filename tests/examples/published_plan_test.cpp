// SPDX-License-Identifier: Apache-2.0
#include "published_plan.hpp"

#include "error_text.hpp"
#include "machine_file.hpp"
#include "measure_command.hpp"
#include "model_file.hpp"
#include "synthetic.hpp"
#include "vlm_cuts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using namespace examples;

using cuts = std::vector<std::uint32_t>;

constexpr std::uint64_t seed = 7;

/// Eleven layers of a tower and ten of a language model, in some memory.
planned_scenario planned_with(std::int64_t memory_bytes, std::size_t stages) {
  model_description model = find_model("internvit-300m+llama3-8b", model_parts::both);
  model.vision->tower.runs.front().count = 11;
  model.language->runs.front().count = 10;
  vlm_scenario scenario = scenario_on("test", find_machine("a100-80gb"));
  scenario.assumed.memory_bytes = memory_bytes;
  scenario.assumed.stages = stages;
  scenario.assumed.data_ranks = 2;
  scenario.assumed.micro_batches = 6;
  scenario.capacity = {16, 5648};
  return plan_scenario(synthetic_lengths(1024, seed), scenario, model, seed);
}

bool is_near(cuts const& anchor, cuts const& other, std::size_t radius) {
  if (anchor.size() != other.size()) return false;
  for (std::size_t s = 0; s != anchor.size(); ++s) {
    auto const [low, high] = std::minmax(anchor[s], other[s]);
    if (high - low > radius) return false;
  }
  return true;
}

}  // namespace

TEST_CASE(
    "the published levers fit the memory, whatever it is, and recompute less where there is more") {
  std::size_t min_kept = 0;
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t const gigabytes : {25, 27, 30, 40, 80}) {
    INFO(gigabytes << " GB");
    auto const library = planned_with(gigabytes * 1'000'000'000, 4);
    auto const found = plan_as_published(library, {.candidates = 5}, seed);
    auto const& levers = found.scenario.plan.levers;
    CHECK(levers[0] == library.plan.levers[0]);
    CHECK(levers[1].plan == library.plan.levers[1].plan);
    for (std::size_t const lever : {2u, 3u}) {
      REQUIRE(levers[lever].plan.status == omnibal::solve_status::solved);
      CHECK(*std::ranges::max_element(levers[lever].estimate.peak_bytes) <=
            gigabytes * 1'000'000'000);
      CHECK(levers[lever].plan.boundaries == found.search.candidates[found.search.best].boundaries);
    }
    // Layers of the towers keep everything or nothing, by kind the first ones of a stage.
    auto const& choices = levers[3].plan.choices;
    CHECK(std::ranges::none_of(choices, [](std::uint32_t choice) { return choice == 1; }));
    auto const kept = static_cast<std::size_t>(std::ranges::count(choices, 0u));
    CHECK(kept >= min_kept);
    min_kept = kept;
    CHECK(levers[3].estimate.nanoseconds <= std::min(levers[2].estimate.nanoseconds, before));
    before = levers[3].estimate.nanoseconds;
  }
  CHECK(min_kept > 20);
}

TEST_CASE("readings tell what a layer takes") {
  auto const library = planned_with(40'000'000'000, 4);
  auto const found = plan_as_published(library, {}, seed);
  auto const& readings = found.readings;
  CHECK(std::ranges::count(readings.kinds, 0u) > 0);
  CHECK(std::ranges::count(readings.kinds, 1u) > 0);
  // The most that a layer of each kind keeps more than its input, for the largest micro-batch.
  auto const& scenario = found.scenario;
  std::vector<std::int64_t> most(2, 0);
  for (vlm_batch const& batch : scenario.plan.balanced_data.batches) {
    auto const costs = scenario.cost(batch);
    for (std::size_t kind = 0; kind != 2; ++kind) {
      auto const& choices = costs[kind == 0 ? 1 : 14].choices;
      most[kind] = std::max(most[kind], choices[0].kept_bytes - choices[2].kept_bytes);
    }
  }
  for (std::size_t kind = 0; kind != 2; ++kind) {
    REQUIRE(readings.layer_bytes[kind]);
    CHECK(*readings.layer_bytes[kind] <= most[kind]);
    CHECK(*readings.layer_bytes[kind] > most[kind] / 2);
  }
}

TEST_CASE("too little memory is no plan, with the stage and the bytes") {
  auto const found = plan_as_published(planned_with(8'000'000'000, 2), {}, seed);
  auto const& levers = found.scenario.plan.levers;
  CHECK(levers[2].plan.status == omnibal::solve_status::infeasible);
  CHECK(levers[3].plan.status == omnibal::solve_status::infeasible);
  CHECK(levers[2].plan.missing_bytes > 0);
  CHECK(found.readings.kinds.empty());
}

TEST_CASE("one stage is planned too") {
  auto const found = plan_as_published(planned_with(80'000'000'000, 1), {}, seed);
  CHECK(found.anchor == cuts{0, 25});
  CHECK(found.search.candidates.size() == 1);
  CHECK(found.scenario.plan.levers[3].plan.status == omnibal::solve_status::solved);
}

TEST_CASE("candidates are near the anchor and measured by the user's functor") {
  auto const library = planned_with(80'000'000'000, 4);
  std::vector<cuts> asked;
  auto const measure = [&](std::span<std::uint32_t const> boundaries) {
    asked.emplace_back(boundaries.begin(), boundaries.end());
    return asked.size() == 3 ? 1.0 : 2.0;
  };
  auto const found = plan_as_published(library, {.radius = 2, .candidates = 6}, seed, measure);
  CHECK(asked.size() == 6);
  for (cuts const& one : asked) CHECK(is_near(found.anchor, one, 2));
  CHECK(found.scenario.plan.levers[3].plan.boundaries == asked[2]);
  auto const never = [](std::span<std::uint32_t const>) {
    return std::numeric_limits<double>::infinity();
  };
  CHECK(test::error_text<std::runtime_error>([&] {
          return plan_as_published(library, {.candidates = 4}, seed, never);
        }) == "none of the 4 cuts that were measured can run");
}

TEST_CASE("the traffic of cuts is that of the layers before them") {
  layer_means const means{.forward_nanoseconds = {1, 1, 1, 1}, .sent_bytes = {10, 20, 40, 80}};
  CHECK(sent_bytes(means, cuts{0, 1, 3, 4}) == 50);
  CHECK(sent_bytes(means, cuts{0, 4}) == 0);
}

TEST_CASE("the anchor ends each stage nearest to the mean") {
  CHECK(greedy_cuts(std::vector<std::int64_t>{1, 1, 1, 1, 1, 1}, 3) == cuts{0, 2, 4, 6});
  CHECK(greedy_cuts(std::vector<std::int64_t>{3, 1, 1, 1}, 2) == cuts{0, 1, 4});
  CHECK(greedy_cuts(std::vector<std::int64_t>{0, 0, 0}, 3) == cuts{0, 1, 2, 3});
  CHECK_THROWS_AS(greedy_cuts(std::vector<std::int64_t>{1}, 2), std::invalid_argument);
}

TEST_CASE("a command measures cuts, or says what is wrong") {
  cuts const at{0, 3, 7, 9};
  CHECK(measure_by_command("printf '%s.%s\\n'", at) == 3.7);
  CHECK(std::isinf(measure_by_command("echo inf #", at)));
  auto const error = [&](std::string const& command) {
    return test::error_text<std::runtime_error>([&] { return measure_by_command(command, at); });
  };
  CHECK(error("echo 1.5 s #") ==
        "--measure: echo 1.5 s # 3 7: prints \"1.5 s\", must print seconds or inf");
  CHECK(error("echo -1 #") == "--measure: echo -1 # 3 7: prints \"-1\", must print seconds or inf");
  CHECK(error("echo nan #") ==
        "--measure: echo nan # 3 7: prints \"nan\", must print seconds or inf");
  CHECK(error("true") == "--measure: true 3 7: prints nothing, must print seconds");
  CHECK(error("exit 3; echo") == "--measure: exit 3; echo 3 7: ended with status 3");
  CHECK(error("kill -9 $$; echo") == "--measure: kill -9 $$; echo 3 7: ended by signal 9");
}
