// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups of sequences that share prefixes, with each shared token once in a group.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/detail/path_groups.hpp>
#include <omnibal/prefix/detail/piece_packer.hpp>
#include <omnibal/prefix/pack_prefixes/path_group_search.hpp>
#include <omnibal/prefix/prefix_bound.hpp>
#include <omnibal/prefix/prefix_forest.hpp>
#include <omnibal/rng/engine.hpp>
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
  /// The sequences that exceed the capacity by themselves, ascending.
  std::vector<std::uint32_t> oversized;
  /// The tokens of each group: the tokens of the union of the paths of its sequences.
  std::vector<std::uint64_t> tokens;
  /// The sum of the tokens of all groups.
  std::uint64_t computed_tokens = 0;
  /// Lower bounds on `computed_tokens` and on the number of groups, by `prefix_bound` with the
  /// effort `fast`. Groups of oversized sequences count in both.
  prefix_bounds bound;

  [[nodiscard]] friend bool operator==(prefix_packing const&, prefix_packing const&) = default;
};

struct pack_prefixes_options {
  /// The number of computed tokens that one group less is worth: the search minimizes the computed
  /// tokens plus this price times the groups. With zero it prefers the fewest tokens; with several
  /// times the capacity it prefers the fewest groups. The default is the capacity, for which a
  /// percent of the tokens is worth a percent of the groups.
  std::optional<std::uint64_t> group_price = {};
  /// The divisor of the number of groups, such as the number of ranks, or the ranks times the
  /// pipeline stages. Groups are split to reach a multiple; if all have one sequence, the last
  /// groups are empty.
  std::size_t multiple_of = 1;
  /// The treatment of sequences that exceed the capacity by themselves.
  oversize_policy oversized = oversize_policy::list;
  /// The effort of the search: none, about 0.1 s or about 2 s for up to 10,000 sequences.
  omnibal::effort effort = omnibal::effort::normal;
  /// The maximum number of steps of the search: 0, 2^18 or 2^22, by effort. A step is a path that
  /// is assigned to a group again.
  std::optional<std::size_t> steps = {};
  /// The seed of the search; other seeds find other groups.
  std::uint64_t seed = 0;
};

namespace detail {

/// Splits groups into `missing` more groups, at the places that copy the fewest tokens. If all
/// groups have one sequence, the last groups are empty.
inline void split_groups(prefix_forest const& forest, std::size_t missing, prefix_packing& result) {
  constexpr std::string_view name = "pack_prefixes";
  check_number(name, "the number of groups", result.groups.size() + missing);
  struct cut {
    std::uint64_t copied;
    std::size_t group;
    std::size_t position;
  };
  std::vector<cut> cuts;
  auto const shared = [&](std::uint32_t left, std::uint32_t right) {
    return shared_tokens(forest, forest.ends()[left], forest.ends()[right]);
  };
  for (std::size_t g = 0; g != result.groups.size(); ++g) {
    auto const group = result.groups[g];
    for (std::size_t k = 1; k < group.size(); ++k) {
      cuts.push_back({shared(group[k - 1], group[k]), g, k});
    }
  }
  std::size_t const used = std::min(missing, cuts.size());
  std::partial_sort(cuts.begin(), cuts.begin() + static_cast<std::ptrdiff_t>(used), cuts.end(),
                    [](cut const& left, cut const& right) {
                      if (left.copied != right.copied) return left.copied < right.copied;
                      if (left.group != right.group) return left.group < right.group;
                      return left.position < right.position;
                    });
  cuts.resize(used);
  std::sort(cuts.begin(), cuts.end(), [](cut const& left, cut const& right) {
    if (left.group != right.group) return left.group < right.group;
    return left.position < right.position;
  });
  grouping groups;
  std::vector<std::uint64_t> tokens;
  auto next = cuts.begin();
  for (std::size_t g = 0; g != result.groups.size(); ++g) {
    auto const group = result.groups[g];
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k != group.size(); ++k) {
      bool const is_cut = next != cuts.end() && next->group == g && next->position == k;
      if (is_cut) {
        checked_add(name, "the sum of the tokens", result.computed_tokens, next->copied);
        groups.close();
        tokens.push_back(std::exchange(sum, 0));
        ++next;
      }
      bool const is_first = groups.open_group().empty();
      groups.push(group[k]);
      sum += forest.sequence_tokens(group[k]) - (is_first ? 0 : shared(group[k - 1], group[k]));
    }
    groups.close();
    tokens.push_back(sum);
  }
  for (std::size_t k = used; k != missing; ++k) {
    groups.close();
    tokens.push_back(0);
  }
  result.groups = std::move(groups);
  result.tokens = std::move(tokens);
}

}  // namespace detail

struct pack_prefixes_fn {
  /// Packs sequences into groups such that the tokens of each group are at most `capacity`. The
  /// tokens of a group are the tokens of the union of the paths of its sequences: a prefix that
  /// sequences of one group share counts once. The search looks for few computed tokens and few
  /// groups together; `options.group_price` is the trade between both.
  ///
  /// The construction begins with the leaves. Below each node it packs the pieces of the children
  /// into the room that the path to the node leaves. It splits a piece if a part fills a group and
  /// the copied prefix costs less than the room is worth. The search then ruins some groups, which
  /// are neighbors in the forest or have room, and recreates them.
  ///
  /// Complexity: the construction sorts the children of each node; the search takes
  /// `options.steps`. Memory: 150 bytes for each sequence, and with a search 8 log n more.
  /// Determinism: portable. Errors: `std::invalid_argument` if the capacity or the multiple is
  /// zero, and with `oversize_policy::reject` if a sequence exceeds the capacity; the message names
  /// the sequence and its tokens. `std::overflow_error` if the sum of the tokens exceeds 2^64 - 1.
  /// Sources: Grange, Kacem, Martin, "Algorithms for the bin packing problem with overlapping
  /// items" (2018), the problem; Schrimpf, Schneider, Stamm-Wilbrandt, Dueck, "Record breaking
  /// optimization results using the ruin and recreate principle" (2000).
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
    std::uint64_t const price = options.group_price.value_or(capacity);
    std::size_t const steps = steps_of(options);
    detail::path_assignment groups = construct(forest, ends, capacity, price, steps == 0);
    bool const is_least =
        groups.tokens.size() <= result.bound.groups && sum_of(groups.tokens) <= result.bound.tokens;
    if (steps != 0 && ends.size() > 1 && !is_least) {
      detail::path_group_search search(ends, capacity, price, options.seed);
      auto lists = detail::list_path_groups(groups);
      search.run(lists, result.bound.tokens, result.bound.groups, steps);
      detail::assign_path_groups(lists, groups);
    }
    write(ends, groups, result);
    if (options.oversized == oversize_policy::own_group) add_oversized(forest, ends, result);
    result.oversized = options.oversized == oversize_policy::list ? std::move(ends.oversized)
                                                                  : std::vector<std::uint32_t>();
    std::size_t const rest = result.groups.size() % options.multiple_of;
    if (rest != 0) detail::split_groups(forest, options.multiple_of - rest, result);
    return result;
  }

 private:
  static constexpr std::string_view name = "pack_prefixes";
  /// Above it a split never pays.
  static constexpr std::uint64_t max_ratio = std::uint64_t{1} << 62;

  [[nodiscard]] static std::size_t steps_of(pack_prefixes_options const& options) {
    if (options.steps) return *options.steps;
    if (options.effort == effort::fast) return 0;
    return std::size_t{1} << (options.effort == effort::normal ? 18 : 22);
  }

  [[nodiscard]] static std::uint64_t sum_of(std::vector<std::uint64_t> const& tokens) {
    std::uint64_t sum = 0;
    for (std::uint64_t const value : tokens) {
      detail::checked_add(name, "the sum of the tokens", sum, value);
    }
    return sum;
  }

  /// Returns the best groups of the construction with several prices of a split.
  [[nodiscard]] static detail::path_assignment construct(prefix_forest const& forest,
                                                         detail::path_ends const& ends,
                                                         std::uint64_t capacity,
                                                         std::uint64_t price, bool once) {
    // A part of w tokens that copies c tokens pays if w * price > c * (capacity + price).
    std::uint64_t const even = price == 0
                                   ? 0
                                   : detail::saturate_cast<std::uint64_t>(
                                         16 + static_cast<detail::uint128>(capacity) * 16 / price);
    std::uint64_t const ratios[] = {even, even > max_ratio ? even : 2 * even, 0};
    rng::engine words(0);
    detail::path_assignment best;
    std::optional<detail::uint128> best_value;
    detail::piece_packer packer;
    for (std::uint64_t const ratio : std::span(ratios, once ? 1 : 3)) {
      packer.pack(ends.depths, ends.shared, {capacity, ratio, 0}, words);
      detail::uint128 value = static_cast<detail::uint128>(price) * packer.size();
      for (std::size_t g = 0; g != packer.size(); ++g) value += packer.tokens(g);
      if (best_value && value >= *best_value) continue;
      best_value = value;
      best.tokens.assign(packer.size(), 0);
      packer.assign(best.group_of);
    }
    // Two pieces of one node may have met in a group, which needs the node once.
    std::vector<std::uint32_t> last(best.tokens.size(), prefix_forest::no_parent);
    for (std::uint32_t t = 0; t != ends.size(); ++t) {
      std::uint32_t const g = best.group_of[t];
      std::uint32_t const before = std::exchange(last[g], t);
      best.tokens[g] += ends.depths[t];
      if (before == prefix_forest::no_parent) continue;
      best.tokens[g] -= before + 1 == t
                            ? ends.shared[t]
                            : detail::shared_tokens(forest, ends.nodes[before], ends.nodes[t]);
    }
    return best;
  }

  /// Writes the sequences of the ends of each group. Groups are in the order of their first ends.
  static void write(detail::path_ends const& ends, detail::path_assignment const& groups,
                    prefix_packing& result) {
    constexpr std::uint32_t none = prefix_forest::no_parent;
    // The sequences in the order of their ends.
    std::vector<std::uint32_t> next(ends.size() + 1, 0);
    for (std::uint32_t const end : ends.end_of) {
      if (end != none) ++next[end + 1];
    }
    for (std::size_t t = 0; t != ends.size(); ++t) next[t + 1] += next[t];
    std::vector<std::uint32_t> sequences(next.back());
    for (std::uint32_t i = 0; i != ends.end_of.size(); ++i) {
      if (ends.end_of[i] != none) sequences[next[ends.end_of[i]]++] = i;
    }
    // From here on `next[t]` is the end of the sequences of t.
    std::vector<std::uint32_t> number(groups.tokens.size(), none);
    std::vector<std::uint32_t> offsets(groups.tokens.size() + 1, 0);
    result.tokens.reserve(groups.tokens.size());
    std::uint32_t begin = 0;
    for (std::size_t t = 0; t != ends.size(); ++t) {
      std::uint32_t const g = groups.group_of[t];
      if (number[g] == none) {
        number[g] = static_cast<std::uint32_t>(result.tokens.size());
        result.tokens.push_back(groups.tokens[g]);
      }
      offsets[number[g] + 1] += next[t] - begin;
      begin = next[t];
    }
    for (std::size_t g = 1; g < offsets.size(); ++g) offsets[g] += offsets[g - 1];
    std::vector<std::uint32_t> places(offsets.begin(), offsets.end() - 1);
    std::vector<std::uint32_t> items(sequences.size());
    std::uint32_t k = 0;
    for (std::size_t t = 0; t != ends.size(); ++t) {
      std::uint32_t& place = places[number[groups.group_of[t]]];
      while (k != next[t]) items[place++] = sequences[k++];
    }
    result.groups = grouping(std::move(offsets), std::move(items));
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
