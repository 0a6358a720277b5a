// SPDX-License-Identifier: Apache-2.0
/// \file
/// Balancing with conditions: where samples are, what a part may hold, costs that are not sums. The
/// yardstick is `std::sort` of the costs.

#include "balancing.hpp"
#include "equal_speeds.hpp"
#include "samples.hpp"

#include <omnibal/balance/balance_set_cost.hpp>
#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/balance/set_costs.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using costs_type = std::vector<std::int64_t>;

/// The length of which a cost is the square.
std::int64_t length_of(std::int64_t cost) {
  return static_cast<std::int64_t>(std::sqrt(static_cast<double>(cost)));
}

std::vector<std::int64_t> lengths_of(costs_type const& costs) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t const cost : costs) lengths.push_back(length_of(cost));
  return lengths;
}

/// Samples on ranks as they were drawn.
omnibal::grouping home_in_turn(std::size_t samples, std::size_t ranks) {
  omnibal::grouping home;
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    for (std::size_t i = rank; i < samples; i += ranks) home.push(static_cast<std::uint32_t>(i));
    home.close();
  }
  return home;
}

/// The share of all bytes that leave their rank; part p is on rank `rank_of(p)`.
template <class RankOf>
double moved_share(omnibal::groups_argument parts, costs_type const& bytes, RankOf const& rank_of) {
  double moved = 0;
  double sum = 0;
  for (std::size_t p = 0; p != parts.size(); ++p) {
    for (std::uint32_t const item : parts[p]) {
      sum += static_cast<double>(bytes[item]);
      if (item % parts.size() != rank_of(p)) moved += static_cast<double>(bytes[item]);
    }
  }
  return moved / sum;
}

/// The ranks of parts, relabeled so that few bytes move: the best pair first, then swaps of two
/// parts as long as that saves bytes.
std::vector<std::size_t> relabeled(omnibal::groups_argument parts, costs_type const& bytes) {
  std::size_t const ranks = parts.size();
  std::vector<std::vector<std::int64_t>> kept(ranks, std::vector<std::int64_t>(ranks, 0));
  for (std::size_t p = 0; p != ranks; ++p) {
    for (std::uint32_t const item : parts[p]) kept[p][item % ranks] += bytes[item];
  }
  std::vector<std::size_t> rank_of(ranks, ranks);
  std::vector<bool> is_taken(ranks, false);
  for (std::size_t pair = 0; pair != ranks; ++pair) {
    std::int64_t most = -1;
    std::size_t part = 0;
    std::size_t rank = 0;
    for (std::size_t p = 0; p != ranks; ++p) {
      for (std::size_t r = 0; rank_of[p] == ranks && r != ranks; ++r) {
        if (is_taken[r] || kept[p][r] <= most) continue;
        most = kept[p][r];
        part = p;
        rank = r;
      }
    }
    rank_of[part] = rank;
    is_taken[rank] = true;
  }
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (std::size_t p = 0; p != ranks; ++p) {
      for (std::size_t q = 0; q != p; ++q) {
        std::int64_t const now = kept[p][rank_of[p]] + kept[q][rank_of[q]];
        if (kept[p][rank_of[q]] + kept[q][rank_of[p]] <= now) continue;
        std::swap(rank_of[p], rank_of[q]);
        has_changed = true;
      }
    }
  }
  return rank_of;
}

/// Moved bytes against `lpt` with the best relabeling, at no larger a load than that of `lpt`, or
/// at the tolerance of the options.
void rebalance(benchmark::State& state) {
  std::size_t const samples = bench::size_of(state);
  auto const ranks = static_cast<std::size_t>(state.range(1));
  bool const is_exact = state.range(2) == 0;
  auto const home = home_in_turn(samples, ranks);
  bench::cost_batches batches(samples);
  std::vector<costs_type> bytes_of;
  std::vector<omnibal::rebalance_options> options_of;
  double worst = 0;
  double worst_load = 0;
  double moved = 0;
  for (auto const& costs : batches) {
    bytes_of.push_back(lengths_of(costs));
    auto const of_lpt = omnibal::lpt(costs, ranks);
    double const load_of_lpt = bench::load_over_bound(of_lpt, costs);
    options_of.push_back(
        {is_exact ? load_of_lpt - 1 + 1e-9 : omnibal::rebalance_options{}.max_overload});
    auto const parts = omnibal::rebalance(home, costs, bytes_of.back(), options_of.back());
    double const share = moved_share(parts, bytes_of.back(), [](std::size_t p) { return p; });
    moved += share / 24;
    worst_load = std::max(worst_load, bench::load_over_bound(parts, costs));
    if (ranks > 64) continue;
    auto const rank_of = relabeled(of_lpt, bytes_of.back());
    double const of_relabeled =
        moved_share(of_lpt, bytes_of.back(), [&](std::size_t p) { return rank_of[p]; });
    worst = std::max(worst, share / of_relabeled);
  }
  omnibal::rebalance_workspace<> workspace;
  std::size_t next = 0;
  bench::compare(
      state, bench::standard_sort(batches),
      [&] {
        next = (next + 1) % bytes_of.size();
        return omnibal::rebalance(home, batches.current(), bytes_of[next], options_of[next],
                                  workspace)
            .item_count();
      },
      [](std::size_t count) { return count; });
  state.counters["moved_share"] = moved;
  state.counters["moved_over_lpt"] = worst;
  state.counters["load_over_bound"] = worst_load;
  if (samples == bench::size_of_test_runs) return;
  std::string const at = ", " + std::to_string(samples) + " samples on " + std::to_string(ranks) +
                         (is_exact ? " ranks at the load of lpt" : " ranks");
  if (ranks == 64) {
    bench::make_promises(state,
                         {{"rebalance: moved bytes / those of lpt" + at, "moved_over_lpt", 0.25}});
  }
}

void rebalance_with_equal_speeds(benchmark::State& state) {
  bench::cost_batches const batches(bench::size_of(state));
  auto const home = home_in_turn(bench::size_of(state), static_cast<std::size_t>(state.range(1)));
  bench::compare_equal_speeds(state, "rebalance", batches,
                              [&](costs_type const& costs, auto const& speeds) {
                                return omnibal::rebalance(home, costs, costs, {.speeds = speeds});
                              });
}

/// The time of `rebalance` with two independent kinds of log-normal cost at the default overload,
/// 64 samples on each rank: few exchanges help.
void rebalance_kinds(benchmark::State& state) {
  std::size_t const samples = bench::size_of(state);
  auto const ranks = static_cast<std::size_t>(state.range(1));
  auto const home = home_in_turn(samples, ranks);
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> cost(6, 1);
  auto const draw = [&] { return 1 + static_cast<std::int64_t>(cost(random)); };
  std::vector<omnibal::resources<2>> kinds;
  costs_type bytes;
  for (std::size_t i = 0; i != samples; ++i) {
    kinds.push_back({draw(), draw()});
    bytes.push_back(kinds.back()[0]);
  }
  omnibal::grouping parts;
  for (auto _ : state) parts = omnibal::rebalance(home, kinds, bytes);
  auto const share_of = [&](omnibal::grouping const& made) {
    return moved_share(made, bytes, [](std::size_t part) { return part; });
  };
  state.counters["moved_share"] = share_of(parts);
  state.counters["moved_by_lpt"] = share_of(omnibal::lpt(kinds, ranks));
}

struct long_text {
  std::int64_t tokens;
  std::int64_t images;
};

std::vector<std::vector<long_text>> texts_of(bench::cost_batches const& batches) {
  std::vector<std::vector<long_text>> texts;
  for (auto const& costs : batches) {
    texts.emplace_back();
    for (std::int64_t const cost : costs) texts.back().push_back({length_of(cost), cost % 5});
  }
  return texts;
}

constexpr auto images_and_tokens = omnibal::demand_of(&long_text::images, &long_text::tokens);

std::int64_t square(long_text const& text) { return text.tokens * text.tokens; }

/// Caps that leave two per cent of the tokens free on the fastest parts.
omnibal::resources<2> capacity_with_room(std::vector<long_text> const& text,
                                         std::vector<double> const& speeds) {
  std::int64_t tokens = 0;
  std::int64_t longest = 0;
  for (long_text const& one : text) {
    tokens += one.tokens;
    longest = std::max(longest, one.tokens);
  }
  auto const mean = static_cast<std::int64_t>(static_cast<double>(tokens) *
                                              *std::max_element(speeds.begin(), speeds.end()) /
                                              std::accumulate(speeds.begin(), speeds.end(), 0.0));
  return {static_cast<std::int64_t>(4 * text.size() / speeds.size()),
          std::max(longest, mean + mean / 50)};
}

/// Half of the parts have the speed `fast`, the others 1.
void balance_with_room(benchmark::State& state, double fast) {
  bench::cost_batches batches(bench::size_of(state));
  auto const parts = static_cast<std::size_t>(state.range(1));
  auto const texts = texts_of(batches);
  std::vector<omnibal::resources<2>> capacities;
  std::vector<double> speeds(parts, 1.0);
  for (std::size_t part = 0; part < parts; part += 2) speeds[part] = fast;
  omnibal::balance_under_capacity_options const options{.speeds = speeds};
  double worst = 0;
  for (auto const& text : texts) {
    capacities.push_back(capacity_with_room(text, speeds));
    auto const result = omnibal::balance_under_capacity(text, parts, square, images_and_tokens,
                                                        capacities.back(), options);
    bool const is_found = result.status == omnibal::solve_status::solved;
    worst = std::max(worst, is_found ? static_cast<double>(result.largest_load) /
                                           static_cast<double>(result.lower_bound)
                                     : 1e9);
  }
  std::size_t next = 0;
  bench::compare(
      state, bench::standard_sort(batches),
      [&] {
        next = (next + 1) % texts.size();
        return omnibal::balance_under_capacity(texts[next], parts, square, images_and_tokens,
                                               capacities[next], options)
            .parts.item_count();
      },
      [](std::size_t count) { return count; });
  state.counters["load_over_bound"] = worst;
}

void balance_under_capacity(benchmark::State& state) { balance_with_room(state, 1.0); }
void balance_under_capacity_with_speeds(benchmark::State& state) { balance_with_room(state, 1.5); }

void balance_under_capacity_with_equal_speeds(benchmark::State& state) {
  struct texts_with_capacity {
    std::vector<long_text> texts;
    omnibal::resources<2> capacity;
  };
  auto const parts = static_cast<std::size_t>(state.range(1));
  std::vector<texts_with_capacity> batches;
  for (auto const& texts : texts_of(bench::cost_batches(bench::size_of(state)))) {
    batches.push_back({texts, capacity_with_room(texts, std::vector<double>(parts, 1.0))});
  }
  bench::compare_equal_speeds(state, "balance_under_capacity", batches,
                              [&](texts_with_capacity const& batch, auto const& speeds) {
                                return omnibal::balance_under_capacity(
                                    batch.texts, parts, square, images_and_tokens, batch.capacity,
                                    {.speeds = speeds});
                              });
}

/// What a micro-batch of 131072 tokens holds.
constexpr omnibal::resources<2> micro_batch_capacity{1'000'000, 131072};

void micro_batches(benchmark::State& state) {
  bench::cost_batches batches(bench::size_of(state));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  auto const texts = texts_of(batches);
  double above = 0;
  double waiting = 0;
  for (auto const& text : texts) {
    auto const result =
        omnibal::micro_batches(text, ranks, square, images_and_tokens, micro_batch_capacity);
    std::size_t const fewest =
        omnibal::packing_bound(text, images_and_tokens, micro_batch_capacity);
    above = std::max(above, static_cast<double>(result.size() - (fewest + ranks - 1) / ranks));
    double longest = 0;
    double bound = 0;
    double sum = 0;
    for (long_text const& one : text) {
      sum += static_cast<double>(square(one));
      bound = std::max(bound, static_cast<double>(square(one)));
    }
    bound = std::max(bound, sum / static_cast<double>(ranks));
    for (std::size_t m = 0; m != result.size(); ++m) {
      double largest = 0;
      for (std::size_t r = 0; r != ranks; ++r) {
        double load = 0;
        for (std::uint32_t const item : result(m, r)) {
          load += static_cast<double>(square(text[item]));
        }
        largest = std::max(largest, load);
      }
      longest += largest;
    }
    waiting = std::max(waiting, longest / bound);
  }
  std::size_t next = 0;
  bench::compare(
      state, bench::standard_sort(batches),
      [&] {
        next = (next + 1) % texts.size();
        omnibal::micro_batch_steps const made = omnibal::micro_batches(
            texts[next], ranks, square, images_and_tokens, micro_batch_capacity);
        return made.cells().item_count();
      },
      [](std::size_t count) { return count; });
  state.counters["steps_above_bound"] = above;
  state.counters["time_over_bound"] = waiting;
}

void micro_batches_with_equal_speeds(benchmark::State& state) {
  auto const batches = texts_of(bench::cost_batches(bench::size_of(state)));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  bench::compare_equal_speeds(
      state, "micro_batches", batches, [&](auto const& texts, auto const& speeds) {
        return omnibal::micro_batches(texts, ranks, square, images_and_tokens, micro_batch_capacity,
                                      {.speeds = speeds});
      });
}

/// Micro-batches of a whole data set on 8 ranks, without the samples that exceed the capacity.
template <class Demand, class Capacity>
void micro_batches_of_all(benchmark::State& state, bench::workload const& work,
                          Demand const& demand, Capacity const& capacity, double max_seconds) {
  constexpr std::size_t ranks = 8;
  auto samples = work.make(bench::size_of(state));
  std::erase_if(samples, [&](bench::sample const& one) { return !demand(one).fits(capacity); });
  auto const cost = [](bench::sample const& one) { return one.tokens * one.tokens; };
  std::size_t const fewest = omnibal::packing_bound(samples, demand, capacity);
  std::vector<double> seconds;
  std::size_t steps = 0;
  for (auto _ : state) {
    double const begin = bench::processor_seconds();
    steps = omnibal::micro_batches(samples, ranks, cost, demand, capacity).size();
    seconds.push_back(bench::processor_seconds() - begin);
    state.SetIterationTime(seconds.back());
  }
  state.counters["seconds"] = bench::median(std::move(seconds));
  state.counters["steps"] = static_cast<double>(steps);
  state.counters["steps_above_bound"] = static_cast<double>(steps - (fewest + ranks - 1) / ranks);
  if (bench::size_of(state) < 300'000) return;
  std::string const kinds = capacity.size() == 1 ? " of one resource, " : " of two resources, ";
  bench::make_promises(state, {{"micro_batches: seconds, " + std::to_string(bench::size_of(state)) +
                                    kinds + std::string(work.name),
                                "seconds", max_seconds}});
}

void micro_batches_of_pairs(benchmark::State& state, bench::workload const& work) {
  micro_batches_of_all(state, work, bench::images_and_tokens, work.capacity(), 2);
}

void micro_batches_of_tokens(benchmark::State& state, bench::workload const& work) {
  micro_batches_of_all(state, work, omnibal::demand_of(&bench::sample::tokens),
                       omnibal::resources{work.tokens}, 1);
}

void balance_set_cost(benchmark::State& state) {
  bench::compare_with_sort(state, [](costs_type const& costs, std::size_t parts) {
    return omnibal::balance_set_cost(costs, parts, omnibal::padded_batch{length_of});
  });
}

void home_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "parts", "tolerated"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  for (std::int64_t const tolerated : {0, 1}) {
    made->Args({4096, 64, tolerated})->Args({10'000, 64, tolerated});
  }
  made->Args({65536, 512, 1})->Args({65536, 4096, 1});
}

BENCHMARK(rebalance)->Apply(home_sizes);
BENCHMARK(rebalance_with_equal_speeds)->Apply(bench::balance_sizes);
BENCHMARK(rebalance_kinds)
    ->ArgNames({"n", "parts"})
    ->Args({4096, 64})
    ->Args({16384, 256})
    ->Args({65536, 1024})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(balance_under_capacity)->Apply(bench::balance_sizes);
BENCHMARK(balance_under_capacity_with_speeds)->Apply(bench::balance_sizes);
BENCHMARK(balance_under_capacity_with_equal_speeds)->Apply(bench::balance_sizes);
BENCHMARK(micro_batches)->Apply(bench::balance_sizes);
BENCHMARK(micro_batches_with_equal_speeds)->Apply(bench::balance_sizes);
BENCHMARK(balance_set_cost)->Apply(bench::balance_sizes);

void sizes_of_pairs(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->Arg(10'000)->Arg(100'000)->Arg(300'000)->UseManualTime();
}
void sizes_of_tokens(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->UseManualTime();
}

BENCHMARK_CAPTURE(micro_batches_of_pairs, mix_9_4096, bench::mix_9_4096)->Apply(sizes_of_pairs);
BENCHMARK_CAPTURE(micro_batches_of_pairs, real_18_6016, bench::real_18_6016)->Apply(sizes_of_pairs);
BENCHMARK_CAPTURE(micro_batches_of_pairs, independent_9_4096, bench::independent_9_4096)
    ->Apply(sizes_of_pairs);
BENCHMARK_CAPTURE(micro_batches_of_pairs, independent_30_8192, bench::independent_30_8192)
    ->Apply(sizes_of_pairs);
BENCHMARK_CAPTURE(micro_batches_of_tokens, mix_4096, bench::mix_9_4096)->Apply(sizes_of_tokens);
BENCHMARK_CAPTURE(micro_batches_of_tokens, real_6016, bench::real_18_6016)->Apply(sizes_of_tokens);
BENCHMARK_CAPTURE(micro_batches_of_tokens, long_131072, bench::long_131072)->Apply(sizes_of_tokens);

}  // namespace
