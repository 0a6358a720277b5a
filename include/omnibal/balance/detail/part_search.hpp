// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Branch and bound over the part of each sample.

#include <omnibal/balance/detail/part_limits.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the largest load of a part with this speed whose time is below `time`. Precondition:
/// `time` is above zero.
[[nodiscard]] inline std::int64_t load_below(part_time const& time, std::int64_t speed) {
  return saturate_cast<std::int64_t>(ceiled_quotient(int128{time.load} * speed, time.speed) - 1);
}

/// The limits of parts with different speeds; parts of equal speed are interchangeable.
template <class Amounts>
class timed_limits {
 public:
  explicit timed_limits(part_speeds speeds)
      : speeds_(std::move(speeds)), limits_(speeds_.size(), Amounts{}) {}

  /// Sets each limit to the largest load whose time is below `time`. Precondition: `time` is above
  /// zero.
  void set_below(part_time const& time) {
    for (std::size_t part = 0; part != limits_.size(); ++part) {
      for (auto& amount : limits_[part].amounts) amount = load_below(time, speeds_[part]);
    }
  }

  [[nodiscard]] Amounts const& operator[](std::size_t part) const { return limits_[part]; }
  [[nodiscard]] bool are_alike(std::size_t part, std::size_t other) const {
    return speeds_[part] == speeds_[other];
  }

 private:
  part_speeds speeds_;
  std::vector<Amounts> limits_;
};

/// Branch and bound, depth first. The search skips parts that are equivalent to another part, and
/// nodes whose remaining samples exceed the room. It finds the solutions in lexicographic order of
/// the parts of the samples.
template <class Amounts, class Limits = common_limit<Amounts>>
class part_search {
 public:
  /// Creates the search. `amounts` contains the demand of each sample, in the order of placement:
  /// largest first.
  part_search(std::vector<Amounts> amounts, Limits limit, count_limits room)
      : amounts_(std::move(amounts)),
        limit_(std::move(limit)),
        room_(std::move(room)),
        rest_(amounts_.size() + 1),
        loads_(room_.parts(), Amounts{}),
        placed_(amounts_.size(), 0),
        before_(amounts_.size()) {
    if (!amounts_.empty()) smallest_ = amounts_.front();
    for (std::size_t depth = amounts_.size(); depth-- != 0;) {
      rest_[depth] = rest_[depth + 1];
      for (std::size_t r = 0; r != kinds; ++r) {
        rest_[depth].sums[r] += amounts_[depth][r];
        smallest_[r] = std::min(smallest_[r], amounts_[depth][r]);
      }
    }
  }

  /// Lowers the limit that parts may not exceed; the new limit is below the old one.
  void lower_limit(Limits const& limit) { limit_ = limit; }

  /// Continues the search to the next solution. Returns `infeasible` if there is none, and
  /// `not_found` if `nodes` placements do not suffice. The call places at most `nodes` samples,
  /// repeated placements included, and subtracts their number from `nodes`.
  [[nodiscard]] solve_status run(std::uint64_t& nodes) {
    if (amounts_.empty()) return solve_status::solved;
    do {
      std::size_t const part = next_part();
      if (part == room_.parts()) {
        if (depth_ == 0) return solve_status::infeasible;
        take_back();
        continue;
      }
      if (nodes == 0) return solve_status::not_found;
      --nodes;
      place(part);
    } while (depth_ != amounts_.size());
    return solve_status::solved;
  }

  /// Returns the part of each sample, in the order of placement. Precondition: the last run found a
  /// solution.
  [[nodiscard]] std::vector<std::uint32_t> const& placed() const { return placed_; }

 private:
  using weight_type = typename Amounts::value_type;
  static constexpr std::size_t kinds = Amounts::size();
  static constexpr bool is_exact = std::integral<weight_type>;
  using sum_type = std::conditional_t<is_exact, int128, double>;

  struct demand_sums {
    sum_type sums[kinds] = {};
  };

  void place(std::size_t part) {
    placed_[depth_] = static_cast<std::uint32_t>(part);
    before_[depth_] = loads_[part];
    loads_[part] += amounts_[depth_];
    room_.add(part);
    ++depth_;
    first_ = holds_rest() ? 0 : room_.parts();
  }
  void take_back() {
    std::size_t const part = placed_[--depth_];
    loads_[part] = before_[depth_];
    room_.remove(part);
    first_ = part + 1;
  }

  /// Returns the first part from `first_` on that has room for the sample; of equivalent parts,
  /// only the first is considered. A sample that is equal to the previous sample goes into no
  /// earlier part.
  [[nodiscard]] std::size_t next_part() const {
    if (depth_ == amounts_.size()) return room_.parts();
    Amounts const& amounts = amounts_[depth_];
    std::size_t first = first_;
    if (depth_ != 0 && amounts == amounts_[depth_ - 1]) {
      first = std::max<std::size_t>(first, placed_[depth_ - 1]);
    }
    for (std::size_t part = first; part < room_.parts(); ++part) {
      if (room_.is_full(part) || !amounts.fits(limit_[part] - loads_[part])) continue;
      bool is_new = true;
      for (std::size_t other = 0; other != part && is_new; ++other) {
        is_new = room_[other] != room_[part] || !(loads_[other] == loads_[part]) ||
                 !limit_.are_alike(other, part);
      }
      if (is_new) return part;
    }
    return room_.parts();
  }

  /// Returns false if the remaining samples find no room; parts with less room than the smallest
  /// sample do not count.
  [[nodiscard]] bool holds_rest() const {
    for (std::size_t r = 0; r != kinds; ++r) {
      sum_type room = 0;
      for (std::size_t part = 0; part != loads_.size(); ++part) {
        weight_type const space = limit_[part][r] - loads_[part][r];
        if (space >= smallest_[r]) room += space;
      }
      sum_type const missing = rest_[depth_].sums[r];
      // A floating-point difference below this margin proves nothing.
      if (is_exact ? missing > room : missing * sum_type(1 - 1e-9) > room) return false;
    }
    return true;
  }

  std::vector<Amounts> amounts_;
  Limits limit_;
  count_limits room_;
  Amounts smallest_{};
  /// The demand of the samples that are not placed, by depth.
  std::vector<demand_sums> rest_;
  std::vector<Amounts> loads_;
  std::vector<std::uint32_t> placed_;
  /// For each placed sample, by depth, the load of its part before the placement. A subtraction of
  /// the sample would not restore the sum of floating-point amounts, and the error would grow from
  /// node to node.
  std::vector<Amounts> before_;
  std::size_t depth_ = 0;
  /// The first part in which the next sample was not tried.
  std::size_t first_ = 0;
};

}  // namespace omnibal::inline v0::detail
