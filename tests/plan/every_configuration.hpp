// SPDX-License-Identifier: Apache-2.0
#pragma once

// All configurations of a small space, one after the other, by `predict_step`.

#include <omnibal/cost/machine.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/plan/plan_configuration.hpp>
#include <omnibal/plan/predict_step.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace test {

constexpr double no_seconds = std::numeric_limits<double>::infinity();

/// The best configurations of a space.
struct every_configuration {
  using family_key = std::pair<omnibal::configuration_choice, std::int64_t>;
  using layout_key =
      std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

  double best = no_seconds;
  std::int64_t count = 0;
  std::int64_t min_bytes = std::numeric_limits<std::int64_t>::max();
  std::map<family_key, double> families{};
  std::map<layout_key, double> layouts{};
  /// True if no bound of a configuration is above its seconds.
  bool bounds_hold = true;

  every_configuration(omnibal::language_model const& model, omnibal::machine const& on,
                      omnibal::step_data const& data,
                      omnibal::plan_configuration_options const& options)
      : model_(model), on_(on), data_(data), options_(options) {
    for (std::int64_t t = 1; t <= options.devices; ++t) {
      for (std::int64_t p = 1; p <= options.devices; ++p) {
        for (std::int64_t c = 1; c <= options.devices; ++c) {
          if (options.devices % (t * p * c) == 0) try_experts(t, p, c);
        }
      }
    }
  }

 private:
  [[nodiscard]] std::int64_t units() const { return model_.layers + 2; }

  void try_experts(std::int64_t t, std::int64_t p, std::int64_t c) {
    auto const& layer = model_.layer;
    if (t > on_.devices_per_node || layer.heads % t != 0) return;
    if (layer.experts.routed == 0 && layer.mlp % t != 0) return;
    if (p > units() || (c > 1 && data_.tokens % (2 * c) != 0)) return;
    std::int64_t const most = layer.experts.routed == 0 ? 1 : layer.experts.routed;
    std::int64_t const d = options_.devices / (t * p * c);
    for (std::int64_t e = 1; e <= most; ++e) {
      for (std::int64_t expert_tensor = 0; expert_tensor != 2; ++expert_tensor) {
        if (expert_tensor == 1 && (t == 1 || most == 1)) continue;
        if (most % e != 0 || (expert_tensor == 0 ? d * c : d * c * t) % e != 0) continue;
        if (expert_tensor == 0 && layer.experts.routed != 0 && layer.experts.mlp % t != 0) continue;
        omnibal::parallel_degrees const degrees{
            .tensor = t,
            .sequence = c,
            .data = d,
            .expert = e,
            .norms = t > 1 ? omnibal::norm_regions::split : omnibal::norm_regions::replicated,
            .pipeline = p,
            .expert_tensor = expert_tensor};
        try_batches(degrees);
      }
    }
  }

  void try_batches(omnibal::parallel_degrees degrees) {
    using omnibal::recompute_choice;
    using omnibal::sharded_state;
    std::int64_t const ranks = degrees.data;
    for (std::int64_t b = 1; b * ranks <= data_.sequences; ++b) {
      if (data_.sequences % (b * ranks) != 0) continue;
      for (auto const sharding :
           {sharded_state::nothing, sharded_state::optimizer, sharded_state::parameters}) {
        degrees.sharding = sharding;
        for (auto const choice :
             {recompute_choice::none, recompute_choice::selective, recompute_choice::full}) {
          for (std::int64_t const percent : offload_percents()) {
            omnibal::training_step step{.sequences = b,
                                        .tokens = data_.tokens,
                                        .document_tokens = data_.document_tokens,
                                        .micro_batches = data_.sequences / (b * ranks),
                                        .degrees = degrees,
                                        .recomputed = choice,
                                        .layer_communication = options_.layer_communication,
                                        .gradient_communication = options_.gradient_communication};
            if (percent != 0) {
              step.offload = {static_cast<double>(percent) / 100,
                              options_.offload_bytes_per_second};
            }
            percent_ = percent;
            try_chunks(step);
          }
        }
      }
    }
  }

  [[nodiscard]] std::vector<std::int64_t> offload_percents() const {
    if (options_.offload_bytes_per_second == 0) return {0};
    if (!options_.offload_percent.empty()) return options_.offload_percent;
    return {0, 25, 50, 75, 100};
  }

  void try_chunks(omnibal::training_step step) {
    std::int64_t const p = step.degrees.pipeline;
    for (std::int64_t chunks = 1; p * chunks <= units(); ++chunks) {
      if (chunks > 1 && (p == 1 || step.micro_batches % p != 0)) continue;
      step.chunks = chunks;
      std::vector<double> seconds;
      omnibal::step_pieces<> const pieces;
      std::int64_t const length = data_.document_tokens == 0 ? data_.tokens : data_.document_tokens;
      omnibal::micro_batch_work const work{.documents = omnibal::equal_sequences(
                                               {step.sequences * (data_.tokens / length), length})};
      auto const runs = omnibal::detail::timed_runs("test", model_, step, work, on_, pieces);
      for (auto const& run : runs) {
        seconds.insert(seconds.end(), static_cast<std::size_t>(run.count),
                       run.unit.forward.total() + run.unit.backward.total());
      }
      auto const found =
          omnibal::partition_minimax(seconds, static_cast<std::size_t>(p * chunks)).boundaries;
      for (bool const is_even : {false, true}) {
        step.boundaries = {found.begin(), found.end()};
        if (is_even)
          step.boundaries =
              omnibal::even_boundaries({.layers = model_.layers, .stages = p * chunks});
        omnibal::detail::staged_step const staged("test", step, on_, pieces, runs, step.boundaries);
        double const bound = staged.min_seconds();
        bounds_hold &= bound * (1 - 1e-12) <= predict(step);
      }
    }
  }

  double predict(omnibal::training_step const& step) {
    using omnibal::configuration_choice;
    auto const found = omnibal::predict_step(model_, step, on_);
    double const seconds = found.total();
    std::int64_t const peak = std::ranges::max(found.peak_bytes);
    ++count;
    min_bytes = std::min(min_bytes, peak);
    bool const fits = peak <= options_.memory_bytes - options_.reserve_bytes &&
                      std::ranges::max(found.host_bytes) <= options_.host_memory_bytes;
    auto const& degrees = step.degrees;
    for (family_key const& one :
         {family_key{configuration_choice::tensor_parallel, degrees.tensor},
          family_key{configuration_choice::pipeline_parallel, degrees.pipeline},
          family_key{configuration_choice::context_parallel, degrees.sequence},
          family_key{configuration_choice::expert_parallel, degrees.expert},
          family_key{configuration_choice::schedule, step.chunks > 1 ? 2 : 1},
          family_key{configuration_choice::micro_batch, step.sequences},
          family_key{configuration_choice::recompute, static_cast<std::int64_t>(step.recomputed)},
          family_key{configuration_choice::sharding, static_cast<std::int64_t>(degrees.sharding)},
          family_key{configuration_choice::offload, percent_}}) {
      double& of_family = families.try_emplace(one, no_seconds).first->second;
      if (fits) of_family = std::min(of_family, seconds);
    }
    if (!fits) return seconds;
    best = std::min(best, seconds);
    std::int64_t const tensors = degrees.expert * 2 + degrees.expert_tensor;
    double& of_layout = layouts
                            .try_emplace({degrees.tensor, degrees.pipeline, degrees.sequence,
                                          degrees.data, tensors},
                                         no_seconds)
                            .first->second;
    of_layout = std::min(of_layout, seconds);
    return seconds;
  }

  omnibal::language_model const& model_;
  omnibal::machine const& on_;
  omnibal::step_data const& data_;
  omnibal::plan_configuration_options const& options_;
  /// The offloaded share of the configurations that are tried, in percent.
  std::int64_t percent_ = 0;
};

}  // namespace test
