// SPDX-License-Identifier: Apache-2.0
// What balancers under a capacity find, and what they call impossible, compared with all ways to
// place the samples; the same for costs that are not sums.

#include "brute_force.hpp"
#include "certificate.hpp"
#include "parts.hpp"
#include "random_instances.hpp"

#include <omnibal/balance/balance_set_cost.hpp>
#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/balance/set_costs.hpp>
#include <omnibal/config.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::resources;
using omnibal::rng::engine;
using test::number_between;
using test::working_of;

/// Samples with demands and costs, and for every subset whether it fits and what it costs, summed
/// by ascending index.
template <std::size_t R, class Weight>
struct problem {
  using load = working_of<Weight>;

  test::instance<R, Weight> given;
  std::vector<Weight> costs;
  std::vector<std::uint8_t> fits;
  std::vector<load> sums;

  [[nodiscard]] std::size_t count() const { return costs.size(); }
};

/// For every subset of the samples whether it fits a capacity, summed by ascending index.
template <std::size_t R, class Weight>
std::vector<std::uint8_t> fits_of(test::instance<R, Weight> const& given,
                                  resources<R, working_of<Weight>> const& capacity) {
  using load = working_of<Weight>;
  std::vector<std::uint8_t> result(std::size_t{1} << given.samples.size(), 1);
  std::vector<resources<R, load>> loads(result.size(), resources<R, load>{});
  for (std::size_t set = 1; set != result.size(); ++set) {
    auto const last = static_cast<std::size_t>(std::bit_width(set)) - 1;
    std::size_t const rest = set ^ std::size_t{1} << last;
    auto const& demand = given.demands[last];
    bool fits = result[rest] != 0;
    if constexpr (std::integral<load>) {
      fits = fits && demand.fits(capacity - loads[rest]);
    } else {
      fits = fits && (loads[rest] + demand).fits(capacity);
    }
    result[set] = fits;
    // Sums above the capacity may leave the type and are not used.
    if (fits) loads[set] = loads[rest] + demand;
  }
  return result;
}

/// A capacity for each part: shares of eighths of the capacity of an instance, at least one of its
/// smallest positive amounts. In one of four cases they are all equal.
template <std::size_t R, class Weight>
std::vector<resources<R, working_of<Weight>>> draw_capacities(
    test::instance<R, Weight> const& given, std::size_t parts, engine& random) {
  using load = working_of<Weight>;
  std::vector<resources<R, load>> result(parts, given.capacity);
  if (number_between(random, 0, 3) == 0) return result;
  for (auto& capacity : result) {
    for (load& amount : capacity.amounts) {
      auto const eighths = static_cast<load>(number_between(random, 1, 8));
      load const share = amount / 8 * eighths;
      if (share > load{}) amount = share;
    }
  }
  return result;
}

template <std::size_t R, class Weight>
problem<R, Weight> make_problem(engine& random) {
  using load = working_of<Weight>;
  problem<R, Weight> made;
  // The bounds of numbers that float are weaker, and a search takes longer.
  made.given = test::make_instance<R, Weight>(random, std::floating_point<Weight> ? 6 : 8);
  std::size_t const count = made.given.samples.size();
  test::weight_source<Weight> const weights(
      random, std::min(test::max_of<Weight>(), std::numeric_limits<std::int64_t>::max() / 8));
  for (std::size_t i = 0; i != count; ++i) made.costs.push_back(weights());
  made.sums.assign(std::size_t{1} << count, load{});
  for (std::size_t set = 1; set != made.sums.size(); ++set) {
    auto const last = static_cast<std::size_t>(std::bit_width(set)) - 1;
    std::size_t const rest = set ^ std::size_t{1} << last;
    made.sums[set] = made.sums[rest] + static_cast<load>(made.costs[last]);
  }
  made.fits = fits_of(made.given, made.given.capacity);
  return made;
}

std::size_t set_of(std::span<std::uint32_t const> items) {
  std::size_t set = 0;
  for (std::uint32_t const item : items) set |= std::size_t{1} << item;
  return set;
}

/// The functors of the samples by their index.
template <std::size_t R, class Weight>
struct by_index {
  problem<R, Weight> const& of;

  [[nodiscard]] std::vector<std::uint32_t> samples() const {
    std::vector<std::uint32_t> result(of.count());
    for (std::uint32_t i = 0; i != result.size(); ++i) result[i] = i;
    return result;
  }
  [[nodiscard]] auto cost() const {
    return [this](std::uint32_t i) { return of.costs[i]; };
  }
  [[nodiscard]] auto demand() const {
    return [this](std::uint32_t i) { return of.given.samples[i]; };
  }
};

/// What is wrong with parts that were found.
template <std::size_t R, class Weight, class Result>
std::string found_fault(problem<R, Weight> const& of, Result const& result, std::size_t parts) {
  std::string const found = test::parts_fault(result.parts, of.count(), parts);
  if (!found.empty()) return found;
  working_of<Weight> largest{};
  for (std::size_t p = 0; p != parts; ++p) {
    std::size_t const set = set_of(result.parts[p]);
    if (of.fits[set] == 0) return "part " + std::to_string(p) + " exceeds the capacity";
    largest = std::max(largest, of.sums[set]);
  }
  if (result.largest_load < largest || largest < result.largest_load) {
    return "the largest load is not the one that is reported";
  }
  return "";
}

template <std::size_t R, class Weight>
std::string within_fault(engine& random) {
  using omnibal::solve_status;
  using omnibal::within_reason;
  auto const of = make_problem<R, Weight>(random);
  auto const parts = static_cast<std::size_t>(number_between(random, 1, 5));
  omnibal::balance_under_capacity_options options;
  options.max_overload = 0.125 * static_cast<double>(number_between(random, 0, 2));
  options.passes = static_cast<std::size_t>(number_between(random, 0, 4));
  options.seed = static_cast<std::uint64_t>(number_between(random, 0, 9));
  if (number_between(random, 0, 3) == 0) {
    options.nodes = static_cast<std::uint64_t>(number_between(random, 0, 20));
  }
  by_index<R, Weight> const index{of};
  auto const result = omnibal::balance_under_capacity(index.samples(), parts, index.cost(),
                                                      index.demand(), of.given.capacity, options);

  auto const none = std::numeric_limits<working_of<Weight>>::max();
  auto value = of.sums;
  for (std::size_t set = 0; set != value.size(); ++set) {
    if (of.fits[set] == 0) value[set] = none;
  }
  auto const best = test::min_largest_value(value, parts, none);
  if (result.status == solve_status::infeasible) {
    if (best != none) return "balance_under_capacity calls possible parts impossible";
    if (result.reason == within_reason::none) return "balance_under_capacity gives no reason";
  }
  if (result.reason == within_reason::sample_above_capacity) {
    std::uint32_t first = 0;
    while (first != of.count() && of.fits[std::size_t{1} << first] != 0) ++first;
    return result.sample == first ? "" : "balance_under_capacity names another sample";
  }
  if (result.parts_needed > test::min_sets(of.fits)) {
    return "balance_under_capacity needs more parts than there have to be";
  }
  if (best != none && result.lower_bound > best) {
    return "balance_under_capacity has a lower bound of " + std::to_string(result.lower_bound) +
           ", there are parts with " + std::to_string(best);
  }
  if (result.status != solve_status::solved) {
    return result.parts.empty() ? ""
                                : "balance_under_capacity has parts that it does not call found";
  }
  std::string const found = found_fault(of, result, parts);
  return found.empty() ? "" : "balance_under_capacity: " + found;
}

/// What is wrong with the result for parts with capacities and speeds: multiples of 1/4, as whole
/// numbers up to 4, or all equal. Times are multiplied by 12, which all speeds divide.
template <std::size_t R, class Weight>
std::string speeds_fault(engine& random) {
  using omnibal::solve_status;
  using omnibal::within_reason;
  using time =
      std::conditional_t<std::integral<working_of<Weight>>, omnibal::detail::int128, double>;
  auto const of = make_problem<R, Weight>(random);
  auto const parts = static_cast<std::size_t>(number_between(random, 1, 4));
  std::vector<std::int64_t> whole;
  std::vector<double> speeds;
  std::int64_t const most_speed = number_between(random, 0, 2) == 0 ? 1 : 4;
  for (std::size_t part = 0; part != parts; ++part) {
    whole.push_back(number_between(random, 1, most_speed));
    speeds.push_back(0.25 * static_cast<double>(whole.back()));
  }
  auto const capacities = draw_capacities(of.given, parts, random);
  std::vector<std::vector<std::uint8_t>> fits;
  for (auto const& capacity : capacities) fits.push_back(fits_of(of.given, capacity));
  by_index<R, Weight> const index{of};
  auto const result = omnibal::balance_under_capacity(
      index.samples(), parts, index.cost(), index.demand(), capacities,
      {.max_overload = 0.125 * static_cast<double>(number_between(random, 0, 2)),
       .passes = static_cast<std::size_t>(number_between(random, 0, 4)),
       .speeds = speeds});

  auto const time_of = [&](std::size_t part, std::size_t set) {
    return static_cast<time>(of.sums[set]) * static_cast<time>(12 / whole[part]);
  };
  time const none = time_of(0, of.sums.size() - 1) * 12 + 1;
  std::vector<time> least(of.sums.size(), none);
  least[0] = 0;
  for (std::size_t part = 0; part != parts; ++part) {
    std::vector<time> next(least.size(), none);
    for (std::size_t set = 0; set != least.size(); ++set) {
      for (std::size_t taken = set;; taken = (taken - 1) & set) {
        if (fits[part][taken] != 0) {
          next[set] = std::min(next[set], std::max(least[set ^ taken], time_of(part, taken)));
        }
        if (taken == 0) break;
      }
    }
    least = std::move(next);
  }
  time const best = least.back();
  if (result.status == solve_status::infeasible) {
    if (best != none) return "balance_under_capacity with speeds calls possible parts impossible";
    if (result.reason == within_reason::none) return "balance_under_capacity gives no reason";
  }
  if (result.reason == within_reason::sample_above_capacity) {
    std::size_t const only = std::size_t{1} << result.sample;
    for (auto const& of_part : fits) {
      if (of_part[only] != 0) return "balance_under_capacity names a sample that fits a part";
    }
  }
  if (result.status == solve_status::not_found && std::integral<Weight>) {
    return "balance_under_capacity gives up few samples";
  }
  if (result.status != solve_status::solved) return "";
  std::string const found = test::parts_fault(result.parts, of.count(), parts);
  if (!found.empty()) return "balance_under_capacity with speeds: " + found;
  time reached{};
  for (std::size_t p = 0; p != parts; ++p) {
    std::size_t const set = set_of(result.parts[p]);
    if (fits[p][set] == 0) return "a part with a speed exceeds its capacity";
    reached = std::max(reached, time_of(p, set));
  }
  auto const fastest = static_cast<time>(*std::max_element(whole.begin(), whole.end()));
  auto const largest = static_cast<time>(result.largest_load);
  auto const bound = static_cast<time>(result.lower_bound);
  if constexpr (std::integral<working_of<Weight>>) {
    // Loads are rounded up, at most to the largest integer.
    auto const on_fastest = [&](time value) {
      return std::min<time>((value * fastest + 11) / 12, std::numeric_limits<std::int64_t>::max());
    };
    if (largest != on_fastest(reached)) return "a load with speeds is wrong";
    if (bound > on_fastest(best)) return "a bound with speeds is above the best";
    if (result.proven && reached != best) return "parts with speeds are not the best";
  } else {
    time const slack = reached * fastest / 12 * 1e-6;
    if (std::abs(largest - reached * fastest / 12) > slack) return "a load with speeds is wrong";
    if (bound > best * fastest / 12 + slack) return "a bound with speeds is above the best";
    if (result.proven && reached > best + 12 * slack) return "parts with speeds are not the best";
  }
  return "";
}

template <std::size_t R, class Weight>
std::string batches_fault(engine& random) {
  auto const of = make_problem<R, Weight>(random);
  auto const ranks = static_cast<std::size_t>(number_between(random, 1, 3));
  omnibal::micro_batches_options options;
  options.multiple_of = static_cast<std::size_t>(number_between(random, 1, 2));
  options.passes = static_cast<std::size_t>(number_between(random, 0, 4));
  by_index<R, Weight> const index{of};
  bool is_legal = true;
  for (std::size_t i = 0; i != of.count(); ++i) {
    is_legal = is_legal && of.fits[std::size_t{1} << i] != 0;
  }
  omnibal::micro_batch_steps result(ranks);
  try {
    result = omnibal::micro_batches(index.samples(), ranks, index.cost(), index.demand(),
                                    of.given.capacity, options);
  } catch (std::invalid_argument const&) {
    return is_legal ? "micro_batches refuses samples that fit" : "";
  }
  if (!is_legal) return "micro_batches takes a sample that exceeds the capacity";
  std::size_t seen = 0;
  std::size_t count = 0;
  for (std::size_t step = 0; step != result.size(); ++step) {
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      std::size_t const set = set_of(result(step, rank));
      if (of.fits[set] == 0) return "micro_batches exceeds the capacity";
      seen |= set;
      count += result(step, rank).size();
    }
  }
  if (seen != of.fits.size() - 1 || count != of.count()) return "micro_batches loses samples";
  std::size_t const together = ranks * options.multiple_of;
  std::size_t const fewest = (test::min_sets(of.fits) + together - 1) / together * together;
  std::size_t const batches = result.size() * ranks;
  // Small sets are searched in all ways; rounding may forbid what such a search finds.
  if (batches < fewest) return "micro_batches makes fewer batches than there can be";
  if (std::integral<Weight> && batches > fewest) return "micro_batches are not the fewest";
  return batches % together == 0 ? "" : "micro_batches are not a multiple";
}

/// What is wrong with micro-batches of ranks with a capacity each.
template <std::size_t R, class Weight>
std::string rank_batches_fault(engine& random) {
  auto const of = make_problem<R, Weight>(random);
  auto const ranks = static_cast<std::size_t>(number_between(random, 1, 3));
  omnibal::micro_batches_options options;
  options.multiple_of = static_cast<std::size_t>(number_between(random, 1, 2));
  std::vector<double> const speeds{1, 1.5, 1};
  if (ranks == 3 && number_between(random, 0, 1) == 0) options.speeds = speeds;
  auto const capacities = draw_capacities(of.given, ranks, random);
  std::vector<std::vector<std::uint8_t>> fits;
  for (auto const& capacity : capacities) fits.push_back(fits_of(of.given, capacity));
  by_index<R, Weight> const index{of};
  bool is_legal = true;
  for (std::size_t i = 0; i != of.count(); ++i) {
    is_legal = is_legal && std::any_of(fits.begin(), fits.end(), [&](auto const& of_rank) {
                 return of_rank[std::size_t{1} << i] != 0;
               });
  }
  omnibal::micro_batch_steps result(ranks);
  try {
    result = omnibal::micro_batches(index.samples(), ranks, index.cost(), index.demand(),
                                    capacities, options);
  } catch (std::invalid_argument const&) {
    return is_legal ? "micro_batches refuses samples that fit a rank" : "";
  }
  if (!is_legal) return "micro_batches takes a sample that fits no rank";
  std::size_t seen = 0;
  std::size_t count = 0;
  for (std::size_t step = 0; step != result.size(); ++step) {
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      std::size_t const set = set_of(result(step, rank));
      if (fits[rank][set] == 0) return "micro_batches exceeds the capacity of a rank";
      seen |= set;
      count += result(step, rank).size();
    }
  }
  if (seen != of.fits.size() - 1 || count != of.count()) return "micro_batches loses samples";
  return result.size() % options.multiple_of == 0 ? "" : "micro_batches are not a multiple";
}

/// The largest value of the parts, with `value(count, longest)`; 128 bits, or floating.
template <class Lengths, class Value>
auto largest_value(grouping const& parts, Lengths const& lengths, Value const& value) {
  decltype(value(0, lengths[0])) largest{};
  for (std::size_t p = 0; p != parts.size(); ++p) {
    typename Lengths::value_type longest{};
    for (std::uint32_t const item : parts[p]) longest = std::max(longest, lengths[item]);
    largest = std::max(largest, value(parts[p].size(), longest));
  }
  return largest;
}

/// `balance_set_cost` of costs that count and longest sample make, against all parts.
template <class Set, class Weight, class Value>
std::string set_fault(engine& random, std::int64_t most, Value const& value) {
  auto const count = static_cast<std::size_t>(number_between(random, 1, 8));
  auto const parts = static_cast<std::size_t>(number_between(random, 1, 5));
  test::weight_source<Weight> const weights(random, most);
  std::vector<Weight> lengths;
  for (std::size_t i = 0; i != count; ++i) lengths.push_back(weights());
  using value_type = decltype(value(0, lengths[0]));
  std::vector<value_type> values(std::size_t{1} << count, value_type{});
  for (std::size_t set = 1; set != values.size(); ++set) {
    Weight longest{};
    for (std::size_t i = 0; i != count; ++i) {
      if ((set >> i & 1) != 0) longest = std::max(longest, lengths[i]);
    }
    values[set] = value(static_cast<std::size_t>(std::popcount(set)), longest);
  }
  bool const may_overflow =
      std::integral<Weight> &&
      values.back() > static_cast<value_type>(std::numeric_limits<std::int64_t>::max());
  try {
    auto const result = omnibal::balance_set_cost(lengths, parts, Set{});
    std::string const found = test::parts_fault(result, count, parts);
    if (!found.empty()) return "balance_set_cost: " + found;
    auto const best =
        test::min_largest_value(values, parts, static_cast<value_type>(values.back() + 1));
    if (largest_value(result, lengths, value) > best)
      return "balance_set_cost misses the best parts";
    return "";
  } catch (std::overflow_error const&) {
    return may_overflow ? "" : "balance_set_cost refuses a cost that its type can hold";
  }
}

/// `balance_set_cost` of sums of lengths, against all parts.
std::string sum_fault(engine& random) {
  auto const count = static_cast<std::size_t>(number_between(random, 1, 8));
  auto const parts = static_cast<std::size_t>(number_between(random, 1, 5));
  test::weight_source<std::int64_t> const weights(random, 300'000'000);
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i != count; ++i) lengths.push_back(weights());
  std::vector<std::int64_t> sums(std::size_t{1} << count, 0);
  for (std::size_t set = 1; set != sums.size(); ++set) {
    auto const last = static_cast<std::size_t>(std::bit_width(set)) - 1;
    sums[set] = sums[set ^ std::size_t{1} << last] + lengths[last];
  }
  auto const result = omnibal::balance_set_cost(lengths, parts, omnibal::unmasked_pack<>{});
  std::int64_t largest = 0;
  for (std::size_t p = 0; p != parts; ++p) largest = std::max(largest, sums[set_of(result[p])]);
  std::int64_t const best =
      test::min_largest_value(sums, parts, std::numeric_limits<std::int64_t>::max());
  auto const k = static_cast<std::int64_t>(parts);
  return largest * k > best * (2 * k - 1)
             ? "balance_set_cost is above 2 - 1/parts times the best sum"
             : "";
}

}  // namespace

TEMPLATE_TEST_CASE("balance_under_capacity calls nothing impossible that is not", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("balance_under_capacity", [](engine& random) {
    if constexpr (sizeof(TestType) == 8) {
      if (number_between(random, 0, 1) == 0) return within_fault<2, TestType>(random);
    }
    return within_fault<1, TestType>(random);
  });
}

TEMPLATE_TEST_CASE("balance_under_capacity with capacities and speeds proves nothing wrong",
                   "[certificate]", TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("balance_under_capacity with capacities and speeds", [](engine& random) {
    if constexpr (sizeof(TestType) == 8) {
      if (number_between(random, 0, 1) == 0) return speeds_fault<2, TestType>(random);
    }
    return speeds_fault<1, TestType>(random);
  });
}

TEMPLATE_TEST_CASE("micro_batches are the fewest under the capacity", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("micro_batches", [](engine& random) {
    if constexpr (sizeof(TestType) == 8) {
      if (number_between(random, 0, 1) == 0) return batches_fault<2, TestType>(random);
    }
    return batches_fault<1, TestType>(random);
  });
}

TEMPLATE_TEST_CASE("micro_batches keep the capacity of each rank", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("micro_batches with capacities", [](engine& random) {
    if constexpr (sizeof(TestType) == 8) {
      if (number_between(random, 0, 1) == 0) return rank_batches_fault<2, TestType>(random);
    }
    return rank_batches_fault<1, TestType>(random);
  });
}

TEMPLATE_TEST_CASE("balance_set_cost has the best parts for padded batches", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  using length = std::identity;
  using number = working_of<TestType>;
  using wide = std::conditional_t<std::integral<TestType>, omnibal::detail::int128, double>;
  test::certify<TestType>("balance_set_cost of padded batches", [](engine& random) {
    return set_fault<omnibal::padded_batch<length, number>, TestType>(
        random, test::max_of<TestType>(), [](std::size_t count, TestType longest) {
          return static_cast<wide>(count) * static_cast<wide>(longest);
        });
  });
  test::certify<TestType>("balance_set_cost of padded attention", [](engine& random) {
    return set_fault<omnibal::padded_attention<length, number>, TestType>(
        random, std::min<std::int64_t>(test::max_of<TestType>(), std::int64_t{1} << 32),
        [](std::size_t count, TestType longest) {
          return static_cast<wide>(count) * static_cast<wide>(longest) * static_cast<wide>(longest);
        });
  });
}

TEST_CASE("balance_set_cost is near the best sum where the sum makes the cost", "[certificate]") {
  test::certify<std::int64_t>("balance_set_cost of sums", sum_fault);
}
