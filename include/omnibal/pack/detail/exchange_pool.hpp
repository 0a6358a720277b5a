#pragma once

/// \file
/// Filling a group by exchanging its samples for better ones from a pool.

#include <omnibal/pack/detail/cell_rooms.hpp>
#include <omnibal/pack/detail/demand_traits.hpp>
#include <omnibal/pack/detail/measure.hpp>
#include <omnibal/pack/detail/scarce_size.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Samples without a group, which groups take in exchange for others of theirs.
///
/// The largest sample within a limit is looked up as groups are looked up by their room: a sample
/// is a group that has nothing but it, and what the limit leaves of the capacity is the demand that
/// must still fit.
template <class Layout>
class exchange_pool {
 public:
  using amounts_type = typename Layout::amounts_type;
  using weight_type = typename amounts_type::value_type;
  static constexpr std::size_t kinds = amounts_type::size();
  using size_type = scarce_size<kinds, weight_type>;

  /// A pool for the samples of `input`, to be cleared before use. Both arguments must outlive it.
  exchange_pool(measured<Layout> const& input, size_type const& size)
      : input_(input),
        size_(size),
        rooms_(rooms_of(input)),
        traits_(traits_of(input.layout, input.demands, input.capacity)) {}

  /// Empties the pool.
  void clear() {
    cells_.emplace(input_.layout, rooms_.data(), input_.capacity, traits_, input_.size());
    is_in_.assign(input_.size(), false);
  }

  /// Precondition: the sample is not in the pool.
  void add(std::uint32_t sample) {
    cells_->push(sample);
    is_in_[sample] = true;
  }

  [[nodiscard]] bool contains(std::uint32_t sample) const { return is_in_[sample]; }

  /// Exchanges samples of the group for others of the pool, as long as that leaves less of the
  /// capacity and at most `most_exchanges` times: up to two of its samples against one or two.
  void fill(std::vector<std::uint32_t>& group, rng::engine& words) {
    constexpr unsigned most_exchanges = 8;
    for (unsigned i = 0; i != most_exchanges; ++i) {
      exchange const best = best_exchange(group, words);
      if (best.comes[0].group == none || !carry_out(best, group)) return;
    }
  }

 private:
  using cells_type = cell_rooms<Layout, kinds, weight_type>;
  using place = typename cells_type::place;
  static constexpr std::uint32_t none = cells_type::none;
  static constexpr std::size_t no_position = static_cast<std::size_t>(-1);

  /// What a group gives, by position in it, and what it takes, by place in the pool.
  struct exchange {
    std::size_t goes[2] = {no_position, no_position};
    place comes[2] = {};
  };

  [[nodiscard]] static std::vector<typename Layout::room_type> rooms_of(
      measured<Layout> const& input) {
    std::vector<typename Layout::room_type> rooms(input.size(), input.layout.empty_room());
    for (std::size_t k = 0; k != rooms.size(); ++k) input.layout.take(rooms[k], input.demands[k]);
    return rooms;
  }

  /// `whole` less `part`, and not below zero for all rounding.
  [[nodiscard]] static amounts_type difference(amounts_type whole, amounts_type const& part) {
    for (std::size_t r = 0; r != kinds; ++r) {
      whole[r] = std::max(weight_type{0}, static_cast<weight_type>(whole[r] - part[r]));
    }
    return whole;
  }

  /// The sample of the pool that leaves the least of `limit`.
  [[nodiscard]] place largest_within(amounts_type const& limit) const {
    auto const size_left = [this](amounts_type const& left, amounts_type const&) {
      return size_(left);
    };
    return cells_->find(input_.layout.encode(difference(input_.capacity, limit)), size_left);
  }

  /// Between a half and the whole of `amounts`, the same share of each.
  [[nodiscard]] static amounts_type random_part(amounts_type amounts, rng::engine& words) {
    std::uint64_t const share = (words() >> 48) + 65536;
    for (std::size_t r = 0; r != kinds; ++r) {
      if constexpr (std::floating_point<weight_type>) {
        amounts[r] *= static_cast<double>(share) / 131072.0;
      } else {
        auto const product = static_cast<uint128>(amounts[r]) * share;
        amounts[r] = static_cast<weight_type>(product >> 17);
      }
    }
    return amounts;
  }

  /// The exchange that leaves the least of the capacity, of those that are tried; without samples
  /// that come where none leaves less than the group has left now.
  [[nodiscard]] exchange best_exchange(std::vector<std::uint32_t> const& group,
                                       rng::engine& words) const {
    constexpr unsigned pairs = 3;
    constexpr std::size_t most_tried = 8;
    amounts_type const room = difference(input_.capacity, input_.load(group));
    exchange best;
    std::uint64_t least = size_(room);
    auto const consider = [&](amounts_type const& limit, std::size_t first, std::size_t second) {
      place const largest = largest_within(limit);
      if (largest.group == none) return;
      auto const keep_better = [&](amounts_type const& left, place const& one, place const& other) {
        std::uint64_t const size = size_(left);
        if (size >= least) return;
        least = size;
        best = {{first, second}, {one, other}};
      };
      keep_better(difference(limit, input_.amounts(largest.group)), largest, place{});
      for (unsigned pair = 0; pair != pairs && least != 0; ++pair) {
        place const one = pair == 0 ? largest : largest_within(random_part(limit, words));
        if (one.group == none) continue;
        amounts_type const rest = difference(limit, input_.amounts(one.group));
        place const other = largest_within(rest);
        if (other.group == none || other.group == one.group) continue;
        keep_better(difference(rest, input_.amounts(other.group)), one, other);
      }
    };

    if (least != 0) consider(room, no_position, no_position);
    std::size_t const candidates = std::min(group.size(), most_tried);
    for (std::size_t i = 0; i != candidates && least != 0; ++i) {
      consider(room + input_.amounts(group[i]), i, no_position);
    }
    for (std::size_t i = 0; i != candidates; ++i) {
      for (std::size_t j = i + 1; j != candidates && least != 0; ++j) {
        consider(room + input_.amounts(group[i]) + input_.amounts(group[j]), i, j);
      }
    }
    return best;
  }

  /// False, and nothing changes, where rounding makes the group exceed the capacity.
  bool carry_out(exchange const& chosen, std::vector<std::uint32_t>& group) {
    std::vector<std::uint32_t>& after = scratch_;
    after.clear();
    for (std::size_t i = 0; i != group.size(); ++i) {
      if (i != chosen.goes[0] && i != chosen.goes[1]) after.push_back(group[i]);
    }
    for (place const& comes : chosen.comes) {
      if (comes.group != none) after.push_back(comes.group);
    }
    if (!input_.load(after).fits(input_.capacity)) return false;
    take(chosen.comes);
    for (std::size_t const position : chosen.goes) {
      if (position != no_position) add(group[position]);
    }
    group.swap(after);
    return true;
  }

  void take(place const (&places)[2]) {
    auto [first, second] = std::pair(places[0], places[1]);
    cells_->remove(first);
    is_in_[first.group] = false;
    if (second.group == none) return;
    if (second.before == first.group) second.before = first.before;
    cells_->remove(second);
    is_in_[second.group] = false;
  }

  measured<Layout> const& input_;
  size_type const& size_;
  std::vector<typename Layout::room_type> rooms_;
  demand_traits<kinds, weight_type> traits_;
  std::optional<cells_type> cells_;
  std::vector<bool> is_in_;
  std::vector<std::uint32_t> scratch_;
};

}  // namespace omnibal::inline v0::detail
