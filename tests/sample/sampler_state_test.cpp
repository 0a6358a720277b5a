// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::epoch_sampler;
using omnibal::remainder_policy;
using omnibal::sampler_segment;
using omnibal::sampler_state;
using omnibal::shard;
using omnibal::step_sampler;

static_assert(std::is_trivially_copyable_v<sampler_state>);
static_assert(std::is_standard_layout_v<sampler_state>);
static_assert(std::has_unique_object_representations_v<sampler_state>, "no padding");
static_assert(sizeof(sampler_state) == 176);
static_assert(sampler_state{} == sampler_state{});
static_assert(sampler_state{.seed = 1} != sampler_state{.seed = 2});

constexpr shard both{.ranks = 2, .rank = 1};

std::vector<std::int64_t> loads_of(std::size_t count) {
  test::random_amounts random(1);
  std::vector<std::int64_t> loads(count);
  for (auto& load : loads) load = random.between(1, 100);
  return loads;
}

/// A state in the middle of epoch 2 of 20 samples, after one change of the ranks.
sampler_state epoch_state() {
  epoch_sampler first(20, {.ranks = 3, .rank = 0}, {.seed = 7, .epoch = 2});
  static_cast<void>(first.next());
  epoch_sampler second(20, both, {.seed = 7}, first.state());
  for (int step = 0; step != 3; ++step) static_cast<void>(second.next());
  return second.state();
}

sampler_state step_state(remainder_policy policy) {
  step_sampler first(loads_of(20), {.ranks = 3, .rank = 0},
                     {.seed = 7, .epoch = 2, .remainder = policy});
  static_cast<void>(first.next());
  step_sampler second(loads_of(20), both, {.remainder = policy}, first.state());
  for (int step = 0; step != 3; ++step) static_cast<void>(second.next());
  return second.state();
}

std::string epoch_error(sampler_state const& state, std::uint64_t samples = 20) {
  return test::error_text<std::invalid_argument>([&] { epoch_sampler(samples, both, {}, state); });
}

std::string step_error(sampler_state const& state,
                       omnibal::schedule_steps_options const& options = {},
                       std::vector<std::int64_t> const& loads = loads_of(20)) {
  return test::error_text<std::invalid_argument>(
      [&] { step_sampler(loads, both, options, state); });
}

/// Resumes, and runs an epoch where the state is taken for a sound one.
template <class Make>
bool runs(Make const& make) {
  try {
    auto sampler = make();
    for (int step = 0; step != 30; ++step) static_cast<void>(sampler.next());
    return true;
  } catch (std::logic_error const&) {
    return false;
  }
}

}  // namespace

TEST_CASE("a state survives as bytes and member by member") {
  sampler_state const state = epoch_state();
  unsigned char bytes[sizeof(sampler_state)];
  std::memcpy(bytes, &state, sizeof(state));
  sampler_state read;
  std::memcpy(&read, bytes, sizeof(read));
  CHECK(read == state);

  sampler_state rebuilt;
  rebuilt.seed = state.seed;
  rebuilt.epoch = state.epoch;
  rebuilt.digest = state.digest;
  rebuilt.carried = state.carried;
  for (std::size_t i = 0; i != std::size(state.segments); ++i) {
    rebuilt.segments[i] = state.segments[i];
  }
  CHECK(rebuilt == state);
  CHECK(epoch_error(read) == "no error");

  CHECK(state.seed == 7);
  CHECK(state.epoch == 2);
  CHECK(state.segments[0] == sampler_segment{3, 1, 1});
  CHECK(state.segments[1] == sampler_segment{2, 1, 3});
  CHECK(state.segments[2] == sampler_segment{});
}

TEST_CASE("a state of other data is refused") {
  std::string const other = epoch_error(epoch_state(), 21);
  CHECK(other.find("omnibal::epoch_sampler: state.digest is ") == 0);
  CHECK(other.find("that of samples, options.order and options.contents: at least one of these") !=
        std::string::npos);
  CHECK(test::error_text<std::invalid_argument>(
            [] { epoch_sampler(20, both, {.contents = 1}, epoch_state()); }) != "no error");

  sampler_state const state = step_state(remainder_policy::short_step);
  CHECK(step_error(state) == "no error");
  CHECK(step_error(state, {.max_dist_ratio = 0.01}) != "no error");
  CHECK(step_error(state, {.remainder = remainder_policy::repeat}) != "no error");
  CHECK(step_error(state, {.groups_per_rank = 2}) != "no error");
  auto loads = loads_of(20);
  CHECK(step_error(state, {}, loads_of(19)) != "no error");
  ++loads[13];
  std::string const other_loads = step_error(state, {}, loads);
  CHECK(other_loads.find("omnibal::step_sampler: state.digest is ") == 0);
  CHECK(other_loads.find("that of loads, options.max_dist_ratio, options.remainder, "
                         "options.groups_per_rank, options.even_positions and options.rounds: at "
                         "least one of these") != std::string::npos);
  --loads[13];
  std::swap(loads[3], loads[4]);
  REQUIRE(loads[3] != loads[4]);
  CHECK(step_error(state, {}, loads) != "no error");
}

TEST_CASE("equal loads have equal digests, whatever type they have") {
  std::vector<int> const whole{1, 0, 3};
  std::vector<std::uint64_t> const wide{1, 0, 3};
  std::vector<omnibal::resources<1>> const vectors{{1}, {0}, {3}};
  auto const digest_of = [](auto const& loads) {
    return step_sampler(loads, shard{}).state().digest;
  };
  CHECK(digest_of(whole) == digest_of(wide));
  CHECK(digest_of(whole) == digest_of(vectors));
  std::vector<double> const zero{1, 0.0, 3};
  std::vector<double> const negative_zero{1, -0.0, 3};
  CHECK(digest_of(zero) == digest_of(negative_zero));
  std::vector<omnibal::resources<2>> const two{{1, 0}, {3, 2}};
  std::vector<int> const four{1, 0, 3, 2};
  CHECK(digest_of(two) != digest_of(four));
}

TEST_CASE("a state that no sampler could have is refused") {
  sampler_state const sound = epoch_state();
  auto const with = [&](auto const& change) {
    sampler_state state = sound;
    change(state);
    return epoch_error(state);
  };
  CHECK(with([](auto&) {}) == "no error");
  CHECK(with([](auto& s) {
          s.segments[3] = {1, 1, 1};
        }) == "omnibal::epoch_sampler: state.segments[3] follows an empty segment");
  CHECK(with([](auto& s) { s.segments[0].ranks = 0; }) ==
        "omnibal::epoch_sampler: state.segments[0] has 0 ranks, batch 1 and 1 steps, must be "
        "positive and at most 1048576 ranks");
  CHECK(with([](auto& s) { s.segments[0].batch = 0; }) != "no error");
  CHECK(with([](auto& s) { s.segments[0].step_count = 0; }) != "no error");
  CHECK(with([](auto& s) { s.segments[0].ranks = omnibal::max_ranks + 1; }) != "no error");
  CHECK(with([](auto& s) { s.segments[0].ranks = 2; }) ==
        "omnibal::epoch_sampler: state.segments[1] has the ranks of the segment before it");
  CHECK(with([](auto& s) { s.segments[0].step_count = 8; }) ==
        "omnibal::epoch_sampler: state.segments has 8 steps of 3 samples where the epoch has 7");
  CHECK(with([](auto& s) { s.segments[0].step_count = 7; }) != "no error");
  CHECK(with([](auto& s) { s.segments[1].step_count = 9; }) == "no error");
  CHECK(with([](auto& s) { s.segments[1].step_count = 10; }) ==
        "omnibal::epoch_sampler: state.segments has 10 steps of 2 samples where the epoch has 9");
  CHECK(with([](auto& s) { s.segments[1].step_count = ~std::uint64_t{0}; }) != "no error");
  CHECK(
      with([](auto& s) { s.carried = 20; }) ==
      "omnibal::epoch_sampler: state.carried is 20 in epoch 2 of 20, at most 19 can be left over");
  CHECK(with([](auto& s) { s.carried = ~std::uint64_t{0}; }) != "no error");
}

TEST_CASE("an epoch leaves over fewer samples than a step of the most samples") {
  std::uint64_t const samples = omnibal::max_samples;
  omnibal::epoch_sampler_options const options{.remainder = remainder_policy::carry};
  sampler_state state = epoch_sampler(samples, both, {.epoch = 1}).state();
  auto const error = [&](std::uint64_t carried) {
    state.carried = carried;
    return test::error_text<std::invalid_argument>(
        [&] { epoch_sampler(samples, both, options, state); });
  };
  CHECK(error(4'294'967'294) == "no error");
  CHECK(error(4'294'967'295) ==
        "omnibal::epoch_sampler: state.carried is 4294967295 in epoch 1 of 9223372036854775807, "
        "at most 4294967294 can be left over");
  CHECK(error(samples - 1) != "no error");
}

TEST_CASE("a state that no step sampler could have is refused") {
  for (remainder_policy const policy : {remainder_policy::short_step, remainder_policy::carry}) {
    sampler_state const sound = step_state(policy);
    auto const with = [&](auto const& change) {
      sampler_state state = sound;
      change(state);
      return step_error(state, {.remainder = policy});
    };
    CHECK(with([](auto&) {}) == "no error");
    CHECK(with([](auto& s) { s.segments[0].ranks = 0; }) != "no error");
    CHECK(with([](auto& s) { s.segments[0].batch = 2; }) ==
          "omnibal::step_sampler: state.segments has a batch of 2 groups, must be 1");
    CHECK(with([](auto& s) {
            s.segments[0].step_count = 8;
          }).find("omnibal::step_sampler: state.segments has 8 steps of 3 ranks") == 0);
    CHECK(with([](auto& s) { s.segments[1].step_count = 10; }) != "no error");
    CHECK(with([](auto& s) { s.carried = 20; }) ==
          "omnibal::step_sampler: state.carried is 20 in epoch 2 of " +
              std::string(policy == remainder_policy::carry ? "20, at most 19" : "0, at most 0") +
              " can be left over");
    CHECK(with([](auto& s) { s.carried = 1, s.epoch = 0; }) != "no error");
  }
}

TEST_CASE("random bytes are refused or run, whatever they are") {
  omnibal::rng::engine random(3);
  auto const loads = loads_of(20);
  std::size_t refused = 0;
  std::size_t run = 0;
  auto const attempt = [&](sampler_state const& state, remainder_policy policy) {
    auto const count = [&](bool it_runs) { ++(it_runs ? run : refused); };
    count(runs([&] { return epoch_sampler(20, both, {.remainder = policy}, state); }));
    count(runs([&] { return step_sampler(loads, both, {.remainder = policy}, state); }));
  };
  for (remainder_policy const policy :
       {remainder_policy::short_step, remainder_policy::repeat, remainder_policy::carry}) {
    for (int round = 0; round != 2000; ++round) {
      sampler_state state;
      std::uint64_t words[sizeof(state) / 8];
      for (std::uint64_t& word : words) word = random();
      std::memcpy(&state, words, sizeof(state));
      attempt(state, policy);

      // Closer to a sound state: the digest is right and most members are small.
      bool const is_step = round % 2 == 0;
      sampler_state near = is_step ? step_state(policy) : epoch_state();
      near.epoch = random() % 3;
      near.carried = random() % 4 == 0 ? random() : random() % 2 * (random() % 24);
      std::size_t const used = random() % 10;
      for (std::size_t i = 0; i != std::size(near.segments); ++i) {
        near.segments[i] = {};
        if (i >= used) continue;
        near.segments[i].ranks = static_cast<std::uint32_t>(random() % 5);
        near.segments[i].batch = static_cast<std::uint32_t>(random() % 8 == 0 ? random() : 1);
        near.segments[i].step_count = random() % 16 == 0 ? random() : random() % 4;
      }
      attempt(near, policy);
    }
  }
  CHECK(refused > 6000);
  CHECK(run > 100);
}
