#pragma once

/// \file
/// Groups to steps and ranks: even inside a step, random between steps.

#include <omnibal/balance/detail/schedule_items.hpp>
#include <omnibal/balance/schedule_steps/load_cells.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct schedule_steps_fn {
  /// One group for each rank in each step, so that in a step all ranks have nearly the same load in
  /// every resource, while the groups that meet in a step are others in every epoch. `loads` has
  /// the load of each group, a weight or resources, such as `group_loads` gives.
  ///
  /// The groups are cut into cells of similar loads, the cell first in which ranks wait the longest,
  /// until the dist ratio is within `options.max_dist_ratio` in every resource; steps are dealt at random
  /// out of a cell. Groups with equal loads need no cut, and cuts are at other places in every
  /// epoch: the `step_overlap` of two epochs is at most about the number of cells. The steps are in
  /// random order, and the groups of a step on random ranks.
  ///
  /// Every group is in one step, and the carried ones in one more, but for what
  /// `options.remainder` says of the last ones, fewer than `ranks`. Ranks without a group in the
  /// last step count as waiting for all of it. Where `max_dist_ratio` cannot be reached in a resource
  /// (a giant group, few steps, idle ranks), the aim is the least waiting that sorting by this
  /// resource gives and a quarter of `max_dist_ratio` more; several resources at once may miss even
  /// that, and then every step is a cell.
  ///
  /// Complexity: linear for each doubling of the number of cells, and for each bit of the loads
  /// where outliers have to be parted from the others. Memory: 26 + 17R bytes per group and
  /// 100 + 100R per cell at most, result included. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` for no ranks, a load that is negative, not finite or above 2^63 - 1, a
  /// tolerance that is negative or not finite and a carried group that does not exist;
  /// `std::overflow_error` where the sum of all loads leaves its type; `std::length_error` where
  /// groups, carried groups and ranks exceed 2^32 - 1. Source: Yao et al., OmniBal, ICML 2025 (dist
  /// ratio); the cells are those of a k-d tree, Bentley 1975.
  template <sample_range Loads>
    requires demand_function<std::identity, sample_reference<Loads>>
  [[nodiscard]] steps operator()(Loads const& loads, std::size_t ranks,
                                 schedule_steps_options const& options = {}) const {
    constexpr std::size_t kinds = detail::cost_kinds<Loads, std::identity>;
    detail::check_schedule(name, std::ranges::size(loads), ranks, options);
    auto items =
        detail::draw_items(detail::measure_costs(name, loads, std::identity{}), ranks, options);
    auto const goals = detail::waiting_goals(std::span(std::as_const(items)), ranks, options);
    rng::engine random(~options.seed, options.epoch);
    detail::load_cells<kinds> cells(std::move(items), ranks, options.remainder, random);
    cells.cut_to(goals);
    return deal_steps(cells, ranks, options, random);
  }

 private:
  static constexpr std::string_view name = "schedule_steps";

  template <std::size_t R>
  [[nodiscard]] static steps deal_steps(detail::load_cells<R> const& cells, std::size_t ranks,
                                        schedule_steps_options const& options,
                                        rng::engine& random) {
    std::size_t const full_steps = cells.items().size() / ranks;
    std::vector<std::uint32_t> firsts;
    firsts.reserve(full_steps);
    cells.for_each_full_step(
        [&](std::size_t first) { firsts.push_back(static_cast<std::uint32_t>(first)); });
    rng::fisher_yates{random()}(std::span(firsts), options.epoch);
    auto const items_of = [&](std::uint32_t first) { return cells.items().subspan(first, ranks); };
    auto const has_carried = [&](std::uint32_t first) {
      auto const items = items_of(first);
      return std::any_of(items.begin(), items.end(), [](auto const& item) {
        return item.origin == detail::item_origin::carried;
      });
    };
    if (!options.carried.empty()) {
      std::stable_partition(firsts.begin(), firsts.end(), has_carried);
    }

    steps result(ranks);
    result.reserve(full_steps + 1, cells.items().size() + ranks);
    for (std::uint32_t const first : firsts) {
      for (auto const& item : items_of(first)) {
        result.push(item.group);
        result.close();
      }
    }
    std::size_t repeats_from = cells.items().size() % ranks;
    cells.for_each_extra([&](auto const& item) {
      result.push(item.group);
      if (repeats_from == 0) return result.close_repeat();
      --repeats_from;
      result.close();
    });
    result.finish();
    return result;
  }
};

/// Groups to steps and ranks; see `schedule_steps_fn`.
inline constexpr schedule_steps_fn schedule_steps{};

}  // namespace omnibal::inline v0
