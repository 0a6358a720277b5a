// SPDX-License-Identifier: Apache-2.0
// Prints a digest of what hierarchies of packs give for seeded integers.
// expected/hierarchy.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../support/fnv1a.hpp"
#include "../support/samples.hpp"
#include "digest.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/hierarchy/language_profile.hpp>
#include <omnibal/hierarchy/level_steps.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/hierarchy/select_levels.hpp>
#include <omnibal/sample/level_sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace {

using golden::digest_of;
using golden::print;

std::vector<omnibal::packing_level> const levels{
    {.length = 512}, {.length = 2048, .sequence = 2}, {.length = 4096, .sequence = 4}};

/// Packs, steps and two epochs of a rank, with other ranks in between.
void print_levels(std::size_t count) {
  test::fnv1a packs;
  test::fnv1a steps;
  test::fnv1a ranks;
  test::fnv1a carrying;
  for (auto const& set : test::small_sets<1>(count, count)) {
    auto const packed = omnibal::pack_levels(set.samples, std::identity{}, levels);
    packs.add(digest_of(packed.groups.offsets()));
    packs.add(digest_of(packed.groups.items()));
    packs.add(digest_of(packed.oversized));
    auto const squares = [](omnibal::resources<1> const& length) { return length[0] * length[0]; };
    auto const loads = omnibal::group_loads(packed.groups, set.samples, squares);
    for (auto const& schedule : omnibal::level_steps(packed, loads, 8, {.seed = count})) {
      steps.add(digest_of(schedule.cells().offsets()));
      steps.add(digest_of(schedule.cells().items()));
    }
    if (packed.groups.empty()) continue;
    omnibal::level_sampler_options const options{
        .schedule = {.seed = count, .max_dist_ratio = 0.002}, .short_first_steps = 3};
    omnibal::level_sampler sampler(packed, loads, {.ranks = 8, .rank = 5}, options);
    for (int step = 0; step != 5 && !sampler.done(); ++step) {
      ranks.add(digest_of(sampler.next().groups));
    }
    omnibal::level_sampler resumed(packed, loads, {.ranks = 4, .rank = 3}, options,
                                   sampler.state());
    while (resumed.epoch() < 2) ranks.add(digest_of(resumed.next().groups));
    omnibal::level_sampler carry(packed, loads, {.ranks = 8, .rank = 1},
                                 {.schedule = {.seed = count,
                                               .max_dist_ratio = 0.002,
                                               .remainder = omnibal::remainder_policy::carry}});
    while (carry.epoch() < 3) carrying.add(digest_of(carry.next().groups));
    carrying.add(carry.state().carried);
  }
  std::string const suffix = ", " + std::to_string(count) + " samples";
  print("pack_levels" + suffix, packs.value());
  print("level_steps" + suffix, steps.value());
  print("level_sampler" + suffix, ranks.value());
  print("level_sampler with carry" + suffix, carrying.value());
}

/// The levels of Llama 3 8B by both rules, and the times that they follow from.
void print_selection() {
  omnibal::language_profile const profile{.model = omnibal::llama3_8b,
                                          .device = {.flops_per_second = 156'000'000'000'000},
                                          .memory_bytes = 80'000'000'000,
                                          .ranks = 32,
                                          .document = 4096,
                                          .logit_tokens = 4096,
                                          .link_bytes_per_second = 100'000'000'000,
                                          .pack_overhead_nanoseconds = 300'000'000};
  std::vector<std::int64_t> lengths;
  test::random_amounts random(1);
  for (int i = 0; i != 10'000; ++i) lengths.push_back(random.heavy_tail(131072));
  omnibal::level_search const search{.layers = 32};
  test::fnv1a hash;
  for (auto const& found : {omnibal::select_levels(profile, search),
                            omnibal::select_levels(profile, search, lengths)}) {
    for (auto const& level : found.levels) {
      hash.add(static_cast<std::uint64_t>(level.length));
      hash.add(static_cast<std::uint64_t>(level.sequence));
      hash.add(static_cast<std::uint64_t>(level.checkpointed_layers));
    }
    for (auto const& timed : found.fastest) hash.add(static_cast<std::uint64_t>(timed.nanoseconds));
    hash.add(static_cast<std::uint64_t>(found.epoch_nanoseconds));
  }
  print("select_levels", hash.value());
}

}  // namespace

int main() {
  print_levels(30);
  print_levels(1000);
  print_selection();
}
