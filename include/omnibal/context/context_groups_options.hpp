// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The options of `context_groups`.

#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0 {

/// The runs of neighboring ranks that a group may have.
enum class group_placement {
  /// Any run of neighboring ranks. Groups are on blocks in any case if the degrees are a chain of
  /// divisors. With nodes, each degree below the ranks of a node also divides that number.
  anywhere,
  /// A block: a group of d ranks starts at a multiple of d. Then the communicators of ranks / d
  /// blocks for each degree suffice.
  blocks,
};

struct context_groups_options {
  /// The maximum number of bytes that the samples of a group may require on each of its ranks.
  std::int64_t capacity = std::numeric_limits<std::int64_t>::max();
  /// The capacity of each rank in bytes, which replaces `capacity`; empty for the same capacity of
  /// all ranks. The samples of a group never exceed the capacity of any rank of the group.
  std::vector<std::int64_t> capacities{};
  /// The degrees that groups may have, ascending. If the list is empty, these are all degrees of
  /// the table of costs. Degrees above the number of ranks are ignored. `powers_of_two` and
  /// `divisors` return such lists.
  std::vector<std::uint32_t> degrees{};
  /// The ranks of a node. Each group is inside a node or consists of whole nodes. With 0, the
  /// default, groups may be anywhere. The options of exchanges do not accept 0; in these options, 1
  /// means that nodes do not matter.
  std::uint32_t ranks_per_node = 0;
  /// The ranks at which groups may start. Choose `blocks` if the trainer has only communicators of
  /// blocks.
  group_placement placement = group_placement::anywhere;
  /// The speed of each rank, or one value for all; empty for equal speeds. Speeds are rounded with
  /// an error of at most 2^-31 of the largest.
  std::vector<double> speeds{};
  /// The divisor of the number of micro-steps, at most 65,536. If necessary, empty micro-steps at
  /// the end complete the number.
  std::uint32_t multiple = 1;
  /// The effort of the search. `fast` tries about five plans. `normal` tries four more, and up to
  /// ten with levels of length. If the best of these is more than 3 % above the bound, `normal`
  /// also tries some plans with each doubling of the least degree of all samples. `thorough` tries
  /// 36 more plans. For at most twelve samples `normal` also visits up to 20,000 nodes of a search
  /// tree and `thorough` up to 10,000,000. Unless the tree has more nodes, or speeds or capacities
  /// differ, the plan is then proven to be the best. No plan is worse than a plan of less effort.
  omnibal::effort effort = omnibal::effort::normal;
};

/// Returns the degrees 1, 2, 4, ... up to `most`.
[[nodiscard]] inline std::vector<std::uint32_t> powers_of_two(std::uint32_t most) {
  std::vector<std::uint32_t> result;
  for (std::uint64_t degree = 1; degree <= most; degree *= 2) {
    result.push_back(static_cast<std::uint32_t>(degree));
  }
  return result;
}

/// Returns the degrees that divide a number, such as the number of attention heads.
[[nodiscard]] inline std::vector<std::uint32_t> divisors(std::uint32_t number) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t degree = 1; degree <= number / degree; ++degree) {
    if (number % degree != 0) continue;
    result.push_back(degree);
    if (degree != number / degree) result.push_back(number / degree);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace omnibal::inline v0
