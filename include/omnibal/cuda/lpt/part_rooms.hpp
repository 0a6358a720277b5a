// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Limits on the numbers of samples of parts.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/fault.hpp>

#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Limits on the numbers of samples of parts: parts with `floor` or more samples are full, except
/// that `extra_left` of them may still receive one more. No limit by default. `longest_first`
/// counts `extra_left` down.
struct part_rooms {
  std::uint32_t floor = ~std::uint32_t{0};
  std::uint32_t extra_left = 0;

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool is_unlimited() const { return floor + 1 == 0; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool is_full(std::uint32_t count) const {
    return count >= floor && (extra_left == 0 || count > floor);
  }
};

/// Returns the limits of a policy for a step of `samples` samples. Raises a fault if counts must be
/// equal but the parts do not divide the samples.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline part_rooms rooms_of(count_policy policy,
                                                             std::uint32_t samples,
                                                             std::uint32_t parts, fault* faults) {
  if (policy == count_policy::any) return {};
  std::uint32_t const extra = samples % parts;
  if (policy == count_policy::equal && extra != 0) raise(faults, fault::uneven_counts);
  return {samples / parts, extra};
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
