#pragma once

/// \file
/// Where samples were and are, and the loads of their ranks.

#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// By how much a load exceeds a limit.
template <std::size_t R>
[[nodiscard]] constexpr resources<R> excess_above(resources<R> const& load, std::int64_t limit) {
  resources<R> result{};
  for (std::size_t r = 0; r != R; ++r) result[r] = std::max<std::int64_t>(0, load[r] - limit);
  return result;
}

/// Keeps its memory.
template <std::size_t R>
struct assignment_state {
  integer_costs<R> costs;
  integer_costs<1> bytes;
  /// Where each sample was before, and where it is now.
  std::vector<std::uint32_t> home_of;
  std::vector<std::uint32_t> rank_of;
  /// Of each rank.
  integer_costs<R> loads;

  [[nodiscard]] std::size_t ranks() const { return loads.size(); }
  [[nodiscard]] bool is_home(std::uint32_t sample) const {
    return rank_of[sample] == home_of[sample];
  }

  void start_at_home() {
    rank_of = home_of;
    sum_loads();
  }
  void sum_loads() {
    loads.assign(loads.size(), resources<R>{});
    for (std::size_t i = 0; i != rank_of.size(); ++i) loads[rank_of[i]] += costs[i];
  }
  void move(std::uint32_t sample, std::uint32_t rank) {
    loads[rank_of[sample]] -= costs[sample];
    loads[rank] += costs[sample];
    rank_of[sample] = rank;
  }

  [[nodiscard]] std::int64_t largest_load() const {
    std::int64_t result = 0;
    for (resources<R> const& load : loads) result = std::max(result, largest_amount(load));
    return result;
  }
  /// The lowest rank of those with the largest load. Precondition: there is a rank.
  [[nodiscard]] std::uint32_t heaviest() const {
    std::size_t result = 0;
    for (std::size_t rank = 1; rank < loads.size(); ++rank) {
      if (largest_amount(loads[rank]) > largest_amount(loads[result])) result = rank;
    }
    return static_cast<std::uint32_t>(result);
  }
  [[nodiscard]] std::int64_t moved_bytes() const {
    std::int64_t result = 0;
    for (std::uint32_t i = 0; i != rank_of.size(); ++i) {
      if (!is_home(i)) result += bytes[i][0];
    }
    return result;
  }

  /// The order from the largest to the smallest sample, equal ones by index.
  [[nodiscard]] auto costs_more() const {
    return [this](std::uint32_t a, std::uint32_t b) {
      std::int64_t const cost_a = sum_of(costs[a]);
      std::int64_t const cost_b = sum_of(costs[b]);
      return cost_a > cost_b || (cost_a == cost_b && a < b);
    };
  }
};

}  // namespace omnibal::inline v0::detail
