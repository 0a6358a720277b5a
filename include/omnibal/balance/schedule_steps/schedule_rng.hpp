// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The random numbers of a schedule, from its seed and epoch.

#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/permutation.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// The random orders and words of a schedule. Each stage has its own random numbers, which do not
/// depend on the other stages.
class schedule_rng {
 public:
  constexpr schedule_rng(std::uint64_t seed, std::uint64_t epoch)
      : shuffle_{seed}, step_shuffle_{~seed}, words_(~seed, epoch), epoch_(epoch) {}

  /// Returns the random order of `count` groups.
  [[nodiscard]] constexpr rng::permutation groups(std::uint64_t count) const {
    return shuffle_.order(count, epoch_);
  }
  /// Returns the random order of `count` steps.
  [[nodiscard]] constexpr rng::permutation steps(std::uint64_t count) const {
    return step_shuffle_.order(count, epoch_);
  }
  /// Returns the random word of a round for the cell that begins at step `first`.
  [[nodiscard]] constexpr std::uint64_t of_cell(std::uint32_t round, std::uint32_t first) const {
    return words_.word(std::uint64_t{round} << 32 | first);
  }
  /// Returns the engine of `step_mixer`.
  [[nodiscard]] constexpr rng::engine of_mixer() const {
    return rng::engine(words_.word(~std::uint64_t{1}));
  }
  /// Returns the word from which the last step is chosen.
  [[nodiscard]] constexpr std::uint64_t of_last_step() const {
    return words_.word(~std::uint64_t{0});
  }

 private:
  rng::feistel shuffle_;
  rng::feistel step_shuffle_;
  rng::engine words_;
  std::uint64_t epoch_;
};

}  // namespace omnibal::inline v0::detail
