// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The surpluses and rooms of ranks.

#include <omnibal/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The tokens of an expert.
struct expert_tokens {
  std::uint32_t expert;
  std::int64_t tokens;
};

/// A rank above the cap: its surplus, and the positions [first, last) of its experts with tokens in
/// the list of the experts of all donors.
struct spill_donor {
  std::uint32_t rank;
  std::int64_t surplus;
  std::size_t first;
  std::size_t last;
};

/// A rank below the cap, and its room.
struct spill_room {
  std::uint32_t rank;
  std::int64_t tokens;
};

/// Donors and rooms in the memory of another object. Both are sorted from the largest to the
/// smallest, equal entries by rank.
struct spill_lists {
  spill_donor const* donors;
  std::size_t donor_count;
  spill_room const* rooms;
  std::size_t room_count;
  /// The experts of all donors. The experts of one donor are sorted from the most to the fewest
  /// tokens.
  expert_tokens const* experts;
};

/// The donors and rooms of a batch. Both are sorted from the largest to the smallest, equal entries
/// by rank. The experts of a donor are sorted from the most to the fewest tokens.
struct spill_problem {
  std::vector<spill_donor> donors{};
  std::vector<expert_tokens> experts{};
  std::vector<spill_room> rooms{};

  /// Finds donors and rooms. `loads` contains, for each rank, the tokens of the experts whose home
  /// is the rank.
  void find(std::span<std::int64_t const> tokens, std::span<std::uint32_t const> home,
            std::span<std::int64_t const> loads, std::int64_t cap) {
    donors.clear();
    rooms.clear();
    experts.clear();
    for (std::size_t r = 0; r != loads.size(); ++r) {
      auto const rank = static_cast<std::uint32_t>(r);
      if (loads[r] > cap) donors.push_back({rank, loads[r] - cap, 0, 0});
      if (loads[r] < cap) rooms.push_back({rank, cap - loads[r]});
    }
    for (std::size_t e = 0; e != tokens.size(); ++e) {
      if (tokens[e] == 0 || loads[home[e]] <= cap) continue;
      experts.push_back({static_cast<std::uint32_t>(e), tokens[e]});
    }
    std::sort(experts.begin(), experts.end(), [&](auto const& left, auto const& right) {
      std::uint32_t const left_rank = home[left.expert];
      std::uint32_t const right_rank = home[right.expert];
      if (left_rank != right_rank) return left_rank < right_rank;
      if (left.tokens != right.tokens) return left.tokens > right.tokens;
      return left.expert < right.expert;
    });
    std::size_t next = 0;
    for (spill_donor& donor : donors) {
      donor.first = next;
      while (next != experts.size() && home[experts[next].expert] == donor.rank) ++next;
      donor.last = next;
    }
    std::sort(donors.begin(), donors.end(), [](auto const& left, auto const& right) {
      return left.surplus != right.surplus ? left.surplus > right.surplus : left.rank < right.rank;
    });
    std::sort(rooms.begin(), rooms.end(), [](auto const& left, auto const& right) {
      return left.tokens != right.tokens ? left.tokens > right.tokens : left.rank < right.rank;
    });
  }

  [[nodiscard]] spill_lists lists() const {
    return {donors.data(), donors.size(), rooms.data(), rooms.size(), experts.data()};
  }
};

}  // namespace omnibal::inline v0::detail
