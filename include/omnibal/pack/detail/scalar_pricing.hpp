// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The most valuable pattern for given prices of the values of one integer resource.

#include <omnibal/config.hpp>
#include <omnibal/detail/pattern_master.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The best pattern for given prices and one kind of demand: a bounded knapsack.
///
/// Dynamic programming over lists of states, in which a larger state is always worth more
/// (Nemhauser, Ullmann, "Discrete dynamic programming and capital allocation", 1969). A state is
/// dropped if it cannot become better than the best known pattern. The bound of a state fills its
/// room with the most efficient remaining item, in fractions.
class scalar_pricing {
 public:
  /// Keeps positive values up to the capacity, which is below 2^32, and the number of times that
  /// each occurs.
  scalar_pricing(std::span<std::uint64_t const> values, std::span<std::uint64_t const> counts,
                 std::uint64_t capacity)
      : values_(values.begin(), values.end()), capacity_(capacity) {
    for (std::size_t i = 0; i != values.size(); ++i) {
      alone_.push_back(
          static_cast<std::uint32_t>(std::min<std::uint64_t>(counts[i], capacity / values[i])));
    }
  }

  [[nodiscard]] std::span<std::uint32_t const> alone() const { return alone_; }

  /// Returns a group of the samples that are left, the largest samples first.
  [[nodiscard]] pattern greedy(std::span<std::uint64_t const> left) const {
    pattern result;
    std::uint64_t room = capacity_;
    for (std::size_t i = values_.size(); i-- != 0;) {
      auto const count = std::min<std::uint64_t>(left[i], room / values_[i]);
      if (count == 0) continue;
      result.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(count)});
      room -= count * values_[i];
    }
    return result;
  }

  /// Searches for the most valuable pattern, if it is worth more than `pattern_master::one`.
  /// Subtracts its work from `steps`, and returns false if the steps do not suffice.
  bool run(std::span<std::int64_t const> prices, std::size_t& steps) {
    make_items(prices);
    best_worth_ = pattern_master::one;
    best_state_ = none;
    history_.clear();
    states_.assign(1, {0, 0, none});
    for (std::size_t i = 0; i != items_.size(); ++i) {
      std::size_t const work = 2 * states_.size() + 4;
      if (work > steps) return false;
      steps -= work;
      add(i);
    }
    return true;
  }

  /// Returns the worth of the best pattern; `pattern_master::one` if none is worth more.
  [[nodiscard]] std::int64_t best_worth() const { return best_worth_; }

  /// Returns the best pattern; empty if none is worth more than `pattern_master::one`.
  [[nodiscard]] pattern best() const {
    pattern result;
    for (std::uint32_t at = best_state_; at != none; at = history_[at].parent) {
      item const& of = items_[history_[at].item];
      auto const is_same = [&](pattern_entry entry) { return entry.type == of.type; };
      auto const found = std::find_if(result.begin(), result.end(), is_same);
      if (found == result.end()) {
        result.push_back({of.type, of.count});
      } else {
        found->count += of.count;
      }
    }
    return result;
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffU;

  /// Several samples of a type, which a pattern contains together or not at all.
  struct item {
    std::uint32_t type;
    std::uint32_t count;
    std::uint64_t size;
    std::int64_t worth;
  };
  struct state {
    std::uint64_t size;
    std::int64_t worth;
    std::uint32_t last;
  };
  struct choice {
    std::uint32_t parent;
    std::uint32_t item;
  };

  /// Creates items of 1, 2, 4 ... samples of each type, the most efficient items first.
  void make_items(std::span<std::int64_t const> prices) {
    items_.clear();
    for (std::size_t i = 0; i != prices.size(); ++i) {
      if (prices[i] <= 0) continue;
      std::uint32_t left = alone_[i];
      for (std::uint32_t count = 1; left != 0; count *= 2) {
        count = std::min(count, left);
        left -= count;
        items_.push_back({static_cast<std::uint32_t>(i), count, values_[i] * count,
                          prices[i] * static_cast<std::int64_t>(count)});
      }
    }
    std::sort(items_.begin(), items_.end(), [](item const& left, item const& right) {
      uint128 const left_value = static_cast<uint128>(left.worth) * right.size;
      uint128 const right_value = static_cast<uint128>(right.worth) * left.size;
      if (left_value != right_value) return left_value > right_value;
      return std::pair(left.type, left.count) < std::pair(right.type, right.count);
    });
  }

  /// Returns false if a state, with items from `next` on, cannot become better than the best known
  /// pattern.
  [[nodiscard]] bool is_promising(state const& of, std::size_t next) const {
    if (next == items_.size()) return false;
    auto const missing = static_cast<uint128>(best_worth_ - of.worth);
    auto const room = static_cast<uint128>(capacity_ - of.size);
    return room * static_cast<uint128>(items_[next].worth) > missing * items_[next].size;
  }

  /// Merges the states with the states that also contain the item.
  void add(std::size_t index) {
    item const& adding = items_[index];
    merged_.clear();
    std::int64_t most = -1;
    auto const keep = [&](state const& of) {
      if (of.worth <= most) return false;
      most = of.worth;
      return true;
    };
    std::size_t with = 0;
    std::size_t without = 0;
    auto const take_with = [&] {
      state next = states_[with++];
      next.size += adding.size;
      next.worth += adding.worth;
      if (!keep(next)) return;
      bool const is_best = next.worth > best_worth_;
      if (is_best) best_worth_ = next.worth;
      if (!is_best && !is_promising(next, index + 1)) return;
      history_.push_back({next.last, static_cast<std::uint32_t>(index)});
      next.last = static_cast<std::uint32_t>(history_.size() - 1);
      if (is_best) best_state_ = next.last;
      merged_.push_back(next);
    };
    for (; with != states_.size() && states_[with].size + adding.size <= capacity_;) {
      if (without != states_.size() && states_[without].size <= states_[with].size + adding.size) {
        state const& same = states_[without++];
        if (keep(same) && is_promising(same, index + 1)) merged_.push_back(same);
      } else {
        take_with();
      }
    }
    for (; without != states_.size(); ++without) {
      state const& same = states_[without];
      if (keep(same) && is_promising(same, index + 1)) merged_.push_back(same);
    }
    states_.swap(merged_);
  }

  std::vector<std::uint64_t> values_;
  std::vector<std::uint32_t> alone_;
  std::uint64_t capacity_;
  std::vector<item> items_;
  std::vector<state> states_;
  std::vector<state> merged_;
  std::vector<choice> history_;
  std::int64_t best_worth_ = 0;
  std::uint32_t best_state_ = none;
};

}  // namespace omnibal::inline v0::detail
