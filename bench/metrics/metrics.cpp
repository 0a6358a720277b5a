// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loads and metrics of groups of nine images and 4096 tokens, per sample, against one pass over
/// the samples.

#include "compare.hpp"
#include "samples.hpp"
#include "yardsticks.hpp"

#include <omnibal/group_loads.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

struct packed_samples {
  std::vector<bench::sample> samples;
  omnibal::grouping groups;
};

[[nodiscard]] packed_samples pack(std::size_t count) {
  auto const& work = bench::mix_9_4096;
  packed_samples result{work.make(count), {}};
  result.groups =
      omnibal::next_fit(result.samples, bench::images_and_tokens, work.capacity()).groups;
  return result;
}

void group_loads(benchmark::State& state) {
  auto const packed = pack(bench::size_of(state));
  bench::compare(state, bench::one_pass(packed.samples), [&] {
    return omnibal::group_loads(packed.groups, packed.samples, bench::images_and_tokens);
  });
}

void pad_ratio(benchmark::State& state) {
  auto const packed = pack(bench::size_of(state));
  bench::compare(state, bench::one_pass(packed.samples), [&] {
    return omnibal::pad_ratio(packed.groups, packed.samples, &bench::sample::tokens);
  });
}

/// The groups in their order over 64 ranks.
void dist_ratio(benchmark::State& state) {
  auto const packed = pack(bench::size_of(state));
  auto const loads = omnibal::group_loads(packed.groups, packed.samples, bench::images_and_tokens);
  std::vector<std::uint32_t> groups(loads.size());
  std::iota(groups.begin(), groups.end(), std::uint32_t{0});
  auto const schedule = omnibal::make_steps(groups, 64);
  bench::compare(state, bench::one_pass(packed.samples),
                 [&] { return omnibal::dist_ratio(schedule, loads); });
}

BENCHMARK(group_loads)->Apply(bench::sizes);
BENCHMARK(pad_ratio)->Apply(bench::sizes);
BENCHMARK(dist_ratio)->Apply(bench::sizes);

}  // namespace
