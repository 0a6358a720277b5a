// SPDX-License-Identifier: Apache-2.0
#include <omnibal/experts/place_experts/moved_budget.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::detail::hull_steps;
using omnibal::detail::placement_point;
using omnibal::detail::placement_step;

// From each state, the later state with the largest gain for each moved copy, the last of several.
std::vector<std::size_t> best_later_states(std::span<placement_point const> points) {
  std::vector<std::size_t> result;
  for (std::size_t from = 0;;) {
    placement_step best{};
    for (std::size_t to = from + 1; to < points.size(); ++to) {
      placement_step const next(points, from, to);
      if (next.gain > 0 && (best.gain == 0 || next.compare(best) >= 0)) best = next;
    }
    if (best.gain == 0) return result;
    result.push_back(best.point);
    from = best.point;
  }
}

std::vector<placement_point> draw_states(omnibal::rng::engine& random) {
  std::vector<placement_point> result;
  std::uint64_t const most_gain = omnibal::rng::below(random, 5);
  std::uint64_t moved = omnibal::rng::below(random, 5);
  std::int64_t load = 100;
  for (std::size_t left = 1 + omnibal::rng::below(random, 16); left != 0; --left) {
    result.push_back({moved, load, result.size()});
    moved += omnibal::rng::below(random, 4);
    if (moved != 0 && omnibal::rng::below(random, 3) == 0) --moved;
    load -= static_cast<std::int64_t>(omnibal::rng::below(random, most_gain + 1));
  }
  return result;
}

}  // namespace

TEST_CASE("hull_steps: each step is the best step to a later state") {
  omnibal::rng::engine random(31);
  for (int i = 0; i != 20'000; ++i) {
    auto const points = draw_states(random);
    std::vector<std::size_t> found;
    for (placement_step const& step : hull_steps(points)) found.push_back(step.point);
    REQUIRE(found == best_later_states(points));
  }
}
