// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Balancing of costs over a given number of parts under a capacity.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/capped_times.hpp>
#include <omnibal/balance/detail/pair_repartition.hpp>
#include <omnibal/balance/detail/part_limits.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/part_refiner.hpp>
#include <omnibal/balance/detail/part_search.hpp>
#include <omnibal/balance/detail/part_times.hpp>
#include <omnibal/balance/detail/vector_load_index.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A tree over parts under a capacity. Each part has a word that orders the parts by load. Each
/// node stores the smallest word and, for each resource, the largest room below the node. A search
/// finds the same part as a scan of all parts.
template <class Layout>
class capacity_tree {
 public:
  using amounts_type = typename Layout::amounts_type;
  using demand_type = typename Layout::demand_type;
  using rooms_type = std::vector<typename Layout::room_type>;

  /// Creates an empty tree, which `fill` fills. `layout` and `rooms` must outlive this object.
  capacity_tree(Layout const& layout, rooms_type const& rooms)
      : layout_(&layout), rooms_(&rooms), leaves_(std::bit_ceil(rooms.size())) {}

  [[nodiscard]] bool is_filled() const { return !nodes_.empty(); }
  /// Returns the number of nodes that searches looked at.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

  /// Fills the tree; `word(part)` returns the present word of a part.
  template <class WordOf>
  void fill(WordOf const& word) {
    nodes_.resize(2 * leaves_);
    for (std::size_t leaf = 0; leaf != leaves_; ++leaf) {
      // Leaves without a part complete the last level. They have no room and the word of part 0;
      // searches skip them.
      bool const is_part = leaf < rooms_->size();
      nodes_[leaves_ + leaf] = {word(is_part ? leaf : 0),
                                is_part ? layout_->left((*rooms_)[leaf]) : amounts_type{}};
    }
    for (std::size_t node = leaves_; --node > 0;) join(node);
  }

  /// Returns the part with room for `demand` that has the smallest word; with equal words, the
  /// first part. If no part has room, returns the number of parts.
  [[nodiscard]] std::size_t find(demand_type const& demand) {
    search wanted{demand, layout_->amounts(demand), rooms_->size(), 0};
    visit(1, 0, leaves_, wanted);
    return wanted.part;
  }

  /// Updates the tree after the room of a part has changed, and sets its word to `word`.
  void set(std::size_t part, uint128 word) {
    std::size_t node = leaves_ + part;
    nodes_[node] = {word, layout_->left((*rooms_)[part])};
    while (node > 1) join(node >>= 1);
  }

 private:
  struct bounds {
    uint128 least = 0;
    amounts_type most{};
  };
  struct search {
    demand_type const& demand;
    amounts_type amounts;
    std::size_t part;
    uint128 least;
  };

  void join(std::size_t node) {
    bounds const& left = nodes_[2 * node];
    bounds const& right = nodes_[2 * node + 1];
    amounts_type most = left.most;
    for (std::size_t r = 0; r != amounts_type::size(); ++r) {
      if (right.most[r] > most[r]) most[r] = right.most[r];
    }
    nodes_[node] = {std::min(left.least, right.least), most};
  }

  /// Returns false if no part below a node has room. Floating-point amounts are compared only at
  /// the parts.
  [[nodiscard]] bool may_fit(std::size_t node, search const& wanted) const {
    if constexpr (std::integral<typename amounts_type::value_type>) {
      return wanted.amounts.fits(nodes_[node].most);
    } else {
      return true;
    }
  }

  /// Searches the parts [first, first + width) below a node.
  void visit(std::size_t node, std::size_t first, std::size_t width, search& wanted) {
    ++looks_;
    std::size_t const parts = rooms_->size();
    if (first >= parts || !may_fit(node, wanted)) return;
    uint128 const least = nodes_[node].least;
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
    bool const is_right_first = nodes_[left + 1].least < nodes_[left].least;
    if (is_right_first) visit(left + 1, first + half, half, wanted);
    visit(left, first, half, wanted);
    if (!is_right_first) visit(left + 1, first + half, half, wanted);
  }

  Layout const* layout_;
  rooms_type const* rooms_;
  std::size_t leaves_;
  std::vector<bounds> nodes_;
  std::uint64_t looks_ = 0;
};

/// Assigns each sample, in the order of `largest_first`, to the part with room and the smallest
/// cost. With equal costs, the part with the fewest samples gets the sample. Returns `std::nullopt`
/// if a sample finds no room, or if the searches look at more than 64 nodes per sample. Searches
/// look at many nodes if each part is full in some resource, because a node stores the largest room
/// of each resource separately.
template <class Layout>
[[nodiscard]] std::optional<std::vector<std::uint32_t>> place_by_cost(
    measured<Layout> const& input, integer_costs<1> const& costs,
    std::span<std::uint32_t const> order, std::size_t parts) {
  std::vector<typename Layout::room_type> rooms(parts, input.layout.empty_room());
  std::vector<std::uint32_t> part_of(order.size());
  std::vector<uint128> nodes(winner_tree<uint128>::nodes_for(parts));
  winner_tree<uint128> const least(nodes);
  // The word contains load, count and number of the part, and the smallest word identifies the best
  // part.
  auto const word = [](std::int64_t load, std::uint32_t count, std::size_t part) {
    return static_cast<uint128>(load) << 64 | static_cast<uint128>(count) << 32 | part;
  };
  std::vector<std::int64_t> loads(parts, 0);
  std::vector<std::uint32_t> counts(parts, 0);
  least.fill(parts, [&](std::size_t part) { return word(0, 0, part); });
  std::uint64_t const max_looks = 64 * std::uint64_t{order.size()};
  // The tree stays empty until the smallest part has no room for a sample.
  capacity_tree<Layout> others(input.layout, rooms);
  for (std::uint32_t const sample : order) {
    auto const& demand = input.demands[sample];
    auto part = static_cast<std::uint32_t>(least.least());
    if (!input.layout.fits(rooms[part], demand)) {
      if (!others.is_filled()) others.fill([&](std::size_t p) { return least[p]; });
      std::size_t const other = others.find(demand);
      if (other == parts || others.looks() > max_looks) return std::nullopt;
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

/// Returns the shares of each sample: its demand of each resource as a share of the capacity, and
/// last its cost as a share of `max_cost`.
template <class Layout>
[[nodiscard]] auto shares_of(measured<Layout> const& input, integer_costs<1> const& costs,
                             std::int64_t max_cost) {
  using amounts_type = typename Layout::amounts_type;
  constexpr std::size_t kinds = amounts_type::size();
  share_scale<std::int64_t> const cost_share(std::max<std::int64_t>(1, max_cost));
  std::vector<resources<kinds + 1>> shares(input.size());
  for (std::uint32_t k = 0; k != input.size(); ++k) {
    amounts_type const amounts = input.amounts(k);
    for (std::size_t r = 0; r != kinds; ++r) {
      shares[k][r] = share_scale<typename amounts_type::value_type>(input.capacity[r])(amounts[r]);
    }
    shares[k][kinds] = cost_share(costs[k][0]);
  }
  return shares;
}

/// Assigns samples by their shares. The sample with the largest sum of shares goes first, to the
/// part with room whose largest share with the sample is smallest. `rooms` are the rooms of empty
/// parts, and `loads` is an index of their shares. Returns `std::nullopt` if a sample finds no
/// room.
template <class Layout, class Shares, class Rooms, class Loads>
[[nodiscard]] std::optional<std::vector<std::uint32_t>> place_by_shares(
    measured<Layout> const& input, Shares const& shares, Rooms rooms, Loads loads) {
  std::vector<std::uint32_t> const order =
      order_descending(shares.size(), [&shares](std::size_t k) { return sum_of(shares[k]); });
  std::vector<std::uint32_t> part_of(input.size());
  for (std::uint32_t const sample : order) {
    auto const& demand = input.demands[sample];
    std::uint32_t const part =
        loads.best_of(shares[sample], [&](std::uint32_t p) { return rooms.fits(p, demand); });
    if (part == loads.none) return std::nullopt;
    part_of[sample] = part;
    rooms.take(part, demand);
    loads.add(part, shares[sample]);
  }
  return part_of;
}

/// Assigns samples by best fit. The sample with the largest sum of shares of the capacity goes
/// first, to the part with room whose room is smallest afterwards. Returns `std::nullopt` if a
/// sample finds no room. Complexity: one comparison for each sample and part.
template <class Layout>
[[nodiscard]] std::optional<std::vector<std::uint32_t>> place_by_best_fit(
    measured<Layout> const& input, part_limits<typename Layout::amounts_type> const& limits) {
  using amounts_type = typename Layout::amounts_type;
  capacity_shares<amounts_type::size(), typename amounts_type::value_type> const share(
      input.capacity);
  std::vector<std::uint32_t> const order =
      order_descending(input.size(), [&](std::size_t k) { return share.sum(input.amounts(k)); });
  part_rooms<Layout> rooms(input.layout, limits);
  std::vector<std::uint32_t> part_of(input.size());
  for (std::uint32_t const sample : order) {
    auto const& demand = input.demands[sample];
    load_order<std::uint64_t> best{std::numeric_limits<std::uint64_t>::max(),
                                   std::numeric_limits<std::uint32_t>::max()};
    for (std::uint32_t part = 0; part != rooms.size(); ++part) {
      if (!rooms.fits(part, demand)) continue;
      best = std::min(best, {share.sum(rooms.left(part)), part});
    }
    if (best.part == std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
    part_of[sample] = best.part;
    rooms.take(best.part, demand);
  }
  return part_of;
}

/// Finds the best exchange of two parts after which both are within their limits. For each sample
/// that may leave the heavy part, the search looks at samples of the light part: up to 8 on either
/// side of the cost that balances the two parts.
template <class Layout, class Limits = common_limit<typename Layout::amounts_type>>
class capped_exchanges {
 public:
  /// Creates the search. `order[place]` is the sample at each place. The arguments must outlive
  /// this object.
  capped_exchanges(measured<Layout> const& input, std::span<std::uint32_t const> order,
                   Limits const& limits)
      : input_(&input), order_(order), limits_(&limits) {}

  template <class Pair>
  [[nodiscard]] auto operator()(open_part<1> const& heavy, open_part<1> const& light,
                                integer_costs<1> const& costs, part_counts counts,
                                Pair const& pair) const {
    // The maximum number of samples that are tried on each side of the wanted cost.
    constexpr std::size_t max_on_a_side = 8;
    valued_exchange<gain_of<Pair>> best;
    auto const before = pair.larger(heavy.load[0], light.load[0]);
    amounts_type const heavy_demand = demand_of_part(heavy);
    amounts_type const light_demand = demand_of_part(light);
    auto const consider = [&](std::size_t i, std::size_t j) {
      bool const comes_any = j != part_exchange::nothing;
      resources<1> moved = costs[heavy.places[i]];
      if (comes_any) moved -= costs[light.places[j]];
      auto const gain = evaluate_exchange(heavy, light, moved, before, pair);
      if (gain <= best.gain) return;
      amounts_type const goes = demand_at(heavy.places[i]);
      amounts_type const comes = comes_any ? demand_at(light.places[j]) : amounts_type{};
      // The comparison avoids a sum, which could exceed the largest integer.
      if (!comes.fits((*limits_)[heavy.part] - (heavy_demand - goes))) return;
      if (!goes.fits((*limits_)[light.part] - (light_demand - comes))) return;
      best = {i, j, gain};
    };
    std::int64_t const gap = pair.gap(heavy.load[0], light.load[0]);
    auto const cost = [&](std::size_t k) { return costs[light.places[k]][0]; };
    std::size_t middle = 0;
    for (std::size_t i = 0; i != heavy.places.size(); ++i) {
      if (counts == part_counts::free) consider(i, part_exchange::nothing);
      middle = first_within(middle, light.places.size(), cost, costs[heavy.places[i]][0] - gap);
      std::size_t const first = middle - std::min(middle, max_on_a_side);
      std::size_t const last = std::min(light.places.size(), middle + max_on_a_side);
      for (std::size_t j = first; j != last; ++j) consider(i, j);
    }
    return holds(best, heavy, light) ? best : valued_exchange<gain_of<Pair>>{};
  }

  /// Returns a predicate on subsets of `candidates`: whether the two parts are within their limits
  /// after the exchange of the subset, without regard to rounding. The arguments `one` and `other`
  /// contain the samples of the parts that are not candidates.
  template <class Part, class Candidates>
  [[nodiscard]] auto filter(Part const& one, Part const& other,
                            Candidates const& candidates) const {
    exchanged_amounts made{(*limits_)[one.part] - demand_of(one.samples),
                           (*limits_)[other.part] - demand_of(other.samples)};
    for (std::size_t k = 0; k != candidates.size(); ++k) {
      auto const [leaves, comes] = candidates[k];
      if (leaves != split_candidate::none) made.leaves[k] = input_->amounts(leaves);
      if (comes != split_candidate::none) made.comes[k] = input_->amounts(comes);
      made.room_of_one -= made.leaves[k];
      made.room_of_other -= made.comes[k];
    }
    return made;
  }

  /// Returns false if rounding makes a part exceed its limit.
  template <class Part>
  [[nodiscard]] bool holds(Part const& one, Part const& other) const {
    if constexpr (std::integral<typename amounts_type::value_type>) {
      return true;
    } else {
      return fits_by_index(one.part, one.samples) && fits_by_index(other.part, other.samples);
    }
  }

 private:
  using amounts_type = typename Layout::amounts_type;

  /// A predicate on subsets of candidates: returns true if both parts fit the capacity after the
  /// exchange of the subset.
  struct exchanged_amounts {
    amounts_type room_of_one;
    amounts_type room_of_other;
    std::array<amounts_type, even_subset::max_changes> leaves{};
    std::array<amounts_type, even_subset::max_changes> comes{};

    [[nodiscard]] bool operator()(std::uint32_t subset) const {
      amounts_type left{};
      amounts_type come{};
      for (std::uint32_t rest = subset; rest != 0; rest &= rest - 1) {
        auto const k = static_cast<std::size_t>(std::countr_zero(rest));
        left += leaves[k];
        come += comes[k];
      }
      // This sum is at most the capacity: the room that is left and the room that the subset frees.
      left += room_of_one;
      if (!come.fits(left)) return false;
      left -= room_of_one;
      come += room_of_other;
      return left.fits(come);
    }
  };

  [[nodiscard]] amounts_type demand_of(std::vector<std::uint32_t> const& samples) const {
    amounts_type sum{};
    for (std::uint32_t const sample : samples) sum += input_->amounts(sample);
    return sum;
  }
  [[nodiscard]] bool fits_by_index(std::uint32_t part, std::vector<std::uint32_t> samples) const {
    std::sort(samples.begin(), samples.end());
    return input_->load(samples).fits((*limits_)[part]);
  }

  [[nodiscard]] amounts_type demand_at(std::uint32_t place) const {
    return input_->amounts(order_[place]);
  }
  [[nodiscard]] amounts_type demand_of_part(open_part<1> const& part) const {
    amounts_type sum{};
    for (std::uint32_t const place : part.places) sum += demand_at(place);
    return sum;
  }

  /// Returns false if rounding makes a part exceed the capacity.
  template <class Gain>
  [[nodiscard]] bool holds(valued_exchange<Gain> const& chosen, open_part<1> const& heavy,
                           open_part<1> const& light) const {
    if constexpr (std::integral<typename amounts_type::value_type>) {
      return true;
    } else {
      if (chosen.leaves == part_exchange::nothing) return true;
      return fits_exchanged(heavy, chosen.leaves, light, chosen.comes) &&
             fits_exchanged(light, chosen.comes, heavy, chosen.leaves);
    }
  }

  /// Returns whether a part fits the capacity without its sample at `goes` and with the sample of
  /// `other` at `comes`. The demands are summed by sample index.
  [[nodiscard]] bool fits_exchanged(open_part<1> const& part, std::size_t goes,
                                    open_part<1> const& other, std::size_t comes) const {
    std::vector<std::uint32_t> samples;
    for (std::size_t i = 0; i != part.places.size(); ++i) {
      if (i != goes) samples.push_back(order_[part.places[i]]);
    }
    if (comes != part_exchange::nothing) samples.push_back(order_[other.places[comes]]);
    return fits_by_index(part.part, std::move(samples));
  }

  measured<Layout> const* input_;
  std::span<std::uint32_t const> order_;
  Limits const* limits_;
};

/// The limits of `capped_balancer`; see `balance_under_capacity_options`.
struct capped_effort {
  std::size_t exchanges;
  std::size_t splits;
  std::size_t passes;
  /// The number of passes is at least this number divided by (64 + number of samples).
  std::size_t samples_in_passes;
  std::uint64_t nodes;
  double max_overload = 0;
  std::uint64_t seed = 0;
};

/// Returns the limits for the options of a function; `levels` contains the limits of each effort.
template <class Options>
[[nodiscard]] capped_effort effort_of(Options const& options,
                                      by_effort<capped_effort> const& levels) {
  capped_effort const& level = levels[options.effort];
  return {options.exchanges.value_or(level.exchanges),
          options.splits.value_or(level.splits),
          options.passes.value_or(level.passes),
          options.passes ? 0 : level.samples_in_passes,
          options.nodes.value_or(level.nodes),
          options.max_overload,
          options.seed};
}

/// Balances costs over parts under a capacity, or under one for each part if `Speeds` is
/// `part_speeds`. Precondition: each sample fits in an empty part. If capacities are equal, parts
/// with speeds are numbered from the fastest to the slowest.
template <class Layout, class Speeds = equal_speeds>
class capped_balancer {
  static constexpr bool is_equal = std::same_as<Speeds, equal_speeds>;

 public:
  using amounts_type = typename Layout::amounts_type;
  using limits_type =
      std::conditional_t<is_equal, common_limit<amounts_type>, part_limits<amounts_type>>;
  /// The time of a part: its load, or its load over its speed if speeds differ.
  using time = typename Speeds::time;

  /// Creates the balancer of parts with equal speeds. The arguments must outlive this object.
  capped_balancer(measured<Layout> const& input, integer_costs<1> const& costs,
                  capped_effort const& effort)
      : capped_balancer(input, costs, effort, {}, input.capacity) {}

  /// Creates the balancer. `input`, `costs` and `effort` must outlive this object.
  capped_balancer(measured<Layout> const& input, integer_costs<1> const& costs,
                  capped_effort const& effort, Speeds speeds, limits_type limits)
      : input_(input),
        costs_(costs),
        effort_(effort),
        speeds_(std::move(speeds)),
        limits_(std::move(limits)),
        order_(largest_first(costs)) {}

  /// Returns the part of each sample with even costs, or nothing if the search finds no room for
  /// all samples. `go_on` is the argument of `few_groups`.
  template <class GoOn>
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> balance(std::size_t parts, GoOn& go_on) {
    time const bound = lower_bound(parts);
    auto best = evened(placed_by_cost(parts), parts, bound);
    if (!best || largest_of(*best, parts) > with_overload(bound, effort_.max_overload)) {
      auto other = evened(placed_by_shares(parts, bound), parts, bound);
      if (other && (!best || largest_of(*other, parts) < largest_of(*best, parts))) {
        best = std::move(other);
      }
    }
    if (!best) best = evened(placed_in_groups(parts, go_on), parts, bound);
    if constexpr (!is_equal && std::integral<weight_type>) {
      if (best) search_times(with_overload(bound, effort_.max_overload), *best);
    }
    return best;
  }

  /// Returns the largest load, or load over speed.
  [[nodiscard]] time largest_of(std::vector<std::uint32_t> const& part_of,
                                std::size_t parts) const {
    if constexpr (is_equal) {
      return largest_load(costs_, part_of, parts);
    } else {
      return largest_time(costs_, std::span(part_of), speeds_);
    }
  }

  /// Returns a packing of the samples. The first call computes the packing, and stops if it has at
  /// most `wanted` groups or if `go_on` returns false. Later calls return the same groups.
  template <class GoOn>
  [[nodiscard]] grouping const& few_groups(std::size_t wanted, GoOn& go_on) {
    if (groups_) return *groups_;
    auto const demand = [layout = input_.layout](auto const& sample) {
      return layout.amounts(sample);
    };
    packing packed = best_packing(input_.demands, demand, input_.capacity);
    if (packed.groups.size() > wanted) {
      // Few samples get more passes, because a pass over them is cheap; 64 limits the number of
      // passes.
      std::size_t const passes =
          std::max(effort_.passes, effort_.samples_in_passes / (64 + input_.size()));
      packed = improve_packing(input_.demands, demand, input_.capacity, packed,
                               {.passes = passes, .even_passes = 0, .seed = effort_.seed},
                               [wanted, &go_on](improve_packing_progress const& so_far) {
                                 return go_on(so_far) && so_far.groups > wanted;
                               });
    }
    return groups_.emplace(std::move(packed.groups));
  }

  /// Tries all ways to place at most 64 samples. A solution replaces the groups that `few_groups`
  /// returns.
  [[nodiscard]] solve_status search(std::size_t parts) {
    // The maximum number of samples of an exhaustive search.
    constexpr std::size_t max_searched_samples = 64;
    if (input_.size() > max_searched_samples) return solve_status::not_found;
    capacity_shares<amounts_type::size(), weight_type> const share(input_.capacity);
    auto const order = order_descending(
        input_.size(), [&](std::size_t k) { return share.sum(input_.amounts(k)); });
    std::vector<amounts_type> amounts;
    for (std::uint32_t const sample : order) amounts.push_back(input_.amounts(sample));
    limits_type limits = limits_;
    if constexpr (!std::integral<weight_type>) {
      for (std::size_t r = 0; r != amounts_type::size(); ++r) {
        // The scale prevents overflow of sums in the search; a power of two keeps the digits.
        constexpr weight_type scale = 0x1p-8;
        if (input_.capacity[r] > std::numeric_limits<weight_type>::max() * scale) {
          limits.for_each([r](amounts_type& limit) { limit[r] *= scale; });
          for (amounts_type& sample : amounts) sample[r] *= scale;
        }
        // With this additional room, a failed search proves infeasibility in spite of all rounding.
        limits.for_each([r](amounts_type& limit) { limit[r] *= 1 + 1e-12; });
      }
    }
    part_search<amounts_type, limits_type> tried(std::move(amounts), std::move(limits),
                                                 count_limits(parts));
    std::uint64_t nodes = effort_.nodes;
    solve_status const status = tried.run(nodes);
    if (status != solve_status::solved) return status;
    std::vector<std::uint32_t> part_of(order.size());
    for (std::size_t i = 0; i != order.size(); ++i) part_of[order[i]] = tried.placed()[i];
    grouping found = collect_parts(part_of, parts);
    if (!holds(found)) return solve_status::not_found;
    groups_ = std::move(found);
    return status;
  }

  /// Exchanges samples between parts until the largest cost exceeds `bound` by at most
  /// `max_overload`, or the effort is spent. `order` contains the samples of the parts in the order
  /// of `largest_first`.
  void even(std::span<std::uint32_t const> order, std::vector<std::uint32_t>& part_of,
            std::size_t parts, time bound, std::size_t splits) const {
    even_parts(costs_, order, part_of, parts, with_overload(bound, effort_.max_overload),
               {search_budget(effort_.exchanges), splits, effort_.seed}, part_counts::free,
               capped_exchanges<Layout, limits_type>(input_, order, limits_), speeds_);
  }

  /// Returns the samples from the largest to the smallest cost.
  [[nodiscard]] std::span<std::uint32_t const> order() const { return order_; }
  /// Returns a lower bound on the largest load, or load over speed.
  [[nodiscard]] time lower_bound(std::size_t parts) const {
    if constexpr (is_equal) {
      return min_load(costs_, std::span(order_), parts);
    } else {
      return min_time(costs_, std::span(order_), speeds_);
    }
  }

 private:
  using weight_type = typename amounts_type::value_type;

  /// Replaces the parts of few samples with different speeds or capacities by the parts with the
  /// smallest largest time, unless the largest time is at most `goal`. The branch and bound ends at
  /// the limit on nodes.
  void search_times(time goal, std::vector<std::uint32_t>& best) const {
    // The maximum number of samples.
    constexpr std::size_t max_samples = 16;
    constexpr std::size_t kinds = amounts_type::size();
    using limited = resources<kinds + 1>;
    if (input_.size() > max_samples) return;
    auto const with_cost = [](amounts_type const& amounts, std::int64_t cost) {
      limited result;
      for (std::size_t r = 0; r != kinds; ++r) result[r] = static_cast<std::int64_t>(amounts[r]);
      result[kinds] = cost;
      return result;
    };
    auto const limits_below = [&](time largest) {
      std::vector<limited> limits;
      for (std::size_t part = 0; part != speeds_.size(); ++part) {
        limits.push_back(with_cost(limits_[part], load_below(largest, speeds_[part])));
      }
      return part_limits<limited>(std::move(limits));
    };
    std::vector<limited> samples;
    for (std::uint32_t const sample : order_) {
      samples.push_back(with_cost(input_.amounts(sample), costs_[sample][0]));
    }
    std::uint64_t nodes = effort_.nodes;
    time largest = largest_of(best, speeds_.size());
    if (!(goal < largest)) return;
    part_search<limited, part_limits<limited>> tried(std::move(samples), limits_below(largest),
                                                     count_limits(speeds_.size()));
    while (goal < largest && tried.run(nodes) == solve_status::solved) {
      for (std::size_t i = 0; i != order_.size(); ++i) best[order_[i]] = tried.placed()[i];
      largest = largest_of(best, speeds_.size());
      if (goal < largest) tried.lower_limit(limits_below(largest));
    }
  }

  [[nodiscard]] std::optional<std::vector<std::uint32_t>> placed_by_cost(std::size_t parts) const {
    if constexpr (is_equal) {
      return place_by_cost(input_, costs_, order_, parts);
    } else {
      return place_by_cost(input_, costs_, order_, limits_, speeds_);
    }
  }

  /// Places samples by shares, with costs as shares of `bound`, or of twice `bound` if not all
  /// samples find room. With twice the bound, the cost has a smaller weight than the capacity.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> placed_by_shares(std::size_t parts,
                                                                           time bound) const {
    if (is_nearly_full(parts)) return std::nullopt;
    auto part_of = placed_by_shares_of(parts, bound);
    if (!part_of) part_of = placed_by_shares_of(parts, with_overload(bound, 1.0));
    return part_of;
  }
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> placed_by_shares_of(std::size_t parts,
                                                                              time max_time) const {
    constexpr std::size_t kinds = amounts_type::size() + 1;
    if constexpr (is_equal) {
      return place_by_shares(input_, shares_of(input_, costs_, max_time),
                             common_rooms<Layout>(input_.layout, parts),
                             vector_load_index<kinds>(parts));
    } else {
      timed_shares<kinds> parts_by_share(speeds_);
      if (!limits_.are_equal()) close_missing_room(parts_by_share);
      return place_by_shares(input_, shares_of(input_, costs_, load_of_fastest(max_time, speeds_)),
                             part_rooms<Layout>(input_.layout, limits_), parts_by_share);
    }
  }

  /// Adds the room that a part has less than the largest capacity to the shares of the part.
  template <std::size_t Kinds>
  void close_missing_room(timed_shares<Kinds>& shares) const {
    for (std::uint32_t part = 0; part != limits_.size(); ++part) {
      resources<Kinds> missing{};
      for (std::size_t r = 0; r != amounts_type::size(); ++r) {
        missing[r] =
            share_scale<weight_type>(input_.capacity[r])(input_.capacity[r] - limits_[part][r]);
      }
      shares.add(part, missing);
    }
  }

  /// Returns the groups of `few_groups` as parts, or `std::nullopt` if there are too many of them.
  /// Groups fit any part only if capacities are equal; otherwise the samples are placed by best
  /// fit.
  template <class GoOn>
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> placed_in_groups(std::size_t parts,
                                                                           GoOn& go_on) {
    if constexpr (!is_equal) {
      if (!limits_.are_equal() && !groups_) return place_by_best_fit(input_, limits_);
    }
    if (few_groups(parts, go_on).size() > parts) return std::nullopt;
    std::vector<std::uint32_t> part_of;
    part_of_samples("best_packing", "group", *groups_, input_.size(), part_of);
    if constexpr (!is_equal) {
      if (limits_.are_equal()) number_by_cost(part_of, parts);
    }
    return part_of;
  }

  /// Numbers parts from the largest to the smallest cost, because part 0 is the fastest.
  void number_by_cost(std::vector<std::uint32_t>& part_of, std::size_t parts) const {
    integer_costs<1> loads(parts, resources<1>{});
    for (std::size_t k = 0; k != part_of.size(); ++k) loads[part_of[k]] += costs_[k];
    std::vector<std::uint32_t> const order = largest_first(loads);
    std::vector<std::uint32_t> number_of(parts);
    for (std::uint32_t k = 0; k != parts; ++k) number_of[order[k]] = k;
    for (std::uint32_t& part : part_of) part = number_of[part];
  }

  /// Returns whether, in some resource, the mean room left in a part is less than half of the
  /// smallest demand of a sample. Parts that are filled evenly then have no room for the last
  /// samples.
  [[nodiscard]] bool is_nearly_full(std::size_t parts) const {
    if (input_.size() == 0) return false;
    for (std::size_t r = 0; r != amounts_type::size(); ++r) {
      auto least = static_cast<double>(input_.capacity[r]);
      double room = limits_.sum_of(r, parts);
      for (std::uint32_t k = 0; k != input_.size(); ++k) {
        auto const amount = static_cast<double>(input_.amounts(k)[r]);
        least = std::min(least, amount);
        room -= amount;
      }
      if (room < least / 2 * static_cast<double>(parts)) return true;
    }
    return false;
  }

  /// Returns false if rounding makes a part exceed the capacity when it is summed by index.
  [[nodiscard]] bool holds(grouping const& parts) const {
    if constexpr (!std::integral<weight_type>) {
      for (std::size_t p = 0; p != parts.size(); ++p) {
        if (!input_.load(parts[p]).fits(limits_[p])) return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::optional<std::vector<std::uint32_t>> evened(
      std::optional<std::vector<std::uint32_t>> part_of, std::size_t parts, time bound) const {
    if (!part_of || !holds(collect_parts(*part_of, parts))) return std::nullopt;
    // With fewer exchanges than parts, splits leave most parts unchanged but take as long as
    // packing.
    even(order_, *part_of, parts, bound, effort_.exchanges < parts ? 0 : effort_.splits);
    return part_of;
  }

  measured<Layout> const& input_;
  integer_costs<1> const& costs_;
  capped_effort effort_;
  Speeds speeds_;
  limits_type limits_;
  std::vector<std::uint32_t> order_;
  std::optional<grouping> groups_;
};

}  // namespace omnibal::inline v0::detail
