// SPDX-License-Identifier: Apache-2.0
// Parts, micro-batches and steps of whatever costs the bytes describe, checked by their definition.

#include "byte_reader.hpp"
#include "odd_numbers.hpp"
#include "parts.hpp"
#include "schedules.hpp"

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/config.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using test::byte_reader;
using test::oddity;
using test::read_number;
using test::require;
using test::returns;

/// Wide enough for all loads.
template <class T>
using wide = std::conditional_t<std::integral<T>, omnibal::detail::int128, long double>;

template <class T>
wide<T> largest_load(omnibal::groups_argument parts, std::vector<T> const& costs) {
  wide<T> largest = 0;
  for (std::size_t p = 0; p != parts.size(); ++p) {
    wide<T> load = 0;
    for (std::uint32_t const sample : parts[p]) load += costs[sample];
    largest = std::max(largest, load);
  }
  return largest;
}

/// Not above, up to the rounding of sums.
template <class T>
bool is_at_most(wide<T> left, wide<T> right) {
  if constexpr (std::integral<T>) {
    return left <= right;
  } else {
    return left <= right * (1 + 1e-9L);
  }
}

void check_parts(std::string const& name, omnibal::groups_argument made, std::size_t samples,
                 std::size_t parts, omnibal::count_policy policy = omnibal::count_policy::any) {
  std::string const fault = test::parts_fault(made, samples, parts, policy);
  require(fault.empty(), name + ": " + fault);
}

std::size_t read_parts(byte_reader& bytes, oddity kind) {
  return bytes.next() % 40u + (kind == oddity::wrong ? 0 : 1);
}

template <class T>
void check_balancers(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  std::size_t const parts = read_parts(bytes, kind);
  omnibal::refine_parts_options refining;
  refining.counts = bytes.next() % 2 == 0 ? omnibal::part_counts::free : omnibal::part_counts::kept;
  refining.exchanges = bytes.next() * 16u;
  refining.splits = bytes.next();
  refining.seed = bytes.next();
  omnibal::rebalance_options keeping;
  keeping.max_overload = 0.01 * bytes.next();
  keeping.ranks_per_node = bytes.next() % 5u + 1;
  std::uint8_t const salt = bytes.next();
  auto const costs = test::read_numbers<T>(bytes, kind, 300);
  std::size_t const samples = costs.size();

  omnibal::grouping longest_first;
  bool const is_right = returns("lpt", kind, [&] {
    longest_first = omnibal::lpt(costs, parts);
    check_parts("lpt", longest_first, samples, parts);
    auto const policy = omnibal::count_policy::at_most_one_apart;
    check_parts("lpt of even counts",
                omnibal::lpt(costs, parts, std::identity{}, {.count = policy}), samples, parts,
                policy);
  });
  auto const check = [&](std::string const& name, auto const& call) {
    require(returns(name, kind, call) == is_right, name + " refuses what lpt refuses");
  };
  check("karmarkar_karp", [&] {
    check_parts("karmarkar_karp", omnibal::karmarkar_karp(costs, parts), samples, parts);
  });
  check("deal", [&] {
    auto const dealt = omnibal::deal(costs, parts);
    check_parts("deal", dealt, samples, parts, omnibal::count_policy::at_most_one_apart);
    auto const even = omnibal::refine_parts(costs, dealt, std::identity{}, refining);
    bool const is_kept = refining.counts == omnibal::part_counts::kept;
    check_parts("refine_parts", even, samples, parts,
                is_kept ? omnibal::count_policy::at_most_one_apart : omnibal::count_policy::any);
    require(is_at_most<T>(largest_load(even, costs), largest_load(dealt, costs)),
            "refine_parts raises no load");
  });
  check("balance_optimally", [&] {
    auto const best = omnibal::balance_optimally(costs, parts, std::identity{}, {.nodes = 2000});
    check_parts("balance_optimally", best.parts, samples, parts);
    require(is_at_most<T>(best.lower_bound, best.largest_load),
            "balance_optimally has a bound that is one");
    require(is_at_most<T>(largest_load(best.parts, costs), largest_load(longest_first, costs)),
            "balance_optimally is no worse than lpt");
    require(!best.proven || std::floating_point<T> || best.lower_bound == best.largest_load,
            "balance_optimally proves what it reaches");
  });
  if (parts == 0) return;
  omnibal::grouping home;
  for (std::size_t p = 0; p != parts; ++p) {
    for (std::uint32_t i = 0; i != samples; ++i) {
      if ((i * 31u + salt) % 97 % parts == p) home.push(i);
    }
    home.close();
  }
  check("rebalance", [&] {
    auto const kept = omnibal::rebalance(
        home, costs, [salt](std::uint32_t index) { return std::int64_t{index} * salt; }, keeping);
    check_parts("rebalance", kept, samples, parts);
    auto const limit = std::max(largest_load(longest_first, costs), wide<T>{});
    auto const start = largest_load(home, costs);
    require(is_at_most<T>(largest_load(kept, costs), std::max(start, limit)),
            "rebalance raises no load");
  });
}

/// The samples of each part take no more than the capacity.
void check_room(std::string const& name, omnibal::groups_argument parts,
                std::vector<std::int64_t> const& demands, std::int64_t capacity) {
  require(largest_load(parts, demands) <= capacity, name + " exceeds no capacity");
}

void check_capped(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  std::size_t const parts = read_parts(bytes, kind);
  omnibal::balance_under_capacity_options options{.effort = omnibal::effort::fast,
                                                  .exchanges = bytes.next() * 4u,
                                                  .passes = bytes.next() % 4u,
                                                  .nodes = bytes.next() * 8u};
  options.seed = bytes.next();
  std::size_t const multiple = bytes.next() % 4u + 1;
  std::int64_t const capacity =
      read_number<std::int64_t>(bytes, kind) | std::int64_t{kind != oddity::wrong};
  std::vector<std::int64_t> costs;
  std::vector<std::int64_t> demands;
  while (!bytes.empty() && costs.size() < 150) {
    costs.push_back(read_number<std::int64_t>(bytes, kind));
    std::int64_t const demand = read_number<std::int64_t>(bytes, kind);
    demands.push_back(demand < 0        ? demand
                      : demand % 8 == 0 ? demand / 8 % std::max<std::int64_t>(capacity, 1)
                                        : demand / 4);
  }
  std::vector<std::uint32_t> samples(costs.size());
  for (std::uint32_t i = 0; i != samples.size(); ++i) samples[i] = i;
  auto const cost = [&](std::uint32_t i) { return costs[i]; };
  auto const demand = [&](std::uint32_t i) { return demands[i]; };
  bool const is_oversized = std::any_of(demands.begin(), demands.end(),
                                        [&](std::int64_t taken) { return taken > capacity; });

  returns("balance_under_capacity", kind, [&] {
    auto const made =
        omnibal::balance_under_capacity(samples, parts, cost, demand, capacity, options);
    using omnibal::within_reason;
    require((made.reason == within_reason::sample_above_capacity) == is_oversized,
            "balance_under_capacity names a sample above the capacity");
    if (made.status != omnibal::solve_status::solved) {
      require(made.parts.empty(), "balance_under_capacity has no parts that exceed the capacity");
      require((made.status == omnibal::solve_status::infeasible) ==
                  (made.reason != within_reason::none),
              "balance_under_capacity says why nothing fits");
      return;
    }
    check_parts("balance_under_capacity", made.parts, samples.size(), parts);
    check_room("balance_under_capacity", made.parts, demands, capacity);
    require(made.parts_needed <= parts,
            "balance_under_capacity needs no more parts than there are");
    require(largest_load(made.parts, costs) == made.largest_load, "balance_under_capacity adds up");
    require(made.lower_bound <= made.largest_load,
            "balance_under_capacity has a bound that is one");
  });
  returns("micro_batches", is_oversized ? oddity::wrong : kind, [&] {
    auto const made = omnibal::micro_batches(samples, parts, cost, demand, capacity,
                                             {.multiple_of = multiple,
                                              .effort = omnibal::effort::fast,
                                              .exchanges = options.exchanges,
                                              .passes = options.passes,
                                              .nodes = options.nodes,
                                              .seed = options.seed});
    require(made.ranks() == parts, "micro_batches are of all ranks");
    require(made.size() % multiple == 0, "micro_batches are a multiple of what was asked for");
    check_parts("micro_batches", made.cells(), samples.size(), made.size() * parts);
    check_room("micro_batches", made.cells(), demands, capacity);
  });
}

template <class Load>
void check_schedule(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  std::size_t const ranks = read_parts(bytes, kind);
  omnibal::schedule_steps_options options;
  options.seed = bytes.next();
  options.epoch = bytes.next();
  options.max_dist_ratio = bytes.next() % 2 == 0 ? 0.005 : bytes.next() / 255.0;
  options.remainder = omnibal::remainder_policy{bytes.next() % 3};
  options.groups_per_rank = bytes.next() % 4u + (kind == oddity::wrong ? 0 : 1);
  options.even_positions = bytes.next() % 4 == 0;
  options.rounds = bytes.next() % 80u;
  std::size_t const carried = bytes.next() % 4 == 0 ? bytes.next() % 8u : 0;
  std::vector<Load> loads;
  while (!bytes.empty() && loads.size() < 400) {
    Load load{};
    for (auto& amount : load.amounts) {
      amount = read_number<std::remove_cvref_t<decltype(amount)>>(bytes, kind);
    }
    loads.push_back(load);
  }
  for (std::size_t i = 0; i != carried && !loads.empty(); ++i) {
    options.carried.push_back(static_cast<std::uint32_t>(i * 7 % loads.size()));
  }
  returns("schedule_steps", kind, [&] {
    auto const made = omnibal::schedule_steps(loads, ranks, options);
    if (options.groups_per_rank == 1) {
      std::string const fault = test::schedule_fault(made, loads.size(), ranks, options);
      require(fault.empty(), "schedule_steps: " + fault);
    }
    auto const left = omnibal::unscheduled_groups(made, loads.size(), options.carried);
    bool const carries = options.remainder == omnibal::remainder_policy::carry;
    require(carries ? left.size() < ranks * options.groups_per_rank : left.empty(),
            "schedule_steps loses no group");
    require(made == omnibal::schedule_steps(loads, ranks, options),
            "schedule_steps gives the same steps again");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  byte_reader bytes({data, size});
  switch (bytes.next() % 5) {
    case 0: check_balancers<std::int64_t>(bytes); break;
    case 1: check_balancers<double>(bytes); break;
    case 2: check_capped(bytes); break;
    case 3: check_schedule<omnibal::resources<1>>(bytes); break;
    default: check_schedule<omnibal::resources<2>>(bytes); break;
  }
  return 0;
}
