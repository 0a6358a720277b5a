// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/hierarchy/language_profile.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/select_levels.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::language_profile;
using omnibal::layer_cost;
using omnibal::level_reading;
using omnibal::packing_level;
using omnibal::recompute_choice;

constexpr std::int64_t gigabyte = 1'000'000'000;

language_profile llama_profile() {
  return {.model = omnibal::llama3_8b,
          .device = {.flops_per_second = 200'000 * gigabyte},
          .memory_bytes = 80 * gigabyte,
          .ranks = 16,
          .degrees = {.sharding = omnibal::sharded_state::optimizer},
          .link_bytes_per_second = 100 * gigabyte};
}

/// The sums over the layers of the model, which has an embedding before them and a head behind.
level_reading summed(language_profile const& profile, packing_level const& level,
                     omnibal::micro_batch_work const& batch) {
  omnibal::parallel_degrees degrees = profile.degrees;
  degrees.sequence = level.sequence;
  degrees.data = profile.ranks / level.sequence;
  std::vector<layer_cost> const layers = omnibal::layer_costs(profile.model, batch, degrees);
  std::int64_t used = 0;
  std::int64_t transient = 0;
  std::int64_t time = 0;
  for (std::size_t i = 0; i != layers.size(); ++i) {
    bool const is_checkpointed = i >= 1 && i <= static_cast<std::size_t>(level.checkpointed_layers);
    auto const& chosen =
        layers[i][is_checkpointed ? recompute_choice::full : recompute_choice::none];
    used += layers[i].state_bytes() + chosen.kept_bytes;
    transient = std::max(transient, chosen.transient_bytes);
    time += profile.device(layers[i].forward) + profile.device(layers[i].backward) +
            profile.device(chosen.extra);
  }
  return {profile.memory_bytes - used - transient, time};
}

std::string error_of(language_profile const& profile, packing_level const& level) {
  return test::error_text<std::invalid_argument>([&] { static_cast<void>(profile(level)); });
}

}  // namespace

TEST_CASE("a language profile adds up what the layers cost") {
  auto const profile = llama_profile();
  omnibal::micro_batch_work const batch{
      .documents = {.count = 1, .tokens = 8192, .squares = 8192 * 8192}};
  for (std::int64_t const checkpointed : {0, 7, 32}) {
    packing_level const level{8192, 1, checkpointed};
    CHECK(profile(level) == summed(profile, level, batch));
  }
}

TEST_CASE("documents of a pack are of one length but for the last") {
  auto profile = llama_profile();
  profile.document = 3000;
  packing_level const level{8192, 1, 0};
  omnibal::micro_batch_work const batch{
      .documents = {.count = 3, .tokens = 8192, .squares = 2 * 3000 * 3000 + 2192 * 2192}};
  CHECK(profile(level) == summed(profile, level, batch));
  profile.document = 10'000;
  omnibal::micro_batch_work const one{
      .documents = {.count = 1, .tokens = 8192, .squares = 8192 * 8192}};
  CHECK(profile(level) == summed(profile, level, one));
}

TEST_CASE("a pack has a reading whatever its documents") {
  auto const profile = llama_profile();
  packing_level const level{8192, 1, 3};
  omnibal::micro_batch_work const batch{
      .documents = {.count = 2, .tokens = 500, .squares = 170'000}};
  CHECK(profile.reading(level, batch.documents) == summed(profile, level, batch));
}

TEST_CASE("ranks that share a pack exchange queries, keys, values and outputs") {
  auto const profile = llama_profile();
  packing_level const level{65536, 8, 5};
  omnibal::micro_batch_work const batch{.documents = omnibal::equal_sequences({1, 65536})};
  level_reading const expected = summed(profile, level, batch);
  level_reading const found = profile(level);
  CHECK(found.free_bytes == expected.free_bytes);
  // 8192 tokens, 2 * 4096 + 2 * 1024 numbers of 2 bytes, 7 of 8 parts; 2 * 32 + 5 passes.
  std::int64_t const bytes = std::int64_t{8192} * 10240 * 2 * 7 / 8;
  std::int64_t const nanoseconds = (bytes + 99) / 100;
  CHECK(found.nanoseconds - expected.nanoseconds == 69 * nanoseconds);
}

TEST_CASE("logits of a part of the tokens need less memory and as much time") {
  auto profile = llama_profile();
  packing_level const level{16384, 2, 0};
  level_reading const all = profile(level);
  profile.logit_tokens = 8192;
  CHECK(profile(level) == all);
  profile.logit_tokens = 1024;
  level_reading const part = profile(level);
  CHECK(part.nanoseconds == all.nanoseconds);
  // The kept probabilities of 7168 tokens at least, 4 bytes for each of 128256 words.
  CHECK(part.free_bytes - all.free_bytes >= std::int64_t{7168} * 4 * 128256);
}

TEST_CASE("a sharded model needs room for two layers that are gathered") {
  auto profile = llama_profile();
  profile.degrees.sharding = omnibal::sharded_state::gradients;
  packing_level const level{8192, 1, 0};
  std::int64_t const whole = profile(level).free_bytes;
  profile.degrees.sharding = omnibal::sharded_state::parameters;
  std::int64_t const freed = std::int64_t{2} * 8'030'261'248 * 15 / 16;
  // The head has the most room to work; while it runs, a layer arrives.
  std::int64_t const gathered = std::int64_t{2} * (128257 * 4096 + 218'112'000);
  CHECK(profile(level).free_bytes - whole == Approx(static_cast<double>(freed - gathered)));
  CHECK(profile(level).nanoseconds == llama_profile()(level).nanoseconds);
}

TEST_CASE("what a pack costs at least is added to its time") {
  auto profile = llama_profile();
  packing_level const level{8192, 1, 0};
  std::int64_t const before = profile(level).nanoseconds;
  profile.pack_overhead_nanoseconds = 12345;
  CHECK(profile(level).nanoseconds == before + 12345);
}

TEST_CASE("layers of the first kind are checkpointed first") {
  auto profile = llama_profile();
  profile.model = omnibal::deepseek_v2;
  profile.memory_bytes = 10'000 * gigabyte;
  auto const time = [&](std::int64_t checkpointed) {
    return profile({4096, 1, checkpointed}).nanoseconds;
  };
  omnibal::micro_batch_work const batch{.documents = omnibal::equal_sequences({1, 4096})};
  layer_cost const dense = profile.model.runs.front().layer(batch);
  CHECK(time(1) - time(0) == profile.device(dense[recompute_choice::full].extra));
  CHECK(time(2) - time(1) != time(1) - time(0));
  CHECK(time(60) - time(59) == time(2) - time(1));
}

TEST_CASE("settings and numbers that make no sense are errors of a language profile") {
  auto const good = llama_profile();
  CHECK(error_of(good, {0, 1, 0}) ==
        "omnibal::language_profile: level.length is 0, must be from 1 to 3037000499");
  CHECK(error_of(good, {8192, 3, 0}) ==
        "omnibal::language_profile: ranks is 16, must be a multiple of the degree, which is 3");
  CHECK(error_of(good, {8192, 1, 33}) ==
        "omnibal::language_profile: checkpointed_layers is 33, must be from 0 to 32");
  auto bad = good;
  bad.memory_bytes = 0;
  CHECK(error_of(bad, {8192, 1, 0}) ==
        "omnibal::language_profile: memory_bytes is 0, must be from 1 to 9223372036854775807");
  bad = good;
  bad.device = {};
  CHECK(error_of(bad, {8192, 1, 0}) != "no error");
}
