// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The layer of an audio tower, and its last norm.

#include <omnibal/config.hpp>
#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/audio_transformer/conformer_block.hpp>
#include <omnibal/cost/conformer.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/detail/transformer_block.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// A layer of an audio tower, by the numbers of its public configuration. The layer works on
/// `micro_batch_work::clips`, in tokens after the convolutions, without a mask. Whisper has 1500
/// tokens for each window of 30 seconds. The comment of `transformer` has the formulas,
/// preconditions and errors.
struct audio_transformer {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  /// The width of a head; 0 means hidden / heads.
  std::int64_t head_size = 0;
  std::int64_t mlp = 0;
  mlp_kind feed_forward = mlp_kind::plain;
  norm_kind norm = norm_kind::layer;
  attention_kernel kernel = attention_kernel::flash;
  bool qkv_bias = true;
  bool output_bias = true;
  bool mlp_bias = true;
  bool dropout = false;
  training_mode training = training_mode::all;
  /// True if `qkv_bias` includes keys; false if it means only queries and values (Whisper).
  bool key_bias = true;
  /// The chunk of a clip within which a token attends, if the tower has windows (Qwen2.5-Omni).
  attention_span span{};
  /// The number of learned numbers of the layer that belong to no product, norm or bias.
  std::int64_t other_parameters = 0;
  /// The additional parts of a Conformer layer: a convolution and a second feed-forward part. If
  /// its `kernel` is 0, the layer has none.
  conformer_parts conformer{};
  /// The place of the norms of the attention and feed-forward parts. A Conformer accepts only
  /// `before` and `both`.
  norm_placement placement = norm_placement::before;

  /// Returns the cost of the layer for `batch.clips`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    detail::check_sequences("audio_transformer", "clips", batch.clips);
    if (conformer.kernel == 0) return block().cost("clips", batch.clips, {}, degrees, bytes);
    auto sums = block().tally(degrees, bytes);
    conformer_block().add_to(sums, "clips", batch.clips);
    auto const output = block().output_of(sums, batch.clips);
    return sums.result(output, output);
  }

  /// Returns the forward and backward FLOPs of the whole layer as a function of the tokens of a
  /// clip.
  [[nodiscard]] quadratic_cost sample_cost() const {
    return detail::sample_cost(*this, &micro_batch_work::clips);
  }

 private:
  [[nodiscard]] detail::transformer_block block() const {
    auto made = detail::tower_block("audio_transformer", *this);
    made.self->key_bias = key_bias;
    made.span = span;
    made.placement = placement;
    made.other_parameters = other_parameters;
    return made;
  }

  [[nodiscard]] detail::conformer_block conformer_block() const {
    auto const made = block();
    return {.function = made.function,
            .hidden = hidden,
            .norm = norm,
            .placement = placement,
            .self = *made.self,
            .span = span,
            .dense = *made.dense,
            .parts = conformer,
            .other_parameters = other_parameters};
  }
};

/// The norm after the last layer of an audio tower, similar to `tower_norm`.
struct audio_norm {
  std::int64_t hidden = 0;
  norm_kind norm = norm_kind::layer;
  training_mode training = training_mode::all;

  /// Returns the cost of the norm for `batch.clips`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    constexpr char const* name = "audio_norm";
    detail::layer_tally tally(name, degrees, bytes, training, detail::recomputed_tensors::nothing);
    detail::check_width(name, "hidden", hidden);
    detail::check_sequences(name, "clips", batch.clips);
    detail::int128 const rows = tally.in_sequence(batch.clips.tokens);
    return detail::norm_cost(tally, rows, hidden, norm);
  }
};

}  // namespace omnibal::inline v0
