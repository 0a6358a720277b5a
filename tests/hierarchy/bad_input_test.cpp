// SPDX-License-Identifier: Apache-2.0
// Bad input to the functions on hierarchies of packs: each text names function, argument and value.

#include "error_text.hpp"

#include <omnibal/cost/models.hpp>
#include <omnibal/hierarchy/language_profile.hpp>
#include <omnibal/hierarchy/level_metrics.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/level_steps.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/hierarchy/select_levels.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/level_sampler.hpp>
#include <omnibal/sample/loss_normalizer.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::level_packing;
using omnibal::level_reading;
using omnibal::level_search;
using omnibal::packing_level;
using lengths_type = std::vector<std::int64_t>;

struct bad_call {
  std::string error;
  std::function<void()> call;
};

level_search const search{.layers = 4, .lengths = {8, 16}, .degrees = {1, 2}};
packing_level const two_ranks{.length = 16, .sequence = 2};

level_reading sound_profile(packing_level const& level) {
  return {8 * (level.checkpointed_layers + 1) - level.length / level.sequence, level.length};
}

template <class Profile>
std::function<void()> selecting(Profile const& profile, level_search const& asked = search) {
  return [=] { static_cast<void>(omnibal::select_levels(profile, asked)); };
}

std::function<void()> selecting_for(lengths_type const& lengths) {
  return [=] { static_cast<void>(omnibal::select_levels(sound_profile, search, lengths)); };
}

template <class Levels>
std::function<void()> packing(lengths_type const& lengths, Levels const& levels,
                              omnibal::pack_levels_options const& options = {}) {
  return [=] {
    static_cast<void>(omnibal::pack_levels(lengths, std::identity{}, levels, {}, options));
  };
}

level_packing packed() {
  return omnibal::pack_levels(lengths_type{3, 7, 12}, std::identity{},
                              std::vector<packing_level>{{.length = 8}, two_ranks});
}

template <class Loads>
std::function<void()> stepping(Loads const& loads, std::size_t ranks,
                               omnibal::schedule_steps_options const& options = {}) {
  return [=] { static_cast<void>(omnibal::level_steps(packed(), loads, ranks, options)); };
}

template <class Loads>
std::function<void()> sampling(Loads const& loads, omnibal::shard const& place,
                               omnibal::level_sampler_options const& options = {}) {
  return [=] { static_cast<void>(omnibal::level_sampler(packed(), loads, place, options)); };
}

std::function<void()> profiling(packing_level const& level, std::int64_t memory) {
  return [=] {
    omnibal::language_profile const profile{.model = omnibal::llama3_8b,
                                            .device = {.flops_per_second = 1'000'000},
                                            .memory_bytes = memory};
    static_cast<void>(profile(level));
  };
}

std::vector<bad_call> const bad_calls{
    {"select_levels: search.lengths[1] is 8, must be from 17",
     selecting(sound_profile, {.layers = 4, .lengths = {16, 8}})},
    {"select_levels: search.degrees[0] is -1",
     selecting(sound_profile, {.layers = 4, .degrees = {-1}})},
    {"select_levels: search.layers is -4", selecting(sound_profile, {.layers = -4})},
    {"select_levels: the profile gives 0 nanoseconds for length 8",
     selecting([](packing_level const&) {
       return level_reading{1, 0};
     })},
    {"select_levels: the profile gives -3 nanoseconds for length 8",
     selecting([](packing_level const&) {
       return level_reading{1, -3};
     })},
    {"select_levels: the profile gives -4 free bytes for length 8, sequence 1 and 4 checkpointed "
     "layers, less than -3 for 0",
     selecting([](packing_level const& level) {
       return level_reading{level.checkpointed_layers == 0 ? -3 : -4, 1};
     })},
    {"the run failed", selecting([](packing_level const&) -> level_reading {
       throw std::invalid_argument("the run failed");
     })},
    {"select_levels: demand[1] is -1", selecting_for({4, -1})},
    {"pack_levels: levels is empty", packing({1}, lengths_type{})},
    {"pack_levels: levels[1].length is 8, must be above", packing({1}, lengths_type{8, 8})},
    {"pack_levels: levels[1].length is 7, must be above", packing({1}, lengths_type{8, 7})},
    {"pack_levels: levels[0].length is -8", packing({1}, lengths_type{-8})},
    {"pack_levels: levels[0].sequence is 0",
     packing({1}, std::vector<packing_level>{{.length = 8, .sequence = 0}})},
    {"pack_levels: levels[0].checkpointed_layers is -1",
     packing({1}, std::vector<packing_level>{{.length = 8, .checkpointed_layers = -1}})},
    {"pack_levels: demand[2] is -5", packing({1, 2, -5}, lengths_type{8})},
    {"pack_levels: demand[1] is 17, must be at most the length of the last level, 16",
     packing({16, 17, 18}, lengths_type{8, 16}, {.oversized = omnibal::oversize_policy::reject})},
    {"pack_levels: demand[1] is 3037000500, must be at most 3037000499",
     packing({16, 3037000500}, lengths_type{8},
             {.oversized = omnibal::oversize_policy::own_group})},
    {"level_steps: loads has 1 values for 2 groups", stepping(lengths_type{1}, 2)},
    {"level_steps: levels[1].sequence is 2, must be a divisor of the 3 ranks",
     stepping(lengths_type{1, 2}, 3)},
    {"level_steps: loads[1] is -2", stepping(lengths_type{1, -2}, 2)},
    {"level_steps: loads[1] is nan",
     stepping(std::vector<double>{1, std::numeric_limits<double>::quiet_NaN()}, 2)},
    {"max_dist_ratio is -1", stepping(lengths_type{1, 2}, 2, {.max_dist_ratio = -1})},
    {"level_metrics: schedules has 0 values for 2 levels",
     [] {
       static_cast<void>(omnibal::level_metrics(packed(), {}, lengths_type{3, 7, 12}));
     }},
    {"level_metrics: group 1 has item 2, but there are 2 samples",
     [] {
       auto const steps = omnibal::level_steps(packed(), lengths_type{1, 2}, 2);
       static_cast<void>(omnibal::level_metrics(packed(), steps, lengths_type{3, 7}));
     }},
    {"level_metrics: length[2] is -12, must be finite and not negative",
     [] {
       auto const steps = omnibal::level_steps(packed(), lengths_type{1, 2}, 2);
       static_cast<void>(omnibal::level_metrics(packed(), steps, lengths_type{3, 7, -12}));
     }},
    {"language_profile: level.length is 0", profiling({.length = 0}, 1)},
    {"language_profile: memory_bytes is 0", profiling({.length = 8}, 0)},
    {"language_profile: ranks is 1, must be a multiple", profiling(two_ranks, 1)},
    {"language_profile: checkpointed_layers is 33",
     profiling({.length = 8, .checkpointed_layers = 33}, 1)},
    {"level_sampler: shard.rank is 2", sampling(lengths_type{1, 2}, {.ranks = 2, .rank = 2})},
    {"level_sampler: levels[1].sequence is 2", sampling(lengths_type{1, 2}, {.ranks = 5})},
    {"level_sampler: loads has 3 values for 2 groups",
     sampling(lengths_type{1, 2, 3}, {.ranks = 2})},
    {"level_sampler: loads[0] is -1", sampling(lengths_type{-1, 2}, {.ranks = 2})},
    {"options.max_dist_ratio is nan",
     sampling(lengths_type{1, 2}, {.ranks = 2},
              {.schedule = {.max_dist_ratio = std::numeric_limits<double>::quiet_NaN()}})},
    {"loss_normalizer: loss_tokens is empty",
     [] { static_cast<void>(omnibal::loss_normalizer(lengths_type{})); }},
    {"loss_normalizer: loss_tokens[0] is -9",
     [] { static_cast<void>(omnibal::loss_normalizer(lengths_type{-9})); }},
    {"attention_balance: step 0 names group 4 of 2",
     [] {
       static_cast<void>(omnibal::attention_balance(omnibal::make_steps({{4}}, 1), packed().groups,
                                                    lengths_type{3, 7, 12}));
     }},
    {"communication_ratio: the degree of group 0 is 0",
     [] {
       static_cast<void>(omnibal::communication_ratio(packed().groups, lengths_type{3, 7, 12},
                                                      [](std::uint32_t) { return 0; }));
     }},
};

struct floating_reading {
  double free_bytes;
  double nanoseconds;
};

// A profile in floating numbers, which could be NaN, does not compile.
static_assert(omnibal::level_profile<decltype(&sound_profile)>);
static_assert(!omnibal::level_profile<floating_reading (*)(packing_level const&)>);
static_assert(!omnibal::level_profile<double (*)(packing_level const&)>);
static_assert(!omnibal::level_profile<level_reading (*)(std::string const&)>);

}  // namespace

TEST_CASE("bad input is an error that names function, argument and value") {
  for (bad_call const& bad : bad_calls) {
    INFO(bad.error);
    CHECK_THAT(test::error_text<std::invalid_argument>(bad.call), Catch::Contains(bad.error));
  }
}
