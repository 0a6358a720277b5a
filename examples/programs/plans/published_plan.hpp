// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// OmniBal as published, without what this library adds: groups by sampling and filtering, cuts
/// near those of a greedy walk, layers that no longer recompute. Source: Yao et al., ICML 2025.

#include "vlm_layers.hpp"
#include "vlm_scenarios.hpp"
#include "vlm_training.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/partition/search_cuts.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/steps.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace examples {

/// What the paper and its code leave to choose, with their values.
struct published_method {
  /// Of sampling and filtering.
  std::size_t rounds = 50;
  /// A group is kept that has all images of the capacity, or its tokens but for so many.
  std::int64_t token_slack = 128;
  /// By how many layers the cuts of the anchor may move.
  std::size_t radius = 1;
  /// How many of the best scores are measured, and for how many steps.
  std::size_t candidates = 10;
  std::size_t steps = 20;
  omnibal::cut_weights weights{};
};

/// Groups by sampling and filtering.
[[nodiscard]] omnibal::packing published_groups(std::span<sample const> samples,
                                                omnibal::resources<2> const& capacity,
                                                published_method const& method, std::uint64_t seed);

/// Groups in random order, one for each of the cells of a step.
[[nodiscard]] omnibal::steps dealt_at_random(std::size_t groups, std::size_t cells,
                                             std::uint64_t seed);

/// What each layer takes forward and sends to the next, in the mean of the micro-batches.
struct layer_means {
  std::vector<std::int64_t> forward_nanoseconds;
  std::vector<std::int64_t> sent_bytes;
};

[[nodiscard]] layer_means means_of(vlm_data const& data, vlm_cost const& cost,
                                   omnibal::device_model const& device);

/// What a micro-batch sends through all cuts in one direction, in the mean.
[[nodiscard]] std::int64_t sent_bytes(layer_means const& means,
                                      std::span<std::uint32_t const> boundaries);

/// The memory that stages have left with all layers recomputed, and with one of them keeping
/// everything.
struct memory_readings {
  /// Of each stage: the kind of the layer that keeps everything, a number of `tower_kinds`.
  std::vector<std::size_t> kinds;
  std::vector<std::int64_t> free_bytes;
  std::vector<std::int64_t> free_with_one;
  /// By kind: what a layer that keeps everything takes more for each micro-batch in flight, the
  /// most that a stage says; nothing where no reading tells.
  std::array<std::optional<std::int64_t>, tower_kinds.size()> layer_bytes;
  /// Layers that recompute again, as the readings promised more than there is.
  std::size_t taken_back = 0;
};

struct published_plan {
  /// The levers as published; the first, and the data before them, are those of the library's plan.
  planned_scenario scenario;
  std::size_t groups = 0;
  /// Those that the keep rule refuses.
  std::size_t below_keep = 0;
  layer_means means;
  std::vector<std::uint32_t> anchor;
  /// Seconds of a step with the candidates.
  omnibal::search_result<double, double> search;
  /// Empty where the cuts do not fit with all layers recomputed.
  memory_readings readings;
};

/// A functor from the boundaries of stages to the seconds of a step, infinite where they cannot
/// run.
using cut_seconds = std::function<double(std::span<std::uint32_t const>)>;

/// The method for the samples, the model and the machine of a plan. Without `measure` candidates
/// are simulated with all layers recomputed; those that exceed the memory cannot run.
///
/// As trainers do, layers of the towers recompute or keep everything; the others keep everything
/// in the last lever where there is room. Errors: `std::runtime_error` where `measure` gives
/// infinity for all candidates, and what it throws.
[[nodiscard]] published_plan plan_as_published(planned_scenario const& library,
                                               published_method const& method, std::uint64_t seed,
                                               cut_seconds const& measure = {});

}  // namespace examples
