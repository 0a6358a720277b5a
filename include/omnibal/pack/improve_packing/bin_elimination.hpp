// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Reduction of the number of groups: some groups are dissolved, and their samples fill the other
/// groups.

#include <omnibal/config.hpp>
#include <omnibal/detail/checked_gain.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/detail/collect_groups.hpp>
#include <omnibal/pack/detail/demand_traits.hpp>
#include <omnibal/pack/detail/open_bin_index.hpp>
#include <omnibal/pack/improve_packing/pack_afresh.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The size of a demand: the sum of its shares of the capacity, each weighted by the square of the
/// scarcity of its resource. The scarcity of a resource is its total demand divided by its
/// capacity, relative to the scarcest resource. Sizes are below 2^62.
///
/// Source of the weights: Panigrahy, Talwar, Uyeda, Wieder, "Heuristics for vector bin packing",
/// 2011.
template <std::size_t R, class T>
class scarcity_weighted_size {
 public:
  template <class Layout>
  explicit scarcity_weighted_size(measured<Layout> const& input) : share_(input.capacity) {
    std::uint64_t totals[R] = {};
    std::uint64_t most = 1;
    for (std::size_t r = 0; r != R; ++r) {
      auto const amount = input.amounts_of(r);
      // Shares are at most 2^31, so that the shares of 2^32 samples can be added.
      for (std::size_t k = 0; k != input.size(); ++k) totals[r] += share_(amount(k), r) >> 32;
      most = std::max(most, totals[r]);
    }
    for (std::size_t r = 0; r != R; ++r) {
      auto const scarcity = static_cast<uint128>(totals[r]) * 65535 / most;
      weights_[r] = static_cast<std::uint64_t>(scarcity * scarcity >> 16);
    }
  }

  [[nodiscard]] std::uint64_t operator()(resources<R, T> const& amounts) const {
    std::uint64_t size = 0;
    for (std::size_t r = 0; r != R; ++r) size += (share_(amounts[r], r) >> 17) * weights_[r];
    return size;
  }

 private:
  capacity_shares<R, T> share_;
  std::uint64_t weights_[R] = {};
};

/// Samples without a group, which groups exchange for some of their own samples.
///
/// An index of groups by their room finds the largest sample within a limit. For this index, a
/// sample is a group that contains only this sample, and the demand that must still fit is the
/// capacity less the limit.
template <class Layout>
class exchange_pool {
 public:
  using amounts_type = typename Layout::amounts_type;
  using weight_type = typename amounts_type::value_type;
  static constexpr std::size_t kinds = amounts_type::size();
  using size_type = scarcity_weighted_size<kinds, weight_type>;

  /// Creates a pool for the samples of `input`. The pool must be cleared before use. Both arguments
  /// must outlive the pool.
  exchange_pool(measured<Layout> const& input, size_type const& size)
      : input_(input),
        size_(size),
        rooms_(rooms_of(input)),
        traits_(traits_of(input.layout, input.demands, input.capacity)) {}

  /// Empties the pool.
  void clear() {
    cells_.emplace(input_.capacity, traits_, input_.size());
    is_in_.assign(input_.size(), false);
  }

  /// Adds a sample. Precondition: the sample is not in the pool.
  void add(std::uint32_t sample) {
    cells_->push(sample, input_.layout.left(rooms_[sample]));
    is_in_[sample] = true;
  }

  [[nodiscard]] bool contains(std::uint32_t sample) const { return is_in_[sample]; }

  /// Exchanges up to two samples of the group for one or two samples of the pool. Repeats this
  /// while an exchange reduces the room of the group, within a budget.
  void fill(std::vector<std::uint32_t>& group, rng::engine& words) {
    // Few groups use the whole budget.
    for (search_budget budget(8); !budget.is_spent(); budget.spend()) {
      exchange const best = best_exchange(group, words);
      if (best.gain == 0 || !apply_exchange(best, group)) return;
    }
  }

 private:
  using cells_type = open_bin_index<kinds, weight_type>;
  using place = typename cells_type::place;
  static constexpr std::uint32_t none = cells_type::none;
  static constexpr std::size_t no_position = static_cast<std::size_t>(-1);

  /// The samples that leave a group, by position in the group, and the samples that the group
  /// receives, by place in the pool.
  struct exchange {
    std::size_t goes[2] = {no_position, no_position};
    place comes[2] = {};
    /// The decrease of the size of the room in the group.
    std::int64_t gain = 0;
  };

  [[nodiscard]] static std::vector<typename Layout::room_type> rooms_of(
      measured<Layout> const& input) {
    std::vector<typename Layout::room_type> rooms(input.size(), input.layout.empty_room());
    for (std::size_t k = 0; k != rooms.size(); ++k) input.layout.take(rooms[k], input.demands[k]);
    return rooms;
  }

  /// Returns `whole` less `part`, never below zero in spite of rounding.
  [[nodiscard]] static amounts_type difference(amounts_type whole, amounts_type const& part) {
    for (std::size_t r = 0; r != kinds; ++r) {
      whole[r] = std::max(weight_type{0}, static_cast<weight_type>(whole[r] - part[r]));
    }
    return whole;
  }

  /// Returns the sample of the pool that leaves the least of `limit`.
  [[nodiscard]] place largest_within(amounts_type const& limit) const {
    auto const size_left = [this](amounts_type const& left, amounts_type const&) {
      return size_(left);
    };
    return cells_->find(group_rooms<Layout>{input_.layout, rooms_.data()},
                        input_.layout.encode(difference(input_.capacity, limit)), size_left);
  }

  /// Returns a random part of `amounts`, between a half and the whole, the same share for each
  /// resource.
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

  /// Returns the room of a group, computed from its samples.
  [[nodiscard]] amounts_type room_of(std::vector<std::uint32_t> const& group) const {
    return difference(input_.capacity, input_.load(group));
  }

  /// Returns the gain if a group has the room `left` in place of `room`: the decrease of its size.
  [[nodiscard]] std::int64_t evaluate_exchange(amounts_type const& room,
                                               amounts_type const& left) const {
    return static_cast<std::int64_t>(size_(room)) - static_cast<std::int64_t>(size_(left));
  }
  /// Returns the tolerance of a checked gain for this number of samples. Sizes weight units of
  /// 2^-45 of the capacity by less than 2^16. Each addition may round by 2^-53 of the capacity.
  [[nodiscard]] static constexpr std::int64_t tolerance(std::size_t samples) {
    if constexpr (std::integral<weight_type>) {
      return 0;
    } else {
      return static_cast<std::int64_t>(kinds * (4 + samples / 32)) << 16;
    }
  }

  /// Returns the exchange that leaves the least of the capacity, among the exchanges that are
  /// tried. If no exchange reduces the room of the group, the result has a gain of zero and
  /// receives no samples.
  [[nodiscard]] exchange best_exchange(std::vector<std::uint32_t> const& group,
                                       rng::engine& words) const {
    // The number of pairs that are tried for each limit, and of samples of the group that may
    // leave.
    constexpr unsigned pairs = 3;
    constexpr std::size_t max_tried = 8;
    amounts_type const room = room_of(group);
    exchange best;
    // An exchange with this gain leaves no room.
    auto const most = static_cast<std::int64_t>(size_(room));
    auto const consider = [&](amounts_type const& limit, std::size_t first, std::size_t second) {
      place const largest = largest_within(limit);
      if (largest.group == none) return;
      auto const keep_better = [&](amounts_type const& left, place const& one, place const& other) {
        std::int64_t const gain = evaluate_exchange(room, left);
        if (gain <= best.gain) return;
        best = {{first, second}, {one, other}, gain};
      };
      keep_better(difference(limit, input_.amounts(largest.group)), largest, place{});
      for (unsigned pair = 0; pair != pairs && best.gain != most; ++pair) {
        place const one = pair == 0 ? largest : largest_within(random_part(limit, words));
        if (one.group == none) continue;
        amounts_type const rest = difference(limit, input_.amounts(one.group));
        place const other = largest_within(rest);
        if (other.group == none || other.group == one.group) continue;
        keep_better(difference(rest, input_.amounts(other.group)), one, other);
      }
    };

    if (best.gain != most) consider(room, no_position, no_position);
    std::size_t const candidates = std::min(group.size(), max_tried);
    for (std::size_t i = 0; i != candidates && best.gain != most; ++i) {
      consider(room + input_.amounts(group[i]), i, no_position);
    }
    for (std::size_t i = 0; i != candidates; ++i) {
      for (std::size_t j = i + 1; j != candidates && best.gain != most; ++j) {
        consider(room + input_.amounts(group[i]) + input_.amounts(group[j]), i, j);
      }
    }
    return best;
  }

  /// Performs an exchange. Returns false and changes nothing if rounding makes the group exceed the
  /// capacity.
  bool apply_exchange(exchange const& chosen, std::vector<std::uint32_t>& group) {
    std::vector<std::uint32_t>& after = scratch_;
    after.clear();
    for (std::size_t i = 0; i != group.size(); ++i) {
      if (i != chosen.goes[0] && i != chosen.goes[1]) after.push_back(group[i]);
    }
    for (place const& comes : chosen.comes) {
      if (comes.group != none) after.push_back(comes.group);
    }
    if (!input_.load(after).fits(input_.capacity)) return false;
    auto const objective = [&] { return static_cast<std::int64_t>(size_(room_of(group))); };
    auto const replace = [&] {
      take(chosen.comes);
      for (std::size_t const position : chosen.goes) {
        if (position != no_position) add(group[position]);
      }
      group.swap(after);
    };
    apply_checked({"bin_elimination", "exchange"}, chosen.gain, objective, replace,
                  tolerance(group.size() + after.size()));
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

/// Reduces the number of groups of a packing, pass by pass.
///
/// A pass dissolves a share of the groups into a pool: groups with much room, and some by chance.
/// The pass then fills the other groups from the pool, the fullest first, and packs the pool again.
/// The demands in the pool shrink by the gain of the other groups, so that the pool requires fewer
/// groups. A larger pool wastes more when it is packed, but the other groups gain more from it. The
/// share therefore begins with a half and falls whenever a pass gains too little.
template <class Layout>
class group_reducer {
 public:
  /// `input` must outlive this object.
  group_reducer(measured<Layout> const& input, std::uint64_t seed)
      : input_(input), size_(input), pool_(input, size_), words_(seed) {}

  /// Performs one pass over `groups`, which never increases their number. Precondition: there are
  /// at least two groups.
  void run(grouping& groups) {
    std::size_t const count = groups.size();
    grouping after = dissolve_and_refill(groups, pool_groups(count));
    std::size_t const gain = count - std::min(count, after.size());
    // A packing with the same number of groups is kept, because the next pass may find an
    // improvement from it.
    if (after.size() <= count) groups = std::move(after);
    if (gain * 200 < pool_groups(count)) share_ = share_ / 10 * 7;
    if (pool_groups(count) == min_pool_groups) {
      has_stalled_ = true;
      share_ = largest_share;
      is_exhausted_ = !has_gained_;
      has_gained_ = false;
    }
    has_gained_ = has_gained_ || gain != 0;
    ++pass_;
  }

  /// Returns true if passes with all shares of dissolved groups have run.
  [[nodiscard]] bool has_stalled() const { return has_stalled_; }

  /// Returns true after passes with all shares, none of which gained anything. The gain of the last
  /// of these passes counts for the next round.
  [[nodiscard]] bool is_exhausted() const { return is_exhausted_; }

 private:
  using amounts_type = typename Layout::amounts_type;
  static constexpr std::uint64_t largest_share = std::uint64_t{1} << 31;
  static constexpr std::size_t min_pool_groups = 2;

  /// Returns the number of groups that a pass dissolves.
  [[nodiscard]] std::size_t pool_groups(std::size_t count) const {
    return std::max(min_pool_groups, static_cast<std::size_t>(count * share_ >> 32));
  }

  [[nodiscard]] grouping dissolve_and_refill(grouping const& groups, std::size_t dissolved) {
    std::vector<std::uint32_t> const order = order_groups(groups);
    std::size_t const kept = groups.size() - dissolved;
    pool_.clear();
    std::vector<std::uint32_t> of_no_size;
    for (std::size_t i = kept; i != order.size(); ++i) {
      for (std::uint32_t const sample : groups[order[i]]) {
        // Samples of zero demand fill no room and fit any group.
        if (kept != 0 && input_.amounts(sample) == amounts_type{}) {
          of_no_size.push_back(sample);
        } else {
          pool_.add(sample);
        }
      }
    }
    grouping result;
    result.reserve(groups.size() + 1, input_.size());
    for (std::uint32_t const sample : of_no_size) result.push(sample);
    for (std::size_t i = 0; i != kept; ++i) {
      auto const before = groups[order[i]];
      group_.assign(before.begin(), before.end());
      pool_.fill(group_, words_);
      for (std::uint32_t const sample : group_) result.push(sample);
      result.close();
    }
    append_pool(result);
    return result;
  }

  /// Returns the groups by descending size of their load, with some noise.
  [[nodiscard]] std::vector<std::uint32_t> order_groups(grouping const& groups) {
    std::uint64_t const whole = size_(input_.capacity);
    std::uint64_t const noise = whole / (pass_ % 2 == 0 ? 50 : 10) + 1;
    std::vector<std::uint64_t> keys(groups.size());
    for (std::size_t g = 0; g != keys.size(); ++g) {
      keys[g] = size_(input_.load(groups[g])) + noise - rng::below(words_, noise);
    }
    return order_descending(keys.size(), [&keys](std::size_t g) { return keys[g]; });
  }

  /// Packs the samples of the pool and appends their groups.
  void append_pool(grouping& result) {
    std::vector<std::uint32_t> samples;
    for (std::uint32_t k = 0; k != input_.size(); ++k) {
      if (pool_.contains(k)) samples.push_back(k);
    }
    grouping const packed = pack_afresh(input_, samples);
    for (auto const group : packed) {
      for (std::uint32_t const sample : group) result.push(sample);
      result.close();
    }
  }

  measured<Layout> const& input_;
  scarcity_weighted_size<amounts_type::size(), typename amounts_type::value_type> size_;
  exchange_pool<Layout> pool_;
  rng::engine words_;
  std::vector<std::uint32_t> group_;
  std::uint64_t share_ = largest_share;
  std::uint64_t pass_ = 0;
  bool has_gained_ = false;
  bool has_stalled_ = false;
  bool is_exhausted_ = false;
};

}  // namespace omnibal::inline v0::detail
