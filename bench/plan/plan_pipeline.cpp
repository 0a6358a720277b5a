// SPDX-License-Identifier: Apache-2.0
/// \file
/// Cuts and choices together. The yardstick cuts the same layers with everything recomputed, which
/// chooses nothing yet.

#include "compare.hpp"

#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/stage_chunks.hpp>
#include <omnibal/rng/engine.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

struct problem {
  std::vector<omnibal::plan_layer<>> layers;
  omnibal::pipeline_machine machine;
  omnibal::plan_pipeline_options options;
};

/// Whether the transient bytes of layers of a kind are equal, as their shapes are.
enum class transients { equal, noisy };

/// Vision layers, then language layers, times and bytes off by up to two percent; the memory is a
/// quarter of the way from the least to what keeps everything.
problem make_problem(std::size_t count, std::size_t stages, transients kind) {
  omnibal::rng::engine random(stages);
  auto const noisy = [&](std::int64_t value) {
    auto const width = static_cast<std::uint64_t>(value / 25) + 1;
    return value - value / 50 + static_cast<std::int64_t>(omnibal::rng::below(random, width));
  };
  auto const transient = [&](std::int64_t value) {
    return kind == transients::noisy ? noisy(value) : value;
  };
  problem result{{}, {.stages = stages}, {.micro_batches = 4 * stages}};
  auto const in_flight = static_cast<std::int64_t>(stages);
  std::int64_t least = 0;
  std::int64_t most = 0;
  for (std::size_t l = 0; l != count; ++l) {
    bool const is_vision = 2 * l < count;
    std::int64_t const time = noisy(is_vision ? 3'980'000 : 3'247'000);
    auto const [all, some, none] =
        is_vision ? std::array{1968, 1181, 98} : std::array{721, 487, 50};
    result.layers.push_back({{{3 * time, noisy(all), transient(all / 4)},
                              {3 * time + time / 10, noisy(some), transient(all / 2)},
                              {4 * time, noisy(none), transient(all)}},
                             noisy(is_vision ? 900 : 2900)});
    least += in_flight * none + result.layers.back().state_bytes;
    most += in_flight * all + result.layers.back().state_bytes;
  }
  result.machine.memory_bytes = {3000 + (least + (most - least) / 4) / in_flight};
  return result;
}

class cut_only {
 public:
  explicit cut_only(problem const& given) : given_(&given) {
    for (auto const& layer : given.layers) times_.push_back(layer.choices.back().time);
    before_.assign(1, 0);
    for (std::int64_t const time : times_) before_.push_back(before_.back() + time);
  }

  void prepare() {}
  void operator()() {
    auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
      return before_[last] - before_[first];
    };
    benchmark::DoNotOptimize(omnibal::partition_throughput(
        given_->layers.size(), given_->machine.stages, cost, omnibal::fits_always{},
        {.micro_batches = given_->options.micro_batches, .base = times_}));
  }
  [[nodiscard]] std::size_t items() const { return given_->layers.size(); }

 private:
  problem const* given_;
  std::vector<std::int64_t> times_;
  std::vector<std::int64_t> before_;
};

problem problem_of(benchmark::State const& state, transients kind) {
  return make_problem(static_cast<std::size_t>(state.range(0)),
                      static_cast<std::size_t>(state.range(1)), kind);
}

template <class Plan>
void measure(benchmark::State& state, problem const& given, Plan const& make_plan) {
  omnibal::pipeline_plan<std::int64_t> plan;
  std::vector<double> seconds;
  bench::compare(
      state, cut_only(given),
      [&] {
        double const begin = bench::processor_seconds();
        plan = make_plan(given);
        seconds.push_back(bench::processor_seconds() - begin);
        return plan.boundaries.size();
      },
      [&](std::size_t) { return given.layers.size(); });
  state.counters["milliseconds"] = 1000 * bench::median(seconds);
  auto const step = static_cast<double>(plan.step_time);
  state.counters["gap"] = (step - static_cast<double>(plan.lower_bound)) / step;
}

omnibal::pipeline_plan<std::int64_t> plan_one_chunk(problem const& given) {
  return omnibal::plan_pipeline(given.layers, given.machine, given.options);
}

void plan_pipeline(benchmark::State& state) {
  measure(state, problem_of(state, transients::equal), plan_one_chunk);
  bench::make_promises(state, {{"plan_pipeline, gap", "gap", 0.005},
                               {"plan_pipeline, milliseconds", "milliseconds", 5.0}});
}

/// Stages with several chunks. The units in flight are about twice the stages.
void plan_pipeline_chunks(benchmark::State& state) {
  problem given = make_problem(97, 8, transients::equal);
  auto const bytes = given.machine.memory_bytes.values()[0];
  given.machine.memory_bytes = {bytes + bytes / 4};
  measure(state, given, [](problem const& one) {
    return omnibal::plan_pipeline(one.layers, one.machine, {.count = 4}, one.options);
  });
  bench::make_promises(state, {{"plan_pipeline with chunks, milliseconds", "milliseconds", 20.0}});
}

/// `select_recompute` solves a problem for each number of transient bytes.
void plan_pipeline_noisy_transients(benchmark::State& state) {
  measure(state, problem_of(state, transients::noisy), plan_one_chunk);
  bench::make_promises(
      state, {{"plan_pipeline with noisy transients, gap", "gap", 0.005},
              {"plan_pipeline with noisy transients, milliseconds", "milliseconds", 5.0}});
}

void sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "stages"})->UseManualTime()->Unit(benchmark::kMillisecond);
  for (std::int64_t const stages : {2, 4, 8, 16}) made->Args({128, stages});
}

}  // namespace

BENCHMARK(plan_pipeline)->Apply(sizes);
BENCHMARK(plan_pipeline_noisy_transients)->Apply(sizes);
BENCHMARK(plan_pipeline_chunks)->UseManualTime()->Unit(benchmark::kMillisecond);
