// SPDX-License-Identifier: Apache-2.0
// The balancers.

#include "catch.hpp"
#include "device_run.hpp"

#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/deal.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/lpt.cuh>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/cuda/refine_parts.cuh>
#include <omnibal/cuda/split_experts.cuh>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

namespace gpu = omnibal::gpu;

struct balanced_steps {
  std::size_t steps;
  /// Samples of each.
  std::size_t samples;
  std::size_t parts;
  /// What is said of the samples of a step, from which follows where it is balanced.
  std::size_t bound;
};

/// Each step by a block in its shared memory; all sorted at first, with lists in shared memory; and
/// with lists in scratch.
std::vector<balanced_steps> const all_paths{
    {3, 120, 16, 120}, {2, 300, 16, 100'000}, {1, 4000, 3600, 100'000}};

void balance(balanced_steps const& shape) {
  std::size_t const count = shape.steps * shape.samples;
  test::device_run const run;
  auto const costs = gpu::upload(run.exec(), test::random_costs(count, count, 5000));
  std::vector<std::uint32_t> begins;
  for (std::size_t s = 0; s <= shape.steps; ++s) {
    begins.push_back(static_cast<std::uint32_t>(s * shape.samples));
  }
  auto const offsets = gpu::upload(run.exec(), begins);
  gpu::device_grouping<> const groups(run.exec(), shape.steps * shape.parts, count);
  gpu::device_array<std::uint32_t> const part_of(run.exec(), count);
  gpu::part_span const out{groups.out(), part_of, run.faults()};
  gpu::cost_steps const steps(costs, offsets, shape.bound);

  for (auto const policy : {omnibal::count_policy::any, omnibal::count_policy::at_most_one_apart}) {
    gpu::lpt(run.exec(), steps, shape.parts, {.count = policy}, out);
  }
  for (auto const counts : {omnibal::part_counts::free, omnibal::part_counts::kept}) {
    gpu::deal(run.exec(), steps, shape.parts, out);
    gpu::refine_parts(run.exec(), steps, groups,
                      {.max_overload = 0.0, .counts = counts, .rounds = 4}, out);
  }
  CHECK_FALSE(run.has_fault());
}

TEST_CASE("the balancers have no races in shared memory", "[races]") { balance(all_paths[0]); }

TEST_CASE("the balancers have no races in steps that are sorted at first", "[races]") {
  balance(all_paths[1]);
}

TEST_CASE("the balancers have no races in scratch", "[races]") { balance(all_paths[2]); }

TEST_CASE("the split over copies of experts has no races", "[races]") {
  // Each expert has two copies, on neighbors, and the tokens of the first ones are many.
  constexpr std::uint32_t ranks = 24;
  constexpr std::size_t layers = 2;
  std::vector<std::int64_t> tokens;
  std::vector<std::uint32_t> slots;
  for (std::size_t l = 0; l != layers; ++l) {
    for (std::uint32_t r = 0; r != ranks; ++r) {
      tokens.push_back(r < 6 ? 900 - std::int64_t{r} : 20);
      slots.insert(slots.end(), {r, (r + 1) % ranks});
    }
  }
  test::device_run const run;
  auto const given_tokens = gpu::upload(run.exec(), tokens);
  auto const given_slots = gpu::upload(run.exec(), slots);
  gpu::device_array<std::int64_t> const split(run.exec(), slots.size());
  gpu::device_array<std::int64_t> const rank_tokens(run.exec(), layers * ranks);
  gpu::device_array<std::int64_t> const largest(run.exec(), layers);
  gpu::device_array<std::uint8_t> const is_full(run.exec(), layers * ranks);
  gpu::split_experts(run.exec(), given_tokens, given_slots, ranks, {.layers = layers},
                     {split, rank_tokens, largest, is_full, run.faults()});
  CHECK_FALSE(run.has_fault());
}

}  // namespace
