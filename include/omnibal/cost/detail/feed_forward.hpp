// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Dense feed-forward parts and mixtures of experts.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// Returns the number of matrices into the hidden layer: two with a gate, otherwise one.
[[nodiscard]] constexpr std::int64_t matrices_in(mlp_kind kind) {
  return kind == mlp_kind::gated ? 2 : 1;
}

/// Adds the kept and moved bytes of the activation of a hidden layer with `numbers` numbers.
inline void add_activation(layer_tally& tally, int128 numbers, mlp_kind kind) {
  int128 const output = tally.activation_bytes(numbers);
  int128 const input = matrices_in(kind) * output;
  tally.keep(input, tensor_sharding::split);
  tally.keep(tally.matrix_input_bytes(numbers), tensor_sharding::split, backward_use::for_weights,
             recomputed_tensors::elementwise, {0, input + output});
  tally.widest(input + output, tensor_sharding::split);
}

/// A feed-forward part: two or three matrices with an activation in between.
struct dense_mlp {
  std::int64_t hidden = 0;
  std::int64_t width = 0;
  mlp_kind kind = mlp_kind::gated;
  bool has_bias = false;

  void check(layer_tally const& tally) const {
    check_width(tally.function(), "mlp", width);
    check_multiple(tally.function(), "mlp", width, "tensor", tally.tensor());
  }

  void add_to(layer_tally& tally, int128 rows) const {
    for (std::int64_t i = 0; i != matrices_in(kind); ++i) {
      add_split_columns(tally, rows, {hidden, width, has_bias});
    }
    add_activation(tally, rows * width, kind);
    add_split_rows(tally, rows, {width, hidden, has_bias});
  }
};

/// A mixture of experts: a router, routed experts and shared experts.
struct expert_mixture {
  std::int64_t hidden = 0;
  expert_layer experts{};
  mlp_kind kind = mlp_kind::gated;

  void check(layer_tally const& tally) const {
    auto const name = tally.function();
    check_width(name, "experts.routed", experts.routed);
    check_between(name, "experts.active", experts.active, 1, experts.routed);
    check_between(name, "experts.shared", experts.shared, 0, max_width);
    check_width(name, "experts.mlp", experts.mlp);
    check_between(name, "experts.shared_mlp", experts.shared_mlp, 0, max_width);
    check_between(name, "experts.latent_width", experts.latent_width, 0, max_width);
    check_between(name, "experts.idle_parameters", experts.idle_parameters, 0, max_tokens);
    check_multiple(name, "experts.mlp", experts.mlp,
                   tally.has_expert_tensor() ? "expert_tensor" : "tensor", tally.expert_tensor());
    check_multiple(name, "experts.shared * experts.shared_mlp", experts.shared * shared_width(),
                   "tensor", tally.tensor());
    check_multiple(name, "experts.routed", experts.routed, "expert", tally.expert());
  }

  void add_to(layer_tally& tally, int128 rows) const {
    add_router(tally, rows);
    if (experts.latent_width == 0) {
      add_routed(tally, rows, hidden);
    } else {
      add_whole(tally, rows, {hidden, experts.latent_width});
      tally.keep(tally.matrix_input_bytes(rows * experts.latent_width), tensor_sharding::at_norm,
                 backward_use::for_weights);
      add_routed(tally, rows, experts.latent_width);
      add_whole(tally, rows, {experts.latent_width, hidden});
    }
    if (experts.shared != 0) add_shared(tally, rows);
  }

 private:
  [[nodiscard]] std::int64_t shared_width() const {
    return experts.shared_mlp == 0 ? experts.mlp : experts.shared_mlp;
  }

  /// Adds the router. It reads its input in the type of activations, even if matrices read another
  /// type.
  void add_router(layer_tally& tally, int128 rows) const {
    constexpr std::int64_t probability_bytes = 4;
    if (tally.has_own_inputs()) {
      int128 const input = tally.activation_bytes(rows * hidden);
      tally.keep(input, tensor_sharding::at_norm, backward_use::if_trained,
                 recomputed_tensors::elementwise, {});
    }
    add_small(tally, rows, {hidden, experts.routed, experts.has_bias});
    tally.keep(probability_bytes * rows * experts.routed, tensor_sharding::at_norm);
  }

  /// Adds the routed experts. Each token is sent to its experts, and their outputs return; the
  /// router receives gradients from the returned outputs.
  void add_routed(layer_tally& tally, int128 rows, std::int64_t width) const {
    int128 const inner = int128{matrices_in(kind)} * experts.mlp;
    int128 const one_expert = (inner + experts.mlp) * width;
    // Each rank that shares the matrices of an expert has the whole output bias and the whole outer
    // side of its adapters.
    int128 const outer = int128{width} * tally.expert_tensor();
    int128 const biases = experts.has_bias ? inner + outer : int128{0};
    tally.parameters(experts.routed * (one_expert + biases), tensor_sharding::expert,
                     experts.active * (one_expert + biases));
    tally.copies(experts.routed * one_expert, tensor_sharding::expert);
    tally.parameters(experts.idle_parameters, tensor_sharding::expert, 0);
    tally.linear_flops(2 * rows * experts.active * one_expert, tensor_sharding::split);
    for (std::int64_t i = 0; i != matrices_in(kind); ++i) {
      tally.adapter(rows, outer, tensor_sharding::expert, experts.mlp, tensor_sharding::expert,
                    experts.routed, experts.active);
    }
    tally.adapter(rows, experts.mlp, tensor_sharding::expert, outer, tensor_sharding::expert,
                  experts.routed, experts.active);
    int128 const numbers = rows * experts.active * width;
    int128 const sent = tally.activation_bytes(numbers);
    tally.keep(tally.matrix_input_bytes(numbers), tensor_sharding::to_experts,
               backward_use::for_weights);
    tally.keep(sent, tensor_sharding::at_norm);
    tally.moved(4 * sent, tensor_sharding::at_norm);
    add_activation(tally, rows * experts.active * experts.mlp, kind);
  }

  void add_shared(layer_tally& tally, int128 rows) const {
    dense_mlp const shared{
        .hidden = hidden, .width = experts.shared * shared_width(), .kind = kind};
    shared.add_to(tally, rows);
    if (!experts.shared_gate) return;
    add_small(tally, rows, {hidden, 1});
    int128 const weighed = tally.activation_bytes(rows * hidden);
    tally.keep(weighed, tensor_sharding::at_norm);
    tally.moved(2 * weighed, tensor_sharding::at_norm);
  }
};

}  // namespace omnibal::inline v0::detail
