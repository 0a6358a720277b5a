#pragma once

/// \file
/// The feed-forward part: dense, or a mixture of experts.

#include <omnibal/config.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/detail/products.hpp>
#include <omnibal/cost/layer_parts.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// Matrices into the hidden layer: with a gate two.
[[nodiscard]] constexpr std::int64_t matrices_in(mlp_kind kind) {
  return kind == mlp_kind::gated ? 2 : 1;
}

/// What `numbers` of a hidden layer keep and move.
inline void add_activation(layer_tally& tally, int128 numbers, mlp_kind kind) {
  int128 const output = tally.activation_bytes(numbers);
  int128 const input = matrices_in(kind) * output;
  tally.keep(input, held::split);
  tally.keep(output, held::split, needed::for_weights, remade::elementwise, {0, input + output});
  tally.widest(input + output, held::split);
}

/// Two or three matrices with an activation in between.
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
    add_split_columns(tally, rows, hidden, int128{matrices_in(kind)} * width, has_bias);
    add_activation(tally, rows * width, kind);
    add_split_rows(tally, rows, width, hidden, has_bias);
  }
};

/// A router, routed experts and shared ones.
struct expert_mixture {
  std::int64_t hidden = 0;
  expert_layer experts{};
  mlp_kind kind = mlp_kind::gated;

  void check(layer_tally const& tally) const {
    auto const name = tally.function();
    check_width(name, "experts.routed", experts.routed);
    check_between(name, "experts.active", experts.active, 1, experts.routed);
    check_between(name, "experts.shared", experts.shared, 0, most_width);
    check_width(name, "experts.mlp", experts.mlp);
    check_multiple(name, "experts.mlp", experts.mlp, "tensor", tally.tensor());
    check_multiple(name, "experts.routed", experts.routed, "expert", tally.expert());
  }

  void add_to(layer_tally& tally, int128 rows) const {
    constexpr std::int64_t probability_bytes = 4;
    add_whole(tally, rows, hidden, experts.routed, false);
    tally.keep(probability_bytes * rows * experts.routed, held::at_norm);

    int128 const one_expert = int128{matrices_in(kind) + 1} * hidden * experts.mlp;
    tally.parameters(experts.routed * one_expert, held::expert, experts.active * one_expert);
    tally.linear_flops(2 * rows * experts.active * one_expert, held::split);
    // Each token goes to its experts and comes back; the router learns from what comes back.
    int128 const sent = tally.activation_bytes(rows * experts.active * hidden);
    tally.keep(sent, held::at_norm, needed::for_weights);
    tally.keep(sent, held::at_norm);
    tally.moved(4 * sent, held::at_norm);
    add_activation(tally, rows * experts.active * experts.mlp, kind);

    if (experts.shared == 0) return;
    int128 const shared_width = int128{experts.shared} * experts.mlp;
    add_split_columns(tally, rows, hidden, matrices_in(kind) * shared_width, false);
    add_activation(tally, rows * shared_width, kind);
    add_split_rows(tally, rows, shared_width, hidden, false);
  }
};

}  // namespace omnibal::inline v0::detail
