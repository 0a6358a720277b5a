// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "prefix_families.hpp"
#include "prefix_faults.hpp"

#include <omnibal/comm/ragged.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/prefix/balance_prefixes.hpp>
#include <omnibal/prefix/prefix_exchange.hpp>
#include <omnibal/prefix/prefix_work.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

using omnibal::balance_prefixes;
using omnibal::balance_prefixes_options;
using omnibal::prefix_work;

namespace {

/// What is wrong with micro-batches whose oversized sequences are listed.
std::string fault_of(omnibal::prefix_steps const& steps, omnibal::prefix_forest const& forest,
                     std::uint64_t capacity) {
  omnibal::prefix_packing packed;
  auto const cells = steps.batches.cells();
  packed.groups = omnibal::grouping({cells.offsets().begin(), cells.offsets().end()},
                                    {cells.items().begin(), cells.items().end()});
  packed.oversized = steps.oversized;
  packed.tokens = steps.tokens;
  packed.computed_tokens = steps.computed_tokens;
  return test::fault(packed, forest, capacity);
}

/// The work of each rank by its definition, and the largest over the mean.
double overload_of(omnibal::prefix_steps const& steps, omnibal::prefix_forest const& forest,
                   std::size_t ranks) {
  std::vector<double> works(ranks, 0.0);
  for (std::size_t m = 0; m != steps.batches.size(); ++m) {
    for (std::size_t r = 0; r != ranks; ++r) {
      works[r] += omnibal::prefix_work_of(forest, steps.batches(m, r));
    }
  }
  for (std::size_t r = 0; r != ranks; ++r) {
    REQUIRE(std::abs(works[r] - steps.work[r]) <= 1e-9 * works[r]);
  }
  double const sum = std::accumulate(works.begin(), works.end(), 0.0);
  return *std::max_element(works.begin(), works.end()) * static_cast<double>(ranks) / sum - 1.0;
}

}  // namespace

// A tenth of a percent between ranks, and no idle rank in any step, for many leaves to exchange.
TEST_CASE("balance_prefixes makes work even", "[slow]") {
  for (auto const& family : bench::prefix_families) {
    auto const forest = family.make(2);
    for (std::size_t const ranks : {2U, 8U}) {
      auto const steps = balance_prefixes(forest, ranks, 16384);
      INFO(family.name << " on " << ranks);
      REQUIRE(fault_of(steps, forest, 16384) == "");
      for (auto const cell : steps.batches.cells()) REQUIRE_FALSE(cell.empty());
      CHECK(overload_of(steps, forest, ranks) <= 0.001);
    }
  }
}

// Small forests have few leaves, equal sequences, empty sequences and more ranks than sequences.
TEST_CASE("balance_prefixes keeps its promises on small forests") {
  omnibal::rng::engine random(3);
  for (int round = 0; round != 500; ++round) {
    auto const forest = test::random_forest(random, 12, 9, 9);
    std::uint64_t const capacity = 5 + omnibal::rng::below(random, 30);
    std::size_t const ranks = 1 + omnibal::rng::below(random, 4);
    balance_prefixes_options options;
    options.packing.multiple_of = 1 + omnibal::rng::below(random, 3);
    options.packing.steps = 100;
    auto const steps = balance_prefixes(forest, ranks, capacity, prefix_work{}, options);
    REQUIRE(fault_of(steps, forest, capacity) == "");
    REQUIRE(steps.batches.size() % options.packing.multiple_of == 0);
    if (steps.batches.cells().item_count() != 0) (void)overload_of(steps, forest, ranks);

    std::vector<std::uint32_t> keys;
    for (std::size_t i = 0; i != forest.sequence_count(); ++i) {
      keys.push_back(static_cast<std::uint32_t>(omnibal::rng::below(random, 4)));
    }
    auto const kept = balance_prefixes(forest, ranks, capacity, prefix_work{}, keys, options);
    REQUIRE(fault_of(kept, forest, capacity) == "");
    REQUIRE(kept.batches.size() % options.packing.multiple_of == 0);
    std::vector<std::set<std::size_t>> ranks_of(4);
    for (std::size_t m = 0; m != kept.batches.size(); ++m) {
      for (std::size_t r = 0; r != ranks; ++r) {
        for (std::uint32_t const i : kept.batches(m, r)) ranks_of[keys[i]].insert(r);
      }
    }
    for (auto const& set : ranks_of) REQUIRE(set.size() <= 1);
    if (kept.batches.cells().item_count() != 0) (void)overload_of(kept, forest, ranks);
  }
}

// Oversized sequences in groups of their own must still be on some rank.
TEST_CASE("balance_prefixes places oversized sequences") {
  std::vector<std::vector<int>> const sequences{{1, 2, 3, 4}, {1, 2}, {1, 2, 3, 9, 9}, {5}, {6}};
  auto const forest = omnibal::build_prefix_forest(sequences);
  balance_prefixes_options options;
  options.packing.oversized = omnibal::oversize_policy::own_group;
  auto const steps = balance_prefixes(forest, 2, 3, prefix_work{}, options);
  CHECK(steps.oversized.empty());
  CHECK(steps.batches.cells().item_count() == 5);
  for (auto const cell : steps.batches.cells()) {
    bool const is_large = test::union_tokens(forest, cell) > 3;
    CHECK((!is_large || cell.size() == 1));
  }
}

// Each copy of a node travels once to a rank, over real ranks, and every rank can build its
// sequences from its nodes.
TEST_CASE("prefix_exchange moves shared prefixes once") {
  omnibal::rng::engine random(4);
  for (int round = 0; round != 20; ++round) {
    std::size_t const ranks = 1 + omnibal::rng::below(random, 4);
    std::vector<std::vector<std::uint32_t>> sequences(12);
    for (auto& sequence : sequences) {
      sequence.resize(omnibal::rng::below(random, 9));
      for (auto& token : sequence)
        token = static_cast<std::uint32_t>(omnibal::rng::below(random, 2));
    }
    auto const forest = omnibal::build_prefix_forest(sequences);
    std::vector<std::uint32_t> offsets{0};
    for (std::size_t r = 1; r != ranks; ++r) {
      offsets.push_back(offsets.back() + static_cast<std::uint32_t>(
                                             omnibal::rng::below(random, 13 - offsets.back())));
    }
    offsets.push_back(12);
    auto const steps = balance_prefixes(forest, ranks, 20);
    auto const moved = omnibal::prefix_exchange(forest, offsets, steps.batches.cells(), 4);
    omnibal::thread_communicator::run(ranks, [&](omnibal::thread_communicator& comm) {
      auto const rank = static_cast<std::uint32_t>(comm.rank());
      std::vector<std::span<std::uint32_t const>> local;
      auto const& homes = moved.plan.home_offsets();
      for (std::uint32_t k = homes[rank]; k != homes[rank + 1]; ++k) {
        std::uint32_t const v = moved.nodes[k];
        // A rank sends from a sequence of its own.
        std::uint32_t own = offsets[rank];
        while (own != offsets[rank + 1] &&
               !(forest.ends()[own] >= v && forest.ends()[own] < forest.subtree_ends()[v])) {
          ++own;
        }
        if (own == offsets[rank + 1]) throw std::runtime_error("a rank sends a foreign node");
        local.push_back(
            std::span(sequences[own])
                .subspan(static_cast<std::size_t>(forest.depths()[v] - forest.lengths()[v]),
                         static_cast<std::size_t>(forest.lengths()[v])));
      }
      auto const rows = omnibal::exchange_samples(comm, moved.plan, local);
      std::vector<std::uint32_t> arrived;
      for (std::uint32_t const k : moved.plan.arrivals(rank)) arrived.push_back(moved.nodes[k]);
      if (!std::is_sorted(arrived.begin(), arrived.end()) ||
          std::adjacent_find(arrived.begin(), arrived.end()) != arrived.end()) {
        throw std::runtime_error("a node came twice or out of order");
      }
      for (std::size_t m = 0; m != steps.batches.size(); ++m) {
        for (std::uint32_t const i : steps.batches(m, rank)) {
          std::vector<std::uint32_t> path;
          for (std::uint32_t v = forest.ends()[i]; v != omnibal::prefix_forest::no_parent;
               v = forest.parents()[v]) {
            path.push_back(v);
          }
          std::vector<std::uint32_t> tokens;
          for (auto v = path.rbegin(); v != path.rend(); ++v) {
            auto const at = std::lower_bound(arrived.begin(), arrived.end(), *v);
            auto const row = rows[static_cast<std::size_t>(at - arrived.begin())];
            tokens.insert(tokens.end(), row.begin(), row.end());
          }
          if (tokens != sequences[i]) throw std::runtime_error("a sequence is incomplete");
        }
      }
    });
  }
}

// The errors must name the argument and the value.
TEST_CASE("balance_prefixes and prefix_exchange name wrong arguments") {
  auto const forest = omnibal::build_prefix_forest(std::vector<std::vector<int>>{{1}, {1, 2}});
  auto const error_of = [](auto const& call) {
    return test::error_text<std::invalid_argument>(call);
  };
  CHECK(error_of([&] { (void)balance_prefixes(forest, 0, 4); }) ==
        "omnibal::balance_prefixes: ranks is 0, must be positive");
  CHECK(error_of([&] {
          (void)balance_prefixes(forest, 1, 4, [](std::uint64_t, std::uint64_t) { return -1.0; });
        }) == "omnibal::balance_prefixes: cost(0, 1) is -1, must be finite and not negative");
  CHECK(error_of([&] {
          (void)balance_prefixes(forest, 1, 4, prefix_work{}, std::vector<int>{1});
        }) == "omnibal::balance_prefixes: keys has 1 values for 2 sequences");
  auto const steps = balance_prefixes(forest, 1, 4);
  CHECK(error_of([&] {
          (void)omnibal::prefix_exchange(forest, std::vector<int>{0, 3}, steps.batches.cells(), 2);
        }) ==
        "omnibal::prefix_exchange: home_offsets ends with 3, must end with the number of "
        "sequences, 2");
  CHECK(
      error_of([&] {
        (void)omnibal::prefix_exchange(forest, std::vector<int>{0, 1, 2}, steps.batches.cells(), 2);
      }) == "omnibal::prefix_exchange: there are 1 cells for 2 ranks");
  CHECK(error_of([&] { (void)omnibal::prefix_work_of(forest, std::vector<std::uint32_t>{7}); }) ==
        "omnibal::prefix_work_of: sequences[0] is 7, must be less than the number of "
        "sequences, 2");
}
