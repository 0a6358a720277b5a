// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The filling of rooms by the surpluses of donors in a given order, on a host and on a device.

#include <omnibal/config.hpp>
#include <omnibal/detail/spill_problem.hpp>
#include <omnibal/experts/spill_plan.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// The room of a rank in tokens, and the number of foreign experts that the rank can still receive.
struct free_room {
  std::uint32_t rank;
  std::int64_t tokens;
  std::size_t slots;
};

/// Scratch memory of a filling.
struct filling_arrays {
  /// Arrays with an element for each rank.
  free_room* rooms;
  free_room* taken;
  std::uint32_t* chosen;
  /// An array with an element for each expert of a donor.
  expert_tokens* experts;
};

/// A filling of rooms: each donor uses the fewest rooms that hold its surplus. Among these, it uses
/// the smallest rooms that are neighbors in the order of sizes. One of these rooms is exchanged for
/// another room if less room then stays free. A copy receives tokens of one expert, the expert with
/// the most remaining tokens.
class room_filling {
 public:
  OMNIBAL_HOST_DEVICE explicit room_filling(filling_arrays const& arrays) : arrays_(arrays) {}

  /// Fills rooms from donors in this order. A rank receives at most `slots` copies. `copies` has an
  /// element for each donor, expert and room, because each copy empties one of them.
  OMNIBAL_HOST_DEVICE void run(spill_lists const& problem, std::size_t slots,
                               std::uint32_t const* order, foreign_copy* copies) {
    room_count_ = 0;
    for (std::size_t i = 0; slots != 0 && i != problem.room_count; ++i) {
      arrays_.rooms[room_count_++] = {problem.rooms[i].rank, problem.rooms[i].tokens, slots};
    }
    copies_ = copies;
    copy_count_ = 0;
    unplaced_ = 0;
    for (std::size_t i = 0; i != problem.donor_count; ++i) {
      spill_donor const& donor = problem.donors[order[i]];
      expert_count_ = 0;
      for (std::size_t e = donor.first; e != donor.last; ++e) {
        arrays_.experts[expert_count_++] = problem.experts[e];
      }
      std::int64_t left = donor.surplus;
      while (left != 0 && room_count_ != 0) {
        select(left);
        left -= fill(left);
      }
      unplaced_ += left;
    }
  }

  /// Returns the number of copies of the last run.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t copies() const { return copy_count_; }
  /// Returns the tokens above the cap for which no room was left.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t unplaced() const { return unplaced_; }

 private:
  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr std::int64_t smaller_of(std::int64_t left,
                                                                             std::int64_t right) {
    return right < left ? right : left;
  }

  /// Returns the tokens that a copy can place in a room. `most` is the largest number of tokens of
  /// a copy.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t usable(std::size_t room, std::int64_t most) const {
    return smaller_of(arrays_.rooms[room].tokens, most);
  }

  /// Chooses the rooms for a surplus and moves them from `rooms` to `taken`.
  OMNIBAL_HOST_DEVICE void select(std::int64_t left) {
    std::int64_t const most = smaller_of(left, largest_expert().tokens);
    std::size_t count = 0;
    std::int64_t missing = left;
    for (; count != room_count_ && missing > 0; ++count) missing -= usable(count, most);
    std::size_t first = 0;
    // If all rooms together are too small, one room receives the largest possible number of tokens.
    if (missing > 0) {
      count = 1;
      missing = 0;
    }
    for (; first + count != room_count_; ++first) {
      std::int64_t const less = usable(first, most) - usable(first + count, most);
      if (missing + less > 0) break;
      missing += less;
    }
    taken_count_ = count;
    for (std::size_t i = 0; i != count; ++i) {
      arrays_.chosen[i] = static_cast<std::uint32_t>(first + i);
    }
    if (missing < 0) exchange(most, missing);
    take_chosen();
  }

  /// Moves the chosen rooms from `rooms` to `taken`.
  OMNIBAL_HOST_DEVICE void take_chosen() {
    std::size_t next = 0;
    std::size_t kept = 0;
    for (std::size_t i = 0; i != room_count_; ++i) {
      if (next != taken_count_ && arrays_.chosen[next] == i) {
        arrays_.taken[next++] = arrays_.rooms[i];
      } else {
        arrays_.rooms[kept++] = arrays_.rooms[i];
      }
    }
    room_count_ = kept;
  }

  /// Exchanges one chosen room for another room so that the least room stays free, if this is less
  /// than now. `missing` is negative; its absolute value is the room that stays free now.
  OMNIBAL_HOST_DEVICE void exchange(std::int64_t most, std::int64_t missing) {
    std::size_t const first = arrays_.chosen[0];
    std::size_t const last = first + taken_count_;
    std::size_t from = first;
    std::size_t to = first;
    std::int64_t least = -missing;
    for (std::size_t i = first; i != last; ++i) {
      std::int64_t const wanted = usable(i, most) + missing;
      // The smallest room that is not chosen and is large enough.
      std::size_t j = room_count_;
      while (j != 0 && ((j > first && j <= last) || usable(j - 1, most) < wanted)) --j;
      if (j == 0 || usable(j - 1, most) - wanted >= least) continue;
      least = usable(j - 1, most) - wanted;
      from = i;
      to = j - 1;
    }
    replace(from - first, static_cast<std::uint32_t>(to));
  }

  /// Replaces a chosen room by another room; the chosen rooms stay sorted.
  OMNIBAL_HOST_DEVICE void replace(std::size_t place, std::uint32_t room) {
    std::uint32_t* const chosen = arrays_.chosen;
    for (; place != 0 && chosen[place - 1] > room; --place) chosen[place] = chosen[place - 1];
    for (; place + 1 != taken_count_ && chosen[place + 1] < room; ++place) {
      chosen[place] = chosen[place + 1];
    }
    chosen[place] = room;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE expert_tokens& largest_expert() const {
    std::size_t best = 0;
    for (std::size_t e = 1; e != expert_count_; ++e) {
      if (arrays_.experts[e].tokens > arrays_.experts[best].tokens) best = e;
    }
    return arrays_.experts[best];
  }

  /// Fills the rooms in `taken`, and moves the rooms that are not full back to `rooms`. Returns the
  /// number of placed tokens.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t fill(std::int64_t wanted) {
    std::int64_t left = wanted;
    for (std::size_t i = 0; i != taken_count_; ++i) {
      free_room room = arrays_.taken[i];
      if (left != 0) {
        expert_tokens& expert = largest_expert();
        std::int64_t const tokens = smaller_of(left, smaller_of(expert.tokens, room.tokens));
        copies_[copy_count_++] = {expert.expert, room.rank, tokens};
        expert.tokens -= tokens;
        room.tokens -= tokens;
        left -= tokens;
        --room.slots;
      }
      if (room.tokens == 0 || room.slots == 0) continue;
      std::size_t place = room_count_++;
      for (; place != 0 && arrays_.rooms[place - 1].tokens < room.tokens; --place) {
        arrays_.rooms[place] = arrays_.rooms[place - 1];
      }
      arrays_.rooms[place] = room;
    }
    return wanted - left;
  }

  filling_arrays arrays_;
  std::size_t room_count_ = 0;
  std::size_t taken_count_ = 0;
  std::size_t expert_count_ = 0;
  foreign_copy* copies_ = nullptr;
  std::size_t copy_count_ = 0;
  std::int64_t unplaced_ = 0;
};

}  // namespace omnibal::inline v0::detail
