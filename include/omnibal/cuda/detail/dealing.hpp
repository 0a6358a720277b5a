// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The part and the position of each sample after dealing, by arithmetic.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>

#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// The assignment of the samples of a step, in descending order of cost, to parts in rounds. A
/// round assigns one sample to each part, in ascending order of the parts in even rounds and in
/// descending order in odd rounds.
class dealing {
 public:
  OMNIBAL_HOST_DEVICE dealing(std::uint32_t samples, std::uint32_t parts)
      : parts_(parts), rounds_(samples / parts), rest_(samples % parts) {}

  /// Returns the part of the sample at a place in the descending order of costs.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t part(std::uint32_t place) const {
    std::uint32_t const turn = place % parts_;
    return place / parts_ % 2 == 0 ? turn : parts_ - 1 - turn;
  }

  /// Returns the number of samples in the parts before `part`. For `part == parts` this is the
  /// number of all samples.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t offset(std::uint32_t part) const {
    std::uint32_t const others = parts_ - rest_;
    std::uint32_t const more = rounds_ % 2 == 0 ? smaller_of(part, rest_)
                               : part > others  ? part - others
                                                : 0;
    return part * rounds_ + more;
  }

  /// Returns the position, among the samples of all parts one part after the other, of the sample
  /// at a place.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t position(std::uint32_t place) const {
    return offset(part(place)) + place / parts_;
  }

 private:
  std::uint32_t parts_;
  std::uint32_t rounds_;
  std::uint32_t rest_;
};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
