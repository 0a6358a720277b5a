// SPDX-License-Identifier: Apache-2.0
/// \file
/// Splits of a batch over the copies of experts: the largest rank over the mean with an even split
/// and with the best one, on average over 30 batches, and the time of a call with a workspace.

#include "draw_normal.hpp"

#include <omnibal/experts/place_experts.hpp>
#include <omnibal/experts/split_experts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

constexpr std::size_t experts = 256;
constexpr std::size_t batches = 30;

struct sizes {
  std::size_t ranks;
  std::size_t slots;
};

/// A placement for log-normal loads, and tokens that differ from them by about 30 %.
struct placed_batch {
  std::vector<std::uint32_t> placement;
  std::vector<std::int64_t> tokens;
};

std::vector<placed_batch> make_batches(sizes const& size) {
  omnibal::rng::engine random(1);
  std::vector<placed_batch> result;
  for (std::size_t b = 0; b != batches; ++b) {
    std::vector<double> loads;
    placed_batch batch;
    for (std::size_t e = 0; e != experts; ++e) {
      double const load = 1000 * std::exp(0.7 * bench::draw_normal(random));
      loads.push_back(std::floor(load));
      batch.tokens.push_back(
          static_cast<std::int64_t>(load * std::exp(0.3 * bench::draw_normal(random))));
    }
    batch.placement = omnibal::place_experts(loads, size.slots, size.ranks).experts;
    result.push_back(std::move(batch));
  }
  return result;
}

/// Returns the largest rank if each copy gets the same share.
double largest_of_even(placed_batch const& batch, sizes const& size) {
  std::vector<double> copies(experts, 0);
  for (std::uint32_t const expert : batch.placement) ++copies[expert];
  double result = 0;
  for (std::size_t first = 0; first != batch.placement.size(); first += size.slots) {
    double load = 0;
    for (std::size_t s = first; s != first + size.slots; ++s) {
      std::uint32_t const expert = batch.placement[s];
      load += static_cast<double>(batch.tokens[expert]) / copies[expert];
    }
    result = std::max(result, load);
  }
  return result;
}

void split(benchmark::State& state, sizes const& size) {
  auto const all = make_batches(size);
  omnibal::split_experts_workspace workspace;
  double even = 0;
  double best = 0;
  for (auto const& batch : all) {
    auto const sum = std::accumulate(batch.tokens.begin(), batch.tokens.end(), std::int64_t{0});
    double const mean = static_cast<double>(sum) / static_cast<double>(size.ranks);
    auto const& found =
        omnibal::split_experts(batch.tokens, batch.placement, size.ranks, workspace);
    even += largest_of_even(batch, size) / mean;
    best += static_cast<double>(found.largest) / mean;
  }
  std::size_t next = 0;
  for (auto _ : state) {
    auto const& batch = all[next++ % batches];
    benchmark::DoNotOptimize(
        omnibal::split_experts(batch.tokens, batch.placement, size.ranks, workspace));
  }
  state.counters["even_over_mean"] = even / batches;
  state.counters["best_over_mean"] = best / batches;
}

[[maybe_unused]] bool const registered = [] {
  for (sizes const size : {sizes{8, 34}, sizes{16, 18}, sizes{32, 9}, sizes{64, 5}}) {
    auto const name =
        "split_experts/" + std::to_string(size.ranks) + "x" + std::to_string(size.slots);
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
      split(state, size);
    })->Unit(benchmark::kMicrosecond);
  }
  return true;
}();

}  // namespace
