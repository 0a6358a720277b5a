#pragma once

/// \file
/// Independent seeds for the epochs of a training run.

#include <omnibal/config.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// The seed of one epoch: the first word of stream `epoch` of `rng::engine`. All samplers use it,
/// so that whatever else changes from epoch to epoch may use it too. Seeds of different epochs are
/// different and as good as independent. Determinism: portable, the same on host and device.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t epoch_seed(std::uint64_t seed,
                                                                     std::uint64_t epoch) {
  return rng::engine(seed, epoch).word(0);
}

}  // namespace omnibal::inline v0
