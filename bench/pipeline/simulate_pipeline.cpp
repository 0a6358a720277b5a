// SPDX-License-Identifier: Apache-2.0
/// \file
/// Simulated steps of pipelines. The yardstick is the table of maxima that any simulation of a
/// pipeline contains: an operation ends a time after the later of two others.

#include "compare.hpp"

#include <omnibal/pipeline/gpipe.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/zb_h1.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

/// The ends of operations in rows and columns, each after those above and to its left.
class table_of_maxima {
 public:
  table_of_maxima(std::size_t rows, std::size_t columns)
      : rows_(rows), columns_(columns), ends_(rows * columns), times_(rows, 100) {}

  void prepare() { std::ranges::fill(ends_, 0); }
  void operator()() {
    for (std::size_t column = 1; column != columns_; ++column) {
      for (std::size_t row = 1; row != rows_; ++row) {
        std::int64_t const above = ends_[column * rows_ + row - 1];
        std::int64_t const left = ends_[(column - 1) * rows_ + row];
        ends_[column * rows_ + row] = std::max(above, left) + times_[row];
      }
    }
    benchmark::DoNotOptimize(ends_.data());
    benchmark::ClobberMemory();
  }
  [[nodiscard]] std::size_t items() const { return ends_.size(); }

 private:
  std::size_t rows_;
  std::size_t columns_;
  std::vector<std::int64_t> ends_;
  std::vector<std::int64_t> times_;
};

/// Times `schedule`, with other times for every stage, in turn with the table.
template <class Schedule>
void compare_with_table(benchmark::State& state, Schedule const& schedule,
                        omnibal::simulate_pipeline_options const& options = {}) {
  std::size_t const virtual_stages = schedule.stages * schedule.chunk_count();
  std::vector<omnibal::stage_time<>> times(virtual_stages);
  std::vector<std::int64_t> bytes(virtual_stages, 1'000'000);
  for (std::size_t s = 0; s != virtual_stages; ++s) {
    auto const extra = static_cast<std::int64_t>(s % 7);
    times[s] = {100 + extra, 100 + 2 * extra, 100};
  }
  std::size_t const operations =
      virtual_stages * schedule.micro_batches * (Schedule::splits_backward ? 3 : 2);
  omnibal::simulate_pipeline_workspace<> workspace;
  bench::compare(
      state, table_of_maxima(virtual_stages, schedule.micro_batches),
      [&] {
        return omnibal::simulate_pipeline(schedule, times, 3, bytes, options, workspace).makespan;
      },
      [&](std::int64_t) { return operations; });
}

void promise_speed(benchmark::State& state, std::string const& name, double max_ratio) {
  if (state.range(0) == 10'000) return;
  std::string const at = ", " + std::to_string(state.range(1)) + " stages";
  bench::make_promises(state,
                       {{name + " / table of maxima, for an operation" + at, "ratio", max_ratio}});
}

std::size_t stages_of(benchmark::State const& state) {
  return static_cast<std::size_t>(state.range(1));
}

void one_f_one_b(benchmark::State& state) {
  compare_with_table(state, omnibal::one_f_one_b{stages_of(state), bench::size_of(state)});
  promise_speed(state, "one_f_one_b", 11.0);
}

void one_f_one_b_with_timeline(benchmark::State& state) {
  compare_with_table(state, omnibal::one_f_one_b{stages_of(state), bench::size_of(state)},
                     {.timeline = omnibal::timeline_policy::recorded});
}

void gpipe(benchmark::State& state) {
  compare_with_table(state, omnibal::gpipe{stages_of(state), bench::size_of(state)});
}

void zb_h1(benchmark::State& state) {
  compare_with_table(state, omnibal::zb_h1{stages_of(state), bench::size_of(state)});
}

void interleaved_1f1b(benchmark::State& state) {
  compare_with_table(state, omnibal::interleaved_1f1b{stages_of(state), bench::size_of(state), 4});
}

/// n is the number of micro-batches. The first size is one for which times of other programs are
/// known, the second one that of the tests.
void pipeline_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "stages"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  made->Args({64, 16})->Args({10'000, 4})->Args({1024, 64});
}

BENCHMARK(one_f_one_b)->Apply(pipeline_sizes);
BENCHMARK(one_f_one_b_with_timeline)->Apply(pipeline_sizes);
BENCHMARK(gpipe)->Apply(pipeline_sizes);
BENCHMARK(zb_h1)->Apply(pipeline_sizes);
BENCHMARK(interleaved_1f1b)->Apply(pipeline_sizes);

}  // namespace
