// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The most valuable pattern for given prices of demands for several resources.

#include <omnibal/config.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/pattern_master.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/pack/detail/summed_shares.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The best pattern for given prices and several kinds of demand: a knapsack with several
/// capacities, solved by depth-first branch and bound. The bound relaxes all capacities to one, the
/// sum of their shares, and fills the remaining sum with the most efficient types, the last type in
/// part.
template <class Layout>
class vector_pricing {
 public:
  using demand_type = typename Layout::demand_type;

  /// Keeps different demands and the number of times that each occurs. `input` must outlive this
  /// object.
  vector_pricing(measured<Layout> const& input, std::span<demand_type const> demands,
                 std::span<std::uint64_t const> counts)
      : input_(input), demands_(demands.begin(), demands.end()) {
    summed_shares<amounts_type::size()> const sum(input.capacity);
    whole_ = sum.whole();
    for (std::size_t i = 0; i != demands.size(); ++i) {
      sizes_.push_back(sum(input.layout.amounts(demands[i])));
      std::uint32_t count = 0;
      auto room = input.layout.empty_room();
      for (; count != counts[i] && count <= max_alone && input.layout.fits(room, demands[i]);
           ++count) {
        input.layout.take(room, demands[i]);
      }
      alone_.push_back(count);
    }
    largest_first_ =
        order_descending(sizes_.size(), [&](std::size_t type) { return sizes_[type]; });
  }

  [[nodiscard]] std::span<std::uint32_t const> alone() const { return alone_; }

  /// Returns a group of the samples that are left, the largest samples first.
  [[nodiscard]] pattern greedy(std::span<std::uint64_t const> left) const {
    pattern result;
    auto room = input_.layout.empty_room();
    for (std::uint32_t const i : largest_first_) {
      std::uint32_t count = 0;
      for (; count != left[i] && input_.layout.fits(room, demands_[i]); ++count) {
        input_.layout.take(room, demands_[i]);
      }
      if (count != 0) result.push_back({i, count});
    }
    return result;
  }

  /// Searches for the most valuable pattern, if it is worth more than `pattern_master::one`.
  /// Subtracts its work from `steps`, and returns false if the steps do not suffice.
  bool run(std::span<std::int64_t const> prices, std::size_t& steps) {
    order_.clear();
    for (std::size_t i = 0; i != prices.size(); ++i) {
      if (prices[i] > 0) order_.push_back({static_cast<std::uint32_t>(i), prices[i], sizes_[i]});
    }
    std::sort(order_.begin(), order_.end(), [](item const& left, item const& right) {
      uint128 const left_value = product(left.price, right.size);
      uint128 const right_value = product(right.price, left.size);
      return left_value > right_value || (left_value == right_value && left.type < right.type);
    });
    best_worth_ = pattern_master::one;
    best_.clear();
    taken_.clear();
    steps_ = steps;
    search(0, input_.layout.empty_room(), whole_, 0);
    steps = steps_;
    return steps != 0;
  }

  /// Returns the worth of the best pattern; `pattern_master::one` if none is worth more.
  [[nodiscard]] std::int64_t best_worth() const { return best_worth_; }

  /// Returns the best pattern; empty if none is worth more than `pattern_master::one`.
  [[nodiscard]] pattern best() const { return best_; }

 private:
  using amounts_type = typename Layout::amounts_type;
  using room_type = typename Layout::room_type;

  struct item {
    std::uint32_t type;
    std::int64_t price;
    std::int64_t size;
  };

  [[nodiscard]] static constexpr uint128 product(std::int64_t left, std::int64_t right) {
    return static_cast<uint128>(left) * static_cast<uint128>(right);
  }

  /// Tries all patterns that contain the samples of `taken_` and otherwise only items from `next`
  /// on.
  void search(std::size_t next, room_type const& room, std::int64_t left, std::int64_t worth) {
    for (std::size_t i = next; i != order_.size() && steps_ != 0; ++i) {
      --steps_;
      item const& adding = order_[i];
      if (product(left, adding.price) <= product(best_worth_ - worth, adding.size)) return;
      room_type after = room;
      std::uint32_t count = 0;
      while (count != alone_[adding.type] && input_.layout.fits(after, demands_[adding.type])) {
        input_.layout.take(after, demands_[adding.type]);
        ++count;
      }
      take_up_to(count, i, room, left, worth);
    }
  }

  /// Tries all patterns with at least one and at most `count` samples of an item.
  void take_up_to(std::uint32_t count, std::size_t index, room_type const& room, std::int64_t left,
                  std::int64_t worth) {
    item const& adding = order_[index];
    for (; count != 0; --count) {
      room_type after = room;
      for (std::uint32_t k = 0; k != count; ++k) {
        input_.layout.take(after, demands_[adding.type]);
      }
      std::int64_t const more = worth + adding.price * static_cast<std::int64_t>(count);
      taken_.push_back({adding.type, count});
      if (more > best_worth_) {
        best_worth_ = more;
        best_ = taken_;
      }
      search(index + 1, after, left - count * adding.size, more);
      taken_.pop_back();
    }
  }

  measured<Layout> const& input_;
  std::vector<demand_type> demands_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::uint32_t> alone_;
  std::vector<std::uint32_t> largest_first_;
  std::int64_t whole_ = 0;
  std::vector<item> order_;
  pattern taken_;
  pattern best_;
  std::int64_t best_worth_ = 0;
  std::size_t steps_ = 0;
};

}  // namespace omnibal::inline v0::detail
