// SPDX-License-Identifier: Apache-2.0
// What placements prove, compared with all placements, and the bytes that plans report.

#include "certificate.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/config.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/placement.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::detail::int128;
using omnibal::rng::engine;
using test::number_between;

/// Bytes across nodes and across ranks.
using bytes_moved = std::pair<int128, int128>;

template <class Weight>
struct problem {
  std::size_t ranks;
  std::size_t per_node;
  std::vector<std::size_t> home_of;
  std::vector<Weight> bytes;

  [[nodiscard]] std::size_t count() const { return bytes.size(); }
  [[nodiscard]] int128 total() const {
    return std::accumulate(bytes.begin(), bytes.end(), int128{0});
  }
  [[nodiscard]] bytes_moved moved(std::vector<std::size_t> const& rank_of_sample) const {
    bytes_moved result{0, 0};
    for (std::size_t i = 0; i != count(); ++i) {
      if (home_of[i] / per_node != rank_of_sample[i] / per_node) result.first += bytes[i];
      if (home_of[i] != rank_of_sample[i]) result.second += bytes[i];
    }
    return result;
  }
  /// The least of both, nodes first, of all ways to give the parts to ranks.
  [[nodiscard]] bytes_moved min_moved(std::vector<std::size_t> const& part_of) const {
    std::vector<std::vector<bytes_moved>> costs(ranks, std::vector<bytes_moved>(ranks));
    for (std::size_t i = 0; i != count(); ++i) {
      for (std::size_t rank = 0; rank != ranks; ++rank) {
        bytes_moved& cost = costs[part_of[i]][rank];
        if (home_of[i] / per_node != rank / per_node) cost.first += bytes[i];
        if (home_of[i] != rank) cost.second += bytes[i];
      }
    }
    std::vector<std::size_t> rank_of(ranks);
    std::iota(rank_of.begin(), rank_of.end(), std::size_t{0});
    bytes_moved least{2 * total(), 0};
    do {
      bytes_moved sum{0, 0};
      for (std::size_t part = 0; part != ranks; ++part) {
        sum.first += costs[part][rank_of[part]].first;
        sum.second += costs[part][rank_of[part]].second;
      }
      least = std::min(least, sum);
    } while (std::next_permutation(rank_of.begin(), rank_of.end()));
    return total() == 0 ? bytes_moved{0, 0} : least;
  }
};

template <class Weight>
problem<Weight> make_problem(engine& random) {
  problem<Weight> made;
  made.ranks = static_cast<std::size_t>(number_between(random, 1, 6));
  made.per_node = static_cast<std::size_t>(number_between(random, 1, 4));
  auto const count = static_cast<std::size_t>(number_between(random, 0, 9));
  // Some sums are beyond the largest integer, some have more bits than a gain.
  std::int64_t const most = static_cast<std::int64_t>(std::numeric_limits<Weight>::max()) /
                            (number_between(random, 0, 7) == 0 ? 4 : 40);
  test::weight_source<Weight> const weights(random, most);
  for (std::size_t i = 0; i != count; ++i) {
    made.bytes.push_back(weights());
    made.home_of.push_back(static_cast<std::size_t>(
        number_between(random, 0, static_cast<std::int64_t>(made.ranks) - 1)));
  }
  std::sort(made.home_of.begin(), made.home_of.end());
  return made;
}

grouping groups_of(std::vector<std::size_t> const& group_of, std::size_t groups) {
  grouping result;
  for (std::size_t group = 0; group != groups; ++group) {
    for (std::uint32_t i = 0; i != group_of.size(); ++i) {
      if (group_of[i] == group) result.push(i);
    }
    result.close();
  }
  return result;
}

template <class Weight>
std::string placement_fault(engine& random) {
  auto const of = make_problem<Weight>(random);
  std::vector<std::size_t> part_of;
  for (std::size_t i = 0; i != of.count(); ++i) {
    part_of.push_back(static_cast<std::size_t>(
        number_between(random, 0, static_cast<std::int64_t>(of.ranks) - 1)));
  }
  bool const is_error = of.total() > std::numeric_limits<std::int64_t>::max();
  omnibal::placement_result result;
  try {
    result = omnibal::placement(groups_of(of.home_of, of.ranks), groups_of(part_of, of.ranks),
                                of.bytes, {.ranks_per_node = of.per_node});
  } catch (std::overflow_error const&) {
    return is_error ? "" : "placement refuses bytes that can be added";
  }
  if (is_error) return "placement takes bytes whose sum leaves its type";
  std::vector<std::uint32_t> ranks = result.rank_of_part;
  std::sort(ranks.begin(), ranks.end());
  for (std::uint32_t rank = 0; rank != of.ranks; ++rank) {
    if (ranks.size() != of.ranks || ranks[rank] != rank) return "parts do not have a rank each";
  }
  std::vector<std::size_t> rank_of_sample;
  for (std::size_t const part : part_of) rank_of_sample.push_back(result.rank_of_part[part]);
  bytes_moved const moved = of.moved(rank_of_sample);
  if (bytes_moved{result.moved_bytes_across_nodes, result.moved_bytes} != moved) {
    return "the bytes are not those that are reported";
  }
  bytes_moved const least = of.min_moved(part_of);
  if (result.min_across_nodes > least.first) return "the bound is above the least bytes";
  if (result.proven && moved != least) return "a placement is called the best that is not";
  if (result.proven && result.min_across_nodes != least.first) return "the bound is not reached";
  bool const is_small = of.total() < int128{1} << 61;
  return is_small && !result.proven ? "there is no proof" : "";
}

template <class Weight>
std::string plan_fault(engine& random) {
  auto const of = make_problem<Weight>(random);
  if (of.total() > std::numeric_limits<std::int64_t>::max()) return "";
  std::vector<std::uint32_t> offsets(of.ranks + 1, 0);
  for (std::size_t const home : of.home_of) ++offsets[home + 1];
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<std::int64_t> costs;
  for (std::size_t i = 0; i != of.count(); ++i) costs.push_back(number_between(random, 0, 20));
  omnibal::make_plan_options options;
  options.ranks_per_node = of.per_node;
  auto const plan = number_between(random, 0, 1) == 0
                        ? omnibal::make_plan(offsets, costs, of.bytes, options)
                        : omnibal::make_plan(offsets, costs, of.bytes, options, omnibal::lpt);
  std::vector<std::size_t> rank_of_sample(of.count(), of.ranks);
  for (std::size_t rank = 0; rank != of.ranks; ++rank) {
    for (std::uint32_t const sample : plan.arrivals(rank)) {
      if (std::exchange(rank_of_sample[sample], rank) != of.ranks) return "a sample arrives twice";
      if (plan.destination_of(sample) != rank) return "a destination is wrong";
    }
  }
  if (plan.arrivals().item_count() != of.count()) return "samples are lost";
  bytes_moved const moved = of.moved(rank_of_sample);
  if (bytes_moved{plan.moved_bytes_across_nodes(), plan.moved_bytes()} != moved) {
    return "the bytes are not those that are reported";
  }
  bool const is_small = of.total() < int128{1} << 61;
  return is_small && moved != of.min_moved(rank_of_sample) ? "other places move fewer bytes" : "";
}

}  // namespace

TEMPLATE_TEST_CASE("placement proves no placement that is not the best", "[certificate]",
                   std::int32_t, std::int64_t, std::uint32_t) {
  test::certify<TestType>("placement",
                          [](engine& random) { return placement_fault<TestType>(random); });
}

TEMPLATE_TEST_CASE("make_plan reports the bytes that move, and they are the fewest",
                   "[certificate]", std::int32_t, std::int64_t, std::uint32_t) {
  test::certify<TestType>("make_plan", [](engine& random) { return plan_fault<TestType>(random); });
}
