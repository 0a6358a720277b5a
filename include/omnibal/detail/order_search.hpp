// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The search for an order of donors with few copies, on a host and on a device.

#include <omnibal/config.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/detail/room_filling.hpp>
#include <omnibal/detail/spill_problem.hpp>
#include <omnibal/experts/spill_plan.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// The limits of `search_orders`.
struct order_rules {
  /// The maximum number of foreign experts on a rank.
  std::size_t slots;
  /// The number of copies at which the search ends.
  std::size_t fewest_copies;
  /// The number of orders that are tried.
  std::size_t orders;
  std::uint64_t seed;
};

/// Returns the number of orders that an effort tries.
[[nodiscard]] constexpr std::size_t orders_of(effort level) {
  constexpr by_effort<std::size_t> levels{.fast = 16, .normal = 256, .thorough = 16384};
  return levels[level];
}

/// The scratch memory of `search_orders`.
struct order_arrays {
  /// Arrays with an element for each donor.
  std::uint32_t* order;
  std::uint32_t* candidate;
  /// Arrays with an element for each donor, expert and room.
  foreign_copy* copies;
  foreign_copy* other_copies;
};

/// The copies of the best order.
struct order_result {
  /// Whether the copies are in `order_arrays::other_copies`.
  bool is_other;
  std::size_t count;
  /// The number of tokens above the cap for which no room was found.
  std::int64_t unplaced;
};

template <class T>
OMNIBAL_HOST_DEVICE constexpr void exchange_values(T& left, T& right) {
  T const value = left;
  left = right;
  right = value;
}

/// Exchanges two donors of an order, or moves one donor.
OMNIBAL_HOST_DEVICE constexpr void change_order(std::uint32_t* order, std::size_t donors,
                                                rng::engine& random) {
  auto one = static_cast<std::size_t>(rng::below(random, donors));
  auto const other = static_cast<std::size_t>(rng::below(random, donors));
  if (rng::below(random, 2) == 0) {
    exchange_values(order[one], order[other]);
    return;
  }
  // The donor at `one` moves to `other`.
  std::uint32_t const moved = order[one];
  for (; one < other; ++one) order[one] = order[one + 1];
  for (; one > other; --one) order[one] = order[one - 1];
  order[other] = moved;
}

/// Searches for an order with few copies: changes it at random, and keeps a change if neither the
/// tokens without a room nor the copies increase.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline order_result search_orders(spill_lists const& problem,
                                                                    order_rules const& rules,
                                                                    filling_arrays const& scratch,
                                                                    order_arrays arrays) {
  std::size_t const donors = problem.donor_count;
  room_filling filling(scratch);
  for (std::size_t d = 0; d != donors; ++d) arrays.order[d] = static_cast<std::uint32_t>(d);
  order_result best{false, 0, 0};
  rng::engine random(rules.seed);
  // A single place in the code that calls the filling keeps the kernel of a device small.
  for (std::size_t tried = 0; tried <= rules.orders; ++tried) {
    for (std::size_t d = 0; d != donors; ++d) arrays.candidate[d] = arrays.order[d];
    if (tried != 0) change_order(arrays.candidate, donors, random);
    filling.run(problem, rules.slots, arrays.candidate, arrays.other_copies);
    bool const is_worse = filling.unplaced() > best.unplaced ||
                          (filling.unplaced() == best.unplaced && filling.copies() > best.count);
    if (tried != 0 && is_worse) continue;
    exchange_values(arrays.order, arrays.candidate);
    exchange_values(arrays.copies, arrays.other_copies);
    best = {!best.is_other, filling.copies(), filling.unplaced()};
    if (donors < 2 || (best.unplaced == 0 && best.count == rules.fewest_copies)) break;
  }
  return best;
}

/// Returns the status of a plan. `unplaced` is the number of tokens above the cap without a room.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr solve_status spill_status(std::int64_t unplaced,
                                                                      std::size_t slots,
                                                                      std::size_t fewest_copies,
                                                                      std::size_t ranks) {
  if (unplaced == 0) return solve_status::solved;
  return slots < ceiled_quotient(fewest_copies, ranks) ? solve_status::infeasible
                                                       : solve_status::not_found;
}

}  // namespace omnibal::inline v0::detail
