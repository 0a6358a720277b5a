// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The costs and the samples of steps, in device code.

#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/fault.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// The samples of one step.
struct step_range {
  std::uint32_t first;
  std::uint32_t size;
};

/// The costs of steps; see `cost_steps`.
class step_table {
 public:
  step_table(cost_steps const& steps, std::int64_t const* costs, fault* faults)
      : costs_(costs),
        offsets_(steps.offsets.data()),
        count_(static_cast<std::uint32_t>(steps.costs.size())),
        steps_(static_cast<std::uint32_t>(steps.step_count)),
        largest_(static_cast<std::uint32_t>(steps.largest_step)),
        faults_(faults) {}

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t steps() const { return steps_; }
  /// Returns the largest number of samples of a step.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t largest() const { return largest_; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE fault* faults() const { return faults_; }

  /// Returns the samples of a step. If its offsets are wrong or it has more samples than
  /// `largest()`, raises a fault and returns no samples.
  [[nodiscard]] OMNIBAL_HOST_DEVICE step_range operator[](std::size_t step) const {
    if (offsets_ == nullptr) return {0, count_};
    std::uint32_t const first = offsets_[step];
    std::uint32_t const last = offsets_[step + 1];
    if (last < first || last > count_ || (step == 0 && first != 0)) {
      raise(faults_, fault::unknown_index);
      return {0, 0};
    }
    if (last - first > largest_) {
      raise(faults_, fault::no_room);
      return {first, 0};
    }
    return {first, last - first};
  }

  /// Returns the step of a sample, or the number of steps if the sample is behind the last step.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t step_of(std::size_t sample) const {
    if (offsets_ == nullptr) return 0;
    return first_false(std::uint32_t{0}, steps_,
                       [&](std::uint32_t step) { return offsets_[step + 1] <= sample; });
  }

  /// Returns the given cost of a sample, unchecked.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t given_cost(std::size_t sample) const {
    return static_cast<std::uint64_t>(costs_[sample]);
  }
  /// Returns the given cost. If it is negative, raises a fault and returns zero.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t checked(std::uint64_t given) const {
    if (given <= 0x7fffffffffffffffu) return given;
    raise(faults_, fault::invalid_amount);
    return 0;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t cost(std::size_t sample) const {
    return checked(given_cost(sample));
  }

 private:
  std::int64_t const* costs_;
  std::uint32_t const* offsets_;
  std::uint32_t count_;
  std::uint32_t steps_;
  std::uint32_t largest_;
  fault* faults_;
};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
