// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Micro-batches of sequences that share prefixes, the same number on every rank.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/prefix/balance_prefixes/work_leveler.hpp>
#include <omnibal/prefix/build_prefix_forest.hpp>
#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/detail/path_groups.hpp>
#include <omnibal/prefix/detail/split_groups.hpp>
#include <omnibal/prefix/pack_prefixes.hpp>
#include <omnibal/prefix/prefix_forest.hpp>
#include <omnibal/prefix/prefix_work.hpp>
#include <omnibal/sample/bundles.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct balance_prefixes_options {
  /// The options of the packing. The number of micro-batches of each rank is a multiple of
  /// `packing.multiple_of`.
  pack_prefixes_options packing = {};
  /// The tolerance: the search ends if the largest work of a rank exceeds the mean work by at most
  /// this share of the mean.
  double max_overload = 0.001;
  /// The maximum number of exchanges of sequences between two ranks.
  std::size_t exchanges = 10'000;
};

/// Micro-batches of sequences that share prefixes.
struct prefix_steps {
  /// The sequences of micro-batch m of rank r are `batches(m, r)`, in the depth-first order of the
  /// forest.
  micro_batch_steps batches;
  /// The sequences that exceed the capacity on their own, in ascending order.
  std::vector<std::uint32_t> oversized;
  /// The number of computed tokens of each micro-batch, ranks fastest, then steps.
  std::vector<std::uint64_t> tokens;
  /// The work of each rank in all steps, in the unit of `cost`.
  std::vector<double> work;
  /// The sum of the tokens of all micro-batches.
  std::uint64_t computed_tokens = 0;
};

struct balance_prefixes_fn {
  /// Packs sequences that share prefixes into micro-batches of at most `capacity` tokens, the same
  /// number on every rank, so that the ranks have similar work. The functor `cost` returns the work
  /// of the tokens of a path between two positions; an example is `prefix_work`. Step 0 has the
  /// micro-batches with the most work. A micro-batch is empty only if there are fewer different
  /// sequences than micro-batches.
  ///
  /// `lpt` with equal counts and `refine_parts` assign the groups of `pack_prefixes` to ranks. Then
  /// sequences are moved and swapped between groups of the ranks with the largest and the smallest
  /// work. This ends if the work is within the tolerance or no exchange helps. An exchange may copy
  /// a prefix to another group, which adds to the work.
  ///
  /// Complexity: the complexity of these functions; an exchange examines up to 512 pairs of
  /// sequences. Memory: as `pack_prefixes`. Determinism: portable if the sums of the cost are
  /// exact. Errors: the errors of `pack_prefixes`; `std::invalid_argument` if there are no ranks or
  /// a cost is negative or not finite.
  template <path_cost Cost = prefix_work>
  [[nodiscard]] prefix_steps operator()(prefix_forest const& forest, std::size_t ranks,
                                        std::uint64_t capacity, Cost const& cost = {},
                                        balance_prefixes_options const& options = {}) const {
    check(ranks, options);
    pack_prefixes_options packing = options.packing;
    packing.multiple_of = cells_of(ranks, options.packing.multiple_of);
    auto packed = pack_prefixes(forest, capacity, packing);
    bool const keeps_all = options.packing.oversized == oversize_policy::own_group;
    auto const ends = detail::collect_path_ends(
        forest, keeps_all ? std::numeric_limits<std::uint64_t>::max() : capacity);
    detail::work_leveler leveler(ends, capacity, detail::checked_path_cost(name, cost), ranks);
    auto groups = groups_of(packed.groups, ends);
    keep_first(groups, ends.size());
    leveler.start(std::move(groups));
    leveler.assign();
    leveler.level(options.max_overload, options.exchanges, options.packing.seed);
    return write(forest, ends, leveler, std::move(packed.oversized), ranks);
  }

  /// Packs sequences into micro-batches such that all sequences with equal keys are on one rank.
  /// Trainers need this if they compute values over such a set of sequences, for example the
  /// advantages of the answers to one prompt. `keys` has an element for each sequence.
  ///
  /// `lpt` and `refine_parts` assign the sets to ranks by the work of the union of their paths.
  /// Each rank then packs its own sequences. The work of the ranks is only as similar as whole sets
  /// allow. Further errors: `std::invalid_argument` if the number of keys is not the number of
  /// sequences.
  template <path_cost Cost, sample_range Keys>
    requires key_function<std::identity, sample_reference<Keys>>
  [[nodiscard]] prefix_steps operator()(prefix_forest const& forest, std::size_t ranks,
                                        std::uint64_t capacity, Cost const& cost, Keys const& keys,
                                        balance_prefixes_options const& options = {}) const {
    check(ranks, options);
    detail::check_size(name, "keys", std::ranges::size(keys), forest.sequence_count(), "sequences");
    auto const checked = detail::checked_path_cost(name, cost);
    grouping const sets = bundle_by(keys, std::identity{});
    std::vector<double> works;
    for (auto const set : sets) works.push_back(detail::work_of(forest, set, checked));
    grouping const parts = refine_parts(works, lpt(works, ranks), std::identity{},
                                        {.max_overload = options.max_overload});
    std::vector<prefix_packing> packings;
    std::size_t most = 0;
    std::vector<std::uint32_t> oversized;
    pack_prefixes_options packing = options.packing;
    packing.multiple_of = 1;
    std::vector<std::vector<std::uint32_t>> sequences(ranks);
    std::vector<prefix_forest> forests;
    for (std::size_t r = 0; r != ranks; ++r) {
      for (std::uint32_t const set : parts[r]) {
        sequences[r].insert(sequences[r].end(), sets[set].begin(), sets[set].end());
      }
      std::sort(sequences[r].begin(), sequences[r].end());
      std::vector<std::uint32_t> ends;
      for (std::uint32_t const i : sequences[r]) ends.push_back(forest.ends()[i]);
      forests.push_back(
          build_prefix_forest(prefix_nodes{forest.parents(), forest.lengths(), ends}));
      packings.push_back(pack_prefixes(forests[r], capacity, packing));
      most = std::max(most, packings[r].groups.size());
      for (std::uint32_t const i : packings[r].oversized) oversized.push_back(sequences[r][i]);
    }
    std::size_t const multiple = options.packing.multiple_of;
    std::size_t const steps = (most + multiple - 1) / multiple * multiple;
    std::vector<std::uint32_t> rank_of;
    grouping groups;
    for (std::uint32_t r = 0; r != ranks; ++r) {
      grouping const& packed = packings[r].groups;
      for (auto const group :
           detail::split_groups(name, forests[r], packed, steps - packed.size())) {
        // The forest of all sequences may have siblings in another order than the forest of a rank.
        std::vector<std::uint32_t> members;
        for (std::uint32_t const i : group) members.push_back(sequences[r][i]);
        std::stable_sort(members.begin(), members.end(),
                         [&](std::uint32_t left, std::uint32_t right) {
                           return forest.ends()[left] < forest.ends()[right];
                         });
        for (std::uint32_t const i : members) groups.push(i);
        groups.close();
        rank_of.push_back(r);
      }
    }
    std::sort(oversized.begin(), oversized.end());
    auto const ends = detail::collect_path_ends(forest, std::numeric_limits<std::uint64_t>::max());
    detail::work_leveler leveler(ends, capacity, checked, ranks);
    leveler.start(groups_of(groups, ends));
    leveler.assign(std::move(rank_of));
    return write(forest, groups, leveler, std::move(oversized), ranks);
  }

 private:
  static constexpr std::string_view name = "balance_prefixes";

  static void check(std::size_t ranks, balance_prefixes_options const& options) {
    detail::check_positive(name, "ranks", ranks);
    detail::check_positive(name, "options.packing.multiple_of", options.packing.multiple_of);
    detail::check_weight(name, "options.max_overload", options.max_overload);
  }

  [[nodiscard]] static std::size_t cells_of(std::size_t ranks, std::size_t multiple) {
    std::size_t const cells =
        detail::checked_product(name, "ranks times options.packing.multiple_of", ranks, multiple);
    detail::check_number(name, "ranks times options.packing.multiple_of", cells);
    return cells;
  }

  /// Returns the path ends of the sequences of each group, in ascending order and without
  /// duplicates.
  [[nodiscard]] static std::vector<detail::path_group> groups_of(grouping const& groups,
                                                                 detail::path_ends const& ends) {
    std::vector<detail::path_group> result(groups.size());
    for (std::size_t g = 0; g != groups.size(); ++g) {
      for (std::uint32_t const i : groups[g]) result[g].ends.push_back(ends.end_of[i]);
      auto& all = result[g].ends;
      std::sort(all.begin(), all.end());
      all.erase(std::unique(all.begin(), all.end()), all.end());
    }
    return result;
  }

  /// Removes each end from all groups except its first one, so that equal sequences stay together.
  static void keep_first(std::vector<detail::path_group>& groups, std::size_t ends) {
    std::vector<char> seen(ends, 0);
    for (detail::path_group& group : groups) {
      std::erase_if(group.ends,
                    [&](std::uint32_t end) { return std::exchange(seen[end], char{1}) != 0; });
    }
  }

  /// Converts the groups of the leveler from path ends to sequences, and writes the result.
  template <class Leveler>
  [[nodiscard]] static prefix_steps write(prefix_forest const& forest,
                                          detail::path_ends const& ends, Leveler const& leveler,
                                          std::vector<std::uint32_t> oversized, std::size_t ranks) {
    grouping const sequences = detail::sequences_of_ends(ends);
    grouping groups;
    for (detail::path_group const& group : leveler.groups()) {
      for (std::uint32_t const t : group.ends) {
        for (std::uint32_t const i : sequences[t]) groups.push(i);
      }
      groups.close();
    }
    return write(forest, groups, leveler, std::move(oversized), ranks);
  }

  /// Writes the result: the groups of each rank in descending order of work are its micro-batches
  /// in steps 0, 1 and so on.
  template <class Leveler>
  [[nodiscard]] static prefix_steps write(prefix_forest const& forest, grouping const& groups,
                                          Leveler const& leveler,
                                          std::vector<std::uint32_t> oversized, std::size_t ranks) {
    prefix_steps result{micro_batch_steps(ranks), std::move(oversized), {}, leveler.loads(), 0};
    std::vector<std::vector<std::uint32_t>> of_rank(ranks);
    for (std::uint32_t g = 0; g != groups.size(); ++g) of_rank[leveler.rank_of(g)].push_back(g);
    for (auto& list : of_rank) {
      std::stable_sort(list.begin(), list.end(), [&](std::uint32_t left, std::uint32_t right) {
        return leveler.work(left) > leveler.work(right);
      });
    }
    std::size_t const steps = groups.size() / ranks;
    result.batches.reserve(steps, groups.item_count());
    for (std::size_t m = 0; m != steps; ++m) {
      for (auto const& list : of_rank) {
        auto const group = groups[list[m]];
        std::uint64_t const tokens = detail::union_tokens(forest, group);
        for (std::uint32_t const i : group) result.batches.push(i);
        result.batches.close();
        result.tokens.push_back(tokens);
        detail::checked_add(name, "the sum of the tokens", result.computed_tokens, tokens);
      }
    }
    return result;
  }
};

/// Packs sequences that share prefixes into micro-batches; see `balance_prefixes_fn`.
inline constexpr balance_prefixes_fn balance_prefixes{};

}  // namespace omnibal::inline v0
