// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Local search for the placement of the experts of a layer.

#include <omnibal/detail/by_effort.hpp>
#include <omnibal/detail/checked_gain.hpp>
#include <omnibal/experts/place_experts/placed_layer.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The limits of a search.
struct placement_effort {
  /// The number of ranks with the smallest loads whose moves are all evaluated for the best move.
  std::size_t light_ranks;
  /// True if the other ranks are evaluated too when no move with these ranks helps.
  bool may_widen;
  /// The number of random changes times the number of slots. A descent follows each change.
  std::size_t kicks;

  [[nodiscard]] static constexpr placement_effort of(effort level) {
    constexpr by_effort<placement_effort> levels{
        .fast = {.light_ranks = 2, .may_widen = false, .kicks = 0},
        .normal = {.light_ranks = 2, .may_widen = true, .kicks = 1u << 13},
        .thorough = {.light_ranks = 8, .may_widen = true, .kicks = 1u << 18}};
    return levels[level];
  }
};

/// The price of a copy in the search: nothing, or one if the rank did not have the expert in the
/// old placement.
enum class copy_price { nothing, if_moved };

/// A state that a search has reached.
struct placement_point {
  std::size_t moved;
  std::int64_t largest_load;
  /// The number of changes up to this state.
  std::size_t changes;
};

/// Local search by moves that lower the load of the heaviest rank and make no other rank as heavy.
/// In a move two ranks exchange experts, or a slot takes a further copy of an expert in place of a
/// copy of another expert. The search makes the move with the largest gain for each moved copy. The
/// gain is the decrease of the largest load among the heaviest rank and the ranks that become
/// heavier, counted down to the mean load.
class placement_search {
 public:
  placement_search(placed_layer& layer, placement_effort const& limits, copy_price price)
      : layer_(layer), limits_(limits), price_(price), ranks_(layer.shape().node_ranks()) {
    std::size_t const slots = layer.shape().slots;
    given_.resize(slots);
    taken_.resize(slots);
    given_offers_.resize(slots);
    taken_offers_.resize(slots);
    auto const loads = layer.rank_loads();
    for (std::size_t r = 0; r != loads.size(); ++r) order_.push_back({loads[r], r});
    std::sort(order_.begin(), order_.end());
    places_.resize(loads.size());
    for (std::size_t i = 0; i != order_.size(); ++i) places_[order_[i].rank] = i;
    sort_ranks();
  }

  /// Makes moves until the largest load is at most `goal`, until no move helps, or until more than
  /// `max_moved` copies are moved. Calls `reached()` after each move.
  template <class Reached>
  void descend(std::int64_t goal, std::size_t max_moved, Reached const& reached) {
    while (top_ > goal && layer_.moved() <= max_moved) {
      if (!move()) return;
      reached();
    }
  }

  /// Repeatedly replaces the experts of random slots and descends. Undoes the changes if the
  /// largest load has become larger. The intermediate states are not recorded.
  void kick(std::int64_t goal, std::uint64_t seed) {
    rng::engine random(seed);
    std::size_t const slots = layer_.slots().size();
    std::size_t best = layer_.changes().size();
    std::int64_t least = largest_load();
    for (std::size_t left = limits_.kicks / slots; left != 0 && least > goal; --left) {
      for (std::uint64_t i = 0, count = 1 + rng::below(random, 3); i != count; ++i) {
        change_at_random(random);
      }
      sort_ranks();
      descend(goal, slots, [] {});
      if (largest_load() > least) {
        layer_.undo_to(best);
        sort_ranks();
        continue;
      }
      best = layer_.changes().size();
      least = largest_load();
    }
  }

  [[nodiscard]] std::int64_t largest_load() const { return top_; }

 private:
  /// A move: the exchange of the experts of two slots, or a slot that takes another expert.
  struct candidate {
    bool is_swap = false;
    std::size_t slot = 0;
    std::size_t other_slot = 0;
    std::uint32_t expert = 0;
    std::int64_t gain = 0;
    double score = 0;
  };

  /// The factors of the gain for moves with 0, 1 and 2 moved copies: 1 / (moved copies + 0.25).
  static constexpr std::array<double, 3> weights{4.0, 0.8, 4.0 / 9};

  /// A slot whose expert a move may change.
  struct movable {
    std::size_t slot;
    std::uint32_t expert;
    /// The load of a copy of the expert: now, with one copy more, and with one copy less.
    std::int64_t share;
    std::int64_t with_more;
    std::int64_t with_less;
    /// The change of the number of moved copies if the rank of the slot gives up the expert.
    std::ptrdiff_t cost;
  };

  /// An expert that a rank may take from the slot of another rank.
  struct offered {
    std::size_t slot;
    std::uint32_t expert;
    std::int64_t share;
    std::int64_t with_more;
    /// The change of the number of moved copies if the rank takes the expert, and if the other rank
    /// also gives it up.
    std::ptrdiff_t cost_of_copy;
    std::ptrdiff_t cost_of_swap;
  };

  /// Makes the best move; returns false if there is none.
  [[nodiscard]] bool move() {
    list_slots(heavy_, given_);
    best_ = {};
    needed_ = {};
    first_rank_ = heavy_ / ranks_ * ranks_;
    auto const loads = layer_.rank_loads().subspan(first_rank_, ranks_);
    auto const sum = std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
    most_gain_ = std::max<std::int64_t>(top_ - sum / static_cast<std::int64_t>(ranks_), 1);
    auto next = order_.begin();
    auto const next_rank = [&] {
      while (!is_in_node(next->rank)) ++next;
      return next++->rank;
    };
    std::size_t const light = std::min(limits_.light_ranks, ranks_);
    for (std::size_t i = 0; i != light; ++i) evaluate_rank(next_rank());
    evaluate_own_slots();
    // If no move with these ranks helps, the next rank with a move that helps decides.
    std::size_t const last = limits_.may_widen ? ranks_ : light;
    for (std::size_t i = light; i != last && best_.score == 0; ++i) evaluate_rank(next_rank());
    if (best_.score == 0) return false;
    apply(best_);
    sort_ranks();
    return true;
  }

  /// Returns true if a rank is in the node of the heaviest rank.
  [[nodiscard]] bool is_in_node(std::size_t rank) const { return rank - first_rank_ < ranks_; }

  /// Restores the order of the ranks by ascending loads.
  void sort_ranks() {
    auto const loads = layer_.rank_loads();
    for (std::size_t const rank : layer_.changed_ranks()) {
      place_again(places_[rank], {loads[rank], rank});
    }
    layer_.forget_changed_ranks();
    heavy_ = order_.back().rank;
    top_ = order_.back().load;
  }

  void apply(candidate const& move) {
    // Only a check of the gain requires the touched ranks.
    std::vector<std::size_t> touched;
    if constexpr (checks_gains) {
      std::size_t const slots = layer_.shape().slots;
      touched = {heavy_, (move.is_swap ? move.other_slot : move.slot) / slots};
      // If an expert has one copy less, its other copies have larger loads.
      if (!move.is_swap) {
        layer_.for_each_holder(layer_.slots()[move.slot],
                               [&](std::size_t rank) { touched.push_back(rank); });
      }
    }
    auto const largest = [&] { return layer_.measured_load(touched); };
    apply_checked({"placement_search", move.is_swap ? "exchange" : "copy"}, move.gain, largest,
                  [&] {
                    if (move.is_swap) {
                      layer_.swap(move.slot, move.other_slot);
                    } else {
                      layer_.replace(move.slot, move.expert);
                    }
                  });
  }

  struct ranked {
    std::int64_t load;
    std::size_t rank;

    [[nodiscard]] bool operator<(ranked const& other) const {
      return load != other.load ? load < other.load : rank > other.rank;
    }
  };

  /// Moves a rank from its place in the order to the place of its new load.
  void place_again(std::size_t place, ranked const& own) {
    auto const fill = [&](std::size_t from) {
      order_[place] = order_[from];
      places_[order_[place].rank] = place;
      place = from;
    };
    while (place != 0 && own < order_[place - 1]) fill(place - 1);
    while (place + 1 != order_.size() && order_[place + 1] < own) fill(place + 1);
    order_[place] = own;
    places_[own.rank] = place;
  }

  [[nodiscard]] movable slot_at(std::size_t slot, std::size_t rank) const {
    std::uint32_t const expert = layer_.slots()[slot];
    return {slot,
            expert,
            layer_.share(expert),
            layer_.share_with_more(expert),
            layer_.share_with_less(expert),
            price_ == copy_price::if_moved ? layer_.cost_to_give(rank, expert) : 0};
  }

  /// Writes the slots of a rank to `result`.
  void list_slots(std::size_t rank, std::vector<movable>& result) const {
    std::size_t const slots = layer_.shape().slots;
    for (std::size_t i = 0; i != slots; ++i) result[i] = slot_at(rank * slots + i, rank);
  }

  [[nodiscard]] std::ptrdiff_t cost_to_take(std::size_t rank, std::uint32_t expert) const {
    return price_ == copy_price::if_moved ? layer_.cost_to_take(rank, expert) : 0;
  }

  /// Writes the experts in some slots of another rank that `rank` does not have to `result`, and
  /// returns them.
  [[nodiscard]] std::span<offered const> list_offers(std::span<movable const> slots,
                                                     std::size_t rank,
                                                     std::vector<offered>& result) const {
    std::size_t count = 0;
    for (movable const& from : slots) {
      std::ptrdiff_t const cost = cost_to_take(rank, from.expert);
      result[count] = {from.slot, from.expert, from.share, from.with_more, cost, from.cost + cost};
      if (!layer_.has(rank, from.expert)) ++count;
    }
    return std::span(result).first(count);
  }

  /// Evaluates exchanges of the heaviest rank with a lighter rank, and further copies of its
  /// experts on the lighter rank.
  void evaluate_rank(std::size_t rank) {
    std::int64_t const room = top_ - layer_.rank_loads()[rank];
    if (room <= 0) return;
    auto const given_offers = list_offers(given_, rank, given_offers_);
    list_slots(rank, taken_);
    for (movable const& before : taken_) {
      if (layer_.copies(before.expert) != 1) evaluate_copies(rank, before, given_offers);
    }
    auto const taken_offers = list_offers(taken_, heavy_, taken_offers_);
    for (offered const& given : given_offers) {
      for (offered const& taken : taken_offers) {
        std::int64_t const difference = given.share - taken.share;
        std::int64_t const gain = std::min(difference, room - difference);
        std::size_t const price = price_of(given.cost_of_swap + taken.cost_of_swap);
        if (gain <= needed_[price]) continue;
        offer(price, {.is_swap = true, .slot = given.slot, .other_slot = taken.slot, .gain = gain});
      }
    }
  }

  /// Evaluates further copies of experts of the heaviest rank in place of one expert, `before`, of
  /// a lighter rank.
  void evaluate_copies(std::size_t rank, movable const& before,
                       std::span<offered const> given_offers) {
    std::int64_t const load = layer_.rank_loads()[rank] - before.share;
    std::int64_t const limit = limit_of(rank, before);
    std::int64_t const burden =
        layer_.has(heavy_, before.expert) ? before.with_less - before.share : 0;
    for (offered const& given : given_offers) {
      std::int64_t const relief = given.share - given.with_more;
      std::int64_t const gain = std::min(top_ - load - given.with_more, relief - burden);
      evaluate_replacement(rank, before, limit, given, gain);
    }
  }

  /// Evaluates further copies of experts of the second heaviest rank in place of experts of the
  /// heaviest rank.
  void evaluate_own_slots() {
    if (ranks_ == 1) return;
    auto second = order_.rbegin() + 1;
    while (!is_in_node(second->rank)) ++second;
    list_slots(second->rank, taken_);
    auto const taken_offers = list_offers(taken_, heavy_, taken_offers_);
    for (movable const& before : given_) {
      if (layer_.copies(before.expert) == 1) continue;
      std::int64_t const limit = limit_of(heavy_, before);
      for (offered const& given : taken_offers) {
        evaluate_replacement(heavy_, before, limit, given, before.share - given.with_more);
      }
    }
  }

  /// Returns the largest gain that the other ranks with an expert allow if `rank` gives it up and
  /// the move does not lower their loads in another way.
  [[nodiscard]] std::int64_t limit_of(std::size_t rank, movable const& before) const {
    auto const loads = layer_.rank_loads();
    std::int64_t most = 0;
    layer_.for_each_holder(before.expert, [&](std::size_t holder) {
      if (holder != rank && holder != heavy_) most = std::max(most, loads[holder]);
    });
    return top_ - (before.with_less - before.share) - most;
  }

  /// Evaluates an expert in place of an expert with several copies. `gain` considers the heaviest
  /// rank and the rank of the slot. The other ranks with the old expert may reduce this gain.
  void evaluate_replacement(std::size_t rank, movable const& before, std::int64_t limit,
                            offered const& given, std::int64_t gain) {
    std::size_t const price = price_of(before.cost + given.cost_of_copy);
    if (gain <= needed_[price]) return;
    if (gain > limit) {
      std::int64_t const relief = given.share - given.with_more;
      if (limit + relief <= needed_[price]) return;
      gain = std::min(gain, layer_.have_common_rank(before.expert, given.expert)
                                ? limit_with_relief(rank, before, given)
                                : limit);
      if (gain <= needed_[price]) return;
    }
    offer(price, {.slot = before.slot, .expert = given.expert, .gain = gain});
  }

  /// Returns the largest gain that the other ranks with an expert allow if `rank` gives it up and
  /// another expert has one copy more.
  [[nodiscard]] std::int64_t limit_with_relief(std::size_t rank, movable const& before,
                                               offered const& given) const {
    auto const loads = layer_.rank_loads();
    std::int64_t most = 0;
    layer_.for_each_holder(before.expert, [&](std::size_t holder) {
      if (holder == rank || holder == heavy_) return;
      std::int64_t const relief =
          layer_.has(holder, given.expert) ? given.share - given.with_more : 0;
      most = std::max(most, loads[holder] - relief);
    });
    return top_ - (before.with_less - before.share) - most;
  }

  /// Keeps a move if it has a larger score than the best move so far. The score is the gain for
  /// each moved copy.
  void offer(std::size_t price, candidate move) {
    move.score = static_cast<double>(std::min(move.gain, most_gain_)) * weights[price];
    if (!(move.score > best_.score)) return;
    best_ = move;
    // The factor below 1 keeps moves whose score is equal up to rounding.
    for (std::size_t i = 0; i != weights.size(); ++i) {
      needed_[i] = static_cast<std::int64_t>(best_.score * (1 - 0x1p-48) / weights[i]);
    }
  }

  /// Returns the index in `weights` for a change of the number of moved copies.
  [[nodiscard]] static std::size_t price_of(std::ptrdiff_t cost) {
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(cost, 0));
  }

  /// Gives a random slot a random expert that its rank does not have.
  void change_at_random(rng::engine& random) {
    constexpr std::size_t max_tries = 16;
    expert_shape const& shape = layer_.shape();
    for (std::size_t i = 0; i != max_tries; ++i) {
      auto const slot = static_cast<std::size_t>(rng::below(random, layer_.slots().size()));
      std::size_t const rank = slot / shape.slots;
      std::size_t const first = rank / ranks_ * ranks_ * shape.slots;
      // The expert of a random slot of the node: experts with more copies are more likely.
      auto const other = static_cast<std::size_t>(rng::below(random, ranks_ * shape.slots));
      std::uint32_t const expert = layer_.slots()[first + other];
      if (layer_.has(rank, expert) || layer_.copies(layer_.slots()[slot]) == 1) continue;
      return layer_.replace(slot, expert);
    }
  }

  placed_layer& layer_;
  placement_effort limits_;
  copy_price price_;
  std::size_t ranks_;
  std::size_t heavy_ = 0;
  std::size_t first_rank_ = 0;
  std::int64_t top_ = 0;
  std::int64_t most_gain_ = 0;
  candidate best_;
  /// A move is not better than the best move if its gain is at most the value of its price.
  std::array<std::int64_t, weights.size()> needed_{};
  std::vector<ranked> order_;
  /// The place of each rank of the node in the order.
  std::vector<std::size_t> places_;
  std::vector<movable> given_;
  std::vector<movable> taken_;
  std::vector<offered> given_offers_;
  std::vector<offered> taken_offers_;
};

}  // namespace omnibal::inline v0::detail
