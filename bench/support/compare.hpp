// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Timing in turn with a yardstick: on a shared machine only the ratio of two times that were taken
/// one right after the other means something.

#include "samples.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <initializer_list>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace bench {

/// Seconds of processor time that this process has used.
[[nodiscard]] inline double processor_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// A counter of a benchmark that must not be above `most`. scripts/bench.sh collects promises by
/// name.
struct promise {
  std::string name;
  std::string counter;
  double most;
};

/// Makes the promises part of the benchmark's output: its label is "name | counter | most; ...".
inline void make_promises(benchmark::State& state, std::initializer_list<promise> promises) {
  std::string label;
  for (promise const& made : promises) {
    if (!label.empty()) label += "; ";
    label += made.name + " | " + made.counter + " | " + std::to_string(made.most);
  }
  state.SetLabel(label);
}

/// Times yardstick and candidate in turn. `items_of(result)` is the number of items that the
/// candidate handled. Counters: `ns_per_item` of the candidate, `yardstick_ns_per_item`, and
/// `ratio`, the median of the ratios of the two.
template <class Yardstick, class Candidate, class ItemsOf>
void compare(benchmark::State& state, Yardstick yardstick, Candidate const& candidate,
             ItemsOf const& items_of) {
  std::vector<double> candidate_seconds;
  std::vector<double> yardstick_seconds;
  std::vector<double> ratios;
  for (auto _ : state) {
    yardstick.prepare();
    double const begin = processor_seconds();
    yardstick();
    double const middle = processor_seconds();
    auto const result = candidate();
    double const end = processor_seconds();
    benchmark::DoNotOptimize(&result);
    state.SetIterationTime(end - middle);
    yardstick_seconds.push_back((middle - begin) / static_cast<double>(yardstick.items()));
    candidate_seconds.push_back((end - middle) / static_cast<double>(items_of(result)));
    ratios.push_back(candidate_seconds.back() / yardstick_seconds.back());
  }
  state.counters["ns_per_item"] = 1e9 * median(std::move(candidate_seconds));
  state.counters["yardstick_ns_per_item"] = 1e9 * median(std::move(yardstick_seconds));
  state.counters["ratio"] = median(std::move(ratios));
}

/// The same for a candidate that handles each of the yardstick's items once.
template <class Yardstick, class Candidate>
void compare(benchmark::State& state, Yardstick yardstick, Candidate const& candidate) {
  std::size_t const items = yardstick.items();
  compare(state, std::move(yardstick), candidate, [items](auto const&) { return items; });
}

/// 10^4 to 10^7 samples.
inline void sizes(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->RangeMultiplier(10)->Range(10'000, 10'000'000);
  made->UseManualTime()->Unit(benchmark::kMillisecond);
}

/// The size for which the times of other programs are known.
inline constexpr std::size_t size_with_peers = 1'200'000;

/// 10^4 to 10^7 samples and that size.
inline void sizes_with_peers(benchmark::internal::Benchmark* made) {
  made->Apply(sizes)->Arg(static_cast<std::int64_t>(size_with_peers));
}

[[nodiscard]] inline std::size_t size_of(benchmark::State const& state) {
  return static_cast<std::size_t>(state.range(0));
}

}  // namespace bench
