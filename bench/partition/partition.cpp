// SPDX-License-Identifier: Apache-2.0
/// \file
/// Cutting chains of layers. The yardsticks are a sum over the first layers where costs add up, and
/// plain dynamic programming where they do not.

#include "compare.hpp"

#include <omnibal/partition/neighbors.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/partition/search_cuts.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

enum class spread {
  narrow,      ///< about equal costs, 20 % more or less
  heavy_tail,  ///< powers of two up to 2^19
};

/// Layers at whose cuts up to 20 % of a mean stage is spent, and one stage with memory for 85 % of
/// the mean number of layers.
struct chain {
  std::vector<std::int64_t> costs;
  std::vector<std::int64_t> sums;
  std::vector<std::int64_t> cut_costs;
  std::size_t narrow_stage;
  std::size_t max_layers;

  chain(std::size_t layers, std::size_t stages, std::uint64_t seed, spread kind = spread::narrow)
      : costs(layers),
        sums(layers + 1, 0),
        cut_costs(layers + 1, 0),
        narrow_stage(stages / 2),
        max_layers(std::max<std::size_t>(1, layers * 85 / (100 * stages))) {
    omnibal::rng::engine random(seed);
    auto const draw = [&](std::uint64_t below) {
      return static_cast<std::int64_t>(omnibal::rng::below(random, below));
    };
    for (std::int64_t& cost : costs) {
      cost = kind == spread::narrow ? 800'000 + draw(400'001) : std::int64_t{1} << draw(20);
    }
    std::partial_sum(costs.begin(), costs.end(), sums.begin() + 1);
    auto const max_at_cut = static_cast<std::uint64_t>(sums.back()) / (5 * stages);
    for (std::size_t i = 1; i != layers; ++i) cut_costs[i] = draw(max_at_cut + 1);
  }

  [[nodiscard]] auto cost() const {
    return [sum = sums.data(), cut = cut_costs.data()](std::size_t, std::size_t first,
                                                       std::size_t last) {
      return sum[last] - sum[first] + cut[first] + cut[last];
    };
  }
  [[nodiscard]] auto fits() const {
    return [narrow = narrow_stage, most = max_layers](std::size_t stage, std::size_t first,
                                                      std::size_t last) {
      return stage != narrow || last - first <= most;
    };
  }
};

/// Chains that take turns, because a processor learns the branches of one that it sees again and
/// again; short ones are timed many at a time.
class chains {
 public:
  explicit chains(benchmark::State const& state, spread kind = spread::narrow)
      : stages_(static_cast<std::size_t>(state.range(1))) {
    std::size_t const layers = bench::size_of(state);
    std::size_t const count = layers > 100'000 ? 1 : 64;
    for (std::size_t i = 0; i != count; ++i) all_.emplace_back(layers, stages_, i, kind);
  }

  [[nodiscard]] std::size_t stages() const { return stages_; }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] auto begin() const { return all_.begin(); }
  [[nodiscard]] auto end() const { return all_.end(); }

 private:
  std::size_t stages_;
  std::vector<chain> all_;
};

/// The sums of the first layers, one addition and one store for each layer. An item is a chain.
class prefix_sums {
 public:
  explicit prefix_sums(chains const& all) : all_(&all), sums_(all.begin()->costs.size()) {}

  void prepare() {}
  void operator()() {
    for (chain const& c : *all_) {
      std::partial_sum(c.costs.begin(), c.costs.end(), sums_.begin());
      benchmark::DoNotOptimize(sums_.data());
      benchmark::ClobberMemory();
    }
  }
  [[nodiscard]] std::size_t items() const { return all_->size(); }

 private:
  chains const* all_;
  std::vector<std::int64_t> sums_;
};

/// Dynamic programming over all ends of all stages, as in a textbook. An item is a chain.
class plain_programming {
 public:
  explicit plain_programming(chains const& all) : all_(&all) {}

  void prepare() {}
  void operator()() {
    chain const& c = *all_->begin();
    std::size_t const layers = c.costs.size();
    auto const cost = c.cost();
    auto const fits = c.fits();
    constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
    best_.assign(layers + 1, never);
    best_[layers] = 0;
    for (std::size_t s = all_->stages(); s-- != 0;) {
      for (std::size_t first = 0; first <= layers; ++first) {
        std::int64_t best = never;
        for (std::size_t last = first + 1; last <= layers; ++last) {
          std::int64_t const larger = std::max(best_[last], cost(s, first, last));
          if (larger < best && fits(s, first, last)) best = larger;
        }
        best_[first] = best;
      }
    }
    benchmark::DoNotOptimize(best_.data());
  }
  [[nodiscard]] std::size_t items() const { return 1; }

 private:
  chains const* all_;
  std::vector<std::int64_t> best_;
};

/// Runs `solve` once for each chain; returns the number of chains.
template <class Solve>
std::size_t for_each_chain(chains const& all, Solve const& solve) {
  for (chain const& c : all) {
    auto const& result = solve(c);
    benchmark::DoNotOptimize(&result);
  }
  return all.size();
}

/// The same several times where the yardstick takes thousands of times as long, which would make a
/// row take minutes.
template <class Solve>
std::size_t for_each_chain_often(chains const& all, Solve const& solve) {
  std::size_t const rounds = all.begin()->costs.size() == 10'000 ? 8 : 1;
  for (std::size_t i = 0; i != rounds; ++i) for_each_chain(all, solve);
  return rounds * all.size();
}

constexpr auto number_of_chains = [](std::size_t count) { return count; };

std::string at(benchmark::State const& state) {
  return ", " + std::to_string(state.range(0)) + " layers on " + std::to_string(state.range(1)) +
         " stages";
}

/// Times `partition_minimax` with a workspace for costs of type `T`.
template <class T, class Cost>
void compare_partition_minimax(benchmark::State& state, std::string const& name, spread kind,
                               Cost const& cost) {
  chains const all(state, kind);
  omnibal::partition_minimax_workspace<T> workspace;
  bench::compare(
      state, prefix_sums(all),
      [&] {
        return for_each_chain(
            all, [&](chain const& c) -> auto const& {
              return omnibal::partition_minimax(c.costs, all.stages(), cost, workspace);
            });
      },
      number_of_chains);
  if (state.range(0) <= 128) {
    bench::make_promises(state, {{name + ": ns" + at(state), "ns_per_item", 2000}});
  } else if (state.range(0) == 1'000'000) {
    bench::make_promises(state, {{name + ": ns" + at(state), "ns_per_item", 6e6}});
  }
}

constexpr auto in_seconds = [](std::int64_t cost) { return 1e-9 * static_cast<double>(cost); };

void partition_minimax(benchmark::State& state) {
  compare_partition_minimax<std::int64_t>(state, "partition_minimax", spread::narrow,
                                          std::identity{});
}

void partition_minimax_of_doubles(benchmark::State& state) {
  compare_partition_minimax<double>(state, "partition_minimax of doubles", spread::narrow,
                                    in_seconds);
}

void partition_minimax_of_heavy_tail(benchmark::State& state) {
  compare_partition_minimax<std::int64_t>(state, "partition_minimax of a heavy tail",
                                          spread::heavy_tail, std::identity{});
}

void partition_layers(benchmark::State& state) {
  chains const all(state);
  bench::compare(
      state, plain_programming(all),
      [&] {
        return for_each_chain_often(all, [&](chain const& c) {
          return omnibal::partition_layers(c.costs, all.stages(), c.cost(), c.fits(),
                                           {.base = c.costs});
        });
      },
      number_of_chains);
  if (state.range(0) == 97) {
    bench::make_promises(state, {{"partition_layers: ns" + at(state), "ns_per_item", 10'000}});
  } else if (state.range(0) == 1000) {
    bench::make_promises(state, {{"partition_layers: ns" + at(state), "ns_per_item", 1e6}});
  }
}

void partition_layers_without_base(benchmark::State& state) {
  chains const all(state);
  auto const solve = [&](chain const& c) {
    return omnibal::partition_layers(c.costs, all.stages(), c.cost(), c.fits());
  };
  bench::compare(
      state, plain_programming(all),
      [&] {
        if (state.range(0) != 1000) return for_each_chain_often(all, solve);
        auto const result = solve(*all.begin());
        benchmark::DoNotOptimize(&result);
        return std::size_t{1};
      },
      number_of_chains);
}

void partition_throughput(benchmark::State& state) {
  chains const all(state);
  bench::compare(
      state, plain_programming(all),
      [&] {
        return for_each_chain_often(all, [&](chain const& c) {
          return omnibal::partition_throughput(c.costs, all.stages(), c.cost(), c.fits(),
                                               {.micro_batches = 64, .base = c.costs});
        });
      },
      number_of_chains);
}

/// Scores all neighbors in turn. An item is the whole search.
class score_all {
 public:
  score_all(omnibal::neighborhood const& near, omnibal::cut_score const& score)
      : near_(&near), score_(&score) {}

  void prepare() {}
  void operator()() {
    double least = std::numeric_limits<double>::max();
    for (auto const& boundaries : *near_) {
      double sum = 0;
      for (std::size_t s = 0; s + 1 != boundaries.size(); ++s) {
        sum += (*score_)(s, boundaries[s], boundaries[s + 1]);
      }
      least = std::min(least, sum);
    }
    benchmark::DoNotOptimize(least);
  }
  [[nodiscard]] std::size_t items() const { return 1; }

 private:
  omnibal::neighborhood const* near_;
  omnibal::cut_score const* score_;
};

/// The best 20 of the 5^7 neighbors of eight stages.
void search_cuts(benchmark::State& state) {
  chain const c(bench::size_of(state), 8, 0);
  auto const anchor = omnibal::partition_minimax(c.costs, 8);
  auto const near = omnibal::neighbors(anchor.boundaries, 2);
  omnibal::cut_score const score(c.costs, c.costs, 8);
  auto const measure = [](std::span<std::uint32_t const> boundaries) { return boundaries[1]; };
  bench::compare(
      state, score_all(near, score),
      [&] { return omnibal::search_cuts(near, score, 20, measure).candidates.size(); },
      [](std::size_t) { return std::size_t{1}; });
  if (state.range(0) == 97) {
    bench::make_promises(state, {{"search_cuts / scoring all neighbors", "ratio", 0.05}});
  }
}

/// Bytes of the layers of a chain, up to 50 % about their mean.
std::vector<std::int64_t> bytes_of_layers(std::size_t layers, std::uint64_t seed) {
  omnibal::rng::engine random(seed, 1);
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i != layers; ++i) {
    bytes.push_back(500'000 + static_cast<std::int64_t>(omnibal::rng::below(random, 1'000'001)));
  }
  return bytes;
}

/// Chunks of layers on devices whose memory has so many percent of room above the mean, six chains.
/// Counters: milliseconds of a chain in the mean, and how many have cuts, proven ones, and none.
void virtual_stages(benchmark::State& state) {
  constexpr std::size_t count = 6;
  std::size_t const layers = bench::size_of(state);
  auto const devices = static_cast<std::size_t>(state.range(1));
  std::size_t const stages = devices * static_cast<std::size_t>(state.range(2));
  std::int64_t const percent = 100 + state.range(3);
  double seconds = 0;
  double found = 0;
  double proven = 0;
  double infeasible = 0;
  for (auto _ : state) {
    double const begin = bench::processor_seconds();
    for (std::uint64_t seed = 0; seed != count; ++seed) {
      chain const one(layers, stages, seed);
      auto const cost = [sum = one.sums.data()](std::size_t, std::size_t first, std::size_t last) {
        return sum[last] - sum[first];
      };
      auto const bytes = bytes_of_layers(layers, seed);
      std::int64_t const sum = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
      std::int64_t const capacity = sum / 100 * percent / static_cast<std::int64_t>(devices);
      auto const cut = omnibal::partition_layers(
          one.costs, stages, cost, omnibal::fits_always{},
          {.base = one.costs,
           .constraints = {.bytes = bytes, .capacity = {capacity}, .devices = devices}});
      bool const is_solved = cut.status == omnibal::solve_status::solved;
      found += is_solved ? 1 : 0;
      proven += is_solved && cut.proven ? 1 : 0;
      infeasible += cut.status == omnibal::solve_status::infeasible ? 1 : 0;
    }
    seconds = bench::processor_seconds() - begin;
    state.SetIterationTime(seconds);
  }
  state.counters["milliseconds"] = 1000 * seconds / static_cast<double>(count);
  state.counters["found"] = found;
  state.counters["proven"] = proven;
  state.counters["infeasible"] = infeasible;
}

void chain_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "stages"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  made->Args({97, 4})->Args({97, 16})->Args({128, 16})->Args({10'000, 64})->Args({1'000'000, 4096});
}

void general_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"n", "stages"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  made->Args({97, 16})->Args({1000, 64})->Args({10'000, 2});
}

BENCHMARK(partition_minimax)->Apply(chain_sizes);
BENCHMARK(partition_minimax_of_doubles)->Apply(chain_sizes);
BENCHMARK(partition_minimax_of_heavy_tail)->Apply(chain_sizes);
BENCHMARK(partition_layers)->Apply(general_sizes);
BENCHMARK(partition_layers_without_base)->Apply(general_sizes);
BENCHMARK(partition_throughput)->Apply(general_sizes);
BENCHMARK(virtual_stages)
    ->ArgNames({"layers", "devices", "chunks", "room"})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->ArgsProduct({{97}, {4}, {2, 4}, {-2, 1, 2, 5}})
    ->ArgsProduct({{97}, {8}, {2, 4}, {-2, 1, 2, 5, 10}})
    ->ArgsProduct({{97}, {16}, {2}, {-2, 5, 10, 20}});
BENCHMARK(search_cuts)
    ->ArgNames({"n", "stages"})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Args({97, 8})
    ->Args({10'000, 8});

}  // namespace
