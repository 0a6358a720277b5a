#pragma once

/// \file
/// How a layer is spread over ranks, and how many bytes its numbers take.

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

}  // namespace omnibal::inline v0
