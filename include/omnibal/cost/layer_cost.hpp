#pragma once

/// \file
/// How a layer is spread over ranks, how many bytes its numbers take, and what it costs: the result
/// of every layer model, and what a trainer's own model returns.

#include <omnibal/cost/workload.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

/// Where the activations between the tensor-parallel products lie: the inputs and outputs of norms
/// and residual sums.
enum class norm_regions {
  replicated,  ///< all of them on every tensor-parallel rank
  split,       ///< shared out over these ranks (sequence parallelism of Korthikanti et al.)
};

/// What data-parallel ranks share out instead of each having all of it. Each choice includes those
/// before it.
enum class sharded_state { nothing, optimizer, gradients, parameters };

/// The ranks that work on one layer. All numbers of a `layer_cost` are those of one of them, where
/// they differ of the one with the most.
struct parallel_degrees {
  /// Ranks that share the matrices. Must divide the heads and the widths of the hidden layers;
  /// where it exceeds the key-value heads, it must be a multiple of them, and ranks have copies.
  std::int64_t tensor = 1;
  /// Ranks that share the tokens of every sequence (context parallelism, ring attention, Ulysses).
  std::int64_t sequence = 1;
  /// Ranks that have micro-batches of their own. They and the ranks of `sequence` share the state.
  std::int64_t data = 1;
  /// Ranks that share the routed experts; they are some of those of `data` and `sequence`, so that
  /// it must divide the product of these. The routing is taken to be even.
  std::int64_t expert = 1;
  norm_regions norms = norm_regions::replicated;
  sharded_state sharding = sharded_state::optimizer;
};

/// Bytes of one number: the default is training in bf16 with gradients in fp32 and the three fp32
/// numbers of Adam.
struct byte_sizes {
  std::int64_t activation = 2;
  std::int64_t parameter = 2;
  std::int64_t gradient = 4;
  std::int64_t optimizer = 12;
};

/// What of a layer is trained.
enum class training_mode {
  all,
  /// Nothing, but gradients pass through it to what is trained before it.
  input_gradients,
  /// Nothing, and no gradients pass: there is no backward pass and nothing is kept.
  forward_only,
};

/// Floating-point operations of matrix products, and the bytes that all other operations read and
/// write where each of them (norm, activation, residual sum, unfused softmax and dropout) is a
/// kernel of its own.
struct work {
  std::int64_t flops = 0;
  std::int64_t moved_bytes = 0;

  [[nodiscard]] friend bool operator==(work const&, work const&) = default;
};

/// What a layer keeps for its backward pass.
enum class recompute_choice {
  none,       ///< everything
  selective,  ///< all but what is cheapest to make again
  full,       ///< its input
};

/// What one choice takes.
struct recompute_cost {
  /// Kept from the forward pass of a micro-batch to its backward pass.
  std::int64_t kept_bytes = 0;
  /// Beyond that, while the layer itself runs: what is made again, and the gradients of its widest
  /// operation.
  std::int64_t transient_bytes = 0;
  /// To make again what is not kept.
  work extra{};

  [[nodiscard]] friend bool operator==(recompute_cost const&, recompute_cost const&) = default;
};

/// What a layer costs one rank for one micro-batch.
struct layer_cost {
  work forward{};
  work backward{};
  /// Numbers on this rank, before data-parallel ranks share them out.
  std::int64_t parameters = 0;
  /// Those that a token uses: all of them, or those of the active experts.
  std::int64_t active_parameters = 0;
  std::int64_t parameter_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  /// By `recompute_choice`.
  std::array<recompute_cost, 3> choices{};
  /// Sent to the next stage where the model is cut after this layer.
  std::int64_t cut_bytes = 0;

  [[nodiscard]] constexpr recompute_cost const& operator[](recompute_choice choice) const {
    return choices[static_cast<std::size_t>(choice)];
  }
  /// Forward and backward, without making anything again.
  [[nodiscard]] constexpr std::int64_t flops() const { return forward.flops + backward.flops; }
  /// Parameters, gradients and optimizer: what does not depend on the micro-batches in flight.
  [[nodiscard]] constexpr std::int64_t state_bytes() const {
    return parameter_bytes + gradient_bytes + optimizer_bytes;
  }

  [[nodiscard]] friend bool operator==(layer_cost const&, layer_cost const&) = default;
};

/// A functor from a workload and the ranks to what one layer costs.
template <class Layer>
concept layer_model = std::regular_invocable<Layer const&, workload const&, parallel_degrees const&,
                                             byte_sizes const&> &&
    std::same_as<std::invoke_result_t<Layer const&, workload const&, parallel_degrees const&,
                                      byte_sizes const&>,
                 layer_cost>;

}  // namespace omnibal::inline v0
