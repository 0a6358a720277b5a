#pragma once

/// \file
/// Limits on transient bytes, and what can be said about each without solving it.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/checked_cast.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/recompute/recompute_result.hpp>
#include <omnibal/recompute/select_recompute/relaxation.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Lagrange multipliers: prices of a byte around that of the linear relaxation. Times and prices are whole multiples of
/// the same small unit, so that no bound is rounded in the wrong direction.
class multipliers {
 public:
  static constexpr std::size_t count = 8;

  /// `broken` is the step of which the relaxation takes a part; `budget` is the largest one that is
  /// priced, and all layers together gain `most_gain` at most. False where the numbers are so large that their products may leave 128 bits.
  [[nodiscard]] bool set(hull_step const& broken, std::size_t layers, std::int64_t budget,
                         std::int64_t most_gain) {
    shift_ = std::max(0, resolution + bits(broken.bytes) - bits(broken.gain));
    price_ = scaled(broken.gain) / broken.bytes;
    int const price_bits = bits(static_cast<std::int64_t>(price_ >> 32)) + 32;
    int const size_bits = bits(static_cast<std::int64_t>(layers));
    return bits(most_gain) + shift_ <= most_bits &&
           price_bits + most_price_bits + bits(budget) + size_bits <= most_bits;
  }

  /// From zero to several times the price of the relaxation.
  [[nodiscard]] int128 operator[](std::size_t index) const { return price_ * eighths[index] / 8; }

  [[nodiscard]] int128 scaled(std::int64_t gain) const {
    return static_cast<int128>(gain) << shift_;
  }
  /// The least time that is no less than this. At a price far from the best one a bound leaves 64
  /// bits by far; the nearest number says as little.
  [[nodiscard]] std::int64_t whole_time(int128 scaled_time) const {
    return saturate_cast<std::int64_t>(-(-scaled_time >> shift_));
  }

 private:
  static constexpr int resolution = 24;
  static constexpr int most_price_bits = 3;
  static constexpr int most_bits = 120;
  static constexpr std::array<int, count> eighths{0, 4, 6, 7, 8, 10, 16, 64};

  [[nodiscard]] static int bits(std::int64_t value) {
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value)));
  }

  int shift_ = 0;
  int128 price_ = 0;
};

/// The layers with the choices whose transient bytes are at most these.
struct limited_problem {
  std::int64_t transient_bytes;
  /// What one micro-batch may keep.
  std::int64_t kept_bytes;
  /// No choices take less time.
  std::int64_t least_time;
};

/// Goes through all limits in ascending order. A larger one admits a few more choices and leaves
/// less of the budget for what is kept, so that sums over the layers change little from one limit to
/// the next.
class peak_levels {
 public:
  /// Errors: `std::overflow_error` where the fewest bytes of all layers add up to more than 2^63 - 1.
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

  /// Raises the least times of all problems, by what the layers cost at several prices of a byte.
  void price(multipliers const& prices) {
    for (std::size_t m = 0; m != multipliers::count; ++m) raise_times(prices, prices[m]);
  }

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
      problems_.push_back({limit, static_cast<std::int64_t>((budget_ - limit) / in_flight_), 0});
    });
    if (sum > largest) throw_overflow(function, "the sum of the fewest bytes");
  }

  void raise_times(multipliers const& prices, int128 price) {
    constexpr int128 none = -1;
    std::vector<int128> least(size_, none);
    std::size_t missing = size_;
    int128 sum = 0;
    auto problem = problems_.begin();
    auto const admit = [&](way const& one) {
      if (problem == problems_.end() || one.bytes > problem->kept_bytes) return;
      int128& known = least[one.layer];
      int128 const cost = prices.scaled(one.time) + price * one.bytes;
      if (known == none) {
        --missing;
        sum += known = cost;
      } else if (cost < known) {
        sum -= known - cost;
        known = cost;
      }
    };
    for_limits(admit, [&](std::int64_t limit) {
      if (problem == problems_.end() || problem->transient_bytes != limit) return;
      if (missing == 0) {
        std::int64_t const time = prices.whole_time(sum - price * problem->kept_bytes);
        problem->least_time = std::max(problem->least_time, time);
      }
      ++problem;
    });
  }

  std::size_t size_;
  int128 budget_;
  std::int64_t in_flight_;
  std::vector<way> ways_;
  std::vector<limited_problem> problems_;
  int128 least_bytes_ = static_cast<int128>(1) << 126;
};

}  // namespace omnibal::inline v0::detail
