// SPDX-License-Identifier: Apache-2.0
#include "heard_profile.hpp"
#include "long_context_mix.hpp"
#include "long_context_picture.hpp"
#include "long_context_plans.hpp"
#include "well_formed.hpp"

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/hierarchy/language_profile.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using namespace examples;

omnibal::language_profile llama_profile(std::int64_t ranks) {
  return {.model = omnibal::llama3_8b,
          .device = {.flops_per_second = 156'000'000'000'000},
          .memory_bytes = 80'000'000'000,
          .ranks = ranks,
          .link_bytes_per_second = 100'000'000'000};
}

std::vector<omnibal::packing_level> const two_levels{
    {.length = 16384, .checkpointed_layers = 4},
    {.length = 131072, .sequence = 8, .checkpointed_layers = 4}};

/// Plain packing, with the hierarchy, with balanced attention.
std::vector<long_context_plan> ablation(dataset const& data, std::int64_t ranks) {
  using enum pack_kind;
  using enum step_order;
  std::vector<long_context_plan> plans;
  for (level_rule const& rule : {level_rule{"plain", {two_levels[1]}, random_groups, random},
                                 level_rule{"hierarchy", two_levels, random_groups, random},
                                 level_rule{"balance", two_levels, random_groups, by_attention},
                                 level_rule{"best fit", two_levels, best_fit, by_attention}}) {
    plans.push_back(make_plan(rule, data, {llama_profile(ranks)}, 1));
  }
  return plans;
}

template <std::size_t N>
constexpr std::uint32_t sum_of_shares(std::array<length_octave, N> const& octaves) {
  std::uint32_t sum = 0;
  for (length_octave const& octave : octaves) sum += octave.share;
  return sum;
}
static_assert(sum_of_shares(two_source_octaves) == 10'000);
static_assert(sum_of_shares(broad_octaves) == 10'000);

std::int64_t tokens_of(dataset const& data, std::int64_t from, std::int64_t below) {
  std::int64_t sum = 0;
  for (sample const& one : data.samples)
    sum += one.tokens >= from && one.tokens < below ? one.tokens : 0;
  return sum;
}

}  // namespace

TEST_CASE("the long-context mixes have their shares and are the same everywhere") {
  constexpr std::int64_t all = 131'072;
  dataset const broad = long_context_mix(length_mix::broad, 100'000, 1024);
  CHECK(broad.samples.size() == 100'000);
  CHECK(tokens_of(broad, 64, all) == 131'852'640);
  CHECK(tokens_of(broad, 16'385, all) == 20'142'970);
  dataset const data = long_context_mix(length_mix::two_sources, 100'000, 1024);
  CHECK(data.samples.size() == 100'000);
  CHECK(tokens_of(data, 16, all) == 87'626'916);
  // Conversations of 714 tokens in the mean; few documents below 4096 beside them.
  double const short_tokens = static_cast<double>(tokens_of(data, 16, 4096));
  CHECK(short_tokens / (100'000 - 5 * 80) == Approx(714).epsilon(0.01));
  CHECK(static_cast<double>(tokens_of(data, 4096, all)) / (5 * 80) == Approx(38'100).epsilon(0.1));
  // Seeds make other samples, a larger number only more.
  CHECK(long_context_mix(length_mix::two_sources, 100'000, 1025).samples != data.samples);
  dataset const few = long_context_mix(length_mix::two_sources, 10, 1024);
  CHECK(std::equal(few.samples.begin(), few.samples.end(), data.samples.begin()));
}

TEST_CASE("hierarchy and balance each shorten the epoch and the waiting of both mixes") {
  for (length_mix const mix : {length_mix::two_sources, length_mix::broad}) {
    auto const plans = ablation(long_context_mix(mix, 100'000, 1024), 32);
    CHECK(plans[1].epoch_seconds < 0.95 * plans[0].epoch_seconds);
    CHECK(plans[2].epoch_seconds < 0.95 * plans[1].epoch_seconds);
    CHECK(plans[1].weighed_attention_balance < 0.8 * plans[0].weighed_attention_balance);
    CHECK(plans[2].weighed_attention_balance < 0.1 * plans[1].weighed_attention_balance);
    CHECK(plans[0].figures.communication_ratio == 1.0);
    CHECK(plans[1].figures.communication_ratio < 0.2);
    CHECK(plans[0].figures.attention_balance > 0.4);
    CHECK(plans[2].figures.attention_balance < 0.02);
    CHECK(plans[3].packed.groups.size() <= plans[2].packed.groups.size());
  }
}

TEST_CASE("conversations and documents have the paper's order of attention balance") {
  for (std::uint64_t const seed : {1024u, 7u, 8u}) {
    auto const plans = ablation(long_context_mix(length_mix::two_sources, 100'000, seed), 32);
    CHECK(plans[1].figures.attention_balance < plans[0].figures.attention_balance);
    CHECK(plans[2].figures.attention_balance < 0.1 * plans[1].figures.attention_balance);
    CHECK(plans[1].figures.communication_ratio == Approx(0.173).epsilon(0.15));
  }
}

TEST_CASE("attention is even on eight ranks, the last partial steps included") {
  for (length_mix const mix : {length_mix::two_sources, length_mix::broad}) {
    auto const plans = ablation(long_context_mix(mix, 100'000, 1024), 8);
    CHECK(plans[2].figures.attention_balance <= 0.005);
    CHECK(plans[3].figures.attention_balance <= 0.005);
    CHECK(plans[3].waiting.size() == plans[3].step_count);
    double const sum = std::accumulate(plans[3].waiting.begin(), plans[3].waiting.end(), 0.0);
    CHECK(sum / static_cast<double>(plans[3].step_count) ==
          Approx(plans[3].figures.attention_balance));
  }
}

TEST_CASE("waiting weighed by time, and that of each level, are those of their definitions") {
  // Seven documents of 8K and one of 16K, for eight ranks; one of 128K for all of them.
  dataset const data{{{0, 8192},
                      {0, 8192},
                      {0, 8192},
                      {0, 8192},
                      {0, 8192},
                      {0, 8192},
                      {0, 8192},
                      {0, 16384},
                      {0, 131072}},
                     {}};
  auto const plan = make_plan({"", two_levels, pack_kind::best_fit, step_order::by_attention}, data,
                              {llama_profile(8)}, 1);
  REQUIRE(plan.level_attention_balance.size() == 2);
  REQUIRE(plan.step_count == 2);
  // In units of 4096^2: packs of 16, 8, 8, 8 and 4 and three idle ranks, then 1024 on 8 ranks.
  double const first = 1 - 44.0 / 8 / 16;
  CHECK(plan.level_attention_balance[0] == Approx(first));
  CHECK(plan.level_attention_balance[1] == 0.0);
  CHECK(plan.weighed_attention_balance == Approx(first * 16 / (16 + 1024.0 / 8)));
}

TEST_CASE("the picture of the levels is well formed and the same for equal input") {
  for (std::size_t const count : {std::size_t{1}, std::size_t{3000}}) {
    dataset const data = long_context_mix(length_mix::two_sources, count, 5);
    auto const plans = ablation(data, 8);
    std::ostringstream first;
    std::ostringstream second;
    write_levels(data, plans, first);
    write_levels(data, plans, second);
    CHECK(first.str() == second.str());
    CHECK(xml_complaint(first.str()) == "");
    CHECK(first.str().size() < 100'000);
  }
}

/// Eight layers of a tower like Whisper's, whose clips of 1500 tokens become 750.
clip_load small_sound() {
  audio_part part;
  part.tower.stem.convolutions[0] = {.inputs = 80, .outputs = 256};
  part.tower.layers = 8;
  part.tower.layer = {.hidden = 256, .heads = 4, .mlp = 1024};
  part.connectors = {{.layer = {.input = 256,
                                .output = 4096,
                                .patches_per_token = 2,
                                .source = omnibal::projector_source::clips}}};
  return {part, {.count = 4, .length = 1500}, 4096};
}

// The clips of a pack are as dense as those of an epoch, and no pack has a part of one.
TEST_CASE("a pack has the clips of its tokens, the last one whole") {
  clip_load const sound = small_sound();
  for (std::int64_t tokens = 0; tokens != 10'000; ++tokens) {
    // The fewest clips with 4096 tokens or more for every four of them.
    std::int64_t expected = 0;
    while (expected * 4096 < tokens * 4) ++expected;
    auto const found = sound.clips_in(tokens);
    REQUIRE(found == omnibal::equal_sequences({.count = expected, .length = 1500}));
  }
}

// The profile charges a tower exactly its time, its state and its inputs.
TEST_CASE("an audio tower adds its time and takes its memory of every level") {
  omnibal::language_profile const silent = llama_profile(8);
  clip_load const sound = small_sound();
  heard_profile const heard{silent, sound};
  for (omnibal::packing_level const& level : two_levels) {
    omnibal::parallel_degrees degrees = silent.degrees;
    degrees.sequence = level.sequence;
    degrees.data = 8 / level.sequence;
    omnibal::micro_batch_work const work{
        .clips = omnibal::equal_sequences({.count = level.length / 1024, .length = 1500})};
    std::int64_t nanoseconds = 0;
    std::int64_t bytes = 0;
    std::int64_t transient = 0;
    sound.tower.for_each_layer([&](auto const& layer, std::int64_t count) {
      omnibal::layer_cost const cost = layer(work, degrees);
      auto const& full = cost.choices[2];
      nanoseconds += count * (silent.device(cost.forward) + silent.device(cost.backward) +
                              silent.device(full.extra));
      bytes += count * (cost.state_bytes() + full.kept_bytes);
      transient = std::max(transient, full.transient_bytes);
    });
    CHECK(nanoseconds > 0);
    CHECK(heard(level).nanoseconds == silent(level).nanoseconds + nanoseconds);
    CHECK(heard(level).free_bytes == silent(level).free_bytes - bytes - transient);
    auto const documents = omnibal::equal_sequences({.count = 1, .length = level.length});
    CHECK(heard.reading(level, documents).nanoseconds ==
          silent.reading(level, documents).nanoseconds + nanoseconds);
    CHECK(heard_profile{silent}(level) == silent(level));
  }
}

// Groups of ranks share clips as they share tokens.
TEST_CASE("clips add their FLOPs to the seconds of a token of each degree") {
  clip_load const sound = small_sound();
  omnibal::context_cost cost{.degrees = {{1, 2, 3}, {4, 5, 6}}, .micro_step = 7};
  double flops = 0;
  omnibal::micro_batch_work const work{.clips =
                                           omnibal::equal_sequences({.count = 4, .length = 1500})};
  sound.tower.for_each_layer([&](auto const& layer, std::int64_t count) {
    flops += static_cast<double>(count * layer(work, omnibal::parallel_degrees{}).flops());
  });
  add_sound(cost, sound, 1e9);
  CHECK(cost.degrees[0].linear == Approx(2 + flops / 4096 / 1e9));
  CHECK(cost.degrees[1].linear == Approx(5 + flops / 4096 / 1e9 / 2));
  CHECK(cost.degrees[1].fixed == 4);
  CHECK(cost.degrees[1].quadratic == 6);
  CHECK(cost.micro_step == 7);
}
