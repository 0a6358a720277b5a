// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups of sequences that share prefixes, with each shared token once in a group.

#include <omnibal/check.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/detail/path_groups.hpp>
#include <omnibal/prefix/detail/split_groups.hpp>
#include <omnibal/prefix/pack_prefixes/construct_groups.hpp>
#include <omnibal/prefix/pack_prefixes/path_group_search.hpp>
#include <omnibal/prefix/prefix_bound.hpp>
#include <omnibal/prefix/prefix_forest.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// Groups of sequences that share prefixes. Every sequence is in exactly one group or in
/// `oversized`.
struct prefix_packing {
  /// The sequences of each group, in the depth-first order of the forest.
  grouping groups;
  /// The sequences that exceed the capacity on their own, in ascending order.
  std::vector<std::uint32_t> oversized;
  /// The number of computed tokens of each group: the tokens of the union of the paths of its
  /// sequences.
  std::vector<std::uint64_t> tokens;
  /// The sum of the computed tokens of all groups.
  std::uint64_t computed_tokens = 0;
  /// Lower bounds on `computed_tokens` and on the number of groups, by `prefix_bound` with the
  /// effort `fast`. Both bounds include groups of oversized sequences.
  prefix_bounds bound;

  [[nodiscard]] friend bool operator==(prefix_packing const&, prefix_packing const&) = default;
};

struct pack_prefixes_options {
  /// The price of a group in computed tokens: the search minimizes the number of computed tokens
  /// plus the price times the number of groups. A price of zero prefers few tokens, and a price of
  /// several times the capacity prefers few groups. The default is the capacity. With this price
  /// and full groups, 1 % of the tokens is worth as much as 1 % of the groups.
  std::optional<std::uint64_t> group_price = {};
  /// The divisor of the number of groups, such as the number of ranks, or the ranks times the
  /// pipeline stages. Groups are split to reach a multiple. If every group has only one sequence,
  /// empty groups are added at the end.
  std::size_t multiple_of = 1;
  /// The treatment of sequences that exceed the capacity on their own.
  oversize_policy oversized = oversize_policy::list;
  /// The effort of the search, which `steps` limits; `fast` does not search.
  omnibal::effort effort = omnibal::effort::normal;
  /// The maximum number of steps of the search. The default is 0, 2^18 or 2^22, depending on the
  /// effort. Each assignment of a path to a group during the search is a step.
  std::optional<std::size_t> steps = {};
  /// The seed of the search. With another seed the search finds other groups.
  std::uint64_t seed = 0;
};

struct pack_prefixes_fn {
  /// Packs sequences into groups such that the tokens of each group are at most `capacity`. The
  /// tokens of a group are the tokens of the union of the paths of its sequences: a prefix that
  /// sequences of one group share counts once. The search looks for groups with few computed tokens
  /// and for a small number of groups; `options.group_price` weighs the two aims.
  ///
  /// The construction begins with the leaves. At each node it packs the pieces of the children,
  /// which are partial groups, into the room that the path to the node leaves below the capacity.
  /// It splits a piece if a part of the piece fills a group and the copied prefix costs less than
  /// the filled room is worth. The search then repeatedly ruins some groups, which are neighbors in
  /// the forest or have much room, and recreates them from their sequences.
  ///
  /// Complexity: the construction sorts the children of each node; the search takes
  /// `options.steps`. Memory: 150 bytes for each sequence, and with a search 8 log n more.
  /// Determinism: portable. Errors: `std::invalid_argument` if the capacity or the multiple is
  /// zero, and with `oversize_policy::reject` if a sequence exceeds the capacity; the message names
  /// the sequence and its tokens. Further errors: `std::overflow_error` if the sum of the tokens
  /// exceeds 2^64 - 1. Sources: Grange, Kacem, Martin, "Algorithms for the bin packing problem with
  /// overlapping items" (2018), the problem; Schrimpf, Schneider, Stamm-Wilbrandt, Dueck, "Record
  /// breaking optimization results using the ruin and recreate principle" (2000).
  [[nodiscard]] prefix_packing operator()(prefix_forest const& forest, std::uint64_t capacity,
                                          pack_prefixes_options const& options = {}) const {
    detail::check_positive(name, "capacity", capacity);
    detail::check_positive(name, "options.multiple_of", options.multiple_of);
    auto ends = detail::collect_path_ends(forest, capacity);
    if (options.oversized == oversize_policy::reject && !ends.oversized.empty()) {
      std::uint32_t const first = ends.oversized.front();
      detail::throw_invalid(name, "sequence ", first, " has ", forest.sequence_tokens(first),
                            " tokens, must have at most the capacity, ", capacity);
    }
    prefix_packing result;
    result.bound = detail::copy_bounds(ends, capacity).run(0);
    write(ends, find_groups(forest, ends, capacity, result.bound, options), result);
    if (options.oversized == oversize_policy::own_group) add_oversized(forest, ends, result);
    if (options.oversized == oversize_policy::list) result.oversized = std::move(ends.oversized);
    std::size_t const rest = result.groups.size() % options.multiple_of;
    if (rest != 0) split_groups(forest, options.multiple_of - rest, result);
    return result;
  }

 private:
  static constexpr std::string_view name = "pack_prefixes";

  [[nodiscard]] static std::size_t steps_of(pack_prefixes_options const& options) {
    constexpr detail::by_effort<std::size_t> levels{
        .fast = 0, .normal = std::size_t{1} << 18, .thorough = std::size_t{1} << 22};
    return options.steps.value_or(levels[options.effort]);
  }

  [[nodiscard]] static std::uint64_t sum_of(std::vector<std::uint64_t> const& tokens) {
    std::uint64_t sum = 0;
    for (std::uint64_t const value : tokens) {
      detail::checked_add(name, "the sum of the tokens", sum, value);
    }
    return sum;
  }

  /// Returns groups from the construction. The search improves these groups unless they reach the
  /// bound.
  [[nodiscard]] static detail::path_assignment find_groups(prefix_forest const& forest,
                                                           detail::path_ends const& ends,
                                                           std::uint64_t capacity,
                                                           prefix_bounds const& bound,
                                                           pack_prefixes_options const& options) {
    std::uint64_t const price = options.group_price.value_or(capacity);
    std::size_t const steps = steps_of(options);
    auto const ratios = detail::split_ratios(capacity, price);
    detail::path_assignment groups = detail::construct_groups(
        forest, ends, capacity, price, std::span(ratios).first(steps == 0 ? 1 : ratios.size()));
    bool const is_least =
        groups.tokens.size() <= bound.groups && sum_of(groups.tokens) <= bound.tokens;
    if (steps == 0 || ends.size() <= 1 || is_least) return groups;
    auto lists = detail::list_path_groups(groups);
    detail::path_group_search(ends, capacity, price, options.seed)
        .run(lists, bound, detail::search_budget(steps));
    detail::assign_path_groups(lists, groups);
    return groups;
  }

  /// Writes the sequences of each group. Groups are in the order of their first paths.
  static void write(detail::path_ends const& ends, detail::path_assignment const& groups,
                    prefix_packing& result) {
    constexpr std::uint32_t none = prefix_forest::no_parent;
    std::vector<std::uint32_t> number(groups.tokens.size(), none);
    std::vector<std::uint32_t> group_of;
    group_of.reserve(ends.size());
    for (std::uint32_t const g : groups.group_of) {
      if (number[g] == none) {
        number[g] = static_cast<std::uint32_t>(result.tokens.size());
        result.tokens.push_back(groups.tokens[g]);
      }
      group_of.push_back(number[g]);
    }
    result.computed_tokens = sum_of(result.tokens);
    grouping const ends_of_groups = detail::collect_parts(group_of, result.tokens.size());
    grouping const sequences = detail::sequences_of_ends(ends);
    for (auto const& group : ends_of_groups) {
      for (std::uint32_t const end : group) {
        for (std::uint32_t const sequence : sequences[end]) result.groups.push(sequence);
      }
      result.groups.close();
    }
  }

  static void split_groups(prefix_forest const& forest, std::size_t missing,
                           prefix_packing& result) {
    result.groups = detail::split_groups(name, forest, result.groups, missing);
    result.tokens.clear();
    for (auto const& group : result.groups) {
      result.tokens.push_back(detail::union_tokens(forest, group));
    }
    result.computed_tokens = sum_of(result.tokens);
  }

  static void add_oversized(prefix_forest const& forest, detail::path_ends const& ends,
                            prefix_packing& result) {
    for (std::uint32_t const sequence : ends.oversized) {
      std::uint64_t const tokens = forest.sequence_tokens(sequence);
      result.groups.push(sequence);
      result.groups.close();
      result.tokens.push_back(tokens);
      detail::checked_add(name, "the sum of the tokens", result.computed_tokens, tokens);
      detail::checked_add(name, "the bound of the tokens", result.bound.tokens, tokens);
    }
    result.bound.groups += ends.oversized.size();
  }
};

/// Packs sequences that share prefixes into groups; see `pack_prefixes_fn`.
inline constexpr pack_prefixes_fn pack_prefixes{};

}  // namespace omnibal::inline v0
