// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The part of each sample if parts have a capacity and different speeds.

#include <omnibal/balance/detail/part_limits.hpp>
#include <omnibal/balance/detail/timed_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Selects the part of a sample by its time after the addition, under a capacity. Parts without
/// room for the sample are closed during its search.
template <class Layout>
class timed_parts {
 public:
  using demand_type = typename Layout::demand_type;

  using amounts_type = typename Layout::amounts_type;

  /// Creates empty parts. The arguments must outlive this object.
  timed_parts(Layout const& layout, part_limits<amounts_type> const& limits,
              part_speeds const& speeds)
      : heap_(speeds), rooms_(layout, limits), loads_(speeds.size(), 0) {}

  /// Adds a sample to the part with room that finishes the sample first; of equal parts, to the
  /// lowest. Returns `std::nullopt` if no part has room, or if the search would close more than
  /// `max_closed` parts. Subtracts the number of closed parts from `max_closed`.
  [[nodiscard]] std::optional<std::uint32_t> add(demand_type const& demand,
                                                 resources<1> const& cost,
                                                 std::uint64_t& max_closed) {
    closed_.clear();
    std::optional<std::uint32_t> found;
    while (closed_.size() != rooms_.size()) {
      std::uint32_t const part = heap_.best(cost);
      if (rooms_.fits(part, demand)) {
        found = part;
        break;
      }
      if (max_closed == 0) break;
      --max_closed;
      closed_.push_back(part);
      heap_.close(part);
    }
    for (std::uint32_t const part : closed_) heap_.open(part, loads_[part]);
    if (!found) return found;
    rooms_.take(*found, demand);
    loads_[*found] += cost[0];
    heap_.add(*found, cost);
    return found;
  }

 private:
  timed_heap<uint128> heap_;
  part_rooms<Layout> rooms_;
  std::vector<std::int64_t> loads_;
  std::vector<std::uint32_t> closed_;
};

/// Assigns each sample, in the order of `largest_first`, to the part with room that finishes the
/// sample first. Returns `std::nullopt` if a sample finds no room, or if the searches close more
/// than 64 parts per sample.
template <class Layout>
[[nodiscard]] std::optional<std::vector<std::uint32_t>> place_by_cost(
    measured<Layout> const& input, integer_costs<1> const& costs,
    std::span<std::uint32_t const> order, part_limits<typename Layout::amounts_type> const& limits,
    part_speeds const& speeds) {
  timed_parts<Layout> parts(input.layout, limits, speeds);
  std::vector<std::uint32_t> part_of(order.size());
  std::uint64_t max_closed = 64 * std::uint64_t{order.size()};
  for (std::uint32_t const sample : order) {
    auto const part = parts.add(input.demands[sample], costs[sample], max_closed);
    if (!part) return std::nullopt;
    part_of[sample] = *part;
  }
  return part_of;
}

/// The shares of parts with different speeds. A search compares all parts with room.
template <std::size_t R>
class timed_shares {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  explicit timed_shares(part_speeds const& speeds)
      : speeds_(speeds), fastest_(speeds.largest()), shares_(speeds.size(), resources<R>{}) {}

  /// Returns the part whose largest share with the sample is smallest; of equal parts, the lowest.
  /// Returns `none` if `may_have` accepts no part. The last share is the cost as a share of the
  /// largest cost for the fastest part; for a slower part it counts more, by the ratio of the
  /// speeds.
  template <class MayHave>
  [[nodiscard]] std::uint32_t best_of(resources<R> const& added, MayHave const& may_have) const {
    load_order<part_time> best{{1, 0}, none};
    for (std::uint32_t part = 0; part != shares_.size(); ++part) {
      if (!may_have(part)) continue;
      resources<R> const after = shares_[part] + added;
      part_time largest{after[R - 1], speeds_[part]};
      for (std::size_t r = 0; r + 1 != R; ++r) {
        largest = std::max(largest, part_time{after[r], fastest_});
      }
      best = std::min(best, load_order<part_time>{largest, part});
    }
    return best.part;
  }
  void add(std::uint32_t part, resources<R> const& added) { shares_[part] += added; }

 private:
  part_speeds const& speeds_;
  std::int64_t fastest_;
  std::vector<resources<R>> shares_;
};

}  // namespace omnibal::inline v0::detail
