#pragma once

/// \file
/// The most even stages of a chain under any cost of a stage.

#include <omnibal/concepts.hpp>
#include <omnibal/partition/detail/solve_stages.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/partition_layers_options.hpp>

#include <cstddef>
#include <string_view>

namespace omnibal::inline v0 {

struct partition_layers_fn {
  /// Stages with the smallest possible largest cost, exactly, for any cost of a stage: it may
  /// depend on the stage, and on what is sent at its cuts. Of all such stages those with the
  /// leftmost cuts: the first boundaries in lexicographic order.
  ///
  /// If `options.constraints.devices` is less than `stages`, a device runs several stages, and
  /// `objective` is the smallest largest load of a device: the sum of the costs of its stages. Among
  /// the stages with that load, a local search looks for a short step of the interleaved schedule
  /// with four micro-batches for each device. They need not be the leftmost. The smallest load can
  /// need uneven chunks, and a step is then longer than with equal counts of layers. If the number
  /// of micro-batches is known, use `partition_throughput`, which compares the steps themselves.
  ///
  /// `layers` is their number, or a range of which only the size counts. `cost(stage, first, last)`
  /// is what the layers [first, last) cost as that stage, `fits(stage, first, last)` says whether
  /// they may be it. Both are called for stages with layers only, with the same arguments more than
  /// once, and for few of all possible ones; an empty stage costs nothing. A cost equal to the
  /// largest value of its type means that the stage cannot run.
  ///
  /// `options.constraints` has the memory and what is fixed about the cuts. Where no stages satisfy
  /// memory and predicate the result is `infeasible` and says what is missing. Stages that share
  /// devices are found exactly as long as `options.labels` suffice; `proven` is false where they
  /// did not, and the result is `not_found` where no stages were found then.
  ///
  /// Dynamic programming over the boundaries. With `options.base` a greedy walk finds good stages;
  /// their bottleneck then leaves each boundary a window and each stage few ends. The result is the
  /// same. Costs need not grow with the layers.
  ///
  /// Complexity: n^2 stages costs at worst; with a base a small multiple of the windows' widths,
  /// about 5 for each layer at n = 97 on 16 stages and 8 at n = 1000 on 64. Memory: 8 bytes for
  /// each position of each window, and about 30 per layer and stage. Determinism: portable for
  /// integers. Errors: `std::invalid_argument` for a cost that is negative, not finite, above
  /// 2^63 - 1 or below its base, fewer layers than stages where empty ones are forbidden, lists of
  /// the wrong length, and constraints that contradict each other, which are named;
  /// `std::overflow_error` where the sum of `base`, of the bytes or, with devices, of the
  /// stages leaves its type; `std::length_error` above 2^32 - 1 layers or stages. Source: after Pinar, Aykanat, "Fast
  /// optimal load balancing algorithms for 1D partitioning", JPDC 2004.
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

/// The most even stages under any cost of a stage; see `partition_layers_fn`.
inline constexpr partition_layers_fn partition_layers{};

}  // namespace omnibal::inline v0
