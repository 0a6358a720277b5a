// SPDX-License-Identifier: Apache-2.0
/// \file
/// Placements of copies of experts: the heaviest rank over the mean, on average and at worst, the
/// share of moved copies, and time, with and without an old placement, beside greedy copies that
/// are packed in equal numbers.

#include "draw_normal.hpp"
#include "executors.hpp"

#include <omnibal/experts/place_experts.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

constexpr std::size_t experts = 256;
constexpr std::size_t layers = 58;

struct sizes {
  std::size_t ranks;
  std::size_t slots;
};

/// The loads of two steps. Those of the second step have a correlation of 0.9 with the first one,
/// except for bursts.
struct drifting_loads {
  std::vector<double> before;
  std::vector<double> after;
};

drifting_loads make_loads(std::string const& family) {
  omnibal::rng::engine random(1);
  drifting_loads result;
  for (std::size_t i = 0; i != layers * experts; ++i) {
    double const first = bench::draw_normal(random);
    double const second = 0.9 * first + std::sqrt(0.19) * bench::draw_normal(random);
    if (family == "zipf") {
      // Uniform ranks of the two numbers among the experts.
      auto const weight = [](double normal) {
        double const place = 0.5 * std::erfc(normal / std::sqrt(2.0));
        return std::floor(1e4 / (1 + place * experts));
      };
      result.before.push_back(weight(first));
      result.after.push_back(weight(second));
      continue;
    }
    double const load = std::floor(1000 * std::exp(0.7 * first));
    result.before.push_back(load);
    if (family == "bursts") {
      result.after.push_back(omnibal::rng::below(random, 50) == 0 ? 8 * load : load);
    } else {
      result.after.push_back(std::floor(1000 * std::exp(0.7 * second)));
    }
  }
  return result;
}

/// Returns the slots of a layer: each further copy goes to the expert with the largest share, then
/// the copies, from the largest, to the lightest rank with a free slot.
std::vector<std::uint32_t> pack_greedily(std::span<double const> loads, sizes const& size) {
  std::vector<double> copies(loads.size(), 1);
  std::vector<std::uint32_t> replicas(loads.size());
  std::iota(replicas.begin(), replicas.end(), 0u);
  while (replicas.size() != size.ranks * size.slots) {
    std::uint32_t best = 0;
    for (std::uint32_t e = 1; e != loads.size(); ++e) {
      if (loads[e] / copies[e] > loads[best] / copies[best]) best = e;
    }
    ++copies[best];
    replicas.push_back(best);
  }
  std::stable_sort(replicas.begin(), replicas.end(), [&](std::uint32_t left, std::uint32_t right) {
    return loads[left] / copies[left] > loads[right] / copies[right];
  });
  std::vector<double> rank_loads(size.ranks, 0);
  std::vector<std::size_t> used(size.ranks, 0);
  std::vector<std::uint32_t> result(size.ranks * size.slots);
  for (std::uint32_t const expert : replicas) {
    std::size_t best = size.ranks;
    for (std::size_t r = 0; r != size.ranks; ++r) {
      if (used[r] == size.slots) continue;
      if (best == size.ranks || rank_loads[r] < rank_loads[best]) best = r;
    }
    result[best * size.slots + used[best]++] = expert;
    rank_loads[best] += loads[expert] / copies[expert];
  }
  return result;
}

/// Reports the heaviest rank over the mean, on average over the layers and at worst, and the share
/// of moved copies.
void report(benchmark::State& state, std::span<double const> loads, sizes const& size,
            std::span<std::uint32_t const> slots, std::span<std::uint32_t const> old) {
  double sum = 0;
  double worst = 0;
  std::size_t moved = 0;
  std::size_t const count = size.ranks * size.slots;
  for (std::size_t l = 0; l != layers; ++l) {
    auto const own = loads.subspan(l * experts, experts);
    auto const placed = slots.subspan(l * count, count);
    std::vector<double> copies(experts, 0);
    for (std::uint32_t const expert : placed) ++copies[expert];
    double largest = 0;
    for (std::size_t first = 0; first != count; first += size.slots) {
      double load = 0;
      for (std::uint32_t const expert : placed.subspan(first, size.slots)) {
        load += own[expert] / copies[expert];
        if (old.empty()) continue;
        auto const had = old.subspan(l * count + first, size.slots);
        if (std::find(had.begin(), had.end(), expert) == had.end()) ++moved;
      }
      largest = std::max(largest, load);
    }
    double const mean =
        std::accumulate(own.begin(), own.end(), 0.0) / static_cast<double>(size.ranks);
    sum += largest / mean;
    worst = std::max(worst, largest / mean);
  }
  state.counters["max_over_mean"] = sum / layers;
  state.counters["worst"] = worst;
  state.counters["moved"] = static_cast<double>(moved) / static_cast<double>(layers * count);
}

void ours(benchmark::State& state, drifting_loads const& loads, sizes const& size,
          omnibal::effort effort, double budget, double max_gap = 0.001) {
  omnibal::place_experts_options options;
  options.layers = layers;
  auto const old = omnibal::place_experts(loads.before, size.slots, size.ranks, options);
  options.effort = effort;
  options.max_gap = max_gap;
  if (budget > 0) {
    options.old = old.experts;
    options.max_moved = static_cast<std::size_t>(budget * static_cast<double>(old.experts.size()));
  }
  omnibal::expert_placement found;
  for (auto _ : state) {
    found = omnibal::place_experts(loads.after, size.slots, size.ranks, options);
  }
  report(state, loads.after, size, found.experts, old.experts);
}

/// The call of `ours` with `effort::normal`, serially and on two threads.
void on_two_threads(benchmark::State& state, drifting_loads const& loads, sizes const& size,
                    double budget, double max_gap) {
  omnibal::place_experts_options options{.layers = layers};
  auto const old = omnibal::place_experts(loads.before, size.slots, size.ranks, options);
  options.max_gap = max_gap;
  if (budget > 0) {
    options.old = old.experts;
    options.max_moved = static_cast<std::size_t>(budget * static_cast<double>(old.experts.size()));
  }
  bench::compare_executors(state, [&](auto const& run) {
    return omnibal::place_experts(loads.after, size.slots, size.ranks, options, run);
  });
}

void greedy(benchmark::State& state, drifting_loads const& loads, sizes const& size) {
  auto const place = [&](std::vector<double> const& all) {
    std::vector<std::uint32_t> result;
    for (std::size_t l = 0; l != layers; ++l) {
      auto const own = pack_greedily(std::span(all).subspan(l * experts, experts), size);
      result.insert(result.end(), own.begin(), own.end());
    }
    return result;
  };
  auto const old = place(loads.before);
  std::vector<std::uint32_t> found;
  for (auto _ : state) found = place(loads.after);
  report(state, loads.after, size, found, old);
}

[[maybe_unused]] bool const registered = [] {
  for (std::string const family : {"log_normal", "zipf", "bursts"}) {
    for (sizes const size : {sizes{32, 9}, sizes{64, 5}}) {
      auto const add = [&](std::string const& method, auto const& run) {
        auto const name = "place_experts/" + family + "/" + std::to_string(size.ranks) + "x" +
                          std::to_string(size.slots) + "/" + method;
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
          run(state, make_loads(family), size);
        })->Unit(benchmark::kMillisecond);
      };
      add("greedy", greedy);
      add("normal/moved:45/gap:0.0019", [](auto& state, auto const& loads, auto const& own) {
        ours(state, loads, own, omnibal::effort::normal, 0.45, 0.0019);
      });
      for (double const budget : {0.0, 0.2, 0.45}) {
        for (double const max_gap : {0.001, 0.0019}) {
          auto const percent = std::to_string(static_cast<int>(std::lround(100 * budget)));
          auto const name = "executor_place_experts/" + family + "/" + std::to_string(size.ranks) +
                            "x" + std::to_string(size.slots) + "/moved:" + percent +
                            (max_gap > 0.001 ? "/gap:0.0019" : "");
          benchmark::RegisterBenchmark(name.c_str(),
                                       [=](benchmark::State& state) {
                                         on_two_threads(state, make_loads(family), size, budget,
                                                        max_gap);
                                       })
              ->UseManualTime()
              ->Unit(benchmark::kMillisecond);
        }
      }
      for (double const budget : {0.0, 0.05, 0.1, 0.2, 0.45}) {
        for (auto const effort : {omnibal::effort::fast, omnibal::effort::normal}) {
          std::string const level = effort == omnibal::effort::fast ? "fast" : "normal";
          auto const percent = std::to_string(static_cast<int>(std::lround(100 * budget)));
          add(level + (budget > 0 ? "/moved:" + percent : "/fresh"),
              [=](auto& state, auto const& loads, auto const& own) {
                ours(state, loads, own, effort, budget);
              });
        }
      }
    }
  }
  return true;
}();

}  // namespace
