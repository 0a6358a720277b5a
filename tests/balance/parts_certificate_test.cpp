// SPDX-License-Identifier: Apache-2.0
// What balancers without a capacity promise and prove, compared with the best parts by brute force.

#include "brute_force.hpp"
#include "certificate.hpp"
#include "parts.hpp"
#include "random_instances.hpp"

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/detail/part_times.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/part_speeds.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
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

using omnibal::count_policy;
using omnibal::grouping;
using omnibal::resources;
using omnibal::rng::engine;
using test::number_between;
using test::working_of;

/// Costs, their sums over all subsets, and a number of parts.
template <class Weight>
struct problem {
  using load = working_of<Weight>;

  std::vector<Weight> costs;
  std::vector<load> sums;
  std::size_t parts;

  [[nodiscard]] std::size_t count() const { return costs.size(); }
  [[nodiscard]] load total() const { return sums.back(); }
  /// What comparing whole numbers of 2^-62 of the sum and rounding may add to a load.
  [[nodiscard]] load slack() const {
    if constexpr (std::integral<load>) {
      return 0;
    } else {
      return total() * 64 * std::numeric_limits<load>::epsilon();
    }
  }
  [[nodiscard]] load largest_load(grouping const& result) const {
    load largest{};
    for (std::size_t p = 0; p != result.size(); ++p) {
      std::size_t set = 0;
      for (std::uint32_t const item : result[p]) set |= std::size_t{1} << item;
      largest = std::max(largest, sums[set]);
    }
    return largest;
  }
  [[nodiscard]] load min_largest(count_policy policy) const {
    load const none = std::numeric_limits<load>::max();
    std::vector<load> value = sums;
    if (policy != count_policy::any) {
      std::size_t const least = count() / parts;
      std::size_t const most = least + (count() % parts != 0 ? 1 : 0);
      for (std::size_t set = 0; set != value.size(); ++set) {
        auto const size = static_cast<std::size_t>(std::popcount(set));
        if (size < least || size > most) value[set] = none;
      }
    }
    return test::min_largest_value(value, parts, none);
  }
  /// The lower bound that the comments name: the mean load, the largest cost, two of the
  /// `parts + 1` largest.
  [[nodiscard]] load lower_bound() const {
    std::vector<load> sorted;
    for (Weight const cost : costs) sorted.push_back(static_cast<load>(cost));
    std::sort(sorted.begin(), sorted.end(), std::greater<>{});
    load bound = total() / static_cast<load>(parts);
    if constexpr (std::integral<load>) {
      if (total() % static_cast<load>(parts) != 0) ++bound;
    }
    if (!sorted.empty()) bound = std::max(bound, sorted[0]);
    if (count() > parts) bound = std::max(bound, sorted[parts - 1] + sorted[parts]);
    return bound;
  }
};

template <class Weight>
problem<Weight> make_problem(engine& random) {
  using load = working_of<Weight>;
  problem<Weight> made;
  auto const count = static_cast<std::size_t>(number_between(random, 0, 8));
  made.parts = static_cast<std::size_t>(number_between(random, 1, 5));
  // Sums come near to the largest integer and do not exceed it.
  std::int64_t const most = std::min(
      test::max_of<Weight>(), std::numeric_limits<std::int64_t>::max() /
                                  std::max<std::int64_t>(1, static_cast<std::int64_t>(count)));
  test::weight_source<Weight> const weights(random, most);
  for (std::size_t i = 0; i != count; ++i) made.costs.push_back(weights());
  made.sums.assign(std::size_t{1} << count, load{});
  for (std::size_t set = 1; set != made.sums.size(); ++set) {
    auto const last = static_cast<std::size_t>(std::bit_width(set)) - 1;
    made.sums[set] = made.sums[set ^ std::size_t{1} << last] + static_cast<load>(made.costs[last]);
  }
  return made;
}

grouping random_parts(engine& random, std::size_t count, std::size_t parts) {
  std::vector<std::vector<std::uint32_t>> items(parts);
  for (std::uint32_t i = 0; i != count; ++i) {
    items[static_cast<std::size_t>(number_between(random, 0, static_cast<std::int64_t>(parts) - 1))]
        .push_back(i);
  }
  grouping result;
  for (auto const& part : items) {
    for (std::uint32_t const item : part) result.push(item);
    result.close();
  }
  return result;
}

/// True where `largest` is at most `factor` times `best` and the slack of comparisons.
template <class Weight>
bool is_within(problem<Weight> const& given, working_of<Weight> largest, working_of<Weight> best,
               std::int64_t numerator, std::int64_t denominator) {
  if constexpr (std::integral<working_of<Weight>>) {
    return omnibal::detail::int128{largest} * denominator <=
           omnibal::detail::int128{best} * numerator;
  } else {
    return largest <=
           best * static_cast<double>(numerator) / static_cast<double>(denominator) + given.slack();
  }
}

template <class Weight>
std::string heuristic_fault(problem<Weight> const& given) {
  auto const best = given.min_largest(count_policy::any);
  auto const parts = static_cast<std::int64_t>(given.parts);
  for (count_policy const policy :
       {count_policy::any, count_policy::equal, count_policy::at_most_one_apart}) {
    if (policy == count_policy::equal && given.count() % given.parts != 0) continue;
    auto const result = omnibal::lpt(given.costs, given.parts, std::identity{}, {.count = policy});
    std::string const found = test::parts_fault(result, given.count(), given.parts, policy);
    if (!found.empty()) return "lpt: " + found;
    if (policy == count_policy::any &&
        !is_within(given, given.largest_load(result), best, 4 * parts - 1, 3 * parts)) {
      return "lpt is worse than 4/3 - 1/(3 parts) times the best";
    }
  }
  auto const dealt = omnibal::deal(given.costs, given.parts);
  std::string found =
      test::parts_fault(dealt, given.count(), given.parts, count_policy::at_most_one_apart);
  if (!found.empty()) return "deal: " + found;
  working_of<Weight> largest_cost{};
  for (Weight const cost : given.costs) {
    largest_cost = std::max(largest_cost, static_cast<working_of<Weight>>(cost));
  }
  auto least = given.total();
  for (std::size_t p = 0; p != dealt.size(); ++p) {
    least = std::min(least,
                     given.largest_load(grouping({0, static_cast<std::uint32_t>(dealt[p].size())},
                                                 {dealt[p].begin(), dealt[p].end()})));
  }
  if (given.largest_load(dealt) - least > largest_cost + given.slack()) {
    return "deal: loads differ by more than the largest cost";
  }
  found = test::parts_fault(omnibal::karmarkar_karp(given.costs, given.parts), given.count(),
                            given.parts);
  return found.empty() ? "" : "karmarkar_karp: " + found;
}

template <class Weight>
std::string exact_fault(engine& random, problem<Weight> const& given) {
  bool const is_cut_short = number_between(random, 0, 3) == 0;
  omnibal::balance_optimally_options options;
  if (is_cut_short) options.nodes = static_cast<std::uint64_t>(number_between(random, 0, 20));
  for (count_policy const policy :
       {count_policy::any, count_policy::equal, count_policy::at_most_one_apart}) {
    if (policy == count_policy::equal && given.count() % given.parts != 0) continue;
    options.count = policy;
    auto const result =
        omnibal::balance_optimally(given.costs, given.parts, std::identity{}, options);
    std::string const found = test::parts_fault(result.parts, given.count(), given.parts, policy);
    if (!found.empty()) return "balance_optimally: " + found;
    if (!is_cut_short && !result.proven) return "balance_optimally: there is no proof";
    auto const best = given.min_largest(policy);
    if (result.proven && given.largest_load(result.parts) > best + given.slack()) {
      return "balance_optimally calls parts the best with a load of " +
             std::to_string(given.largest_load(result.parts)) + ", there are some with " +
             std::to_string(best);
    }
    auto const bound = static_cast<decltype(given.slack() + best)>(result.lower_bound);
    if (bound > best + given.slack() || (result.proven && bound < best - given.slack())) {
      return "balance_optimally has a bound of " + std::to_string(result.lower_bound) +
             ", best is " + std::to_string(best);
    }
  }
  return "";
}

/// What computing limits in `double` may add to a number or take from it, as a share of it.
constexpr long double precision =
    2 * static_cast<long double>(std::numeric_limits<double>::epsilon());

/// The bound and the share `tolerance` of it, rounded up.
template <class Load>
long double limit_of(Load bound, double tolerance) {
  return static_cast<long double>(bound) * (1 + static_cast<long double>(tolerance)) *
         (1 + precision);
}

/// True where moving a sample or swapping two lowers the largest load.
template <class Weight>
bool can_be_evened(problem<Weight> const& given, grouping const& parts, bool may_move) {
  std::vector<std::size_t> sets(parts.size(), 0);
  for (std::size_t p = 0; p != parts.size(); ++p) {
    for (std::uint32_t const item : parts[p]) sets[p] |= std::size_t{1} << item;
  }
  auto const largest = given.largest_load(parts);
  auto const lowers = [&](std::size_t from, std::size_t to, std::size_t exchanged) {
    auto after = sets;
    after[from] ^= exchanged;
    after[to] ^= exchanged;
    return std::all_of(after.begin(), after.end(),
                       [&](std::size_t set) { return given.sums[set] < largest; });
  };
  for (std::size_t i = 0; i != given.count(); ++i) {
    for (std::size_t to = 0; to != sets.size(); ++to) {
      std::size_t const one = std::size_t{1} << i;
      auto const from =
          static_cast<std::size_t>(std::find_if(sets.begin(), sets.end(),
                                                [&](std::size_t set) { return (set & one) != 0; }) -
                                   sets.begin());
      if (to == from) continue;
      if (may_move && lowers(from, to, one)) return true;
      for (std::size_t k = 0; k != given.count(); ++k) {
        std::size_t const other = std::size_t{1} << k;
        if ((sets[to] & other) != 0 && lowers(from, to, one | other)) return true;
      }
    }
  }
  return false;
}

template <class Weight>
std::string refined_fault(engine& random, problem<Weight> const& given) {
  auto const start = random_parts(random, given.count(), given.parts);
  double const tolerance = 0.125 * static_cast<double>(number_between(random, 0, 2));
  bool const may_move = number_between(random, 0, 1) == 0;
  auto const counts = may_move ? omnibal::part_counts::free : omnibal::part_counts::kept;
  auto const fault = [&](std::string const& name, grouping const& result) -> std::string {
    std::string const found = test::parts_fault(result, given.count(), given.parts);
    if (!found.empty()) return name + ": " + found;
    auto const largest = given.largest_load(result);
    if (largest > given.largest_load(start) + given.slack()) return name + " raises a load";
    for (std::size_t p = 0; p != given.parts && !may_move; ++p) {
      if (result[p].size() != start[p].size()) return name + " changes a count";
    }
    if constexpr (std::integral<working_of<Weight>>) {
      long double const limit = limit_of(given.lower_bound(), tolerance);
      if (static_cast<long double>(largest) > limit && can_be_evened(given, result, may_move)) {
        return name + " ends where an exchange lowers the largest load";
      }
    }
    return "";
  };
  return fault("refine_parts",
               omnibal::refine_parts(given.costs, start, std::identity{},
                                     {.max_overload = tolerance, .counts = counts}));
}

/// Speeds of parts that are multiples of 1/4, as whole numbers, and the times of sets: sums over
/// speeds, multiplied by 12, which all speeds divide.
template <class Weight>
struct speed_problem {
  using load = working_of<Weight>;
  using time = std::conditional_t<std::integral<load>, omnibal::detail::int128, double>;

  speed_problem(engine& random, problem<Weight> const& costs) : given(costs) {
    std::int64_t const most = number_between(random, 2, 4);
    for (std::size_t p = 0; p != given.parts; ++p) {
      whole.push_back(number_between(random, 1, most));
      speeds.push_back(0.25 * static_cast<double>(whole.back()));
    }
  }

  [[nodiscard]] time time_of(std::size_t part, std::size_t set) const {
    return static_cast<time>(given.sums[set]) * static_cast<time>(12 / whole[part]);
  }
  [[nodiscard]] time slack() const { return static_cast<time>(given.slack()) * 12; }
  [[nodiscard]] std::vector<std::size_t> sets_of(grouping const& result) const {
    std::vector<std::size_t> sets(result.size(), 0);
    for (std::size_t p = 0; p != result.size(); ++p) {
      for (std::uint32_t const item : result[p]) sets[p] |= std::size_t{1} << item;
    }
    return sets;
  }
  [[nodiscard]] time largest_time(std::vector<std::size_t> const& sets) const {
    time largest{};
    for (std::size_t p = 0; p != sets.size(); ++p) largest = std::max(largest, time_of(p, sets[p]));
    return largest;
  }
  /// The smallest largest time of all ways to fill the parts.
  [[nodiscard]] time min_largest(count_policy policy) const {
    time const none = time_of(0, given.sums.size() - 1) * 12 + 1;
    std::size_t const floor = given.count() / given.parts;
    std::size_t const most = floor + (given.count() % given.parts != 0 ? 1 : 0);
    auto const value = [&](std::size_t part, std::size_t set) {
      auto const size = static_cast<std::size_t>(std::popcount(set));
      bool const may_be = policy == count_policy::any || (size >= floor && size <= most);
      return may_be ? time_of(part, set) : none;
    };
    std::vector<time> least;
    for (std::size_t set = 0; set != given.sums.size(); ++set) least.push_back(value(0, set));
    for (std::size_t part = 1; part < given.parts; ++part) {
      std::vector<time> next(least.size(), none);
      for (std::size_t set = 0; set != least.size(); ++set) {
        for (std::size_t taken = set;; taken = (taken - 1) & set) {
          next[set] = std::min(next[set], std::max(least[set ^ taken], value(part, taken)));
          if (taken == 0) break;
        }
      }
      least = std::move(next);
    }
    return least.back();
  }
  /// True where moving a sample from a part with the largest time, or swapping two, leaves both
  /// parts below it.
  [[nodiscard]] bool can_be_evened(std::vector<std::size_t> const& sets, bool may_move) const {
    time const largest = largest_time(sets);
    auto const lowers = [&](std::size_t from, std::size_t to, std::size_t exchanged) {
      auto after = sets;
      after[from] ^= exchanged;
      after[to] ^= exchanged;
      return largest_time(after) < largest;
    };
    for (std::size_t from = 0; from != sets.size(); ++from) {
      for (std::size_t to = 0; to != sets.size(); ++to) {
        for (std::size_t i = sets[from]; i != 0 && to != from; i &= i - 1) {
          std::size_t const one = i & (~i + 1);
          if (may_move && lowers(from, to, one)) return true;
          for (std::size_t k = sets[to]; k != 0; k &= k - 1) {
            if (lowers(from, to, one | (k & (~k + 1)))) return true;
          }
        }
      }
    }
    return false;
  }

  problem<Weight> const& given;
  std::vector<std::int64_t> whole;
  std::vector<double> speeds;
};

/// What is wrong with the parts of `deal` and `karmarkar_karp` with speeds.
template <class Weight>
std::string timed_heuristic_fault(speed_problem<Weight> const& given) {
  auto const& costs = given.given;
  auto const best = given.min_largest(count_policy::any);
  auto const dealt =
      omnibal::deal(costs.costs, costs.parts, std::identity{}, {.speeds = given.speeds});
  std::string found = test::parts_fault(dealt, costs.count(), costs.parts);
  if (!found.empty()) return "deal with speeds: " + found;
  auto const sets = given.sets_of(dealt);
  working_of<Weight> largest{};
  for (Weight const cost : costs.costs) {
    largest = std::max(largest, static_cast<working_of<Weight>>(cost));
  }
  using time = typename speed_problem<Weight>::time;
  for (std::size_t p = 0; p != sets.size(); ++p) {
    for (std::size_t q = 0; q != sets.size(); ++q) {
      auto const scale = static_cast<time>(12 / given.whole[p] + 12 / given.whole[q]);
      auto const apart = given.time_of(p, sets[p]) - given.time_of(q, sets[q]);
      if (2 * apart > static_cast<time>(largest) * scale + given.slack()) {
        return "deal with speeds: times differ by more than the mean time of the largest cost";
      }
    }
  }
  auto const differenced =
      omnibal::karmarkar_karp(costs.costs, costs.parts, std::identity{}, {.speeds = given.speeds});
  found = test::parts_fault(differenced, costs.count(), costs.parts);
  if (!found.empty()) return "karmarkar_karp with speeds: " + found;
  auto const placed = given.sets_of(
      omnibal::lpt(costs.costs, costs.parts, std::identity{}, {.speeds = given.speeds}));
  if (given.largest_time(given.sets_of(differenced)) > given.largest_time(placed) + given.slack()) {
    return "karmarkar_karp with speeds: less even than lpt";
  }
  bool const is_below = given.largest_time(sets) < best - given.slack() ||
                        given.largest_time(given.sets_of(differenced)) < best - given.slack();
  return is_below ? "the oracle is wrong" : "";
}

template <class Weight>
std::string speeds_fault(engine& random, problem<Weight> const& costs) {
  speed_problem<Weight> const given(random, costs);
  std::string const heuristic = timed_heuristic_fault(given);
  if (!heuristic.empty()) return heuristic;
  for (count_policy const policy : {count_policy::any, count_policy::at_most_one_apart}) {
    auto const best = given.min_largest(policy);
    auto const placed = omnibal::lpt(costs.costs, costs.parts, std::identity{},
                                     {.count = policy, .speeds = given.speeds});
    std::string const found = test::parts_fault(placed, costs.count(), costs.parts, policy);
    if (!found.empty()) return "lpt with speeds: " + found;
    auto const largest = given.largest_time(given.sets_of(placed));
    if (largest < best - given.slack()) return "the oracle is wrong";
    if (policy == count_policy::any &&
        largest / 1000 > best / 1000 * 1578 / 1000 + 2 + given.slack()) {
      return "lpt with speeds is worse than 1.578 times the best";
    }
    bool const is_cut_short = number_between(random, 0, 3) == 0;
    omnibal::balance_optimally_options options{.count = policy, .speeds = given.speeds};
    if (is_cut_short) options.nodes = static_cast<std::uint64_t>(number_between(random, 0, 20));
    auto const exact =
        omnibal::balance_optimally(costs.costs, costs.parts, std::identity{}, options);
    std::string const fault = test::parts_fault(exact.parts, costs.count(), costs.parts, policy);
    if (!fault.empty()) return "balance_optimally with speeds: " + fault;
    auto const reached = given.largest_time(given.sets_of(exact.parts));
    if (!is_cut_short && !exact.proven) return "balance_optimally with speeds: there is no proof";
    if (exact.proven && reached > best + given.slack()) {
      return "balance_optimally with speeds proves parts that are not the best";
    }
    // Loads of the fastest part; integers are rounded up, at most to the largest.
    auto const fastest = *std::max_element(given.whole.begin(), given.whole.end());
    auto const on_fastest = [&](auto time) {
      using time_type = decltype(time);
      auto const load = time * static_cast<time_type>(fastest);
      if constexpr (std::integral<working_of<Weight>>) {
        return std::min<time_type>((load + 11) / 12, std::numeric_limits<std::int64_t>::max());
      }
      return load / 12;
    };
    auto const slack = given.slack();
    using time_type = decltype(on_fastest(best));
    auto const claimed = static_cast<time_type>(exact.largest_load);
    auto const proven = static_cast<time_type>(exact.lower_bound);
    if (claimed > on_fastest(reached) + slack || claimed < on_fastest(reached) - slack) {
      return "balance_optimally with speeds has a wrong load";
    }
    if (proven > on_fastest(best) + slack || (exact.proven && proven < on_fastest(best) - slack)) {
      return "balance_optimally with speeds has a wrong bound";
    }
    if (policy != count_policy::any) continue;
    // The bound, whose speeds have no common divisor.
    if constexpr (std::integral<working_of<Weight>>) {
      omnibal::detail::part_speeds const speeds("test", given.speeds, costs.parts);
      auto const whole = omnibal::detail::measure_costs("test", costs.costs, std::identity{});
      auto const order = omnibal::detail::largest_first(whole);
      auto const bound = omnibal::detail::min_time(whole, std::span(order), speeds);
      std::int64_t const divisor = given.whole[0] / speeds[0];
      if (omnibal::detail::int128{bound.load} * 12 > bound.speed * best * divisor) {
        return "min_time is above the best";
      }
    }
  }
  auto const start = random_parts(random, costs.count(), costs.parts);
  bool const may_move = number_between(random, 0, 1) == 0;
  auto const counts = may_move ? omnibal::part_counts::free : omnibal::part_counts::kept;
  auto const refined = omnibal::refine_parts(costs.costs, start, std::identity{},
                                             {.counts = counts, .speeds = given.speeds});
  std::string const found = test::parts_fault(refined, costs.count(), costs.parts);
  if (!found.empty()) return "refine_parts with speeds: " + found;
  auto const sets = given.sets_of(refined);
  if (given.largest_time(sets) > given.largest_time(given.sets_of(start)) + given.slack()) {
    return "refine_parts with speeds raises a time";
  }
  for (std::size_t p = 0; p != costs.parts && !may_move; ++p) {
    if (refined[p].size() != start[p].size()) return "refine_parts with speeds changes a count";
  }
  if constexpr (std::integral<working_of<Weight>>) {
    if (given.largest_time(sets) > given.min_largest(count_policy::any) &&
        given.can_be_evened(sets, may_move)) {
      return "refine_parts with speeds ends where an exchange lowers the largest time";
    }
  }
  return "";
}

template <class Weight>
std::string home_fault(engine& random, problem<Weight> const& given) {
  auto const home = random_parts(random, given.count(), given.parts);
  omnibal::rebalance_options const options{
      .max_overload = 0.125 * static_cast<double>(number_between(random, 0, 2)),
      .ranks_per_node = static_cast<std::size_t>(number_between(random, 1, 3))};
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i != given.count(); ++i) bytes.push_back(number_between(random, 0, 9));
  auto const result = omnibal::rebalance(home, given.costs, bytes, options);
  std::string const found = test::parts_fault(result, given.count(), given.parts);
  if (!found.empty()) return "rebalance: " + found;
  long double const limit =
      limit_of(given.lower_bound(), options.max_overload) + static_cast<long double>(given.slack());
  auto const of_lpt = given.largest_load(omnibal::lpt(given.costs, given.parts));
  auto const largest = given.largest_load(result);
  if (static_cast<long double>(largest) > limit && largest > of_lpt + given.slack()) {
    return "rebalance is above its limit and above lpt";
  }
  if constexpr (std::integral<working_of<Weight>>) {
    bool const is_even =
        static_cast<long double>(given.largest_load(home)) * (1 + 2 * precision) <= limit;
    for (std::size_t p = 0; p != given.parts && is_even; ++p) {
      if (result[p].size() != home[p].size()) return "rebalance moves what is even";
    }
  }
  return "";
}

/// Costs of several kinds, compared by the largest share of a sum.
template <std::size_t R, class Weight>
std::string shares_fault(engine& random) {
  auto const count = static_cast<std::size_t>(number_between(random, 0, 7));
  auto const parts = static_cast<std::size_t>(number_between(random, 1, 4));
  std::int64_t const most =
      std::min(test::max_of<Weight>(), std::numeric_limits<std::int64_t>::max() / 8);
  std::vector<resources<R, Weight>> costs(count);
  std::vector<long double> share(std::size_t{1} << count, 0.0L);
  for (std::size_t r = 0; r != R; ++r) {
    test::weight_source<Weight> const weights(random, most);
    std::vector<long double> sums(share.size(), 0.0L);
    for (auto& cost : costs) cost[r] = weights();
    for (std::size_t set = 1; set != sums.size(); ++set) {
      auto const last = static_cast<std::size_t>(std::bit_width(set)) - 1;
      sums[set] = sums[set ^ std::size_t{1} << last] + static_cast<long double>(costs[last][r]);
    }
    for (std::size_t set = 0; set != sums.size() && sums.back() > 0; ++set) {
      share[set] = std::max(share[set], sums[set] / sums.back());
    }
  }
  auto const result = omnibal::balance_optimally(costs, parts);
  std::string const found = test::parts_fault(result.parts, count, parts);
  if (!found.empty()) return "balance_optimally: " + found;
  if (!result.proven) return "balance_optimally: there is no proof";
  long double largest = 0;
  for (std::size_t p = 0; p != parts; ++p) {
    std::size_t set = 0;
    for (std::uint32_t const item : result.parts[p]) set |= std::size_t{1} << item;
    largest = std::max(largest, share[set]);
  }
  long double const best = test::min_largest_value(share, parts, 2.0L);
  if (std::abs(static_cast<long double>(result.lower_bound) - best) > 1e-13L) {
    return "balance_optimally: the bound is not the least share";
  }
  return largest > best + 1e-13L ? "balance_optimally: the largest share is not the least" : "";
}

/// Sums near the largest integer are taken or are an error.
std::string overflow_fault(engine& random) {
  std::vector<std::int64_t> costs;
  omnibal::detail::int128 sum = 0;
  for (auto left = number_between(random, 1, 8); left != 0; --left) {
    std::int64_t const room = static_cast<std::int64_t>(std::min<omnibal::detail::int128>(
        std::numeric_limits<std::int64_t>::max(),
        std::max<omnibal::detail::int128>(0, std::numeric_limits<std::int64_t>::max() - sum)));
    costs.push_back(number_between(random, 0, 3) == 0
                        ? room + (room != std::numeric_limits<std::int64_t>::max()
                                      ? number_between(random, 0, 1)
                                      : 0)
                        : number_between(random, 0, std::max<std::int64_t>(room, 1)));
    sum += costs.back();
  }
  bool const is_error = sum > std::numeric_limits<std::int64_t>::max();
  try {
    auto const result = omnibal::balance_optimally(costs, 2);
    if (is_error) return "a sum above 2^63 - 1 is taken";
    for (std::size_t p = 0; p != 2; ++p) {
      omnibal::detail::int128 load = 0;
      for (std::uint32_t const item : result.parts[p]) load += costs[item];
      if (load > sum) return "a load wraps";
    }
    return "";
  } catch (std::overflow_error const&) {
    return is_error ? "" : "a sum up to 2^63 - 1 is refused";
  }
}

}  // namespace

TEMPLATE_TEST_CASE("parts are as even as the balancers promise", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("lpt, deal, karmarkar_karp", [](engine& random) {
    return heuristic_fault(make_problem<TestType>(random));
  });
}

TEMPLATE_TEST_CASE("balance_optimally proves no parts that are not the best", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("balance_optimally", [](engine& random) {
    return exact_fault(random, make_problem<TestType>(random));
  });
}

TEMPLATE_TEST_CASE("balance_optimally proves no shares that are not the least", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("balance_optimally of two kinds",
                          [](engine& random) { return shares_fault<2, TestType>(random); });
}

TEMPLATE_TEST_CASE("refine_parts and rebalance end where they promise", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("refine_parts, rebalance", [](engine& random) {
    auto const given = make_problem<TestType>(random);
    std::string const found = refined_fault(random, given);
    return found.empty() ? home_fault(random, given) : found;
  });
}

TEMPLATE_TEST_CASE("parts of different speeds are as even as the balancers promise",
                   "[certificate]", TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("speeds", [](engine& random) {
    return speeds_fault(random, make_problem<TestType>(random));
  });
}

TEST_CASE("sums of costs are exact up to the largest integer and an error above", "[certificate]") {
  test::certify<std::int64_t>("balance_optimally near the largest sum", overflow_fault);
}
