#pragma once

/// \file
/// Branch and bound over the parts of each sample.

#include <omnibal/balance/detail/least_load.hpp>
#include <omnibal/balance/detail/part_room.hpp>
#include <omnibal/balance/detail/place_longest_first.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Looks for the least possible largest load, depth first over the samples from the largest to the
/// smallest, from a first solution on.
template <std::size_t R>
class exact_search {
 public:
  exact_search(whole_costs<R> const& costs, part_room room)
      : costs_(costs),
        order_(largest_first(costs)),
        room_(std::move(room)),
        loads_(room_.parts(), resources<R>{}),
        rest_(costs.size() + 1, resources<R>{}),
        placed_(costs.size(), 0),
        best_(place_longest_first(costs, room_)),
        bound_(least_load(costs, std::span(order_), room_.parts())) {
    for (std::size_t depth = costs.size(); depth-- != 0;) {
      rest_[depth] = rest_[depth + 1] + costs_[order_[depth]];
    }
    if (!costs.empty()) smallest_ = costs.front();
    for (resources<R> const& cost : costs) {
      for (std::size_t r = 0; r != R; ++r) smallest_[r] = std::min(smallest_[r], cost[r]);
    }
    least_ = largest_load(best_);
  }

  /// Takes a solution into account that another algorithm found.
  void offer(std::vector<std::uint32_t> part_of) {
    std::int64_t const largest = largest_load(part_of);
    if (largest >= least_) return;
    least_ = largest;
    best_ = std::move(part_of);
  }

  /// Places at most `nodes` samples; true where no solution can be better than `best` then.
  [[nodiscard]] bool run(std::uint64_t nodes) {
    std::size_t depth = 0;
    std::size_t first = 0;
    while (least_ > bound_) {
      if (depth == order_.size()) {
        for (std::size_t i = 0; i != depth; ++i) best_[order_[i]] = placed_[i];
        least_ = largest_load(best_);
      }
      std::size_t const part = next_part(depth, first);
      if (part == room_.parts()) {
        if (depth == 0) return true;
        --depth;
        loads_[placed_[depth]] -= costs_[order_[depth]];
        room_.remove(placed_[depth]);
        first = placed_[depth] + 1;
        continue;
      }
      if (nodes_ == nodes) return false;
      ++nodes_;
      placed_[depth] = static_cast<std::uint32_t>(part);
      loads_[part] += costs_[order_[depth]];
      room_.add(part);
      ++depth;
      first = holds_rest(depth) ? 0 : room_.parts();
    }
    return true;
  }

  [[nodiscard]] std::vector<std::uint32_t> const& best() const { return best_; }
  /// How many samples were placed, those placed again counted again.
  [[nodiscard]] std::uint64_t nodes() const { return nodes_; }

 private:
  [[nodiscard]] std::int64_t largest_load(std::vector<std::uint32_t> const& part_of) const {
    std::vector<resources<R>> loads(room_.parts(), resources<R>{});
    std::int64_t result = 0;
    for (std::size_t i = 0; i != part_of.size(); ++i) {
      loads[part_of[i]] += costs_[i];
      result = std::max(result, largest_amount(loads[part_of[i]]));
    }
    return result;
  }

  /// The first part from `first` on that can take the sample; of parts that are alike only the
  /// first counts.
  [[nodiscard]] std::size_t next_part(std::size_t depth, std::size_t first) const {
    if (depth == order_.size()) return room_.parts();
    resources<R> const& cost = costs_[order_[depth]];
    for (std::size_t part = first; part < room_.parts(); ++part) {
      if (room_.is_full(part) || largest_amount(loads_[part] + cost) >= least_) continue;
      bool is_new = true;
      for (std::size_t other = 0; other != part && is_new; ++other) {
        is_new = room_[other] != room_[part] || !(loads_[other] == loads_[part]);
      }
      if (is_new) return part;
    }
    return room_.parts();
  }

  /// False where the samples from `depth` on cannot have room below the best solution, because
  /// parts with less room than the smallest sample are lost.
  [[nodiscard]] bool holds_rest(std::size_t depth) const {
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t missing = rest_[depth][r];
      for (std::size_t part = 0; part != loads_.size() && missing > 0; ++part) {
        std::int64_t const space = least_ - 1 - loads_[part][r];
        if (space >= smallest_[r]) missing -= space;
      }
      if (missing > 0) return false;
    }
    return true;
  }

  whole_costs<R> const& costs_;
  std::vector<std::uint32_t> order_;
  part_room room_;
  std::vector<resources<R>> loads_;
  /// By depth: the sum of the samples that are not placed.
  std::vector<resources<R>> rest_;
  resources<R> smallest_{};
  std::vector<std::uint32_t> placed_;
  std::vector<std::uint32_t> best_;
  std::int64_t least_ = 0;
  std::int64_t bound_;
  std::uint64_t nodes_ = 0;
};

}  // namespace omnibal::inline v0::detail
