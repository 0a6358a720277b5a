// SPDX-License-Identifier: Apache-2.0
/// \file
/// Foreign copies of experts for a batch: their number, the largest rank over the mean, the lower
/// bound, the share of proofs and time, beside a greedy plan that spills to the least loaded ranks.

#include "draw_normal.hpp"

#include <omnibal/experts/spill_experts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

constexpr std::size_t experts = 128;
constexpr std::size_t batches = 50;
constexpr double tokens_of_rank = 32768;

using tokens_list = std::vector<std::int64_t>;

/// Returns batches with 32,768 tokens on a rank. *Bursts* multiply one log-normal load in 50 by 8;
/// Zipf loads are the inverse of the place of an expert in a random order.
std::vector<tokens_list> make_batches(std::string const& family, std::size_t ranks) {
  omnibal::rng::engine random(1);
  std::vector<tokens_list> result;
  for (std::size_t b = 0; b != batches; ++b) {
    std::vector<double> loads;
    for (std::size_t e = 0; e != experts; ++e) {
      double const drawn = bench::draw_normal(random);
      if (family == "zipf") {
        loads.push_back(1 / (1 + 0.5 * std::erfc(drawn / std::sqrt(2.0)) * experts));
      } else if (family == "bursts") {
        loads.push_back(std::exp(0.7 * drawn) * (omnibal::rng::below(random, 50) == 0 ? 8 : 1));
      } else {
        loads.push_back(std::exp((family == "sigma1" ? 1.0 : 1.5) * drawn));
      }
    }
    double const sum = std::accumulate(loads.begin(), loads.end(), 0.0);
    tokens_list tokens;
    for (double const load : loads) {
      double const share = load / sum * static_cast<double>(ranks);
      tokens.push_back(static_cast<std::int64_t>(share * tokens_of_rank));
    }
    result.push_back(std::move(tokens));
  }
  return result;
}

std::vector<std::uint32_t> make_home(std::size_t ranks) {
  std::vector<std::uint32_t> result;
  for (std::size_t e = 0; e != experts; ++e) {
    result.push_back(static_cast<std::uint32_t>(e * ranks / experts));
  }
  return result;
}

struct outcome {
  double copies = 0;
  double largest = 0;
};

/// Plans as LLEP is described: experts from the most tokens stay at home up to the cap, which also
/// counts the experts there that come later; the rest goes to the least loaded ranks, to each up to
/// the cap.
outcome spill_to_least_loaded(tokens_list const& tokens, std::vector<std::uint32_t> const& home,
                              std::size_t ranks, double max_overload) {
  tokens_list loads(ranks, 0);
  std::int64_t total = 0;
  for (std::size_t e = 0; e != experts; ++e) {
    loads[home[e]] += tokens[e];
    total += tokens[e];
  }
  double const mean = static_cast<double>(total) / static_cast<double>(ranks);
  auto const cap = static_cast<std::int64_t>(std::ceil(mean) * (1 + max_overload));
  std::vector<std::size_t> order(experts);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return tokens[left] > tokens[right];
  });
  outcome result;
  for (std::size_t const e : order) {
    std::int64_t left = std::min(tokens[e], std::max<std::int64_t>(loads[home[e]] - cap, 0));
    loads[home[e]] -= left;
    while (left > 0) {
      auto const rank =
          static_cast<std::size_t>(std::min_element(loads.begin(), loads.end()) - loads.begin());
      std::int64_t const sent = std::min(left, std::max<std::int64_t>(cap - loads[rank], 1));
      loads[rank] += sent;
      left -= sent;
      ++result.copies;
    }
  }
  result.largest = static_cast<double>(*std::max_element(loads.begin(), loads.end())) / mean;
  return result;
}

void greedy(benchmark::State& state, std::string const& family, std::size_t ranks,
            double max_overload) {
  auto const all = make_batches(family, ranks);
  auto const home = make_home(ranks);
  outcome sum;
  for (auto const& tokens : all) {
    auto const found = spill_to_least_loaded(tokens, home, ranks, max_overload);
    sum.copies += found.copies;
    sum.largest += found.largest;
  }
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        spill_to_least_loaded(all[next++ % batches], home, ranks, max_overload));
  }
  state.counters["copies"] = sum.copies / batches;
  state.counters["max_over_mean"] = sum.largest / batches;
}

void ours(benchmark::State& state, std::string const& family, std::size_t ranks,
          omnibal::spill_experts_options const& options) {
  auto const all = make_batches(family, ranks);
  auto const home = make_home(ranks);
  omnibal::spill_experts_workspace workspace;
  double copies = 0;
  double bound = 0;
  double proven = 0;
  double solved = 0;
  double largest = 0;
  for (auto const& tokens : all) {
    auto const& plan = omnibal::spill_experts(tokens, home, ranks, options, workspace);
    auto const sum = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
    copies += static_cast<double>(plan.copies.size());
    bound += static_cast<double>(plan.fewest_copies);
    proven += plan.proven ? 1 : 0;
    solved += plan.status == omnibal::solve_status::solved ? 1 : 0;
    largest +=
        static_cast<double>(plan.largest) / static_cast<double>(sum) * static_cast<double>(ranks);
  }
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        omnibal::spill_experts(all[next++ % batches], home, ranks, options, workspace));
  }
  state.counters["copies"] = copies / batches;
  state.counters["bound"] = bound / batches;
  state.counters["proven"] = proven / batches;
  state.counters["solved"] = solved / batches;
  state.counters["max_over_mean"] = largest / batches;
}

[[maybe_unused]] bool const registered = [] {
  for (std::string const family : {"sigma1", "sigma1.5", "zipf", "bursts"}) {
    for (std::size_t const ranks : {32u, 64u}) {
      for (double const max_overload : {0.1, 0.02, 0.0}) {
        auto const add = [&](std::string const& method, auto const& run) {
          auto const name = "spill_experts/" + family + "/" + std::to_string(ranks) + "/" +
                            std::to_string(std::lround(100 * max_overload)) + "%/" + method;
          benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
            run(state, family, ranks);
          })->Unit(benchmark::kMicrosecond);
        };
        add("least_loaded", [=](auto& state, auto const& loads, std::size_t count) {
          greedy(state, loads, count, max_overload);
        });
        for (auto const effort :
             {omnibal::effort::fast, omnibal::effort::normal, omnibal::effort::thorough}) {
          omnibal::spill_experts_options options;
          options.max_overload = max_overload;
          options.effort = effort;
          std::string const level = effort == omnibal::effort::fast     ? "fast"
                                    : effort == omnibal::effort::normal ? "normal"
                                                                        : "thorough";
          add(level, [=](auto& state, auto const& loads, std::size_t count) {
            ours(state, loads, count, options);
          });
        }
        for (std::size_t const slots : {1u, 2u}) {
          omnibal::spill_experts_options options;
          options.max_overload = max_overload;
          options.slots = slots;
          add("slots:" + std::to_string(slots),
              [=](auto& state, auto const& loads, std::size_t count) {
                ours(state, loads, count, options);
              });
        }
      }
    }
  }
  return true;
}();

}  // namespace
