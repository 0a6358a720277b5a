// SPDX-License-Identifier: Apache-2.0
/// \file
/// Iterative sampling and filtering, 50 rounds, per item-round.

#include "compare.hpp"
#include "samples.hpp"
#include "yardsticks.hpp"

#include <omnibal/pack/isf.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>

#include <string>

#include <benchmark/benchmark.h>

namespace {

/// The rule of the reference implementation.
struct images_equal_or_tokens_reach {
  omnibal::resources<2> threshold;

  [[nodiscard]] bool operator()(omnibal::resources<2> const& load) const {
    return load[0] == threshold[0] || load[1] >= threshold[1];
  }
};

template <class Yardstick, class Shuffle>
void isf(benchmark::State& state, bench::workload const& work, Shuffle const& shuffle) {
  auto const samples = work.make(bench::size_of(state));
  auto const capacity = work.capacity();
  images_equal_or_tokens_reach const keep{{capacity[0], capacity[1] - capacity[1] / 32}};
  bench::compare(
      state, Yardstick(samples.size()),
      [&] {
        return omnibal::isf(samples, bench::images_and_tokens, capacity, {.rounds = 50}, keep,
                            shuffle);
      },
      [](omnibal::packing const& packed) { return packed.report.item_rounds; });
}

void isf_parity(benchmark::State& state, bench::workload const& work) {
  isf<bench::numpy_plain_shuffle>(state, work, omnibal::rng::numpy_shuffle{});
  bench::make_promises(
      state, {{"isf in parity mode / NumPy's shuffle, " + std::string(work.name), "ratio", 2.2}});
}

void isf_fisher_yates(benchmark::State& state, bench::workload const& work) {
  isf<bench::plain_shuffle>(state, work, omnibal::rng::fisher_yates{});
  bench::make_promises(state, {{"isf / plain shuffle, " + std::string(work.name), "ratio", 4.0}});
}

void isf_feistel(benchmark::State& state, bench::workload const& work) {
  isf<bench::plain_shuffle>(state, work, omnibal::rng::feistel{});
}

BENCHMARK_CAPTURE(isf_parity, mix_9_4096, bench::mix_9_4096)->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(isf_parity, real_18_6016, bench::real_18_6016)->Apply(bench::sizes);
BENCHMARK_CAPTURE(isf_parity, mix_9_large, bench::mix_9_large)->Apply(bench::sizes);
BENCHMARK_CAPTURE(isf_parity, mix_9_noise, bench::mix_9_noise)->Apply(bench::sizes);

BENCHMARK_CAPTURE(isf_fisher_yates, mix_9_4096, bench::mix_9_4096)->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(isf_fisher_yates, real_18_6016, bench::real_18_6016)->Apply(bench::sizes);
BENCHMARK_CAPTURE(isf_fisher_yates, mix_9_large, bench::mix_9_large)->Apply(bench::sizes);
BENCHMARK_CAPTURE(isf_fisher_yates, mix_9_noise, bench::mix_9_noise)->Apply(bench::sizes);

BENCHMARK_CAPTURE(isf_feistel, mix_9_4096, bench::mix_9_4096)->Apply(bench::sizes);

}  // namespace
