// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Ways of cutting a vision-language model into the stages of a pipeline, and how even these are.

#include "vlm_layers.hpp"

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace examples {

/// OmniBal's anchor: a walk along layers with these costs that ends each stage where its cost is
/// nearest to the mean, the earlier of two such places. Every stage has a layer. Errors:
/// `std::invalid_argument` for no stages or more than layers.
[[nodiscard]] std::vector<std::uint32_t> greedy_cuts(std::span<std::int64_t const> costs,
                                                     std::size_t stages);

/// What the stages of a pipeline run on.
struct pipeline_machine {
  /// Of a device.
  std::int64_t memory_bytes = 0;
  /// Between stages, in one direction.
  std::int64_t link_bytes_per_second = 0;
  std::int64_t micro_batches = 0;
  /// Of the model on each stage.
  std::size_t chunks = 1;
  /// Where several chunks lie: looped, or two in a V.
  omnibal::chunk_placement placement = omnibal::chunk_placement::looped;
};

/// What the layers [first, last) take as a stage of a pipeline with so many stages.
///
/// A stage waits for the activations that it receives at its begin and for the gradients that it
/// receives at its end. With 1F1B the first of p stages has p micro-batches in flight, the next one
/// p - 1, the last one 1.
class stage_figures {
 public:
  stage_figures(std::span<vlm_layer const> layers, std::size_t stages,
                pipeline_machine const& machine);

  [[nodiscard]] std::int64_t nanoseconds(std::size_t stage, std::size_t first,
                                         std::size_t last) const;
  [[nodiscard]] std::int64_t bytes(std::size_t stage, std::size_t first, std::size_t last) const;

  /// No stages are faster: the mean, or the slowest layer, without any transfer.
  [[nodiscard]] std::int64_t lower_bound() const;

 private:
  std::span<vlm_layer const> layers_;
  std::size_t stages_;
  std::int64_t micro_batches_;
  omnibal::stage_sums<std::int64_t> compute_;
  omnibal::stage_sums<std::int64_t> state_;
  omnibal::stage_sums<std::int64_t> kept_;
  /// To send what each layer gives to the next one.
  std::vector<std::int64_t> transfers_;
};

/// What is made even. Each of the last three sees what the one before it sees, and more.
enum class cut_rule {
  parameters,
  count,  ///< of layers
  walk,   ///< time, by one walk from stage to stage
  time,
  traffic,  ///< time, and what stages receive
  memory,   ///< the same where every stage fits its device; with chunks, the estimate of a step
};

struct named_rule {
  cut_rule rule;
  std::string_view name;
};

inline constexpr std::array cut_rules{
    named_rule{cut_rule::parameters, "parameters"}, named_rule{cut_rule::count, "count"},
    named_rule{cut_rule::walk, "greedy walk"},      named_rule{cut_rule::time, "time"},
    named_rule{cut_rule::traffic, "+ traffic"},     named_rule{cut_rule::memory, "+ memory"}};

/// Stages by one of the rules. All are judged alike. A stage with several chunks has the time and
/// the bytes of all of them.
struct stage_plan {
  /// Of the virtual stages; empty where no stages fit.
  std::vector<std::uint32_t> boundaries;
  /// Of the slowest stage, with what it receives, over the lower bound; infinite where none fit.
  double over_bound = 0;
  /// Of the stage that takes most; where none fit, the least that would do on every device.
  std::int64_t largest_bytes = 0;
  /// What a micro-batch sends between stages, in one direction.
  std::int64_t sent_bytes = 0;
  /// The estimate of a step with several chunks, with what the stages receive.
  std::int64_t step_nanoseconds = 0;

  [[nodiscard]] bool is_feasible() const { return !boundaries.empty(); }
};

/// The stages of one number by each of the rules, in the order of `cut_rules`.
struct stage_comparison {
  std::size_t stages = 0;
  std::int64_t lower_bound = 0;
  std::array<stage_plan, cut_rules.size()> plans;

  [[nodiscard]] stage_plan const& operator[](cut_rule rule) const {
    return plans[static_cast<std::size_t>(rule)];
  }
};

/// Cuts by all rules. With several chunks the first five rules cut into virtual stages, and the
/// last one is `plan_pipeline`, which does not see the traffic. The stages then keep the
/// micro-batches of `interleaved_1f1b` or, with two chunks in a V, of `zb_v`. Precondition: 1 <=
/// stages * chunks <= layers, some layer takes time, and a V has two chunks.
[[nodiscard]] stage_comparison compare_cuts(std::span<vlm_layer const> layers, std::size_t stages,
                                            pipeline_machine const& machine);

}  // namespace examples
