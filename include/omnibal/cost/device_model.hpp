// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The time of work on a device, and the utilization and GPU days of a training run.

#include <omnibal/activation_option.hpp>
#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/quotients.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace omnibal::inline v0 {

/// The rates of one device, as a functor from work to nanoseconds. The result is rounded up to an
/// integer, so that decisions do not depend on floating-point rounding. Achieved rates predict
/// better than the rates on the data sheet.
///
/// Determinism: portable. Errors: `std::invalid_argument` for a rate that is not positive and for
/// negative work, `std::overflow_error` above 2^63 - 1 nanoseconds.
struct device_model {
  std::int64_t flops_per_second = 0;
  /// The memory bandwidth. With the default, moved bytes take no time.
  std::int64_t bytes_per_second = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] constexpr std::int64_t operator()(layer_work const& given) const {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr auto name = "device_model";
    detail::check_between(name, "flops_per_second", flops_per_second, 1, most);
    detail::check_between(name, "bytes_per_second", bytes_per_second, 1, most);
    detail::check_between(name, "flops", given.flops, 0, most);
    detail::check_between(name, "moved_bytes", given.moved_bytes, 0, most);
    constexpr std::int64_t second = 1'000'000'000;
    bool const counts_bytes = bytes_per_second != most;
    detail::int128 const nanoseconds =
        detail::share_of(detail::int128{given.flops} * second, flops_per_second) +
        (counts_bytes
             ? detail::share_of(detail::int128{given.moved_bytes} * second, bytes_per_second)
             : detail::int128{0});
    return detail::checked_cast<std::int64_t>(name, "the number of nanoseconds", nanoseconds);
  }
};

/// A functor from a layer to the nanoseconds of its forward and backward pass, including the
/// recomputation of one choice. Example: `stage_sum(costs, layer_time{device})`.
///
/// Determinism: portable. Errors: as `device_model`.
struct layer_time {
  device_model device{};
  recompute_choice recomputed = recompute_choice::none;

  [[nodiscard]] constexpr std::int64_t operator()(layer_cost const& layer) const {
    std::int64_t sum = device(layer.forward);
    detail::checked_add("layer_time", "the time of a layer", sum, device(layer.backward));
    detail::checked_add("layer_time", "the time of a layer", sum, device(layer[recomputed].extra));
    return sum;
  }
};

/// A functor from a layer to its choices, in the order of `recompute_choice` and with times in
/// nanoseconds. The time of a choice includes the forward and backward pass and the recomputation.
/// Example: `select_recompute(costs, timed_choices{device}, budget)`.
///
/// Determinism: portable. Errors: as `device_model`.
struct timed_choices {
  device_model device{};

  [[nodiscard]] constexpr std::array<activation_option<>, 3> operator()(
      layer_cost const& layer) const {
    std::array<activation_option<>, 3> result{};
    for (std::size_t i = 0; i != result.size(); ++i) {
      recompute_cost const& given = layer.choices[i];
      result[i] = {.time = layer_time{device, static_cast<recompute_choice>(i)}(layer),
                   .bytes = given.kept_bytes,
                   .transient_bytes = given.transient_bytes};
    }
    return result;
  }
};

/// The FLOPs and the time of a step, and its devices.
struct measured_step {
  /// The FLOPs of forward and backward passes of all layers and micro-batches on all ranks. With
  /// the FLOPs of recomputation, the result is the hardware FLOPs utilization (HFU); without them,
  /// it is the model FLOPs utilization (MFU).
  double flops = 0.0;
  double seconds = 0.0;
  double gpus = 0.0;
  double peak_flops_per_gpu_second = 0.0;
};

struct flops_utilization_fn {
  /// Returns the FLOPs of a step as a share of the peak FLOPs of its devices (MFU).
  ///
  /// Complexity: constant. Allocates nothing. Determinism: portable. Errors:
  /// `std::invalid_argument` for a number that is not finite and positive; FLOPs may be zero.
  /// Source: Chowdhery et al., "PaLM", 2022 (arXiv 2204.02311), appendix B.
  [[nodiscard]] double operator()(measured_step const& step) const {
    constexpr std::string_view name = "flops_utilization";
    detail::check_weight(name, "flops", step.flops);
    detail::check_positive(name, "seconds", step.seconds);
    detail::check_positive(name, "gpus", step.gpus);
    detail::check_positive(name, "peak_flops_per_gpu_second", step.peak_flops_per_gpu_second);
    return step.flops / step.seconds / step.gpus / step.peak_flops_per_gpu_second;
  }
};

/// Returns the FLOPs of a step as a share of the peak FLOPs of its devices; see
/// `flops_utilization_fn`.
inline constexpr flops_utilization_fn flops_utilization{};

/// The steps of a whole training, the time of one step, and the devices.
struct training_run {
  double steps = 0.0;
  double seconds_per_step = 0.0;
  double gpus = 0.0;
};

struct gpu_days_fn {
  /// Returns the GPU days of a training run, steps * seconds_per_step * gpus / 86400.
  ///
  /// Complexity: constant. Allocates nothing. Determinism: portable. Errors:
  /// `std::invalid_argument` for a number that is not finite and positive.
  [[nodiscard]] double operator()(training_run const& run) const {
    constexpr std::string_view name = "gpu_days";
    constexpr double seconds_per_day = 86400.0;
    detail::check_positive(name, "steps", run.steps);
    detail::check_positive(name, "seconds_per_step", run.seconds_per_step);
    detail::check_positive(name, "gpus", run.gpus);
    return run.steps * run.seconds_per_step / seconds_per_day * run.gpus;
  }
};

/// Returns the GPU days of a training run; see `gpu_days_fn`.
inline constexpr gpu_days_fn gpu_days{};

}  // namespace omnibal::inline v0
