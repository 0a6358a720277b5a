// SPDX-License-Identifier: Apache-2.0
/// \file
/// Forests from token ids against one pass over all tokens.

#include "compare.hpp"

#include <omnibal/prefix/build_prefix_forest.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

/// A sum over all tokens.
struct one_read {
  std::vector<std::vector<std::int32_t>> const* sequences;

  void prepare() const {}
  [[nodiscard]] std::size_t items() const { return sequences->size(); }
  void operator()() const {
    std::int64_t sum = 0;
    for (auto const& sequence : *sequences) {
      sum = std::accumulate(sequence.begin(), sequence.end(), sum);
    }
    benchmark::DoNotOptimize(sum);
  }
};

/// 100,000 sequences of 2,000 tokens: `siblings` begin with the same `shared` tokens, and lie apart
/// if they are strided.
void build(benchmark::State& state, std::size_t siblings, std::size_t shared, bool is_strided) {
  constexpr std::size_t count = 100'000;
  constexpr std::size_t length = 2000;
  omnibal::rng::engine random(1);
  std::size_t const trees = (count + siblings - 1) / siblings;
  std::vector<std::vector<std::int32_t>> sequences(count);
  for (std::size_t i = 0; i != count; ++i) {
    std::size_t const tree = is_strided ? i % trees : i / siblings;
    omnibal::rng::engine prefix(2, tree);
    sequences[i].resize(length);
    for (std::size_t k = 0; k != length; ++k) {
      auto& source = k < shared ? prefix : random;
      sequences[i][k] = static_cast<std::int32_t>(omnibal::rng::below(source, 150'000));
    }
  }
  bench::compare(state, one_read{&sequences},
                 [&] { return omnibal::build_prefix_forest(sequences); });
}

BENCHMARK_CAPTURE(build, prompts_of_16, 16, 600, false)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build, prompts_of_16_apart, 16, 600, true)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build, equal_triples_apart, 3, 2000, true)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build, one_prompt, 100'000, 1500, false)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
