#pragma once

/// \file
/// The stages with the shortest step of a pipeline.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/partition/detail/best_stages.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_result.hpp>

#include <cstddef>
#include <string_view>

namespace omnibal::inline v0 {

namespace detail {

/// The stages of `partition_throughput` in the name of another function, which errors begin with.
/// Precondition: there are micro-batches.
template <class C, class Cost, class Fits>
[[nodiscard]] partition_result<C> throughput_stages(
    std::string_view function, std::size_t layers, std::size_t stages, Cost const& cost,
    Fits const& fits, partition_throughput_options<C> const& options) {
  step_time<C> const time{.of_bottleneck = options.micro_batches - 1, .of_sum = 1};
  return best_stages(function, layers, stages, cost, fits, options, time);
}

}  // namespace detail

struct partition_throughput_fn {
  /// Stages with the shortest step: of (micro-batches - 1) times the largest cost of a stage plus
  /// the sum of all costs, which is how long a pipeline takes. Of several those with the smallest
  /// bottleneck, of several of these the leftmost as in `partition_layers`, and all else as there.
  /// `objective` is the time of the step; floating-point costs are added from the last stage to
  /// the first.
  ///
  /// First the smallest bottleneck is found, then the smallest sum under limits that fall from one
  /// bottleneck to the next, as far as they can still pay.
  ///
  /// Complexity: as `partition_layers`, and then for each bottleneck that is tried a pass over the
  /// same windows, in which every end of a stage is looked at that the lower bound leaves.
  /// Determinism: portable for integers. Errors: those of `partition_layers`,
  /// `std::invalid_argument` for no micro-batches or more than 2^32 - 1, and `std::overflow_error`
  /// where the sum of the stages or the time of a step leaves its type, or the sum is the largest
  /// value of it.
  template <layer_chain Layers, stage_cost Cost, stage_predicate Fits = fits_always>
  [[nodiscard]] auto operator()(
      Layers const& layers, std::size_t stages, Cost const& cost, Fits const& fits = {},
      partition_throughput_options<detail::stage_weight_of<Cost>> const& options = {}) const {
    std::size_t const count = options.micro_batches;
    if (count == 0 || count > max_index_count) {
      detail::throw_invalid(name, "options.micro_batches is " + detail::to_text(count) +
                                      ", must be positive and below 2^32");
    }
    return detail::throughput_stages(name, detail::count_layers(name, layers), stages, cost, fits,
                                     options);
  }

 private:
  static constexpr std::string_view name = "partition_throughput";
};

/// The stages with the shortest step; see `partition_throughput_fn`.
inline constexpr partition_throughput_fn partition_throughput{};

}  // namespace omnibal::inline v0
