// SPDX-License-Identifier: Apache-2.0
/// \file
/// Experts after drift, one copy each and eight on each of 32 ranks: exchanges until the largest
/// load exceeds the bound by at most 5 %, by rebalance with kept counts and by refine_parts.

#include "draw_normal.hpp"

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

constexpr std::size_t ranks = 32;
constexpr std::size_t experts_of_rank = 8;
constexpr std::size_t experts = ranks * experts_of_rank;
constexpr std::size_t drifts = 50;
constexpr double max_overload = 0.05;

using load_list = std::vector<std::int64_t>;

struct drifted_experts {
  omnibal::grouping home;
  load_list loads;
};

/// An even placement, and the loads after a drift of the logarithms by AR(0.9).
drifted_experts drifted(double sigma, std::uint64_t seed) {
  omnibal::rng::engine random(seed);
  std::vector<double> levels(experts);
  for (double& level : levels) level = bench::draw_normal(random);
  auto const loads_of = [&] {
    load_list loads;
    for (double const level : levels) {
      loads.push_back(static_cast<std::int64_t>(1e4 * std::exp(sigma * level)));
    }
    return loads;
  };
  omnibal::grouping start;
  for (std::uint32_t expert = 0; expert != experts; ++expert) {
    start.push(expert);
    if ((expert + 1) % experts_of_rank == 0) start.close();
  }
  drifted_experts result;
  result.home = omnibal::refine_parts(loads_of(), start, std::identity{},
                                      {.counts = omnibal::part_counts::kept});
  for (double& level : levels) {
    level = 0.9 * level + std::sqrt(1 - 0.81) * bench::draw_normal(random);
  }
  result.loads = loads_of();
  return result;
}

/// Half of the experts that change their rank.
double exchanges(omnibal::grouping const& home, omnibal::grouping const& parts) {
  double moved = 0;
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    for (std::uint32_t const expert : parts[rank]) {
      moved += std::ranges::count(home[rank], expert) == 0 ? 1 : 0;
    }
  }
  return moved / 2;
}

/// A lower bound: the mean, and the largest expert with the seven smallest ones.
double load_bound(load_list loads) {
  std::sort(loads.begin(), loads.end());
  std::int64_t const total = std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
  std::int64_t const beside = std::accumulate(
      loads.begin(), loads.begin() + static_cast<std::ptrdiff_t>(experts_of_rank - 1),
      std::int64_t{0});
  return std::max(static_cast<double>(total) / ranks, static_cast<double>(loads.back() + beside));
}

double largest_over(omnibal::grouping const& parts, load_list const& loads) {
  double largest = 0;
  for (auto const& part : parts) {
    double load = 0;
    for (std::uint32_t const expert : part) load += static_cast<double>(loads[expert]);
    largest = std::max(largest, load);
  }
  return largest / load_bound(loads);
}

/// The least number of exchanges of two experts that make a rank lighter until its load is at most
/// `limit`: its largest experts for the smallest experts of other ranks.
std::size_t exchanges_of_rank(load_list own, load_list others, double load, double limit) {
  std::sort(own.begin(), own.end(), std::greater{});
  std::sort(others.begin(), others.end());
  std::size_t count = 0;
  for (; load > limit && count != own.size(); ++count) {
    load -= static_cast<double>(own[count] - others[count]);
  }
  return load > limit ? experts : count;
}

/// A lower bound on the number of exchanges of two experts: an exchange makes only one of two ranks
/// lighter. The bound adds the exchanges of all ranks. In the end, each large expert is on some
/// rank: at home, and then it makes its rank no lighter, or on another rank, which gives at best
/// its own largest expert for it.
class exchange_bound {
 public:
  explicit exchange_bound(drifted_experts const& given)
      : given_(given), limit_((1 + max_overload) * load_bound(given.loads)) {
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      counts_.push_back(exchanges_of_rank(own(rank, none), others(rank, none), load(rank), limit_));
    }
  }

  [[nodiscard]] std::size_t least() const {
    constexpr std::size_t large = 6;
    std::size_t result = std::accumulate(counts_.begin(), counts_.end(), std::size_t{0});
    std::size_t const all = result;
    std::vector<std::uint32_t> order(experts);
    std::iota(order.begin(), order.end(), 0u);
    std::partial_sort(order.begin(), order.begin() + large, order.end(), [&](auto a, auto b) {
      return std::pair(given_.loads[b], a) < std::pair(given_.loads[a], b);
    });
    for (std::size_t i = 0; i != large; ++i) result = std::max(result, least_with(order[i], all));
    return result;
  }

 private:
  static constexpr std::uint32_t none = experts;

  /// The bound if the rank of one expert is the best for the bound.
  [[nodiscard]] std::size_t least_with(std::uint32_t expert, std::size_t all) const {
    std::size_t result = experts;
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      load_list mine = own(rank, expert);
      std::size_t count = 0;
      if (mine.size() != experts_of_rank) {
        count =
            all - counts_[rank] + exchanges_of_rank(mine, others(rank, none), load(rank), limit_);
      } else {
        auto const largest = std::max_element(mine.begin(), mine.end());
        auto const with_it = load(rank) + static_cast<double>(given_.loads[expert] - *largest);
        mine.erase(largest);
        std::size_t const home = home_of(expert);
        count = all - counts_[rank] - counts_[home] + std::max<std::size_t>(counts_[home], 1) +
                exchanges_of_rank(mine, others(rank, expert), with_it, limit_);
      }
      result = std::min(result, count);
    }
    return result;
  }

  [[nodiscard]] std::size_t home_of(std::uint32_t expert) const {
    std::size_t rank = 0;
    while (std::ranges::count(given_.home[rank], expert) == 0) ++rank;
    return rank;
  }
  [[nodiscard]] double load(std::size_t rank) const {
    load_list const mine = own(rank, none);
    return static_cast<double>(std::accumulate(mine.begin(), mine.end(), std::int64_t{0}));
  }
  /// The loads of the experts of a rank, or of all other ranks, without one expert.
  [[nodiscard]] load_list own(std::size_t rank, std::uint32_t without) const {
    load_list result;
    for (std::uint32_t const expert : given_.home[rank]) {
      if (expert != without) result.push_back(given_.loads[expert]);
    }
    return result;
  }
  [[nodiscard]] load_list others(std::size_t rank, std::uint32_t without) const {
    load_list result;
    for (std::size_t other = 0; other != ranks; ++other) {
      if (other == rank) continue;
      load_list const mine = own(other, without);
      result.insert(result.end(), mine.begin(), mine.end());
    }
    return result;
  }

  drifted_experts const& given_;
  double limit_;
  std::vector<std::size_t> counts_;
};

template <class Balance>
void swap_experts(benchmark::State& state, double sigma, Balance const& balance) {
  std::vector<drifted_experts> cases;
  double made = 0;
  double least = 0;
  double worst = 0;
  for (std::uint64_t seed = 0; seed != drifts; ++seed) {
    cases.push_back(drifted(sigma, seed));
    auto const parts = balance(cases.back());
    made += exchanges(cases.back().home, parts);
    least += static_cast<double>(exchange_bound(cases.back()).least());
    worst = std::max(worst, largest_over(parts, cases.back().loads));
  }
  std::size_t next = 0;
  for (auto _ : state) {
    next = (next + 1) % drifts;
    benchmark::DoNotOptimize(balance(cases[next]));
  }
  state.counters["exchanges"] = made / drifts;
  state.counters["least_exchanges"] = least / drifts;
  state.counters["worst_load_over_bound"] = worst;
}

auto const by_rebalance = [](drifted_experts const& given) {
  load_list const one(experts, 1);
  return omnibal::rebalance(given.home, given.loads, one,
                            {.max_overload = max_overload, .counts = omnibal::rank_counts::kept});
};
auto const by_refine_parts = [](drifted_experts const& given) {
  return omnibal::refine_parts(
      given.loads, given.home, std::identity{},
      {.max_overload = max_overload, .counts = omnibal::part_counts::kept});
};

[[maybe_unused]] bool const registered = [] {
  for (double const sigma : {0.5, 0.7, 1.0, 1.5}) {
    std::string const of = "/sigma_tenths:" + std::to_string(static_cast<int>(10 * sigma));
    benchmark::RegisterBenchmark(
        ("swap_experts/rebalance" + of).c_str(),
        [=](benchmark::State& state) { swap_experts(state, sigma, by_rebalance); })
        ->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark(
        ("swap_experts/refine_parts" + of).c_str(),
        [=](benchmark::State& state) { swap_experts(state, sigma, by_refine_parts); })
        ->Unit(benchmark::kMicrosecond);
  }
  return true;
}();

}  // namespace
