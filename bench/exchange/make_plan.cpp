// SPDX-License-Identifier: Apache-2.0
/// \file
/// Plans for a global batch. The yardstick is `std::sort` of the costs.

#include "balancing.hpp"
#include "compare.hpp"
#include "equal_speeds.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using costs_type = std::vector<std::int64_t>;

/// As many samples on each rank, but for the remainder.
std::vector<std::uint32_t> even_offsets(std::size_t samples, std::size_t ranks) {
  std::vector<std::uint32_t> offsets;
  for (std::size_t r = 0; r <= ranks; ++r) {
    offsets.push_back(static_cast<std::uint32_t>(samples * r / ranks));
  }
  return offsets;
}

struct batch {
  costs_type costs;
  costs_type bytes;
};

/// Lengths with a heavy tail: the cost of a sample is the square of its length, its bytes are twice
/// the length.
batch squared_lengths(std::size_t samples, std::uint64_t seed) {
  batch result{bench::squares_with_tail(samples, seed), {}};
  for (std::int64_t const cost : result.costs) {
    result.bytes.push_back(2 * static_cast<std::int64_t>(std::sqrt(static_cast<double>(cost))));
  }
  return result;
}

/// The language model of a mix of text, images and sound: text with a heavy tail of bytes, and in
/// two thirds of the samples outputs of encoders, which are most of the bytes.
batch mixed_samples(std::size_t samples, std::uint64_t seed) {
  using bench::detail::uniform;
  omnibal::rng::engine random(seed);
  batch result;
  for (std::size_t i = 0; i != samples; ++i) {
    std::int64_t const text = uniform(random, 32, 63)
                              << std::min(uniform(random, 0, 6), uniform(random, 0, 6));
    std::int64_t const pieces = uniform(random, 0, 2) == 0 ? 0 : uniform(random, 1, 4);
    std::int64_t outputs = 0;
    for (std::int64_t p = 0; p != pieces; ++p) outputs += 256 * uniform(random, 1, 13);
    std::int64_t const tokens = text + outputs;
    result.costs.push_back(tokens * 8192 + tokens * tokens / 2);
    result.bytes.push_back(8 * text + 16'384 * outputs);
  }
  return result;
}

/// Batches that take turns, because a processor learns the branches of a sort that sees the same
/// numbers again and again.
class batches_in_turn {
 public:
  template <class MakeBatch>
  batches_in_turn(std::size_t samples, MakeBatch const& make_batch) {
    for (std::uint64_t seed = 0; seed != 24; ++seed) batches_.push_back(make_batch(samples, seed));
  }

  void turn() { current_ = (current_ + 1) % batches_.size(); }
  [[nodiscard]] batch const& current() const { return batches_[current_]; }
  [[nodiscard]] auto begin() const { return batches_.begin(); }
  [[nodiscard]] auto end() const { return batches_.end(); }

 private:
  std::vector<batch> batches_;
  std::size_t current_ = 0;
};

/// `std::sort` of the costs of the next batch.
struct sort_of_costs {
  batches_in_turn& batches;
  costs_type keys;

  void prepare() {
    batches.turn();
    keys = batches.current().costs;
  }
  void operator()() {
    std::sort(keys.begin(), keys.end());
    benchmark::DoNotOptimize(keys.data());
    benchmark::ClobberMemory();
  }
  [[nodiscard]] std::size_t items() const { return batches.current().costs.size(); }
};

/// Times plans; `moved_share` is the share of the bytes that changes its rank, `node_share` that
/// which leaves its node, in the mean over the batches, and `milliseconds` the time of a plan.
template <class MakeBatch, class Balance>
void plan_batches(benchmark::State& state, MakeBatch const& make_batch,
                  omnibal::make_plan_options const& options, Balance const& balance) {
  batches_in_turn batches(bench::size_of(state), make_batch);
  auto const ranks = static_cast<std::size_t>(state.range(1));
  auto const offsets = even_offsets(bench::size_of(state), ranks);
  omnibal::make_plan_workspace<1> workspace;
  auto const plan = [&](batch const& one) -> omnibal::exchange_plan const& {
    return omnibal::make_plan(offsets, one.costs, one.bytes, options, balance, workspace);
  };
  bench::compare(
      state, sort_of_costs{batches, {}}, [&] { return plan(batches.current()).digest(); },
      [&](std::uint64_t) { return bench::size_of(state); });
  double moved = 0;
  double across = 0;
  double all = 0;
  for (batch const& one : batches) {
    auto const& made = plan(one);
    moved += static_cast<double>(made.moved_bytes());
    across += static_cast<double>(made.moved_bytes_across_nodes());
    all +=
        static_cast<double>(std::accumulate(one.bytes.begin(), one.bytes.end(), std::int64_t{0}));
  }
  state.counters["moved_share"] = moved / all;
  state.counters["node_share"] = across / all;
  state.counters["milliseconds"] =
      state.counters["ns_per_item"].value * static_cast<double>(bench::size_of(state)) / 1e6;
}

/// One millisecond for 64 samples on each of 64 ranks, 30 for 32 on each of 2560.
double max_milliseconds(benchmark::State const& state) {
  return state.range(1) <= 64 ? 1.0 : state.range(1) <= 2560 ? 30.0 : 60.0;
}

void plan_rebalance(benchmark::State& state) {
  plan_batches(state, squared_lengths, {.ranks_per_node = 8}, omnibal::rebalance);
  if (bench::size_of(state) == bench::size_of_test_runs) return;
  std::string const at = ", " + std::to_string(state.range(0)) + " samples on " +
                         std::to_string(state.range(1)) + " ranks";
  // With more ranks more of them have more than they should, and exchange samples.
  double const max_ratio = state.range(1) < 1000 ? 3.0 : state.range(1) < 4000 ? 6.5 : 9.5;
  bench::make_promises(state,
                       {{"make_plan / std::sort" + at, "ratio", max_ratio},
                        {"make_plan, milliseconds" + at, "milliseconds", max_milliseconds(state)},
                        {"make_plan: share of the bytes that move" + at, "moved_share", 0.1}});
}

void plan_rebalance_without_nodes(benchmark::State& state) {
  plan_batches(state, squared_lengths, {}, omnibal::rebalance);
}

/// The balancer sees the outputs of encoders as bytes, as `make_orchestration` lets it.
void plan_language_phase(benchmark::State& state) {
  plan_batches(state, mixed_samples, {.ranks_per_node = 8}, omnibal::rebalance);
  if (bench::size_of(state) == bench::size_of_test_runs) return;
  bench::make_promises(
      state, {{"make_plan of a language phase, milliseconds, " + std::to_string(state.range(0)) +
                   " samples on " + std::to_string(state.range(1)) + " ranks",
               "milliseconds", max_milliseconds(state)}});
}

void plan_lpt(benchmark::State& state) {
  plan_batches(state, squared_lengths, {.ranks_per_node = 8}, omnibal::lpt);
}

template <class Balance>
void plan_with_equal_speeds(benchmark::State& state, Balance const& balance,
                            std::string const& name) {
  batches_in_turn const batches(bench::size_of(state), squared_lengths);
  auto const offsets =
      even_offsets(bench::size_of(state), static_cast<std::size_t>(state.range(1)));
  omnibal::make_plan_workspace<1> workspace;
  bench::compare_equal_speeds(
      state, name, batches, [&](batch const& one, std::vector<double> const& speeds) {
        return omnibal::make_plan(offsets, one.costs, one.bytes,
                                  {.ranks_per_node = 8, .speeds = speeds}, balance, workspace)
            .digest();
      });
}

void plan_rebalance_with_equal_speeds(benchmark::State& state) {
  plan_with_equal_speeds(state, omnibal::rebalance, "make_plan");
}

void plan_lpt_with_equal_speeds(benchmark::State& state) {
  plan_with_equal_speeds(state, omnibal::lpt, "make_plan by lpt");
}

void plan_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "ranks"})->UseManualTime()->Unit(benchmark::kMillisecond);
  made->Args({4096, 64})->Args({10'000, 100})->Args({16'384, 512})->Args({81'920, 2560});
  made->Args({131'072, 4096});
}

BENCHMARK(plan_rebalance)->Apply(plan_sizes);
BENCHMARK(plan_rebalance_without_nodes)->Apply(plan_sizes);
BENCHMARK(plan_language_phase)->Apply(plan_sizes);
BENCHMARK(plan_lpt)->Apply(plan_sizes);
BENCHMARK(plan_rebalance_with_equal_speeds)->Apply(plan_sizes);
BENCHMARK(plan_lpt_with_equal_speeds)->Apply(plan_sizes);

}  // namespace
