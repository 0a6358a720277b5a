// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds on the tokens and groups of packings of sequences that share prefixes.

#include <omnibal/check.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/detail/column_generation.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/prefix_bound/path_pricing.hpp>
#include <omnibal/prefix/prefix_forest.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// Lower bounds on a packing of sequences that share prefixes.
struct prefix_bounds {
  /// A lower bound on the number of computed tokens, which counts each node once for each group
  /// that contains it.
  std::uint64_t tokens = 0;
  /// A lower bound on the number of groups.
  std::size_t groups = 0;

  [[nodiscard]] friend bool operator==(prefix_bounds const&, prefix_bounds const&) = default;
};

struct prefix_bound_options {
  /// The effort of the bound. With `fast` it uses only numbers of tokens; otherwise it also uses
  /// linear programs.
  omnibal::effort effort = omnibal::effort::normal;
  /// The maximum number of steps of the linear programs. The default is 0, 2^26 or 2^32, depending
  /// on the effort. A step computes 8 numbers of a dynamic program, or takes about the same time in
  /// a change of the basis.
  std::optional<std::size_t> steps = {};
};

namespace detail {

/// Bounds the number of groups that contain each node, its copies, from the leaves to the roots, in
/// one pass over the ends of the paths. It considers only nodes at which paths end or diverge. Any
/// other node is in the same groups as the next considered node below it.
class copy_bounds {
 public:
  copy_bounds(path_ends const& ends, std::uint64_t capacity) : ends_(ends), capacity_(capacity) {}

  [[nodiscard]] prefix_bounds run(std::size_t steps) {
    search_budget budget(steps);
    open_.assign(1, {});
    for (std::size_t t = 0; t != ends_.size(); ++t) {
      leave(ends_.shared[t], t, budget);
      open_.push_back({ends_.depths[t], 0, 1, t, 0, true});
    }
    leave(0, ends_.size(), budget);
    // A path without tokens ends at the root.
    while (open_.size() > 1) close(0, ends_.size(), budget);
    node const& root = open_.back();
    auto const groups =
        static_cast<std::size_t>(std::max({root.copies, quotient_up(root.tokens, capacity_),
                                           std::uint64_t{ends_.size() != 0 ? 1u : 0u}}));
    return {root.tokens, by_prices(groups, 0, ends_.size(), 0, budget)};
  }

 private:
  /// The largest number of paths in a linear program.
  static constexpr std::size_t max_paths = 1024;

  /// A node that contains the paths from `first` on: its depth, the tokens of all copies below it,
  /// and the largest number of copies of a child.
  struct node {
    std::uint64_t depth = 0;
    std::uint64_t tokens = 0;
    std::uint64_t copies = 0;
    std::size_t first = 0;
    std::uint32_t children = 0;
    bool has_end = false;
  };

  [[nodiscard]] static std::uint64_t quotient_up(std::uint64_t value, std::uint64_t divisor) {
    return value == 0 ? 0 : (value - 1) / divisor + 1;
  }

  /// Completes the open nodes that are deeper than `depth`. Their last paths are before `last`.
  void leave(std::uint64_t depth, std::size_t last, search_budget& budget) {
    while (open_.back().depth > depth) close(depth, last, budget);
  }

  void close(std::uint64_t depth, std::size_t last, search_budget& budget) {
    node const now = open_.back();
    open_.pop_back();
    if (open_.back().depth < depth) open_.push_back({depth, 0, 1, now.first, 0, false});
    node& above = open_.back();
    std::uint64_t const copies = copies_of(now, last, budget);
    std::uint64_t own = 0;
    if (__builtin_mul_overflow(copies, now.depth - above.depth, &own)) {
      throw_overflow("prefix_bound", "the bound of the tokens");
    }
    checked_add("prefix_bound", "the bound of the tokens", above.tokens, own);
    checked_add("prefix_bound", "the bound of the tokens", above.tokens, now.tokens);
    above.copies = std::max(above.copies, copies);
    ++above.children;
  }

  [[nodiscard]] std::uint64_t copies_of(node const& now, std::size_t last,
                                        search_budget& budget) const {
    std::uint64_t const room = capacity_ - now.depth;
    std::uint64_t copies = now.copies;
    if (now.tokens <= room) return copies;
    // There is room below a node with tokens below it, because the path of each of its sequences
    // fits into the capacity.
    copies = std::max(copies, quotient_up(now.tokens, room));
    if (now.children == 1) return copies;
    return by_prices(static_cast<std::size_t>(copies), now.first + (now.has_end ? 1 : 0), last,
                     now.depth, budget);
  }

  /// Returns the larger of `bound` and the bound of the paths [first, last) by column generation.
  [[nodiscard]] std::size_t by_prices(std::size_t bound, std::size_t first, std::size_t last,
                                      std::uint64_t above, search_budget& budget) const {
    std::size_t const count = last - first;
    if (budget.is_spent() || count < 3 || count > max_paths || bound >= count) return bound;
    path_pricing pricing(ends_, first, last, above, capacity_ - above);
    std::vector<std::uint64_t> const each(count, 1);
    // One linear program may use half of the remaining steps.
    std::size_t const most = budget.left() / 2;
    std::size_t const result = column_generation<path_pricing>(each, pricing).run(bound, most);
    budget.spend(std::min(most, pricing.spent() + pricing.changes() * steps_of_change(count)));
    return result;
  }

  path_ends const& ends_;
  std::uint64_t capacity_;
  std::vector<node> open_;
};

[[nodiscard]] inline std::size_t bound_steps(prefix_bound_options const& options) {
  constexpr by_effort<std::size_t> levels{
      .fast = 0, .normal = std::size_t{1} << 26, .thorough = std::size_t{1} << 32};
  return options.steps.value_or(levels[options.effort]);
}

}  // namespace detail

struct prefix_bound_fn {
  /// Returns lower bounds on the tokens and on the groups of every packing of the sequences under
  /// the capacity. Sequences above the capacity are left out.
  ///
  /// Let C be the capacity, P(v) the tokens from the root through node v, and D(v) the tokens below
  /// v in all their copies. A group that contains v has room for at most C - P(v) tokens below v.
  /// Therefore the number of groups that contain v is at least D(v) / (C - P(v)), and at least the
  /// number of groups that contain any child of v. For up to 1,024 sequences below a node, a linear
  /// program over all groups of these sequences gives a larger bound. The bound on the tokens is
  /// the sum, over all nodes, of the tokens of the node times the bound on its copies.
  ///
  /// Complexity: linear in nodes and sequences for `fast`; otherwise also the steps of the linear
  /// programs. Memory: 60 bytes for each node and sequence, and 24 MB for the linear programs.
  /// Determinism: portable. Errors: `std::invalid_argument` if the capacity is zero;
  /// `std::overflow_error` if a bound exceeds 2^64 - 1. Sources: the volumes are shown in
  /// docs/evidence/mathematics.md; Gilmore, Gomory (1961) and Farley (1990) for the linear
  /// programs.
  [[nodiscard]] prefix_bounds operator()(prefix_forest const& forest, std::uint64_t capacity,
                                         prefix_bound_options const& options = {}) const {
    detail::check_positive("prefix_bound", "capacity", capacity);
    auto const ends = detail::collect_path_ends(forest, capacity);
    return detail::copy_bounds(ends, capacity).run(detail::bound_steps(options));
  }
};

/// Returns lower bounds on the tokens and groups of a packing; see `prefix_bound_fn`.
inline constexpr prefix_bound_fn prefix_bound{};

}  // namespace omnibal::inline v0
