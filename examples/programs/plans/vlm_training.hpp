// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Micro-batches of a vision-language model, at random with padding and packed without, and what
/// they cost.

#include "dataset.hpp"
#include "measured_layers.hpp"
#include "model_file.hpp"
#include "vlm_assumptions.hpp"

#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/plan/simulate_training.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/steps.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace examples {

/// A micro-batch: what the model computes, and for which of the samples that fit.
struct vlm_batch {
  omnibal::micro_batch_work work;
  std::vector<std::uint32_t> samples;
};

/// As `omnibal::attention_spans` returns them.
using model_spans = std::array<omnibal::attention_span, omnibal::max_attention_spans>;

using vlm_data = omnibal::training_data<vlm_batch>;

/// A functor from a micro-batch to the costs of all layers, corrected where they were measured.
struct vlm_cost {
  model_description model;
  omnibal::parallel_degrees degrees;
  layer_profile profile{};

  [[nodiscard]] std::vector<omnibal::layer_cost> operator()(vlm_batch const& batch) const;
};

/// The clips of the samples of a model with an audio tower; none without one.
struct sample_clips {
  /// Of a sample, if its tokens have room for them.
  omnibal::repeated_length most{};
  /// Of a clip and of a tile, in a document. 0: they stand in none.
  std::int64_t document_tokens = 0;
  std::int64_t tile_tokens = 0;

  /// The number of clips of a sample.
  [[nodiscard]] std::int64_t operator()(sample const& one) const;
};

/// `most` is of a sample.
[[nodiscard]] sample_clips clips_for(model_description const& model,
                                     omnibal::repeated_length const& most);

/// Samples that fit a capacity, and the capacity.
struct vlm_samples {
  std::vector<sample> samples;
  /// Of each, its number in the data set.
  std::vector<std::uint32_t> numbers;
  omnibal::resources<2> capacity;
  std::size_t oversized = 0;
  /// The windows and chunks of the model that is trained.
  model_spans spans{};
  sample_clips clips{};
};

/// Chooses the capacity at which groups have the samples of a random micro-batch in the mean, or up
/// to one more, and leaves out what exceeds it.
[[nodiscard]] vlm_samples choose_samples(dataset const& data, vlm_assumptions const& given,
                                         std::uint64_t seed);

/// The samples that fit a given capacity.
[[nodiscard]] vlm_samples fitting_samples(dataset const& data,
                                          omnibal::resources<2> const& capacity);

enum class text_padding {
  to_longest,  ///< of the micro-batch
  none         ///< each text has its own length
};

/// Samples in random order.
[[nodiscard]] vlm_data random_batches(vlm_samples const& given, vlm_assumptions const& assumed,
                                      text_padding padding, std::uint64_t seed);

/// The groups of best fit, and even steps of groups with so many cells each.
[[nodiscard]] omnibal::grouping best_groups(vlm_samples const& given);
[[nodiscard]] omnibal::steps even_steps(vlm_samples const& given, omnibal::grouping const& groups,
                                        std::size_t cells, std::uint64_t seed);

/// Groups of samples as micro-batches without padding. `wide` has a cell for each micro-batch of a
/// step, of which a rank takes neighboring ones; the last step is left out unless it is complete.
[[nodiscard]] vlm_data grouped_batches(vlm_samples const& given, omnibal::grouping const& groups,
                                       omnibal::steps const& wide, vlm_assumptions const& assumed);

/// Samples packed under the capacity, without padding, groups with similar loads in a step.
[[nodiscard]] vlm_data packed_batches(vlm_samples const& given, vlm_assumptions const& assumed,
                                      std::uint64_t seed);

/// The samples of all steps.
[[nodiscard]] std::size_t samples_of(vlm_data const& data);

/// FLOPs of all ranks for all steps, without recomputation.
[[nodiscard]] double flops_of(vlm_data const& data, model_description const& model);

}  // namespace examples
