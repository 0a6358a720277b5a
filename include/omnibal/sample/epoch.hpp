#pragma once

/// \file
/// What samplers share: the order of an epoch, its seed, and the share of a process.

#include <omnibal/config.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

/// The order in which an epoch takes its samples.
enum class sample_order {
  /// A random one, another in every epoch.
  shuffled,
  /// That of their indices.
  given,
};

/// The seed of one epoch: the first word of stream `epoch` of `rng::engine`. All samplers use it,
/// so that whatever else changes from epoch to epoch may use it too. Seeds of different epochs are
/// different and as good as independent. Determinism: portable, the same on host and device.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t epoch_seed(std::uint64_t seed,
                                                                     std::uint64_t epoch) {
  return rng::engine(seed, epoch).word(0);
}

/// One of `ranks` processes that train together; `rank` counts from zero.
struct shard {
  std::size_t ranks = 1;
  std::size_t rank = 0;

  [[nodiscard]] friend constexpr bool operator==(shard const&, shard const&) = default;
};

}  // namespace omnibal::inline v0
