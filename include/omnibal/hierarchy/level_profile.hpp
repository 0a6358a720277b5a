#pragma once

/// \file
/// What a trainer measures of a setting, and the search that asks for it.

#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/solve_status.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

/// The free memory of a run that failed without saying how much was missing.
inline constexpr std::int64_t unknown_shortage = std::numeric_limits<std::int64_t>::min();

/// One full pack, forward and backward, measured or computed.
struct level_reading {
  /// Of the rank with the least, at its peak. Negative where memory is missing.
  std::int64_t free_bytes = 0;
  /// For the pack, with all the ranks that share it. Not looked at where memory is missing.
  std::int64_t nanoseconds = 0;

  [[nodiscard]] friend bool operator==(level_reading const&, level_reading const&) = default;
};

/// A functor from a `packing_level` to a `level_reading`.
template <class Profile>
concept level_profile = std::invocable<Profile const&, packing_level const&> &&
    std::same_as<std::invoke_result_t<Profile const&, packing_level const&>, level_reading>;

/// What `select_levels` tries.
struct level_search {
  /// The layers that can be checkpointed.
  std::int64_t layers = 0;
  /// Lengths, ascending.
  std::vector<std::int64_t> lengths{8192, 16384, 32768, 65536, 131072};
  /// Sequence-parallel degrees, ascending.
  std::vector<std::int64_t> degrees{1, 2, 4, 8};
  std::int64_t fewest_checkpointed = 0;
  /// Memory that has to stay free.
  std::int64_t reserve_bytes = 0;
  /// The ranks that train; 0: as many as the largest degree. They decide how many packs run at a
  /// time, and so what a level with few packs costs.
  std::int64_t ranks = 0;
};

/// A setting and its time.
struct timed_level {
  packing_level setting{};
  /// For one full pack.
  std::int64_t nanoseconds = 0;

  [[nodiscard]] friend bool operator==(timed_level const&, timed_level const&) = default;
};

struct level_selection {
  /// Infeasible where the longest length that is needed does not fit with any degree, even if all
  /// is checkpointed.
  solve_status status = solve_status::solved;
  /// The levels, shortest first; none where infeasible.
  std::vector<packing_level> levels{};
  /// The fastest setting of each length that fits, ascending.
  std::vector<timed_level> fastest{};
  /// Where infeasible, the least that the shortest length that would do lacks; `unknown_shortage`
  /// where no reading said so.
  std::int64_t missing_bytes = 0;
  /// The estimated time of an epoch; 0 where no samples were given.
  std::int64_t epoch_nanoseconds = 0;
  /// The number of samples above all lengths that were searched, which no level will hold.
  std::uint64_t oversized = 0;
};

}  // namespace omnibal::inline v0
