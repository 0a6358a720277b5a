// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The result of every algorithm of pack/.

#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// The quality and the work of a packing, reported besides the groups.
struct packing_report {
  /// A lower bound on the groups of any packing of these samples; see `omnibal::packing_bound`.
  std::size_t lower_bound = 0;
  /// The number of rounds; one for a packer without rounds.
  std::size_t rounds = 0;
  /// The number of processed samples, summed over the rounds: the work done.
  std::uint64_t item_rounds = 0;
  /// The groups of the result that do not satisfy the keep rule; zero for a packer without such a
  /// rule.
  std::size_t below_keep = 0;

  [[nodiscard]] friend bool operator==(packing_report const&, packing_report const&) = default;
};

/// Groups under a capacity. Every input index is in exactly one group or in `oversized`. Packings
/// are equal if all members are equal, including the reports of the search. To compare only the
/// groups, compare `groups` and `oversized`.
struct packing {
  grouping groups;
  /// The samples that exceed the capacity by themselves, ascending.
  std::vector<std::uint32_t> oversized;
  packing_report report;

  [[nodiscard]] friend bool operator==(packing const&, packing const&) = default;
};

}  // namespace omnibal::inline v0
