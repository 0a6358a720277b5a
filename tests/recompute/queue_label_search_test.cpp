// SPDX-License-Identifier: Apache-2.0
// The label search over both queues, with limits that no layers of small models lead to often.

#include <omnibal/recompute/select_activations/queue_label_search.hpp>
#include <omnibal/recompute/select_activations/queue_limits.hpp>
#include <omnibal/recompute/select_activations/window_relaxation.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::detail::queue_label_search;
using omnibal::detail::queue_limits;

/// Limits of both queues that bind in different layers: the link sends fast and fetches slowly, or
/// the other way round.
queue_limits draw_limits(omnibal::rng::engine& random) {
  auto const draw = [&](std::uint64_t first, std::uint64_t last) {
    return static_cast<std::int64_t>(first + omnibal::rng::below(random, last - first + 1));
  };
  bool const is_fetching_slow = draw(0, 1) == 0;
  queue_limits result;
  result.offsets.push_back(0);
  for (std::uint32_t layer = 0; layer != 4; ++layer) {
    for (std::int64_t count = draw(1, 3); count != 0; --count) {
      auto const module = static_cast<std::uint32_t>(result.items.size());
      result.items.push_back({draw(5, 40), draw(1, 30), layer, module});
      result.total_bytes += result.items.back().bytes;
      result.total_gain += result.items.back().gain;
    }
    result.offsets.push_back(static_cast<std::uint32_t>(result.items.size()));
    result.sent.push_back(is_fetching_slow ? draw(20, 40) : draw(2, 12));
    result.fetched.push_back(is_fetching_slow ? draw(2, 12) : draw(20, 40));
    result.max_sending.push_back(draw(10, 40));
    result.max_fetching.push_back(draw(30, 70));
  }
  return result;
}

std::vector<std::int64_t> bytes_of(queue_limits const& limits,
                                   std::vector<unsigned char> const& saved) {
  std::vector<std::int64_t> result(limits.size(), 0);
  for (std::size_t j = 0; j != saved.size(); ++j) {
    if (saved[j] != 0) result[limits.items[j].layer] += limits.items[j].bytes;
  }
  return result;
}

std::int64_t gain_of(queue_limits const& limits, std::vector<unsigned char> const& saved) {
  std::int64_t result = 0;
  for (std::size_t j = 0; j != saved.size(); ++j) {
    if (saved[j] != 0) result += limits.items[j].gain;
  }
  return result;
}

/// Over all sets of items.
std::int64_t largest_gain(queue_limits const& limits) {
  std::size_t const count = limits.items.size();
  std::int64_t result = 0;
  for (std::size_t set = 0; set != std::size_t{1} << count; ++set) {
    std::vector<unsigned char> saved(count);
    for (std::size_t j = 0; j != count; ++j) saved[j] = (set >> j & 1) != 0 ? 1 : 0;
    if (limits.allow(bytes_of(limits, saved))) result = std::max(result, gain_of(limits, saved));
  }
  return result;
}

}  // namespace

// A label with fewer bytes to send may have more bytes to fetch. Such a label must not replace
// another one, which small models show too rarely.
TEST_CASE("The label search over both queues finds the largest gain of all sets") {
  int found = 0;
  for (std::uint64_t seed = 0; seed != 1500; ++seed) {
    omnibal::rng::engine random(seed);
    queue_limits const limits = draw_limits(random);
    omnibal::detail::window_relaxation relaxation;
    auto const prices = relaxation.solve(limits);
    std::int64_t const best = largest_gain(limits);
    CAPTURE(seed, best);
    REQUIRE(prices.max_gain() >= best);
    queue_label_search exact(limits, prices);
    bool const has_solution = exact.run(-1, 100'000);
    REQUIRE(has_solution);
    REQUIRE(exact.gain() == best);
    REQUIRE(exact.bound() == best);
    std::vector<unsigned char> saved;
    exact.write(saved);
    REQUIRE(gain_of(limits, saved) == best);
    REQUIRE(limits.allow(bytes_of(limits, saved)));
    queue_label_search few(limits, prices);
    static_cast<void>(few.run(best / 2, 2));
    REQUIRE(few.gain() <= best);
    REQUIRE(few.bound() >= best);
    found += few.gain() < best ? 1 : 0;
  }
  CHECK(found > 0);
}
