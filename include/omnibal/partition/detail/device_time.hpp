// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The time of a step if devices run several stages each.

#include <omnibal/partition/detail/stage_costs.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The time of a step, estimated from the load of the busiest device. In each micro-batch the
/// device is busy for its load. Filling the pipeline adds `(sum - load) / chunks`, which is exact
/// if all stages are equal.
///
/// `step` returns `chunks` times this time, so that integer costs have integer times. Without
/// micro-batches the time is the load.
template <class C>
struct device_time {
  std::size_t chunks = 1;  ///< the stages of a device, or one without micro-batches
  step_time<C> step{};

  device_time(step_time<C> const& one, std::size_t stages_of_device) : step(one) {
    if (one.of_sum == 0) return;
    chunks = stages_of_device;
    step.of_bottleneck = (one.of_bottleneck + 1) * chunks - 1;
  }

  /// Converts a value of `step` to the time of a step, rounded up.
  [[nodiscard]] wide_weight<C> operator()(wide_weight<C> time) const {
    auto const divisor = static_cast<wide_weight<C>>(chunks);
    if constexpr (std::floating_point<C>) {
      return time / divisor;
    } else {
      return time / divisor + (time % divisor != 0 ? 1 : 0);
    }
  }
};

/// The time of a step by the interleaved 1F1B schedule, in thirds of a cost. Backward passes last
/// twice as long as forward passes. Source: Narayanan et al., "Efficient large-scale language model
/// training on GPU clusters using Megatron-LM", SC 2021.
///
/// The number of micro-batches is rounded up to a multiple of the devices. If there are many
/// micro-batches, only the first ones are simulated, and the others are assumed to add equal times.
/// If even these have too many operations, the time of every step is zero. Times use only additions
/// and maxima of `double`, because these operations are portable.
class interleaved_step {
 public:
  interleaved_step(std::size_t devices, std::size_t stages, std::uint64_t micro_batches)
      : devices_(devices), chunks_(stages / devices) {
    std::uint64_t const groups = (micro_batches + devices - 1) / devices;
    exact_ = static_cast<std::size_t>(std::min<std::uint64_t>(groups, max_groups));
    repeated_ = static_cast<double>(groups - exact_);
    if (exact_ * devices * devices > max_operations / chunks_) exact_ = 0;
    forward_.resize(stages * exact_ * devices);
    backward_.resize(forward_.size());
    done_.resize(devices);
    clock_.resize(devices);
  }

  /// Returns the number of operations that a call simulates.
  [[nodiscard]] std::size_t operations() const {
    return (repeated_ > 0 ? 4 : 2) * chunks_ * exact_ * devices_ * devices_;
  }

  [[nodiscard]] double operator()(std::span<double const> costs) {
    if (exact_ == 0) return 0;
    double const whole = run(costs, exact_);
    if (repeated_ == 0) return whole;
    // One rounding with every compiler, whether or not it fuses products and sums.
    return std::fma(repeated_, whole - run(costs, exact_ - 1), whole);
  }

 private:
  static constexpr std::size_t max_groups = 6;
  /// The largest number of forward passes that are simulated; each requires 16 bytes.
  static constexpr std::size_t max_operations = std::size_t{1} << 22;
  static constexpr double not_yet = -1;

  /// The operations that a device has completed.
  struct progress {
    std::size_t forward = 0;
    std::size_t backward = 0;
  };

  [[nodiscard]] std::size_t micro_batch(std::size_t unit) const {
    return unit / (devices_ * chunks_) * devices_ + unit % devices_;
  }
  [[nodiscard]] std::size_t chunk(std::size_t unit) const { return unit / devices_ % chunks_; }

  double run(std::span<double const> costs, std::size_t groups) {
    std::size_t const micro_batches = groups * devices_;
    std::size_t const units = micro_batches * chunks_;
    std::fill(forward_.begin(), forward_.end(), not_yet);
    std::fill(backward_.begin(), backward_.end(), not_yet);
    std::fill(done_.begin(), done_.end(), progress{});
    std::fill(clock_.begin(), clock_.end(), 0.0);
    for (std::size_t left = 2 * units * devices_; left != 0;) {
      for (std::size_t d = 0; d != devices_; ++d) {
        while (done_[d].backward != units && run_next(costs, micro_batches, units, d)) --left;
      }
    }
    return *std::max_element(clock_.begin(), clock_.end());
  }

  /// Runs the next operation of a device. Returns false if its input has not arrived from another
  /// device.
  bool run_next(std::span<double const> costs, std::size_t micro_batches, std::size_t units,
                std::size_t d) {
    progress& done = done_[d];
    std::size_t const warm_up = 2 * (devices_ - d - 1) + (chunks_ - 1) * devices_;
    bool const is_forward = done.forward != units && done.forward <= done.backward + warm_up;
    std::size_t const unit = is_forward ? done.forward : done.backward;
    std::size_t const round = is_forward ? chunk(unit) : chunks_ - 1 - chunk(unit);
    std::size_t const stage = round * devices_ + d;
    std::size_t const batch = micro_batch(unit);
    double ready = 0;
    if (is_forward && stage != 0) {
      ready = forward_[(stage - 1) * micro_batches + batch];
    } else if (!is_forward && stage + 1 != costs.size()) {
      ready = backward_[(stage + 1) * micro_batches + batch];
    }
    if (ready == not_yet) return false;
    clock_[d] = std::max(clock_[d], ready) + (is_forward ? costs[stage] : 2 * costs[stage]);
    (is_forward ? forward_ : backward_)[stage * micro_batches + batch] = clock_[d];
    ++(is_forward ? done.forward : done.backward);
    return true;
  }

  std::size_t devices_;
  std::size_t chunks_;
  std::size_t exact_;            ///< groups of micro-batches that are simulated
  double repeated_;              ///< groups that last as long as the last simulated group
  std::vector<double> forward_;  ///< the end of each pass, by stage and micro-batch
  std::vector<double> backward_;
  std::vector<progress> done_;
  std::vector<double> clock_;
};

}  // namespace omnibal::inline v0::detail
