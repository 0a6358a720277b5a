// SPDX-License-Identifier: Apache-2.0
// Choices that are others each time they are asked for.

#include <omnibal/recompute/select_recompute.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch.hpp>

namespace {

std::vector<omnibal::activation_option<double>> any_choices(omnibal::rng::engine& random) {
  std::vector<omnibal::activation_option<double>> made(1 + omnibal::rng::below(random, 4));
  for (auto& way : made) {
    way = {static_cast<double>(omnibal::rng::below(random, 20)),
           static_cast<std::int64_t>(omnibal::rng::below(random, 20)),
           static_cast<std::int64_t>(omnibal::rng::below(random, 20))};
  }
  return made;
}

}  // namespace

TEST_CASE("The choices of each layer are asked for once, and a plan is made of these") {
  for (std::uint64_t seed = 0; seed != 2000; ++seed) {
    omnibal::rng::engine random(seed);
    std::vector<int> const layers(6);
    std::vector<std::vector<omnibal::activation_option<double>>> told;
    auto const choices = [&](int) { return told.emplace_back(any_choices(random)); };
    auto const result = omnibal::select_recompute(layers, choices, 70);
    REQUIRE(told.size() == layers.size());
    REQUIRE(result == omnibal::select_recompute(told, 70));
  }
}
