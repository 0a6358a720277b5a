// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds of the number of foreign copies.

#include <omnibal/config.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/experts/spill_experts/spill_problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the least number of the values, which descend, whose sum reaches `wanted`; all of them
/// if no sum does.
[[nodiscard]] inline std::size_t covering_count(std::span<std::int64_t const> values,
                                                int128 wanted) {
  std::size_t result = 0;
  for (; wanted > 0 && result != values.size(); ++result) wanted -= values[result];
  return result;
}

/// A lower bound of the number of foreign copies. Ranks that copies connect form components; the
/// surpluses of a component fit its rooms, and it has at least one copy less than ranks. The bound
/// holds for any number of slots, also if ranks above the cap take copies and others send some.
class spill_bound {
 public:
  /// Returns the bound. `cap` is the most tokens of a rank.
  [[nodiscard]] std::size_t operator()(spill_problem const& problem, std::int64_t cap) {
    // Donors whose copies are counted by their experts may have any room up to the cap afterward.
    std::size_t const by_rooms = count(problem, cap, [](auto, auto) { return false; });
    std::size_t const by_both =
        count(problem, cap, [](std::size_t experts, std::size_t rooms) { return experts > rooms; });
    std::size_t const by_experts = count(problem, cap, [](auto, auto) { return true; });
    return std::max({by_rooms, by_both, by_experts});
  }

 private:
  /// Counts the copies of the donors that `uses_experts(experts, rooms)` selects by their experts,
  /// and the other ones by rooms.
  template <class UsesExperts>
  [[nodiscard]] std::size_t count(spill_problem const& problem, std::int64_t cap,
                                  UsesExperts const& uses_experts) {
    rooms_.clear();
    for (spill_room const& room : problem.rooms) rooms_.push_back(room.tokens);
    std::size_t const own_rooms = rooms_.size();
    surpluses_.clear();
    std::size_t result = 0;
    for (spill_donor const& donor : problem.donors) {
      std::size_t const experts = least_experts(problem.experts_of(donor), donor.surplus);
      if (uses_experts(experts,
                       covering_count(std::span(rooms_).first(own_rooms), donor.surplus))) {
        result += experts;
        rooms_.push_back(cap);
      } else {
        surpluses_.push_back(donor.surplus);
      }
    }
    if (surpluses_.empty()) return result;
    std::sort(rooms_.begin(), rooms_.end(), std::greater{});
    return result + std::max(rounded_count(), priced_count());
  }

  [[nodiscard]] static std::size_t least_experts(std::span<expert_tokens const> experts,
                                                 std::int64_t surplus) {
    std::size_t result = 0;
    for (; surplus > 0; ++result) surplus -= experts[result].tokens;
    return result;
  }

  /// Returns the larger of two numbers: for each surplus the rooms that cover it, and the rooms
  /// that cover all surpluses.
  [[nodiscard]] std::size_t rounded_count() const {
    std::size_t each = 0;
    int128 sum = 0;
    for (std::int64_t const surplus : surpluses_) {
      each += covering_count(rooms_, surplus);
      sum += surplus;
    }
    return std::max(each, covering_count(rooms_, sum));
  }

  /// Returns the largest bound of a price. If a token costs one over the size of a room, a surplus
  /// needs at least one copy and its price, and a room saves what its price exceeds one copy.
  [[nodiscard]] std::size_t priced_count() const {
    int128 best = 0;
    int128 larger = 0;
    for (std::size_t k = 0; k != rooms_.size(); ++k) {
      std::int64_t const size = rooms_[k];
      int128 value = static_cast<int128>(k) * size - larger;
      for (std::int64_t const surplus : surpluses_) value += std::max(surplus, size);
      best = std::max(best, ceiled_quotient(value, size));
      larger += size;
    }
    return static_cast<std::size_t>(best);
  }

  std::vector<std::int64_t> rooms_;
  std::vector<std::int64_t> surpluses_;
};

}  // namespace omnibal::inline v0::detail
