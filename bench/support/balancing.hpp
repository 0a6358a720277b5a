// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Balancing samples whose cost is the square of a length with a heavy tail, in turn with
/// `std::sort` of the same costs.

#include "compare.hpp"
#include "samples.hpp"

#include <omnibal/group_loads.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace bench {

/// Squares of lengths of 16 to 131071 tokens, all lengths possible, most of them short.
[[nodiscard]] inline std::vector<std::int64_t> squares_with_tail(std::size_t count,
                                                                 std::uint64_t seed) {
  omnibal::rng::engine random(seed);
  std::vector<std::int64_t> costs(count);
  for (std::int64_t& cost : costs) {
    std::int64_t const octave =
        std::min(detail::uniform(random, 0, 12), detail::uniform(random, 0, 12));
    std::int64_t const last = (std::int64_t{1} << octave) - 1;
    std::int64_t const length =
        (detail::uniform(random, 16, 31) << octave) + detail::uniform(random, 0, last);
    cost = length * length;
  }
  return costs;
}

/// Sets of costs that take turns, because a processor learns the branches of a sort that sees the
/// same numbers again and again.
class cost_batches {
 public:
  explicit cost_batches(std::size_t count) {
    constexpr std::size_t batches = 24;
    for (std::size_t b = 0; b != batches; ++b) batches_.push_back(squares_with_tail(count, b));
  }

  void turn() { current_ = (current_ + 1) % batches_.size(); }
  [[nodiscard]] std::vector<std::int64_t> const& current() const { return batches_[current_]; }
  [[nodiscard]] auto begin() const { return batches_.begin(); }
  [[nodiscard]] auto end() const { return batches_.end(); }

 private:
  std::vector<std::vector<std::int64_t>> batches_;
  std::size_t current_ = 0;
};

/// `std::sort` of the costs of the next batch.
class standard_sort {
 public:
  explicit standard_sort(cost_batches& batches) : batches_(&batches) {}

  void prepare() {
    batches_->turn();
    keys_ = batches_->current();
  }
  void operator()() {
    std::sort(keys_.begin(), keys_.end());
    benchmark::DoNotOptimize(keys_.data());
    benchmark::ClobberMemory();
  }
  [[nodiscard]] std::size_t items() const { return batches_->current().size(); }

 private:
  cost_batches* batches_;
  std::vector<std::int64_t> keys_;
};

/// The largest load over the mean load or the largest cost, whichever is larger.
[[nodiscard]] inline double load_over_bound(omnibal::grouping const& parts,
                                            std::vector<std::int64_t> const& costs) {
  double largest = 0;
  double sum = 0;
  for (auto const& load : omnibal::group_loads(parts, costs, std::identity{})) {
    largest = std::max(largest, static_cast<double>(load[0]));
    sum += static_cast<double>(load[0]);
  }
  auto const largest_cost = static_cast<double>(*std::max_element(costs.begin(), costs.end()));
  return largest / std::max(largest_cost, sum / static_cast<double>(parts.size()));
}

/// Times `balance(costs, parts)`; the counter `load_over_bound` is the worst of all batches.
template <class Balance>
void compare_with_sort(benchmark::State& state, Balance const& balance) {
  cost_batches batches(size_of(state));
  auto const parts = static_cast<std::size_t>(state.range(1));
  compare(
      state, standard_sort(batches), [&] { return balance(batches.current(), parts); },
      [&](auto const&) { return batches.current().size(); });
  double worst = 0;
  for (auto const& costs : batches) {
    worst = std::max(worst, load_over_bound(balance(costs, parts), costs));
  }
  state.counters["load_over_bound"] = worst;
}

/// The size with which every benchmark runs once in the tests.
inline constexpr std::size_t size_of_test_runs = 10'000;

/// Makes promises about the ratio to the sort and about the balance.
inline void promise_balance(benchmark::State& state, std::string const& name, double max_ratio,
                            double max_over_bound) {
  if (size_of(state) == size_of_test_runs) return;
  std::string const at = ", " + std::to_string(state.range(0)) + " samples on " +
                         std::to_string(state.range(1)) + " parts";
  make_promises(state, {{name + " / std::sort" + at, "ratio", max_ratio},
                        {name + ": largest load / bound" + at, "load_over_bound", max_over_bound}});
}

/// Samples and parts for which times of other programs are known, and one more for the tests.
inline void balance_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "parts"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  made->Args({4096, 64})->Args({10'000, 64})->Args({65536, 512})->Args({65536, 4096});
}

}  // namespace bench
