// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Copies of experts on ranks with similar loads, and few moves of copies.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/lvalue_span.hpp>
#include <omnibal/executor.hpp>
#include <omnibal/experts/expert_placement.hpp>
#include <omnibal/experts/place_experts/expert_planner.hpp>
#include <omnibal/experts/place_experts/first_placement.hpp>
#include <omnibal/experts/place_experts/old_placement.hpp>
#include <omnibal/experts/place_experts/placed_layer.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct place_experts_options {
  /// The number of layers. `loads` contains the loads of one layer after the other.
  std::size_t layers = 1;
  /// The old placement, as `expert_placement::experts`, or empty if there is none. The array must
  /// outlive the options.
  detail::lvalue_span<std::uint32_t> old = {};
  /// The largest number of moved copies in all layers together. A copy is moved if its rank did not
  /// have its expert in the old placement. Unlimited without a value. Each move of a copy sends the
  /// weights of an expert.
  std::optional<std::size_t> max_moved = {};
  /// The number of groups of consecutive experts, and the number of nodes of consecutive ranks. All
  /// copies of a group are on one node, and every node has the same number of groups. If there is
  /// an old placement, groups keep their nodes.
  std::size_t groups = 1;
  std::size_t nodes = 1;
  /// The tolerance: the search for a layer ends if the largest load of a rank exceeds the lower
  /// bound by at most this share of the bound.
  double max_gap = 0.001;
  omnibal::effort effort = omnibal::effort::normal;
  /// The seed of random changes, which follow the local search unless `max_moved` has a value.
  std::uint64_t seed = 0;
};

struct place_experts_fn {
  /// Places copies of experts into the slots of ranks so that the largest load of a rank in each
  /// layer is small. The range `loads` has the load of each expert, such as the tokens of the last
  /// steps, experts fastest, then layers. Each rank has `slots` slots, all of which are used, and
  /// no rank has two copies of one expert. Each copy serves an equal share of the load of its
  /// expert.
  ///
  /// Without an old placement, each further copy goes to the expert with the largest load per copy.
  /// The copies are then placed from the largest on, each on the rank with the smallest load. Local
  /// search then lowers the load of the heaviest rank: two ranks exchange experts, or a slot takes
  /// another expert. With an old placement the search begins there, and `options.max_moved` limits
  /// the moved copies. The search first makes the moves with the largest gain for each moved copy.
  /// The budget of moved copies is divided among the layers so that the sum of their largest loads
  /// is small. If a rank of the old placement has two copies of one expert, one of them is
  /// replaced, even if this exceeds the budget.
  ///
  /// The executor `run` runs the searches of different layers at once.
  ///
  /// Complexity: the search for a move sorts the ranks and evaluates `slots^2` exchanges with each
  /// of a few ranks with small loads. Without `options.max_moved`, up to 2^13 / (ranks * slots)
  /// random changes with `normal`, and 2^18 / (ranks * slots) with `thorough`, each begin another
  /// descent. Memory: 8 bytes for each expert and each 64 ranks, and the list of moves.
  /// Determinism: portable; loads are rounded so that the sum of the largest layer has 59 bits.
  /// Errors: `std::invalid_argument` that names the argument for loads that are negative or not
  /// finite, and for a number of loads that is not a multiple of the layers. It is also thrown for
  /// slots that are too few or too many for the experts, and for groups and nodes that do not
  /// divide the experts and ranks. It is thrown as well for an old placement of another size or
  /// without one of the experts. Further errors: `std::overflow_error` if the sum of the loads
  /// leaves its type. Source: DeepSeek-AI, EPLB, 2025, for the first placement; the search and the
  /// budget are our own.
  template <sample_range Loads, executor Executor = serial_executor>
    requires cost_function<std::identity, sample_reference<Loads>>
  [[nodiscard]] expert_placement operator()(Loads const& loads, std::size_t slots,
                                            std::size_t ranks,
                                            place_experts_options const& options = {},
                                            Executor const& run = {}) const {
    std::size_t const count = std::ranges::size(loads);
    detail::expert_shape const shape = checked_shape(count, slots, ranks, options);
    detail::integer_costs<1> all;
    auto const first = std::ranges::begin(loads);
    auto const load_at = [&](std::size_t index) {
      return static_cast<std::ranges::range_value_t<Loads>>(
          first[static_cast<std::ranges::range_difference_t<Loads const>>(index)]);
    };
    detail::measure_costs_into(name, {"load", "the sum of the loads"}, count, load_at, all);
    expert_placement result{.layers = options.layers, .ranks = ranks, .slots = slots};
    detail::expert_planner planner(shape, {.layers = options.layers,
                                           .max_moved = options.max_moved,
                                           .max_gap = options.max_gap,
                                           .effort = options.effort,
                                           .seed = options.seed});
    int const shift = shift_of(all, shape.experts);
    auto const loads_of = [&](std::size_t layer) {
      std::vector<std::int64_t> own;
      own.reserve(shape.experts);
      for (std::size_t e = 0; e != shape.experts; ++e) {
        std::int64_t const load = all[layer * shape.experts + e][0];
        own.push_back(shift >= 0 ? load << shift : load >> -shift);
      }
      return own;
    };
    auto const old_of = [&](std::size_t layer) {
      return detail::old_layer(name, shape, options.old, layer);
    };
    planner.run(name, loads_of, old_of, run);
    planner.write(result);
    result.moved = detail::moved_copies(shape, options.old, result.experts);
    find_loads(loads, shape, result);
    return result;
  }

 private:
  static constexpr std::string_view name = "place_experts";

  [[nodiscard]] static detail::expert_shape checked_shape(std::size_t count, std::size_t slots,
                                                          std::size_t ranks,
                                                          place_experts_options const& options) {
    detail::check_positive(name, "slots", slots);
    detail::check_positive(name, "ranks", ranks);
    detail::check_positive(name, "options.layers", options.layers);
    detail::check_positive(name, "options.groups", options.groups);
    detail::check_positive(name, "options.nodes", options.nodes);
    detail::check_share(name, "options.max_gap", options.max_gap);
    detail::check_number(name, "slots", slots);
    detail::check_number(name, "ranks", ranks);
    if (count == 0 || count % options.layers != 0) {
      detail::throw_invalid(name, "loads has ", count, " values, must have a multiple of ",
                            options.layers, " layers");
    }
    detail::expert_shape const shape{.experts = count / options.layers,
                                     .ranks = ranks,
                                     .slots = slots,
                                     .groups = options.groups,
                                     .nodes = options.nodes};
    check_divides("options.groups", options.groups, "experts", shape.experts);
    check_divides("options.nodes", options.nodes, "ranks", ranks);
    check_divides("options.nodes", options.nodes, "groups", options.groups);
    if (slots > shape.node_experts() || shape.node_ranks() * slots < shape.node_experts()) {
      detail::throw_invalid(name, "slots is ", slots, ", must be from ",
                            (shape.node_experts() - 1) / shape.node_ranks() + 1, " to ",
                            shape.node_experts(), " for ", shape.node_experts(), " experts on ",
                            shape.node_ranks(), " ranks");
    }
    std::size_t const all_slots =
        detail::checked_product(name, "layers * ranks * slots", ranks * slots, options.layers);
    detail::check_number(name, "layers * ranks * slots", all_slots);
    if (options.max_moved && options.old.empty()) {
      detail::throw_invalid(name, "options.max_moved is ", *options.max_moved,
                            ", must have no value without an old placement");
    }
    if (!options.old.empty() && options.old.size() != all_slots) {
      detail::throw_invalid(name, "options.old has ", options.old.size(),
                            " values, must have layers * ranks * slots = ", all_slots);
    }
    return shape;
  }

  static void check_divides(std::string_view argument, std::size_t value, std::string_view what,
                            std::size_t count) {
    if (count % value == 0) return;
    detail::throw_invalid(name, argument, " is ", value, ", must divide the ", count, " ", what);
  }

  /// Returns the number of bits by which loads are shifted so that the sum of the largest layer has
  /// 59 bits.
  [[nodiscard]] static int shift_of(detail::integer_costs<1> const& all, std::size_t experts) {
    std::uint64_t most = 1;
    for (std::size_t first = 0; first != all.size(); first += experts) {
      std::uint64_t sum = 0;
      for (std::size_t e = 0; e != experts; ++e) {
        sum += static_cast<std::uint64_t>(all[first + e][0]);
      }
      most = std::max(most, sum);
    }
    return 59 - static_cast<int>(std::bit_width(most));
  }

  /// Sets the largest loads and the lower bounds of all layers, in the unit of the caller's loads.
  template <class Loads>
  static void find_loads(Loads const& loads, detail::expert_shape const& shape,
                         expert_placement& result) {
    auto next = std::ranges::begin(loads);
    for (std::size_t l = 0; l != result.layers; ++l) {
      std::vector<double> shares;
      for (std::size_t e = 0; e != shape.experts; ++e, ++next) {
        shares.push_back(static_cast<double>(*next));
      }
      std::vector<double> copies(shape.experts, 0);
      for (std::size_t r = 0; r != shape.ranks; ++r) {
        for (std::uint32_t const expert : result(l, r)) ++copies[expert];
      }
      double largest = 0;
      for (std::size_t r = 0; r != shape.ranks; ++r) {
        double load = 0;
        for (std::uint32_t const expert : result(l, r)) load += shares[expert] / copies[expert];
        largest = std::max(largest, load);
      }
      auto const bound = detail::placement_bound<double>(shape, shares);
      result.largest_loads.push_back(largest);
      result.lower_bounds.push_back(std::min(bound, largest));
    }
  }
};

/// Places copies of experts into the slots of ranks so that the largest load of a rank in each
/// layer is small; see `place_experts_fn`.
inline constexpr place_experts_fn place_experts{};

}  // namespace omnibal::inline v0
