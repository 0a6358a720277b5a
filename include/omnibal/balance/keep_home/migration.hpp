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
#include <omnibal/detail/rank_placer.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

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
  /// Some milliseconds.
  static constexpr std::uint64_t placer_steps = rank_placer::most_steps >> 5;

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
    relabel();
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

  /// Gives each part to a rank so that few bytes move.
  void relabel() {
    collect_parts(state.rank_of, state.ranks(), offsets_, order_);
    grouping_view const parts(offsets_.data(), order_.data(), state.ranks());
    auto const bytes_of = [this](std::uint32_t sample) { return state.bytes[sample][0]; };
    placer_.run(state.home_of, parts, bytes_of, layout_.ranks_per_node, placer_steps);
    for (std::uint32_t& rank : state.rank_of) rank = placer_.rank_of()[rank];
    state.sum_loads();
  }

  node_layout layout_;
  sender sender_;
  swap_search<R> swaps_;
  light_loads light_{0};
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> kept_;
  rank_placer placer_;
};

}  // namespace omnibal::inline v0::detail
