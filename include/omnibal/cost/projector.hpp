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

/// The tokens on which a projector works.
enum class projector_source {
  images,  ///< patches of tiles and images
  clips,   ///< tokens of an audio tower
};

/// A projector of one or two matrices with an activation in between, or of three matrices with a
/// gate. Examples are the projector of LLaVA and `mlp1` of InternVL (norm, 12800 to 6144, 6144 to
/// 6144). The projector works on the tokens that the tiles and images, or the clips, of the
/// micro-batch become in the language model.
///
/// T is the number of these tokens. Forward FLOPs are 2T (input * hidden + hidden * output).
/// Backward FLOPs are twice the forward FLOPs, or once if only input gradients are wanted. Kept
/// bytes in bf16 are T (2 input + 4 hidden), and with a norm T (4 input + 4 hidden). `selective`
/// does not recompute the outputs of norm and activation. The bytes at the cut are 2T * output. A
/// gate adds a matrix from input to hidden and 2T * hidden kept bytes; a norm of the outputs keeps
/// 2T * output.
/// Without a hidden layer every tensor-parallel rank has the whole matrix.
///
/// Preconditions: `tensor` divides `hidden`. Complexity, memory, determinism and errors as
/// `transformer`.
struct projector {
  /// The width of an input, which contains all patches that become one token.
  std::int64_t input = 0;
  /// The width of the hidden layer; 0 means a single matrix.
  std::int64_t hidden = 0;
  std::int64_t output = 0;
  /// Tokens that a tile becomes; 0 means that there are no tiles.
  std::int64_t tile_tokens = 0;
  /// Patches of images, or tokens of clips, that become one token.
  std::int64_t patches_per_token = 1;
  bool has_norm = false;
  norm_kind norm = norm_kind::layer;
  /// The count of numbers that are normalized together, such as the numbers of one patch. It must
  /// divide `input`; 0 means the whole input.
  std::int64_t norm_width = 0;
  bool has_bias = true;
  training_mode training = training_mode::all;
  mlp_kind feed_forward = mlp_kind::plain;
  /// True if a norm follows the last matrix.
  bool has_output_norm = false;
  norm_kind output_norm = norm_kind::rms;
  /// Learned numbers that belong to no product, norm or bias, such as the tokens at line ends.
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
      detail::add_whole(tally, rows, input, output, has_bias);
    } else {
      detail::int128 const columns = detail::int128{detail::matrices_in(feed_forward)} * hidden;
      detail::add_split_columns(tally, rows, input, columns, has_bias);
      detail::add_activation(tally, rows * hidden, feed_forward);
      detail::add_split_rows(tally, rows, hidden, output, has_bias);
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
