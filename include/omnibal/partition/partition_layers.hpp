// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Balanced stages of a chain under any cost of a stage.

#include <omnibal/concepts.hpp>
#include <omnibal/partition/detail/solve_stages.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/partition_layers_options.hpp>

#include <cstddef>
#include <string_view>

namespace omnibal::inline v0 {

struct partition_layers_fn {
  /// Partitions a chain into stages with the smallest possible largest cost, exactly, for any cost
  /// of a stage. The cost may depend on the stage and on the data that is sent at its cuts. Among
  /// all such partitions the result has the leftmost cuts: the boundaries that are first in
  /// lexicographic order.
  ///
  /// If `options.constraints.devices` is less than `stages`, a device runs several stages. The load
  /// of a device is the sum of the costs of its stages, and `objective` is the smallest possible
  /// value of the largest load of a device. Among the stages with this load, a local search
  /// minimizes the step of the interleaved schedule with four micro-batches for each device. The
  /// result then need not have the leftmost cuts. The smallest load can require uneven chunks, and
  /// a step is then longer than with equal counts of layers. If the number of micro-batches is
  /// known, use `partition_throughput`, which compares the steps themselves.
  ///
  /// `layers` is the number of layers, or a range of which only the size is used. `cost(stage,
  /// first, last)` is the cost of the layers [first, last) as that stage. The call `fits(stage,
  /// first, last)` returns true if these layers may be that stage. Both functors are called only
  /// for stages with layers and only for few of all possible stages; they may be called more than
  /// once with the same arguments. An empty stage has zero cost. A cost equal to the largest value
  /// of its type means that the stage cannot run.
  ///
  /// `options.constraints` contains the memory and the fixed cuts. If no stages satisfy the memory
  /// and the predicate, the status is `infeasible`, and the result has the stage and the missing
  /// bytes. If devices run several stages, the search is exact as long as `options.labels` suffice.
  /// If they do not suffice, `proven` is false; if no stages were found either, the status is
  /// `not_found`.
  ///
  /// The method is dynamic programming over the boundaries. With `options.base`, a greedy walk
  /// finds good stages, whose bottleneck leaves each boundary a short window and each stage few
  /// ends. The result is the same as without a base. The costs need not grow with the number of
  /// layers.
  ///
  /// Complexity: n^2 * stages calls of `cost` in the worst case; with a base, a small multiple of
  /// the widths of the windows. Memory: 8 bytes for each position of each window, and about 30
  /// bytes for each layer and each stage. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` for a cost that is negative, not finite, above 2^63 - 1 or below its
  /// base, and for lists of the wrong length. It is also thrown for fewer layers than stages if
  /// empty stages are forbidden, and for constraints that contradict each other, which the error
  /// names. Further errors: `std::overflow_error` if the sum of `base`, of the bytes or, with
  /// devices, of the stages exceeds its type; `std::length_error` above 2^32 - 1 layers or stages.
  /// Source: after Pinar, Aykanat, "Fast optimal load balancing algorithms for 1D partitioning",
  /// JPDC 2004.
  template <layer_chain Layers, stage_cost Cost, stage_predicate Fits = fits_always>
  [[nodiscard]] auto operator()(
      Layers const& layers, std::size_t stages, Cost const& cost, Fits const& fits = {},
      partition_layers_options<detail::stage_weight_of<Cost>> const& options = {}) const {
    return detail::solve_stages(name, detail::count_layers(name, layers), stages, cost, fits,
                                options, detail::step_time<detail::stage_weight_of<Cost>>{});
  }

 private:
  static constexpr std::string_view name = "partition_layers";
};

/// Partitions a chain into the most balanced stages under any cost of a stage; see
/// `partition_layers_fn`.
inline constexpr partition_layers_fn partition_layers{};

}  // namespace omnibal::inline v0
