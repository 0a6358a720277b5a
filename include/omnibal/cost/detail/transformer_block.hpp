// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The common block of the layers of towers and of language models.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/detail/attention.hpp>
#include <omnibal/cost/detail/feed_forward.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/detail/recurrent_parts.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/residual_streams.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace omnibal::inline v0::detail {

/// The parts of a layer. Attention, gated delta net, state space and short convolution read the
/// same input, and their outputs are added. Cross-attention and the feed-forward part follow. Each
/// part is optional.
struct transformer_block {
  std::string_view function;
  std::int64_t hidden = 0;
  norm_kind norm = norm_kind::rms;
  norm_placement placement = norm_placement::before;
  std::optional<attention> self{};
  attention_span span{};
  std::optional<delta_part> delta{};
  std::optional<state_space_part> space{};
  std::optional<short_convolution_part> convolution{};
  std::optional<attention> cross{};
  std::optional<dense_mlp> dense{};
  std::optional<expert_mixture> experts{};
  attention_kernel kernel = attention_kernel::flash;
  low_rank_adapters adapters{};
  /// The number of learned numbers that belong to no product, norm or bias.
  std::int64_t other_parameters = 0;
  /// The size of the additional embedding of a token for this layer; 0 means none.
  std::int64_t layer_input_size = 0;
  bool layer_scale = false;
  bool dropout = false;
  training_mode training = training_mode::all;
  residual_streams streams{};

  [[nodiscard]] layer_cost cost(std::string_view argument, sequences const& tokens,
                                cross_context const& context, parallel_degrees const& degrees,
                                byte_sizes const& bytes) const {
    layer_tally sums = tally(degrees, bytes);
    add_to(sums, argument, tokens, context);
    placed_bytes const output = output_of(sums, tokens);
    return sums.result(output, output);
  }

  [[nodiscard]] layer_tally tally(parallel_degrees const& degrees, byte_sizes const& bytes) const {
    return {function, degrees, bytes, training,
            kernel == attention_kernel::flash ? recomputed_tensors::elementwise
                                              : recomputed_tensors::scores};
  }

  /// Returns the bytes of the residual sums after the layer.
  [[nodiscard]] placed_bytes output_of(layer_tally const& sums, sequences const& tokens) const {
    int128 const width = int128{streams.count == 0 ? 1 : streams.count} * hidden;
    return {sums.activation_bytes(sums.in_sequence(tokens.tokens) * width),
            tensor_sharding::at_norm};
  }

  void add_to(layer_tally& sums, std::string_view argument, sequences const& tokens,
              cross_context const& context) const {
    check(sums);
    int128 const rows = sums.in_sequence(tokens.tokens);
    sums.parameters(other_parameters, tensor_sharding::whole);
    if (streams.count != 0) add_streams(sums, rows);
    if (has_mixer()) {
      sums.adapt(self ? rank_for(adapter_targets::attention) : 0);
      add_input(sums, rows);
      if (self) {
        int128 const pairs = squares_within(function, argument, tokens, span);
        self->add_to(sums, {.rows = rows,
                            .context_rows = rows,
                            .pairs = sums.in_sequence(pairs),
                            .indexed_pairs = sums.in_sequence(tokens.squares)});
      }
      sums.adapt(0);
      if (delta) delta->add_to(sums, rows);
      if (space) space->add_to(sums, rows);
      if (convolution) convolution->add_to(sums, rows);
      add_to_residual(sums, rows);
    }
    if (cross) {
      sums.adapt(rank_for(adapter_targets::attention));
      add_input(sums, rows);
      cross->add_to(sums, {.rows = rows,
                           .context_rows = sums.in_sequence(context.tokens),
                           .pairs = sums.in_sequence(context.pairs)});
      sums.adapt(0);
      add_to_residual(sums, rows);
    }
    if (dense || experts) {
      sums.adapt(rank_for(adapter_targets::feed_forward));
      if (placement != norm_placement::parallel || !has_mixer()) add_input(sums, rows);
      if (dense) dense->add_to(sums, rows);
      if (experts) experts->add_to(sums, rows);
      sums.adapt(0);
      add_to_residual(sums, rows);
    }
    if (layer_input_size != 0) add_layer_input(sums, rows);
  }

 private:
  [[nodiscard]] bool has_mixer() const { return self || delta || space || convolution; }

  [[nodiscard]] std::int64_t rank_for(adapter_targets part) const {
    bool const is_adapted = adapters.targets == adapter_targets::all || adapters.targets == part;
    return is_adapted ? adapters.rank : 0;
  }

  void check(layer_tally const& sums) const {
    if (self) self->check(sums);
    if (delta) delta->check(sums);
    if (space) space->check(sums);
    if (convolution) convolution->check(sums);
    if (cross) cross->check(sums);
    if (dense) dense->check(sums);
    if (experts) experts->check(sums);
    span.check(function, "span.tokens");
    if (span.kind == span_kind::window && self && self->mask != attention_mask::causal) {
      throw_invalid(function, "span is a window, but the mask is not causal");
    }
    check_between(function, "adapters.rank", adapters.rank, 0, max_width);
    if (adapters.rank != 0 && training != training_mode::input_gradients) {
      throw_number(function, "adapters.rank", adapters.rank, "but training is not input_gradients");
    }
    check_between(function, "other_parameters", other_parameters, 0, max_width);
    check_between(function, "streams.count", streams.count, 0, max_streams);
    check_between(function, "streams.low_rank", streams.low_rank, 0, max_width);
    check_between(function, "layer_input_size", layer_input_size, 0, max_width);
  }

  /// Adds the input of a part of the layer: the output of a norm, or the residual sums themselves.
  void add_input(layer_tally& sums, int128 rows) const {
    if (placement != norm_placement::after) {
      add_norm(sums, rows, hidden, norm);
    } else {
      sums.keep(sums.matrix_input_bytes(rows * hidden), tensor_sharding::at_norm,
                backward_use::for_weights);
    }
  }

  /// Adds the prediction and the correction of the streams, and the product in parallel with
  /// attention.
  void add_streams(layer_tally& sums, int128 rows) const {
    int128 const count = streams.count;
    int128 const stream = sums.activation_bytes(rows * hidden);
    sums.keep(count * stream, tensor_sharding::at_norm);
    // The router reads the stream before and after the parts of the layer.
    sums.parameters(numbers_of(norm) * hidden + hidden * count, tensor_sharding::whole);
    sums.linear_flops(4 * rows * hidden * count, tensor_sharding::at_norm);
    sums.keep(3 * stream, tensor_sharding::at_norm, backward_use::always);
    add_small(sums, rows, {count, count * count});
    add_small(sums, rows, {count, count});
    sums.score_flops(2 * rows * hidden * count * count);
    // The correction keeps the difference that it adds to the streams, and the input of its
    // scaling, which has one weight for each number.
    sums.parameters(hidden, tensor_sharding::whole);
    sums.keep(2 * stream, tensor_sharding::at_norm);
    sums.moved((4 * count + 6) * stream, tensor_sharding::at_norm);
    if (streams.low_rank == 0) return;
    add_whole(sums, rows, {hidden, streams.low_rank});
    sums.keep(sums.matrix_input_bytes(rows * streams.low_rank), tensor_sharding::at_norm,
              backward_use::for_weights);
    add_whole(sums, rows, {streams.low_rank, hidden});
    add_output_norm(sums, rows, hidden, norm);
  }

  /// Adds the product of a gate and the additional embedding of each token for this layer.
  void add_layer_input(layer_tally& sums, int128 rows) const {
    int128 const size = rows * layer_input_size;
    int128 const bytes = sums.activation_bytes(size);
    sums.keep(sums.matrix_input_bytes(rows * hidden), tensor_sharding::at_norm,
              backward_use::for_weights);
    add_whole(sums, rows, {hidden, layer_input_size});
    // The gate and its activation. Their product with the embedding is the input of the next
    // matrix.
    sums.keep(2 * bytes, tensor_sharding::at_norm);
    sums.keep(sums.matrix_input_bytes(size), tensor_sharding::at_norm, backward_use::for_weights,
              recomputed_tensors::elementwise, {0, 3 * bytes});
    add_whole(sums, rows, {layer_input_size, hidden});
    add_output_norm(sums, rows, hidden, norm);
  }

  void add_to_residual(layer_tally& sums, int128 rows) const {
    if (placement == norm_placement::after || placement == norm_placement::both) {
      add_output_norm(sums, rows, hidden, norm);
    }
    int128 const numbers = rows * hidden;
    int128 const output = sums.activation_bytes(numbers);
    if (layer_scale) {
      sums.parameters(hidden, tensor_sharding::whole);
      sums.keep(output, tensor_sharding::at_norm, backward_use::for_weights);
      sums.moved(2 * output, tensor_sharding::at_norm);
    }
    if (dropout) {
      sums.keep(numbers, tensor_sharding::at_norm);
      sums.moved(2 * output + numbers, tensor_sharding::at_norm);
    }
    sums.moved(3 * output, tensor_sharding::at_norm);
  }
};

/// Returns the block of a tower: one key-value head for each head, no mask, and a dense
/// feed-forward part.
template <class Tower>
[[nodiscard]] transformer_block tower_block(char const* function, Tower const& tower) {
  transformer_block made{.function = function,
                         .hidden = tower.hidden,
                         .norm = tower.norm,
                         .kernel = tower.kernel,
                         .dropout = tower.dropout,
                         .training = tower.training};
  made.self = attention{.hidden = tower.hidden,
                        .context_width = tower.hidden,
                        .heads = tower.heads,
                        .key_value_heads = tower.heads,
                        .head_size = tower.head_size,
                        .norm = tower.norm,
                        .kernel = tower.kernel,
                        .input_bias = tower.qkv_bias,
                        .output_bias = tower.output_bias,
                        .dropout = tower.dropout};
  made.dense = dense_mlp{.hidden = tower.hidden,
                         .width = tower.mlp,
                         .kind = tower.feed_forward,
                         .has_bias = tower.mlp_bias};
  return made;
}

}  // namespace omnibal::inline v0::detail
