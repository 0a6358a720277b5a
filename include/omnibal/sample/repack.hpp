#pragma once

/// \file
/// Another packing in every epoch.

#include <omnibal/concepts.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/sample/epoch.hpp>

#include <concepts>
#include <cstdint>
#include <functional>

namespace omnibal::inline v0 {

/// A functor from a seed to a packing.
template <class Pack>
concept seeded_packer = requires(Pack const& pack, std::uint64_t seed) {
  { std::invoke(pack, seed) } -> std::same_as<packing>;
};

struct repack_fn {
  /// The packing of one epoch: `pack(epoch_seed(seed, epoch))`, where `pack` hands its seed to what
  /// is random in it, such as `rng::fisher_yates{its seed}` for `isf`.
  ///
  /// A function of seed and epoch, so that a training run that resumes in the middle of an epoch
  /// has the same groups: the packing of `state.epoch` goes with a state of that epoch. Complexity,
  /// memory, determinism and errors: those of `pack`.
  template <seeded_packer Pack>
  [[nodiscard]] packing operator()(std::uint64_t seed, std::uint64_t epoch,
                                   Pack const& pack) const {
    return std::invoke(pack, epoch_seed(seed, epoch));
  }
};

/// Another packing in every epoch; see `repack_fn`.
inline constexpr repack_fn repack{};

}  // namespace omnibal::inline v0
