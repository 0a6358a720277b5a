// SPDX-License-Identifier: Apache-2.0
/// \file
/// Plans of 10^10 samples from their histograms, compared with best-fit decreasing of 10^7 samples
/// one by one; plans by prices compared with plans of best-fit decreasing; and the passes of a
/// shard over its samples: counting, and finding their groups.

#include "compare.hpp"
#include "samples.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_patterns.hpp>
#include <omnibal/pack/pack_histogram.hpp>
#include <omnibal/pack/place_samples.hpp>
#include <omnibal/pack/sample_histogram.hpp>
#include <omnibal/resources.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

/// The number of samples for each sample that is packed one by one.
constexpr std::uint64_t copies = 1000;

/// Every length up to the capacity, log-normal with a median of 700 tokens at 4096, or of 3000.
omnibal::sample_histogram<1> lengths_up_to(std::int64_t capacity, double samples) {
  double const median = capacity == 4096 ? 700 : 3000;
  std::vector<double> shares(static_cast<std::size_t>(capacity) + 1, 0.0);
  double sum = 0;
  for (std::size_t v = 1; v != shares.size(); ++v) {
    double const deviation = std::log(static_cast<double>(v) / median) / 1.2;
    shares[v] = std::exp(-0.5 * deviation * deviation) / static_cast<double>(v);
    sum += shares[v];
  }
  std::vector<std::uint64_t> counts;
  counts.reserve(shares.size());
  for (double const share : shares) {
    counts.push_back(static_cast<std::uint64_t>(share / sum * samples));
  }
  return omnibal::sample_histogram<1>::of_lengths(counts);
}

/// The same shares of the samples, `times` as many.
template <std::size_t R>
omnibal::sample_histogram<R> scaled(omnibal::sample_histogram<R> const& histogram,
                                    std::uint64_t times) {
  std::vector<omnibal::demand_count<R>> entries(histogram.entries().begin(),
                                                histogram.entries().end());
  for (auto& entry : entries) entry.count *= times;
  return omnibal::sample_histogram<R>(std::move(entries));
}

/// Best-fit decreasing of each sample of a histogram.
template <std::size_t R>
class one_by_one {
 public:
  one_by_one(omnibal::sample_histogram<R> const& histogram, omnibal::resources<R> const& capacity)
      : capacity_(capacity) {
    for (auto const& entry : histogram.entries()) {
      samples_.insert(samples_.end(), static_cast<std::size_t>(entry.count), entry.demand);
    }
  }

  void prepare() const {}
  void operator()() { benchmark::DoNotOptimize(groups()); }
  [[nodiscard]] std::size_t items() const { return samples_.size(); }
  [[nodiscard]] std::size_t groups() const {
    return omnibal::best_fit_decreasing(samples_, std::identity{}, capacity_).groups.size();
  }

 private:
  std::vector<omnibal::resources<R>> samples_;
  omnibal::resources<R> capacity_;
};

template <std::size_t R>
void compare_plans(benchmark::State& state, omnibal::sample_histogram<R> const& few,
                   omnibal::resources<R> const& capacity) {
  auto const many = scaled(few, copies);
  bench::compare(
      state, one_by_one<R>(few, capacity), [&] { return omnibal::pack_histogram(many, capacity); },
      [&](auto const&) { return static_cast<std::size_t>(many.sample_count()); });
  auto const plan = omnibal::pack_histogram(many, capacity);
  state.counters["ms"] =
      1e-6 * state.counters["ns_per_item"] * static_cast<double>(many.sample_count());
  state.counters["entries"] = static_cast<double>(many.entries().size());
  state.counters["patterns"] = static_cast<double>(plan.multiplicities.size());
  state.counters["parts"] = static_cast<double>(plan.parts.size());
  state.counters["groups"] = static_cast<double>(plan.group_count);
  state.counters["over_bound"] = static_cast<double>(plan.group_count - plan.lower_bound);
}

/// The time of one iteration is the time of the samples one by one, a thousand times the plan's.
void few_times(benchmark::internal::Benchmark* made) {
  made->Iterations(11)->UseManualTime()->Unit(benchmark::kMillisecond);
}

void pack_histogram_lengths(benchmark::State& state) {
  std::int64_t const capacity = state.range(0);
  compare_plans(state, lengths_up_to(capacity, 1e7), omnibal::resources<1>{capacity});
}
BENCHMARK(pack_histogram_lengths)->Arg(4096)->Arg(131072)->Apply(few_times);

void pack_histogram_images_and_tokens(benchmark::State& state, bench::workload const& work) {
  auto const few = omnibal::count_samples(work.make(10'000'000), bench::images_and_tokens);
  compare_plans(state, few, work.capacity());
}
BENCHMARK_CAPTURE(pack_histogram_images_and_tokens, mix_9_4096, bench::mix_9_4096)
    ->Apply(few_times);
BENCHMARK_CAPTURE(pack_histogram_images_and_tokens, real_18_6016, bench::real_18_6016)
    ->Apply(few_times);
BENCHMARK_CAPTURE(pack_histogram_images_and_tokens, independent_9_4096, bench::independent_9_4096)
    ->Apply(few_times);

/// The same samples in a histogram and one by one need the same number of groups.
void pack_histogram_beside(benchmark::State& state) {
  std::int64_t const capacity = state.range(0);
  auto const histogram = lengths_up_to(capacity, static_cast<double>(state.range(1)));
  one_by_one<1> const single(histogram, omnibal::resources<1>{capacity});
  std::size_t groups = 0;
  for (auto _ : state) groups = single.groups();
  auto const planned = omnibal::pack_histogram(histogram, capacity).group_count;
  if (planned != groups) state.SkipWithError("the histogram has another number of groups");
  state.counters["samples"] = static_cast<double>(single.items());
  state.counters["groups"] = static_cast<double>(groups);
}
BENCHMARK(pack_histogram_beside)
    ->ArgsProduct({{4096, 131'072}, {10'000'000, 100'000'000}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

/// Best-fit decreasing of a histogram.
template <std::size_t R>
class by_best_fit {
 public:
  by_best_fit(omnibal::sample_histogram<R> const& histogram, omnibal::resources<R> const& capacity)
      : histogram_(histogram), capacity_(capacity) {}

  void prepare() const {}
  void operator()() {
    benchmark::DoNotOptimize(omnibal::pack_histogram(histogram_, capacity_).group_count);
  }
  [[nodiscard]] std::size_t items() const { return histogram_.entries().size(); }

 private:
  omnibal::sample_histogram<R> const& histogram_;
  omnibal::resources<R> capacity_;
};

template <std::size_t R>
void compare_patterns(benchmark::State& state, omnibal::sample_histogram<R> const& histogram,
                      omnibal::resources<R> const& capacity) {
  bench::compare(
      state, by_best_fit<R>(histogram, capacity),
      [&] { return omnibal::best_patterns(histogram, capacity); },
      [&](auto const&) { return histogram.entries().size(); });
  auto const first = omnibal::pack_histogram(histogram, capacity);
  auto const plan = omnibal::best_patterns(histogram, capacity);
  state.counters["ms"] =
      1e-6 * state.counters["ns_per_item"] * static_cast<double>(histogram.entries().size());
  state.counters["entries"] = static_cast<double>(histogram.entries().size());
  state.counters["groups"] = static_cast<double>(plan.group_count);
  state.counters["over_bound"] = static_cast<double>(plan.group_count - plan.lower_bound);
  state.counters["fewer"] = static_cast<double>(first.group_count - plan.group_count);
}

/// Lengths rounded up to a 256th of the capacity.
void best_patterns_lengths(benchmark::State& state) {
  std::int64_t const capacity = state.range(0);
  std::int64_t const step = capacity / 256;
  std::vector<omnibal::demand_count<1>> rounded;
  for (auto const& entry : lengths_up_to(capacity, 1e10).entries()) {
    rounded.push_back({(entry.demand[0] + step - 1) / step * step, entry.count});
  }
  compare_patterns(state, omnibal::sample_histogram<1>(std::move(rounded)),
                   omnibal::resources<1>{capacity});
}
BENCHMARK(best_patterns_lengths)->Arg(4096)->Arg(131072)->Apply(few_times);

void best_patterns_uniform(benchmark::State& state) {
  std::vector<omnibal::demand_count<1>> entries;
  for (std::int64_t value = 1000; value <= 5000; value += 4000 / state.range(0)) {
    entries.push_back({value + value % 7, 30'000'000});
  }
  compare_patterns(state, omnibal::sample_histogram<1>(std::move(entries)),
                   omnibal::resources<1>{10'000});
}
BENCHMARK(best_patterns_uniform)->Arg(20)->Arg(100)->Arg(300)->Apply(few_times);

/// One pass over the tokens.
class sum_of_tokens {
 public:
  explicit sum_of_tokens(std::vector<bench::sample> const& samples) : samples_(samples) {}
  void prepare() const {}
  void operator()() {
    std::int64_t sum = 0;
    for (auto const& sample : samples_) sum += sample.tokens;
    benchmark::DoNotOptimize(sum);
  }
  [[nodiscard]] std::size_t items() const { return samples_.size(); }

 private:
  std::vector<bench::sample> const& samples_;
};

template <class Demand, class Capacity>
void compare_shard(benchmark::State& state, bench::workload const& work, Demand const& demand,
                   Capacity const& capacity) {
  auto const shard = work.make(1'000'000);
  auto const count = [&] { return omnibal::count_samples(shard, demand); };
  if (state.range(0) == 0) return bench::compare(state, sum_of_tokens(shard), count);
  auto const plan = omnibal::pack_histogram(scaled(count(), copies), capacity);
  bench::compare(state, sum_of_tokens(shard),
                 [&] { return omnibal::place_samples(plan, count(), shard, demand); });
}

void shard_of_tokens(benchmark::State& state, bench::workload const& work) {
  compare_shard(state, work, &bench::sample::tokens, work.capacity()[1]);
}
void shard_of_images_and_tokens(benchmark::State& state, bench::workload const& work) {
  compare_shard(state, work, bench::images_and_tokens, work.capacity());
}
void passes(benchmark::internal::Benchmark* made) {
  made->ArgName("places")->Arg(0)->Arg(1)->UseManualTime();
}
BENCHMARK_CAPTURE(shard_of_tokens, real_18_6016, bench::real_18_6016)->Apply(passes);
BENCHMARK_CAPTURE(shard_of_images_and_tokens, real_18_6016, bench::real_18_6016)->Apply(passes);

}  // namespace
