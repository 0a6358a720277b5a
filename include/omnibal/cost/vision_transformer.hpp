// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The layer of a vision tower, and its last norm.

#include <omnibal/config.hpp>
#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/detail/image_tokens.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/detail/transformer_block.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// A layer of a vision tower, by the numbers of its public configuration. The layer processes tiles
/// of `image_size` and images with their own sizes, without a mask. The comment of `transformer`
/// has the formulas, preconditions and errors.
struct vision_transformer {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  /// The width of a head; 0 means hidden / heads. The number is required if heads are padded.
  std::int64_t head_size = 0;
  std::int64_t mlp = 0;
  /// The side of a tile in pixels; 0 means that there are no tiles.
  std::int64_t image_size = 0;
  std::int64_t patch_size = 14;
  /// The number of tokens of a tile in addition to its patches.
  std::int64_t class_tokens = 0;
  mlp_kind feed_forward = mlp_kind::plain;
  norm_kind norm = norm_kind::layer;
  query_key_norm head_norm = query_key_norm::none;
  attention_kernel kernel = attention_kernel::flash;
  bool qkv_bias = true;
  bool output_bias = true;
  bool mlp_bias = true;
  /// True if the outputs of attention and of the feed-forward part have a learned scale for each
  /// number.
  bool layer_scale = false;
  bool dropout = false;
  training_mode training = training_mode::all;
  /// True if `qkv_bias` includes keys; false if it means only queries and values, as in EVA.
  bool key_bias = true;
  /// The chunk of an image within which a patch attends, if the tower has windows (Qwen2.5-VL: 64
  /// patches). If the border of an image cuts windows, set `sequences::spans`.
  attention_span span{};
  norm_placement placement = norm_placement::before;
  /// The number of learned numbers of the layer that belong to no product, norm or bias.
  std::int64_t other_parameters = 0;
  /// The number of tiles of an image, whose tokens attend to one another (Llama 3.2 Vision: 4).
  /// With 1, a tile attends only to itself. The tiles of an image must be consecutive in a
  /// micro-batch.
  std::int64_t tiles_of_image = 1;

  /// Returns the number of patches and class tokens of a tile. Errors: `std::invalid_argument` if
  /// patches do not fill the tile.
  [[nodiscard]] std::int64_t tile_tokens() const {
    return detail::tile_tokens(name, image_size, patch_size, class_tokens);
  }

  /// Returns the cost of the layer for `batch.tiles` and `batch.images`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    auto const tokens =
        detail::image_tokens(name, batch, image_size == 0 ? 0 : tile_tokens(), tiles_of_image);
    return block().cost("images", tokens, {}, degrees, bytes);
  }

  /// Returns the forward and backward FLOPs of the whole layer as a function of the tokens of an
  /// image.
  [[nodiscard]] quadratic_cost sample_cost() const {
    return detail::sample_cost(*this, &micro_batch_work::images);
  }

  [[nodiscard]] friend bool operator==(vision_transformer const&,
                                       vision_transformer const&) = default;

 private:
  static constexpr char const* name = "vision_transformer";

  [[nodiscard]] detail::transformer_block block() const {
    auto made = detail::tower_block(name, *this);
    made.layer_scale = layer_scale;
    made.self->head_norm = head_norm;
    made.self->key_bias = key_bias;
    made.span = span;
    made.placement = placement;
    made.other_parameters = other_parameters;
    return made;
  }
};

/// The norm after the last layer of a vision tower. Tensor-parallel ranks share its tokens if they
/// share the tokens of other norms.
///
/// The inputs are kept, and the same number of bytes is sent at the cut. There are no FLOPs.
/// Complexity, memory, determinism and errors as `transformer`.
struct tower_norm {
  std::int64_t hidden = 0;
  /// The side of a tile in pixels; 0 means that there are no tiles.
  std::int64_t image_size = 0;
  std::int64_t patch_size = 14;
  /// The number of tokens of a tile in addition to its patches.
  std::int64_t class_tokens = 0;
  norm_kind norm = norm_kind::layer;
  training_mode training = training_mode::all;

  /// Returns the cost of the norm for `batch.tiles` and `batch.images`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    constexpr char const* name = "tower_norm";
    detail::layer_tally tally(name, degrees, bytes, training, detail::recomputed_tensors::nothing);
    detail::check_width(name, "hidden", hidden);
    std::int64_t const in_tile =
        image_size == 0 ? 0 : detail::tile_tokens(name, image_size, patch_size, class_tokens);
    detail::int128 const rows =
        tally.in_sequence(detail::image_tokens(name, batch, in_tile).tokens);
    return detail::norm_cost(tally, rows, hidden, norm);
  }
};

}  // namespace omnibal::inline v0
