// SPDX-License-Identifier: Apache-2.0
#include "published_plan.hpp"

#include "vlm_cuts.hpp"

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/two_point_probe.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/partition/neighbors.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_training.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace examples {

namespace {

using plan_type = omnibal::pipeline_plan<std::int64_t>;
using omnibal::lever_result;
using omnibal::training_lever;

constexpr auto keeps_all = static_cast<std::uint32_t>(omnibal::recompute_choice::none);
constexpr auto recomputes = static_cast<std::uint32_t>(omnibal::recompute_choice::full);

/// A plan with these cuts in which all layers recompute.
plan_type cut_at(std::span<std::uint32_t const> boundaries) {
  plan_type plan;
  plan.boundaries.assign(boundaries.begin(), boundaries.end());
  plan.choices.assign(plan.boundaries.back(), recomputes);
  return plan;
}

vlm_data first_steps(vlm_data const& data, std::size_t count) {
  vlm_data result{.batches = {}, .schedule = omnibal::steps(data.schedule.ranks())};
  for (std::size_t step = 0; step != std::min(count, data.schedule.size()); ++step) {
    for (std::size_t rank = 0; rank != data.schedule.ranks(); ++rank) {
      for (std::uint32_t const batch : data.schedule(step, rank)) {
        result.schedule.push(static_cast<std::uint32_t>(result.batches.size()));
        result.batches.push_back(data.batches[batch]);
      }
      result.schedule.close();
    }
  }
  return result;
}

/// What a stage has left of its memory at its peak.
std::vector<std::int64_t> free_bytes(omnibal::training_estimate const& estimate,
                                     omnibal::pipeline_machine const& machine) {
  std::vector<std::int64_t> result;
  for (std::int64_t const peak : estimate.peak_bytes) {
    result.push_back(machine.memory_bytes.values()[0] - peak);
  }
  return result;
}

bool fits(std::vector<std::int64_t> const& free) {
  return std::ranges::all_of(free, [](std::int64_t bytes) { return bytes >= 0; });
}

/// What the stage that lacks most lacks.
lever_result lacking(std::vector<std::int64_t> const& free) {
  auto const least = std::ranges::min_element(free);
  lever_result result;
  result.plan.status = omnibal::solve_status::infeasible;
  result.plan.stage = static_cast<std::uint32_t>(least - free.begin());
  result.plan.missing_bytes = -*least;
  return result;
}

/// A scenario with the data that the method has grouped.
struct grouped_training {
  planned_scenario const& scenario;
  vlm_assumptions const& assumed;
  omnibal::pipeline_machine const& machine;

  [[nodiscard]] omnibal::training_estimate simulate(plan_type const& plan) const {
    return scenario.simulate(plan, scenario.plan.balanced_data);
  }
  /// How many micro-batches keep their activations on a stage at once.
  [[nodiscard]] std::int64_t in_flight(std::size_t stage) const {
    return static_cast<std::int64_t>(std::min(assumed.micro_batches, assumed.stages - stage));
  }

  /// Adds what a plan says of its stages.
  [[nodiscard]] lever_result complete(plan_type plan) const {
    lever_result result{std::move(plan), {}};
    result.estimate = simulate(result.plan);
    auto const layers = scenario.layers_for(scenario.plan.balanced_data);
    for (std::size_t s = 0; s != assumed.stages; ++s) {
      omnibal::planned_stage<std::int64_t> stage{.bytes = result.estimate.peak_bytes[s],
                                                 .in_flight = in_flight(s)};
      for (std::size_t l = result.plan.boundaries[s]; l != result.plan.boundaries[s + 1]; ++l) {
        stage.time += layers[l].choices[result.plan.choices[l]].time;
      }
      result.plan.stages.push_back(stage);
    }
    result.plan.step_time = omnibal::estimate_makespan(result.plan.stages, assumed.micro_batches,
                                                       &omnibal::planned_stage<std::int64_t>::time);
    return result;
  }
};

/// The memory lever: which layers of the towers keep everything, with cuts that are given.
class adaptive_recompute {
 public:
  adaptive_recompute(grouped_training const& training, plan_type cuts, layer_means const& means)
      : training_(training), means_(means), plan_(std::move(cuts)) {
    auto const kinds = layer_kinds(training.scenario.cost.model);
    stages_.resize(training.assumed.stages);
    for (std::size_t s = 0; s != stages_.size(); ++s) {
      for (std::uint32_t l = plan_.boundaries[s]; l != plan_.boundaries[s + 1]; ++l) {
        auto const kind = std::ranges::find(tower_kinds, kinds[l]);
        if (kind == tower_kinds.end()) {
          others_.push_back(l);
        } else {
          stages_[s][static_cast<std::size_t>(kind - tower_kinds.begin())].push_back(l);
        }
      }
    }
  }

  [[nodiscard]] lever_result run(memory_readings& readings) {
    set(others_, keeps_all);
    auto free = free_bytes(training_.simulate(plan_), training_.machine);
    if (!fits(free)) {
      set(others_, recomputes);
      free = free_bytes(training_.simulate(plan_), training_.machine);
      if (!fits(free)) return lacking(free);
    }
    readings.free_bytes = std::move(free);
    read_again(readings);
    for (std::size_t s = 0; s != stages_.size(); ++s) fill(s, readings);
    while (take_back(readings)) {
    }
    return training_.complete(std::move(plan_));
  }

 private:
  using layer_list = std::vector<std::uint32_t>;
  using kinds_of_stage = std::array<layer_list, tower_kinds.size()>;

  void set(std::span<std::uint32_t const> layers, std::uint32_t choice) {
    for (std::uint32_t const layer : layers) plan_.choices[layer] = choice;
  }

  /// The kind of which each stage has most layers, but every kind has a stage where there are
  /// enough of them: a reading is about one kind.
  [[nodiscard]] std::vector<std::size_t> kinds_to_read() const {
    std::vector<std::size_t> result;
    for (kinds_of_stage const& stage : stages_) {
      result.push_back(stage[1].size() > stage[0].size() ? 1 : 0);
    }
    for (std::size_t kind = 0; kind != tower_kinds.size(); ++kind) {
      if (std::ranges::count(result, kind) != 0 || result.size() < tower_kinds.size()) continue;
      auto const most = std::ranges::max_element(
          stages_, {}, [&](kinds_of_stage const& stage) { return stage[kind].size(); });
      result[static_cast<std::size_t>(most - stages_.begin())] = kind;
    }
    return result;
  }

  /// Reads the memory with one layer of each stage keeping everything.
  void read_again(memory_readings& readings) {
    readings.kinds = kinds_to_read();
    auto const layers_of = [&](std::size_t s) -> layer_list const& {
      return stages_[s][readings.kinds[s]];
    };
    auto const first_of = [&](std::size_t s) {
      return std::span(layers_of(s)).first(std::min<std::size_t>(layers_of(s).size(), 1));
    };
    for (std::size_t s = 0; s != stages_.size(); ++s) set(first_of(s), keeps_all);
    readings.free_with_one = free_bytes(training_.simulate(plan_), training_.machine);
    for (std::size_t s = 0; s != stages_.size(); ++s) {
      set(first_of(s), recomputes);
      auto const all = static_cast<std::int64_t>(layers_of(s).size());
      if (all == 0) continue;
      auto& bytes = readings.layer_bytes[readings.kinds[s]];
      std::int64_t const here = layer_bytes(s, all, readings);
      bytes = std::max(bytes.value_or(0), here);
    }
  }

  /// Of a micro-batch in flight, rounded up.
  [[nodiscard]] std::int64_t layer_bytes(std::size_t s, std::int64_t layers,
                                         memory_readings const& readings) const {
    if (readings.free_with_one[s] >= readings.free_bytes[s]) return 0;
    auto const line = omnibal::two_point_probe(
        {.checkpointed_layers = layers - 1, .free_bytes = readings.free_with_one[s]},
        {.checkpointed_layers = layers, .free_bytes = readings.free_bytes[s]});
    return static_cast<std::int64_t>(
        std::ceil(line.bytes_per_layer() / static_cast<double>(training_.in_flight(s))));
  }

  /// How many layers fit in so many bytes, for all micro-batches in flight.
  [[nodiscard]] std::size_t fitting(std::size_t s, std::size_t kind, std::int64_t bytes,
                                    memory_readings const& readings) const {
    auto const& of_layer = readings.layer_bytes[kind];
    if (!of_layer) return 0;
    if (*of_layer == 0) return stages_[s][kind].size();
    auto const most = static_cast<std::size_t>(bytes / (*of_layer * training_.in_flight(s)));
    return std::min(stages_[s][kind].size(), most);
  }

  /// What so many layers of a kind no longer recompute.
  [[nodiscard]] std::int64_t saved(std::size_t s, std::size_t kind, std::size_t count) const {
    if (count == 0) return 0;
    return static_cast<std::int64_t>(count) * means_.forward_nanoseconds[stages_[s][kind][0]];
  }

  /// Lets the layers of a stage keep everything that by the readings have room and save most.
  void fill(std::size_t s, memory_readings const& readings) {
    std::int64_t const free = readings.free_bytes[s];
    std::array<std::size_t, 2> best{};
    std::int64_t max_saved = -1;
    for (std::size_t vision = 0; vision <= fitting(s, 0, free, readings); ++vision) {
      std::int64_t const taken = static_cast<std::int64_t>(vision) * training_.in_flight(s) *
                                 readings.layer_bytes[0].value_or(0);
      std::size_t const language = fitting(s, 1, free - taken, readings);
      std::int64_t const both = saved(s, 0, vision) + saved(s, 1, language);
      if (both <= max_saved) continue;
      max_saved = both;
      best = {vision, language};
    }
    for (std::size_t kind = 0; kind != best.size(); ++kind) {
      set(std::span(stages_[s][kind]).first(best[kind]), keeps_all);
    }
  }

  /// Where a stage exceeds its memory after all, its last layer that keeps everything recomputes
  /// again; false where all stages fit.
  [[nodiscard]] bool take_back(memory_readings& readings) {
    auto const free = free_bytes(training_.simulate(plan_), training_.machine);
    std::size_t const before = readings.taken_back;
    for (std::size_t s = 0; s != free.size(); ++s) {
      if (free[s] >= 0) continue;
      for (std::uint32_t l = plan_.boundaries[s + 1]; l-- != plan_.boundaries[s];) {
        bool const is_other = std::ranges::find(others_, l) != others_.end();
        if (is_other || plan_.choices[l] != keeps_all) continue;
        plan_.choices[l] = recomputes;
        ++readings.taken_back;
        break;
      }
    }
    return readings.taken_back != before;
  }

  grouped_training const& training_;
  layer_means const& means_;
  plan_type plan_;
  std::vector<kinds_of_stage> stages_;
  layer_list others_;
};

}  // namespace

omnibal::packing published_groups(std::span<sample const> samples,
                                  omnibal::resources<2> const& capacity,
                                  published_method const& method, std::uint64_t seed) {
  std::int64_t const tokens = std::max<std::int64_t>(capacity[1] - method.token_slack, 1);
  omnibal::reaches_any const keep{omnibal::resources<2>{capacity[0], tokens}};
  return omnibal::isf(samples, omnibal::demand_of(&sample::images, &sample::tokens), capacity,
                      {.rounds = method.rounds}, keep, omnibal::rng::fisher_yates{seed});
}

omnibal::steps dealt_at_random(std::size_t groups, std::size_t cells, std::uint64_t seed) {
  std::vector<std::uint32_t> order(groups);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  omnibal::rng::fisher_yates{seed}(std::span(order), 0);
  return omnibal::make_steps(order, cells);
}

layer_means means_of(vlm_data const& data, vlm_cost const& cost,
                     omnibal::device_model const& device) {
  layer_means result;
  for (vlm_batch const& batch : data.batches) {
    auto const costs = cost(batch);
    result.forward_nanoseconds.resize(costs.size());
    result.sent_bytes.resize(costs.size());
    for (std::size_t l = 0; l != costs.size(); ++l) {
      result.forward_nanoseconds[l] += device(costs[l].forward);
      result.sent_bytes[l] += costs[l].cut_bytes;
    }
  }
  auto const count = static_cast<std::int64_t>(data.batches.size());
  for (std::int64_t& sum : result.forward_nanoseconds) sum /= count;
  for (std::int64_t& sum : result.sent_bytes) sum /= count;
  return result;
}

std::int64_t sent_bytes(layer_means const& means, std::span<std::uint32_t const> boundaries) {
  std::int64_t result = 0;
  for (std::size_t s = 1; s + 1 < boundaries.size(); ++s) {
    result += means.sent_bytes[boundaries[s] - 1];
  }
  return result;
}

published_plan plan_as_published(planned_scenario const& library, published_method const& method,
                                 std::uint64_t seed, cut_seconds const& measure) {
  published_plan result;
  result.scenario = library;
  planned_scenario& scenario = result.scenario;
  auto& levers = scenario.plan.levers;
  auto const& assumed = scenario.assumed;

  auto const packed =
      published_groups(scenario.samples.samples, scenario.samples.capacity, method, seed);
  result.groups = packed.groups.size();
  result.below_keep = packed.report.below_keep;
  vlm_data& data = scenario.plan.balanced_data;
  data = grouped_batches(
      scenario.samples, packed.groups,
      dealt_at_random(packed.groups.size(), assumed.data_ranks * assumed.micro_batches, seed),
      assumed);
  grouped_training const training{scenario, assumed, scenario.machine};
  levers[1].plan = levers[0].plan;
  levers[1].estimate = training.simulate(levers[1].plan);

  result.means = means_of(data, scenario.cost, scenario.machine.device);
  result.anchor = greedy_cuts(result.means.forward_nanoseconds, assumed.stages);
  vlm_data const some = first_steps(data, method.steps);
  auto const simulated = [&](std::span<std::uint32_t const> boundaries) {
    auto const estimate = scenario.simulate(cut_at(boundaries), some);
    if (!fits(free_bytes(estimate, scenario.machine))) {
      return std::numeric_limits<double>::infinity();
    }
    return static_cast<double>(estimate.nanoseconds) * 1e-9 / static_cast<double>(estimate.steps);
  };
  auto const candidates = omnibal::neighbors(result.anchor, method.radius);
  omnibal::cut_score const score(result.means.forward_nanoseconds, result.means.sent_bytes,
                                 assumed.stages, method.weights);
  result.search = omnibal::search_cuts(candidates, score, method.candidates,
                                       measure ? measure : cut_seconds(simulated));
  auto const& fastest = result.search.candidates[result.search.best];
  if (measure && std::isinf(fastest.measured)) {
    throw std::runtime_error("none of the " + std::to_string(result.search.measurements) +
                             " cuts that were measured can run");
  }
  auto const cuts = cut_at(fastest.boundaries);
  auto const free = free_bytes(training.simulate(cuts), scenario.machine);
  if (!fits(free)) {
    levers[2] = levers[3] = lacking(free);
    return result;
  }
  levers[2] = training.complete(cuts);
  levers[3] = adaptive_recompute(training, cuts, result.means).run(result.readings);
  return result;
}

}  // namespace examples
