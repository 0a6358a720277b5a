// SPDX-License-Identifier: Apache-2.0
/// \file
/// Packing in levels, its steps and its sampler, in turn with best-fit decreasing of the same
/// samples under the length of the longest level.

#include "compare.hpp"
#include "samples.hpp"

#include <omnibal/group_loads.hpp>
#include <omnibal/hierarchy/level_metrics.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/level_steps.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/hierarchy/select_levels.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/sample/level_sampler.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using lengths_type = std::vector<std::int64_t>;

std::vector<omnibal::packing_level> const levels{{.length = 16384},
                                                 {.length = 131072, .sequence = 8}};

/// Lengths of 16 to 131071 tokens with a heavy tail.
lengths_type lengths_with_tail(std::size_t count) {
  omnibal::rng::engine random(1);
  lengths_type result(count);
  for (std::int64_t& length : result) {
    std::int64_t const octave =
        std::min({bench::detail::uniform(random, 0, 12), bench::detail::uniform(random, 0, 12),
                  bench::detail::uniform(random, 0, 12)});
    std::int64_t const last = (std::int64_t{1} << octave) - 1;
    length = (bench::detail::uniform(random, 16, 31) << octave) +
             bench::detail::uniform(random, 0, last);
  }
  return result;
}

std::int64_t square(std::int64_t length) { return length * length; }

/// Best-fit decreasing under the longest level.
class plain_packing {
 public:
  explicit plain_packing(lengths_type const& lengths) : lengths_(&lengths) {}

  void prepare() {}
  void operator()() const {
    auto const packed =
        omnibal::best_fit_decreasing(*lengths_, std::identity{}, levels.back().length);
    benchmark::DoNotOptimize(&packed);
  }
  [[nodiscard]] std::size_t items() const { return lengths_->size(); }

 private:
  lengths_type const* lengths_;
};

/// The level packing of some lengths, and the attention of its groups.
struct packed_lengths {
  explicit packed_lengths(std::size_t count) : lengths(lengths_with_tail(count)) {
    packed = omnibal::pack_levels(lengths, std::identity{}, levels);
    loads = omnibal::group_loads(packed.groups, lengths, square);
  }

  lengths_type lengths;
  omnibal::level_packing packed;
  std::vector<omnibal::resources<1>> loads;
};

void pack_levels(benchmark::State& state) {
  packed_lengths const data(bench::size_of(state));
  bench::compare(state, plain_packing(data.lengths),
                 [&] { return omnibal::pack_levels(data.lengths, std::identity{}, levels); });
  auto const schedules =
      omnibal::level_steps(data.packed, data.loads, 8, {.max_dist_ratio = 0.002});
  auto const figures = omnibal::level_metrics(data.packed, schedules, data.lengths);
  state.counters["attention_balance"] = figures.attention_balance;
  state.counters["communication_ratio"] = figures.communication_ratio;
  state.counters["pad_ratio"] = figures.pad_ratio;
  state.counters["seconds_per_million"] = 1e-3 * state.counters["ns_per_item"];
  if (bench::size_of(state) < 100'000) return;
  std::string const at = ", " + std::to_string(state.range(0)) + " samples";
  bench::make_promises(state,
                       {{"pack_levels: seconds for a million" + at, "seconds_per_million", 1.0},
                        {"pack_levels / best fit" + at, "ratio", 16.0},
                        {"pack_levels: attention balance" + at, "attention_balance", 0.005}});
}

void level_sampler(benchmark::State& state) {
  packed_lengths const data(bench::size_of(state));
  bench::compare(state, plain_packing(data.lengths),
                 [&] { return omnibal::level_sampler(data.packed, data.loads, {.ranks = 8}); });
}

omnibal::level_reading profile(omnibal::packing_level const& level) {
  std::int64_t const tokens = level.length / level.sequence;
  return {2'500'000 - tokens * (128 - 4 * level.checkpointed_layers),
          tokens * (1000 + 8 * level.checkpointed_layers + (level.sequence > 1 ? 20 : 0))};
}

void select_levels(benchmark::State& state) {
  auto const lengths = lengths_with_tail(bench::size_of(state));
  bench::compare(state, plain_packing(lengths),
                 [&] { return omnibal::select_levels(profile, {.layers = 32}, lengths); });
}

/// All of an epoch: levels selected, samples packed and filled in, packs sorted and scheduled.
void hierarchy_epoch(benchmark::State& state) {
  auto const lengths = lengths_with_tail(bench::size_of(state));
  bench::compare(state, plain_packing(lengths), [&] {
    auto const found = omnibal::select_levels(profile, {.layers = 32}, lengths);
    auto const packed = omnibal::pack_levels(lengths, std::identity{}, found.levels);
    auto const loads = omnibal::group_loads(packed.groups, lengths, square);
    return omnibal::level_steps(packed, loads, 8, {.max_dist_ratio = 0.002});
  });
  state.counters["seconds_per_million"] = 1e-3 * state.counters["ns_per_item"];
  if (bench::size_of(state) < 100'000) return;
  bench::make_promises(state, {{"select, pack, fill, sort and schedule: seconds for a million, " +
                                    std::to_string(state.range(0)) + " samples",
                                "seconds_per_million", 1.0}});
}

void level_sizes(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->UseManualTime()->Unit(benchmark::kMillisecond);
  made->Arg(10'000)->Arg(100'000)->Arg(1'000'000);
}

BENCHMARK(pack_levels)->Apply(level_sizes);
BENCHMARK(level_sampler)->Apply(level_sizes);
BENCHMARK(select_levels)->Apply(level_sizes);
BENCHMARK(hierarchy_epoch)->Apply(level_sizes);

}  // namespace
