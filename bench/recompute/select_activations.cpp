// SPDX-License-Identifier: Apache-2.0
/// \file
/// Choices to keep, recompute or offload. The yardstick is `select_recompute` without a link and
/// without a peak that moves through the layers: one choice for each module under the same budget.

#include "compare.hpp"

#include <omnibal/recompute/activation_frontier.hpp>
#include <omnibal/recompute/select_activations.hpp>
#include <omnibal/recompute/select_recompute.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

struct offload_problem {
  std::vector<omnibal::activation_layer<>> layers;
  std::vector<std::array<omnibal::activation_option<>, 2>> modules;
  std::int64_t budget = 0;
};

/// Bytes for each nanosecond.
constexpr omnibal::offload_link host_link{25.0};

/// Layers of six modules, all numbers off by up to `per_mille` thousandths, with peaks of 30, 50
/// and 70 % of the bytes.
std::vector<offload_problem> make_offload_problems(std::size_t count, std::int64_t per_mille) {
  // Bytes and nanoseconds of the modules of bench/rivals/offload.py.
  constexpr std::int64_t bytes[]{58'720'256, 469'762'048, 134'217'728,
                                 58'720'256, 301'989'888, 150'994'944};
  constexpr std::int64_t times[]{60'000, 1'130'000, 1'720'000, 2'400'000, 5'410'000, 210'000};
  std::vector<offload_problem> problems;
  for (std::uint64_t seed = 0; seed != 24; ++seed) {
    omnibal::rng::engine random(seed);
    auto const noisy = [&](std::int64_t value) {
      auto const off =
          static_cast<std::int64_t>(omnibal::rng::below(random, 2'000'001)) - 1'000'000;
      return value + value / 1000 * per_mille * off / 1'000'000;
    };
    offload_problem one;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i != count; ++i) {
      auto& layer = one.layers.emplace_back();
      for (std::size_t j = 0; j != std::size(bytes); ++j) {
        layer.modules.push_back({noisy(bytes[j]), noisy(times[j])});
        sum += layer.modules.back().bytes;
        one.modules.push_back({omnibal::activation_option<>{0, layer.modules.back().bytes},
                               {layer.modules.back().recompute_time, 0}});
      }
      layer.forward_time = noisy(12'000'000);
      layer.backward_time = noisy(24'000'000);
    }
    one.budget = sum / 10 * static_cast<std::int64_t>(3 + 2 * (seed % 3));
    problems.push_back(std::move(one));
  }
  return problems;
}

/// One choice for each module, without a link.
class without_link {
 public:
  explicit without_link(std::vector<offload_problem> const& problems) : problems_(&problems) {}

  void prepare() { turn_ = (turn_ + 1) % problems_->size(); }
  void operator()() const {
    offload_problem const& one = (*problems_)[turn_];
    benchmark::DoNotOptimize(omnibal::select_recompute(one.modules, one.budget).time);
  }
  [[nodiscard]] std::size_t items() const { return problems_->front().modules.size(); }

 private:
  std::vector<offload_problem> const* problems_;
  std::size_t turn_ = 0;
};

/// Each problem with a single micro-batch in flight.
class with_one_in_flight {
 public:
  explicit with_one_in_flight(std::vector<offload_problem> const& problems)
      : problems_(&problems) {}

  void prepare() { turn_ = (turn_ + 1) % problems_->size(); }
  void operator()() const {
    offload_problem const& one = (*problems_)[turn_];
    benchmark::DoNotOptimize(
        omnibal::select_activations(one.layers, one.budget, host_link).added_time);
  }
  [[nodiscard]] std::size_t items() const { return problems_->front().modules.size(); }

 private:
  std::vector<offload_problem> const* problems_;
  std::size_t turn_ = 0;
};

/// A call for each budget.
template <class Calls>
class budget_by_budget {
 public:
  explicit budget_by_budget(Calls const& calls) : calls_(&calls) {}

  void prepare() {}
  void operator()() const { benchmark::DoNotOptimize((*calls_)().size()); }
  [[nodiscard]] std::size_t items() const { return 1; }

 private:
  Calls const* calls_;
};

double slowest_selection(std::vector<offload_problem> const& problems) {
  double slowest = 0;
  for (offload_problem const& one : problems) {
    double least = std::numeric_limits<double>::max();
    for (int run = 0; run != 5; ++run) {
      double const begin = bench::processor_seconds();
      benchmark::DoNotOptimize(
          omnibal::select_activations(one.layers, one.budget, host_link).added_time);
      least = std::min(least, bench::processor_seconds() - begin);
    }
    slowest = std::max(slowest, least);
  }
  return 1000 * slowest;
}

/// Counters: the milliseconds of the slowest problem, the largest gap between added time and lower
/// bound, and the largest added time as a share of the added time without a link at a peak of 30 %.
void keep_recompute_offload(benchmark::State& state) {
  std::int64_t const per_mille = state.range(1);
  auto const problems = make_offload_problems(bench::size_of(state), per_mille);
  std::size_t turn = 0;
  bench::compare(state, without_link(problems), [&] {
    turn = (turn + 1) % problems.size();
    return omnibal::select_activations(problems[turn].layers, problems[turn].budget, host_link)
        .added_time;
  });
  double gap = 0;
  double share = 0;
  for (std::size_t k = 0; k != problems.size(); ++k) {
    offload_problem const& one = problems[k];
    auto const result = omnibal::select_activations(one.layers, one.budget, host_link);
    gap = std::max(gap, static_cast<double>(result.added_time - result.lower_bound) /
                            static_cast<double>(std::max<std::int64_t>(result.added_time, 1)));
    if (k % 3 != 0) continue;
    auto const alone = omnibal::select_activations(one.layers, one.budget, {});
    share = std::max(
        share, static_cast<double>(result.added_time) / static_cast<double>(alone.added_time));
  }
  state.counters["milliseconds"] = slowest_selection(problems);
  state.counters["largest_gap"] = gap;
  state.counters["share"] = share;
  std::string const name =
      "select_activations, 61 layers, noise " + std::to_string(per_mille) + " per mille";
  bench::make_promises(state, {{name + ", milliseconds", "milliseconds", 1.0},
                               {name + ": largest gap", "largest_gap", 0.005},
                               {name + ": added time / without a link", "share", 0.34}});
}

BENCHMARK(keep_recompute_offload)
    ->ArgNames({"n", "per_mille"})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->ArgsProduct({{61}, {0, 10, 100}});

/// The same problems with several micro-batches in flight and as many times the budget. The
/// yardstick is a single micro-batch. Counters: the largest and the mean gap.
void offload_several_in_flight(benchmark::State& state) {
  std::int64_t const per_mille = state.range(1);
  omnibal::select_activations_options const options{.in_flight = state.range(2)};
  auto const problems = make_offload_problems(bench::size_of(state), per_mille);
  auto const select = [&](offload_problem const& one) {
    return omnibal::select_activations(one.layers, options.in_flight * one.budget, host_link,
                                       options);
  };
  std::size_t turn = 0;
  bench::compare(state, with_one_in_flight(problems), [&] {
    turn = (turn + 1) % problems.size();
    return select(problems[turn]).added_time;
  });
  double largest = 0;
  double sum = 0;
  for (offload_problem const& one : problems) {
    auto const result = select(one);
    double const gap = static_cast<double>(result.added_time - result.lower_bound) /
                       static_cast<double>(std::max<std::int64_t>(result.added_time, 1));
    largest = std::max(largest, gap);
    sum += gap;
  }
  state.counters["largest_gap"] = largest;
  state.counters["mean_gap"] = sum / static_cast<double>(problems.size());
  std::string const name = "select_activations, " + std::to_string(options.in_flight) +
                           " micro-batches, noise " + std::to_string(per_mille) + " per mille";
  bench::make_promises(state, {{name + ": largest gap", "largest_gap", 0.02},
                               {name + ": mean gap", "mean_gap", 0.005}});
}

BENCHMARK(offload_several_in_flight)
    ->ArgNames({"n", "per_mille", "in_flight"})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->ArgsProduct({{61}, {0, 10, 100}, {2, 4, 8}});

/// 100 budgets that differ by 0.005 % of the bytes of all micro-batches. The yardstick solves each
/// of them by itself. Counters: the pairs of neighboring budgets whose larger one has a lower peak
/// or more added time, by the yardstick and by the frontier.
void offload_frontier(benchmark::State& state) {
  omnibal::select_activations_options const options{.in_flight = state.range(2)};
  auto const layers = make_offload_problems(bench::size_of(state), state.range(1)).front().layers;
  std::int64_t sum = 0;
  for (auto const& layer : layers) {
    for (auto const& one : layer.modules) sum += options.in_flight * one.bytes;
  }
  std::vector<std::int64_t> budgets;
  for (std::int64_t k = 0; k != 100; ++k) budgets.push_back(sum / 100 * 35 + sum / 20'000 * k);
  auto const one_by_one = [&] {
    std::vector<omnibal::activations_result<std::int64_t>> results;
    for (std::int64_t const budget : budgets) {
      results.push_back(omnibal::select_activations(layers, budget, host_link, options));
    }
    return results;
  };
  auto const frontier = [&] {
    return omnibal::activation_frontier(layers, budgets, host_link, options);
  };
  bench::compare(state, budget_by_budget(one_by_one), [&] { return frontier().size(); });
  auto const disorder = [](auto const& results) {
    int count = 0;
    for (std::size_t k = 1; k != results.size(); ++k) {
      bool const is_lower = results[k].peak_bytes < results[k - 1].peak_bytes;
      if (is_lower || results[k].added_time > results[k - 1].added_time) ++count;
    }
    return count;
  };
  state.counters["disorder_of_calls"] = disorder(one_by_one());
  state.counters["disorder"] = disorder(frontier());
  bench::make_promises(
      state, {{"activation_frontier, " + std::to_string(state.range(1)) + " per mille, " +
                   std::to_string(options.in_flight) + " micro-batches: budgets out of order",
               "disorder", 0}});
}

BENCHMARK(offload_frontier)
    ->ArgNames({"n", "per_mille", "in_flight"})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->ArgsProduct({{61}, {0, 100}, {1, 4}});

}  // namespace
