#pragma once

/// \file
/// The result of every algorithm of pack/.

#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// What a user must see of a packing besides its groups.
struct packing_report {
  /// No packing of these samples has fewer groups; see `omnibal::packing_bound`.
  std::size_t lower_bound = 0;
  /// Rounds run; one for a packer without rounds.
  std::size_t rounds = 0;
  /// Samples looked at, summed over the rounds: the work done.
  std::uint64_t item_rounds = 0;
  /// Groups of the result that do not satisfy the keep rule; zero for a packer without such a rule.
  std::size_t below_keep = 0;

  [[nodiscard]] friend bool operator==(packing_report const&, packing_report const&) = default;
};

/// Groups under a capacity. Every input index is in exactly one group or in `oversized`. Packings
/// are equal where all members are, so also the reports of how they were found; for equal groups
/// compare `groups` and `oversized`.
struct packing {
  grouping groups;
  /// Samples that exceed the capacity alone, ascending.
  std::vector<std::uint32_t> oversized;
  packing_report report;

  [[nodiscard]] friend bool operator==(packing const&, packing const&) = default;
};

}  // namespace omnibal::inline v0
