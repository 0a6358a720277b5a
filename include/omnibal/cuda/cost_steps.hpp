#pragma once

/// \file
/// Costs on the device, of one step or of many.

#include <omnibal/cuda/device_span.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu {

/// Costs on the device that are balanced step by step, all steps in one call: those of a global
/// batch, or of every step of an epoch. Trivially copyable; the arrays live elsewhere.
///
/// `offsets` has the position of the first sample of each step and after them that of the end: the
/// samples of step s are [offsets[s], offsets[s + 1]), and the first offset is zero. Without
/// offsets all costs are one step. The end may lie before that of the costs, so that a number of
/// samples that only the device knows is one step with the offsets 0 and that number.
struct cost_steps {
  /// No step.
  cost_steps() = default;

  /// One step of all costs.
  template <std::convertible_to<device_span<std::int64_t const>> Costs>
  cost_steps(Costs const& of_samples)
      : costs(of_samples), step_count(1), largest_step(costs.size()) {}

  /// `offsets.size() - 1` steps. `most_samples` is what the host knows of the largest of them; the
  /// smaller it is the more runs in shared memory.
  cost_steps(device_span<std::int64_t const> of_samples,
             device_span<std::uint32_t const> step_offsets, std::size_t most_samples)
      : costs(of_samples),
        offsets(step_offsets),
        step_count(step_offsets.empty() ? 0 : step_offsets.size() - 1),
        largest_step(most_samples < costs.size() ? most_samples : costs.size()) {}

  device_span<std::int64_t const> costs;
  device_span<std::uint32_t const> offsets;
  std::size_t step_count = 0;
  std::size_t largest_step = 0;
};

}  // namespace omnibal::inline v0::gpu
