#pragma once

/// \file
/// What samplers share: the order of an epoch, its seed, the share of a process, and what a
/// checkpoint holds; and other groups for another epoch.

#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/rng/engine.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>

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

/// Steps of one epoch that ran one after the other with the same number of ranks, each of which
/// took `batch` samples or groups in a step.
struct sampler_segment {
  std::uint32_t ranks = 0;
  std::uint32_t batch = 0;
  std::uint64_t step_count = 0;

  [[nodiscard]] friend constexpr bool operator==(sampler_segment const&,
                                                 sampler_segment const&) = default;
};

/// How often the ranks may change within an epoch of `step_sampler` and `level_sampler`. A run that
/// changes them more often is refused when it resumes; `rank_changes_left()` says before how many
/// changes are left. In `epoch_sampler` the ranks and their batch may change any number of times.
inline constexpr std::size_t most_rank_changes = 8;

/// The most ranks that a sampler serves.
inline constexpr std::uint32_t most_ranks = std::uint32_t{1} << 20;

/// The most samples that a sampler without an index array takes in an epoch.
inline constexpr std::uint64_t most_samples = (std::uint64_t{1} << 63) - 1;

/// All that the future of a sampler depends on, besides the data and the options. Trivially
/// copyable, without padding and without pointers, so that a checkpoint may hold its bytes or its
/// members. The same on all ranks.
///
/// The samplers check what they are given: a state that no sampler of these data could have is an
/// error.
struct sampler_state {
  std::uint64_t seed = 0;
  /// The epoch that runs, or that has just ended.
  std::uint64_t epoch = 0;
  /// Identifies the data, and the options that change what runs when.
  std::uint64_t digest = 0;
  /// What of the epoch has run, oldest first, then zeros. If the ranks of an `epoch_sampler` change
  /// more than `most_rank_changes` times, the oldest segments are replaced by segments of one rank
  /// with the same number of steps and of samples.
  sampler_segment segments[most_rank_changes + 1] = {};
  /// The number of samples or groups that the epoch before left over for this one.
  std::uint64_t carried = 0;

  [[nodiscard]] friend constexpr bool operator==(sampler_state const&,
                                                 sampler_state const&) = default;
};

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
