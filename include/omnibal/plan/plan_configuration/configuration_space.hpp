// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The branches of a search for a configuration: degrees, micro-batch, recomputation, offload and
/// sharding.

#include <omnibal/check.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/machine.hpp>
#include <omnibal/plan/configuration_plan.hpp>
#include <omnibal/plan/detail/staged_step.hpp>
#include <omnibal/plan/detail/timed_runs.hpp>
#include <omnibal/plan/plan_configuration/batch_choices.hpp>
#include <omnibal/plan/training_step.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <vector>

namespace omnibal::inline v0::detail {

/// A branch of the search: all choices of a configuration except its chunks and its cuts.
struct configuration_branch {
  parallel_degrees degrees{};
  std::size_t batch = 0;
  std::int64_t micro_batches = 1;
  recompute_choice recomputed = recompute_choice::none;
  std::int64_t offload_percent = 0;
  /// The index of the degrees among all distinct degrees.
  std::size_t layout = 0;
};

/// Returns the allowed values of a choice: `listed`, or `all` if `listed` is empty.
template <class T>
[[nodiscard]] std::vector<T> listed_or(std::vector<T> const& listed, std::initializer_list<T> all) {
  return listed.empty() ? std::vector<T>(all) : listed;
}

/// Enumerates the branches of a search.
template <layered_model Model, class Pieces>
class configuration_space {
 public:
  configuration_space(std::string_view function, Model const& model, machine const& on,
                      step_data const& data, plan_configuration_options const& options,
                      Pieces const& pieces)
      : function_(function),
        model_(model),
        on_(on),
        data_(data),
        options_(options),
        pieces_(pieces) {
    check();
  }

  /// Returns the step of a branch, without chunks and boundaries.
  [[nodiscard]] training_step step_of(configuration_branch const& branch,
                                      batch_choice const& batch) const {
    training_step step{.micro_batches = branch.micro_batches,
                       .degrees = branch.degrees,
                       .recomputed = branch.recomputed,
                       .offload = offload_of(branch.offload_percent),
                       .precision = options_.precision,
                       .bytes = options_.bytes,
                       .reduced_bytes = options_.reduced_bytes,
                       .gathered_bytes = options_.gathered_bytes,
                       .bucket_bytes = options_.bucket_bytes,
                       .layer_communication = options_.layer_communication,
                       .gradient_communication = options_.gradient_communication};
    if (batch.token_capacity != 0) {
      step.work = batch.work;
    } else {
      step.sequences = batch.sequences;
      step.tokens = data_.tokens;
      step.document_tokens = data_.document_tokens;
    }
    return step;
  }

  /// Returns the units of a branch, with the times of the mean micro-batch and the bytes of the
  /// largest micro-batch.
  [[nodiscard]] std::vector<timed_run> runs_of(training_step const& step,
                                               batch_choice const& batch) const {
    auto runs = timed_runs(function_, model_, step, batch.work, on_, pieces_);
    if (batch.largest == batch.work) return runs;
    auto const largest = timed_runs(function_, model_, step, batch.largest, on_, pieces_);
    for (std::size_t i = 0; i != runs.size(); ++i) {
      runs[i].unit.kept_bytes = largest[i].unit.kept_bytes;
      runs[i].unit.host_bytes = largest[i].unit.host_bytes;
      runs[i].unit.transient_bytes = largest[i].unit.transient_bytes;
    }
    return runs;
  }

  /// Returns the stages of a step with these boundaries of virtual stages.
  [[nodiscard]] staged_step stages_of(training_step const& step, std::vector<timed_run> const& runs,
                                      std::vector<std::int64_t> const& boundaries) const {
    return staged_step(function_, step, on_, pieces_, runs, boundaries);
  }

  /// Returns all branches in a fixed order.
  [[nodiscard]] std::vector<configuration_branch> branches(
      std::span<batch_choice const> batches) const {
    std::vector<configuration_branch> result;
    std::size_t layouts = 0;
    auto const units = units_of(batches.front());
    for (parallel_degrees const& sharded : model_degrees(batches.front())) {
      std::int64_t const left = options_.devices / sharded.tensor;
      for (std::int64_t const pipeline : divisors_of(left)) {
        if (pipeline > units || !is_listed(options_.pipeline_parallel, pipeline)) continue;
        for (std::int64_t const sequence : divisors_of(left / pipeline)) {
          if (!is_listed(options_.context_parallel, sequence)) continue;
          parallel_degrees degrees = sharded;
          degrees.pipeline = pipeline;
          degrees.sequence = sequence;
          degrees.data = left / pipeline / sequence;
          if (!can_share_experts(degrees)) continue;
          add(degrees, batches, layouts++, result);
        }
      }
    }
    return result;
  }

  /// Returns the numbers of chunks that a stage of a branch may have.
  [[nodiscard]] std::vector<std::int64_t> chunks_of(configuration_branch const& branch,
                                                    std::int64_t units) const {
    std::vector<std::int64_t> result;
    std::int64_t const stages = branch.degrees.pipeline;
    bool const interleaves = stages > 1 && branch.micro_batches % stages == 0;
    for (std::int64_t chunks = 1; chunks <= (interleaves ? units / stages : 1); ++chunks) {
      if (is_listed(options_.virtual_pipeline, chunks)) result.push_back(chunks);
    }
    return result;
  }

 private:
  [[nodiscard]] activation_offload offload_of(std::int64_t percent) const {
    if (percent == 0) return {};
    return {static_cast<double>(percent) / 100, options_.offload_bytes_per_second};
  }

  [[nodiscard]] static bool is_listed(std::vector<std::int64_t> const& list, std::int64_t value) {
    return list.empty() || std::ranges::find(list, value) != list.end();
  }

  [[nodiscard]] static std::vector<std::uint32_t> divisors_of(std::int64_t number) {
    return divisors(static_cast<std::uint32_t>(number));
  }

  void check() const {
    constexpr std::int64_t max_number = std::int64_t{1} << 30;
    check_machine(function_, on_);
    check_between(function_, "options.devices", options_.devices, 1, max_number);
    check_between(function_, "options.memory_bytes", options_.memory_bytes, 1,
                  std::numeric_limits<std::int64_t>::max());
    check_between(function_, "options.reserve_bytes", options_.reserve_bytes, 0,
                  options_.memory_bytes);
    check_between(function_, "options.reduced_bytes", options_.reduced_bytes, 1, 64);
    check_between(function_, "options.gathered_bytes", options_.gathered_bytes, 1, 64);
    check_between(function_, "options.bucket_bytes", options_.bucket_bytes, 1,
                  std::int64_t{1} << 50);
    check_between(function_, "options.predictions", options_.predictions, 1,
                  std::numeric_limits<std::int64_t>::max());
    for (std::int64_t const chunks : options_.virtual_pipeline) {
      check_between(function_, "options.virtual_pipeline", chunks, 1, max_number);
    }
    check_offload();
    auto const check_degrees = [&](std::string_view name, std::vector<std::int64_t> const& values) {
      for (std::int64_t const value : values) {
        check_between(function_, name, value, 1, max_number);
        check_multiple(function_, "options.devices", options_.devices, name, value);
      }
    };
    check_degrees("options.tensor_parallel", options_.tensor_parallel);
    check_degrees("options.pipeline_parallel", options_.pipeline_parallel);
    check_degrees("options.context_parallel", options_.context_parallel);
    check_degrees("options.expert_parallel", options_.expert_parallel);
  }

  void check_offload() const {
    double const rate = options_.offload_bytes_per_second;
    if (!(rate >= 0)) {
      throw_invalid(function_, "options.offload_bytes_per_second is ", rate,
                    ", must not be negative");
    }
    check_between(function_, "options.host_memory_bytes", options_.host_memory_bytes, 0,
                  std::numeric_limits<std::int64_t>::max());
    for (std::int64_t const percent : options_.offload_percent) {
      check_between(function_, "options.offload_percent", percent, 0, 100);
      if (percent == 0 || rate > 0) continue;
      throw_invalid(function_, "options.offload_percent has ", percent,
                    ", must be 0 if options.offload_bytes_per_second is 0");
    }
  }

  [[nodiscard]] std::vector<std::int64_t> offload_percents() const {
    if (options_.offload_bytes_per_second == 0) return {0};
    return listed_or<std::int64_t>(options_.offload_percent, {0, 25, 50, 75, 100});
  }

  [[nodiscard]] std::int64_t units_of(batch_choice const& batch) const {
    std::int64_t const units = unit_count(runs_of(training_step{}, batch));
    check_between(function_, "the layers of the model", units, 3, std::int64_t{1} << 20);
    return units;
  }

  /// Returns true if the model accepts tensor and expert degrees. A layer rejects a degree by an
  /// exception. The caller has already timed the model with degrees of one, so errors of the model
  /// itself were reported then. An exception that appears only at some degrees excludes these
  /// degrees.
  [[nodiscard]] bool accepts(parallel_degrees const& degrees, batch_choice const& batch) const {
    training_step step{.degrees = degrees};
    step.degrees.data = degrees.expert;
    try {
      static_cast<void>(runs_of(step, batch));
      return true;
    } catch (std::invalid_argument const&) {
      return false;
    }
  }

  /// Returns the tensor and expert degrees that the model accepts, with each allowed division of
  /// the norms.
  [[nodiscard]] std::vector<parallel_degrees> model_degrees(batch_choice const& batch) const {
    std::vector<parallel_degrees> result;
    bool has_experts = false;
    for (auto const& run : runs_of(training_step{}, batch)) {
      has_experts = has_experts || run.unit.expert_parameters > 0;
    }
    for (std::int64_t const tensor : divisors_of(options_.devices)) {
      if (options_.tensor_parallel.empty() ? tensor > on_.devices_per_node
                                           : !is_listed(options_.tensor_parallel, tensor)) {
        continue;
      }
      auto const norms = tensor == 1 ? std::vector{norm_regions::replicated}
                                     : listed_or(options_.norms, {norm_regions::split});
      for (std::int64_t const expert : divisors_of(has_experts ? options_.devices : 1)) {
        if (!is_listed(options_.expert_parallel, expert)) continue;
        for (std::int64_t const expert_tensor : {0, 1}) {
          if (expert_tensor == 1 && (tensor == 1 || !has_experts)) continue;
          parallel_degrees degrees{
              .tensor = tensor, .expert = expert, .expert_tensor = expert_tensor};
          if (!accepts(degrees, batch)) continue;
          for (norm_regions const norm : norms) {
            degrees.norms = norm;
            result.push_back(degrees);
          }
        }
      }
    }
    return result;
  }

  /// Returns true if the ranks can be divided into groups that share the experts.
  [[nodiscard]] static bool can_share_experts(parallel_degrees const& degrees) {
    std::int64_t const ranks = degrees.data * degrees.sequence;
    if (degrees.expert_tensor == 0) return ranks % degrees.expert == 0;
    return ranks * degrees.tensor % (degrees.expert * degrees.expert_tensor) == 0;
  }

  void add(parallel_degrees degrees, std::span<batch_choice const> batches, std::size_t layout,
           std::vector<configuration_branch>& result) const {
    auto const shardings =
        listed_or(options_.sharding,
                  {sharded_state::nothing, sharded_state::optimizer, sharded_state::parameters});
    auto const choices =
        listed_or(options_.recompute,
                  {recompute_choice::none, recompute_choice::selective, recompute_choice::full});
    auto const percents = offload_percents();
    for (std::size_t b = 0; b != batches.size(); ++b) {
      batch_choice const& batch = batches[b];
      if (batch.is_exact && batch.micro_batches % degrees.data != 0) continue;
      if (degrees.sequence > 1 && batch.shared_tokens % (2 * degrees.sequence) != 0) continue;
      for (sharded_state const sharding : shardings) {
        degrees.sharding = sharding;
        for (recompute_choice const choice : choices) {
          for (std::int64_t const percent : percents) {
            result.push_back(
                {.degrees = degrees,
                 .batch = b,
                 .micro_batches = (batch.micro_batches + degrees.data - 1) / degrees.data,
                 .recomputed = choice,
                 .offload_percent = percent,
                 .layout = layout});
          }
        }
      }
    }
  }

  std::string_view function_;
  Model const& model_;
  machine const& on_;
  step_data const& data_;
  plan_configuration_options const& options_;
  Pieces const& pieces_;
};

}  // namespace omnibal::inline v0::detail
