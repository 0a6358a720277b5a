#pragma once

/// \file
/// Which samples belong to which step, as device code sees it.

#include <omnibal/config.hpp>
#include <omnibal/cuda/cost_steps.hpp>
#include <omnibal/cuda/detail/atomics.hpp>
#include <omnibal/cuda/fault.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// The samples of one step.
struct step_range {
  std::uint32_t first;
  std::uint32_t size;
};

/// The costs of steps; see `cost_steps`.
class step_table {
 public:
  step_table(cost_steps const& steps, fault* faults)
      : costs_(steps.costs.data()),
        offsets_(steps.offsets.data()),
        count_(static_cast<std::uint32_t>(steps.costs.size())),
        steps_(static_cast<std::uint32_t>(steps.step_count)),
        largest_(static_cast<std::uint32_t>(steps.largest_step)),
        faults_(faults) {}

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t steps() const { return steps_; }
  /// The most samples of a step.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t largest() const { return largest_; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE fault* faults() const { return faults_; }

  /// The samples of a step; none, and a fault, where its offsets are wrong or it has too many.
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

  /// The step of a sample, or the number of steps where the sample is behind the last one.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t step_of(std::size_t sample) const {
    if (offsets_ == nullptr) return 0;
    std::uint32_t low = 0;
    std::uint32_t high = steps_;
    while (low != high) {
      std::uint32_t const middle = low + (high - low) / 2;
      if (offsets_[middle + 1] <= sample) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /// The cost of a sample as it is given.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t given_cost(std::size_t sample) const {
    return static_cast<std::uint64_t>(costs_[sample]);
  }
  /// A cost; zero, and a fault, where it was negative.
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

}  // namespace omnibal::inline v0::gpu::detail
