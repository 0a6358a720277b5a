#include "certificate.hpp"

#include <omnibal/recompute/select_recompute.hpp>

#include <algorithm>
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

using omnibal::choice;
using omnibal::recompute_options;
using omnibal::recompute_status;
using omnibal::detail::int128;
using test::number_between;
using test::weight_source;

template <class Time>
using layers_of = std::vector<std::vector<choice<Time>>>;

/// Sums of times without rounding: of integers, and of floating-point numbers that are integers.
template <class Time>
using exact_time = std::conditional_t<std::floating_point<Time>, long double, int128>;

/// The largest time of which eight add up to what the type of the result holds exactly.
template <class Time>
constexpr std::int64_t most_time() {
  if constexpr (std::same_as<Time, float>) return std::int64_t{1} << 24;
  if constexpr (std::same_as<Time, double>) return std::int64_t{1} << 50;
  if constexpr (std::same_as<Time, std::int64_t>) return std::numeric_limits<Time>::max() / 8;
  return static_cast<std::int64_t>(std::numeric_limits<Time>::max());
}

/// All choices of all layers.
template <class Time>
struct every_choice {
  layers_of<Time> const& layers;
  recompute_options const& options;
  int128 budget;
  bool is_feasible = false;
  exact_time<Time> least_time{};
  int128 least_bytes = static_cast<int128>(1) << 126;

  void run() { take(0, 0, 0, exact_time<Time>{}); }

 private:
  void take(std::size_t layer, int128 kept, std::int64_t transient, exact_time<Time> time) {
    if (layer != layers.size()) {
      for (auto const& way : layers[layer]) {
        take(layer + 1, kept + way.bytes, std::max(transient, way.transient_bytes),
             time + static_cast<exact_time<Time>>(way.time));
      }
      return;
    }
    int128 const bytes = kept * options.in_flight + transient + options.reserve_bytes;
    least_bytes = std::min(least_bytes, bytes);
    if (bytes > budget) return;
    least_time = is_feasible ? std::min(least_time, time) : time;
    is_feasible = true;
  }
};

template <class Time>
layers_of<Time> random_layers(omnibal::rng::engine& random) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 58;
  weight_source<Time> const time(random, most_time<Time>());
  weight_source<std::int64_t> const bytes(random, most_bytes);
  weight_source<std::int64_t> const transient(random, most_bytes);
  bool const has_transients = number_between(random, 0, 2) != 0;
  layers_of<Time> layers(static_cast<std::size_t>(number_between(random, 1, 8)));
  std::int64_t const most_choices = layers.size() < 6 ? 4 : layers.size() == 6 ? 3 : 2;
  for (std::size_t i = 0; i != layers.size(); ++i) {
    if (i != 0 && number_between(random, 0, 3) == 0) {
      layers[i] = layers[i - 1];
      continue;
    }
    for (auto left = number_between(random, 1, most_choices); left != 0; --left) {
      layers[i].push_back({time(), bytes(), has_transients ? transient() : 0});
    }
  }
  return layers;
}

/// From too little for any choices to enough for all, often exactly what some choices take.
template <class Time>
std::int64_t random_budget(omnibal::rng::engine& random, layers_of<Time> const& layers,
                           recompute_options const& options) {
  int128 kept = 0;
  std::int64_t transient = 0;
  for (auto const& layer : layers) {
    auto const most = static_cast<std::int64_t>(layer.size()) - 1;
    auto const& way = layer[static_cast<std::size_t>(number_between(random, 0, most))];
    kept += way.bytes;
    transient = std::max(transient, way.transient_bytes);
  }
  int128 const taken = kept * options.in_flight + transient + options.reserve_bytes;
  auto const bytes = omnibal::detail::saturate_cast<std::int64_t>(taken);
  switch (number_between(random, 0, 3)) {
    case 0: return std::max<std::int64_t>(bytes, 1) - 1;
    case 1: return number_between(random, 0, bytes);
    case 2: return bytes > 1'000'000 ? bytes : bytes + number_between(random, 0, 9);
    default: return bytes;
  }
}

template <class Result, class Time>
std::string fault_of(Result const& result, layers_of<Time> const& layers,
                     every_choice<Time> const& best, bool is_exact) {
  if ((result.status == recompute_status::ok) != best.is_feasible) return "feasible or not";
  if (!best.is_feasible) {
    if (!result.proven) return "infeasible without a proof";
    if (result.bytes != best.least_bytes) return "other fewest bytes";
    return result.missing_bytes != best.least_bytes - best.budget ? "other missing bytes" : "";
  }
  exact_time<Time> time{};
  int128 kept = 0;
  std::int64_t transient = 0;
  if (result.choices.size() != layers.size()) return "a layer has no choice";
  for (std::size_t i = 0; i != layers.size(); ++i) {
    if (result.choices[i] >= layers[i].size()) return "a choice that is none";
    auto const& way = layers[i][result.choices[i]];
    time += static_cast<exact_time<Time>>(way.time);
    kept += way.bytes;
    transient = std::max(transient, way.transient_bytes);
  }
  int128 const bytes = kept * best.options.in_flight + transient + best.options.reserve_bytes;
  if (bytes > best.budget) return "above the budget";
  if (bytes != result.bytes) return "other bytes";
  auto const bound = static_cast<exact_time<Time>>(result.lower_bound);
  auto const least = best.least_time;
  exact_time<Time> rounding{};
  // Where sums are rounded they are off by a few units in the last place of the whole.
  if (!is_exact) rounding = static_cast<exact_time<Time>>(1e-14L * static_cast<long double>(time));
  if (time < least) return "less time than any choices take";
  if (static_cast<exact_time<Time>>(result.time) > time + rounding ||
      static_cast<exact_time<Time>>(result.time) < time - rounding) {
    return "another time";
  }
  if (bound > least + rounding) return "a lower bound above the least time";
  if (result.proven && time > least + rounding) return "proven, but others take less time";
  if (result.lower_bound > result.time) return "a lower bound above the time";
  if (result.proven != (result.lower_bound == result.time)) return "proven and bound disagree";
  return result.missing_bytes != 0 ? "missing bytes" : "";
}

}  // namespace

TEMPLATE_TEST_CASE("select_recompute proves what is true", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("select_recompute", [](omnibal::rng::engine& random) -> std::string {
    auto const layers = random_layers<TestType>(random);
    recompute_options options{.in_flight = number_between(random, 1, 3)};
    if (number_between(random, 0, 3) == 0) options.reserve_bytes = number_between(random, 0, 9);
    if (number_between(random, 0, 3) == 0) {
      options.states = static_cast<std::size_t>(number_between(random, 1, 4));
    }
    std::int64_t const budget = random_budget(random, layers, options);
    every_choice<TestType> best{layers, options, budget};
    best.run();
    bool is_exact = true;
    if constexpr (std::floating_point<TestType>) {
      for (auto const& layer : layers) {
        for (auto const& way : layer) {
          is_exact &= way.time == static_cast<TestType>(static_cast<std::int64_t>(way.time));
        }
      }
    }
    try {
      return fault_of(omnibal::select_recompute(layers, budget, options), layers, best, is_exact);
    } catch (std::overflow_error const&) {
      // Only what cannot be said of a plan that does not fit may leave 64 bits.
      bool const is_wide = best.least_bytes > std::numeric_limits<std::int64_t>::max();
      return is_wide ? "" : "overflow";
    }
  });
}
