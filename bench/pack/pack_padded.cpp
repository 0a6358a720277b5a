// SPDX-License-Identifier: Apache-2.0
/// \file
/// Padded batches under a budget of tokens, beside the loops of trainers: samples in ascending
/// order of length, and random samples of 30 buckets of similar length. Padded batches of a stream,
/// beside the fewest of all samples at once.

#include "compare.hpp"
#include "samples.hpp"

#include <omnibal/pack/online_padded_packer.hpp>
#include <omnibal/pack/pack_padded.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

/// Batches, and the tokens with padding.
struct padded_total {
  double batches = 0;
  double tokens = 0;
};

/// Batches of lengths in their order: each ends before the length with which it is too large.
padded_total batches_in_order(std::span<std::int64_t const> lengths, std::int64_t budget) {
  padded_total total;
  std::int64_t count = 0;
  std::int64_t longest = 0;
  auto const close = [&] {
    if (count == 0) return;
    ++total.batches;
    total.tokens += static_cast<double>(count * longest);
    count = longest = 0;
  };
  for (std::int64_t const length : lengths) {
    if (length > budget) continue;
    if ((count + 1) * std::max(longest, length) > budget) close();
    ++count;
    longest = std::max(longest, length);
  }
  close();
  return total;
}

/// Batches of random samples from buckets with the same number of tokens each.
padded_total batches_of_buckets(std::vector<std::int64_t> sorted, std::int64_t budget) {
  constexpr std::size_t buckets = 30;
  double sum = 0;
  for (std::int64_t const length : sorted) sum += static_cast<double>(length);
  omnibal::rng::engine random(1);
  padded_total total;
  double before = 0;
  auto begin = sorted.begin();
  for (std::size_t b = 1; b <= buckets; ++b) {
    auto end = begin;
    for (; end != sorted.end() && (b == buckets || before < sum * static_cast<double>(b) / buckets);
         ++end) {
      before += static_cast<double>(*end);
    }
    for (auto left = end - begin; left > 1; --left) {
      auto const drawn = omnibal::rng::below(random, static_cast<std::uint64_t>(left));
      std::swap(begin[left - 1], begin[static_cast<std::ptrdiff_t>(drawn)]);
    }
    auto const own = batches_in_order({begin, end}, budget);
    total.batches += own.batches;
    total.tokens += own.tokens;
    begin = end;
  }
  return total;
}

/// Sorts lengths and cuts them into batches.
class ascending_batches {
 public:
  ascending_batches(std::vector<std::int64_t> const& lengths, std::int64_t budget)
      : lengths_(lengths), budget_(budget) {}

  void prepare() { sorted_ = lengths_; }
  void operator()() {
    std::sort(sorted_.begin(), sorted_.end());
    benchmark::DoNotOptimize(batches_in_order(sorted_, budget_));
  }
  [[nodiscard]] std::size_t items() const { return lengths_.size(); }

 private:
  std::vector<std::int64_t> const& lengths_;
  std::int64_t budget_;
  std::vector<std::int64_t> sorted_;
};

void pack_padded(benchmark::State& state, bench::workload const& work) {
  std::int64_t const budget = 2 * work.capacity()[1];
  std::vector<std::int64_t> lengths;
  for (auto const& sample : work.make(bench::size_of(state))) lengths.push_back(sample.tokens);
  bench::compare(state, ascending_batches(lengths, budget),
                 [&] { return omnibal::pack_padded(lengths, std::identity{}, budget); });
  padded_total own;
  for (auto const group : omnibal::pack_padded(lengths, std::identity{}, budget).groups) {
    std::int64_t longest = 0;
    for (std::uint32_t const i : group) longest = std::max(longest, lengths[i]);
    ++own.batches;
    own.tokens += static_cast<double>(longest) * static_cast<double>(group.size());
  }
  double tokens = 0;
  for (std::int64_t const length : lengths) {
    if (length <= budget) tokens += static_cast<double>(length);
  }
  std::vector<std::int64_t> sorted(lengths);
  std::sort(sorted.begin(), sorted.end());
  auto const ascending = batches_in_order(sorted, budget);
  auto const buckets = batches_of_buckets(sorted, budget);
  state.counters["batches"] = own.batches;
  state.counters["padded"] = own.tokens / tokens;
  state.counters["ascending_batches"] = ascending.batches / own.batches;
  state.counters["ascending_padded"] = ascending.tokens / tokens;
  state.counters["bucket_batches"] = buckets.batches / own.batches;
  state.counters["bucket_padded"] = buckets.tokens / tokens;
}

/// The number of batches of a stream that is flushed at its end.
template <std::size_t R, class Demand>
std::size_t batches_of_stream(std::vector<bench::sample> const& samples, Demand const& demand,
                              omnibal::resources<R> const& capacity, std::uint64_t buffer) {
  omnibal::online_padded_packer packer(capacity, {.buffer = buffer});
  std::size_t batches = 0;
  std::uint64_t id = 0;
  for (auto const& sample : samples) {
    if (packer.push(id++, demand(sample))) ++batches;
  }
  while (packer.flush()) ++batches;
  return batches;
}

/// Counters: by how many percent the batches of a stream exceed the fewest batches, by buffer.
template <std::size_t R, class Demand>
void count_stream(benchmark::State& state, std::vector<bench::sample> const& samples,
                  Demand const& demand, omnibal::resources<R> const& capacity) {
  auto const fewest =
      static_cast<double>(omnibal::pack_padded(samples, demand, capacity).groups.size());
  for (auto _ : state) {
    for (std::uint64_t const buffer : {256U, 1024U, 4096U}) {
      auto const batches =
          static_cast<double>(batches_of_stream<R>(samples, demand, capacity, buffer));
      state.counters["percent_" + std::to_string(buffer)] = 100 * (batches / fewest - 1);
    }
  }
}

void online_padded(benchmark::State& state, bench::workload const& work) {
  auto const samples = work.make(bench::size_of(state));
  auto const tokens = [](bench::sample const& one) { return omnibal::resources<1>{one.tokens}; };
  count_stream<1>(state, samples, tokens, omnibal::resources<1>{2 * work.capacity()[1]});
}

void online_padded_images_and_tokens(benchmark::State& state, bench::workload const& work) {
  auto const samples = work.make(bench::size_of(state));
  omnibal::resources<2> const capacity{2 * work.capacity()[0], 2 * work.capacity()[1]};
  count_stream<2>(state, samples, bench::images_and_tokens, capacity);
}

void one_stream(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->Arg(100'000)->Iterations(1)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(online_padded, mix_9_4096, bench::mix_9_4096)->Apply(one_stream);
BENCHMARK_CAPTURE(online_padded, real_18_6016, bench::real_18_6016)->Apply(one_stream);
BENCHMARK_CAPTURE(online_padded, long_131072, bench::long_131072)->Apply(one_stream);
BENCHMARK_CAPTURE(online_padded_images_and_tokens, mix_9_4096, bench::mix_9_4096)
    ->Apply(one_stream);
BENCHMARK_CAPTURE(online_padded_images_and_tokens, real_18_6016, bench::real_18_6016)
    ->Apply(one_stream);

BENCHMARK_CAPTURE(pack_padded, mix_9_4096, bench::mix_9_4096)->Apply(bench::sizes);
BENCHMARK_CAPTURE(pack_padded, real_18_6016, bench::real_18_6016)->Apply(bench::sizes);
BENCHMARK_CAPTURE(pack_padded, long_131072, bench::long_131072)->Apply(bench::sizes);

}  // namespace
