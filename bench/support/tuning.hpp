// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How long the choice of a capacity takes and how good it is.

#include "compare.hpp"
#include "samples.hpp"

#include <omnibal/group_loads.hpp>
#include <omnibal/pack/objective.hpp>
#include <omnibal/pack/tune_capacity.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace bench {

using demand_span = std::span<omnibal::resources<2> const>;

/// The setting that the search of the reference implementation finds on its own lengths, for a mean
/// batch of 4.
inline constexpr omnibal::resources<2> reference_capacity{18, 6016};

/// One packing of all samples, at the reference's capacity.
template <class Packer>
class one_packing {
 public:
  one_packing(demand_span demands, Packer const& pack) : demands_(demands), pack_(pack) {}

  void prepare() {}
  void operator()() {
    auto const result = pack_(demands_, std::identity{}, reference_capacity);
    benchmark::DoNotOptimize(&result);
  }
  [[nodiscard]] std::size_t items() const { return demands_.size(); }

 private:
  demand_span demands_;
  Packer pack_;
};

/// Times the choice of a capacity for a mean batch of 4 against one packing of all samples.
/// Counters, besides those of `compare`: the milliseconds, the number of packings, the images and
/// tokens that are chosen, the objective, and the objective over that at the reference's capacity.
template <class Packer>
void tune(benchmark::State& state, demand_span demands, Packer const& pack) {
  omnibal::published_rule<> const objective{};
  std::optional<omnibal::tuned<2>> tuned;
  compare(state, one_packing<Packer>(demands, pack), [&] {
    tuned = omnibal::tune_capacity(demands, std::identity{}, 4.0, pack, objective,
                                   {.granularity = {1, 16}});
    return tuned->packings;
  });
  auto const packed = pack(demands, std::identity{}, reference_capacity);
  auto const loads = omnibal::group_loads(packed.groups, demands, std::identity{});
  double const reference = objective(
      omnibal::packed_samples<2>{reference_capacity, demands, packed.groups.view(), loads});
  state.counters["milliseconds"] =
      1e-6 * state.counters["ns_per_item"] * static_cast<double>(demands.size());
  state.counters["packings"] = static_cast<double>(tuned->packings);
  state.counters["images"] = static_cast<double>(tuned->best.capacity[0]);
  state.counters["tokens"] = static_cast<double>(tuned->best.capacity[1]);
  state.counters["mean_batch"] = tuned->best.mean_group_size;
  state.counters["fill_images"] = tuned->best.fill[0];
  state.counters["fill_tokens"] = tuned->best.fill[1];
  state.counters["objective"] = tuned->best.objective;
  state.counters["objective_ratio"] = tuned->best.objective / reference;
}

/// The demands of samples.
[[nodiscard]] inline std::vector<omnibal::resources<2>> demands_of(
    std::vector<sample> const& samples) {
  std::vector<omnibal::resources<2>> demands;
  demands.reserve(samples.size());
  for (sample const& one : samples) demands.push_back(images_and_tokens(one));
  return demands;
}

/// What the search of the reference takes 12 seconds for, in a fiftieth of that, and as well.
inline void make_tuning_promises(benchmark::State& state, std::string const& name) {
  make_promises(state,
                {{"tune_capacity, milliseconds, " + name, "milliseconds", 240.0},
                 {"tune_capacity, objective / that at 18/6016, " + name, "objective_ratio", 1.0}});
}

}  // namespace bench
