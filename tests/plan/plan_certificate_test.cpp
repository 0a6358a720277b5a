// SPDX-License-Identifier: Apache-2.0
#include "certificate.hpp"

#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/plan/plan_pipeline.hpp>

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

using omnibal::solve_status;
using omnibal::detail::int128;
using test::number_between;
using test::weight_source;

template <class Time>
using layers_of = std::vector<omnibal::plan_layer<Time>>;

/// Sums of times without rounding: of integers, and of floating-point numbers that are integers.
template <class Time>
using exact_time = std::conditional_t<std::floating_point<Time>, long double, int128>;

constexpr int128 no_bytes = static_cast<int128>(1) << 126;

constexpr std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max();

/// The largest time of which the step of eight layers and nine micro-batches is exact.
template <class Time>
constexpr std::int64_t max_time() {
  if constexpr (std::same_as<Time, float>) return std::int64_t{1} << 24;
  if constexpr (std::same_as<Time, double>) return std::int64_t{1} << 46;
  if constexpr (std::same_as<Time, std::int64_t>) return std::numeric_limits<Time>::max() / 16;
  return static_cast<std::int64_t>(std::numeric_limits<Time>::max());
}

struct stage_limits {
  std::int64_t memory = 0;
  std::int64_t reserve = 0;
  std::int64_t in_flight = 1;
};

template <class Time>
struct instance {
  layers_of<Time> layers;
  std::vector<stage_limits> stages;
  std::int64_t micro_batches = 1;
  bool may_be_empty = false;
  omnibal::partition_constraints constraints{};

  /// Whether the constraints let these layers, at least one, be a stage.
  [[nodiscard]] bool may_be(std::size_t stage, std::size_t first, std::size_t last) const {
    auto const count = static_cast<std::int64_t>(last - first);
    auto const at = [&](auto const& list, std::int64_t otherwise) {
      auto const values = list.values();
      return values.empty() ? otherwise : values[values.size() == 1 ? 0 : stage];
    };
    if (count < at(constraints.min_layers, 0)) return false;
    if (count > at(constraints.max_layers, max_int64)) return false;
    for (auto const forbidden : constraints.forbidden_cuts) {
      if (first == forbidden) return false;
    }
    for (auto const& pin : constraints.pinned) {
      if ((first <= pin.layer && pin.layer < last) != (pin.stage == stage)) return false;
    }
    return std::none_of(constraints.tied.begin(), constraints.tied.end(), [&](auto const& tie) {
      return (tie.first < first && first <= tie.last) || (tie.first < last && last <= tie.last);
    });
  }
};

/// Layers as a stage: the least time within its memory, and the fewest bytes.
template <class Time>
struct min_of_stage {
  bool fits = false;
  exact_time<Time> time{};
  int128 bytes = no_bytes;
};

/// The best plan by trying all cuts and all choices.
template <class Time>
class every_plan {
 public:
  explicit every_plan(instance<Time> const& given) : given_(given) {
    if (given.layers.size() >= given.stages.size() || given.may_be_empty) cut(0, 0, {}, {}, 0);
  }

  bool is_feasible = false;
  exact_time<Time> step_time{};
  /// Whether any cuts satisfy the constraints.
  bool is_legal = false;
  /// The least that is missing on the worst stage.
  int128 missing_bytes = no_bytes;

  [[nodiscard]] min_of_stage<Time> solve(std::size_t stage, std::size_t first,
                                         std::size_t last) const {
    min_of_stage<Time> result;
    if (first == last) return {true, {}, 0};
    int128 fixed = given_.stages[stage].reserve;
    for (std::size_t l = first; l != last; ++l) fixed += given_.layers[l].state_bytes;
    choose(given_.stages[stage], first, last, fixed, 0, 0, {}, result);
    return result;
  }

 private:
  void choose(stage_limits const& stage, std::size_t layer, std::size_t last, int128 fixed,
              int128 kept, std::int64_t transient, exact_time<Time> time,
              min_of_stage<Time>& best) const {
    if (layer != last) {
      for (auto const& way : given_.layers[layer].choices) {
        choose(stage, layer + 1, last, fixed, kept + way.bytes,
               std::max(transient, way.transient_bytes),
               time + static_cast<exact_time<Time>>(way.time), best);
      }
      return;
    }
    int128 const bytes = fixed + stage.in_flight * kept + transient;
    best.bytes = std::min(best.bytes, bytes);
    if (bytes > stage.memory) return;
    best.time = best.fits ? std::min(best.time, time) : time;
    best.fits = true;
  }

  void cut(std::size_t stage, std::size_t first, exact_time<Time> largest, exact_time<Time> sum,
           int128 missing) {
    if (stage == given_.stages.size()) {
      if (first != given_.layers.size()) return;
      is_legal = true;
      missing_bytes = std::min(missing_bytes, missing);
      if (missing != 0) return;
      auto const step = static_cast<exact_time<Time>>(given_.micro_batches - 1) * largest + sum;
      step_time = is_feasible ? std::min(step_time, step) : step;
      is_feasible = true;
      return;
    }
    for (std::size_t last = given_.may_be_empty ? first : first + 1; last <= given_.layers.size();
         ++last) {
      if (first != last && !given_.may_be(stage, first, last)) continue;
      auto const least = solve(stage, first, last);
      int128 const lacks =
          first == last ? 0 : std::max<int128>(0, least.bytes - given_.stages[stage].memory);
      cut(stage + 1, last, std::max(largest, least.time), sum + least.time,
          std::max(missing, lacks));
    }
  }

  instance<Time> const& given_;
};

/// Constraints that may hold or contradict each other.
omnibal::partition_constraints random_constraints(omnibal::rng::engine& random, std::size_t layers,
                                                  std::size_t stages) {
  omnibal::partition_constraints made;
  auto const at_most = [&](std::size_t most) {
    return static_cast<std::uint32_t>(number_between(random, 0, static_cast<std::int64_t>(most)));
  };
  auto const is_drawn = [&] { return number_between(random, 0, 3) == 0; };
  std::vector<std::int64_t> list(number_between(random, 0, 1) == 0 ? 1 : stages);
  if (is_drawn()) {
    for (auto& one : list) one = number_between(random, 0, 2);
    made.min_layers = list;
  }
  if (is_drawn()) {
    for (auto& one : list) one = number_between(random, 1, 5);
    made.max_layers = list;
  }
  if (is_drawn()) made.pinned.push_back({at_most(layers - 1), at_most(stages - 1)});
  if (layers > 1 && is_drawn()) made.forbidden_cuts.push_back(1 + at_most(layers - 2));
  if (is_drawn()) {
    auto const first = at_most(layers - 1);
    auto const last = static_cast<std::size_t>(first) + at_most(2);
    made.tied.push_back({first, static_cast<std::uint32_t>(std::min(last, layers - 1))});
  }
  return made;
}

template <class Time>
layers_of<Time> random_layers(omnibal::rng::engine& random, std::int64_t max_bytes) {
  auto const count = static_cast<std::size_t>(number_between(random, 1, 8));
  std::int64_t const max_choices = count < 5 ? 4 : count < 8 ? 2 : 1;
  weight_source<Time> const time(random, max_time<Time>());
  weight_source<std::int64_t> const bytes(random, max_bytes);
  weight_source<std::int64_t> const transient(random, max_bytes);
  bool const has_transients = number_between(random, 0, 1) == 0;
  layers_of<Time> made;
  for (std::size_t l = 0; l != count; ++l) {
    if (l != 0 && number_between(random, 0, 2) == 0) {
      made.push_back(made.back());
      continue;
    }
    auto& layer = made.emplace_back();
    layer.state_bytes = number_between(random, 0, 1) == 0 ? bytes() : 0;
    for (auto left = number_between(random, 1, max_choices); left != 0; --left) {
      layer.choices.push_back({time(), bytes(), has_transients ? transient() : 0});
    }
  }
  return made;
}

template <class Time>
instance<Time> random_instance(omnibal::rng::engine& random) {
  std::int64_t const max_bytes =
      number_between(random, 0, 7) == 0 ? max_int64 : std::int64_t{1} << 56;
  instance<Time> made;
  made.layers = random_layers<Time>(random, max_bytes);
  made.micro_batches = number_between(random, 1, number_between(random, 0, 7) == 0 ? 1 << 20 : 9);
  made.may_be_empty = number_between(random, 0, 4) == 0;
  auto const max_stages = static_cast<std::int64_t>(
      made.may_be_empty ? 3 : std::min<std::size_t>(made.layers.size(), 4));
  made.stages.resize(static_cast<std::size_t>(number_between(random, 1, max_stages)));
  if (number_between(random, 0, 2) == 0) {
    made.constraints = random_constraints(random, made.layers.size(), made.stages.size());
  }
  if (made.may_be_empty) made.constraints.empty = omnibal::empty_stages::allowed;
  weight_source<std::int64_t> const reserve(random, max_bytes);
  bool const is_own = number_between(random, 0, 3) == 0;
  for (std::size_t s = 0; s != made.stages.size(); ++s) {
    auto const after = static_cast<std::int64_t>(made.stages.size() - s);
    // Near what some of the layers take here, or far from it.
    std::int64_t const in_flight =
        is_own ? number_between(random, 1, 20) : std::min(made.micro_batches, after);
    std::int64_t const reserved = number_between(random, 0, 3) == 0 ? reserve() : 0;
    int128 all = int128{reserved} + number_between(random, -1, 1);
    std::int64_t transient = 0;
    for (auto const& layer : made.layers) {
      if (number_between(random, 0, after) == 0) continue;
      auto const& way = layer.choices[omnibal::rng::below(random, layer.choices.size())];
      all += layer.state_bytes + int128{in_flight} * way.bytes;
      transient = std::max(transient, way.transient_bytes);
    }
    auto const most =
        omnibal::detail::saturate_cast<std::int64_t>(std::max<int128>(all + transient, 0));
    made.stages[s] = {
        .memory = number_between(random, 0, 2) != 0 ? most : number_between(random, 0, most),
        .reserve = reserved,
        .in_flight = in_flight};
  }
  return made;
}

/// No step takes longer.
template <class Time>
exact_time<Time> longest_step(instance<Time> const& given) {
  exact_time<Time> sum{};
  for (auto const& layer : given.layers) {
    Time slowest = layer.choices.front().time;
    for (auto const& choice : layer.choices) slowest = std::max(slowest, choice.time);
    sum += static_cast<exact_time<Time>>(slowest);
  }
  return static_cast<exact_time<Time>>(given.micro_batches) * sum;
}

/// Whether sums may leave 64 bits, so that an error is an answer too.
template <class Time>
bool may_overflow(instance<Time> const& given, every_plan<Time> const& best) {
  int128 fixed = 0;
  for (auto const& stage : given.stages) fixed = std::max<int128>(fixed, stage.reserve);
  for (auto const& layer : given.layers) fixed += layer.state_bytes;
  if (fixed > max_int64) return true;
  if (!best.is_feasible && best.missing_bytes > max_int64 - 2) return true;
  return std::integral<Time> && longest_step(given) >= static_cast<exact_time<Time>>(max_int64);
}

template <class Time, class Plan>
std::string fault_of(Plan const& plan, instance<Time> const& given, every_plan<Time> const& best,
                     bool is_exact) {
  if ((plan.status == solve_status::solved) != best.is_feasible) return "feasible or not";
  if (!best.is_feasible) {
    if (!plan.proven) return "infeasible without a proof";
    if (!best.is_legal) return "no error for constraints that contradict each other";
    return plan.missing_bytes != best.missing_bytes ? "other missing bytes" : "";
  }
  auto const& bounds = plan.boundaries;
  if (bounds.size() != given.stages.size() + 1 || bounds.front() != 0 ||
      bounds.back() != given.layers.size() || plan.choices.size() != given.layers.size()) {
    return "no stages";
  }
  exact_time<Time> largest{};
  exact_time<Time> sum{};
  for (std::size_t s = 0; s != given.stages.size(); ++s) {
    if (bounds[s] > bounds[s + 1]) return "boundaries that fall";
    if (bounds[s] != bounds[s + 1] && !given.may_be(s, bounds[s], bounds[s + 1])) {
      return "a stage that the constraints forbid";
    }
    exact_time<Time> time{};
    int128 bytes = given.stages[s].reserve;
    std::int64_t transient = 0;
    for (std::size_t l = bounds[s]; l != bounds[s + 1]; ++l) {
      if (plan.choices[l] >= given.layers[l].choices.size()) return "a choice that is none";
      auto const& way = given.layers[l].choices[plan.choices[l]];
      time += static_cast<exact_time<Time>>(way.time);
      bytes += given.layers[l].state_bytes + given.stages[s].in_flight * int128{way.bytes};
      transient = std::max(transient, way.transient_bytes);
    }
    bytes += transient;
    if (bounds[s] != bounds[s + 1] && bytes > given.stages[s].memory) return "above the memory";
    if (plan.stages[s].bytes != bytes) return "other bytes of a stage";
    largest = std::max(largest, time);
    sum += time;
  }
  auto const step = static_cast<exact_time<Time>>(given.micro_batches - 1) * largest + sum;
  exact_time<Time> rounding{};
  // Times are whole numbers of 2^-59 of the longest step, each off by less than one of these.
  if (!is_exact) {
    auto const terms = static_cast<long double>(given.layers.size()) *
                       static_cast<long double>(given.micro_batches);
    rounding = static_cast<exact_time<Time>>(static_cast<long double>(longest_step(given)) *
                                             (terms * 0x1p-59L + 0x1p-49L));
  }
  if (step < best.step_time) return "a shorter step than any";
  auto const said = static_cast<exact_time<Time>>(plan.step_time);
  if (said > step + rounding || said < step - rounding) return "another time of a step";
  if (static_cast<exact_time<Time>>(plan.lower_bound) > best.step_time + rounding) {
    return "a lower bound above the shortest step";
  }
  if (plan.proven && step > best.step_time + rounding) return "proven, but others are shorter";
  return plan.lower_bound > plan.step_time ? "a lower bound above the step" : "";
}

}  // namespace

TEMPLATE_TEST_CASE("plan_pipeline proves what is true", "[certificate]", TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("plan_pipeline", [](omnibal::rng::engine& random) -> std::string {
    auto const given = random_instance<TestType>(random);
    omnibal::plan_pipeline_options options{
        .micro_batches = static_cast<std::size_t>(given.micro_batches),
        .in_flight = {given.stages, &stage_limits::in_flight},
        .constraints = given.constraints};
    if (number_between(random, 0, 1) == 0) options.max_gap = 0;
    if (number_between(random, 0, 3) == 0) {
      options.rounds = static_cast<std::size_t>(number_between(random, 0, 2));
      options.states = static_cast<std::size_t>(number_between(random, 1, 3));
    }
    omnibal::pipeline_machine const machine{
        .stages = given.stages.size(),
        .memory_bytes = {given.stages, &stage_limits::memory},
        .reserve_bytes = {given.stages, &stage_limits::reserve}};
    bool is_exact = given.micro_batches < 10;
    if constexpr (std::floating_point<TestType>) {
      for (auto const& layer : given.layers) {
        for (auto const& way : layer.choices) {
          is_exact &= way.time == static_cast<TestType>(static_cast<std::int64_t>(way.time));
        }
      }
    }
    every_plan<TestType> const best(given);
    try {
      auto const plan = omnibal::plan_pipeline(given.layers, machine, options);
      return fault_of(plan, given, best, is_exact || std::integral<TestType>);
    } catch (std::overflow_error const& error) {
      return may_overflow(given, best) ? "" : error.what();
    } catch (std::invalid_argument const& error) {
      return best.is_legal ? error.what() : "";
    }
  });
}
