/// \file
/// Plans for a global batch with a heavy tail: the cost of a sample is the square of its length,
/// its bytes are twice the length. The yardstick is `std::sort` of the costs.

#include "balancing.hpp"
#include "compare.hpp"

#include <omnibal/balance/keep_home.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/exchange/make_plan.hpp>

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

costs_type bytes_of(costs_type const& costs) {
  costs_type bytes;
  for (std::int64_t const cost : costs) {
    bytes.push_back(2 * static_cast<std::int64_t>(std::sqrt(static_cast<double>(cost))));
  }
  return bytes;
}

/// Times plans; `moved_share` is the share of the bytes that changes its rank, `node_share` that
/// which leaves its node, in the mean over the batches.
template <class Balance>
void plan_batches(benchmark::State& state, omnibal::exchange_options const& options,
                  Balance const& balance) {
  bench::cost_batches batches(bench::size_of(state));
  auto const ranks = static_cast<std::size_t>(state.range(1));
  auto const offsets = even_offsets(bench::size_of(state), ranks);
  omnibal::plan_workspace<1> workspace;
  costs_type bytes;
  auto const plan = [&]() -> omnibal::exchange_plan const& {
    return omnibal::make_plan(offsets, batches.current(), bytes, options, balance, workspace);
  };
  struct turn {
    bench::standard_sort sort;
    bench::cost_batches& batches;
    costs_type& bytes;
    void prepare() {
      sort.prepare();
      bytes = bytes_of(batches.current());
    }
    void operator()() { sort(); }
    [[nodiscard]] std::size_t items() const { return sort.items(); }
  };
  bench::compare(
      state, turn{bench::standard_sort(batches), batches, bytes}, [&] { return plan().digest(); },
      [&](std::uint64_t) { return bench::size_of(state); });
  double moved = 0;
  double across = 0;
  double all = 0;
  for (auto const& costs : batches) {
    bytes = bytes_of(costs);
    auto const& made = omnibal::make_plan(offsets, costs, bytes, options, balance, workspace);
    moved += static_cast<double>(made.moved_bytes());
    across += static_cast<double>(made.moved_bytes_across_nodes());
    all += static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
  }
  state.counters["moved_share"] = moved / all;
  state.counters["node_share"] = across / all;
}

void plan_keep_home(benchmark::State& state) {
  plan_batches(state, {.ranks_per_node = 8}, omnibal::keep_home);
  if (bench::size_of(state) == bench::size_of_test_runs) return;
  std::string const at = ", " + std::to_string(state.range(0)) + " samples on " +
                         std::to_string(state.range(1)) + " ranks";
  // With more ranks more of them have more than they should, and exchange samples.
  double const most_ratio = state.range(1) < 1000 ? 3.0 : state.range(1) < 4000 ? 6.5 : 9.5;
  bench::make_promises(state,
                       {{"make_plan / std::sort" + at, "ratio", most_ratio},
                        {"make_plan: share of the bytes that move" + at, "moved_share", 0.1}});
}

void plan_keep_home_without_nodes(benchmark::State& state) {
  plan_batches(state, {}, omnibal::keep_home);
}

void plan_lpt(benchmark::State& state) { plan_batches(state, {.ranks_per_node = 8}, omnibal::lpt); }

void plan_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "ranks"})->UseManualTime()->Unit(benchmark::kMillisecond);
  made->Args({4096, 64})->Args({10'000, 100})->Args({16'384, 512})->Args({81'920, 2560});
  made->Args({131'072, 4096});
}

BENCHMARK(plan_keep_home)->Apply(plan_sizes);
BENCHMARK(plan_keep_home_without_nodes)->Apply(plan_sizes);
BENCHMARK(plan_lpt)->Apply(plan_sizes);

}  // namespace
