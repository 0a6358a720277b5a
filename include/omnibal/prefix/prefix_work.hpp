// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The work of tokens of sequences that share prefixes.

#include <omnibal/check.hpp>
#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/prefix_forest.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

/// A functor from two positions on a path to the work of the tokens between them. The work of two
/// adjacent intervals must add up to the work of the joined interval.
template <class Function>
concept path_cost =
    std::regular_invocable<Function const&, std::uint64_t, std::uint64_t> &&
    std::convertible_to < std::invoke_result_t<Function const&, std::uint64_t, std::uint64_t>,
double > ;

/// The work of tokens with causal attention. Each token costs `token` for all work except
/// attention, and `pair` for each token that it attends to, including itself. The default is the
/// work of Megatron-Core for a hidden size of 4,096, for which attention equals all other work at
/// 24,576 tokens.
struct prefix_work {
  double token = 1.0;
  double pair = 1.0 / 12288.0;

  [[nodiscard]] constexpr double operator()(std::uint64_t begin, std::uint64_t end) const {
    auto const first = static_cast<double>(begin);
    auto const last = static_cast<double>(end);
    return token * (last - first) +
           pair * (0.5 * last * (last + 1.0) - 0.5 * first * (first + 1.0));
  }
};

namespace detail {

/// Returns a functor that calls `cost` and throws if the work is negative or not finite.
template <class Cost>
[[nodiscard]] auto checked_path_cost(std::string_view function, Cost const& cost) {
  return [function, &cost](std::uint64_t begin, std::uint64_t end) {
    auto const work = static_cast<double>(cost(begin, end));
    if (!is_valid_weight(work)) {
      throw_invalid(function, "cost(", begin, ", ", end, ") is ", work,
                    ", must be finite and not negative");
    }
    return work;
  };
}

/// Returns the work of the union of the paths of sequences.
template <class Cost>
[[nodiscard]] double work_of(prefix_forest const& forest, std::span<std::uint32_t const> sequences,
                             Cost const& cost) {
  std::vector<std::uint32_t> nodes;
  nodes.reserve(sequences.size());
  for (std::uint32_t const i : sequences) nodes.push_back(forest.ends()[i]);
  std::sort(nodes.begin(), nodes.end());
  double work = 0.0;
  for (std::size_t k = 0; k != nodes.size(); ++k) {
    std::uint64_t const shared = k == 0 ? 0 : shared_tokens(forest, nodes[k - 1], nodes[k]);
    work += cost(shared, forest.depths()[nodes[k]]);
  }
  return work;
}

}  // namespace detail

struct prefix_work_of_fn {
  /// Returns the work of a group of sequences. The work of a token that several sequences share
  /// counts once.
  ///
  /// Complexity: n log n in the sequences, and linear in the nodes of the union of their paths.
  /// Errors: `std::invalid_argument` if a sequence is not in the forest, or if the work is negative
  /// or not finite.
  template <path_cost Cost = prefix_work>
  [[nodiscard]] double operator()(prefix_forest const& forest,
                                  std::span<std::uint32_t const> sequences,
                                  Cost const& cost = {}) const {
    constexpr std::string_view name = "prefix_work_of";
    for (std::size_t k = 0; k != sequences.size(); ++k) {
      if (sequences[k] < forest.sequence_count()) continue;
      detail::throw_invalid(name, "sequences[", k, "] is ", sequences[k],
                            ", must be less than the number of sequences, ",
                            forest.sequence_count());
    }
    return detail::work_of(forest, sequences, detail::checked_path_cost(name, cost));
  }
};

/// Returns the work of a group of sequences that share prefixes; see `prefix_work_of_fn`.
inline constexpr prefix_work_of_fn prefix_work_of{};

}  // namespace omnibal::inline v0
