// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/exchange/compose.hpp>
#include <omnibal/exchange/detail/phase_gather.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/orchestrate.hpp>
#include <omnibal/exchange/placement.hpp>
#include <omnibal/exchange/plan_exchange.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::exchange_plan;
using omnibal::grouping;
using omnibal::make_plan;
using numbers = std::vector<std::int64_t>;
using indices = std::vector<std::uint32_t>;

/// Where samples lie: evenly, with ranks that have none, and all on one rank.
std::vector<indices> all_offsets(std::size_t samples, std::size_t ranks) {
  auto const count = static_cast<std::uint32_t>(samples);
  indices even;
  indices uneven;
  indices last(ranks + 1, 0);
  for (std::uint32_t r = 0; r <= ranks; ++r) {
    even.push_back(static_cast<std::uint32_t>(samples * r / ranks));
    uneven.push_back(even[r / 2 * 2]);
  }
  uneven.back() = count;
  last.back() = count;
  return {even, uneven, last};
}

std::size_t rank_of(indices const& offsets, std::uint32_t sample) {
  std::size_t rank = 0;
  while (offsets[rank + 1] <= sample) ++rank;
  return rank;
}

/// What is wrong with a plan; empty where nothing is. Recomputed sample by sample.
std::string plan_fault(exchange_plan const& plan, indices const& offsets, numbers const& bytes,
                       std::size_t ranks_per_node = 1) {
  std::size_t const ranks = offsets.size() - 1;
  if (plan.ranks() != ranks || plan.sample_count() != bytes.size()) return "another size";
  std::string const fault = test::parts_fault(plan.arrivals(), bytes.size(), ranks);
  if (!fault.empty()) return fault;
  std::int64_t moved = 0;
  std::int64_t across = 0;
  std::vector<std::vector<std::uint64_t>> travel(ranks, std::vector<std::uint64_t>(ranks, 0));
  for (std::size_t to = 0; to != ranks; ++to) {
    for (std::uint32_t const sample : plan.arrivals(to)) {
      std::size_t const from = rank_of(offsets, sample);
      if (plan.home_of(sample) != from) return "another home";
      if (plan.destination_of(sample) != to) return "another destination";
      ++travel[from][to];
      if (from != to) moved += bytes[sample];
      if (from / ranks_per_node != to / ranks_per_node) across += bytes[sample];
    }
  }
  if (plan.moved_bytes() != moved) return "other moved bytes";
  if (plan.moved_bytes_across_nodes() != across) return "other bytes across nodes";
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    if (plan.home_count(rank) != offsets[rank + 1] - offsets[rank]) return "another home count";
    if (plan.send_counts(rank) != travel[rank]) return "other send counts";
    auto const received = plan.receive_counts(rank);
    auto const sends = plan.sends(rank);
    for (std::size_t other = 0; other != ranks; ++other) {
      if (received[other] != travel[other][rank]) return "other receive counts";
      if (sends[other].size() != travel[rank][other]) return "other sends";
      // What is sent to a rank is what it gets, in its order.
      indices named;
      for (std::uint32_t const local : sends[other]) named.push_back(offsets[rank] + local);
      indices wanted;
      for (std::uint32_t const sample : plan.arrivals(other)) {
        if (rank_of(offsets, sample) == rank) wanted.push_back(sample);
      }
      if (named != wanted) return "sends in another order";
    }
  }
  return "";
}

std::string inverse_fault(exchange_plan const& plan) {
  exchange_plan const inverse = plan.inverse();
  if (inverse.moved_bytes() != plan.moved_bytes()) return "other bytes";
  if (inverse.moved_bytes_across_nodes() != plan.moved_bytes_across_nodes()) return "other nodes";
  auto const there = plan.arrivals().items();
  auto const back = inverse.arrivals().items();
  for (std::uint32_t sample = 0; sample != there.size(); ++sample) {
    if (there[back[sample]] != sample) return "not the inverse";
  }
  if (!(inverse.inverse() == plan) || inverse.inverse().digest() != plan.digest()) {
    return "the inverse of the inverse differs";
  }
  return "";
}

std::int64_t largest_load(exchange_plan const& plan, numbers const& costs) {
  std::int64_t largest = 0;
  for (std::size_t rank = 0; rank != plan.ranks(); ++rank) {
    std::int64_t load = 0;
    for (std::uint32_t const sample : plan.arrivals(rank)) load += costs[sample];
    largest = std::max(largest, load);
  }
  return largest;
}

numbers first_costs(test::sample_set<1> const& set) {
  numbers result;
  for (auto const& sample : set.samples) result.push_back(sample[0]);
  return result;
}

}  // namespace

TEST_CASE("plans are sound, whatever the costs, the homes and the balancer") {
  for (std::size_t const count : {1u, 7u, 60u}) {
    for (auto const& set : test::cost_sets<1>(count, count)) {
      numbers const costs = first_costs(set);
      numbers bytes(costs.size());
      test::random_amounts random(count);
      for (auto& b : bytes) b = random.heavy_tail(10'000);
      for (std::size_t const ranks : {1u, 2u, 5u, 16u}) {
        for (auto const& offsets : all_offsets(costs.size(), ranks)) {
          for (std::size_t const per_node : {1u, 2u, 3u, 100u}) {
            INFO(set.name << ", " << costs.size() << " samples, " << ranks << " ranks, " << per_node
                          << " per node");
            omnibal::make_plan_options const options{.ranks_per_node = per_node};
            auto const check = [&](auto const& balance) {
              auto const plan = make_plan(offsets, costs, bytes, options, balance);
              CHECK(plan_fault(plan, offsets, bytes, per_node) == "");
              CHECK(inverse_fault(plan) == "");
              CHECK(make_plan(offsets, costs, bytes, options, balance).digest() == plan.digest());
              return plan;
            };
            check(omnibal::rebalance);
            auto const even = check(omnibal::lpt);
            auto const parts = omnibal::lpt(costs, ranks);
            CHECK(largest_load(even, costs) == test::largest_loads(parts, set.samples)[0]);
          }
        }
      }
    }
  }
}

TEST_CASE("a plan by hand") {
  // Rank 0 has 4 units of work too many; sample 1 has the fewest bytes for them.
  indices const offsets{0, 3, 4};
  numbers const costs{4, 4, 2, 2};
  numbers const bytes{9, 1, 5, 5};
  auto const plan = make_plan(offsets, costs, bytes, {.max_overload = 0});
  CHECK(plan.arrivals().size() == 2);
  CHECK(indices(plan.arrivals(0).begin(), plan.arrivals(0).end()) == indices{0, 2});
  CHECK(indices(plan.arrivals(1).begin(), plan.arrivals(1).end()) == indices{1, 3});
  CHECK(plan.moved_bytes() == 1);
  CHECK(plan.send_counts(0) == std::vector<std::uint64_t>{2, 1});
  CHECK(plan.receive_counts(1) == std::vector<std::uint64_t>{1, 1});
  CHECK(plan.sends(0) == grouping({0, 2, 3}, {0, 2, 1}));
  auto const inverse = plan.inverse();
  CHECK(indices(inverse.arrivals(0).begin(), inverse.arrivals(0).end()) == indices{0, 2, 1});
  CHECK(indices(inverse.arrivals(1).begin(), inverse.arrivals(1).end()) == indices{3});
}

TEST_CASE("costs and bytes may be ranges, functors and resources, offsets any integers") {
  std::vector<int> const costs{5, 1, 1, 1};
  auto const plan = make_plan(indices{0, 3, 4}, costs, costs);
  auto const cost_of = [&](std::uint32_t i) { return costs[i]; };
  CHECK(make_plan(std::vector<int>{0, 3, 4}, cost_of, cost_of) == plan);
  CHECK(make_plan(std::vector<std::uint64_t>{0, 3, 4}, std::span(costs), costs) == plan);
  auto const as_double = [&](std::uint32_t i) { return 0.25 * costs[i]; };
  CHECK(make_plan(indices{0, 3, 4}, as_double, costs) == plan);
  auto const two = [&](std::uint32_t i) {
    return omnibal::resources{std::int64_t{costs[i]}, std::int64_t{1}};
  };
  CHECK(plan_fault(make_plan(indices{0, 3, 4}, two, costs), {0, 3, 4}, {5, 1, 1, 1}) == "");
  CHECK(plan_fault(make_plan(indices{0, 3, 4}, two, costs, {}, omnibal::lpt), {0, 3, 4},
                   {5, 1, 1, 1}) == "");
  CHECK(plan_fault(make_plan(indices{0, 3, 4}, costs, costs, {}, omnibal::karmarkar_karp),
                   {0, 3, 4}, {5, 1, 1, 1}) == "");
  auto const like_rebalance = [](omnibal::grouping_view home, auto const& c, auto const& b,
                                 omnibal::rebalance_options const& options) {
    return omnibal::rebalance(home, c, b, options);
  };
  CHECK(make_plan(indices{0, 3, 4}, costs, costs, {}, like_rebalance) == plan);
}

TEST_CASE("a plan has the bytes of its samples, and values in the order of either side") {
  numbers const costs{9, 1, 1, 1, 5, 3};
  numbers const bytes{90, 10, 11, 12, 50, 30};
  auto const plan = omnibal::make_plan(numbers{0, 4, 4, 6}, costs, bytes, {}, omnibal::lpt);
  CHECK(numbers(plan.bytes().begin(), plan.bytes().end()) == bytes);
  auto const inverse = plan.inverse();
  auto const after = plan.permuted(bytes);
  CHECK(numbers(inverse.bytes().begin(), inverse.bytes().end()) == after);
  CHECK(inverse.permuted(after) == bytes);
  for (std::size_t rank = 0; rank != 3; ++rank) {
    std::int64_t before = 0;
    for (auto s = plan.home_offsets()[rank]; s != plan.home_offsets()[rank + 1]; ++s) {
      before += bytes[s];
    }
    CHECK(inverse.elements_after(rank, inverse.bytes()) == before);
    auto const doubled = [&](std::uint32_t s) { return 2 * plan.bytes()[s]; };
    CHECK(plan.elements_after(rank, doubled) == 2 * plan.elements_after(rank, bytes));
  }
  // Of what the second plan starts with, the first one's arrivals.
  auto const home = omnibal::compose(plan, inverse, bytes);
  CHECK(numbers(home.bytes().begin(), home.bytes().end()) == bytes);

  using test::error_text;
  CHECK(error_text<std::invalid_argument>([&] { (void)plan.permuted(numbers(5)); }) ==
        "omnibal::exchange_plan::permuted: values has 5 values for 6 samples");
  CHECK(error_text<std::invalid_argument>([&] { (void)plan.elements_after(0, numbers(7)); }) ==
        "omnibal::exchange_plan::elements_after: sizes has 7 elements, but there are 6 samples");
  CHECK(error_text<std::invalid_argument>([&] { (void)plan.elements_after(0, numbers(6, -1)); }) ==
        "omnibal::exchange_plan::elements_after: sizes[0] is -1, must be finite and not negative");
  CHECK_THROWS_AS(inverse.elements_after(0, numbers(6, std::int64_t{1} << 62)),
                  std::overflow_error);
}

TEST_CASE("an arrangement that is decided becomes a plan as it is") {
  numbers const bytes{1, 2, 3, 4, 5, 6};
  grouping swapped;
  for (std::uint32_t const i : {4u, 3u, 5u}) swapped.push(i);
  swapped.close();
  for (std::uint32_t const i : {0u, 1u, 2u}) swapped.push(i);
  swapped.close();
  auto const plan = make_plan(numbers{0, 3, 6}, swapped, bytes);
  CHECK(plan.moved_bytes() == 21);
  CHECK(plan.moved_bytes_across_nodes() == 21);
  CHECK(make_plan(numbers{0, 3, 6}, swapped, bytes, {.ranks_per_node = 2})
            .moved_bytes_across_nodes() == 0);
  CHECK(indices(plan.arrivals(0).begin(), plan.arrivals(0).end()) == indices{4, 3, 5});
  // Where the parts may be placed, they are where their samples are.
  auto const given = [&](auto const&, std::size_t, auto const&) { return swapped; };
  CHECK(make_plan(numbers{0, 3, 6}, bytes, bytes, {}, given).moved_bytes() == 0);

  auto const steps = omnibal::micro_batches(
      bytes, 2, [](std::int64_t n) { return n; },
      [](std::int64_t n) { return omnibal::resources{n}; }, omnibal::resources{7});
  REQUIRE(steps.size() == 2);
  auto const batches = make_plan(numbers{0, 3, 6}, steps.cells(), bytes);
  for (std::size_t rank = 0; rank != 2; ++rank) {
    indices wanted;
    for (std::size_t step = 0; step != 2; ++step) {
      wanted.insert(wanted.end(), steps(step, rank).begin(), steps(step, rank).end());
    }
    CHECK(indices(batches.arrivals(rank).begin(), batches.arrivals(rank).end()) == wanted);
  }
  CHECK(make_plan(numbers{0, 0, 0}, grouping(), numbers()).sample_count() == 0);

  using test::error_text;
  CHECK(error_text<std::invalid_argument>([&] {
          (void)make_plan(numbers{0, 3, 6, 6}, swapped, bytes);
        }) == "omnibal::make_plan: there are 2 parts for 3 ranks");
  CHECK(error_text<std::invalid_argument>([&] {
          (void)make_plan(numbers{0, 4, 7}, swapped, numbers(7));
        }) == "omnibal::make_plan: the parts have 6 samples, not 7");
  CHECK_THROWS_AS(make_plan(numbers{0, 3, 6}, swapped, numbers(6, -1)), std::invalid_argument);
  CHECK_THROWS_AS(make_plan(numbers{0, 3, 6}, swapped, bytes, {.ranks_per_node = 0}),
                  std::invalid_argument);
}

TEST_CASE("a part stays with the rank for which a balancer that knows the homes made it") {
  // Rank 0 has drawn all samples, rank 1 is twice as fast. Fewest bytes would swap the parts.
  std::vector<std::int64_t> const home{0, 3, 3};
  std::vector<std::int64_t> const costs{10, 10, 10};
  auto const for_fast_rank = [](omnibal::grouping_view, std::vector<std::int64_t> const&,
                                std::vector<std::int64_t> const&,
                                omnibal::rebalance_options const&) {
    return grouping({0, 1, 3}, {0, 1, 2});
  };
  auto const plan = omnibal::make_plan(home, costs, costs, {}, for_fast_rank);
  CHECK(plan.arrivals(0).size() == 1);
  CHECK(plan.arrivals(1).size() == 2);
  // One that is not told the homes makes parts for whichever rank.
  auto const for_any_rank = [](std::span<std::int64_t const>, std::size_t, std::identity) {
    return grouping({0, 1, 3}, {0, 1, 2});
  };
  auto const other = omnibal::make_plan(home, costs, costs, {}, for_any_rank);
  CHECK(other.arrivals(0).size() == 2);
}

TEST_CASE("the tolerance reaches the balancer") {
  numbers const costs{6, 5, 4, 5};
  indices const offsets{0, 2, 4};
  CHECK(make_plan(offsets, costs, costs, {.max_overload = 0.2}).moved_bytes() == 0);
  CHECK(largest_load(make_plan(offsets, costs, costs, {.max_overload = 0.0}), costs) == 10);
}

TEST_CASE("different plans have different digests") {
  std::set<std::uint64_t> digests;
  std::size_t plans = 0;
  for (std::size_t ranks = 1; ranks != 6; ++ranks) {
    for (auto const& offsets : all_offsets(24, ranks)) {
      numbers const costs(24, 1);
      for (std::int64_t seed = 0; seed != 5; ++seed) {
        auto const shifted = [&](auto const& samples, std::size_t parts, auto const&) {
          grouping result;
          for (std::size_t p = 0; p != parts; ++p) {
            for (std::uint32_t i = 0; i != samples.size(); ++i) {
              if ((i * 7 + static_cast<std::size_t>(seed)) % parts == p) result.push(i);
            }
            result.close();
          }
          return result;
        };
        auto const bytes = [&](std::uint32_t i) { return (i + 1) * 1000 + i * i; };
        auto const plan = make_plan(offsets, costs, bytes, {}, shifted);
        auto const before = digests.size();
        digests.insert(plan.digest());
        if (digests.size() != before) ++plans;
        // Equal digests where, and only where, plans are equal, also against the inverse.
        CHECK((plan.inverse().digest() == plan.digest()) == (plan.inverse() == plan));
      }
    }
  }
  CHECK(plans > 12);
}

TEST_CASE("rebalance moves a quarter at most of what lpt moves with the best relabeling") {
  for (std::uint64_t seed = 0; seed != 4; ++seed) {
    test::random_amounts random(seed);
    std::size_t const ranks = 64;
    indices offsets;
    for (std::uint32_t r = 0; r <= ranks; ++r) offsets.push_back(64 * r);
    numbers costs(ranks * 64);
    numbers bytes(costs.size());
    for (std::size_t i = 0; i != costs.size(); ++i) {
      std::int64_t const length = 16 + random.heavy_tail(131'072);
      costs[i] = length * length;
      bytes[i] = 2 * length;
    }
    auto const of_lpt = make_plan(offsets, costs, bytes, {}, omnibal::lpt);
    double const sum = static_cast<double>(std::accumulate(costs.begin(), costs.end(), 0ll));
    double const mean =
        std::max(sum / static_cast<double>(ranks),
                 static_cast<double>(*std::max_element(costs.begin(), costs.end())));
    double const tolerance = static_cast<double>(largest_load(of_lpt, costs)) / mean - 1 + 1e-9;
    auto const kept = make_plan(offsets, costs, bytes, {.max_overload = std::max(0.0, tolerance)});
    CHECK(static_cast<double>(largest_load(kept, costs)) <=
          static_cast<double>(largest_load(of_lpt, costs)) * (1 + 1e-8));
    CHECK(4 * kept.moved_bytes() <= of_lpt.moved_bytes());
  }
}

TEST_CASE("two exchanges in one go where both would") {
  test::random_amounts random(5);
  numbers costs(40);
  for (auto& cost : costs) cost = random.heavy_tail(1000);
  for (auto const& offsets : all_offsets(costs.size(), 6)) {
    auto const first = make_plan(offsets, costs, costs, {}, omnibal::deal);
    auto const second = make_plan(offsets, costs, costs, {}, omnibal::lpt);
    // From where `first` put the samples to where `second` wants them.
    numbers by_slot;
    for (std::uint32_t const item : first.arrivals().items()) by_slot.push_back(costs[item]);
    auto const both = omnibal::compose(first.inverse(), second, by_slot, {.ranks_per_node = 2});
    indices const starts(first.arrivals().offsets().begin(), first.arrivals().offsets().end());
    CHECK(plan_fault(both, starts, by_slot, 2) == "");
    for (std::size_t slot = 0; slot != costs.size(); ++slot) {
      auto const sample = first.arrivals().items()[both.arrivals().items()[slot]];
      CHECK(sample == second.arrivals().items()[slot]);
    }
    CHECK(omnibal::compose(first, first.inverse(), costs).moved_bytes() == 0);
  }
  auto const small = make_plan(indices{0, 1}, numbers{1}, numbers{1});
  auto const large = make_plan(indices{0, 2}, numbers{1, 1}, numbers{1, 1});
  CHECK_THROWS_AS(omnibal::compose(small, large, numbers{1}), std::invalid_argument);
  CHECK_THROWS_AS(omnibal::compose(small, small, numbers{1, 1}), std::invalid_argument);
  CHECK_THROWS_AS(omnibal::compose(small, small, numbers{1}, {.ranks_per_node = 0}),
                  std::invalid_argument);
}

TEST_CASE("what is planned for other functions fails in their names") {
  omnibal::self_communicator alone;
  std::int64_t const most = std::numeric_limits<std::int64_t>::max();
  auto const itself = [](std::int64_t number) { return number; };
  auto const one = [](std::int64_t) { return 1; };
  auto const two_parts = [](auto const&, std::size_t, auto const&) {
    return grouping({0, 1, 2}, {0, 1});
  };
  auto const text = [](auto const& call) { return test::error_text<std::invalid_argument>(call); };
  CHECK(test::error_text<std::overflow_error>([&] {
          static_cast<void>(omnibal::plan_exchange(alone, numbers{most, 1}, one, itself));
        }).find("omnibal::plan_exchange: the sum of the bytes") == 0);
  CHECK(text([&] {
          static_cast<void>(omnibal::plan_exchange(alone, numbers{1, 2}, one, one, {}, two_parts));
        }).find("omnibal::plan_exchange: the balancer made 2 parts") == 0);
  CHECK(text([&] {
          static_cast<void>(omnibal::orchestrate(
              alone, numbers{1, 2}, omnibal::language_phase{one, one, two_parts}, std::tuple{}));
        }).find("omnibal::orchestrate: the balancer made 2 parts") == 0);
  numbers const costs{1, 2};
  CHECK(text([&] {
          static_cast<void>(omnibal::make_orchestration(
              indices{0, 2}, omnibal::language_phase{costs, costs, two_parts}, {}));
        }).find("omnibal::make_orchestration: the balancer made 2 parts") == 0);
}

TEST_CASE("wrong arguments of make_plan are named") {
  numbers const two{1, 1};
  auto const text = [&](auto const& call) { return test::error_text<std::invalid_argument>(call); };
  auto const plan_of = [&](std::vector<int> const& offsets, numbers const& costs,
                           numbers const& bytes, omnibal::make_plan_options const& options = {}) {
    return text([&] { static_cast<void>(make_plan(offsets, costs, bytes, options)); });
  };
  CHECK(plan_of({0, 2}, two, two) == "no error");
  CHECK(plan_of({}, two, two).find("make_plan: home_offsets has 0 elements") != std::string::npos);
  CHECK(plan_of({0}, {}, {}).find("home_offsets has 1 element") != std::string::npos);
  CHECK(plan_of({1, 2}, two, two).find("home_offsets[0] is 1") != std::string::npos);
  CHECK(plan_of({0, 2, 1}, two, two).find("home_offsets[2] is 1") != std::string::npos);
  CHECK(plan_of({0, -1}, two, two).find("home_offsets[1] is -1") != std::string::npos);
  CHECK(plan_of({0, 2}, {1}, two)
            .find("omnibal::make_plan: costs has 1 elements, but there are 2 samples") !=
        std::string::npos);
  CHECK(plan_of({0, 2}, two, {1})
            .find("omnibal::make_plan: bytes has 1 elements, but there are 2 samples") !=
        std::string::npos);
  CHECK(plan_of({0, 2}, {1, -1}, two).find("omnibal::make_plan: costs[1] is -1") !=
        std::string::npos);
  CHECK(plan_of({0, 2}, two, {1, -1}).find("bytes[1] is -1") != std::string::npos);
  CHECK(plan_of({0, 2}, two, two, {.ranks_per_node = 0}).find("options.ranks_per_node is 0") !=
        std::string::npos);
  CHECK(plan_of({0, 2}, two, two, {.max_overload = -1}).find("options.max_overload is -1") !=
        std::string::npos);
  CHECK_THROWS_AS(make_plan(std::vector<std::int64_t>{0, std::int64_t{1} << 32}, two, two),
                  std::length_error);
  auto const most = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_AS(make_plan(indices{0, 2}, two, numbers{most, 1}), std::overflow_error);
  auto const balance_with = [&](grouping const& parts) {
    return text([&] {
      static_cast<void>(make_plan(indices{0, 2}, two, two, {},
                                  [&](auto const&, std::size_t, auto const&) { return parts; }));
    });
  };
  CHECK(balance_with(grouping({0, 2}, {1, 0})) == "no error");
  CHECK(balance_with(grouping({0, 1, 2}, {1, 0})).find("2 parts for 1 ranks") != std::string::npos);
  CHECK(balance_with(grouping({0, 1}, {1})).find("not 2") != std::string::npos);
  CHECK(balance_with(grouping({0, 2}, {1, 1})).find("two places") != std::string::npos);
  CHECK(balance_with(grouping({0, 2}, {1, 2})).find("has item 2") != std::string::npos);
}

namespace {

using planner = omnibal::make_plan_fn;

static_assert(std::invocable<planner, indices, numbers, numbers>);
static_assert(!std::invocable<planner, indices, numbers>);
static_assert(!std::invocable<planner, std::vector<double>, numbers, numbers>);
static_assert(!std::invocable<planner, indices, std::vector<std::string>, numbers>);
static_assert(!std::invocable<planner, indices, numbers, std::vector<double>>);
static_assert(!std::invocable<planner, indices, numbers, numbers, omnibal::make_plan_options, int>);
static_assert(omnibal::plan_balancer<omnibal::lpt_fn, numbers>);
static_assert(omnibal::plan_balancer<omnibal::rebalance_fn, numbers>);
static_assert(omnibal::plan_balancer<omnibal::rebalance_fn, std::vector<omnibal::resources<3>>>);

}  // namespace

// A slow rank in a cluster of two kinds: each rank must get work by its own speed, not by a number
// that placement has exchanged.
TEST_CASE("make_plan with speeds gives each rank work in proportion to its speed") {
  test::random_amounts random(77);
  std::size_t const ranks = 8;
  std::size_t const count = ranks * 64;
  indices offsets;
  for (std::uint32_t r = 0; r <= ranks; ++r) offsets.push_back(r * 64);
  numbers costs(count);
  for (auto& cost : costs) cost = 100 + random.between(0, 900);
  std::vector<double> const speeds{1.5, 1, 1, 1.5, 0.5, 1, 1, 1.5};
  std::int64_t total = 0;
  for (std::int64_t const cost : costs) total += cost;
  for (std::size_t const of_node : {1u, 4u}) {
    auto const plan =
        make_plan(offsets, costs, costs, {.ranks_per_node = of_node, .speeds = speeds});
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      std::int64_t load = 0;
      for (std::uint32_t const i : plan.arrivals(rank)) load += costs[i];
      CHECK(static_cast<double>(load) <=
            1.011 * speeds[rank] / 9.0 * static_cast<double>(total) + 1);
    }
  }
  std::vector<double> const equal(ranks, 2.0);
  CHECK(make_plan(offsets, costs, costs, {.speeds = equal}) == make_plan(offsets, costs, costs));
}

// A balancer that does not know the ranks would be permuted: refused, not guessed.
TEST_CASE("make_plan refuses different speeds for balancers that do not name the ranks") {
  indices const offsets{0, 2, 4};
  numbers const costs{4, 3, 2, 1};
  std::vector<double> const speeds{1, 2};
  omnibal::make_plan_options const options{.speeds = speeds};
  CHECK(test::error_text<std::invalid_argument>(
            [&] { (void)make_plan(offsets, costs, costs, options, omnibal::lpt); }) ==
        "omnibal::make_plan: options.speeds has different speeds, which only rebalance and "
        "balancers that get the homes and name the ranks accept");
  auto const all_to_the_fast = [](omnibal::grouping_view home, auto const&, auto const&,
                                  omnibal::rebalance_options const& given) {
    grouping result;
    for (std::size_t rank = 0; rank != home.size(); ++rank) {
      for (std::uint32_t i = 0; given.speeds[rank] > 1 && i != home.item_count(); ++i) {
        result.push(i);
      }
      result.close();
    }
    return result;
  };
  auto const moved = make_plan(offsets, costs, costs, options, all_to_the_fast);
  CHECK(moved.arrivals(1).size() == 4);
  CHECK(omnibal::detail::digest_of_options(options, 0) !=
        omnibal::detail::digest_of_options({}, 0));
}
