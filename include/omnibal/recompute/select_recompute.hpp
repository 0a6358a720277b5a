// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Choice of activations to keep and activations to recompute.

#include <omnibal/activation_option.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/recompute/recompute_result.hpp>
#include <omnibal/recompute/select_recompute/budget_search.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0 {

namespace detail {

/// The type of the sum of the times of such choices.
template <class Choices>
using time_of = working_weight<
    std::remove_cvref_t<decltype(std::declval<std::ranges::range_reference_t<Choices>>().time)>>;

}  // namespace detail

struct select_recompute_fn {
  /// Selects a choice for each layer so that the total time is the least within a budget of bytes.
  /// The bytes are `in_flight` times the sum of the bytes of the choices, plus the largest of their
  /// transient bytes, plus the reserve. They never exceed the budget. `choices(layer)` returns the
  /// choices of a layer, any number of them in any order. The functor is called once for each
  /// layer, in order.
  ///
  /// The problem is a multiple-choice knapsack problem. The linear relaxation yields a first
  /// solution, and swaps of the choices of two layers improve it. Reduced costs then fix most
  /// choices. Equal layers become one layer, for which only the number of layers with each choice
  /// is left to decide. Label search finds the best solution of the remaining problem. It drops
  /// partial solutions that require more bytes and time than another partial solution, or that
  /// cannot lead to a better solution according to the linear relaxation. It merges similar
  /// solutions if too many remain. Therefore the solution may miss the best; the lower bound limits
  /// the difference.
  ///
  /// If choices of a layer are equal, the first one is selected; among equal layers, the first
  /// layers have the first choices. The order of the layers has no influence on the time.
  /// Floating-point times are rounded to whole numbers of a unit of at most 2^-61 of the sum of the
  /// largest times. The bound and the proof are exact except for one unit for each layer and for
  /// the rounding of sums. They are exact for whole numbers that add up to less than 2^53, and for
  /// all integers.
  ///
  /// Complexity: states * choices steps for each layer, and layers^2 * choices steps. The search
  /// does this work for each value of the transient bytes, or range of values, that may lead to the
  /// best solution. Memory: 8 bytes for each layer and state, 400 bytes for each choice.
  /// Determinism: portable for integers. Errors: `std::invalid_argument` if a layer has no choices,
  /// if times are negative or not finite, and if bytes or the reserve are negative. It is also
  /// thrown if in_flight or states is below 1, and if `max_gap` is not from 0 to below 1. Further
  /// errors: `std::overflow_error` if the largest times or the fewest bytes of all layers add up to
  /// more than 2^63 - 1, or if the bytes of an infeasible result exceed this number. More than
  /// 2^32 - 1 layers cause `std::length_error`. If the budget is too small or negative, the
  /// function does not throw; the status is infeasible. Sources: Pisinger, "A minimal algorithm for
  /// the multiple-choice knapsack problem", 1995; Fisher, "The Lagrangian relaxation method for
  /// solving integer programming problems", 1981; Bergman et al., "Decision diagrams for
  /// optimization", 2016, for the merging of states.
  template <std::ranges::input_range Layers, class Choices>
    requires activation_option_function<Choices, std::ranges::range_reference_t<Layers const>>
  [[nodiscard]] auto operator()(Layers const& layers, Choices const& choices, std::int64_t budget,
                                select_recompute_options const& options = {}) const {
    using layer_choices =
        std::invoke_result_t<Choices const&, std::ranges::range_reference_t<Layers const>>;
    using time_type = detail::time_of<layer_choices>;
    check_options(options);
    detail::choice_table<time_type> table(name);
    for (auto&& layer : layers) table.push_layer(std::invoke(choices, layer));
    detail::check_index_count(name, "layers", table.size());

    detail::budget_search<time_type> choosing(name, table, budget, options);
    return choosing.run();
  }

  /// Selects choices for layers that are themselves ranges of choices.
  template <std::ranges::input_range Layers>
    requires activation_option_range<std::ranges::range_reference_t<Layers const>>
  [[nodiscard]] auto operator()(Layers const& layers, std::int64_t budget,
                                select_recompute_options const& options = {}) const {
    return (*this)(layers, std::identity{}, budget, options);
  }

 private:
  static constexpr std::string_view name = "select_recompute";

  static void check_options(select_recompute_options const& options) {
    auto const check = [](std::string_view option, std::int64_t value, std::int64_t least) {
      if (value >= least) return;
      detail::throw_invalid(name, "options.", option, " is ", value, ", must be at least ", least);
    };
    check("in_flight", options.in_flight, 1);
    check("reserve_bytes", options.reserve_bytes, 0);
    check("states", options.states == std::size_t{0} ? 0 : 1, 1);
    if (options.max_gap >= 0 && options.max_gap < 1) return;
    detail::throw_invalid(name, "options.max_gap is ", options.max_gap,
                          ", must be from 0 to below 1");
  }
};

/// Selects the activations to keep; see `select_recompute_fn`.
inline constexpr select_recompute_fn select_recompute{};

}  // namespace omnibal::inline v0
