// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The filling of rooms by the surpluses of donors in a given order.

#include <omnibal/experts/spill_experts/spill_problem.hpp>
#include <omnibal/experts/spill_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A filling of rooms: each donor takes the fewest rooms that hold its surplus and, of as many, the
/// smallest neighbors in the order of their sizes. One of them is exchanged for a room outside if
/// less is left free. A piece carries tokens of one expert, the one with the most left.
class room_filling {
 public:
  /// Fills rooms from donors in this order. A rank takes at most `slots` copies.
  void run(spill_problem const& problem, std::size_t slots, std::span<std::uint32_t const> order) {
    rooms_.clear();
    for (auto const& [rank, tokens] : problem.rooms) {
      if (slots != 0) rooms_.push_back({rank, tokens, slots});
    }
    copies_.clear();
    unplaced_ = 0;
    for (std::uint32_t const d : order) {
      auto const experts = problem.experts_of(problem.donors[d]);
      experts_.assign(experts.begin(), experts.end());
      std::int64_t left = problem.donors[d].surplus;
      while (left != 0 && !rooms_.empty()) {
        select(left);
        left -= fill(left);
      }
      unplaced_ += left;
    }
  }

  /// Returns the copies of the last run.
  [[nodiscard]] std::vector<foreign_copy>& copies() { return copies_; }
  /// Returns the tokens above the cap for which no room was left.
  [[nodiscard]] std::int64_t unplaced() const { return unplaced_; }

 private:
  /// The room of a rank, and how many more foreign experts it may take.
  struct free_room {
    std::uint32_t rank;
    std::int64_t tokens;
    std::size_t slots;
  };

  /// Returns the room that a copy can use, at most all tokens of the largest expert.
  [[nodiscard]] std::int64_t usable(std::size_t room, std::int64_t most) const {
    return std::min(rooms_[room].tokens, most);
  }

  /// Takes the rooms for a surplus out of the list.
  void select(std::int64_t left) {
    std::int64_t const most = std::min(left, largest_expert().tokens);
    std::size_t count = 0;
    std::int64_t missing = left;
    for (; count != rooms_.size() && missing > 0; ++count) missing -= usable(count, most);
    std::size_t first = 0;
    // If all rooms are too few for the largest expert, one room takes what it can.
    if (missing > 0) {
      count = 1;
      missing = 0;
    }
    for (; first + count != rooms_.size(); ++first) {
      std::int64_t const less = usable(first, most) - usable(first + count, most);
      if (missing + less > 0) break;
      missing += less;
    }
    chosen_.clear();
    for (std::size_t i = first; i != first + count; ++i) chosen_.push_back(i);
    if (missing < 0) exchange(most, missing);
    taken_.clear();
    for (std::size_t const i : chosen_) taken_.push_back(rooms_[i]);
    for (std::size_t i = chosen_.size(); i != 0; --i) {
      rooms_.erase(rooms_.begin() + static_cast<std::ptrdiff_t>(chosen_[i - 1]));
    }
  }

  /// Exchanges one chosen room for another one with which the surplus leaves least free. `missing`
  /// is negative: the room that is left free now.
  void exchange(std::int64_t most, std::int64_t missing) {
    std::size_t const first = chosen_.front();
    std::size_t const last = chosen_.back() + 1;
    std::size_t from = first;
    std::size_t to = first;
    std::int64_t least = -missing;
    for (std::size_t i = first; i != last; ++i) {
      std::int64_t const wanted = usable(i, most) + missing;
      // The smallest room outside that is large enough.
      std::size_t j = rooms_.size();
      while (j != 0 && ((j > first && j <= last) || usable(j - 1, most) < wanted)) --j;
      if (j == 0 || usable(j - 1, most) - wanted >= least) continue;
      least = usable(j - 1, most) - wanted;
      from = i;
      to = j - 1;
    }
    chosen_[from - first] = to;
    std::sort(chosen_.begin(), chosen_.end());
  }

  [[nodiscard]] expert_tokens& largest_expert() {
    return *std::max_element(
        experts_.begin(), experts_.end(),
        [](auto const& left, auto const& right) { return left.tokens < right.tokens; });
  }

  /// Fills the rooms that were taken, and returns those that have room left to the list. Returns
  /// the number of placed tokens.
  [[nodiscard]] std::int64_t fill(std::int64_t wanted) {
    std::int64_t left = wanted;
    for (free_room room : taken_) {
      if (left != 0) {
        expert_tokens& expert = largest_expert();
        std::int64_t const tokens = std::min({left, expert.tokens, room.tokens});
        copies_.push_back({expert.expert, room.rank, tokens});
        expert.tokens -= tokens;
        room.tokens -= tokens;
        left -= tokens;
        --room.slots;
      }
      if (room.tokens == 0 || room.slots == 0) continue;
      auto const place = std::upper_bound(
          rooms_.begin(), rooms_.end(), room,
          [](auto const& one, auto const& other) { return one.tokens > other.tokens; });
      rooms_.insert(place, room);
    }
    return wanted - left;
  }

  std::vector<free_room> rooms_;
  std::vector<free_room> taken_;
  std::vector<expert_tokens> experts_;
  std::vector<std::size_t> chosen_;
  std::vector<foreign_copy> copies_;
  std::int64_t unplaced_ = 0;
};

}  // namespace omnibal::inline v0::detail
