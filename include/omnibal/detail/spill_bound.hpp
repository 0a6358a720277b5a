// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds of the number of foreign copies, on a host and on a device.

#include <omnibal/config.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/detail/spill_problem.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// A lower bound of the number of foreign copies. Ranks that copies connect form components; the
/// surpluses of a component fit its rooms, and a component of n ranks has at least n - 1 copies.
/// The bound holds for any number of slots, even if ranks above the cap receive copies and other
/// ranks send copies.
class spill_bound {
 public:
  /// Creates a bound with two arrays of scratch memory, each with a number for each rank.
  OMNIBAL_HOST_DEVICE spill_bound(std::int64_t* rooms, std::int64_t* surpluses)
      : rooms_(rooms), surpluses_(surpluses) {}

  /// Returns the bound. `cap` is the maximum number of tokens on a rank.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t operator()(spill_lists const& problem,
                                                           std::int64_t cap) {
    // If the copies of a donor are counted by its experts, the donor then counts as a room of `cap`
    // tokens.
    std::size_t result = 0;
    for (counting by = counting::rooms;;
         by = by == counting::rooms ? counting::experts : counting::both) {
      result = larger_of(result, count(problem, cap, by));
      if (by == counting::both) return result;
    }
  }

 private:
  /// Whether the copies of a donor are counted by rooms, by experts, or by the larger of the two
  /// numbers.
  enum class counting { rooms, experts, both };

  template <class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr T larger_of(T left, T right) {
    return left < right ? right : left;
  }

  /// Counts the copies of the donors.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t count(spill_lists const& problem, std::int64_t cap,
                                                      counting by) {
    room_count_ = problem.room_count;
    for (std::size_t i = 0; i != room_count_; ++i) rooms_[i] = problem.rooms[i].tokens;
    surplus_count_ = 0;
    std::size_t result = 0;
    std::size_t caps = 0;
    for (std::size_t d = 0; d != problem.donor_count; ++d) {
      std::int64_t const surplus = problem.donors[d].surplus;
      std::size_t const experts = least_experts(problem, problem.donors[d]);
      if (by == counting::experts || (by == counting::both && experts > covering_count(surplus))) {
        result += experts;
        ++caps;
      } else {
        surpluses_[surplus_count_++] = surplus;
      }
    }
    if (surplus_count_ == 0) return result;
    // The additional rooms come first because no room exceeds the cap. The rooms are therefore
    // still in descending order.
    for (std::size_t i = room_count_; i-- != 0;) rooms_[caps + i] = rooms_[i];
    for (std::size_t i = 0; i != caps; ++i) rooms_[i] = cap;
    room_count_ += caps;
    return result + larger_of(rounded_count(), priced_count());
  }

  /// Returns the least number of rooms that hold `wanted`, or the number of all rooms if they do
  /// not suffice.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t covering_count(int128 wanted) const {
    std::size_t result = 0;
    for (; wanted > 0 && result != room_count_; ++result) wanted -= rooms_[result];
    return result;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE static std::size_t least_experts(spill_lists const& problem,
                                                                     spill_donor const& donor) {
    std::int64_t left = donor.surplus;
    std::size_t result = 0;
    for (; left > 0; ++result) left -= problem.experts[donor.first + result].tokens;
    return result;
  }

  /// Returns the larger of two numbers: the sum over the surpluses of the fewest rooms that hold
  /// each surplus, and the fewest rooms that hold all surpluses together.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t rounded_count() const {
    std::size_t each = 0;
    int128 sum = 0;
    for (std::size_t d = 0; d != surplus_count_; ++d) {
      each += covering_count(surpluses_[d]);
      sum += surpluses_[d];
    }
    return larger_of(each, covering_count(sum));
  }

  /// Returns the best bound over all prices. For a room of `size` tokens, a token has the price 1 /
  /// size. A surplus adds the larger of one copy and its price. Each room larger than `size`
  /// subtracts its price minus one.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t priced_count() const {
    int128 best = 0;
    int128 larger = 0;
    for (std::size_t k = 0; k != room_count_; ++k) {
      std::int64_t const size = rooms_[k];
      int128 value = static_cast<int128>(k) * size - larger;
      for (std::size_t d = 0; d != surplus_count_; ++d) value += larger_of(surpluses_[d], size);
      best = larger_of(best, ceiled_quotient(value, size));
      larger += size;
    }
    return static_cast<std::size_t>(best);
  }

  std::int64_t* rooms_;
  std::size_t room_count_ = 0;
  std::int64_t* surpluses_;
  std::size_t surplus_count_ = 0;
};

}  // namespace omnibal::inline v0::detail
