#pragma once

/// \file
/// Samples from the largest to the smallest into parts that must stay within a capacity.

#include <omnibal/balance/detail/costs.hpp>
#include <omnibal/balance/detail/ranked_load.hpp>
#include <omnibal/balance/detail/roomy_parts.hpp>
#include <omnibal/balance/detail/winner_tree.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/pack/detail/measure.hpp>
#include <omnibal/pack/detail/share_scale.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Puts each sample, those with the largest cost first, into the part with the least cost that has
/// room for it; of equal ones into that with the fewest samples. Nothing where a sample finds no
/// room. `order` is that of `largest_first`.
template <class Layout>
[[nodiscard]] std::optional<std::vector<std::uint32_t>> place_by_cost(
    measured<Layout> const& input, whole_costs<1> const& costs,
    std::span<std::uint32_t const> order, std::size_t parts) {
  std::vector<typename Layout::room_type> rooms(parts, input.layout.empty_room());
  std::vector<std::uint32_t> part_of(order.size());
  std::vector<uint128> nodes(winner_tree<uint128>::nodes_for(parts));
  winner_tree<uint128> const least(nodes);
  // Load, count and number of the part, so that the least word names the part that is wanted.
  auto const word = [](std::int64_t load, std::uint32_t count, std::size_t part) {
    return static_cast<uint128>(load) << 64 | static_cast<uint128>(count) << 32 | part;
  };
  std::vector<std::int64_t> loads(parts, 0);
  std::vector<std::uint32_t> counts(parts, 0);
  least.fill(parts, [&](std::size_t part) { return word(0, 0, part); });
  // Kept up to date from the first sample on that the least part has no room for.
  roomy_parts<Layout, uint128> others(input.layout, rooms);
  for (std::uint32_t const sample : order) {
    auto const& demand = input.demands[sample];
    auto part = static_cast<std::uint32_t>(least.least());
    if (!input.layout.fits(rooms[part], demand)) {
      if (!others.is_filled()) others.fill([&](std::size_t p) { return least[p]; });
      std::size_t const other = others.find(demand, std::identity{});
      if (other == parts) return std::nullopt;
      part = static_cast<std::uint32_t>(other);
    }
    part_of[sample] = part;
    input.layout.take(rooms[part], demand);
    loads[part] += costs[sample][0];
    least.set(part, word(loads[part], ++counts[part], part));
    if (others.is_filled()) others.set(part, least[part]);
  }
  return part_of;
}

/// The same by shares: of `most_cost` and of the capacity. The sample with the largest sum of
/// shares goes first, into the part with room whose largest share is least then.
template <class Layout>
[[nodiscard]] std::optional<std::vector<std::uint32_t>> place_by_shares(
    measured<Layout> const& input, whole_costs<1> const& costs, std::int64_t most_cost,
    std::size_t parts) {
  using amounts_type = typename Layout::amounts_type;
  constexpr std::size_t kinds = amounts_type::size();
  using shares_type = resources<kinds + 1>;
  share_scale<std::int64_t> const cost_share(std::max<std::int64_t>(1, most_cost));
  std::vector<shares_type> shares(input.size());
  for (std::uint32_t k = 0; k != input.size(); ++k) {
    amounts_type const amounts = input.amounts(k);
    for (std::size_t r = 0; r != kinds; ++r) {
      shares[k][r] = share_scale<typename amounts_type::value_type>(input.capacity[r])(amounts[r]);
    }
    shares[k][kinds] = cost_share(costs[k][0]);
  }
  std::vector<std::uint32_t> const order =
      order_descending(shares.size(), [&shares](std::size_t k) { return sum_of(shares[k]); });

  std::vector<typename Layout::room_type> rooms(parts, input.layout.empty_room());
  roomy_parts<Layout, shares_type> shared(input.layout, rooms);
  shared.fill([](std::size_t) { return shares_type{}; });
  std::vector<std::uint32_t> part_of(input.size());
  for (std::uint32_t const sample : order) {
    std::size_t const part = shared.find(input.demands[sample], [&](shares_type const& load) {
      return largest_amount(load + shares[sample]);
    });
    if (part == parts) return std::nullopt;
    part_of[sample] = static_cast<std::uint32_t>(part);
    input.layout.take(rooms[part], input.demands[sample]);
    shared.set(part, shared.load(part) + shares[sample]);
  }
  return part_of;
}

}  // namespace omnibal::inline v0::detail
