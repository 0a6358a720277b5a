// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A layer of a Conformer.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/conformer.hpp>
#include <omnibal/cost/detail/attention.hpp>
#include <omnibal/cost/detail/feed_forward.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::detail {

/// A Conformer layer: two feed-forward parts around attention and a convolution.
struct conformer_block {
  std::string_view function;
  std::int64_t hidden = 0;
  norm_kind norm = norm_kind::layer;
  norm_placement placement = norm_placement::before;
  attention self{};
  attention_span span{};
  dense_mlp dense{};
  conformer_parts parts{};
  std::int64_t other_parameters = 0;

  void check(layer_tally const& sums) const {
    self.check(sums);
    dense.check(sums);
    check_width(function, "conformer.kernel", parts.kernel);
    check_between(function, "conformer.width", parts.width, 0, max_width);
    check_multiple(function, "conformer.width", channels(), "tensor", sums.tensor());
    check_between(function, "conformer.positions", parts.positions, 0, max_width);
    check_between(function, "conformer.seen_keys", parts.seen_keys, 0, max_width);
    check_between(function, "other_parameters", other_parameters, 0, max_width);
    span.check(function, "span.tokens");
    if (placement != norm_placement::before && placement != norm_placement::both) {
      throw_invalid(function, "placement must be before or both if the layer is a Conformer");
    }
  }

  void add_to(layer_tally& sums, std::string_view argument, sequences const& tokens) const {
    check(sums);
    int128 const rows = sums.in_sequence(tokens.tokens);
    sums.parameters(other_parameters, tensor_sharding::whole);
    add_feed_forward(sums, rows);
    add_norm(sums, rows, hidden, norm);
    add_attention(sums, rows, sums.in_sequence(pairs_of(argument, tokens)));
    add_normalized_to_residual(sums, rows);
    add_norm(sums, rows, hidden, norm);
    add_convolution(sums, rows);
    add_to_residual(sums, rows);
    add_feed_forward(sums, rows);
    add_output_norm(sums, rows, hidden, norm);
  }

 private:
  [[nodiscard]] std::int64_t channels() const { return parts.width == 0 ? hidden : parts.width; }

  [[nodiscard]] int128 pairs_of(std::string_view argument, sequences const& tokens) const {
    if (parts.seen_keys != 0) return int128{tokens.tokens} * parts.seen_keys;
    return squares_within(function, argument, tokens, span);
  }

  /// Adds the norm of the output of a part, if parts have one, and the sum with the residual.
  void add_normalized_to_residual(layer_tally& sums, int128 rows) const {
    if (placement == norm_placement::both) add_output_norm(sums, rows, hidden, norm);
    add_to_residual(sums, rows);
  }

  void add_to_residual(layer_tally& sums, int128 rows) const {
    sums.moved(3 * sums.activation_bytes(rows * hidden), tensor_sharding::at_norm);
  }

  void add_feed_forward(layer_tally& sums, int128 rows) const {
    add_norm(sums, rows, hidden, norm);
    dense.add_to(sums, rows);
    add_normalized_to_residual(sums, rows);
  }

  void add_attention(layer_tally& sums, int128 rows, int128 pairs) const {
    self.add_to(sums, {.rows = rows, .context_rows = rows, .pairs = pairs});
    if (parts.distances == relative_positions::none) return;
    int128 const width = self.query_width();
    int128 vectors = pairs;
    if (parts.distances == relative_positions::projected) {
      sums.parameters(width * hidden, tensor_sharding::split);
      sums.copies(width * hidden, tensor_sharding::split);
      vectors = parts.positions == 0 ? 2 * pairs : rows * parts.positions;
      if (parts.positions == 0) {
        sums.linear_flops(4 * rows * hidden * width, tensor_sharding::split);
        sums.keep(2 * sums.activation_bytes(rows * width), tensor_sharding::split);
      }
    }
    sums.score_flops(2 * vectors * width);
    sums.keep(sums.activation_bytes(pairs * self.heads), tensor_sharding::split);
  }

  void add_convolution(layer_tally& sums, int128 rows) const {
    int128 const width = channels();
    add_split_columns(sums, rows, {hidden, 2 * width, parts.has_bias});
    add_activation(sums, rows * width, mlp_kind::gated);
    sums.parameters(width * parts.kernel + (parts.kernel_bias ? width : int128{0}),
                    tensor_sharding::split);
    sums.linear_flops(2 * rows * width * parts.kernel, tensor_sharding::split);
    if (parts.is_separable) {
      sums.keep(sums.matrix_input_bytes(rows * width), tensor_sharding::split,
                backward_use::for_weights);
      add_split_columns(sums, rows, {width, width, parts.kernel_bias});
    }
    if (parts.has_norm) add_output_norm(sums, rows, width, parts.norm);
    add_activation(sums, rows * width, mlp_kind::plain);
    add_split_rows(sums, rows, {width, hidden, parts.has_bias});
  }
};

}  // namespace omnibal::inline v0::detail
