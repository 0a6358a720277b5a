#pragma once

/// \file
/// Limits on transient bytes, and what can be said about each without solving it.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/recompute/recompute_result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The layers with the choices whose transient bytes are at most these.
struct limited_problem {
  std::int64_t transient_bytes;
  /// What one micro-batch may keep.
  std::int64_t kept_bytes;
  bool is_solved = false;
};

/// Goes through all limits in ascending order. A larger one admits a few more choices and leaves
/// less of the budget for what is kept, so that sums over the layers change little from one limit
/// to the next.
class peak_levels {
 public:
  /// Errors: `std::overflow_error` where the fewest bytes of all layers add up to more than 2^63 -
  /// 1.
  template <class Time>
  peak_levels(std::string_view function, choice_table<Time> const& table, std::int64_t budget,
              select_recompute_options const& options)
      : size_(table.size()),
        budget_(budget - static_cast<int128>(options.reserve_bytes)),
        in_flight_(options.in_flight) {
    for (std::uint32_t layer = 0; layer != size_; ++layer) {
      for (auto const& one : table[layer]) {
        ways_.push_back({one.transient_bytes, one.bytes, table.to_whole(one.time), layer});
      }
    }
    std::ranges::sort(ways_, {}, &way::transient_bytes);
    find_possible(function);
  }

  /// The limits within which some choices fit the budget, in ascending order.
  [[nodiscard]] std::vector<limited_problem> const& problems() const { return problems_; }
  /// The least that any choices take of the budget, without the reserve.
  [[nodiscard]] int128 least_bytes() const { return least_bytes_; }

 private:
  struct way {
    std::int64_t transient_bytes;
    std::int64_t bytes;
    std::int64_t time;
    std::uint32_t layer;
  };

  /// Calls `visit(limit)` after `admit(way)` for all ways that it admits beyond the one before.
  template <class Admit, class Visit>
  void for_limits(Admit const& admit, Visit const& visit) const {
    for (std::size_t next = 0; next != ways_.size();) {
      std::int64_t const limit = ways_[next].transient_bytes;
      while (next != ways_.size() && ways_[next].transient_bytes == limit) admit(ways_[next++]);
      visit(limit);
    }
    if (ways_.empty()) visit(std::int64_t{0});
  }

  void find_possible(std::string_view function) {
    constexpr int128 largest = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t none = -1;
    std::vector<std::int64_t> fewest(size_, none);
    std::size_t missing = size_;
    int128 sum = 0;
    auto const admit = [&](way const& one) {
      std::int64_t& known = fewest[one.layer];
      if (known == none) {
        --missing;
        sum += known = one.bytes;
      } else if (one.bytes < known) {
        sum -= known - one.bytes;
        known = one.bytes;
      }
    };
    for_limits(admit, [&](std::int64_t limit) {
      if (missing != 0 || sum > largest) return;
      int128 const needed = in_flight_ * sum + limit;
      least_bytes_ = std::min(least_bytes_, needed);
      if (needed > budget_) return;
      problems_.push_back({limit, static_cast<std::int64_t>((budget_ - limit) / in_flight_)});
    });
    if (sum > largest) throw_overflow(function, "the sum of the fewest bytes");
  }

  std::size_t size_;
  int128 budget_;
  std::int64_t in_flight_;
  std::vector<way> ways_;
  std::vector<limited_problem> problems_;
  int128 least_bytes_ = static_cast<int128>(1) << 126;
};

}  // namespace omnibal::inline v0::detail
