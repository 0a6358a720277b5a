#pragma once

/// \file
/// Even loads with few bytes moved.

#include <omnibal/balance/detail/largest_load.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/place_longest_first.hpp>
#include <omnibal/balance/keep_home/assignment.hpp>
#include <omnibal/balance/keep_home/offload.hpp>
#include <omnibal/balance/keep_home/swap.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/node_layout.hpp>
#include <omnibal/detail/overload.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Gives parts to ranks, greedily: the pair of a part and a rank that saves the most bytes first,
/// then the other parts to the other ranks in order. Keeps its memory.
class part_relabeller {
 public:
  /// Replaces the part of each sample by the rank that takes it. `home_of` is the rank where each
  /// sample is; there are as many ranks as parts.
  void run(integer_costs<1> const& bytes, std::span<std::uint32_t const> home_of, std::size_t ranks,
           std::vector<std::uint32_t>& part_of) {
    collect_pairs(bytes, home_of, ranks, part_of);
    rank_of_.assign(ranks, none);
    is_taken_.assign(ranks, 0);
    for (pair const& saved : pairs_) {
      auto const part = static_cast<std::size_t>(saved.key / ranks);
      auto const rank = static_cast<std::size_t>(saved.key % ranks);
      if (rank_of_[part] != none || is_taken_[rank] != 0) continue;
      rank_of_[part] = static_cast<std::uint32_t>(rank);
      is_taken_[rank] = 1;
    }
    std::uint32_t free = 0;
    for (std::uint32_t& rank : rank_of_) {
      if (rank != none) continue;
      while (is_taken_[free] != 0) ++free;
      rank = free++;
    }
    for (std::uint32_t& part : part_of) part = rank_of_[part];
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// The bytes of a part that are on a rank; the key names both.
  struct pair {
    std::uint64_t key;
    std::int64_t bytes;
  };

  /// The pairs with any samples, by descending bytes.
  void collect_pairs(integer_costs<1> const& bytes, std::span<std::uint32_t const> home_of,
                     std::size_t ranks, std::vector<std::uint32_t> const& part_of) {
    pairs_.clear();
    for (std::size_t i = 0; i != part_of.size(); ++i) {
      pairs_.push_back({part_of[i] * std::uint64_t{ranks} + home_of[i], bytes[i][0]});
    }
    std::sort(pairs_.begin(), pairs_.end(),
              [](pair const& a, pair const& b) { return a.key < b.key; });
    std::size_t last = 0;
    for (std::size_t i = 1; i < pairs_.size(); ++i) {
      if (pairs_[i].key == pairs_[last].key) {
        pairs_[last].bytes += pairs_[i].bytes;
      } else {
        pairs_[++last] = pairs_[i];
      }
    }
    if (!pairs_.empty()) pairs_.resize(last + 1);
    std::sort(pairs_.begin(), pairs_.end(), [](pair const& a, pair const& b) {
      return a.bytes > b.bytes || (a.bytes == b.bytes && a.key < b.key);
    });
  }

  std::vector<pair> pairs_;
  std::vector<std::uint32_t> rank_of_;
  std::vector<std::uint8_t> is_taken_;
};

/// Starts from where samples are and moves some of them until no load is above a target. Keeps its
/// memory.
template <std::size_t R>
class migration {
 public:
  /// Costs and bytes are to be filled by the caller before `run`.
  assignment_state<R> state;

  /// Finds the rank of each sample.
  void run(std::string_view function, grouping_view home, double max_overload,
           std::size_t ranks_per_node) {
    layout_ = {home.size(), std::min(ranks_per_node, std::max<std::size_t>(home.size(), 1))};
    part_of_samples(function, "rank", home, state.costs.size(), state.home_of);
    state.loads.resize(home.size());
    state.start_at_home();
    if (home.empty()) return;
    std::int64_t const target = with_overload(lower_bound(), max_overload);
    if (!settle(target)) choose_fallback(target);
  }

  /// The samples of each rank by ascending index.
  void write(grouping& result) {
    collect_parts(state.rank_of, state.ranks(), offsets_, order_);
    result.clear();
    result.reserve(state.ranks(), order_.size());
    for (std::size_t rank = 0; rank != state.ranks(); ++rank) {
      for (std::size_t i = offsets_[rank]; i != offsets_[rank + 1]; ++i) result.push(order_[i]);
      result.close();
    }
  }

 private:
  using sender = offload<R>;
  using light_loads = std::conditional_t<R == 1, ranked_loads<uint128>, compared_loads<R>>;

  /// `least_load`, for which only the largest samples have to be in order.
  [[nodiscard]] std::int64_t lower_bound() {
    order_.resize(state.costs.size());
    std::iota(order_.begin(), order_.end(), 0u);
    if (state.ranks() < order_.size()) {
      auto const after = order_.begin() + static_cast<std::ptrdiff_t>(state.ranks());
      std::nth_element(order_.begin(), after, order_.end(), state.costs_more());
      std::nth_element(order_.begin(), after - 1, after, state.costs_more());
    }
    return least_load(state.costs, std::span(std::as_const(order_)), state.ranks());
  }

  /// Starts at home and moves samples; true where no load is above the target then.
  [[nodiscard]] bool settle(std::int64_t target) {
    if (state.largest_load() <= target) return true;
    if (layout_.ranks_per_node != 1) {
      sender_.send_between_nodes(state, layout_, target);
      sender_.send_inside_nodes(state, layout_, target);
    }
    sender_.send_anywhere(state, target);
    swaps_.run(state, layout_, target);
    bring_back(target);
    return state.largest_load() <= target;
  }

  /// Samples that were moved and fit at home return, or else to their node, those with the most
  /// bytes first.
  void bring_back(std::int64_t target) {
    order_.clear();
    for (std::uint32_t i = 0; i != state.rank_of.size(); ++i) {
      if (!state.is_home(i)) order_.push_back(i);
    }
    std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
      auto const& bytes = state.bytes;
      return bytes[a][0] > bytes[b][0] || (bytes[a] == bytes[b] && a < b);
    });
    for (std::uint32_t const sample : order_) {
      std::uint32_t const home = state.home_of[sample];
      if (try_move(sample, home, target)) continue;
      std::size_t const node = layout_.node_of(home);
      if (layout_.node_of(state.rank_of[sample]) == node) continue;
      try_move(sample, sender::lightest_on_node(state, layout_, node, sample), target);
    }
  }

  bool try_move(std::uint32_t sample, std::uint32_t rank, std::int64_t target) {
    if (!sender::fits(state.loads[rank], state.costs[sample], target)) return false;
    state.move(sample, rank);
    return true;
  }

  /// The parts of `lpt` are the measure where the target was not reached, and the result where no
  /// others that are as even move fewer bytes.
  void choose_fallback(std::int64_t target) {
    std::int64_t const reached = state.largest_load();
    kept_.swap(state.rank_of);
    place_afresh();
    std::int64_t const fresh = state.largest_load();
    if (fresh >= reached) {
      state.rank_of.swap(kept_);
      return;
    }
    std::int64_t const limit = std::max(target, fresh);
    relabeller_.run(state.bytes, state.home_of, state.ranks(), state.rank_of);
    state.sum_loads();
    bring_back(limit);
    if (limit == target) return;
    std::int64_t const moved = state.moved_bytes();
    kept_.swap(state.rank_of);
    state.start_at_home();
    if (!settle(limit) || state.moved_bytes() > moved) state.rank_of.swap(kept_);
  }

  /// The parts of `lpt`.
  void place_afresh() {
    order_.resize(state.costs.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), state.costs_more());
    light_.reset(state.ranks());
    state.rank_of.assign(state.costs.size(), 0);
    any_room room{state.ranks()};
    auto const cost = [this](std::uint32_t sample) -> resources<R> const& {
      return state.costs[sample];
    };
    place(std::span<std::uint32_t const>(order_), cost, light_, room, state.rank_of);
    state.sum_loads();
  }

  node_layout layout_;
  sender sender_;
  swap_search<R> swaps_;
  light_loads light_{0};
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> kept_;
  part_relabeller relabeller_;
};

}  // namespace omnibal::inline v0::detail
