// SPDX-License-Identifier: Apache-2.0
#pragma once

// The best choices by trying all of them.

#include <omnibal/activation_option.hpp>
#include <omnibal/recompute/recompute_result.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace test {

using layer_choices = std::vector<omnibal::activation_option<>>;
using layers_type = std::vector<layer_choices>;

/// What choices take of a budget.
template <class Layers>
std::int64_t bytes_of(Layers const& layers, std::vector<std::uint32_t> const& choices,
                      omnibal::select_recompute_options const& options) {
  std::int64_t kept = 0;
  std::int64_t transient = 0;
  for (std::size_t i = 0; i != choices.size(); ++i) {
    kept += layers[i][choices[i]].bytes;
    transient = std::max(transient, layers[i][choices[i]].transient_bytes);
  }
  return kept * options.in_flight + transient + options.reserve_bytes;
}

template <class Layers>
auto time_of(Layers const& layers, std::vector<std::uint32_t> const& choices) {
  std::remove_cvref_t<decltype(layers[0][0].time)> time{};
  for (std::size_t i = 0; i != choices.size(); ++i) time += layers[i][choices[i]].time;
  return time;
}

struct every_plan {
  bool feasible = false;
  std::int64_t min_time = std::numeric_limits<std::int64_t>::max();
  std::int64_t min_bytes = std::numeric_limits<std::int64_t>::max();
};

/// All plans; meant for a few thousand of them.
inline every_plan try_every_plan(layers_type const& layers, std::int64_t budget,
                                 omnibal::select_recompute_options const& options) {
  every_plan result;
  std::vector<std::uint32_t> choices(layers.size(), 0);
  while (true) {
    std::int64_t const bytes = bytes_of(layers, choices, options);
    result.min_bytes = std::min(result.min_bytes, bytes);
    if (bytes <= budget) {
      result.feasible = true;
      result.min_time = std::min(result.min_time, time_of(layers, choices));
    }
    std::size_t i = 0;
    while (i != choices.size() && ++choices[i] == layers[i].size()) choices[i++] = 0;
    if (i == choices.size()) return result;
  }
}

/// What is wrong with a result, empty if nothing is.
template <class Layers, class Result>
std::string plan_fault(Layers const& layers, Result const& result, std::int64_t budget,
                       omnibal::select_recompute_options const& options) {
  if (result.status != omnibal::solve_status::solved) return "infeasible";
  if (result.choices.size() != layers.size()) return "a layer has no choice";
  for (std::size_t i = 0; i != layers.size(); ++i) {
    if (result.choices[i] >= layers[i].size()) return "a choice that is none";
  }
  if (bytes_of(layers, result.choices, options) > budget) return "above the budget";
  if (bytes_of(layers, result.choices, options) != result.bytes) return "other bytes";
  if (time_of(layers, result.choices) != result.time) return "another time";
  if (result.lower_bound > result.time) return "a bound above the time";
  if (result.proven != (result.lower_bound == result.time)) return "proven and bound disagree";
  if (result.missing_bytes != 0) return "bytes are missing";
  return "";
}

inline std::int64_t uniform(omnibal::rng::engine& random, std::int64_t least, std::int64_t most) {
  auto const count = static_cast<std::uint64_t>(most - least) + 1;
  return least + static_cast<std::int64_t>(omnibal::rng::below(random, count));
}

}  // namespace test
