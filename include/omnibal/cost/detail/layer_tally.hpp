// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The sums of the cost of a layer on one rank, and functions that add its matrices and norms.

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
  check_between(function, "expert_tensor", degrees.expert_tensor, 0, degrees.tensor);
  if (degrees.expert_tensor == 0) {
    check_multiple(function, "data * sequence", degrees.data * degrees.sequence, "expert",
                   degrees.expert);
  } else {
    check_multiple(function, "tensor", degrees.tensor, "expert_tensor", degrees.expert_tensor);
    check_multiple(function, "tensor * data * sequence",
                   degrees.tensor * degrees.data * degrees.sequence, "expert * expert_tensor",
                   degrees.expert * degrees.expert_tensor);
  }
}

constexpr void check_bytes(std::string_view function, byte_sizes const& bytes) {
  constexpr std::int64_t most = 64;
  check_between(function, "activation bytes", bytes.activation, 1, most);
  check_between(function, "parameter bytes", bytes.parameter, 1, most);
  check_between(function, "gradient bytes", bytes.gradient, 0, most);
  check_between(function, "optimizer bytes", bytes.optimizer, 0, most);
  check_between(function, "matrix_input bytes", bytes.matrix_input, 0, most);
  check_between(function, "matrix_copy bytes", bytes.matrix_copy, 0, most);
  check_between(function, "scale_block", bytes.scale_block, 0, max_width);
}

/// The distribution of numbers over tensor-parallel ranks.
enum class tensor_sharding {
  whole,    ///< each rank has all of them
  at_norm,  ///< as `parallel_degrees::norms` says
  split,    ///< each rank has its share
  expert,   ///< each rank has its share of the experts of its expert-parallel rank
  /// Tokens that are sent to experts. Ranks that share the matrices of an expert gather its tokens.
  to_experts,
};

/// The purpose of a kept tensor in the backward pass.
enum class backward_use {
  always,
  for_weights,  ///< the input of a matrix, if the matrix or an adapter beside it is trained
  if_trained,   ///< a tensor of a part through which no gradients pass to the layers before it
};

/// The tensors that `selective` recomputes: none, the outputs of norms and activations, or the
/// scores of unfused attention.
enum class recomputed_tensors { nothing, elementwise, scores };

/// Returns the work of all passes of a product of activations and parameters, in units of the work
/// of its forward pass.
[[nodiscard]] constexpr std::int64_t linear_passes(training_mode training) {
  if (training == training_mode::all) return 3;
  return training == training_mode::input_gradients ? 2 : 1;
}

/// Returns the work of all passes of a product of activations and activations, in units of the work
/// of its forward pass.
[[nodiscard]] constexpr std::int64_t score_passes(training_mode training) {
  return training == training_mode::forward_only ? 1 : 3;
}

/// Bytes on all ranks together, and their distribution over the ranks.
struct placed_bytes {
  int128 bytes = 0;
  tensor_sharding sharding = tensor_sharding::whole;
};

struct int128_work {
  int128 flops = 0;
  int128 moved_bytes = 0;
};

/// The sums of the cost of one layer. All arguments are amounts on all ranks together; the sums are
/// amounts on one rank.
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
  [[nodiscard]] std::int64_t expert_tensor() const {
    return has_expert_tensor() ? degrees_.expert_tensor : degrees_.tensor;
  }
  /// Returns true if the number of ranks that share an expert is set separately.
  [[nodiscard]] bool has_expert_tensor() const { return degrees_.expert_tensor != 0; }
  /// Returns the share of one sequence-parallel rank in tokens, or in pairs of tokens.
  [[nodiscard]] int128 in_sequence(int128 amount) const {
    return share_of(amount, degrees_.sequence);
  }
  [[nodiscard]] int128 activation_bytes(int128 numbers) const {
    return numbers * bytes_.activation;
  }

  /// Returns the bytes of `numbers` numbers that are kept as the input of a matrix.
  [[nodiscard]] int128 matrix_input_bytes(int128 numbers) const {
    int128 const scales = bytes_.scale_block == 0 ? 0 : share_of(numbers, bytes_.scale_block);
    return numbers * (has_own_inputs() ? bytes_.matrix_input : bytes_.activation) + scales;
  }
  /// Returns true if matrices keep their inputs in another type than other operations. Then both
  /// copies are kept.
  [[nodiscard]] bool has_own_inputs() const { return bytes_.matrix_input != 0; }

  void parameters(int128 count, tensor_sharding sharding) { parameters(count, sharding, count); }
  /// Adds `count` parameters; each token uses `active` of them.
  void parameters(int128 count, tensor_sharding sharding, int128 active) {
    (sharding == tensor_sharding::expert ? base_.expert : base_.dense) += on_rank(count, sharding);
    add_active(active, sharding);
  }

  /// Adds copies of a matrix in another type. They are not counted as parameters.
  void copies(int128 count, tensor_sharding sharding) {
    (sharding == tensor_sharding::expert ? copied_.expert : copied_.dense) +=
        on_rank(count, sharding);
  }

  /// Sets the rank of the adapters of the matrices that are added next; 0 means none.
  void adapt(std::int64_t rank) { adapter_rank_ = rank; }

  /// Adds the adapter of `count` matrices; each token uses `active` of them.
  void adapter(int128 rows, int128 inputs, tensor_sharding in, int128 outputs, tensor_sharding out,
               int128 count = 1, int128 active = 1) {
    if (adapter_rank_ == 0) return;
    int128 const rank = adapter_rank_;
    bool const is_expert = in == tensor_sharding::expert;
    int128 const numbers =
        on_rank(count * inputs * rank, in) + on_rank(count * outputs * rank, out);
    (is_expert ? adapters_.expert : adapters_.dense) += numbers;
    add_active(active * inputs * rank, in);
    add_active(active * outputs * rank, out);
    auto const of_tokens = [](tensor_sharding side) {
      if (side == tensor_sharding::expert) return tensor_sharding::split;
      return side == tensor_sharding::whole ? tensor_sharding::at_norm : side;
    };
    adapter_flops_ += on_rank(2 * rows * active * inputs * rank, of_tokens(in)) +
                      on_rank(2 * rows * active * outputs * rank, of_tokens(out));
    keep(activation_bytes(rows * active * rank),
         is_expert ? tensor_sharding::to_experts : tensor_sharding::at_norm);
  }

  /// Adds parameters that the layer uses, but that another layer of the stage counts.
  void borrowed_parameters(int128 count, tensor_sharding sharding) {
    borrowed_parameters_ += on_rank(count, sharding);
  }

  /// Adds the FLOPs of products of activations and parameters.
  void linear_flops(int128 flops, tensor_sharding sharding) {
    linear_flops_ += on_rank(flops, sharding);
  }
  /// Adds the FLOPs of products that the backward pass always computes a second time.
  void repeated_flops(int128 flops, tensor_sharding sharding) {
    if (training_ != training_mode::forward_only) again_flops_ += on_rank(flops, sharding);
  }
  /// Adds the FLOPs of products whose inputs get no gradients. They are in the backward pass only
  /// if the layer is trained.
  void detached_flops(int128 forward, int128 backward, tensor_sharding sharding) {
    detached_flops_.forward += on_rank(forward, sharding);
    if (is_trained()) detached_flops_.backward += on_rank(backward, sharding);
  }
  /// Adds the FLOPs of products of activations and activations.
  void score_flops(int128 flops) { score_flops_ += on_rank(flops, tensor_sharding::split); }
  void moved(int128 bytes, tensor_sharding sharding) { moved_bytes_ += on_rank(bytes, sharding); }

  void keep(int128 bytes, tensor_sharding sharding, backward_use why = backward_use::always) {
    if (is_kept(why)) kept_bytes_ += on_rank(bytes, sharding);
  }
  /// Adds the output of an operation to the kept bytes. If `selective` recomputes tensors of the
  /// kind `how`, also adds the output to the recomputed bytes and `again` to the recomputed work.
  void keep(int128 bytes, tensor_sharding sharding, backward_use why, recomputed_tensors how,
            int128_work const& again) {
    moved(again.moved_bytes, sharding);
    keep(bytes, sharding, why);
    if (how != selective_ || !is_kept(why)) return;
    remade_bytes_ += on_rank(bytes, sharding);
    remade_work_.flops += on_rank(again.flops, sharding);
    remade_work_.moved_bytes += on_rank(again.moved_bytes, sharding);
  }

  /// Records the bytes that one operation reads and writes; the largest record counts.
  void widest(int128 bytes, tensor_sharding sharding) {
    widest_bytes_ = std::max(widest_bytes_, on_rank(bytes, sharding));
  }

  /// Returns the cost of the layer. `input` is the tensor that is kept if everything is recomputed,
  /// and `cut` is the tensor that is sent to the next layer.
  [[nodiscard]] layer_cost result(placed_bytes const& input, placed_bytes const& cut) const {
    layer_cost cost;
    int128_work const forward{
        linear_flops_ + adapter_flops_ + score_flops_ + detached_flops_.forward, moved_bytes_};
    int128_work const backward{linear_flops_ * (linear_passes(training_) - 1) +
                                   (adapter_flops_ + score_flops_) * (score_passes(training_) - 1) +
                                   again_flops_ + detached_flops_.backward,
                               moved_bytes_ * (score_passes(training_) - 1)};
    cost.forward = {narrow(forward.flops, "the sum of the forward FLOPs"),
                    narrow(forward.moved_bytes, "the sum of the bytes moved forward")};
    cost.backward = {narrow(backward.flops, "the sum of the backward FLOPs"),
                     narrow(backward.moved_bytes, "the sum of the bytes moved backward")};
    cost.parameters = narrow(base_.sum() + adapters_.sum(), "the number of parameters");
    cost.active_parameters = narrow(active_parameters_, "the number of active parameters");
    set_state(cost);
    bool const has_backward = training_ != training_mode::forward_only;
    int128 const kept_input =
        has_backward ? std::min(on_rank(input.bytes, input.sharding), kept_bytes_) : int128{0};
    cost.choices = {choice(kept_bytes_, {}), choice(kept_bytes_ - remade_bytes_, remade_work_),
                    choice(kept_input, has_backward ? forward : int128_work{})};
    cost.cut_bytes = narrow(on_rank(cut.bytes, cut.sharding), "the sum of the bytes at the cut");
    check_sum(2 * forward.flops + backward.flops, "the sum of all FLOPs");
    check_sum(2 * forward.moved_bytes + backward.moved_bytes, "the sum of all moved bytes");
    return cost;
  }

 private:
  /// The parameters of one rank, before data-parallel ranks shard them.
  struct parameters_of_rank {
    int128 dense = 0;
    int128 expert = 0;

    [[nodiscard]] int128 sum() const { return dense + expert; }
  };

  [[nodiscard]] bool is_kept(backward_use why) const {
    if (is_trained()) return true;
    if (training_ == training_mode::forward_only || why == backward_use::if_trained) return false;
    return why == backward_use::always || adapter_rank_ != 0;
  }

  void add_active(int128 count, tensor_sharding sharding) {
    std::int64_t const ranks =
        sharding == tensor_sharding::expert ? expert_tensor() : degrees_.tensor;
    active_parameters_ += share_of(count, sharding == tensor_sharding::whole ? 1 : ranks);
  }

  [[nodiscard]] int128 on_rank(int128 amount, tensor_sharding sharding) const {
    switch (sharding) {
      case tensor_sharding::whole: return amount;
      case tensor_sharding::at_norm:
        return degrees_.norms == norm_regions::split ? share_of(amount, degrees_.tensor) : amount;
      case tensor_sharding::split: return share_of(amount, degrees_.tensor);
      case tensor_sharding::expert: return share_of(amount, expert_tensor() * degrees_.expert);
      case tensor_sharding::to_experts: return share_of(amount * expert_tensor(), degrees_.tensor);
    }
    return amount;
  }

  [[nodiscard]] bool is_trained() const { return training_ == training_mode::all; }
  /// Returns the parameters that have gradients and optimizer state.
  [[nodiscard]] parameters_of_rank trained() const {
    if (!is_trained()) return adapters_;
    return {base_.dense + adapters_.dense, base_.expert + adapters_.expert};
  }
  [[nodiscard]] parameters_of_rank all() const {
    return {base_.dense + adapters_.dense, base_.expert + adapters_.expert};
  }

  /// Returns the number of ranks that have the same parameters: outside of the routed experts, and
  /// within them.
  [[nodiscard]] std::int64_t dense_ranks() const { return degrees_.data * degrees_.sequence; }
  [[nodiscard]] std::int64_t expert_ranks() const {
    return degrees_.tensor * dense_ranks() / (expert_tensor() * degrees_.expert);
  }

  /// Sets the bytes of parameters, gradients and optimizer.
  void set_state(layer_cost& cost) const {
    cost.parameter_bytes = narrow(state(bytes_.parameter, all(), sharded_state::parameters) +
                                      state(bytes_.matrix_copy, copied_, sharded_state::parameters),
                                  "the sum of the parameter bytes");
    cost.gradient_bytes = narrow(state(bytes_.gradient, trained(), sharded_state::gradients),
                                 "the sum of the gradient bytes");
    cost.optimizer_bytes = narrow(state(bytes_.optimizer, trained(), sharded_state::optimizer),
                                  "the sum of the optimizer bytes");
    check_sum(int128{cost.parameter_bytes} + cost.gradient_bytes + cost.optimizer_bytes,
              "the sum of the state bytes");
  }

  [[nodiscard]] int128 state(std::int64_t bytes, parameters_of_rank const& given,
                             sharded_state from) const {
    bool const is_shared = degrees_.sharding >= from;
    return bytes * (share_of(given.dense, is_shared ? dense_ranks() : 1) +
                    share_of(given.expert, is_shared ? expert_ranks() : 1));
  }

  /// Returns the bytes that are whole only while the layer runs, if each parameter has `bytes`
  /// bytes. Parameters are gathered before they are used; gradients are whole until they are
  /// reduced.
  [[nodiscard]] int128 gathered(std::int64_t bytes, parameters_of_rank const& given,
                                sharded_state from) const {
    if (degrees_.sharding < from) return 0;
    return bytes * ((dense_ranks() > 1 ? given.dense : int128{0}) +
                    (expert_ranks() > 1 ? given.expert : int128{0}));
  }

  [[nodiscard]] int128 gathered_bytes() const {
    parameters_of_rank const borrowed{.dense = borrowed_parameters_};
    return gathered(bytes_.parameter, all(), sharded_state::parameters) +
           gathered(bytes_.parameter, borrowed, sharded_state::parameters) +
           gathered(bytes_.matrix_copy, copied_, sharded_state::parameters) +
           gathered(bytes_.gradient, trained(), sharded_state::gradients) +
           gathered(is_trained() ? bytes_.gradient : 0, borrowed, sharded_state::gradients);
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

  struct both_passes {
    int128 forward = 0;
    int128 backward = 0;
  };

  std::string_view function_;
  parallel_degrees degrees_;
  byte_sizes bytes_;
  training_mode training_;
  recomputed_tensors selective_;

  parameters_of_rank base_{};
  parameters_of_rank adapters_{};
  parameters_of_rank copied_{};
  std::int64_t adapter_rank_ = 0;
  int128 borrowed_parameters_ = 0;
  int128 active_parameters_ = 0;
  int128 linear_flops_ = 0;
  int128 adapter_flops_ = 0;
  int128 again_flops_ = 0;
  both_passes detached_flops_{};
  int128 score_flops_ = 0;
  int128 moved_bytes_ = 0;
  int128 kept_bytes_ = 0;
  int128 remade_bytes_ = 0;
  int128_work remade_work_{};
  int128 widest_bytes_ = 0;
};

/// The shape of a matrix of parameters, which multiplies rows of `inputs` numbers.
struct weight_matrix {
  int128 inputs = 0;
  int128 outputs = 0;
  bool has_bias = false;

  [[nodiscard]] int128 weights() const { return inputs * outputs; }
  [[nodiscard]] int128 biases() const { return has_bias ? outputs : int128{0}; }
};

/// Adds a matrix whose output columns are split over the tensor-parallel ranks.
inline void add_split_columns(layer_tally& tally, int128 rows, weight_matrix const& matrix) {
  tally.parameters(matrix.weights() + matrix.biases(), tensor_sharding::split);
  tally.copies(matrix.weights(), tensor_sharding::split);
  tally.linear_flops(2 * rows * matrix.weights(), tensor_sharding::split);
  tally.adapter(rows, matrix.inputs, tensor_sharding::whole, matrix.outputs,
                tensor_sharding::split);
}

/// Adds a matrix whose input rows are split over the tensor-parallel ranks; each rank has the whole
/// bias.
inline void add_split_rows(layer_tally& tally, int128 rows, weight_matrix const& matrix) {
  tally.parameters(matrix.weights(), tensor_sharding::split);
  tally.parameters(matrix.biases(), tensor_sharding::whole);
  tally.copies(matrix.weights(), tensor_sharding::split);
  tally.linear_flops(2 * rows * matrix.weights(), tensor_sharding::split);
  tally.adapter(rows, matrix.inputs, tensor_sharding::split, matrix.outputs,
                tensor_sharding::whole);
}

/// Adds a matrix that every rank has. Each rank multiplies the tokens that it has between norms.
inline void add_whole(layer_tally& tally, int128 rows, weight_matrix const& matrix) {
  tally.parameters(matrix.weights() + matrix.biases(), tensor_sharding::whole);
  tally.copies(matrix.weights(), tensor_sharding::whole);
  tally.linear_flops(2 * rows * matrix.weights(), tensor_sharding::at_norm);
  tally.adapter(rows, matrix.inputs, tensor_sharding::whole, matrix.outputs,
                tensor_sharding::whole);
}

/// Adds a matrix that every rank has, without gradients of its inputs.
inline void add_detached(layer_tally& tally, int128 rows, int128 inputs, int128 outputs) {
  tally.parameters(inputs * outputs, tensor_sharding::whole);
  tally.copies(inputs * outputs, tensor_sharding::whole);
  int128 const flops = 2 * rows * inputs * outputs;
  tally.detached_flops(flops, flops, tensor_sharding::at_norm);
}

/// Adds a matrix that every rank has and that always has the type of the parameters, such as a
/// router.
inline void add_small(layer_tally& tally, int128 rows, weight_matrix const& matrix) {
  tally.parameters(matrix.weights() + matrix.biases(), tensor_sharding::whole);
  tally.linear_flops(2 * rows * matrix.weights(), tensor_sharding::at_norm);
}

/// Returns the number of weights and biases that a norm has for each number of its input.
[[nodiscard]] constexpr std::int64_t numbers_of(norm_kind kind) {
  if (kind == norm_kind::unweighted) return 0;
  return kind == norm_kind::layer ? 2 : 1;
}

/// Adds a norm whose output is the input of a matrix: the layer keeps both its input and its
/// output.
inline void add_norm(layer_tally& tally, int128 rows, int128 width, norm_kind kind) {
  tally.parameters(numbers_of(kind) * width, tensor_sharding::whole);
  int128 const bytes = tally.activation_bytes(rows * width);
  tally.keep(bytes, tensor_sharding::at_norm);
  tally.keep(tally.matrix_input_bytes(rows * width), tensor_sharding::at_norm,
             backward_use::for_weights, recomputed_tensors::elementwise, {0, 2 * bytes});
  tally.widest(2 * bytes, tensor_sharding::at_norm);
}

/// Adds a norm whose output is added to a residual sum: the layer keeps only its input.
inline void add_output_norm(layer_tally& tally, int128 rows, int128 width, norm_kind kind) {
  tally.parameters(numbers_of(kind) * width, tensor_sharding::whole);
  int128 const bytes = tally.activation_bytes(rows * width);
  tally.keep(bytes, tensor_sharding::at_norm);
  tally.moved(2 * bytes, tensor_sharding::at_norm);
  tally.widest(2 * bytes, tensor_sharding::at_norm);
}

/// Returns the cost of a layer that consists only of a norm, after the last layer of a tower.
[[nodiscard]] inline layer_cost norm_cost(layer_tally& tally, int128 rows, std::int64_t hidden,
                                          norm_kind kind) {
  int128 const numbers = tally.activation_bytes(rows * hidden);
  add_output_norm(tally, rows, hidden, kind);
  return tally.result({numbers, tensor_sharding::at_norm}, {numbers, tensor_sharding::at_norm});
}

}  // namespace omnibal::inline v0::detail
