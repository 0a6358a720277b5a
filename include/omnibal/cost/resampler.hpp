// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A layer that computes a fixed number of tokens from each image.

#include <omnibal/config.hpp>
#include <omnibal/cost/detail/attention.hpp>
#include <omnibal/cost/detail/feed_forward.hpp>
#include <omnibal/cost/detail/image_tokens.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// A resampler of one layer (Qwen-VL, MiniCPM-V): learned queries attend to all patches of their
/// tile or image. The patches are projected to the width of the resampler and normalized; the
/// queries are normalized too. An MLP and a last matrix are optional. Kept bytes and FLOPs follow
/// the rules of `transformer` without a mask. Every tensor-parallel rank has the first and the last
/// matrix.
///
/// Preconditions: `tensor` divides heads and `mlp`; images need `sequences::count`. Complexity,
/// memory, determinism and errors as `transformer`.
struct resampler {
  /// The width of a patch.
  std::int64_t input = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  /// The number of tokens that replace a tile or an image.
  std::int64_t queries = 0;
  /// The number of patches of a tile; 0 means that there are no tiles.
  std::int64_t tile_patches = 0;
  /// The width of the MLP; 0 means no MLP.
  std::int64_t mlp = 0;
  /// The width of the last matrix; 0 means no last matrix.
  std::int64_t output = 0;
  norm_kind norm = norm_kind::layer;
  mlp_kind feed_forward = mlp_kind::plain;
  attention_kernel kernel = attention_kernel::flash;
  /// True if the attention and the MLP have biases.
  bool has_bias = true;
  training_mode training = training_mode::all;

  /// Returns the cost of the resampler for `batch.tiles` and `batch.images`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    using detail::int128;
    using detail::tensor_sharding;
    detail::layer_tally tally(name, degrees, bytes, training,
                              kernel == attention_kernel::flash
                                  ? detail::recomputed_tensors::elementwise
                                  : detail::recomputed_tensors::scores);
    check(tally);
    sequences const images = detail::image_tokens(name, batch, tile_patches);
    if (images.tokens > 0 && images.count == 0) {
      detail::throw_number(name, "images.count", 0, "but the images have patches");
    }
    int128 const patches = tally.in_sequence(images.tokens);
    int128 const rows = tally.in_sequence(int128{images.count} * queries);
    int128 const input_bytes = tally.activation_bytes(patches * input);
    tally.keep(tally.matrix_input_bytes(patches * input), tensor_sharding::at_norm,
               detail::backward_use::for_weights);
    detail::add_whole(tally, patches, {input, hidden});
    detail::add_norm(tally, patches, hidden, norm);
    tally.parameters(int128{queries} * hidden, tensor_sharding::whole);
    detail::add_norm(tally, rows, hidden, norm);
    self().add_to(tally, {.rows = rows,
                          .context_rows = patches,
                          .pairs = tally.in_sequence(int128{images.tokens} * queries)});
    if (mlp > 0) {
      detail::add_norm(tally, rows, hidden, norm);
      dense().add_to(tally, rows);
      tally.moved(3 * tally.activation_bytes(rows * hidden), tensor_sharding::at_norm);
    }
    if (output > 0) {
      tally.keep(tally.matrix_input_bytes(rows * hidden), tensor_sharding::at_norm,
                 detail::backward_use::for_weights);
      detail::add_whole(tally, rows, {hidden, output});
    }
    int128 const output_bytes = tally.activation_bytes(rows * (output > 0 ? output : hidden));
    tally.widest(input_bytes + tally.activation_bytes(patches * hidden), tensor_sharding::at_norm);
    return tally.result({input_bytes, tensor_sharding::at_norm},
                        {output_bytes, tensor_sharding::at_norm});
  }

 private:
  static constexpr char const* name = "resampler";

  [[nodiscard]] detail::attention self() const {
    return {.hidden = hidden,
            .context_width = hidden,
            .heads = heads,
            .key_value_heads = heads,
            .norm = norm,
            .kernel = kernel,
            .input_bias = has_bias,
            .output_bias = has_bias};
  }

  [[nodiscard]] detail::dense_mlp dense() const {
    return {.hidden = hidden, .width = mlp, .kind = feed_forward, .has_bias = has_bias};
  }

  void check(detail::layer_tally const& tally) const {
    detail::check_width(name, "input", input);
    self().check(tally);
    detail::check_width(name, "queries", queries);
    detail::check_between(name, "tile_patches", tile_patches, 0, detail::max_width);
    if (mlp != 0) dense().check(tally);
    detail::check_between(name, "output", output, 0, detail::max_width);
  }
};

}  // namespace omnibal::inline v0
