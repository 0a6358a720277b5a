#pragma once

/// \file
/// What the time of a step means: used share of the devices, and their days.

#include <omnibal/check.hpp>

#include <string_view>

namespace omnibal::inline v0 {

/// A step of all devices together.
struct measured_step {
  /// Forward and backward of all layers and micro-batches on all ranks. With what is made again it
  /// is the hardware's utilisation, without it the model's.
  double flops = 0.0;
  double seconds = 0.0;
  double gpus = 0.0;
  double peak_flops_per_gpu_second = 0.0;
};

struct flops_utilisation_fn {
  /// The share of the peak FLOPs of the devices that a step used: MFU.
  ///
  /// Complexity: constant. Allocates nothing. Determinism: portable. Errors:
  /// `std::invalid_argument` for a number that is not finite and positive; FLOPs may be zero.
  /// Source: Chowdhery et al., "PaLM", 2022 (arXiv 2204.02311), appendix B.
  [[nodiscard]] double operator()(measured_step const& step) const {
    constexpr std::string_view name = "flops_utilisation";
    if (!detail::is_valid_weight(step.flops)) {
      detail::throw_invalid(
          name, "flops is " + detail::to_text(step.flops) + ", must be finite and not negative");
    }
    detail::check_positive(name, "seconds", step.seconds);
    detail::check_positive(name, "gpus", step.gpus);
    detail::check_positive(name, "peak_flops_per_gpu_second", step.peak_flops_per_gpu_second);
    return step.flops / step.seconds / step.gpus / step.peak_flops_per_gpu_second;
  }
};

/// The used share of the devices' peak; see `flops_utilisation_fn`.
inline constexpr flops_utilisation_fn flops_utilisation{};

/// Training from the first step to the last.
struct training_run {
  double steps = 0.0;
  double seconds_per_step = 0.0;
  double gpus = 0.0;
};

struct gpu_days_fn {
  /// steps * seconds_per_step * gpus / 86400.
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

/// Devices times days; see `gpu_days_fn`.
inline constexpr gpu_days_fn gpu_days{};

}  // namespace omnibal::inline v0
