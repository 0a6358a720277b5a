// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The times of matrix products, attention, memory-bound work and collectives on a machine.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/machine.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0 {

/// The number format of the operands of matrix products.
enum class matmul_precision { bf16, fp8 };

/// `count` equal products of a matrix rows x depth and a matrix depth x columns.
struct matmul_shape {
  double count = 1;
  double rows = 0;
  double columns = 0;
  double depth = 0;

  [[nodiscard]] constexpr double flops() const { return 2 * count * rows * columns * depth; }

  [[nodiscard]] friend bool operator==(matmul_shape const&, matmul_shape const&) = default;
};

/// A functor that returns the seconds of matrix products. The time is the sum of two quotients: the
/// FLOPs divided by `matmul_flops_per_second`, and the bytes of the three matrices divided by
/// `operand_bytes_per_second`. Therefore the efficiency approaches its limit if all three sides
/// grow. In FP8 the rate is `fp8_gain` times as high, and the time includes the cast to FP8.
///
/// Complexity: constant. Allocates nothing. Determinism: portable. The functor checks nothing;
/// `predict_step` checks the machine.
struct matmul_time {
  /// The bytes of a number of an operand.
  double operand_bytes = 2;
  /// The bytes that the cast to FP8 moves for each number of the inputs and outputs.
  double cast_bytes = 2;

  [[nodiscard]] constexpr double operator()(machine const& on, matmul_shape const& shape,
                                            matmul_precision precision) const {
    double const inputs = shape.rows * shape.depth;
    double const outputs = shape.rows * shape.columns;
    double const numbers = shape.count * (inputs + outputs + shape.depth * shape.columns);
    double const gain = precision == matmul_precision::fp8 ? on.fp8_gain : 1.0;
    double seconds = shape.flops() / (on.matmul_flops_per_second * gain) +
                     operand_bytes * numbers / on.operand_bytes_per_second;
    if (precision == matmul_precision::fp8) {
      seconds += cast_bytes * shape.count * (inputs + outputs) / on.memory_bytes_per_second;
    }
    return seconds;
  }
};

/// The shape of the attention of one device: `squares` is the number of pairs of tokens without a
/// mask, summed over its sequences.
struct attention_shape {
  double tokens = 0;
  double squares = 0;
  double heads = 0;
  double query_size = 0;
  double value_size = 0;
  attention_kernel kernel = attention_kernel::flash;
  attention_mask mask = attention_mask::causal;
};

/// The seconds of the forward and of the backward pass.
struct pass_seconds {
  double forward = 0;
  double backward = 0;

  [[nodiscard]] friend bool operator==(pass_seconds const&, pass_seconds const&) = default;
};

/// A functor that returns the seconds of attention without its projections. A flash kernel computes
/// half of the products if the mask is causal; its backward pass has `flash_backward` times the
/// FLOPs. An unfused kernel computes all products at the rate of matrix products and moves
/// `bytes_per_score` bytes for each score. If the size of a head is not a multiple of 8, its
/// products do not use tensor cores; their rate is multiplied by `unaligned_share`.
///
/// Complexity: constant. Allocates nothing. Determinism: portable.
struct attention_time {
  double flash_backward = 2.5;
  double bytes_per_score = 20;
  double unaligned_share = 0.05;

  [[nodiscard]] constexpr pass_seconds operator()(machine const& on,
                                                  attention_shape const& shape) const {
    double const sizes = shape.query_size + shape.value_size;
    double const flops = 2 * shape.squares * shape.heads * sizes;
    if (shape.kernel == attention_kernel::flash) {
      double const share = shape.mask == attention_mask::causal ? 0.5 : 1.0;
      double const forward = share * flops / on.attention_flops_per_second;
      return {forward, flash_backward * forward};
    }
    double const rate =
        on.matmul_flops_per_second * (is_aligned(shape.query_size) ? 1.0 : unaligned_share);
    double const operands = 4 * shape.heads * (shape.squares + shape.tokens * sizes);
    double const products = flops / rate + operands / on.operand_bytes_per_second;
    double const scores =
        shape.heads * shape.squares * bytes_per_score / on.memory_bytes_per_second;
    return {products + scores, 2 * products + scores};
  }

 private:
  [[nodiscard]] static constexpr bool is_aligned(double size) {
    return static_cast<std::int64_t>(size) % 8 == 0;
  }
};

/// A functor that returns the seconds of memory-bound work.
struct memory_time {
  [[nodiscard]] constexpr double operator()(machine const& on, double bytes) const {
    return bytes / on.memory_bytes_per_second;
  }
};

/// A functor that returns the seconds of the optimizer. `passes` is the number of times that it
/// reads or writes the bytes of its state, including the traffic of parameters and gradients.
struct optimizer_time {
  double passes = 2.5;

  [[nodiscard]] constexpr double operator()(machine const& on, double state_bytes) const {
    return passes * state_bytes / on.memory_bytes_per_second;
  }
};

/// The kind of communication in a group of ranks.
enum class collective_kind {
  all_reduce,
  gather,    ///< an all-gather or a reduce-scatter
  exchange,  ///< an all-to-all
  ring,      ///< every rank passes a block to its neighbor, ranks - 1 times
  transfer,  ///< one rank sends to one other rank
};

/// A collective of `ranks` ranks that are `stride` devices apart.
struct collective {
  collective_kind kind = collective_kind::all_reduce;
  /// The bytes of the whole buffer of a rank; for `ring` the bytes of one block.
  double bytes = 0;
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
  /// The number of calls that share the bytes.
  double calls = 1;
  /// The number of random receivers of each number in an exchange: the active experts of a token.
  double copies = 1;
};

/// A functor that returns the seconds of collectives. Devices of a node have consecutive numbers. A
/// group within a node communicates at the rate of the node. A group over several nodes uses the
/// network links of all of its devices in a node. A call takes `hop_seconds` for each step of its
/// ring; an all-reduce uses a tree if the tree has fewer steps. An exchange sends the copies of a
/// number that have the same receiver once, and the copies for the same node once between nodes.
///
/// Complexity: constant; linear in `copies` for an exchange. Allocates nothing. Determinism:
/// portable.
struct collective_time {
  [[nodiscard]] constexpr double operator()(machine const& on, collective const& given) const {
    if (given.ranks <= 1) return 0;
    double const ranks = static_cast<double>(given.ranks);
    double const share = given.bytes * (ranks - 1) / ranks;
    double const rate = rate_of(on, given);
    switch (given.kind) {
      case collective_kind::all_reduce:
        return 2 * share / rate + given.calls * on.hop_seconds * 2 * reduce_steps(given.ranks);
      case collective_kind::gather:
        return share / rate + given.calls * on.hop_seconds * (ranks - 1);
      case collective_kind::ring:
        return given.bytes * (ranks - 1) / rate + given.calls * on.hop_seconds * ranks;
      case collective_kind::transfer:
        return given.bytes / (members(on, given) > 1 ? on.node_bytes_per_second
                                                     : on.network_bytes_per_second) +
               given.calls * on.hop_seconds;
      case collective_kind::exchange: break;
    }
    double const inside = static_cast<double>(members(on, given));
    double const to_ranks = given.bytes * different(ranks, given.copies) / given.copies;
    double const to_nodes = given.bytes * different(ranks / inside, given.copies) / given.copies;
    return to_ranks * (inside - 1) / ranks / on.exchange_bytes_per_second +
           to_nodes * (ranks - inside) / ranks / on.network_bytes_per_second +
           given.calls * on.hop_seconds * 2;
  }

 private:
  /// Returns the expected number of different receivers of `copies` copies. A copy has a new
  /// receiver if all copies before it have others.
  [[nodiscard]] static constexpr double different(double receivers, double copies) {
    double sum = 0;
    double is_new = 1;
    for (double i = 0; i < copies; ++i) {
      sum += is_new;
      is_new *= 1 - 1 / receivers;
    }
    return sum;
  }

  /// Returns the number of ranks of the group in one node.
  [[nodiscard]] static constexpr std::int64_t members(machine const& on, collective const& given) {
    return std::clamp<std::int64_t>(on.devices_per_node / given.stride, 1, given.ranks);
  }

  [[nodiscard]] static constexpr double rate_of(machine const& on, collective const& given) {
    std::int64_t const inside = members(on, given);
    if (inside == given.ranks) return on.node_bytes_per_second;
    return std::min(on.node_bytes_per_second,
                    on.network_bytes_per_second * static_cast<double>(inside));
  }

  [[nodiscard]] static constexpr double reduce_steps(std::int64_t ranks) {
    auto const levels = std::bit_width(static_cast<std::uint64_t>(ranks - 1));
    return std::min(static_cast<double>(ranks - 1), 2.0 * static_cast<double>(levels));
  }
};

/// A functor that returns the seconds by which communication lengthens work that runs at the same
/// time. The result is the part of the communication that is longer than the work, plus
/// `contention` times the overlapped part, because both share the memory and the cores of the
/// device.
struct overlap_time {
  double contention = 0.25;

  [[nodiscard]] constexpr double operator()(double communication, double work) const {
    return std::max(0.0, communication - work) + contention * std::min(communication, work);
  }
};

/// The functors that return the times of the parts of a step; each of them can be replaced.
template <class Matmul = matmul_time, class Attention = attention_time, class Memory = memory_time,
          class Optimizer = optimizer_time, class Collective = collective_time,
          class Overlap = overlap_time>
struct step_pieces {
  Matmul matmul{};
  Attention attention{};
  Memory memory{};
  Optimizer optimizer{};
  Collective communicate{};
  Overlap overlap{};
};

}  // namespace omnibal::inline v0
