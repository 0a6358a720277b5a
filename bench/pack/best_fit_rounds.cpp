/// \file
/// Best fit in rounds: its groups over those of best-fit decreasing, and its time on the host, for
/// which best-fit decreasing is the yardstick.

#include "compare.hpp"
#include "samples.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_fit_rounds.hpp>
#include <omnibal/rng/below.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using size_list = std::vector<std::int64_t>;

[[nodiscard]] size_list tokens_of(bench::shape from, std::size_t count) {
  size_list result;
  for (auto const& sample : bench::make_samples(from, count)) result.push_back(sample.tokens);
  return result;
}

/// Uniform in [first, last].
[[nodiscard]] size_list uniform(std::size_t count, std::int64_t first, std::int64_t last) {
  omnibal::rng::engine words(count);
  auto const width = static_cast<std::uint64_t>(last - first + 1);
  size_list result(count);
  for (auto& size : result) {
    size = first + static_cast<std::int64_t>(omnibal::rng::below(words, width));
  }
  return result;
}

/// Packs the same samples by best-fit decreasing.
struct best_fit_yardstick {
  size_list const& samples;
  std::int64_t capacity;

  void prepare() const {}
  void operator()() const {
    auto const result = omnibal::best_fit_decreasing(samples, std::identity{}, capacity);
    benchmark::DoNotOptimize(&result);
  }
  [[nodiscard]] std::size_t items() const { return samples.size(); }
};

void pack(benchmark::State& state, size_list const& samples, std::int64_t capacity) {
  bench::compare(state, best_fit_yardstick{samples, capacity},
                 [&] { return omnibal::best_fit_rounds(samples, std::identity{}, capacity); });
  auto const rounds = omnibal::best_fit_rounds(samples, std::identity{}, capacity);
  auto const groups = static_cast<double>(rounds.groups.size());
  auto const best_fit = omnibal::best_fit_decreasing(samples, std::identity{}, capacity);
  state.counters["rounds"] = static_cast<double>(rounds.report.rounds);
  state.counters["rounds_of_a_sample"] =
      static_cast<double>(rounds.report.item_rounds) / static_cast<double>(samples.size());
  state.counters["percent_more"] = 100 * (groups / static_cast<double>(best_fit.groups.size()) - 1);
  bench::make_promises(state, {{"best fit in rounds, percent more groups than best fit decreasing",
                                "percent_more", 0.3},
                               {"best fit in rounds, rounds", "rounds", 45}});
}

void best_fit_rounds(benchmark::State& state, bench::shape from, std::int64_t capacity) {
  pack(state, tokens_of(from, bench::size_of(state)), capacity);
}

/// Sizes from first to last thousandths of the capacity.
void best_fit_rounds_uniform(benchmark::State& state, std::int64_t first, std::int64_t last) {
  constexpr std::int64_t thousandth = 1'000'003;
  pack(state, uniform(bench::size_of(state), first * thousandth, last * thousandth),
       1000 * thousandth);
}

using bench::shape;

BENCHMARK_CAPTURE(best_fit_rounds, real_4096, shape::real, 4096)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds, real_6016, shape::real, 6016)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds, real_3000, shape::real, 3000)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds, mix_4096, shape::mix, 4096)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds, mix_16384, shape::mix, 16384)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds, independent_4096, shape::independent, 4096)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds, independent_8192, shape::independent, 8192)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds, long_131072, shape::long_text, 131072)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds, long_32768, shape::long_text, 32768)->Apply(bench::sizes);

BENCHMARK_CAPTURE(best_fit_rounds_uniform, 0_1000, 0, 1000)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds_uniform, 0_500, 0, 500)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds_uniform, 0_100, 0, 100)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds_uniform, 100_500, 100, 500)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds_uniform, 200_400, 200, 400)->Apply(bench::sizes);
BENCHMARK_CAPTURE(best_fit_rounds_uniform, 250_500, 250, 500)->Apply(bench::sizes);

}  // namespace
