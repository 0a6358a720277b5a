#include "certificate.hpp"

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

using omnibal::plan_status;
using omnibal::detail::int128;
using test::number_between;
using test::weight_source;

template <class Time>
using layers_of = std::vector<omnibal::plan_layer<Time>>;

/// Sums of times without rounding: of integers, and of floating-point numbers that are integers.
template <class Time>
using exact_time = std::conditional_t<std::floating_point<Time>, long double, int128>;

constexpr int128 no_bytes = static_cast<int128>(1) << 126;

/// The largest time of which the step of eight layers and nine micro-batches is exact.
template <class Time>
constexpr std::int64_t most_time() {
  if constexpr (std::same_as<Time, float>) return std::int64_t{1} << 24;
  if constexpr (std::same_as<Time, double>) return std::int64_t{1} << 46;
  if constexpr (std::same_as<Time, std::int64_t>) return std::numeric_limits<Time>::max() / 128;
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
};

/// Layers as a stage: the least time within its memory, and the fewest bytes.
template <class Time>
struct least_of_stage {
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
  /// The least that is missing on the worst stage.
  int128 missing_bytes = no_bytes;

  [[nodiscard]] least_of_stage<Time> solve(std::size_t stage, std::size_t first,
                                           std::size_t last) const {
    least_of_stage<Time> result;
    if (first == last) return {true, {}, 0};
    int128 fixed = given_.stages[stage].reserve;
    for (std::size_t l = first; l != last; ++l) fixed += given_.layers[l].state_bytes;
    choose(given_.stages[stage], first, last, fixed, 0, 0, {}, result);
    return result;
  }

 private:
  void choose(stage_limits const& stage, std::size_t layer, std::size_t last, int128 fixed,
              int128 kept, std::int64_t transient, exact_time<Time> time,
              least_of_stage<Time>& best) const {
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
      missing_bytes = std::min(missing_bytes, missing);
      if (missing != 0) return;
      auto const step = static_cast<exact_time<Time>>(given_.micro_batches - 1) * largest + sum;
      step_time = is_feasible ? std::min(step_time, step) : step;
      is_feasible = true;
      return;
    }
    for (std::size_t last = given_.may_be_empty ? first : first + 1; last <= given_.layers.size();
         ++last) {
      auto const least = solve(stage, first, last);
      int128 const lacks =
          first == last ? 0 : std::max<int128>(0, least.bytes - given_.stages[stage].memory);
      cut(stage + 1, last, std::max(largest, least.time), sum + least.time,
          std::max(missing, lacks));
    }
  }

  instance<Time> const& given_;
};

template <class Time>
instance<Time> random_instance(omnibal::rng::engine& random) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 56;
  instance<Time> made;
  made.micro_batches = number_between(random, 1, 9);
  made.may_be_empty = number_between(random, 0, 4) == 0;
  auto const count = static_cast<std::size_t>(number_between(random, 1, 8));
  std::int64_t const most_choices = count < 5 ? 3 : count < 8 ? 2 : 1;
  weight_source<Time> const time(random, most_time<Time>());
  weight_source<std::int64_t> const bytes(random, most_bytes);
  bool const has_transients = number_between(random, 0, 1) == 0;
  for (std::size_t l = 0; l != count; ++l) {
    if (l != 0 && number_between(random, 0, 2) == 0) {
      made.layers.push_back(made.layers.back());
      continue;
    }
    auto& layer = made.layers.emplace_back();
    layer.state_bytes = number_between(random, 0, 1) == 0 ? bytes() : 0;
    for (auto left = number_between(random, 1, most_choices); left != 0; --left) {
      layer.choices.push_back({time(), bytes(), has_transients ? bytes() : 0});
    }
  }
  auto const most_stages =
      static_cast<std::int64_t>(made.may_be_empty ? 3 : std::min<std::size_t>(count, 4));
  made.stages.resize(static_cast<std::size_t>(number_between(random, 1, most_stages)));
  std::int64_t all = 0;
  for (auto const& layer : made.layers) {
    all += layer.state_bytes + layer.choices.front().bytes + layer.choices.front().transient_bytes;
  }
  for (std::size_t s = 0; s != made.stages.size(); ++s) {
    auto const after = static_cast<std::int64_t>(made.stages.size() - s);
    made.stages[s] = {
        .memory = number_between(random, 0, 2) == 0 ? all : number_between(random, 0, all),
        .reserve = number_between(random, 0, 3) == 0 ? bytes() : 0,
        .in_flight = std::min(made.micro_batches, after)};
  }
  return made;
}

template <class Time, class Plan>
std::string fault_of(Plan const& plan, instance<Time> const& given, every_plan<Time> const& best,
                     bool is_exact) {
  if ((plan.status == plan_status::ok) != best.is_feasible) return "feasible or not";
  if (!best.is_feasible) {
    if (!plan.proven) return "infeasible without a proof";
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
  // Where sums are rounded they are off by a few units in the last place of the whole.
  if (!is_exact) rounding = static_cast<exact_time<Time>>(1e-13L * static_cast<long double>(step));
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
    omnibal::plan_options options{.micro_batches = static_cast<std::size_t>(given.micro_batches)};
    if (number_between(random, 0, 1) == 0) options.tolerance = 0;
    if (number_between(random, 0, 3) == 0) {
      options.rounds = static_cast<std::size_t>(number_between(random, 0, 2));
      options.states = static_cast<std::size_t>(number_between(random, 1, 3));
    }
    if (given.may_be_empty) options.constraints.empty = omnibal::empty_stages::allowed;
    omnibal::pipeline_machine const machine{
        .stages = given.stages.size(),
        .memory_bytes = {given.stages, &stage_limits::memory},
        .reserve_bytes = {given.stages, &stage_limits::reserve}};
    bool is_exact = true;
    if constexpr (std::floating_point<TestType>) {
      for (auto const& layer : given.layers) {
        for (auto const& way : layer.choices) {
          is_exact &= way.time == static_cast<TestType>(static_cast<std::int64_t>(way.time));
        }
      }
    }
    every_plan<TestType> const best(given);
    return fault_of(omnibal::plan_pipeline(given.layers, machine, options), given, best, is_exact);
  });
}
