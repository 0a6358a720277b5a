// SPDX-License-Identifier: Apache-2.0
/// \file
/// The balancers on costs with a heavy tail. The yardstick is `std::sort` of the costs, which
/// balances nothing yet.

#include "balancing.hpp"
#include "equal_speeds.hpp"

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using costs_type = std::vector<std::int64_t>;

void lpt(benchmark::State& state) {
  bench::compare_with_sort(state, omnibal::lpt);
  bench::promise_balance(state, "lpt", state.range(0) == 4096 ? 1.2 : 2.0, 1.001);
}

void lpt_equal_counts(benchmark::State& state) {
  std::size_t const parts = static_cast<std::size_t>(state.range(1));
  auto const count = bench::size_of(state) % parts == 0 ? omnibal::count_policy::equal
                                                        : omnibal::count_policy::at_most_one_apart;
  bench::compare_with_sort(state, [&](costs_type const& costs, std::size_t k) {
    return omnibal::lpt(costs, k, std::identity{}, {.count = count});
  });
  bench::promise_balance(state, "lpt with equal counts", state.range(0) == 4096 ? 2.4 : 4.0, 1.001);
}

void lpt_of_two_kinds(benchmark::State& state) {
  bench::compare_with_sort(state, [](costs_type const& costs, std::size_t parts) {
    auto const vision_and_text = [](std::int64_t cost) {
      return omnibal::resources{cost, cost % 1000};
    };
    return omnibal::lpt(costs, parts, vision_and_text);
  });
}

void karmarkar_karp(benchmark::State& state) {
  bench::compare_with_sort(state, omnibal::karmarkar_karp);
  bench::promise_balance(state, "karmarkar_karp", 2.0, 1.001);
}

void deal(benchmark::State& state) { bench::compare_with_sort(state, omnibal::deal); }

void deal_and_refine(benchmark::State& state) {
  bench::compare_with_sort(state, [](costs_type const& costs, std::size_t parts) {
    return omnibal::refine_parts(costs, omnibal::deal(costs, parts), std::identity{},
                                 {.max_overload = 1e-4, .counts = omnibal::part_counts::kept});
  });
}

/// Speeds of parts: half of them 1.5, half 1.
std::vector<double> unlike_speeds(std::size_t parts) {
  std::vector<double> speeds(parts, 1.0);
  for (std::size_t part = 0; part < parts; part += 2) speeds[part] = 1.5;
  return speeds;
}

/// The largest load over speed, over the mean or the largest cost over the largest speed.
double time_over_bound(omnibal::grouping const& parts, costs_type const& costs,
                       std::vector<double> const& speeds) {
  double largest = 0;
  double sum = 0;
  auto const loads = omnibal::group_loads(parts, costs, std::identity{});
  for (std::size_t part = 0; part != loads.size(); ++part) {
    auto const load = static_cast<double>(loads[part][0]);
    largest = std::max(largest, load / speeds[part]);
    sum += load;
  }
  double const mean = sum / std::accumulate(speeds.begin(), speeds.end(), 0.0);
  auto const largest_cost = static_cast<double>(*std::max_element(costs.begin(), costs.end()));
  return largest / std::max(mean, largest_cost / *std::max_element(speeds.begin(), speeds.end()));
}

/// The yardstick of a balancer with speeds: the same balancer without.
template <class Balancer>
class without_speeds {
 public:
  without_speeds(Balancer const& balancer, bench::cost_batches& batches, std::size_t parts)
      : balancer_(&balancer), batches_(&batches), parts_(parts) {}

  void prepare() { batches_->turn(); }
  void operator()() const {
    auto const parts = (*balancer_)(batches_->current(), parts_);
    benchmark::DoNotOptimize(parts.items().data());
  }
  [[nodiscard]] std::size_t items() const { return batches_->current().size(); }

 private:
  Balancer const* balancer_;
  bench::cost_batches* batches_;
  std::size_t parts_;
};

/// A balancer with speeds.
template <class Balancer>
auto with_speeds(Balancer const& balancer, std::vector<double> const& speeds) {
  return [&](costs_type const& costs) {
    return balancer(costs, speeds.size(), std::identity{}, {.speeds = speeds});
  };
}

/// The sizes in the name of a promise.
std::string at_sizes(benchmark::State const& state) {
  return ", " + std::to_string(state.range(0)) + " samples on " + std::to_string(state.range(1)) +
         " parts";
}

/// Compares a balancer with different speeds with the same one without, by time and by the largest
/// load over speed.
template <class Balancer>
void compare_speeds(benchmark::State& state, Balancer const& balancer, std::string const& name,
                    double max_ratio, double max_load) {
  bench::cost_batches batches(bench::size_of(state));
  auto const parts = static_cast<std::size_t>(state.range(1));
  auto const speeds = unlike_speeds(parts);
  auto const balance = with_speeds(balancer, speeds);
  bench::compare(
      state, without_speeds(balancer, batches, parts), [&] { return balance(batches.current()); },
      [&](auto const&) { return batches.current().size(); });
  double worst = 0;
  double least_without = 2;
  for (auto const& costs : batches) {
    worst = std::max(worst, time_over_bound(balance(costs), costs, speeds));
    least_without = std::min(least_without, time_over_bound(balancer(costs, parts), costs, speeds));
  }
  state.counters["load_over_bound"] = worst;
  state.counters["without_speeds"] = least_without;
  if (bench::size_of(state) == bench::size_of_test_runs) return;
  std::string const at = at_sizes(state);
  bench::make_promises(state, {{name + " with speeds / " + name + at, "ratio", max_ratio},
                               {name + " with speeds: largest load over speed / bound" + at,
                                "load_over_bound", max_load}});
}

/// Compares a balancer with equal speeds with the same one without speeds.
template <class Balancer>
void compare_balancer_with_equal_speeds(benchmark::State& state, Balancer const& balancer,
                                        std::string const& name) {
  bench::cost_batches const batches(bench::size_of(state));
  auto const parts = static_cast<std::size_t>(state.range(1));
  bench::compare_equal_speeds(state, name, batches, [&](auto const& costs, auto const& speeds) {
    return balancer(costs, parts, std::identity{}, {.speeds = speeds});
  });
}

void lpt_with_speeds(benchmark::State& state) {
  compare_speeds(state, omnibal::lpt, "lpt", 3.0, 1.001);
}

void karmarkar_karp_with_speeds(benchmark::State& state) {
  compare_speeds(state, omnibal::karmarkar_karp, "karmarkar_karp", 3.0, 1.001);
}

void deal_with_speeds(benchmark::State& state) {
  compare_speeds(state, omnibal::deal, "deal", 3.0, 2.0);
}

void lpt_with_equal_speeds(benchmark::State& state) {
  compare_balancer_with_equal_speeds(state, omnibal::lpt, "lpt");
}

void karmarkar_karp_with_equal_speeds(benchmark::State& state) {
  compare_balancer_with_equal_speeds(state, omnibal::karmarkar_karp, "karmarkar_karp");
}

void deal_with_equal_speeds(benchmark::State& state) {
  compare_balancer_with_equal_speeds(state, omnibal::deal, "deal");
}

/// The search of few samples ends with a proof, the search of many samples at the limit.
void balance_optimally_with_equal_speeds(benchmark::State& state) {
  bench::cost_batches const batches(bench::size_of(state));
  auto const parts = static_cast<std::size_t>(state.range(1));
  bench::compare_equal_speeds(
      state, "balance_optimally", batches, [&](auto const& costs, auto const& speeds) {
        return omnibal::balance_optimally(costs, parts, std::identity{},
                                          {.nodes = 100'000, .speeds = speeds});
      });
}

void refine_parts_with_equal_speeds(benchmark::State& state) {
  struct dealt_costs {
    costs_type costs;
    omnibal::grouping parts;
  };
  std::vector<dealt_costs> batches;
  auto const parts = static_cast<std::size_t>(state.range(1));
  for (auto const& costs : bench::cost_batches(bench::size_of(state))) {
    batches.push_back({costs, omnibal::deal(costs, parts)});
  }
  bench::compare_equal_speeds(
      state, "refine_parts", batches, [](dealt_costs const& batch, auto const& speeds) {
        return omnibal::refine_parts(batch.costs, batch.parts, std::identity{},
                                     {.max_overload = 1e-4, .speeds = speeds});
      });
}

BENCHMARK(lpt)->Apply(bench::balance_sizes);
BENCHMARK(lpt_equal_counts)->Apply(bench::balance_sizes);
BENCHMARK(lpt_with_speeds)->Apply(bench::balance_sizes);
BENCHMARK(lpt_with_equal_speeds)->Apply(bench::balance_sizes);
BENCHMARK(lpt_of_two_kinds)->Apply(bench::balance_sizes);
BENCHMARK(karmarkar_karp)->Apply(bench::balance_sizes);
BENCHMARK(karmarkar_karp_with_speeds)->Apply(bench::balance_sizes);
BENCHMARK(karmarkar_karp_with_equal_speeds)->Apply(bench::balance_sizes);
BENCHMARK(deal)->Apply(bench::balance_sizes);
BENCHMARK(deal_with_speeds)->Apply(bench::balance_sizes);
BENCHMARK(deal_with_equal_speeds)->Apply(bench::balance_sizes);
BENCHMARK(deal_and_refine)->Apply(bench::balance_sizes);
BENCHMARK(refine_parts_with_equal_speeds)->Apply(bench::balance_sizes);
BENCHMARK(balance_optimally_with_equal_speeds)
    ->Apply(bench::balance_sizes)
    ->Args({16, 4})
    ->Args({24, 8});

}  // namespace
