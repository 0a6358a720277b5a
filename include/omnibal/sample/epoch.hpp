// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The order, the seed and the state of an epoch, and the place of a process among the ranks, for
/// all samplers.

#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/rng/engine.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace omnibal::inline v0 {

/// The order of the samples in an epoch.
enum class sample_order {
  /// A random order, different in every epoch.
  shuffled,
  /// The order of the indices.
  given,
};

/// Returns the seed of one epoch: the first word of stream `epoch` of `rng::engine`. All samplers
/// use this seed. Other code that must change from epoch to epoch may use the same seed. Different
/// epochs have different seeds, which behave like independent random numbers. Determinism:
/// portable, the same on host and device.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t epoch_seed(std::uint64_t seed,
                                                                     std::uint64_t epoch) {
  return rng::engine(seed, epoch).word(0);
}

/// The rank of a process, and the number of processes that train together. Ranks count from zero.
struct shard {
  std::size_t ranks = 1;
  std::size_t rank = 0;

  [[nodiscard]] friend bool operator==(shard const&, shard const&) = default;
};

/// Consecutive steps of one epoch that ran with the same number of ranks. In each step every rank
/// took `batch` samples or groups.
struct sampler_segment {
  std::uint32_t ranks = 0;
  std::uint32_t batch = 0;
  std::uint64_t step_count = 0;

  [[nodiscard]] friend bool operator==(sampler_segment const&, sampler_segment const&) = default;
};

/// The largest number of changes of the ranks within an epoch of `step_sampler` and
/// `level_sampler`. A run with more changes cannot resume: the constructor throws.
/// `rank_changes_left()` returns the number of remaining changes. In `epoch_sampler` the ranks and
/// their batch may change any number of times.
inline constexpr std::size_t max_rank_changes = 8;

/// The largest number of ranks that a sampler supports.
inline constexpr std::uint32_t max_ranks = std::uint32_t{1} << 20;

/// The largest number of samples in an epoch of a sampler without an index array.
inline constexpr std::uint64_t max_samples = (std::uint64_t{1} << 63) - 1;

/// The state of a sampler, the same on all ranks. The future of the sampler depends only on the
/// state, the data and the options. Trivially copyable, without padding and without pointers, so
/// that a checkpoint may hold its bytes or its members. A processor with another order of bytes
/// refuses the bytes and continues from the members.
///
/// The constructor of a sampler checks the given state and throws if no sampler of the same data
/// could have that state.
struct sampler_state {
  std::uint64_t seed = 0;
  /// The epoch that runs, or that has just ended.
  std::uint64_t epoch = 0;
  /// A digest of the data and of the options that affect the steps.
  std::uint64_t digest = 0;
  /// The steps of the epoch that have run, as segments from the oldest on; the other elements are
  /// zeros. If the ranks of an `epoch_sampler` change more than `max_rank_changes` times, segments
  /// of one rank replace the oldest segments. The new segments have the same number of steps and of
  /// samples as the segments that they replace.
  sampler_segment segments[max_rank_changes + 1] = {};
  /// The number of samples or groups that the previous epoch left over for this one.
  std::uint64_t carried = 0;

  [[nodiscard]] friend bool operator==(sampler_state const&, sampler_state const&) = default;
};

/// A functor from a seed to a packing.
template <class Pack>
concept seeded_packer = requires(Pack const& pack, std::uint64_t seed) {
  { std::invoke(pack, seed) } -> std::same_as<packing>;
};

struct repack_fn {
  /// Returns the packing of one epoch: `pack(epoch_seed(seed, epoch))`. `pack` should use its
  /// argument as the seed of its random parts, such as `rng::fisher_yates{seed}` for `isf`.
  ///
  /// The result depends only on the seed and the epoch. A training run that resumes in the middle
  /// of an epoch therefore has the same groups if it repacks for `state.epoch`. Complexity, memory,
  /// determinism and errors: as for `pack`.
  template <seeded_packer Pack>
  [[nodiscard]] packing operator()(std::uint64_t seed, std::uint64_t epoch,
                                   Pack const& pack) const {
    return std::invoke(pack, epoch_seed(seed, epoch));
  }
};

/// Returns a different packing for every epoch; see `repack_fn`.
inline constexpr repack_fn repack{};

}  // namespace omnibal::inline v0
