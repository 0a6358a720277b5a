#pragma once

/// \file
/// Samples from the largest to the smallest into parts that must stay within a capacity.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/capacity_shares.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/winner_tree.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// What no part of several has less than.
[[nodiscard]] constexpr uint128 least_of(uint128 left, uint128 right) {
  return right < left ? right : left;
}
template <std::size_t R>
[[nodiscard]] constexpr resources<R> least_of(resources<R> const& left, resources<R> const& right) {
  resources<R> result = left;
  for (std::size_t r = 0; r != R; ++r) {
    if (right[r] < result[r]) result[r] = right[r];
  }
  return result;
}

/// Parts that fill up, each with a load. A tree over them knows below each node the least load and
/// the most room, so that a search leaves out what has no room for a sample or is not the least. It
/// finds what a look at every part would find.
template <class Layout, class Load>
class roomy_parts {
 public:
  using amounts_type = typename Layout::amounts_type;
  using demand_type = typename Layout::demand_type;
  using rooms_type = std::vector<typename Layout::room_type>;

  /// Knows no loads before `fill`. `layout` and `rooms` must outlive this object.
  roomy_parts(Layout const& layout, rooms_type const& rooms)
      : layout_(&layout), rooms_(&rooms), leaves_(std::bit_ceil(rooms.size())) {}

  [[nodiscard]] bool is_filled() const { return !nodes_.empty(); }

  /// `load(part)` is the load of a part now.
  template <class LoadOf>
  void fill(LoadOf const& load) {
    nodes_.resize(2 * leaves_);
    for (std::size_t leaf = 0; leaf != leaves_; ++leaf) {
      // Those that only fill the last level have no room, and the load of a part.
      bool const is_part = leaf < rooms_->size();
      nodes_[leaves_ + leaf] = {load(is_part ? leaf : 0),
                                is_part ? layout_->left((*rooms_)[leaf]) : amounts_type{}};
    }
    for (std::size_t node = leaves_; --node > 0;) join(node);
  }

  /// The part with room for `demand` of which `value(load)` is least, the first of equal ones; the
  /// number of parts where none has room. The value must not fall as any amount of the load rises.
  template <class Value>
  [[nodiscard]] std::size_t find(demand_type const& demand, Value const& value) const {
    search<Value> wanted{demand, layout_->amounts(demand), value, rooms_->size(), {}};
    visit(1, 0, leaves_, wanted);
    return wanted.part;
  }

  /// After the room of a part has changed, and its load to `load`.
  void set(std::size_t part, Load const& load) {
    std::size_t node = leaves_ + part;
    nodes_[node] = {load, layout_->left((*rooms_)[part])};
    while (node > 1) join(node >>= 1);
  }
  [[nodiscard]] Load const& load(std::size_t part) const { return nodes_[leaves_ + part].least; }

 private:
  struct bounds {
    Load least{};
    amounts_type most{};
  };
  template <class Value>
  struct search {
    demand_type const& demand;
    amounts_type amounts;
    Value const& value;
    std::size_t part;
    std::remove_cvref_t<std::invoke_result_t<Value const&, Load const&>> least;
  };

  void join(std::size_t node) {
    bounds const& left = nodes_[2 * node];
    bounds const& right = nodes_[2 * node + 1];
    amounts_type most = left.most;
    for (std::size_t r = 0; r != amounts_type::size(); ++r) {
      if (right.most[r] > most[r]) most[r] = right.most[r];
    }
    nodes_[node] = {least_of(left.least, right.least), most};
  }

  /// False where no part below a node has room. What rounding makes of floating-point amounts only
  /// the parts know.
  template <class Value>
  [[nodiscard]] bool may_fit(std::size_t node, search<Value> const& wanted) const {
    if constexpr (std::integral<typename amounts_type::value_type>) {
      return wanted.amounts.fits(nodes_[node].most);
    } else {
      return true;
    }
  }

  /// Looks at the parts [first, first + width) below a node.
  template <class Value>
  void visit(std::size_t node, std::size_t first, std::size_t width, search<Value>& wanted) const {
    std::size_t const parts = rooms_->size();
    if (first >= parts || !may_fit(node, wanted)) return;
    auto const least = wanted.value(nodes_[node].least);
    if (wanted.part != parts && wanted.least < least) return;
    if (wanted.part < first && !(least < wanted.least)) return;
    if (width == 1) {
      if (!layout_->fits((*rooms_)[first], wanted.demand)) return;
      wanted.part = first;
      wanted.least = least;
      return;
    }
    std::size_t const left = 2 * node;
    std::size_t const half = width / 2;
    bool const is_right_first =
        wanted.value(nodes_[left + 1].least) < wanted.value(nodes_[left].least);
    if (is_right_first) visit(left + 1, first + half, half, wanted);
    visit(left, first, half, wanted);
    if (!is_right_first) visit(left + 1, first + half, half, wanted);
  }

  Layout const* layout_;
  rooms_type const* rooms_;
  std::size_t leaves_;
  std::vector<bounds> nodes_;
};

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
