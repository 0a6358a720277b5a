// SPDX-License-Identifier: Apache-2.0
// What select_activations proves, compared with all choices of small models.

#include "certificate.hpp"
#include "every_activation.hpp"

#include <omnibal/detail/conversions.hpp>
#include <omnibal/recompute/activation_frontier.hpp>
#include <omnibal/recompute/measure_activations.hpp>
#include <omnibal/recompute/select_activations.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::activation_choice;
using omnibal::detail::int128;
using test::number_between;

template <class Time>
std::int64_t max_time() {
  if constexpr (std::floating_point<Time>) {
    return std::int64_t{1} << 58;
  } else {
    return std::min<std::int64_t>(std::numeric_limits<Time>::max(), std::int64_t{1} << 58);
  }
}

/// Other traffic, of layers or even, up to all bytes that the link transfers.
template <class Time>
void add_traffic(omnibal::rng::engine& random, double most, test::activation_case<Time>& made) {
  auto const draw = [&](double share) {
    return number_between(random, 0, static_cast<std::int64_t>(share * most));
  };
  if (number_between(random, 0, 1) == 0) {
    made.link.forward_traffic_bytes = draw(0.5);
    made.link.backward_traffic_bytes = draw(0.5);
  }
  for (auto& layer : made.layers) {
    if (number_between(random, 0, 1) == 0) continue;
    layer.forward_traffic_bytes = draw(0.5);
    layer.backward_traffic_bytes = draw(0.5);
  }
}

/// Up to seven modules in up to five layers, some of them equal; the link is idle, slow, or fast
/// for these bytes and times.
template <class Time>
test::activation_case<Time> draw_case(omnibal::rng::engine& random) {
  test::activation_case<Time> made;
  auto const count = static_cast<std::size_t>(number_between(random, 1, 5));
  test::weight_source<Time> const times(random, max_time<Time>());
  test::weight_source<std::int64_t> const bytes(random, std::int64_t{1} << 55);
  test::weight_source<Time> const passes(random, 1000);
  test::weight_source<std::int64_t> const transient(random, std::int64_t{1} << 50);
  bool const has_transient = number_between(random, 0, 1) == 0;
  bool const has_required = number_between(random, 0, 2) == 0;
  std::size_t left = 7;
  double sum = 0;
  for (std::size_t i = 0; i != count; ++i) {
    auto& layer = made.layers.emplace_back();
    bool const is_equal =
        i != 0 && number_between(random, 0, 2) == 0 && made.layers[i - 1].modules.size() <= left;
    if (is_equal) {
      layer = made.layers[i - 1];
    } else {
      auto const modules = static_cast<std::size_t>(number_between(random, 0, 3));
      for (std::size_t j = 0; j != std::min(modules, left); ++j) {
        layer.modules.push_back({bytes(), times()});
        if (has_required && number_between(random, 0, 2) == 0) {
          layer.modules.back().need = omnibal::module_need::required;
        }
      }
      layer.forward_time = passes();
      layer.backward_time = passes();
      if (has_transient) {
        layer.forward_transient_bytes = transient();
        layer.backward_transient_bytes = transient();
      }
    }
    left -= layer.modules.size();
    for (auto const& one : layer.modules) sum += static_cast<double>(one.bytes);
  }
  double passes_sum = 0;
  for (auto const& layer : made.layers) passes_sum += static_cast<double>(layer.forward_time);
  constexpr double shares[]{0, 0.25, 1, 4};
  double const share = shares[number_between(random, 0, 3)];
  made.link.bytes_per_time = share * sum / std::max(1.0, passes_sum);
  if (number_between(random, 0, 1) == 0) {
    made.link.bytes_per_time = std::floor(made.link.bytes_per_time);
  }
  if (number_between(random, 0, 2) == 0) made.in_flight = number_between(random, 2, 4);
  if (number_between(random, 0, 2) == 0) add_traffic(random, share * sum, made);
  return made;
}

/// Near the peak of some choices, so that they and their neighbors are close to the budget.
template <class Time>
void draw_budget(omnibal::rng::engine& random, test::activation_case<Time>& made) {
  test::activation_choices choices;
  for (auto const& layer : made.layers) {
    auto& row = choices.emplace_back();
    for (std::size_t j = 0; j != layer.modules.size(); ++j) {
      auto const choice = static_cast<activation_choice>(number_between(random, 0, 2));
      bool const is_required = layer.modules[j].need == omnibal::module_need::required;
      bool const is_lost = is_required && choice == activation_choice::recompute;
      row.push_back(is_lost ? activation_choice::offload : choice);
    }
  }
  auto const peak = static_cast<std::int64_t>(test::naive_memory<Time>(made, choices).peak());
  made.budget = peak + number_between(random, -1, 1);
  if (number_between(random, 0, 4) == 0) {
    made.budget = number_between(random, -1, std::max<std::int64_t>(peak, 0));
  }
}

/// By how much a claim about floating-point times may be off.
template <class Time>
long double rounding(test::activation_case<Time> const& given) {
  if constexpr (std::integral<Time>) return 0;
  long double sum = 0;
  long double terms = 0;
  bool is_whole = true;
  for (auto const& layer : given.layers) {
    for (auto const& one : layer.modules) {
      sum += static_cast<long double>(one.recompute_time);
      is_whole = is_whole && std::floor(static_cast<double>(one.recompute_time)) ==
                                 static_cast<double>(one.recompute_time);
      terms += 1;
    }
  }
  if (is_whole && sum < 0x1p53L) return 0;
  return sum * terms * (0x1p-61L + 0x1p-53L);
}

/// Every change that saves or keeps one more module must exceed the budget.
template <class Time>
bool is_maximal(test::activation_case<Time> const& given, test::activation_choices choices) {
  for (auto& layer : choices) {
    for (activation_choice& choice : layer) {
      activation_choice const made = choice;
      if (made == activation_choice::keep) continue;
      choice = made == activation_choice::recompute ? activation_choice::offload
                                                    : activation_choice::keep;
      if (test::naive_memory<Time>(given, choices).peak() <= given.budget) return false;
      choice = made;
    }
  }
  return true;
}

template <class Time, class Result>
std::string wrong_choices(test::activation_case<Time> const& given, Result const& result) {
  if (result.choices.size() != given.layers.size()) return "a layer has no choices";
  auto const usage = omnibal::measure_activations(given.layers, result.choices, given.link,
                                                  {.in_flight = given.in_flight});
  if (result.peak_bytes > given.budget) return "above the budget";
  if (result.peak_bytes != usage.peak_bytes) return "another peak";
  if (result.added_time != usage.added_time) return "another time";
  if (result.offloaded_bytes != usage.offloaded_bytes) return "other offloaded bytes";
  if (result.missing_bytes != 0) return "bytes are missing";
  if (!test::keeps_required(given, result.choices)) return "a required module is recomputed";
  test::naive_memory<Time> const memory(given, result.choices);
  if (memory.peak() != usage.peak_bytes) return "a measured peak that differs from the sums";
  for (std::size_t i = 0; i != given.layers.size(); ++i) {
    if (memory.of_layer(i).forward != usage.forward_bytes[i]) return "other forward bytes";
    if (memory.of_layer(i).backward != usage.backward_bytes[i]) return "other backward bytes";
  }
  if (memory.held() != usage.held_bytes) return "other held bytes";
  return is_maximal(given, result.choices) ? "" : "a module that fits is not kept";
}

/// What is wrong with the order of the results of a budget and of a larger one.
template <class Time, class Result>
std::string wrong_order(omnibal::rng::engine& random, test::activation_case<Time> const& given,
                        omnibal::select_activations_options const& options, Result const& result) {
  std::int64_t largest = 0;
  for (auto const& layer : given.layers) {
    for (auto const& one : layer.modules) largest = std::max(largest, one.bytes);
  }
  std::int64_t const step = given.in_flight * largest;
  std::int64_t const more = number_between(random, 0, step) + (step / 2) * 3;
  auto const larger =
      omnibal::select_activations(given.layers, given.budget + more, given.link, options);
  long double const off = rounding(given);
  if (larger.status == omnibal::solve_status::infeasible) return "infeasible with more bytes";
  if (static_cast<long double>(larger.lower_bound) >
      static_cast<long double>(result.added_time) + off) {
    return "a larger bound with more bytes";
  }
  if (larger.proven && result.proven &&
      static_cast<long double>(larger.added_time) >
          static_cast<long double>(result.added_time) + off) {
    return "more time with more bytes";
  }
  if (more >= step && larger.peak_bytes < result.peak_bytes) return "a lower peak with more bytes";
  return "";
}

/// What is wrong with results for several budgets, of which the first one is the budget of the
/// case.
template <class Time, class Result>
std::string wrong_frontier(omnibal::rng::engine& random, test::activation_case<Time> const& given,
                           omnibal::select_activations_options const& options, Result const& result,
                           test::every_activation<Time> const& best) {
  std::vector<std::int64_t> budgets{given.budget};
  for (int k = 0; k != 3; ++k) {
    std::int64_t const step = number_between(random, 0, 1) == 0 ? 3 : given.budget / 4 + 3;
    budgets.push_back(given.budget + number_between(random, -step, step));
  }
  auto const all = omnibal::activation_frontier(given.layers, budgets, given.link, options);
  if (all.size() != budgets.size()) return "a frontier without a budget";
  auto const& own = all.front();
  auto const off = rounding(given);
  if (own.status != result.status) return "another status in the frontier";
  if (best.is_feasible) {
    auto const least = static_cast<long double>(best.min_time);
    if (own.added_time > result.added_time) return "more time in the frontier";
    if (own.lower_bound < result.lower_bound) return "a weaker bound in the frontier";
    if (static_cast<long double>(own.lower_bound) > least + off) return "a bound above choices";
    if (own.proven && static_cast<long double>(own.added_time) > least + off) {
      return "proven in the frontier, but not the least time";
    }
  }
  for (std::size_t a = 0; a != all.size(); ++a) {
    if (all[a].status == omnibal::solve_status::infeasible) continue;
    auto const usage = omnibal::measure_activations(given.layers, all[a].choices, given.link,
                                                    {.in_flight = given.in_flight});
    if (usage.peak_bytes != all[a].peak_bytes) return "another peak in the frontier";
    if (usage.added_time != all[a].added_time) return "another time in the frontier";
    if (usage.peak_bytes > budgets[a]) return "a frontier above the budget";
    for (std::size_t b = 0; b != all.size(); ++b) {
      if (budgets[b] < budgets[a]) continue;
      if (all[b].status == omnibal::solve_status::infeasible) return "infeasible with more bytes";
      if (all[b].added_time > all[a].added_time) return "a frontier with more time";
      if (all[b].lower_bound > all[a].lower_bound) return "a frontier with a larger bound";
      if (all[b].peak_bytes < all[a].peak_bytes) return "a frontier with a lower peak";
      bool const is_same_time = all[b].added_time == all[a].added_time;
      if (is_same_time && all[b].offloaded_bytes > all[a].offloaded_bytes) {
        return "a frontier that offloads more bytes";
      }
    }
  }
  return "";
}

template <class Time>
std::string fault_of(omnibal::rng::engine& random, test::activation_case<Time> const& given) {
  auto const best = test::try_every_activation(given);
  omnibal::select_activations_options options{.in_flight = given.in_flight};
  if (number_between(random, 0, 3) == 0) {
    options.labels = static_cast<std::size_t>(number_between(random, 1, 4));
  }
  auto const result = omnibal::select_activations(given.layers, given.budget, given.link, options);
  auto const wrong_sweep = wrong_frontier(random, given, options, result, best);
  if (!wrong_sweep.empty()) return wrong_sweep;
  if (result.status == omnibal::solve_status::infeasible) {
    if (best.is_feasible) return "infeasible, but choices fit";
    if (!result.proven || !result.choices.empty()) return "infeasible without a proof";
    if (result.peak_bytes != best.min_peak) return "another least peak";
    if (result.missing_bytes != best.min_peak - given.budget) return "other missing bytes";
    return "";
  }
  if (!best.is_feasible) return "choices where none fit";
  auto wrong = wrong_choices(given, result);
  if (!wrong.empty()) return wrong;
  long double const off = rounding(given);
  auto const least = static_cast<long double>(best.min_time);
  if (static_cast<long double>(result.lower_bound) > least + off) return "a bound above choices";
  if (static_cast<long double>(result.added_time) < least - off) return "a time below all choices";
  if (result.proven && static_cast<long double>(result.added_time) > least + off) {
    return "proven, but not the least time";
  }
  if (result.proven && result.lower_bound != result.added_time) return "proven without the bound";
  if (result.lower_bound > result.added_time) return "a bound above the time";
  return wrong_order(random, given, options, result);
}

}  // namespace

// Shows that value, bound, proof, peak and missing bytes hold for every choice of small models.
TEMPLATE_TEST_CASE("What select_activations proves is true of all choices", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("select_activations", [](omnibal::rng::engine& random) {
    auto given = draw_case<TestType>(random);
    draw_budget(random, given);
    return fault_of(random, given);
  });
}
