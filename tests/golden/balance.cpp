// SPDX-License-Identifier: Apache-2.0
// Prints a digest of what every balancer gives for seeded integers.
// expected/balance.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../support/fnv1a.hpp"
#include "../support/parts.hpp"
#include "../support/samples.hpp"
#include "digest.hpp"

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/balance_set_cost.hpp>
#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/balance/set_costs.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

using golden::digest_of;
using golden::print;

/// Every balancer on every kind of costs, a line for each.
template <std::size_t R>
void print_balancers(std::size_t count) {
  std::map<std::string, test::fnv1a> hashes;
  for (auto const& set : test::cost_sets<R>(count, count)) {
    auto const add = [&](std::string const& name, omnibal::grouping const& parts) {
      hashes[name].add(digest_of(parts.offsets()));
      hashes[name].add(digest_of(parts.items()));
    };
    auto const cost = std::identity{};
    for (std::size_t const parts : {1u, 3u, 16u}) {
      auto const start = omnibal::lpt(set.samples, parts, cost,
                                      {.count = omnibal::count_policy::at_most_one_apart});
      add("lpt", omnibal::lpt(set.samples, parts));
      add("lpt, counts at most one apart", start);
      add("refine_parts", omnibal::refine_parts(set.samples, start));
      std::vector<double> speeds;
      for (std::size_t part = 0; part != parts; ++part) {
        speeds.push_back(1.0 + 0.3 * static_cast<double>(part % 5));
      }
      auto const timed = omnibal::lpt(set.samples, parts, cost, {.speeds = speeds});
      add("lpt, speeds", timed);
      add("refine_parts, speeds",
          omnibal::refine_parts(set.samples, start, cost, {.speeds = speeds}));
      add("balance_optimally",
          omnibal::balance_optimally(set.samples, parts, cost, {.nodes = 1000}).parts);
      if constexpr (R == 1) {
        add("karmarkar_karp", omnibal::karmarkar_karp(set.samples, parts, test::first_amount));
        add("karmarkar_karp, speeds",
            omnibal::karmarkar_karp(set.samples, parts, test::first_amount, {.speeds = speeds}));
        add("deal", omnibal::deal(set.samples, parts, test::first_amount));
        add("deal, speeds",
            omnibal::deal(set.samples, parts, test::first_amount, {.speeds = speeds}));
      }
    }
  }
  for (auto const& [name, hash] : hashes) {
    print(name + ", " + std::to_string(R) + " kinds of cost, " + std::to_string(count) + " samples",
          hash.value());
  }
}

/// Schedules of every policy and tolerance.
template <std::size_t R>
void print_schedules(std::size_t count) {
  using omnibal::remainder_policy;
  for (double const tolerance : {0.0, 0.005, 0.1}) {
    test::fnv1a hash;
    for (auto const& set : test::cost_sets<R>(count, count)) {
      for (std::size_t const ranks : {1u, 3u, 16u}) {
        for (auto const remainder :
             {remainder_policy::short_step, remainder_policy::repeat, remainder_policy::carry}) {
          auto const schedule = omnibal::schedule_steps(
              set.samples, ranks,
              {.seed = count, .epoch = ranks, .max_dist_ratio = tolerance, .remainder = remainder});
          hash.add(digest_of(schedule.cells().offsets()));
          hash.add(digest_of(schedule.cells().items()));
        }
      }
    }
    print("schedule_steps, tolerance " + std::to_string(tolerance) + ", " + std::to_string(R) +
              " kinds of load, " + std::to_string(count) + " groups",
          hash.value());
  }
}

/// Schedules with several groups per rank, a line for each number of them.
template <std::size_t R>
void print_schedules_of_several(std::size_t count) {
  using omnibal::remainder_policy;
  for (std::uint32_t const of_rank : {2u, 4u, 16u}) {
    for (bool const positions : {false, true}) {
      test::fnv1a hash;
      for (auto const& set : test::cost_sets<R>(count, count)) {
        for (auto const remainder :
             {remainder_policy::short_step, remainder_policy::repeat, remainder_policy::carry}) {
          auto const schedule = omnibal::schedule_steps(set.samples, 3,
                                                        {.seed = count,
                                                         .remainder = remainder,
                                                         .groups_per_rank = of_rank,
                                                         .even_positions = positions});
          hash.add(digest_of(schedule.cells().offsets()));
          hash.add(digest_of(schedule.cells().items()));
        }
      }
      print("schedule_steps, " + std::to_string(of_rank) + " groups per rank" +
                (positions ? ", even positions, " : ", ") + std::to_string(R) + " kinds of load, " +
                std::to_string(count) + " groups",
            hash.value());
    }
  }
}

/// The balancers that know about homes, caps and padding, a line for each.
template <std::size_t R>
void print_balancers_with_conditions(std::size_t count) {
  std::map<std::string, test::fnv1a> hashes;
  for (auto set : test::small_sets<R>(count, count)) {
    auto const add = [&](std::string const& name, omnibal::groups_argument parts) {
      hashes[name].add(digest_of(parts.offsets()));
      hashes[name].add(digest_of(parts.items()));
    };
    auto const first = [](omnibal::resources<R> const& amounts) { return amounts[0]; };
    omnibal::grouping home;
    for (std::uint32_t rank = 0; rank != 4; ++rank) {
      for (std::uint32_t i = rank; i < set.samples.size(); i += 4) home.push(i);
      home.close();
    }
    auto const bytes = [](std::uint32_t i) { return 1 + i % 7; };
    for (double const tolerance : {0.0, 0.05}) {
      add("rebalance", omnibal::rebalance(home, set.samples, bytes, {.max_overload = tolerance}));
    }
    for (auto const rule : {omnibal::rank_counts::kept, omnibal::rank_counts::at_most_one_apart}) {
      add("rebalance, counts", omnibal::rebalance(home, set.samples, bytes, {.counts = rule}));
    }
    add("rebalance, budget",
        omnibal::rebalance(home, set.samples, bytes, {.max_overload = 0.0, .max_moved_bytes = 60}));
    add("balance_set_cost",
        omnibal::balance_set_cost(set.samples, 4, omnibal::padded_batch{first}));
    add("balance_set_cost, attention",
        omnibal::balance_set_cost(set.samples, 4, omnibal::padded_attention{first}));
    for (std::size_t const parts : {4u, 16u, 200u}) {
      auto const within =
          omnibal::balance_under_capacity(set.samples, parts, first, std::identity{}, set.capacity);
      add("balance_under_capacity", within.parts);
      hashes["balance_under_capacity"].add(static_cast<std::uint64_t>(within.status));
      hashes["balance_under_capacity"].add(static_cast<std::uint64_t>(within.reason));
      hashes["balance_under_capacity"].add(static_cast<std::uint64_t>(within.lower_bound));
    }
    std::erase_if(set.samples, [&](auto const& sample) { return !sample.fits(set.capacity); });
    omnibal::micro_batch_steps const batches =
        omnibal::micro_batches(set.samples, 3, first, std::identity{}, set.capacity);
    add("micro_batches", batches.cells());
  }
  for (auto const& [name, hash] : hashes) {
    print(name + ", " + std::to_string(R) + " kinds, " + std::to_string(count) + " samples",
          hash.value());
  }
}

}  // namespace

int main() {
  print_balancers<1>(20);
  print_balancers<1>(300);
  print_balancers<2>(300);
  print_schedules<1>(300);
  print_schedules<2>(300);
  print_schedules<2>(20);
  print_schedules_of_several<1>(300);
  print_schedules_of_several<2>(300);
  print_balancers_with_conditions<1>(20);
  print_balancers_with_conditions<2>(300);
}
