// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The layer between a tower and the language model.

#include <omnibal/config.hpp>
#include <omnibal/cost/detail/feed_forward.hpp>
#include <omnibal/cost/detail/image_tokens.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/model_limits.hpp>
#include <omnibal/detail/quotients.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// The kind of tokens that a projector reads.
enum class projector_source {
  images,  ///< patches of tiles and images
  clips,   ///< tokens of an audio tower
};

/// A projector of one or two matrices with an activation in between, or of three matrices with a
/// gate. Examples are the projector of LLaVA and `mlp1` of InternVL (norm, 12800 to 6144, 6144 to
/// 6144). Its outputs are the tokens of the language model for the tiles and images, or for the
/// clips, of the micro-batch.
///
/// T is the number of output tokens. Forward FLOPs are 2T (input * hidden + hidden * output).
/// Backward FLOPs are twice the forward FLOPs, or equal to them if only input gradients are
/// required. Kept bytes in bf16 are T (2 input + 4 hidden), and with a norm T (4 input + 4 hidden).
/// `selective` does not recompute the outputs of norm and activation. The bytes at the cut are 2T *
/// output. A gate adds a matrix from input to hidden and 2T * hidden kept bytes; a norm of the
/// outputs keeps 2T * output. Without a hidden layer every tensor-parallel rank has the whole
/// matrix.
///
/// Preconditions: `tensor` divides `hidden`. Complexity, memory, determinism and errors as
/// `transformer`.
struct projector {
  /// The width of an input: the total width of all patches that are joined into one token.
  std::int64_t input = 0;
  /// The width of the hidden layer; 0 means a single matrix.
  std::int64_t hidden = 0;
  std::int64_t output = 0;
  /// The number of tokens for each tile; 0 means that there are no tiles.
  std::int64_t tile_tokens = 0;
  /// The number of patches of images, or of tokens of clips, that are joined into one token.
  std::int64_t patches_per_token = 1;
  bool has_norm = false;
  norm_kind norm = norm_kind::layer;
  /// The width over which the norm is computed, such as the width of one patch. It must divide
  /// `input`; 0 means the whole input.
  std::int64_t norm_width = 0;
  bool has_bias = true;
  training_mode training = training_mode::all;
  mlp_kind feed_forward = mlp_kind::plain;
  /// True if a norm follows the last matrix.
  bool has_output_norm = false;
  norm_kind output_norm = norm_kind::rms;
  /// The number of learned numbers that belong to no product, norm or bias, such as tokens for line
  /// ends.
  std::int64_t other_parameters = 0;
  projector_source source = projector_source::images;

  /// Returns the cost of the projector for `batch.tiles` and `batch.images`, or for `batch.clips`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    detail::layer_tally tally("projector", degrees, bytes, training,
                              detail::recomputed_tensors::nothing);
    check(tally);
    detail::int128 const rows = tally.in_sequence(tokens(batch));
    detail::int128 const input_bytes = tally.activation_bytes(rows * input);
    detail::int128 const output_bytes = tally.activation_bytes(rows * output);
    if (has_norm) {
      std::int64_t const width = norm_width == 0 ? input : norm_width;
      detail::add_norm(tally, rows * (input / width), width, norm);
    } else {
      tally.keep(tally.matrix_input_bytes(rows * input), detail::tensor_sharding::at_norm,
                 detail::backward_use::for_weights);
    }
    if (hidden == 0) {
      detail::add_whole(tally, rows, {input, output, has_bias});
    } else {
      detail::int128 const columns = detail::int128{detail::matrices_in(feed_forward)} * hidden;
      detail::add_split_columns(tally, rows, {input, columns, has_bias});
      detail::add_activation(tally, rows * hidden, feed_forward);
      detail::add_split_rows(tally, rows, {hidden, output, has_bias});
    }
    if (has_output_norm) detail::add_output_norm(tally, rows, output, output_norm);
    tally.parameters(other_parameters, detail::tensor_sharding::whole);
    tally.widest(input_bytes + output_bytes, detail::tensor_sharding::at_norm);
    return tally.result({input_bytes, detail::tensor_sharding::at_norm},
                        {output_bytes, detail::tensor_sharding::at_norm});
  }

 private:
  void check(detail::layer_tally const& tally) const {
    auto const name = tally.function();
    detail::check_width(name, "input", input);
    if (norm_width != 0) {
      detail::check_width(name, "norm_width", norm_width);
      detail::check_multiple(name, "input", input, "norm_width", norm_width);
    }
    detail::check_between(name, "hidden", hidden, 0, detail::max_width);
    detail::check_multiple(name, "hidden", hidden, "tensor", tally.tensor());
    detail::check_width(name, "output", output);
    detail::check_between(name, "tile_tokens", tile_tokens, 0, detail::max_width);
    detail::check_width(name, "patches_per_token", patches_per_token);
    detail::check_between(name, "other_parameters", other_parameters, 0, detail::max_width);
  }

  [[nodiscard]] detail::int128 tokens(micro_batch_work const& batch) const {
    if (source == projector_source::clips) {
      detail::check_sequences("projector", "clips", batch.clips);
      return detail::share_of(batch.clips.tokens, patches_per_token);
    }
    detail::check_images("projector", batch, tile_tokens);
    return detail::int128{batch.tiles} * tile_tokens +
           detail::share_of(batch.images.tokens, patches_per_token);
  }
};

}  // namespace omnibal::inline v0
