// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The cost of the operations of a layer on one rank, and the common block of transformer layers.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/model_limits.hpp>
#include <omnibal/detail/quotients.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace omnibal::inline v0::detail {

constexpr void check_degrees(std::string_view function, parallel_degrees const& degrees) {
  check_width(function, "tensor", degrees.tensor);
  check_width(function, "sequence", degrees.sequence);
  check_width(function, "data", degrees.data);
  check_width(function, "expert", degrees.expert);
  check_width(function, "pipeline", degrees.pipeline);
  check_multiple(function, "data * sequence", degrees.data * degrees.sequence, "expert",
                 degrees.expert);
}

constexpr void check_bytes(std::string_view function, byte_sizes const& bytes) {
  constexpr std::int64_t most = 64;
  check_between(function, "activation bytes", bytes.activation, 1, most);
  check_between(function, "parameter bytes", bytes.parameter, 1, most);
  check_between(function, "gradient bytes", bytes.gradient, 0, most);
  check_between(function, "optimizer bytes", bytes.optimizer, 0, most);
}

/// The placement of numbers on tensor-parallel ranks.
enum class tensor_sharding {
  whole,    ///< each rank has all of them
  at_norm,  ///< as `parallel_degrees::norms` says
  split,    ///< each rank has its share
  expert,   ///< each rank has its share of the experts of its expert-parallel rank
};

/// The purpose for which the backward pass needs a kept tensor.
enum class backward_use { always, for_weights };

/// The tensors that `selective` recomputes: none, outputs of norms and activations, or unfused
/// scores.
enum class recomputed_tensors { nothing, elementwise, scores };

/// Returns the work of all passes of a product of activations with parameters, in units of its
/// forward pass.
[[nodiscard]] constexpr std::int64_t linear_passes(training_mode training) {
  if (training == training_mode::all) return 3;
  return training == training_mode::input_gradients ? 2 : 1;
}

/// Returns the forward and backward passes of a product of activations with activations.
[[nodiscard]] constexpr std::int64_t score_passes(training_mode training) {
  return training == training_mode::forward_only ? 1 : 3;
}

/// Bytes of all ranks together, and their placement.
struct placed_bytes {
  int128 bytes = 0;
  tensor_sharding where = tensor_sharding::whole;
};

struct int128_work {
  int128 flops = 0;
  int128 moved_bytes = 0;
};

/// The sums of one layer. All arguments are for all ranks together; the sums are for one rank.
class layer_tally {
 public:
  layer_tally(std::string_view function, parallel_degrees const& degrees, byte_sizes const& bytes,
              training_mode training, recomputed_tensors selective)
      : function_(function),
        degrees_(degrees),
        bytes_(bytes),
        training_(training),
        selective_(selective) {
    check_degrees(function, degrees);
    check_bytes(function, bytes);
  }

  [[nodiscard]] std::string_view function() const { return function_; }
  [[nodiscard]] std::int64_t tensor() const { return degrees_.tensor; }
  [[nodiscard]] std::int64_t expert() const { return degrees_.expert; }
  /// Returns the share of tokens, or of pairs of tokens, of one sequence-parallel rank.
  [[nodiscard]] int128 in_sequence(int128 amount) const {
    return share_of(amount, degrees_.sequence);
  }
  [[nodiscard]] int128 activation_bytes(int128 numbers) const {
    return numbers * bytes_.activation;
  }

  void parameters(int128 count, tensor_sharding where) { parameters(count, where, count); }
  /// Adds parameters, of which each token uses `active`.
  void parameters(int128 count, tensor_sharding where, int128 active) {
    (where == tensor_sharding::expert ? expert_parameters_ : dense_parameters_) +=
        on_rank(count, where);
    active_parameters_ += share_of(active, where == tensor_sharding::whole ? 1 : degrees_.tensor);
  }

  /// Adds parameters that the layer uses and another layer of the stage counts.
  void borrowed_parameters(int128 count, tensor_sharding where) {
    borrowed_parameters_ += on_rank(count, where);
  }

  /// Adds products of activations with parameters.
  void linear_flops(int128 flops, tensor_sharding where) { linear_flops_ += on_rank(flops, where); }
  /// Adds products of activations with activations.
  void score_flops(int128 flops) { score_flops_ += on_rank(flops, tensor_sharding::split); }
  void moved(int128 bytes, tensor_sharding where) { moved_bytes_ += on_rank(bytes, where); }

  void keep(int128 bytes, tensor_sharding where, backward_use why = backward_use::always) {
    if (is_kept(why)) kept_bytes_ += on_rank(bytes, where);
  }
  /// Keeps the output of the operation `how`, which costs `again`.
  void keep(int128 bytes, tensor_sharding where, backward_use why, recomputed_tensors how,
            int128_work const& again) {
    moved(again.moved_bytes, where);
    keep(bytes, where, why);
    if (how != selective_ || !is_kept(why)) return;
    remade_bytes_ += on_rank(bytes, where);
    remade_work_.flops += on_rank(again.flops, where);
    remade_work_.moved_bytes += on_rank(again.moved_bytes, where);
  }

  /// Considers the bytes into and out of one operation.
  void widest(int128 bytes, tensor_sharding where) {
    widest_bytes_ = std::max(widest_bytes_, on_rank(bytes, where));
  }

  /// Returns the sums. `input` is kept if everything is recomputed.
  [[nodiscard]] layer_cost result(placed_bytes const& input, placed_bytes const& cut) const {
    layer_cost cost;
    int128_work const forward{linear_flops_ + score_flops_, moved_bytes_};
    int128_work const backward{linear_flops_ * (linear_passes(training_) - 1) +
                                   score_flops_ * (score_passes(training_) - 1),
                               moved_bytes_ * (score_passes(training_) - 1)};
    cost.forward = {narrow(forward.flops, "the sum of the forward FLOPs"),
                    narrow(forward.moved_bytes, "the sum of the bytes moved forward")};
    cost.backward = {narrow(backward.flops, "the sum of the backward FLOPs"),
                     narrow(backward.moved_bytes, "the sum of the bytes moved backward")};
    cost.parameters = narrow(dense_parameters_ + expert_parameters_, "the number of parameters");
    cost.active_parameters = narrow(active_parameters_, "the number of active parameters");
    set_state(cost);
    bool const has_backward = training_ != training_mode::forward_only;
    int128 const kept_input =
        has_backward ? std::min(on_rank(input.bytes, input.where), kept_bytes_) : int128{0};
    cost.choices = {choice(kept_bytes_, {}), choice(kept_bytes_ - remade_bytes_, remade_work_),
                    choice(kept_input, has_backward ? forward : int128_work{})};
    cost.cut_bytes = narrow(on_rank(cut.bytes, cut.where), "the sum of the bytes at the cut");
    check_sum(2 * forward.flops + backward.flops, "the sum of all FLOPs");
    check_sum(2 * forward.moved_bytes + backward.moved_bytes, "the sum of all moved bytes");
    return cost;
  }

 private:
  [[nodiscard]] bool is_kept(backward_use why) const {
    return training_ == training_mode::all ||
           (training_ == training_mode::input_gradients && why == backward_use::always);
  }

  [[nodiscard]] int128 on_rank(int128 amount, tensor_sharding where) const {
    switch (where) {
      case tensor_sharding::whole: return amount;
      case tensor_sharding::at_norm:
        return degrees_.norms == norm_regions::split ? share_of(amount, degrees_.tensor) : amount;
      case tensor_sharding::split: return share_of(amount, degrees_.tensor);
      case tensor_sharding::expert: return share_of(amount, degrees_.tensor * degrees_.expert);
    }
    return amount;
  }

  /// Sets the bytes of parameters, gradients and optimizer.
  void set_state(layer_cost& cost) const {
    bool const is_trained = training_ == training_mode::all;
    cost.parameter_bytes = narrow(state(bytes_.parameter, sharded_state::parameters),
                                  "the sum of the parameter bytes");
    cost.gradient_bytes = narrow(is_trained ? state(bytes_.gradient, sharded_state::gradients) : 0,
                                 "the sum of the gradient bytes");
    cost.optimizer_bytes =
        narrow(is_trained ? state(bytes_.optimizer, sharded_state::optimizer) : 0,
               "the sum of the optimizer bytes");
    check_sum(int128{cost.parameter_bytes} + cost.gradient_bytes + cost.optimizer_bytes,
              "the sum of the state bytes");
  }

  [[nodiscard]] int128 state(std::int64_t bytes, sharded_state from) const {
    std::int64_t const ranks = degrees_.data * degrees_.sequence;
    bool const is_shared = degrees_.sharding >= from;
    return bytes * (share_of(dense_parameters_, is_shared ? ranks : 1) +
                    share_of(expert_parameters_, is_shared ? ranks / degrees_.expert : 1));
  }

  /// Returns the bytes of one number of each parameter that is whole only while the layer runs.
  /// Parameters are gathered before they are used; gradients are whole before they are reduced.
  [[nodiscard]] int128 gathered(std::int64_t bytes, sharded_state from) const {
    std::int64_t const ranks = degrees_.data * degrees_.sequence;
    if (degrees_.sharding < from) return 0;
    int128 const dense = ranks > 1 ? dense_parameters_ + borrowed_parameters_ : int128{0};
    return bytes * (dense + (ranks > degrees_.expert ? expert_parameters_ : int128{0}));
  }

  [[nodiscard]] int128 gathered_bytes() const {
    bool const is_trained = training_ == training_mode::all;
    return gathered(bytes_.parameter, sharded_state::parameters) +
           gathered(is_trained ? bytes_.gradient : 0, sharded_state::gradients);
  }

  [[nodiscard]] recompute_cost choice(int128 kept, int128_work const& extra) const {
    return {.kept_bytes = narrow(kept, "the sum of the kept bytes"),
            .transient_bytes = narrow(widest_bytes_ + kept_bytes_ - kept + gathered_bytes(),
                                      "the sum of the transient bytes"),
            .extra = {narrow(extra.flops, "the sum of the recomputed FLOPs"),
                      narrow(extra.moved_bytes, "the sum of the bytes moved again")}};
  }

  void check_sum(int128 value, std::string_view quantity) const {
    static_cast<void>(narrow(value, quantity));
  }
  [[nodiscard]] std::int64_t narrow(int128 value, std::string_view quantity) const {
    return checked_cast<std::int64_t>(function_, quantity, value);
  }
  std::string_view function_;
  parallel_degrees degrees_;
  byte_sizes bytes_;
  training_mode training_;
  recomputed_tensors selective_;

  int128 dense_parameters_ = 0;
  int128 expert_parameters_ = 0;
  int128 borrowed_parameters_ = 0;
  int128 active_parameters_ = 0;
  int128 linear_flops_ = 0;
  int128 score_flops_ = 0;
  int128 moved_bytes_ = 0;
  int128 kept_bytes_ = 0;
  int128 remade_bytes_ = 0;
  int128_work remade_work_{};
  int128 widest_bytes_ = 0;
};

/// Returns the number of patches and class tokens of a tile.
[[nodiscard]] constexpr std::int64_t tile_tokens(std::string_view function, std::int64_t image_size,
                                                 std::int64_t patch_size,
                                                 std::int64_t class_tokens) {
  constexpr std::int64_t max_pixels = std::int64_t{1} << 16;
  check_between(function, "image_size", image_size, 1, max_pixels);
  check_between(function, "patch_size", patch_size, 1, max_pixels);
  check_between(function, "class_tokens", class_tokens, 0, max_width);
  check_multiple(function, "image_size", image_size, "patch_size", patch_size);
  std::int64_t const side = image_size / patch_size;
  return side * side + class_tokens;
}

/// Throws unless the tiles and images of a micro-batch are possible.
constexpr void check_images(std::string_view function, micro_batch_work const& batch,
                            std::int64_t tokens_of_tile) {
  check_sequences(function, "images", batch.images);
  check_between(function, "tiles", batch.tiles, 0, max_width);
  if (batch.tiles > 0 && tokens_of_tile == 0) {
    throw_number(function, "tiles", batch.tiles, "but the layer has no size of tiles");
  }
}

/// Returns all tokens of tiles and images.
[[nodiscard]] constexpr sequences image_tokens(std::string_view function,
                                               micro_batch_work const& batch,
                                               std::int64_t tokens_of_tile) {
  check_images(function, batch, tokens_of_tile);
  int128 const tokens = int128{batch.tiles} * tokens_of_tile + batch.images.tokens;
  int128 const squares =
      int128{batch.tiles} * tokens_of_tile * tokens_of_tile + batch.images.squares;
  return {.count = batch.tiles + batch.images.count,
          .tokens = checked_cast<std::int64_t>(function, "the number of tokens", tokens),
          .squares = checked_cast<std::int64_t>(function, "the sum of the squares of the tokens",
                                                squares)};
}

/// Adds a matrix whose outputs the tensor-parallel ranks share.
inline void add_split_columns(layer_tally& tally, int128 rows, int128 inputs, int128 outputs,
                              bool has_bias) {
  tally.parameters(inputs * outputs + (has_bias ? outputs : 0), tensor_sharding::split);
  tally.linear_flops(2 * rows * inputs * outputs, tensor_sharding::split);
}

/// Adds a matrix whose inputs the tensor-parallel ranks share; each rank has the whole bias.
inline void add_split_rows(layer_tally& tally, int128 rows, int128 inputs, int128 outputs,
                           bool has_bias) {
  tally.parameters(inputs * outputs, tensor_sharding::split);
  tally.parameters(has_bias ? outputs : 0, tensor_sharding::whole);
  tally.linear_flops(2 * rows * inputs * outputs, tensor_sharding::split);
}

/// Adds a matrix that every rank has, for its tokens between norms.
inline void add_whole(layer_tally& tally, int128 rows, int128 inputs, int128 outputs,
                      bool has_bias) {
  tally.parameters(inputs * outputs + (has_bias ? outputs : 0), tensor_sharding::whole);
  tally.linear_flops(2 * rows * inputs * outputs, tensor_sharding::at_norm);
}

/// Adds a norm whose output is the input of a matrix: the norm keeps both its input and its output.
inline void add_norm(layer_tally& tally, int128 rows, int128 width, norm_kind kind) {
  tally.parameters(kind == norm_kind::layer ? 2 * width : width, tensor_sharding::whole);
  int128 const bytes = tally.activation_bytes(rows * width);
  tally.keep(bytes, tensor_sharding::at_norm);
  tally.keep(bytes, tensor_sharding::at_norm, backward_use::for_weights,
             recomputed_tensors::elementwise, {0, 2 * bytes});
  tally.widest(2 * bytes, tensor_sharding::at_norm);
}

/// Adds a norm whose output goes into a residual sum, which does not keep it.
inline void add_output_norm(layer_tally& tally, int128 rows, int128 width, norm_kind kind) {
  tally.parameters(kind == norm_kind::layer ? 2 * width : width, tensor_sharding::whole);
  int128 const bytes = tally.activation_bytes(rows * width);
  tally.keep(bytes, tensor_sharding::at_norm);
  tally.moved(2 * bytes, tensor_sharding::at_norm);
  tally.widest(2 * bytes, tensor_sharding::at_norm);
}

/// One attention with its projections, without the norms around it.
struct attention {
  std::int64_t hidden = 0;
  /// The width of the tokens from which keys and values are computed.
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
  /// True if the biases of the inputs include keys; false if only queries and values have biases.
  bool key_bias = true;
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
    check_between(name, "latent.key_value_rank", latent.key_value_rank, 0, max_width);
    check_between(name, "latent.query_rank", latent.query_rank, 0, max_width);
    check_between(name, "latent.rope_size", latent.rope_size, 0, max_width);
    check_between(name, "latent.value_size", latent.value_size, 0, max_width);
    check_width(name, "heads * head_size", heads * key_size());
    check_width(name, "heads * latent.value_size", heads * size_of_value());
  }

  /// Adds the attention of `rows` tokens to `context_rows` in `pairs` pairs, half of them with a
  /// causal mask.
  void add_to(layer_tally& tally, int128 rows, int128 context_rows, int128 pairs) const {
    int128 const query_width = int128{heads} * key_size();
    int128 const output_width = int128{heads} * size_of_value();
    int128 const key_width = key_heads(tally) * key_size();
    int128 const value_width = key_heads(tally) * size_of_value();
    if (latent.key_value_rank > 0) {
      add_latent_inputs(tally, rows, context_rows);
    } else {
      add_split_columns(tally, rows, hidden, query_width, input_bias);
      add_split_columns(tally, context_rows, context_width, key_width, input_bias && key_bias);
      add_split_columns(tally, context_rows, context_width, value_width, input_bias);
    }
    int128 const inputs = rows * query_width + context_rows * (key_width + value_width);
    tally.keep(tally.activation_bytes(inputs), tensor_sharding::split);
    add_head_norms(tally, rows * query_width, context_rows * key_width);
    add_scores(tally, pairs);
    tally.keep(tally.activation_bytes(rows * output_width), tensor_sharding::split);
    tally.widest(tally.activation_bytes(inputs + rows * output_width), tensor_sharding::split);
    add_split_rows(tally, rows, output_width, hidden, output_bias);
  }

 private:
  [[nodiscard]] std::int64_t size_of_head() const {
    return head_size == 0 ? hidden / heads : head_size;
  }
  /// Returns the numbers of a query or key of one head.
  [[nodiscard]] std::int64_t key_size() const {
    return size_of_head() + (latent.key_value_rank > 0 ? latent.rope_size : 0);
  }
  [[nodiscard]] std::int64_t size_of_value() const {
    bool const is_own = latent.key_value_rank > 0 && latent.value_size > 0;
    return is_own ? latent.value_size : size_of_head();
  }
  /// Returns the key heads, including copies if there are more ranks than heads.
  [[nodiscard]] int128 key_heads(layer_tally const& tally) const {
    return std::max(latent.key_value_rank > 0 ? heads : key_value_heads, tally.tensor());
  }

  /// Adds the projections of latent attention: every rank projects down and normalizes its tokens,
  /// and projects up its heads.
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
      tally.parameters(sets * 2 * int128{key_size()}, tensor_sharding::whole);
    } else {
      tally.parameters(sets * (int128{heads} + key_heads(tally)) * key_size(),
                       tensor_sharding::split);
    }
    int128 const normed = tally.activation_bytes(queries + keys);
    tally.keep(normed, tensor_sharding::split, backward_use::always,
               recomputed_tensors::elementwise, {0, 2 * normed});
  }

  void add_scores(layer_tally& tally, int128 pairs) const {
    bool const is_halved = mask == attention_mask::causal && kernel == attention_kernel::flash;
    int128 const flops = (is_halved ? 1 : 2) * pairs * heads * (key_size() + size_of_value());
    tally.score_flops(flops);
    if (kernel == attention_kernel::flash) return;
    int128 const scores = tally.activation_bytes(pairs * heads);
    tally.keep(scores, tensor_sharding::split, backward_use::always, recomputed_tensors::scores,
               {flops, 2 * scores});
    tally.widest(2 * scores, tensor_sharding::split);
    if (!dropout) return;
    int128 const masks = pairs * heads;
    tally.keep(scores + masks, tensor_sharding::split, backward_use::always,
               recomputed_tensors::scores, {0, 2 * scores + masks});
  }
};

/// Returns the number of matrices into the hidden layer: two with a gate.
[[nodiscard]] constexpr std::int64_t matrices_in(mlp_kind kind) {
  return kind == mlp_kind::gated ? 2 : 1;
}

/// Adds the kept and moved bytes of `numbers` of a hidden layer.
inline void add_activation(layer_tally& tally, int128 numbers, mlp_kind kind) {
  int128 const output = tally.activation_bytes(numbers);
  int128 const input = matrices_in(kind) * output;
  tally.keep(input, tensor_sharding::split);
  tally.keep(output, tensor_sharding::split, backward_use::for_weights,
             recomputed_tensors::elementwise, {0, input + output});
  tally.widest(input + output, tensor_sharding::split);
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

/// A router, routed experts and shared experts.
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
    check_multiple(name, "experts.mlp", experts.mlp, "tensor", tally.tensor());
    check_multiple(name, "experts.routed", experts.routed, "expert", tally.expert());
  }

  void add_to(layer_tally& tally, int128 rows) const {
    constexpr std::int64_t probability_bytes = 4;
    add_whole(tally, rows, hidden, experts.routed, false);
    tally.keep(probability_bytes * rows * experts.routed, tensor_sharding::at_norm);

    int128 const one_expert = int128{matrices_in(kind) + 1} * hidden * experts.mlp;
    tally.parameters(experts.routed * one_expert, tensor_sharding::expert,
                     experts.active * one_expert);
    tally.linear_flops(2 * rows * experts.active * one_expert, tensor_sharding::split);
    // Each token is sent to its experts and returns; the router learns from the returned values.
    int128 const sent = tally.activation_bytes(rows * experts.active * hidden);
    tally.keep(sent, tensor_sharding::at_norm, backward_use::for_weights);
    tally.keep(sent, tensor_sharding::at_norm);
    tally.moved(4 * sent, tensor_sharding::at_norm);
    add_activation(tally, rows * experts.active * experts.mlp, kind);

    if (experts.shared == 0) return;
    dense_mlp const shared{.hidden = hidden, .width = experts.shared * experts.mlp, .kind = kind};
    shared.add_to(tally, rows);
    if (!experts.shared_gate) return;
    add_whole(tally, rows, hidden, 1, false);
    int128 const weighed = tally.activation_bytes(rows * hidden);
    tally.keep(weighed, tensor_sharding::at_norm);
    tally.moved(2 * weighed, tensor_sharding::at_norm);
  }
};

struct transformer_block {
  std::string_view function;
  std::int64_t hidden = 0;
  norm_kind norm = norm_kind::rms;
  norm_placement placement = norm_placement::before;
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
                     kernel == attention_kernel::flash ? recomputed_tensors::elementwise
                                                       : recomputed_tensors::scores);
    check(sums);
    int128 const rows = sums.in_sequence(tokens.tokens);
    if (self) {
      add_input(sums, rows);
      self->add_to(sums, rows, rows, sums.in_sequence(tokens.squares));
      add_to_residual(sums, rows);
    }
    if (cross) {
      add_input(sums, rows);
      cross->add_to(sums, rows, sums.in_sequence(context.tokens), sums.in_sequence(context.pairs));
      add_to_residual(sums, rows);
    }
    add_input(sums, rows);
    if (dense) dense->add_to(sums, rows);
    if (experts) experts->add_to(sums, rows);
    add_to_residual(sums, rows);
    placed_bytes const output{sums.activation_bytes(rows * hidden), tensor_sharding::at_norm};
    return sums.result(output, output);
  }

 private:
  void check(layer_tally const& sums) const {
    if (self) self->check(sums);
    if (cross) cross->check(sums);
    if (dense) dense->check(sums);
    if (experts) experts->check(sums);
  }

  /// Adds the input of a part of the layer: a norm of the residual sums, or the sums themselves.
  void add_input(layer_tally& sums, int128 rows) const {
    if (placement != norm_placement::after) {
      add_norm(sums, rows, hidden, norm);
    } else {
      sums.keep(sums.activation_bytes(rows * hidden), tensor_sharding::at_norm,
                backward_use::for_weights);
    }
  }

  void add_to_residual(layer_tally& sums, int128 rows) const {
    if (placement != norm_placement::before) add_output_norm(sums, rows, hidden, norm);
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

/// Returns a block with a key-value head for each head, no mask, and a dense feed-forward part.
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
