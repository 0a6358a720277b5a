// SPDX-License-Identifier: Apache-2.0
// What select_recompute proves, compared with all plans of small models.

#include "certificate.hpp"

#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::detail::int128;

constexpr std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max();

template <class Time>
struct instance {
  std::vector<std::vector<omnibal::activation_option<Time>>> layers;
  std::int64_t budget = 0;
  omnibal::select_recompute_options options{};
};

/// Sums of times without a rounding that matters.
template <class Time>
using wide_time = std::conditional_t<std::floating_point<Time>, long double, int128>;

/// Over all plans.
template <class Time>
struct all_plans {
  bool is_feasible = false;
  wide_time<Time> min_time{};
  int128 min_bytes = 0;
  bool is_any = false;
};

template <class Time>
void try_all(instance<Time> const& given, std::size_t layer, int128 kept, std::int64_t transient,
             wide_time<Time> time, all_plans<Time>& found) {
  if (layer != given.layers.size()) {
    for (auto const& way : given.layers[layer]) {
      try_all(given, layer + 1, kept + way.bytes, std::max(transient, way.transient_bytes),
              time + way.time, found);
    }
    return;
  }
  int128 const bytes = kept * given.options.in_flight + transient + given.options.reserve_bytes;
  if (!found.is_any || bytes < found.min_bytes) found.min_bytes = bytes;
  found.is_any = true;
  if (bytes > given.budget) return;
  if (!found.is_feasible || time < found.min_time) found.min_time = time;
  found.is_feasible = true;
}

/// The largest time of a choice that every sum can hold, or that a `Time` can.
template <class Time>
std::int64_t max_time(std::size_t layers) {
  if constexpr (std::floating_point<Time>) {
    return std::int64_t{1} << 58;
  } else {
    return std::min<std::int64_t>(std::numeric_limits<Time>::max(),
                                  max_int64 / static_cast<std::int64_t>(layers));
  }
}

/// Zero or more, small or large.
std::int64_t any_bytes(omnibal::rng::engine& random) {
  test::weight_source<std::int64_t> const draw(random, max_int64);
  return draw();
}

template <class Time>
instance<Time> draw_instance(omnibal::rng::engine& random) {
  using test::number_between;
  instance<Time> made;
  auto const count = static_cast<std::size_t>(number_between(random, 1, 8));
  test::weight_source<Time> const times(random, max_time<Time>(count));
  // Products with the micro-batches in flight stay within 128 bits.
  bool const is_huge = number_between(random, 0, 9) == 0;
  std::int64_t const most = is_huge ? max_int64 : max_int64 / 64;
  test::weight_source<std::int64_t> const bytes(random, most);
  test::weight_source<std::int64_t> const transient(random, most);
  std::int64_t const share = number_between(random, 0, 3);
  std::size_t plans = 1;
  for (std::size_t l = 0; l != count; ++l) {
    if (l != 0 && number_between(random, 0, 3) == 0 && plans * made.layers.back().size() <= 1024) {
      auto same = made.layers.back();
      made.layers.push_back(std::move(same));
      plans *= made.layers.back().size();
      continue;
    }
    auto ways = static_cast<std::size_t>(number_between(random, 1, 4));
    if (number_between(random, 0, 15) == 0) ways += 4;
    while (plans * ways > 1024 && ways > 1) --ways;
    plans *= ways;
    auto& layer = made.layers.emplace_back();
    for (std::size_t w = 0; w != ways; ++w) {
      bool const has_transient = number_between(random, 0, 3) < share;
      layer.push_back({times(), bytes(), has_transient ? transient() : 0});
    }
  }
  made.options.in_flight =
      number_between(random, 0, 1) == 0 ? 1 : 1 + std::min(any_bytes(random), max_int64 - 1);
  if (is_huge || number_between(random, 0, 3) != 0) {
    made.options.in_flight = std::min<std::int64_t>(made.options.in_flight, 5);
  }
  made.options.reserve_bytes = number_between(random, 0, 1) == 0 ? 0 : any_bytes(random);
  if (number_between(random, 0, 3) != 0) {
    made.options.reserve_bytes = std::min<std::int64_t>(made.options.reserve_bytes, 9);
  }
  made.options.max_gap = number_between(random, 0, 1) == 0 ? 0 : made.options.max_gap;
  if (number_between(random, 0, 7) == 0) {
    made.options.states = static_cast<std::size_t>(number_between(random, 1, 4));
  }
  return made;
}

/// Near the bytes of some plan, so that it and its neighbors are close to the budget.
template <class Time>
void draw_budget(omnibal::rng::engine& random, instance<Time>& made) {
  int128 kept = 0;
  std::int64_t transient = 0;
  for (auto const& layer : made.layers) {
    auto const& way = layer[omnibal::rng::below(random, layer.size())];
    kept += way.bytes;
    transient = std::max(transient, way.transient_bytes);
  }
  int128 const bytes = kept * made.options.in_flight + transient + made.options.reserve_bytes +
                       test::number_between(random, -1, 1);
  made.budget = omnibal::detail::saturate_cast<std::int64_t>(bytes);
  if (test::number_between(random, 0, 4) == 0) {
    made.budget = test::number_between(random, 0, std::max<std::int64_t>(made.budget, 0));
  }
  if (test::number_between(random, 0, 9) != 0) return;
  made.budget = any_bytes(random);
  if (test::number_between(random, 0, 3) == 0) made.budget = -made.budget;
}

/// By how much a claim about floating-point times may be off: each time is rounded to a whole
/// number of 2^-61 of the sum at most, and sums of such times as such sums are.
template <class Time>
long double rounding(instance<Time> const& given) {
  if constexpr (std::floating_point<Time>) {
    long double sum = 0;
    bool is_whole = true;
    for (auto const& layer : given.layers) {
      Time largest{};
      for (auto const& way : layer) {
        largest = std::max(largest, way.time);
        is_whole = is_whole && way.time == std::floor(way.time);
      }
      sum += largest;
    }
    if (is_whole && sum < 0x1p53L) return 0;
    auto const terms = static_cast<long double>(given.layers.size());
    return sum * (terms * 0x1p-61L + terms * 0x1p-53L);
  } else {
    return 0;
  }
}

template <class Time, class Result>
std::string wrong_plan(instance<Time> const& given, Result const& result) {
  if (result.choices.size() != given.layers.size()) return "a layer has no choice";
  int128 kept = 0;
  std::int64_t transient = 0;
  decltype(result.time) time{};
  for (std::size_t l = 0; l != given.layers.size(); ++l) {
    if (result.choices[l] >= given.layers[l].size()) return "a choice that is none";
    auto const& way = given.layers[l][result.choices[l]];
    kept += way.bytes;
    transient = std::max(transient, way.transient_bytes);
    time += static_cast<decltype(time)>(way.time);
  }
  int128 const bytes = kept * given.options.in_flight + transient + given.options.reserve_bytes;
  if (bytes != result.bytes) return "other bytes";
  if (bytes > given.budget) return "above the budget";
  if (time != result.time) return "another time";
  if (result.missing_bytes != 0) return "bytes are missing";
  return "";
}

template <class Time>
std::string fault_of(instance<Time> const& given) {
  all_plans<Time> best;
  try_all<Time>(given, 0, 0, 0, {}, best);
  int128 fewest = 0;
  for (auto const& layer : given.layers) {
    std::int64_t least = layer.front().bytes;
    for (auto const& choice : layer) least = std::min(least, choice.bytes);
    fewest += least;
  }
  bool const may_overflow =
      fewest > max_int64 || (!best.is_feasible && (best.min_bytes > max_int64 ||
                                                   best.min_bytes - given.budget > max_int64));
  try {
    auto const result = omnibal::select_recompute(given.layers, given.budget, given.options);
    if (may_overflow) return "no overflow error";
    if (result.status == omnibal::solve_status::infeasible) {
      if (best.is_feasible) return "infeasible, but a plan fits";
      if (!result.proven || !result.choices.empty()) return "infeasible without a proof";
      if (result.bytes != best.min_bytes) return "other least bytes";
      if (result.missing_bytes != best.min_bytes - given.budget) return "other missing bytes";
      return "";
    }
    if (!best.is_feasible) return "a plan where none fits";
    auto wrong = wrong_plan(given, result);
    if (!wrong.empty()) return wrong;
    long double const off = rounding(given);
    auto const least = static_cast<long double>(best.min_time);
    if constexpr (std::integral<Time>) {
      if (result.lower_bound > best.min_time) return "a lower bound above a plan";
      if (result.time < best.min_time) return "a time below all plans";
      if (result.proven && result.time != best.min_time) return "proven, but not the least time";
      if (result.proven != (result.lower_bound == result.time)) return "proven without the bound";
    } else {
      if (result.lower_bound > least + off) return "a lower bound above a plan";
      if (result.time < least - off) return "a time below all plans";
      if (result.proven && result.time > least + off) return "proven, but not the least time";
      if (result.proven && result.lower_bound != result.time) return "proven without the bound";
    }
    return result.lower_bound > result.time ? "a bound above the time" : "";
  } catch (std::overflow_error const& error) {
    return may_overflow ? "" : error.what();
  }
}

}  // namespace

TEMPLATE_TEST_CASE("What select_recompute proves is true of all plans", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("select_recompute", [](omnibal::rng::engine& random) {
    auto given = draw_instance<TestType>(random);
    draw_budget(random, given);
    return fault_of(given);
  });
}
