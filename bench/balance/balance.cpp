// SPDX-License-Identifier: Apache-2.0
/// \file
/// The balancers on costs with a heavy tail. The yardstick is `std::sort` of the costs, which
/// balances nothing yet.

#include "balancing.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
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

BENCHMARK(lpt)->Apply(bench::balance_sizes);
BENCHMARK(lpt_equal_counts)->Apply(bench::balance_sizes);
BENCHMARK(lpt_of_two_kinds)->Apply(bench::balance_sizes);
BENCHMARK(karmarkar_karp)->Apply(bench::balance_sizes);
BENCHMARK(deal)->Apply(bench::balance_sizes);
BENCHMARK(deal_and_refine)->Apply(bench::balance_sizes);

}  // namespace
