#pragma once

/// \file
/// The block that layers of vision and audio towers have in common.

#include <omnibal/config.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layer_parts.hpp>
#include <omnibal/cost/parallel_degrees.hpp>
#include <omnibal/cost/workload.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace omnibal::inline v0::detail {

/// A matrix whose outputs the tensor-parallel ranks share out.
inline void add_split_columns(layer_tally& tally, int128 rows, int128 inputs, int128 outputs,
                              bool has_bias) {
  tally.parameters(inputs * outputs + (has_bias ? outputs : 0), held::split);
  tally.linear_flops(2 * rows * inputs * outputs, held::split);
}

/// A matrix whose inputs these ranks share out; each has the whole bias.
inline void add_split_rows(layer_tally& tally, int128 rows, int128 inputs, int128 outputs,
                           bool has_bias) {
  tally.parameters(inputs * outputs, held::split);
  tally.parameters(has_bias ? outputs : 0, held::whole);
  tally.linear_flops(2 * rows * inputs * outputs, held::split);
}

/// A matrix that every rank has, for the tokens that it has between norms.
inline void add_whole(layer_tally& tally, int128 rows, int128 inputs, int128 outputs,
                      bool has_bias) {
  tally.parameters(inputs * outputs + (has_bias ? outputs : 0), held::whole);
  tally.linear_flops(2 * rows * inputs * outputs, held::at_norm);
}

/// A norm whose output a matrix takes: it keeps both its input and its output.
inline void add_norm(layer_tally& tally, int128 rows, int128 width, norm_kind kind) {
  tally.parameters(kind == norm_kind::layer ? 2 * width : width, held::whole);
  int128 const bytes = tally.activation_bytes(rows * width);
  tally.keep(bytes, held::at_norm);
  tally.keep(bytes, held::at_norm, needed::for_weights, remade::elementwise, {0, 2 * bytes});
  tally.widest(2 * bytes, held::at_norm);
}

/// One attention with its projections, without the norm before it.
struct attention {
  std::int64_t hidden = 0;
  /// Of the tokens that keys and values are made of.
  std::int64_t context_width = 0;
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;
  std::int64_t head_size = 0;
  latent_attention latent{};
  query_key_norm head_norm = query_key_norm::none;
  norm_kind norm = norm_kind::rms;
  attention_mask mask = attention_mask::full;
  attention_kernel kernel = attention_kernel::flash;
  bool input_bias = false;
  bool output_bias = false;
  bool dropout = false;

  void check(layer_tally const& tally) const {
    auto const name = tally.function();
    check_width(name, "hidden", hidden);
    check_width(name, "heads", heads);
    check_width(name, "kv_heads", key_value_heads);
    check_width(name, "context_width", context_width);
    if (head_size == 0) check_multiple(name, "hidden", hidden, "heads", heads);
    check_width(name, "head_size", size_of_head());
    check_multiple(name, "heads", heads, "kv_heads", key_value_heads);
    check_multiple(name, "heads", heads, "tensor", tally.tensor());
    if (tally.tensor() <= key_value_heads) {
      check_multiple(name, "kv_heads", key_value_heads, "tensor", tally.tensor());
    } else {
      check_multiple(name, "tensor", tally.tensor(), "kv_heads", key_value_heads);
    }
    check_between(name, "latent.key_value_rank", latent.key_value_rank, 0, most_width);
    check_between(name, "latent.query_rank", latent.query_rank, 0, most_width);
    check_between(name, "latent.rope_size", latent.rope_size, 0, most_width);
    check_between(name, "latent.value_size", latent.value_size, 0, most_width);
    check_width(name, "heads * head_size", heads * key_size());
    check_width(name, "heads * latent.value_size", heads * size_of_value());
  }

  /// `rows` tokens attend to `context_rows` in `pairs` pairs, half as many with a causal mask.
  void add_to(layer_tally& tally, int128 rows, int128 context_rows, int128 pairs) const {
    int128 const query_width = int128{heads} * key_size();
    int128 const output_width = int128{heads} * size_of_value();
    int128 const key_width = key_heads(tally) * key_size();
    int128 const value_width = key_heads(tally) * size_of_value();
    if (latent.key_value_rank > 0) {
      add_latent_inputs(tally, rows, context_rows);
    } else {
      add_split_columns(tally, rows, hidden, query_width, input_bias);
      add_split_columns(tally, context_rows, context_width, key_width + value_width, input_bias);
    }
    int128 const inputs = rows * query_width + context_rows * (key_width + value_width);
    tally.keep(tally.activation_bytes(inputs), held::split);
    add_head_norms(tally, rows * query_width, context_rows * key_width);
    add_scores(tally, pairs);
    tally.keep(tally.activation_bytes(rows * output_width), held::split);
    tally.widest(tally.activation_bytes(inputs + rows * output_width), held::split);
    add_split_rows(tally, rows, output_width, hidden, output_bias);
  }

 private:
  [[nodiscard]] std::int64_t size_of_head() const {
    return head_size == 0 ? hidden / heads : head_size;
  }
  /// Numbers of a query or key of one head.
  [[nodiscard]] std::int64_t key_size() const {
    return size_of_head() + (latent.key_value_rank > 0 ? latent.rope_size : 0);
  }
  [[nodiscard]] std::int64_t size_of_value() const {
    bool const is_own = latent.key_value_rank > 0 && latent.value_size > 0;
    return is_own ? latent.value_size : size_of_head();
  }
  /// With the copies that more ranks than heads need.
  [[nodiscard]] int128 key_heads(layer_tally const& tally) const {
    return std::max(latent.key_value_rank > 0 ? heads : key_value_heads, tally.tensor());
  }

  /// Every rank projects down what it has of the tokens and norms it, and projects up its heads.
  void add_latent_inputs(layer_tally& tally, int128 rows, int128 context_rows) const {
    int128 const query_width = int128{heads} * key_size();
    if (latent.query_rank > 0) {
      add_whole(tally, rows, hidden, latent.query_rank, false);
      add_norm(tally, rows, latent.query_rank, norm);
      add_split_columns(tally, rows, latent.query_rank, query_width, input_bias);
    } else {
      add_split_columns(tally, rows, hidden, query_width, input_bias);
    }
    add_whole(tally, context_rows, context_width, latent.key_value_rank + latent.rope_size, false);
    add_norm(tally, context_rows, latent.key_value_rank, norm);
    add_split_columns(tally, context_rows, latent.key_value_rank,
                      int128{heads} * (size_of_head() + size_of_value()), input_bias);
  }

  void add_head_norms(layer_tally& tally, int128 queries, int128 keys) const {
    if (head_norm == query_key_norm::none) return;
    std::int64_t const sets = norm == norm_kind::layer ? 2 : 1;
    if (head_norm == query_key_norm::each_head) {
      tally.parameters(sets * 2 * int128{key_size()}, held::whole);
    } else {
      tally.parameters(sets * (int128{heads} + key_heads(tally)) * key_size(), held::split);
    }
    int128 const normed = tally.activation_bytes(queries + keys);
    tally.keep(normed, held::split, needed::always, remade::elementwise, {0, 2 * normed});
  }

  void add_scores(layer_tally& tally, int128 pairs) const {
    bool const is_halved = mask == attention_mask::causal && kernel == attention_kernel::flash;
    int128 const flops = (is_halved ? 1 : 2) * pairs * heads * (key_size() + size_of_value());
    tally.score_flops(flops);
    if (kernel == attention_kernel::flash) return;
    int128 const scores = tally.activation_bytes(pairs * heads);
    tally.keep(scores, held::split, needed::always, remade::scores, {flops, 2 * scores});
    tally.widest(2 * scores, held::split);
    if (!dropout) return;
    int128 const masks = pairs * heads;
    tally.keep(scores + masks, held::split, needed::always, remade::scores,
               {0, 2 * scores + masks});
  }
};

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

struct transformer_block {
  std::string_view function;
  std::int64_t hidden = 0;
  norm_kind norm = norm_kind::rms;
  std::optional<attention> self{};
  std::optional<attention> cross{};
  std::optional<dense_mlp> dense{};
  std::optional<expert_mixture> experts{};
  attention_kernel kernel = attention_kernel::flash;
  bool layer_scale = false;
  bool dropout = false;
  training_mode training = training_mode::all;

  [[nodiscard]] layer_cost cost(sequences const& tokens, cross_context const& context,
                                parallel_degrees const& degrees, byte_sizes const& bytes) const {
    layer_tally sums(function, degrees, bytes, training,
                     kernel == attention_kernel::flash ? remade::elementwise : remade::scores);
    check(sums);
    int128 const rows = sums.in_sequence(tokens.tokens);
    if (self) {
      add_norm(sums, rows, hidden, norm);
      self->add_to(sums, rows, rows, sums.in_sequence(tokens.squares));
      add_to_residual(sums, rows);
    }
    if (cross) {
      add_norm(sums, rows, hidden, norm);
      cross->add_to(sums, rows, sums.in_sequence(context.tokens), sums.in_sequence(context.pairs));
      add_to_residual(sums, rows);
    }
    add_norm(sums, rows, hidden, norm);
    if (dense) dense->add_to(sums, rows);
    if (experts) experts->add_to(sums, rows);
    add_to_residual(sums, rows);
    placed_bytes const output{sums.activation_bytes(rows * hidden), held::at_norm};
    return sums.result(output, output);
  }

 private:
  void check(layer_tally const& sums) const {
    if (self) self->check(sums);
    if (cross) cross->check(sums);
    if (dense) dense->check(sums);
    if (experts) experts->check(sums);
  }

  void add_to_residual(layer_tally& sums, int128 rows) const {
    int128 const numbers = rows * hidden;
    int128 const output = sums.activation_bytes(numbers);
    if (layer_scale) {
      sums.parameters(hidden, held::whole);
      sums.keep(output, held::at_norm, needed::for_weights);
      sums.moved(2 * output, held::at_norm);
    }
    if (dropout) {
      sums.keep(numbers, held::at_norm);
      sums.moved(2 * output + numbers, held::at_norm);
    }
    sums.moved(3 * output, held::at_norm);
  }
};

/// As many key-value heads as heads, no mask, a dense feed-forward part.
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
