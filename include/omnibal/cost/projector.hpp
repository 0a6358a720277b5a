#pragma once

/// \file
/// From the width of a tower to that of the language model.

#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// A projector of one or two matrices with an activation in between, such as InternVL's `mlp1`
/// (norm, 12800 to 6144, 6144 to 6144) or LLaVA's. It works on the tokens that the tiles and images
/// of the workload become in the language model.
///
/// With T such tokens: forward FLOPs 2T (input * hidden + hidden * output), backward twice as many,
/// once where only input gradients are wanted; kept bytes in bf16 T (2 input, with a norm 4 input,
/// + 4 hidden), whose outputs of norm and activation `selective` does not make again; at the cut 2T
/// output. Without a hidden layer every tensor-parallel rank has the whole matrix.
///
/// Preconditions: `tensor` divides `hidden`. Complexity, memory, determinism and errors as
/// `transformer`.
struct projector {
  /// The width of an input: of as many patches as become one token.
  std::int64_t input = 0;
  /// 0: a single matrix.
  std::int64_t hidden = 0;
  std::int64_t output = 0;
  /// Tokens that a tile becomes; 0: there are no tiles.
  std::int64_t tile_tokens = 0;
  /// Patches of images that become one token.
  std::int64_t patches_per_token = 1;
  bool has_norm = false;
  norm_kind norm = norm_kind::layer;
  /// The numbers that the norm looks at together, such as those of one patch; 0: the whole input.
  std::int64_t norm_width = 0;
  bool has_bias = true;
  training_mode training = training_mode::all;

  /// What the projector costs for `batch.tiles` and `batch.images`.
  [[nodiscard]] layer_cost operator()(workload const& batch, parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    detail::layer_tally tally("projector", degrees, bytes, training, detail::remade::nothing);
    check(tally);
    detail::int128 const rows = tally.in_sequence(tokens(batch));
    detail::int128 const input_bytes = tally.activation_bytes(rows * input);
    detail::int128 const output_bytes = tally.activation_bytes(rows * output);
    if (has_norm) {
      std::int64_t const width = norm_width == 0 ? input : norm_width;
      detail::add_norm(tally, rows * (input / width), width, norm);
    } else {
      tally.keep(input_bytes, detail::held::at_norm, detail::needed::for_weights);
    }
    if (hidden == 0) {
      detail::add_whole(tally, rows, input, output, has_bias);
    } else {
      detail::add_split_columns(tally, rows, input, hidden, has_bias);
      detail::add_activation(tally, rows * hidden, mlp_kind::plain);
      detail::add_split_rows(tally, rows, hidden, output, has_bias);
    }
    tally.widest(input_bytes + output_bytes, detail::held::at_norm);
    return tally.result({input_bytes, detail::held::at_norm},
                        {output_bytes, detail::held::at_norm});
  }

 private:
  void check(detail::layer_tally const& tally) const {
    auto const name = tally.function();
    detail::check_width(name, "input", input);
    if (norm_width != 0) {
      detail::check_width(name, "norm_width", norm_width);
      detail::check_multiple(name, "input", input, "norm_width", norm_width);
    }
    detail::check_between(name, "hidden", hidden, 0, detail::most_width);
    detail::check_multiple(name, "hidden", hidden, "tensor", tally.tensor());
    detail::check_width(name, "output", output);
    detail::check_between(name, "tile_tokens", tile_tokens, 0, detail::most_width);
    detail::check_width(name, "patches_per_token", patches_per_token);
  }

  [[nodiscard]] detail::int128 tokens(workload const& batch) const {
    detail::check_images("projector", batch, tile_tokens);
    return detail::int128{batch.tiles} * tile_tokens +
           detail::share_of(batch.images.tokens, patches_per_token);
  }
};

}  // namespace omnibal::inline v0
