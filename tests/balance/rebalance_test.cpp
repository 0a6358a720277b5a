// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"
#include "best_relabeling.hpp"
#include "error_text.hpp"
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::rebalance;
using bytes_type = std::vector<std::int64_t>;

/// Where samples lie before.
struct named_home {
  std::string name;
  grouping home;
};

grouping home_of(std::size_t samples, std::size_t ranks, auto const& rank_of) {
  grouping result;
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    for (std::uint32_t i = 0; i != samples; ++i) {
      if (rank_of(i) == rank) result.push(i);
    }
    result.close();
  }
  return result;
}

std::vector<named_home> homes(std::size_t samples, std::size_t ranks) {
  test::random_amounts random(samples + ranks);
  auto const last = static_cast<std::int64_t>(ranks) - 1;
  std::vector<std::size_t> drawn(samples);
  for (auto& rank : drawn) rank = static_cast<std::size_t>(random.between(0, last));
  std::vector<named_home> result;
  result.push_back({"in turn", home_of(samples, ranks, [&](std::size_t i) { return i % ranks; })});
  result.push_back({"in runs", home_of(samples, ranks, [&](std::size_t i) {
                      return i * ranks / std::max<std::size_t>(1, samples);
                    })});
  result.push_back({"at random", home_of(samples, ranks, [&](std::size_t i) { return drawn[i]; })});
  result.push_back(
      {"on the last rank", home_of(samples, ranks, [&](std::size_t) { return ranks - 1; })});
  result.push_back({"on half of the ranks",
                    home_of(samples, ranks, [&](std::size_t i) { return drawn[i] / 2; })});
  return result;
}

/// The largest load in the whole numbers on which `rebalance` and `lpt` decide.
template <std::size_t R>
std::int64_t whole_load(omnibal::groups_argument parts,
                        omnibal::detail::integer_costs<R> const& costs) {
  std::int64_t largest = 0;
  for (std::size_t p = 0; p != parts.size(); ++p) {
    omnibal::resources<R> load{};
    for (std::uint32_t const item : parts[p]) load += costs[item];
    largest = std::max(largest, omnibal::detail::largest_amount(load));
  }
  return largest;
}

template <std::size_t R>
void check_promises(test::cost_vectors<R> const& costs, named_home const& from,
                    omnibal::rebalance_options const& options) {
  INFO(from.name << ", " << costs.size() << " samples, " << from.home.size() << " ranks, tolerance "
                 << options.max_overload << ", " << options.ranks_per_node << " per node");
  bytes_type bytes(costs.size());
  test::random_amounts random(costs.size());
  for (auto& b : bytes) b = random.heavy_tail(4096);
  auto const parts = rebalance(from.home, costs, bytes, options);
  CHECK(test::parts_fault(parts, costs.size(), from.home.size()) == "");
  CHECK(test::is_ascending(parts));
  CHECK(rebalance(from.home, costs, bytes, options) == parts);

  auto const whole = omnibal::detail::measure_costs("test", costs, std::identity{});
  auto const order = omnibal::detail::largest_first(whole);
  std::int64_t const bound = omnibal::detail::min_load(whole, std::span(order), from.home.size());
  auto const limit =
      bound + static_cast<std::int64_t>(static_cast<double>(bound) * options.max_overload);
  std::int64_t const load = whole_load<R>(parts, whole);
  auto const of_lpt = omnibal::lpt(costs, from.home.size());
  CHECK(load <= std::max(limit, whole_load<R>(of_lpt, whole)));
  std::int64_t const moved = test::moved_bytes(from.home, parts, bytes);
  if (whole_load<R>(from.home, whole) <= limit) CHECK(moved == 0);
}

}  // namespace

TEMPLATE_TEST_CASE("rebalance keeps its promises, whatever the costs and the home", "[slow]",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  for (std::size_t const count : {1u, 7u, 60u, 211u}) {
    for (auto const& set : test::cost_sets<TestType::value>(count, count)) {
      INFO(set.name);
      for (std::size_t const ranks : {1u, 2u, 7u, 64u}) {
        for (auto const& from : homes(set.samples.size(), ranks)) {
          for (double const tolerance : {0.0, 0.01, 0.3}) {
            check_promises(set.samples, from, {.max_overload = tolerance});
          }
          if (ranks < 7) continue;
          check_promises(set.samples, from, {.max_overload = 0.01, .ranks_per_node = 3});
        }
      }
    }
  }
}

TEST_CASE("rebalance moves a quarter at most of what lpt moves, at equal imbalance") {
  for (std::uint64_t seed = 0; seed != 6; ++seed) {
    test::random_amounts random(seed);
    std::size_t const ranks = 64;
    std::vector<std::int64_t> costs(ranks * 64);
    bytes_type bytes(costs.size());
    for (std::size_t i = 0; i != costs.size(); ++i) {
      // The octave of a length is as likely as any other up to a limit that differs by seed.
      std::int64_t const length = 16 + random.heavy_tail(seed % 2 == 0 ? 16384 : 131072);
      costs[i] = length * length;
      bytes[i] = 2 * length;
    }
    auto const home = home_of(costs.size(), ranks, [&](std::size_t i) { return i % ranks; });
    auto const of_lpt = omnibal::lpt(costs, ranks);
    auto const whole = omnibal::detail::measure_costs("test", costs, std::identity{});
    auto const order = omnibal::detail::largest_first(whole);
    auto const bound = omnibal::detail::min_load(whole, std::span(order), ranks);
    auto const load_of_lpt = whole_load<1>(of_lpt, whole);
    double const tolerance =
        static_cast<double>(load_of_lpt - bound) / static_cast<double>(bound) + 1e-9;
    auto const parts = rebalance(home, costs, bytes, {.max_overload = tolerance});
    CHECK(static_cast<double>(whole_load<1>(parts, whole)) <=
          static_cast<double>(load_of_lpt) * (1 + 1e-8));
    auto const moved = test::moved_bytes(home, parts, bytes);
    auto const moved_by_lpt = test::min_moved_bytes(home, of_lpt, bytes);
    INFO("seed " << seed << ": " << moved << " bytes, lpt " << moved_by_lpt);
    CHECK(moved * 4 <= moved_by_lpt);
    auto const loose = rebalance(home, costs, bytes, {.max_overload = 0.05});
    CHECK(test::moved_bytes(home, loose, bytes) < moved);
  }
}

TEST_CASE("rebalance sends what it can to ranks of the same node") {
  std::size_t const ranks = 62;
  std::size_t const per_node = 8;
  for (std::uint64_t seed = 0; seed != 6; ++seed) {
    test::random_amounts random(seed);
    std::vector<std::int64_t> costs(ranks * 64);
    for (auto& cost : costs) cost = 100 + random.heavy_tail(2000);
    auto const home = home_of(costs.size(), ranks, [&](std::size_t i) { return i % ranks; });
    auto const across = [&](grouping const& parts) {
      std::int64_t bytes = 0;
      for (std::size_t rank = 0; rank != ranks; ++rank) {
        for (std::uint32_t const item : parts[rank]) {
          if (item % ranks / per_node != rank / per_node) bytes += costs[item];
        }
      }
      return bytes;
    };
    omnibal::rebalance_options options{.max_overload = 0.005};
    auto const blind = rebalance(home, costs, costs, options);
    options.ranks_per_node = per_node;
    auto const aware = rebalance(home, costs, costs, options);
    INFO("seed " << seed << ": " << across(aware) << " bytes, " << across(blind));
    CHECK(2 * across(aware) < across(blind));
    auto const whole = omnibal::detail::measure_costs("test", costs, std::identity{});
    double const mean = static_cast<double>(std::accumulate(costs.begin(), costs.end(), 0ll)) /
                        static_cast<double>(ranks);
    CHECK(static_cast<double>(whole_load<1>(aware, whole)) <= 1.005 * (mean + 1));
    CHECK(2 * test::moved_bytes(home, aware, costs) < 3 * test::moved_bytes(home, blind, costs));
  }
}

TEST_CASE("rebalance leaves a node alone whose ranks can even their loads") {
  // Two nodes of two ranks: 0 and 1 have 4 and 0, 2 and 3 have 2 each.
  grouping const home({0, 4, 4, 6, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
  std::vector<int> const ones(8, 1);
  auto const parts = rebalance(home, ones, ones, {.max_overload = 0.0, .ranks_per_node = 2});
  CHECK(parts[1].size() == 2);
  CHECK(std::vector<std::uint32_t>(parts[2].begin(), parts[2].end()) ==
        std::vector<std::uint32_t>{4, 5});
  // A node with 6 and one with 2: two samples cross, and come to the ranks that have least.
  grouping const uneven({0, 5, 6, 8, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
  auto const evened = rebalance(uneven, ones, ones, {.max_overload = 0.0, .ranks_per_node = 2});
  for (std::size_t rank = 0; rank != 4; ++rank) CHECK(evened[rank].size() == 2);
  CHECK(test::moved_bytes(uneven, evened, bytes_type(8, 1)) == 3);
}

TEST_CASE("rebalance moves nothing unless the largest load falls") {
  omnibal::rng::engine random(7);
  auto const below = [&random](std::uint64_t count) {
    return static_cast<std::int64_t>(omnibal::rng::below(random, count));
  };
  std::size_t moved = 0;
  for (int run = 0; run != 20'000; ++run) {
    auto const samples = static_cast<std::size_t>(below(13));
    auto const ranks = static_cast<std::size_t>(1 + below(5));
    bool const has_speeds = below(2) == 0;
    std::vector<std::int64_t> costs(samples);
    for (auto& cost : costs) cost = below(3) == 0 ? 1 + below(8) : 1 + below(1'000'000);
    std::vector<std::size_t> at(samples);
    for (auto& rank : at) rank = static_cast<std::size_t>(below(ranks));
    std::vector<double> speeds(ranks, 1.0);
    if (has_speeds) {
      for (auto& speed : speeds) speed = static_cast<double>(1 + below(8)) / 4;
    }
    omnibal::rebalance_options options{.max_overload = 0.001 * static_cast<double>(below(200)),
                                       .speeds = speeds};
    if (below(3) == 0) options.counts = omnibal::rank_counts::kept;
    if (below(3) == 0) options.ranks_per_node = 1 + static_cast<std::size_t>(below(3));
    if (below(3) == 0) options.max_moved_bytes = below(6);
    auto const home = home_of(samples, ranks, [&](std::size_t i) { return at[i]; });
    bytes_type const bytes(samples, 1);
    auto const time_of = [&](omnibal::groups_argument parts) {
      double largest = 0;
      for (std::size_t rank = 0; rank != parts.size(); ++rank) {
        std::int64_t load = 0;
        for (std::uint32_t const i : parts[rank]) load += costs[i];
        largest = std::max(largest, static_cast<double>(load) / speeds[rank]);
      }
      return largest;
    };
    grouping const parts = rebalance(home, costs, bytes, options);
    INFO("run " << run);
    if (parts == home) continue;
    ++moved;
    CHECK(time_of(parts) < time_of(home));
  }
  CHECK(moved > 5000);
}

TEST_CASE("rebalance moves what is cheap to move") {
  // Either sample of rank 0 would do.
  grouping const home({0, 3, 3}, {0, 1, 2});
  std::vector<int> const costs{4, 4, 4};
  auto const parts = rebalance(home, costs, std::vector<int>{9, 2, 5}, {.max_overload = 0.0});
  CHECK(parts == grouping({0, 2, 3}, {0, 2, 1}));
}

TEST_CASE("rebalance exchanges one sample against several where nothing else fits") {
  // Rank 0 has to give one of its large samples; rank 1 takes it only against four small ones.
  grouping const home({0, 2, 9}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<int> const costs{40, 40, 10, 10, 10, 10, 10, 10, 10};
  std::vector<int> const bytes(9, 1);
  auto const parts = rebalance(home, costs, bytes, {.max_overload = 0.0});
  auto const whole = omnibal::detail::measure_costs("test", costs, std::identity{});
  CHECK(whole_load<1>(parts, whole) == 80);
  CHECK(parts == home);
  std::vector<int> const heavy{60, 40, 10, 10, 10, 10, 10, 10, 0};
  auto const evened = rebalance(home, heavy, bytes, {.max_overload = 0.0});
  CHECK(whole_load<1>(evened, omnibal::detail::measure_costs("test", heavy, std::identity{})) ==
        80);
  CHECK(test::moved_bytes(home, evened, bytes_type(9, 1)) == 3);
}

TEST_CASE("rebalance takes functors and ranges alike") {
  std::vector<std::int64_t> const costs{7, 1, 5, 3, 9, 2};
  std::vector<std::uint16_t> const bytes{1, 2, 3, 4, 5, 6};
  grouping const home({0, 6, 6}, {5, 4, 3, 2, 1, 0});
  auto const by_range = rebalance(home, costs, bytes);
  int calls = 0;
  auto const cost = [&](std::uint32_t i) {
    ++calls;
    return costs[i];
  };
  CHECK(rebalance(home.view(), cost, [&](std::uint32_t i) { return bytes[i]; }) == by_range);
  CHECK(calls == 6);
  CHECK(rebalance(home, std::span(costs), bytes) == by_range);
  auto const shifted = [&](std::uint32_t i) { return 0.125 * static_cast<double>(costs[i]); };
  CHECK(rebalance(home, shifted, bytes) == by_range);
  auto const of_two = [&](std::uint32_t i) { return omnibal::resources{costs[i], costs[i]}; };
  CHECK(test::parts_fault(rebalance(home, of_two, bytes), 6, 2) == "");
}

TEST_CASE("rebalance evens several kinds of cost with few bytes") {
  test::random_amounts random(21);
  test::cost_vectors<2> costs(2048);
  bytes_type bytes(costs.size());
  for (std::size_t i = 0; i != costs.size(); ++i) {
    costs[i] = {random.between(0, 5), random.heavy_tail(4000)};
    bytes[i] = costs[i][0] * 1000 + costs[i][1];
  }
  auto const home = home_of(costs.size(), 32, [](std::size_t i) { return i % 32; });
  auto const parts = rebalance(home, costs, bytes, {.max_overload = 0.01});
  double const even = 1.0 / 32;
  CHECK(test::largest_share(home, costs) > even * 1.3);
  CHECK(test::largest_share(parts, costs) <= even * 1.01 * (1 + 1e-9));
  auto const of_lpt = omnibal::lpt(costs, 32);
  CHECK(test::moved_bytes(home, parts, bytes) * 4 < test::min_moved_bytes(home, of_lpt, bytes));
}

TEST_CASE("rebalance moves two kinds that lie on different ranks") {
  test::cost_vectors<2> costs;
  for (int i = 0; i != 8; ++i)
    costs.push_back(i < 4 ? omnibal::resources{1, 0} : omnibal::resources{0, 1});
  grouping const home({0, 4, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
  auto const parts = rebalance(home, costs, bytes_type(8, 1), {.max_overload = 0.0});
  CHECK(test::largest_share(parts, costs) == 0.5);
  CHECK(test::moved_bytes(home, parts, bytes_type(8, 1)) == 4);
}

TEST_CASE("rebalance with a workspace gives the same and allocates once") {
  omnibal::rebalance_workspace<> workspace;
  auto const run = [&](std::uint64_t seed, double tolerance) {
    test::random_amounts random(seed);
    std::size_t const ranks = 16;
    std::vector<std::int64_t> costs(480);
    bytes_type bytes(costs.size());
    for (std::size_t i = 0; i != costs.size(); ++i) {
      costs[i] = random.heavy_tail(1 << 20);
      bytes[i] = random.between(0, 99);
    }
    auto const home = home_of(costs.size(), ranks, [&](std::size_t i) { return i % ranks; });
    omnibal::rebalance_options const options{.max_overload = tolerance};
    auto const count =
        test::allocations_of([&] { (void)rebalance(home, costs, bytes, options, workspace); });
    CHECK(workspace.result() == rebalance(home, costs, bytes, options));
    return count;
  };
  // The first calls grow the memory, as the fallback on lpt and the exchanges take some too.
  std::size_t first = 0;
  for (std::uint64_t seed = 0; seed != 8; ++seed) first += run(seed, 0.0);
  CHECK(first > 0);
  for (std::uint64_t seed = 0; seed != 8; ++seed) CHECK(run(seed, 0.01) == 0);
  for (std::uint64_t seed = 0; seed != 8; ++seed) CHECK(run(seed, 0.0) == 0);
}

TEST_CASE("rebalance takes the memory of exchanges and of lpt when they are first needed") {
  omnibal::rebalance_workspace<> workspace;
  std::size_t const ranks = 16;
  std::vector<std::int64_t> const even(480, 7);
  std::vector<std::int64_t> uneven(even.size());
  test::random_amounts random(3);
  for (auto& cost : uneven) cost = random.heavy_tail(1 << 20);
  auto const home = home_of(even.size(), ranks, [&](std::size_t i) { return i % ranks; });
  auto const allocations = [&](std::vector<std::int64_t> const& costs) {
    return test::allocations_of(
        [&] { (void)rebalance(home, costs, even, {.max_overload = 0.0}, workspace); });
  };
  CHECK(allocations(even) > 0);
  CHECK(allocations(even) == 0);
  CHECK(allocations(uneven) > 0);
  CHECK(allocations(uneven) == 0);
  CHECK(allocations(even) == 0);
}

TEST_CASE("a workspace forgets the sizes of the call before") {
  omnibal::rebalance_workspace<> workspace;
  std::vector<int> const many(100, 3);
  grouping const all_on_one({0, 100, 100, 100}, [] {
    std::vector<std::uint32_t> items(100);
    for (std::uint32_t i = 0; i != 100; ++i) items[i] = i;
    return items;
  }());
  (void)rebalance(all_on_one, many, many, {}, workspace);
  std::vector<int> const few{5, 5};
  grouping const home({0, 2, 2}, {0, 1});
  CHECK(rebalance(home, few, few, {}, workspace) == rebalance(home, few, few));
  CHECK(rebalance(grouping{}, std::vector<int>{}, std::vector<int>{}, {}, workspace) == grouping{});
}

TEST_CASE("rebalance takes no ranks, no samples, zeros and fewer samples than ranks") {
  std::vector<int> const none;
  CHECK(rebalance(grouping{}, none, none) == grouping{});
  CHECK(rebalance(grouping({0, 0, 0}, {}), none, none) == grouping({0, 0, 0}, {}));
  std::vector<int> const zeros(3, 0);
  grouping const home({0, 0, 3, 3}, {2, 0, 1});
  CHECK(rebalance(home, zeros, zeros) == grouping({0, 0, 3, 3}, {0, 1, 2}));
  std::vector<int> const two{4, 4};
  grouping const one_each = rebalance(grouping({0, 2, 2, 2}, {0, 1}), two, two);
  CHECK(one_each[0].size() == 1);
}

TEST_CASE("rebalance takes the largest sum of costs on a last node that lacks ranks") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  grouping const home({0, 0, 0, 0, 0, 7}, {0, 1, 2, 3, 4, 5, 6});
  std::vector<std::int64_t> const costs(7, most / 7);
  auto const parts = rebalance(home, costs, bytes_type(7, 1), {.ranks_per_node = 2});
  CHECK(test::parts_fault(parts, 7, 5) == "");
  for (std::size_t rank = 0; rank != 5; ++rank) CHECK(parts[rank].size() <= 2);
}

TEST_CASE("rebalance names what is wrong") {
  std::vector<double> const good{1, 2, 3};
  grouping const home({0, 2, 3}, {0, 1, 2});
  auto const error_of = [&](grouping const& from, auto const& cost, auto const& bytes,
                            omnibal::rebalance_options const& options = {}) {
    return test::error_text<std::invalid_argument>(
        [&] { return rebalance(from, cost, bytes, options); });
  };
  auto const has = [](std::string const& text, std::string const& part) {
    INFO(text);
    return text.find("omnibal::rebalance: ") == 0 && text.find(part) != std::string::npos;
  };
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(has(error_of(home, std::vector<double>{1, -2, 3}, good), "cost[1] is -2"));
  CHECK(has(error_of(home, std::vector<double>{1, 2, not_a_number}, good), "cost[2] is"));
  CHECK(has(error_of(home, good, std::vector<double>{infinity, 2, 3}), "bytes[0] is inf"));
  CHECK(has(error_of(home, good, std::vector<int>{1, 2, -3}), "bytes[2] is -3"));
  CHECK(has(error_of(home, std::vector<double>{1, 2}, good), "cost has 2 elements"));
  CHECK(has(error_of(home, good, std::vector<int>(4, 1)), "bytes has 4 elements"));
  CHECK(has(error_of(grouping({0, 2, 3}, {0, 1, 1}), good, good), "sample 1 is in two places"));
  CHECK(has(error_of(grouping({0, 2, 3}, {0, 1, 3}), good, good), "rank 1 has item 3"));
  for (double const tolerance : {-0.1, not_a_number, infinity}) {
    CHECK(has(error_of(home, good, good, {.max_overload = tolerance}), "max_overload is "));
  }
  CHECK(has(error_of(home, good, good, {.ranks_per_node = 0}),
            "options.ranks_per_node is 0, must be positive"));
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> const large{most, 1, 1};
  CHECK(has(test::error_text<std::overflow_error>([&] { return rebalance(home, large, good); }),
            "the sum of the costs"));
  CHECK(has(test::error_text<std::overflow_error>([&] { return rebalance(home, good, large); }),
            "the sum of the bytes"));
}

static_assert(omnibal::index_measure<std::vector<int>>);
static_assert(omnibal::index_measure<std::span<double const>>);
static_assert(omnibal::index_measure<std::vector<omnibal::resources<2>>>);
static_assert(!omnibal::index_measure<std::vector<std::string>>);
static_assert(!omnibal::index_measure<std::vector<bool>>);
using keeper = omnibal::rebalance_fn;
static_assert(std::invocable<keeper, grouping, std::vector<int>, std::vector<double>>);
static_assert(!std::invocable<keeper, grouping, std::vector<std::string>, std::vector<double>>);
static_assert(!std::invocable<keeper, grouping, std::vector<int>,
                              std::vector<omnibal::resources<2>>>);  // bytes are of one kind
static_assert(!std::invocable<keeper, std::vector<int>, std::vector<int>, std::vector<double>>);
