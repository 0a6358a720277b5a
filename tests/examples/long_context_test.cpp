#include "long_context_mix.hpp"
#include "long_context_picture.hpp"
#include "long_context_plans.hpp"
#include "well_formed.hpp"

#include <omnibal/cost/presets.hpp>
#include <omnibal/hierarchy/language_profile.hpp>

#include <algorithm>
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
  for (plan_rule const& rule : {plan_rule{"plain", {two_levels[1]}, random_groups, random},
                                plan_rule{"hierarchy", two_levels, random_groups, random},
                                plan_rule{"balance", two_levels, random_groups, by_attention},
                                plan_rule{"best fit", two_levels, best_fit, by_attention}}) {
    plans.push_back(make_plan(rule, data, llama_profile(ranks), 1));
  }
  return plans;
}

constexpr std::uint32_t sum_of_shares() {
  std::uint32_t sum = 0;
  for (length_octave const& octave : long_context_octaves) sum += octave.share;
  return sum;
}
static_assert(sum_of_shares() == 10'000);

}  // namespace

TEST_CASE("the long-context mix has its shares and is the same everywhere") {
  dataset const data = long_context_mix(100'000, 1024);
  REQUIRE(data.samples.size() == 100'000);
  std::int64_t tokens = 0;
  std::int64_t long_tokens = 0;
  for (sample const& one : data.samples) {
    tokens += one.tokens;
    if (one.tokens > 16384) long_tokens += one.tokens;
    REQUIRE(one.tokens >= 64);
    REQUIRE(one.tokens < 131072);
  }
  CHECK(tokens == 131'852'640);
  CHECK(long_tokens == 20'142'970);
  // Seeds make other samples, a larger number only more.
  CHECK(long_context_mix(100'000, 1025).samples != data.samples);
  dataset const few = long_context_mix(10, 1024);
  CHECK(std::equal(few.samples.begin(), few.samples.end(), data.samples.begin()));
}

TEST_CASE("hierarchy and balance each shorten the epoch of the mix") {
  auto const plans = ablation(long_context_mix(100'000, 1024), 32);
  CHECK(plans[1].epoch_seconds < 0.95 * plans[0].epoch_seconds);
  CHECK(plans[2].epoch_seconds < 0.95 * plans[1].epoch_seconds);
  CHECK(plans[0].figures.communication_ratio == 1.0);
  CHECK(plans[1].figures.communication_ratio < 0.2);
  CHECK(plans[0].figures.attention_balance > 0.4);
  CHECK(plans[2].figures.attention_balance < 0.02);
  CHECK(plans[3].packed.groups.size() <= plans[2].packed.groups.size());
}

TEST_CASE("attention is even on eight ranks, the last partial steps included") {
  auto const plans = ablation(long_context_mix(100'000, 1024), 8);
  CHECK(plans[2].figures.attention_balance <= 0.005);
  CHECK(plans[3].figures.attention_balance <= 0.005);
  CHECK(plans[3].waiting.size() == plans[3].step_count);
  double const sum = std::accumulate(plans[3].waiting.begin(), plans[3].waiting.end(), 0.0);
  CHECK(sum / static_cast<double>(plans[3].step_count) ==
        Approx(plans[3].figures.attention_balance));
}

TEST_CASE("the picture of the levels is well formed and the same for equal input") {
  for (std::size_t const count : {std::size_t{1}, std::size_t{3000}}) {
    dataset const data = long_context_mix(count, 5);
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
