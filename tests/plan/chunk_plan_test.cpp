// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"

#include <omnibal/config.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/chunks_in_flight.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/pipeline/gpipe.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/zb_v.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/stage_chunks.hpp>

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

using omnibal::chunk_counts;
using omnibal::chunk_layout;
using omnibal::chunk_placement;
using omnibal::chunks_in_flight;
using omnibal::estimate_makespan;
using omnibal::interleaved_1f1b;
using omnibal::pipeline_machine;
using omnibal::plan_pipeline;
using omnibal::plan_pipeline_options;
using omnibal::solve_status;
using omnibal::stage_chunks;
using omnibal::detail::int128;
using layers_of_test = std::vector<omnibal::plan_layer<>>;
using boundaries = std::vector<std::uint32_t>;
using numbers = std::vector<std::uint32_t>;

constexpr std::int64_t no_plan = std::numeric_limits<std::int64_t>::max();

struct instance {
  layers_of_test layers;
  pipeline_machine machine;
  stage_chunks chunks;
  plan_pipeline_options options;

  [[nodiscard]] chunk_layout layout() const {
    return {machine.stages, options.micro_batches, chunks.count, chunks.placement};
  }
  [[nodiscard]] std::int64_t memory(std::size_t device) const {
    auto const values = machine.memory_bytes.values();
    return values[values.size() == 1 ? 0 : device];
  }
  [[nodiscard]] std::vector<chunk_counts> units() const {
    if (!chunks.in_flight.empty()) return chunks.in_flight;
    return chunks_in_flight(interleaved_1f1b{machine.stages, options.micro_batches, chunks.count});
  }
};

/// The estimate by its definition, in fractions.
std::int64_t estimate(std::vector<std::int64_t> const& times, chunk_layout const& layout) {
  auto const stages = static_cast<int128>(layout.stages);
  auto const chunks = static_cast<int128>(layout.chunks);
  auto const batches = static_cast<int128>(layout.micro_batches);
  int128 load = 0;
  int128 sum = 0;
  for (std::size_t d = 0; d != layout.stages; ++d) {
    int128 of_device = 0;
    for (std::size_t s = 0; s != times.size(); ++s) {
      if (layout.stage_of(s, 0) == d) of_device += times[s];
    }
    load = std::max(load, of_device);
    sum += of_device;
  }
  int128 rounds = 0;
  int128 longest_round = 0;
  for (std::size_t c = 0; c != layout.chunks; ++c) {
    int128 largest = 0;
    int128 all = 0;
    for (std::size_t i = 0; i != layout.stages; ++i) {
      largest = std::max<int128>(largest, times[c * layout.stages + i]);
      all += times[c * layout.stages + i];
    }
    rounds += largest;
    longest_round = std::max(longest_round, all);
  }
  int128 const fill = layout.placement == chunk_placement::v_shape ? 3 * chunks : chunks;
  int128 const widest = std::max(load * stages, longest_round * chunks);
  int128 const numerator =
      batches * fill * (stages * (2 * load + rounds) + widest) + 4 * stages * (sum - load);
  int128 const divisor = 4 * stages * fill;
  return static_cast<std::int64_t>((numerator + divisor - 1) / divisor);
}

/// The least step of any cuts and choices, and the least bytes that a device lacks.
class every_chunk_plan {
 public:
  explicit every_chunk_plan(instance const& given)
      : given_(given),
        units_(given.units()),
        cuts_(given.machine.stages * given.chunks.count + 1, 0),
        choices_(given.layers.size(), 0) {
    cut(0);
  }

  std::int64_t step_time = no_plan;
  std::int64_t missing = no_plan;

  /// The most bytes of a device at any moment.
  [[nodiscard]] std::int64_t bytes_of(std::size_t device, boundaries const& cuts,
                                      numbers const& choices) const {
    chunk_layout const layout = given_.layout();
    std::vector<std::int64_t> kept(layout.chunks, 0);
    std::int64_t states = given_.machine.reserve_bytes.values()[0];
    std::int64_t transient = 0;
    for (std::size_t s = 0; s + 1 != cuts.size(); ++s) {
      if (layout.stage_of(s, 0) != device) continue;
      for (std::size_t l = cuts[s]; l != cuts[s + 1]; ++l) {
        auto const& way = given_.layers[l].choices[choices[l]];
        kept[s / layout.stages] += way.bytes;
        transient = std::max(transient, way.transient_bytes);
        states += given_.layers[l].state_bytes;
      }
    }
    std::int64_t peak = 0;
    for (std::size_t i = 0; i != units_[device].size(); ++i) {
      std::int64_t sum = 0;
      for (std::size_t c = 0; c != kept.size(); ++c) sum += units_[device][i][c] * kept[c];
      peak = std::max(peak, sum);
    }
    return states + peak + transient;
  }

 private:
  void cut(std::size_t stage) {
    if (stage + 1 == cuts_.size()) {
      if (cuts_.back() == given_.layers.size()) choose(0);
      return;
    }
    bool const may_be_empty = given_.options.constraints.empty == omnibal::empty_stages::allowed;
    for (std::uint32_t last = cuts_[stage] + (may_be_empty ? 0 : 1); last <= given_.layers.size();
         ++last) {
      cuts_[stage + 1] = last;
      cut(stage + 1);
    }
  }

  void choose(std::size_t layer) {
    if (layer != given_.layers.size()) {
      for (choices_[layer] = 0; choices_[layer] != given_.layers[layer].choices.size();
           ++choices_[layer]) {
        choose(layer + 1);
      }
      return;
    }
    std::int64_t lacks = 0;
    for (std::size_t d = 0; d != given_.machine.stages; ++d) {
      if (is_empty(d)) continue;
      lacks = std::max(lacks, bytes_of(d, cuts_, choices_) - given_.memory(d));
    }
    missing = std::min(missing, lacks);
    if (lacks != 0) return;
    std::vector<std::int64_t> times(cuts_.size() - 1, 0);
    for (std::size_t s = 0; s != times.size(); ++s) {
      for (std::size_t l = cuts_[s]; l != cuts_[s + 1]; ++l) {
        times[s] += given_.layers[l].choices[choices_[l]].time;
      }
    }
    step_time = std::min(step_time, estimate(times, given_.layout()));
  }

  [[nodiscard]] bool is_empty(std::size_t device) const {
    for (std::size_t s = 0; s + 1 != cuts_.size(); ++s) {
      if (given_.layout().stage_of(s, 0) == device && cuts_[s] != cuts_[s + 1]) return false;
    }
    return true;
  }

  instance const& given_;
  std::vector<chunk_counts> units_;
  boundaries cuts_;
  numbers choices_;
};

/// Small numbers meet in ties, large ones do not.
instance random_instance(test::random_amounts& random) {
  instance made;
  made.machine.stages = static_cast<std::size_t>(random.between(1, 3));
  made.chunks.count = static_cast<std::size_t>(random.between(2, made.machine.stages == 1 ? 3 : 2));
  made.options.micro_batches = static_cast<std::size_t>(random.between(1, 9));
  made.options.max_gap = random.between(0, 3) == 0 ? 0.0001 : 0;
  auto const stages = static_cast<std::int64_t>(made.machine.stages * made.chunks.count);
  if (random.between(0, 3) == 0) {
    made.chunks.placement = chunk_placement::v_shape;
    made.chunks.in_flight = chunks_in_flight(
        interleaved_1f1b{made.machine.stages, made.options.micro_batches, made.chunks.count});
  }
  if (random.between(0, 3) == 0) {
    made.chunks.in_flight.assign(made.machine.stages, {made.chunks.count, {}});
    for (auto& counts : made.chunks.in_flight) {
      counts.counts.resize(made.chunks.count * static_cast<std::size_t>(random.between(1, 3)));
      for (auto& units : counts.counts) units = random.between(0, 4);
    }
  }
  if (random.between(0, 4) == 0) made.options.constraints.empty = omnibal::empty_stages::allowed;
  made.layers.resize(
      static_cast<std::size_t>(random.between(stages, stages + (stages > 4 ? 1 : 2))));
  std::int64_t const limit = random.between(0, 1) == 0 ? 5 : 10'000;
  bool const has_transients = random.between(0, 1) == 0;
  for (auto& layer : made.layers) {
    layer.state_bytes = random.heavy_tail(limit);
    layer.choices.resize(static_cast<std::size_t>(random.between(1, 2)));
    for (auto& way : layer.choices) {
      way = {random.heavy_tail(limit), random.heavy_tail(limit),
             has_transients ? random.heavy_tail(limit) : 0};
    }
  }
  if (random.between(0, 2) == 0) {
    std::fill(made.layers.begin(), made.layers.end(), made.layers.front());
  }
  std::int64_t const most = limit * random.between(1, 3);
  made.machine.memory_bytes = {random.between(0, 1) == 0 ? most * 20 : random.between(0, most)};
  made.machine.reserve_bytes = {random.heavy_tail(limit)};
  return made;
}

struct outcomes {
  int solved = 0;
  int proven = 0;
  int best = 0;
  int infeasible = 0;
  int not_found = 0;
};

void check_plan(instance const& given, every_chunk_plan const& every,
                omnibal::pipeline_plan<std::int64_t> const& plan, outcomes& count) {
  if (plan.status != solve_status::solved) {
    CHECK(plan.boundaries.empty());
    CHECK(plan.choices.empty());
    CHECK(plan.missing_bytes >= every.missing);
    if (plan.proven) CHECK(plan.missing_bytes == every.missing);
    if (plan.status == solve_status::infeasible) CHECK(every.step_time == no_plan);
    ++(plan.status == solve_status::infeasible ? count.infeasible : count.not_found);
    return;
  }
  ++count.solved;
  REQUIRE(plan.boundaries.size() == given.machine.stages * given.chunks.count + 1);
  REQUIRE(plan.boundaries.back() == given.layers.size());
  REQUIRE(plan.choices.size() == given.layers.size());
  REQUIRE(plan.stages.size() == given.machine.stages);
  chunk_layout const layout = given.layout();
  CHECK(plan.layout_of(given.options.micro_batches) == layout);
  std::vector<std::int64_t> times(plan.boundaries.size() - 1, 0);
  std::vector<std::int64_t> loads(given.machine.stages, 0);
  for (std::size_t s = 0; s != times.size(); ++s) {
    for (std::size_t l = plan.boundaries[s]; l != plan.boundaries[s + 1]; ++l) {
      times[s] += given.layers[l].choices.at(plan.choices[l]).time;
    }
    loads[layout.stage_of(s, 0)] += times[s];
  }
  for (std::size_t d = 0; d != given.machine.stages; ++d) {
    CHECK(plan.stages[d].time == loads[d]);
    CHECK(plan.stages[d].bytes == every.bytes_of(d, plan.boundaries, plan.choices));
    if (loads[d] != 0) CHECK(plan.stages[d].bytes <= given.memory(d));
  }
  CHECK(plan.step_time == estimate(times, layout));
  CHECK(plan.step_time == estimate_makespan(times, layout));
  REQUIRE(every.step_time != no_plan);
  CHECK(plan.step_time >= every.step_time);
  CHECK(plan.lower_bound <= every.step_time);
  CHECK(plan.proven == (plan.lower_bound == plan.step_time));
  count.proven += plan.proven ? 1 : 0;
  count.best += plan.step_time == every.step_time ? 1 : 0;
}

}  // namespace

// Why: value, bound and proof of plans with chunks are compared with all cuts and all choices.
TEST_CASE("plan_pipeline with chunks agrees with trying every plan") {
  test::random_amounts random(11);
  outcomes count;
  for (int run = 0; run != 10'000; ++run) {
    CAPTURE(run);
    instance const given = random_instance(random);
    every_chunk_plan const every(given);
    check_plan(given, every,
               plan_pipeline(given.layers, given.machine, given.chunks, given.options), count);
  }
  CAPTURE(count.solved, count.proven, count.best, count.infeasible, count.not_found);
  CHECK(count.solved > 5000);
  CHECK(count.infeasible > 1000);
  CHECK(count.proven > count.solved * 9 / 10);
  CHECK(count.best > count.solved * 98 / 100);
  CHECK(count.not_found < 100);
}

// Why: the guide shows these calls.
TEST_CASE("calls of the guide for stages with several chunks") {
  std::vector<int> const times(8, 3);
  CHECK(estimate_makespan(times, chunk_layout{4, 16, 2}) == (2 * 16 + 4 - 1) * 3);
  CHECK(chunks_in_flight(interleaved_1f1b{4, 16, 2}).size() == 4);
}

// Why: memory must never be exceeded in a step, and an estimate of the peak that is too large would
// recompute more than necessary.
TEST_CASE("chunks_in_flight gives exactly the peak of a simulated step") {
  test::random_amounts random(12);
  auto const check = [&](auto const& schedule) {
    auto const units = chunks_in_flight(schedule);
    REQUIRE(units.size() == schedule.stages);
    std::size_t const chunks = schedule.chunk_count();
    std::vector<std::int64_t> bytes(schedule.stages * chunks);
    for (auto& one : bytes) one = random.heavy_tail(1000);
    auto const peaks =
        omnibal::simulate_pipeline(schedule, omnibal::stage_time<>{1, 1, 1}, std::int64_t{0}, bytes)
            .peak_bytes;
    auto const all = omnibal::peak_in_flight(schedule);
    for (std::size_t d = 0; d != schedule.stages; ++d) {
      std::int64_t peak = 0;
      std::int64_t most = 0;
      for (std::size_t i = 0; i != units[d].size(); ++i) {
        std::int64_t sum = 0;
        std::int64_t count = 0;
        for (std::uint32_t c = 0; c != chunks; ++c) {
          sum += units[d][i][c] * bytes[omnibal::virtual_stage_of(schedule, d, {.chunk = c})];
          count += units[d][i][c];
        }
        peak = std::max(peak, sum);
        most = std::max(most, count);
      }
      CHECK(peak == peaks[d]);
      CHECK(most == all[d]);
    }
  };
  for (int run = 0; run != 300; ++run) {
    CAPTURE(run);
    auto const stages = static_cast<std::size_t>(random.between(1, 5));
    auto const batches = static_cast<std::size_t>(random.between(1, 20));
    check(interleaved_1f1b{stages, batches, static_cast<std::size_t>(random.between(1, 4))});
    if (run % 20 == 0) check(omnibal::zb_v(stages, batches));
    check(omnibal::gpipe{stages, batches});
  }
}

// Why: without units the planner shortens the schedule, whose units must be those of the whole one.
TEST_CASE("plan_pipeline with chunks assumes interleaved 1F1B") {
  layers_of_test const layers(12, {{{10, 100, 0}, {12, 10, 0}}, 0});
  for (std::size_t const batches : {1u, 3u, 4u, 7u, 31u, 64u, 200u, 1023u}) {
    for (std::size_t const chunks : {2u, 3u}) {
      CAPTURE(batches, chunks);
      pipeline_machine const machine{.stages = 4, .memory_bytes = {1200}};
      plan_pipeline_options const options{.micro_batches = batches};
      auto const plan = plan_pipeline(layers, machine, {.count = chunks}, options);
      auto const units = chunks_in_flight(interleaved_1f1b{4, batches, chunks});
      CHECK(plan_pipeline(layers, machine, {.count = chunks, .in_flight = units}, options) == plan);
    }
  }
}

// Why: the estimate is what plans minimize, so that it must be close to simulated steps.
TEST_CASE("estimate_makespan with chunks is close to simulated steps") {
  for (std::size_t const stages : {2u, 4u, 8u}) {
    for (std::size_t const chunks : {1u, 2u, 4u, 5u}) {
      CAPTURE(stages, chunks);
      std::size_t const batches = 4 * stages;
      std::vector<std::int64_t> const equal(stages * chunks, 3000);
      interleaved_1f1b const schedule{stages, batches, chunks};
      CHECK(estimate_makespan(equal, {stages, batches, chunks}) ==
            omnibal::simulate_pipeline(schedule, omnibal::stage_time<>{1000, 2000}).makespan);
    }
    std::vector<std::int64_t> const equal(2 * stages, 3000);
    CHECK(estimate_makespan(equal, {stages, 4 * stages, 2, chunk_placement::v_shape}) ==
          omnibal::simulate_pipeline(omnibal::zb_v(stages, 4 * stages),
                                     omnibal::stage_time<>{1000, 1000, 1000})
              .makespan);
  }
  test::random_amounts random(13);
  for (int run = 0; run != 300; ++run) {
    CAPTURE(run);
    std::size_t const stages = random.between(0, 1) == 0 ? 4 : 8;
    auto const chunks = static_cast<std::size_t>(random.between(2, 5));
    chunk_layout const layout{stages, stages * static_cast<std::size_t>(random.between(2, 16)),
                              chunks};
    std::vector<omnibal::stage_time<>> times(stages * chunks);
    std::vector<std::int64_t> sums;
    for (auto& time : times) {
      time.forward = random.between(900, 1100);
      time.backward = 2 * time.forward;
      sums.push_back(3 * time.forward);
    }
    auto const simulated = static_cast<double>(
        omnibal::simulate_pipeline(interleaved_1f1b{stages, layout.micro_batches, chunks}, times)
            .makespan);
    auto const estimated = static_cast<double>(estimate_makespan(sums, layout));
    CHECK(estimated > .97 * simulated);
    CHECK(estimated < 1.08 * simulated);
  }
}

// Why: floating-point times become whole numbers, and the plan must be the same.
TEST_CASE("plan_pipeline with chunks plans floating-point times as it plans integers") {
  test::random_amounts random(14);
  int compared = 0;
  for (int run = 0; run != 500; ++run) {
    CAPTURE(run);
    instance given = random_instance(random);
    given.options.max_gap = 0;
    std::vector<omnibal::plan_layer<double>> floating(given.layers.size());
    for (std::size_t l = 0; l != floating.size(); ++l) {
      floating[l].state_bytes = given.layers[l].state_bytes;
      for (auto const& way : given.layers[l].choices) {
        floating[l].choices.push_back(
            {static_cast<double>(way.time) / 4, way.bytes, way.transient_bytes});
      }
    }
    auto const expected = plan_pipeline(given.layers, given.machine, given.chunks, given.options);
    auto const plan = plan_pipeline(floating, given.machine, given.chunks, given.options);
    CHECK(plan.status == expected.status);
    if (plan.status != solve_status::solved || !plan.proven || !expected.proven) continue;
    ++compared;
    // The integer step is rounded up.
    CHECK(std::ceil(4 * plan.step_time - 1e-6) == static_cast<double>(expected.step_time));
    CHECK(plan.lower_bound <= plan.step_time);
  }
  CHECK(compared > 200);
}

// Why: the cuts must be those that no rule forbids, also where starts are not legal.
TEST_CASE("plan_pipeline with chunks obeys constraints of the cuts") {
  layers_of_test const layers(9, {{{10, 1, 0}}, 0});
  pipeline_machine const machine{.stages = 2, .memory_bytes = {1 << 20}};
  plan_pipeline_options options{.micro_batches = 4};
  options.constraints.forbidden_cuts = {2, 4, 5};
  options.constraints.max_layers = {3, 4, 4, 2};
  options.constraints.pinned = {{6, 2}};
  auto const plan = plan_pipeline(layers, machine, {.count = 2}, options);
  REQUIRE(plan.status == solve_status::solved);
  for (std::uint32_t const cut : options.constraints.forbidden_cuts) {
    CHECK(std::count(plan.boundaries.begin(), plan.boundaries.end(), cut) == 0);
  }
  CHECK(plan.boundaries[1] <= 3);
  CHECK(plan.boundaries[3] >= 7);
  CHECK(plan.boundaries[2] <= 6);
}

// Why: users meet these errors, which name the argument and its value.
TEST_CASE("plan_pipeline refuses chunks that contradict each other") {
  layers_of_test const layers(8, {{{10, 1, 0}}, 0});
  pipeline_machine const machine{.stages = 2, .memory_bytes = {100}};
  auto const error_of = [&](stage_chunks const& chunks, plan_pipeline_options const& options = {
                                                            .micro_batches = 4}) -> std::string {
    try {
      static_cast<void>(plan_pipeline(layers, machine, chunks, options));
    } catch (std::invalid_argument const& error) {
      return error.what();
    }
    return "";
  };
  CHECK(error_of({.count = 0}) == "omnibal::plan_pipeline: chunks.count is 0, must be positive");
  CHECK(error_of({.count = 2}, {.micro_batches = 4, .in_flight = {3}}) ==
        "omnibal::plan_pipeline: options.in_flight has 1 values, must be empty if chunks.count is "
        "2: use chunks.in_flight");
  CHECK(error_of({.in_flight = {{1, {1}}, {1, {1}}}}) ==
        "omnibal::plan_pipeline: chunks.in_flight has values for 2 stages, must be empty if "
        "chunks.count is 1: use options.in_flight");
  CHECK(error_of({.count = 2, .placement = chunk_placement::v_shape}) ==
        "omnibal::plan_pipeline: chunks.in_flight is empty, must have the units of the schedule if "
        "chunks.placement is v_shape");
  CHECK(error_of({.count = 2, .placement = chunk_placement::bidirectional}) ==
        "omnibal::plan_pipeline: chunks.placement is bidirectional, must be looped or v_shape");
  CHECK(error_of({.count = 2, .in_flight = {{2, {1, 1}}}}) ==
        "omnibal::plan_pipeline: chunks.in_flight has 1 values for 2 stages");
  CHECK(error_of({.count = 2, .in_flight = {{2, {1, 1}}, {2, {1, 1, 1}}}}) ==
        "omnibal::plan_pipeline: chunks.in_flight[1] has 3 numbers for 2 chunks, must have rows of "
        "2");
  CHECK(error_of({.count = 2, .in_flight = {{2, {1, -1}}, {2, {1, 1}}}}) ==
        "omnibal::plan_pipeline: chunks.in_flight[0].counts[1] is -1, must be from 0 to below "
        "2^32");
  CHECK(error_of({.count = 5}) ==
        "omnibal::plan_pipeline: 8 layers do not give 10 stages a layer each, and empty stages are "
        "forbidden");
}

// Why: programs pass a number of chunks that may be one, and the plan must be that of the call
// without chunks.
TEST_CASE("plan_pipeline with one chunk is plan_pipeline without chunks") {
  test::random_amounts random(15);
  for (int run = 0; run != 200; ++run) {
    CAPTURE(run);
    instance given = random_instance(random);
    given.options.in_flight = {random.between(1, 4)};
    CHECK(plan_pipeline(given.layers, given.machine, stage_chunks{}, given.options) ==
          plan_pipeline(given.layers, given.machine, given.options));
  }
}
