// SPDX-License-Identifier: Apache-2.0
/// \file
/// Evenness against staleness: how long steps take where long samples may wait, and how long they
/// wait. Counters over a stream of steps of one mixture of lengths.

#include "compare.hpp"
#include "context_model.hpp"
#include "context_rivals.hpp"
#include "long_context_mix.hpp"
#include "outlier_queues.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/deferral_queue.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using examples::length_mix;

constexpr std::size_t steps = 256;
constexpr std::uint32_t ranks_per_node = 8;

/// What the samples of a step run on.
enum class executor {
  /// Each sample on one data-parallel rank, each of which is eight devices.
  ranks,
  /// `context_groups` with degrees up to a node of eight ranks.
  groups_in_nodes,
  /// `context_groups` with any degree, of which the queue counts on an eighth of the ranks.
  groups,
};

/// The steps of a stream, and what they run on.
class stream {
 public:
  stream(length_mix mix, std::size_t count, std::uint32_t ranks, executor runs_on)
      : ranks_(ranks), runs_on_(runs_on) {
    step_.ranks = ranks;
    step_.options.capacity = 16'384;
    widest_ = runs_on == executor::groups ? ranks / 8 : ranks_per_node;
    step_.cost = examples::context_cost_of(examples::known_shape("llama3-8b"),
                                           {std::max(ranks, widest_), ranks_per_node});
    if (runs_on != executor::groups) step_.cost.degrees.resize(widest_);
    auto const samples = examples::long_context_mix(mix, count * steps, count + ranks).samples;
    for (std::size_t i = 0; i != samples.size(); ++i) {
      if (i % count == 0) lengths_.emplace_back();
      lengths_.back().push_back(samples[i].tokens);
      work_ += time_of(samples[i].tokens);
    }
  }

  [[nodiscard]] std::span<std::vector<std::int64_t> const> lengths() const { return lengths_; }

  /// How many samples run at the same time.
  [[nodiscard]] std::uint32_t places() const {
    return runs_on_ == executor::ranks ? ranks_ : ranks_ / widest_;
  }

  /// What the queue is told. Where groups are planned, samples that fit on one rank fill
  /// micro-steps of their own.
  [[nodiscard]] double cost(std::int64_t length) const {
    bool const is_free = runs_on_ != executor::ranks && length <= step_.options.capacity;
    return is_free ? 0 : time_of(length);
  }

  /// The work of a mean step, spread evenly.
  [[nodiscard]] double even_time() const { return work_ / steps / places(); }

  /// How long a step takes.
  [[nodiscard]] double time(std::vector<std::int64_t> const& own) {
    if (runs_on_ != executor::ranks) {
      return omnibal::context_groups(own, ranks_, step_.cost, examples::context_step::memory,
                                     step_.options, workspace_)
          .makespan;
    }
    double longest = 0;
    auto const parts = omnibal::lpt(own, ranks_, [this](std::int64_t n) { return time_of(n); });
    for (auto const& part : parts) {
      double sum = 0;
      for (std::uint32_t const sample : part) sum += time_of(own[sample]);
      longest = std::max(longest, sum);
    }
    return longest;
  }

  /// What a sample takes alone on as many devices as it may have.
  [[nodiscard]] double time_of(std::int64_t length) const {
    auto const tokens = static_cast<double>(length);
    omnibal::degree_time const& time = step_.cost.degrees[widest_ - 1];
    return time.linear * tokens + time.quadratic * tokens * tokens;
  }

 private:
  examples::context_step step_;
  std::uint32_t ranks_;
  std::uint32_t widest_;
  executor runs_on_;
  std::vector<std::vector<std::int64_t>> lengths_;
  double work_ = 0;
  omnibal::context_groups_workspace workspace_;
};

/// Sums over the steps of a stream.
class stream_totals {
 public:
  explicit stream_totals(stream& of) : stream_(of) {}

  void add(std::vector<std::int64_t> const& lengths, std::vector<std::uint64_t> const& delays) {
    double tokens = 0;
    for (std::size_t i = 0; i != lengths.size(); ++i) {
      auto const own = static_cast<double>(lengths[i]);
      tokens += own;
      if (delays[i] == 0) continue;
      waited_tokens_ += own;
      sum_of_delays_ += static_cast<double>(delays[i]);
      waited_ += 1;
      largest_delay_ = std::max(largest_delay_, static_cast<double>(delays[i]));
    }
    times_.push_back(stream_.time(lengths));
    tokens_.push_back(tokens);
  }

  void add_waiting(std::size_t waiting, bool is_empty) {
    max_waiting_ = std::max(max_waiting_, static_cast<double>(waiting));
    empty_steps_ += is_empty ? 1 : 0;
  }

  [[nodiscard]] double time() const { return sum(times_); }

  void report(benchmark::State& state) const {
    state.counters["times_vary"] = variation(times_);
    state.counters["tokens_vary"] = variation(tokens_);
    state.counters["waited_tokens"] = waited_tokens_ / sum(tokens_);
    state.counters["mean_delay"] = mean_delay();
    state.counters["max_waiting"] = max_waiting_;
    state.counters["empty_steps"] = empty_steps_;
    state.counters["largest_delay"] = largest_delay_;
  }
  [[nodiscard]] double largest_delay() const { return largest_delay_; }
  [[nodiscard]] double mean_delay() const { return waited_ == 0 ? 0 : sum_of_delays_ / waited_; }

 private:
  static double sum(std::vector<double> const& values) {
    double result = 0;
    for (double const value : values) result += value;
    return result;
  }
  static double variation(std::vector<double> const& values) {
    double const mean = sum(values) / static_cast<double>(values.size());
    double squares = 0;
    for (double const value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / static_cast<double>(values.size())) / mean;
  }

  stream& stream_;
  std::vector<double> times_;
  std::vector<double> tokens_;
  double waited_tokens_ = 0;
  double sum_of_delays_ = 0;
  double waited_ = 0;
  double largest_delay_ = 0;
  double max_waiting_ = 0;
  double empty_steps_ = 0;
};

/// The steps of a stream through a queue; returns the processor time of the queue.
double run(stream& of, std::uint32_t max_delay, stream_totals& totals) {
  omnibal::deferral_queue queue({.group_size = of.places(), .max_delay = max_delay});
  auto const cost = [&of](std::int64_t length) { return of.cost(length); };
  auto const add = [&totals](omnibal::deferral_step const& now) {
    if (now)
      totals.add({now.lengths.begin(), now.lengths.end()}, {now.delays.begin(), now.delays.end()});
  };
  double seconds = 0;
  for (auto const& lengths : of.lengths()) {
    double const before = bench::processor_seconds();
    auto const now = queue.push(lengths, lengths, cost);
    seconds += bench::processor_seconds() - before;
    add(now);
    totals.add_waiting(queue.size(), !now);
  }
  add(queue.flush());
  return seconds;
}

/// The same through queues that count: from the length that takes as long as a mean step on,
/// doubling.
void run_counting(stream& of, stream_totals& totals) {
  std::int64_t shortest = 1;
  while (of.time_of(shortest) < of.even_time()) ++shortest;
  std::vector<std::int64_t> thresholds;
  for (; shortest < 131'072; shortest *= 2) thresholds.push_back(shortest);
  bench::outlier_queues queues(thresholds, of.places());
  std::uint64_t step = 0;
  auto const add = [&](std::vector<bench::arrived_sample> const& runs) {
    std::vector<std::int64_t> lengths;
    std::vector<std::uint64_t> delays;
    for (auto const& sample : runs) {
      lengths.push_back(sample.length);
      delays.push_back(step - sample.step);
    }
    totals.add(lengths, delays);
    ++step;
  };
  for (auto const& lengths : of.lengths()) add(queues.push(lengths));
  add(queues.flush());
}

void deferral_queue(benchmark::State& state, length_mix mix, executor runs_on) {
  auto const count = static_cast<std::size_t>(state.range(0));
  stream of(mix, count, static_cast<std::uint32_t>(state.range(1)), runs_on);
  auto const max_delay = static_cast<std::uint32_t>(state.range(2));
  for (auto _ : state) {
    stream_totals at_once(of);
    run(of, 0, at_once);
    stream_totals totals(of);
    double const seconds = run(of, max_delay, totals);
    stream_totals counting(of);
    run_counting(of, counting);
    state.SetIterationTime(seconds);
    totals.report(state);
    double const even = of.even_time() * steps;
    if (runs_on == executor::ranks) state.counters["over_even"] = totals.time() / even;
    state.counters["ms_per_step"] = 1e3 * totals.time() / steps;
    state.counters["of_at_once"] = totals.time() / at_once.time();
    state.counters["counting"] = counting.time() / at_once.time();
    state.counters["counting_mean_delay"] = counting.mean_delay();
    state.counters["counting_largest_delay"] = counting.largest_delay();
    state.counters["ns_per_sample"] = 1e9 * seconds / static_cast<double>(steps * count);
  }
}

void curve(benchmark::internal::Benchmark* made, std::vector<std::int64_t> const& all_ranks,
           std::vector<std::int64_t> const& per_rank, std::vector<std::int64_t> const& delays) {
  made->ArgNames({"n", "ranks", "delay"})->UseManualTime()->Iterations(1);
  for (std::int64_t const each : per_rank) {
    for (std::int64_t const ranks : all_ranks) {
      for (std::int64_t const delay : delays) made->Args({each * ranks, ranks, delay});
    }
  }
}
std::vector<std::int64_t> const all_delays{0, 1, 2, 4, 8, 16, 32};
void ranks_curve(benchmark::internal::Benchmark* made) {
  curve(made, {8, 64, 256}, {2, 8, 32, 128}, all_delays);
}
void nodes_curve(benchmark::internal::Benchmark* made) {
  curve(made, {64, 256}, {8, 32}, all_delays);
}
void groups_curve(benchmark::internal::Benchmark* made) { curve(made, {64, 256}, {8, 32}, {0, 8}); }

BENCHMARK_CAPTURE(deferral_queue, ranks_two_sources, length_mix::two_sources, executor::ranks)
    ->Apply(ranks_curve);
BENCHMARK_CAPTURE(deferral_queue, ranks_broad, length_mix::broad, executor::ranks)
    ->Apply(ranks_curve);
BENCHMARK_CAPTURE(deferral_queue, nodes_two_sources, length_mix::two_sources,
                  executor::groups_in_nodes)
    ->Apply(nodes_curve);
BENCHMARK_CAPTURE(deferral_queue, nodes_broad, length_mix::broad, executor::groups_in_nodes)
    ->Apply(nodes_curve);
BENCHMARK_CAPTURE(deferral_queue, groups_two_sources, length_mix::two_sources, executor::groups)
    ->Apply(groups_curve);
BENCHMARK_CAPTURE(deferral_queue, groups_broad, length_mix::broad, executor::groups)
    ->Apply(groups_curve);

}  // namespace
