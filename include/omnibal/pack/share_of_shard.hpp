// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Division of the groups of a plan among shards.

#include <omnibal/check.hpp>
#include <omnibal/pack/pattern_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct share_of_shard_fn {
  /// Returns the number of groups of each pattern that one of several equal shards gets: group g of
  /// the plan belongs to shard `g % shards`. Over all shards, the numbers add up to the
  /// multiplicities. Each number is the multiplicity divided by the number of shards, rounded down
  /// or up. The number of groups of a shard is the number of all groups divided in the same way.
  /// This is an apportionment by largest remainders whose ties are passed from pattern to pattern
  /// in turn.
  ///
  /// Complexity: linear in the patterns. Memory: the result. Determinism: portable. Errors:
  /// `std::invalid_argument` if `shards` is zero or `shard` is not below `shards`. Source:
  /// Balinski, Young, Fair Representation, 1982.
  template <std::size_t R>
  [[nodiscard]] std::vector<std::uint64_t> operator()(pattern_plan<R> const& plan,
                                                      std::size_t shard, std::size_t shards) const {
    if (shards == 0) detail::throw_invalid(name, "shards is 0, must be positive");
    if (shard >= shards) {
      detail::throw_invalid(name, "shard is ", shard, ", must be below shards, which is ", shards);
    }
    std::vector<std::uint64_t> result;
    result.reserve(plan.multiplicities.size());
    // The number of groups that follow up to the next group of the shard.
    std::uint64_t before_next = shard;
    for (std::uint64_t const groups : plan.multiplicities) {
      if (groups <= before_next) {
        result.push_back(0);
        before_next -= groups;
        continue;
      }
      std::uint64_t const own = (groups - before_next - 1) / shards + 1;
      result.push_back(own);
      before_next = (shards - (groups - before_next) % shards) % shards;
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "share_of_shard";
};

/// Returns the groups of a plan that a shard gets, by pattern; see `share_of_shard_fn`.
inline constexpr share_of_shard_fn share_of_shard{};

}  // namespace omnibal::inline v0
