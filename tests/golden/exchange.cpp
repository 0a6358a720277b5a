// SPDX-License-Identifier: Apache-2.0
// Prints a digest of what every planner of exchanges gives for seeded integers.
// expected/exchange.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../support/fnv1a.hpp"
#include "../support/samples.hpp"
#include "digest.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/placement.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using golden::digest_of;
using golden::print;
using numbers = std::vector<std::int64_t>;

/// Samples with a heavy tail on ranks with different numbers of them, some without any.
struct batch {
  std::vector<std::uint32_t> offsets{0};
  numbers costs;
  numbers bytes;

  batch(std::uint64_t seed, std::size_t ranks) {
    test::random_amounts random(seed);
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      auto const count = static_cast<std::uint32_t>(rank % 5 == 3 ? 0 : random.between(1, 40));
      offsets.push_back(offsets.back() + count);
    }
    for (std::uint32_t i = 0; i != offsets.back(); ++i) {
      std::int64_t const length = 16 + random.heavy_tail(8192);
      costs.push_back(length * length);
      bytes.push_back(2 * length);
    }
  }
};

void print_plans(std::uint64_t seed, std::size_t ranks) {
  batch const given(seed, ranks);
  std::string const suffix = ", " + std::to_string(ranks) + " ranks, seed " + std::to_string(seed);
  for (std::size_t const per_node : {1u, 8u}) {
    std::string const at = ", " + std::to_string(per_node) + " per node" + suffix;
    omnibal::make_plan_options const options{.ranks_per_node = per_node};
    auto const kept = omnibal::make_plan(given.offsets, given.costs, given.bytes, options);
    auto const even =
        omnibal::make_plan(given.offsets, given.costs, given.bytes, options, omnibal::lpt);
    for (auto const* const plan : {&kept, &even}) {
      std::string const name = plan == &kept ? "make_plan" : "make_plan of lpt";
      print(name + at, digest_of(plan->arrivals().items()));
      print(name + ", digest" + at, plan->digest() ^ plan->inverse().digest());
    }
    std::vector<std::uint32_t> counts;
    for (std::int64_t const bytes : given.bytes) {
      counts.push_back(static_cast<std::uint32_t>(bytes % 4));
    }
    numbers pieces;
    for (std::uint32_t const count : counts) {
      for (std::uint32_t k = 0; k != count; ++k) pieces.push_back(count + k);
    }
    std::tuple const encoders{omnibal::encoder_phase{counts, pieces, pieces, pieces}};
    print("make_orchestration" + at,
          omnibal::make_orchestration(given.offsets, {given.costs, given.bytes}, encoders, options)
              .digest());
  }
}

void print_placement(std::uint64_t seed, std::size_t ranks) {
  batch const given(seed, ranks);
  std::vector<std::uint32_t> items(given.costs.size());
  for (std::uint32_t i = 0; i != items.size(); ++i) items[i] = i;
  omnibal::grouping const home(given.offsets, items);
  auto const parts = omnibal::lpt(given.costs, ranks);
  auto const result = omnibal::placement(home, parts, given.bytes, {.ranks_per_node = 8});
  print("placement, " + std::to_string(ranks) + " ranks, seed " + std::to_string(seed),
        digest_of(result.rank_of_part) ^ static_cast<std::uint64_t>(result.min_across_nodes));
}

}  // namespace

int main() {
  for (std::uint64_t const seed : {1u, 2u}) {
    for (std::size_t const ranks : {3u, 20u, 200u}) {
      print_plans(seed, ranks);
      print_placement(seed, ranks);
    }
  }
}
