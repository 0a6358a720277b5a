// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The parts of a layer that mix tokens in linear time.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/token_mixers.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <algorithm>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// The number of tokens of a chunk in the kernels of gated delta nets; the kernels keep a matrix
/// for each chunk.
inline constexpr std::int64_t delta_chunk_tokens = 64;

/// The treatment of the output of a convolution in the backward pass.
enum class convolution_output {
  kept,        ///< kept as the input of the next kernel
  recomputed,  ///< recomputed by the kernel that also contains the convolution
};

/// Adds a convolution of each channel, and an activation. The input of the convolution is kept.
inline void add_convolution(layer_tally& tally, int128 rows, int128 channels,
                            short_convolution const& convolution, convolution_output output) {
  int128 const bytes = tally.activation_bytes(rows * channels);
  tally.keep(bytes, tensor_sharding::split);
  if (convolution.tokens == 0) return;
  int128 const flops = 2 * rows * channels * convolution.tokens;
  int128 const biases = convolution.has_bias ? channels : int128{0};
  tally.parameters(channels * convolution.tokens + biases, tensor_sharding::split);
  tally.linear_flops(flops, tensor_sharding::split);
  if (output == convolution_output::recomputed) {
    tally.moved(2 * bytes, tensor_sharding::split);
    return;
  }
  tally.keep(bytes, tensor_sharding::split, backward_use::always, recomputed_tensors::elementwise,
             {flops, 2 * bytes});
}

/// Adds the norm and the gate of the outputs of a state. The gated outputs are the input of the
/// output matrix.
inline void add_gated_output(layer_tally& tally, int128 rows, int128 width, bool has_gate) {
  int128 const bytes = tally.activation_bytes(rows * width);
  tally.keep(bytes, tensor_sharding::split);
  if (has_gate) tally.keep(bytes, tensor_sharding::split);
  tally.keep(tally.matrix_input_bytes(rows * width), tensor_sharding::split,
             backward_use::for_weights, recomputed_tensors::elementwise,
             {0, (has_gate ? 3 : 2) * bytes});
}

/// A gated delta net of `rows` tokens. The layer keeps the same tensors as the layers of
/// flash-linear-attention with chunks of 64 tokens. These are the inputs and outputs of the
/// convolution (queries and keys after their norm), decays and steps. The others are one matrix of
/// each chunk (two if each key number has a decay), the outputs of the state, the gates, and the
/// gated outputs.
struct delta_part {
  std::int64_t hidden = 0;
  delta_net net{};

  void check(layer_tally const& tally) const {
    auto const name = tally.function();
    check_width(name, "delta.key_heads", net.key_heads);
    check_width(name, "delta.value_heads", value_heads());
    check_width(name, "delta.key_size", net.key_size);
    check_width(name, "delta.value_size", value_size());
    check_between(name, "delta.convolution", net.convolution, 0, max_width);
    check_multiple(name, "delta.value_heads", value_heads(), "delta.key_heads", net.key_heads);
    check_multiple(name, "delta.key_heads", net.key_heads, "tensor", tally.tensor());
    check_width(name, "delta.key_heads * delta.key_size", net.key_heads * net.key_size);
    check_width(name, "delta.value_heads * delta.value_size", value_heads() * value_size());
  }

  void add_to(layer_tally& tally, int128 rows) const {
    int128 const keys = int128{net.key_heads} * net.key_size;
    int128 const values = int128{value_heads()} * value_size();
    add_split_columns(tally, rows, {hidden, 2 * keys + values});
    add_convolution(tally, rows, 2 * keys + values, {.tokens = net.convolution},
                    convolution_output::kept);
    if (!is_fixed()) add_decay(tally, rows);
    if (net.has_gate) add_gate(tally, rows, values);
    // A token reads the state for its key, adds a product to the state, and reads the state for its
    // query.
    tally.score_flops((is_fixed() ? 4 : 6) * rows * values * net.key_size);
    bool const is_single = is_fixed() || net.decay == delta_decay::each_head;
    tally.keep(
        tally.activation_bytes((is_single ? 1 : 2) * rows * value_heads() * delta_chunk_tokens),
        tensor_sharding::split);
    if (is_fixed()) {
      tally.parameters(values, tensor_sharding::split);
    } else {
      tally.parameters(value_size(), tensor_sharding::whole);
    }
    add_gated_output(tally, rows, values, net.has_gate);
    add_split_rows(tally, rows, {values, hidden});
    tally.widest(tally.activation_bytes(rows * (2 * keys + 2 * values)), tensor_sharding::split);
  }

 private:
  [[nodiscard]] bool is_fixed() const { return net.decay == delta_decay::fixed; }
  [[nodiscard]] bool is_low_rank() const { return net.decay == delta_decay::each_number; }
  [[nodiscard]] std::int64_t value_heads() const {
    return net.value_heads == 0 ? net.key_heads : net.value_heads;
  }
  [[nodiscard]] std::int64_t value_size() const {
    return net.value_size == 0 ? net.key_size : net.value_size;
  }

  /// Adds the step and the decay of the state. Each value head has a step. A decay belongs to a
  /// value head, or to a key number of a value head; then it is computed by a whole matrix or by a
  /// low-rank product of rank `value_size`.
  void add_decay(layer_tally& tally, int128 rows) const {
    std::int64_t const heads = value_heads();
    add_split_columns(tally, rows, {hidden, heads});
    bool const is_single = net.decay == delta_decay::each_head;
    int128 const width = int128{heads} * (is_single ? 1 : net.key_size);
    if (!is_low_rank()) {
      add_split_columns(tally, rows, {hidden, width});
    } else {
      add_low_rank(tally, rows, width);
    }
    // The bias of the decay, and the logarithm of its rate.
    tally.parameters(width + heads, tensor_sharding::split);
    tally.keep(tally.activation_bytes(rows * (width + heads)), tensor_sharding::split);
  }

  void add_gate(layer_tally& tally, int128 rows, int128 values) const {
    if (!is_low_rank()) {
      add_split_columns(tally, rows, {hidden, values});
      return;
    }
    add_low_rank(tally, rows, values);
  }

  /// Adds a low-rank product of rank `value_size`. If ranks share the tokens of norms, they also
  /// share the tokens of the first matrix.
  void add_low_rank(layer_tally& tally, int128 rows, int128 outputs) const {
    add_whole(tally, rows, {hidden, value_size()});
    tally.keep(tally.matrix_input_bytes(rows * value_size()), tensor_sharding::at_norm,
               backward_use::for_weights);
    add_split_columns(tally, rows, {value_size(), outputs});
  }
};

/// A selective state space of `rows` tokens. Mamba-2 keeps the tensors of its fused kernel
/// (`mamba_split_conv1d_scan_combined`): the outputs of the first matrix, the outputs of the state,
/// and the gated outputs, which `selective` recomputes. Mamba-1 keeps the tensors of separate
/// kernels for the convolution and the scan; `selective` keeps the tensors of its fused kernel
/// (`mamba_inner_fn`). The states between chunks are not counted.
struct state_space_part {
  std::int64_t hidden = 0;
  state_space space{};

  void check(layer_tally const& tally) const {
    auto const name = tally.function();
    check_width(name, "space.heads", space.heads);
    check_width(name, "space.head_size", space.head_size);
    check_width(name, "space.state", space.state);
    check_width(name, "space.groups", space.groups);
    check_between(name, "space.convolution", space.convolution, 0, max_width);
    check_between(name, "space.step_rank", space.step_rank, 0, max_width);
    check_width(name, "space.heads * space.head_size", space.heads * space.head_size);
    check_multiple(name, "space.heads", space.heads, "space.groups", space.groups);
    check_multiple(name, "space.heads", space.heads, "tensor", tally.tensor());
    if (tally.tensor() <= space.groups) {
      check_multiple(name, "space.groups", space.groups, "tensor", tally.tensor());
    } else {
      check_multiple(name, "tensor", tally.tensor(), "space.groups", space.groups);
    }
  }

  void add_to(layer_tally& tally, int128 rows) const {
    int128 const width = int128{space.heads} * space.head_size;
    // If there are more ranks than groups, ranks have copies of the groups.
    int128 const groups = std::max(space.groups, tally.tensor());
    int128 const inputs = 2 * groups * space.state;
    bool const is_first = space.step_rank > 0;
    add_split_columns(
        tally, rows,
        {hidden, 2 * width + (is_first ? int128{0} : inputs + space.heads), space.projection_bias});
    add_convolution(tally, rows, width + (is_first ? int128{0} : inputs),
                    {.tokens = space.convolution, .has_bias = space.convolution_bias},
                    is_first ? convolution_output::kept : convolution_output::recomputed);
    if (is_first) {
      add_first_inputs(tally, rows, width);
    } else {
      // Each head has a bias of its steps, a rate, and a factor for the current token.
      tally.parameters(3 * int128{space.heads}, tensor_sharding::split);
      tally.keep(tally.activation_bytes(rows * space.heads), tensor_sharding::split);
    }
    tally.score_flops(4 * rows * width * space.state);
    if (space.has_norm && !is_first) tally.parameters(width, tensor_sharding::split);
    add_gated_output(tally, rows, width, true);
    add_split_rows(tally, rows, {width, hidden, space.projection_bias});
    tally.widest(tally.activation_bytes(rows * (2 * width + inputs)), tensor_sharding::split);
  }

 private:
  /// Adds the products that Mamba-1 computes from the convolved tokens: the steps, by a low-rank
  /// product, and the inputs of the state. Each number of the width has its own rates and a factor
  /// for the current token.
  void add_first_inputs(layer_tally& tally, int128 rows, int128 width) const {
    int128 const made = int128{space.step_rank} + 2 * space.state;
    add_split_rows(tally, rows, {width, made});
    if (space.has_norm) {
      tally.parameters(made, tensor_sharding::whole);
      tally.keep(tally.activation_bytes(rows * made), tensor_sharding::whole);
    }
    tally.keep(tally.activation_bytes(rows * made), tensor_sharding::whole);
    add_split_columns(tally, rows, {.inputs = space.step_rank, .outputs = width, .has_bias = true});
    int128 const steps = tally.activation_bytes(rows * width);
    tally.keep(steps, tensor_sharding::split, backward_use::always, recomputed_tensors::elementwise,
               {2 * rows * space.step_rank * width, 2 * steps});
    tally.parameters(width * (space.state + 1), tensor_sharding::split);
  }
};

/// A gated short convolution of `rows` tokens.
struct short_convolution_part {
  std::int64_t hidden = 0;
  short_convolution convolution{};

  void check(layer_tally const& tally) const {
    check_width(tally.function(), "convolution.tokens", convolution.tokens);
    check_multiple(tally.function(), "hidden", hidden, "tensor", tally.tensor());
  }

  void add_to(layer_tally& tally, int128 rows) const {
    int128 const width = hidden;
    add_split_columns(tally, rows, {width, 3 * width, convolution.has_bias});
    int128 const bytes = tally.activation_bytes(rows * width);
    // The two gates and the value; the gated value, which the convolution reads; and the gated
    // output.
    tally.keep(3 * bytes, tensor_sharding::split);
    add_convolution(tally, rows, width, convolution, convolution_output::kept);
    tally.keep(tally.matrix_input_bytes(rows * width), tensor_sharding::split,
               backward_use::for_weights, recomputed_tensors::elementwise, {0, 3 * bytes});
    add_split_rows(tally, rows, {width, width, convolution.has_bias});
    tally.widest(4 * bytes, tensor_sharding::split);
  }
};

}  // namespace omnibal::inline v0::detail
