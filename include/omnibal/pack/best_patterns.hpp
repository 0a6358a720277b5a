// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Packing of a histogram of samples close to the bound.

#include <omnibal/concepts.hpp>
#include <omnibal/detail/column_generation.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/best_patterns/counted_patterns.hpp>
#include <omnibal/pack/best_patterns/pattern_rounds.hpp>
#include <omnibal/pack/detail/sample_size.hpp>
#include <omnibal/pack/pack_histogram.hpp>
#include <omnibal/pack/pattern_plan.hpp>
#include <omnibal/pack/sample_histogram.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct best_patterns_options {
  /// The maximum number of steps of each linear program. It also limits the number of different
  /// demands to the cube root of `4 * pattern_steps`, at most 4096; the default is 1,024 demands.
  /// Above the limit, the result is the result of `pack_histogram`.
  std::size_t pattern_steps = std::size_t{1} << 28;
};

struct best_patterns_fn {
  /// Packs the samples of a histogram into the fewest groups that are found by patterns and their
  /// prices: `best_patterns(histogram, 4096)`. The result has at most the groups of
  /// `pack_histogram`, with few different demands the bound or a few groups more, and its bound is
  /// at least the bound of `pack_histogram`. The number of samples hardly matters; the number of
  /// different demands does: see `best_patterns_options`.
  ///
  /// A linear program finds how many groups of each pattern hold all samples in the fewest
  /// fractions of groups, by column generation as in `packing_bound`. Its prices are the bound. Its
  /// groups are rounded to whole groups. The samples that are left, a few for each pattern, are
  /// packed by further linear programs, and the rest of them by `pack_histogram`. With several
  /// resources, the search for patterns can require many steps; if they do not suffice, the best
  /// patterns so far are rounded.
  ///
  /// `capacity` is a number or resources of R integers up to 2^63 - 1. Complexity: at most eight
  /// times `pattern_steps`, and twice `pack_histogram`. Memory: the memory of `pack_histogram`
  /// twice, and for each linear program 4 bytes for each pair of demands and up to 4 bytes per
  /// step. The number of patterns is at most ten times the number of different demands.
  /// Determinism: portable. Errors: as `pack_histogram`. Sources: Gilmore, Gomory, "A linear
  /// programming approach to the cutting-stock problem", 1961; Farley, 1990; Waescher, Gau,
  /// "Heuristics for the integer one-dimensional cutting stock problem: a computational study",
  /// 1996.
  template <std::size_t R, class Capacity>
    requires measure<Capacity> && detail::same_kinds<resources<R>, Capacity> &&
        std::integral<detail::working_weight<Capacity>>
  [[nodiscard]] pattern_plan<R> operator()(sample_histogram<R> const& histogram,
                                           Capacity const& capacity,
                                           best_patterns_options const& options = {}) const {
    auto const entries = histogram.entries();
    auto const demand = [](demand_count<R> const& entry) { return entry.demand; };
    return detail::with_measured(name, entries, demand, capacity, [&](auto&& input) {
      pattern_plan<R> plan = pack_histogram(histogram, capacity);
      if (plan.is_proven()) return plan;
      std::vector<std::uint32_t> indices;
      detail::counted_patterns packed;
      detail::fitting_indices fitting(input.oversized);
      for (std::size_t k = 0; k != input.size(); ++k) {
        indices.push_back(fitting.next());
        packed.left.push_back(entries[indices.back()].count);
      }
      plan.lower_bound =
          detail::pack_by_prices(input, packed, plan.lower_bound, options.pattern_steps);
      if (packed.patterns.empty()) return plan;
      pattern_plan<R> rest = rest_of(histogram, packed, indices, capacity);
      if (rest.group_count == 1) {
        // Samples of zero size, or a few others, may fit into a group that has room.
        packed.take_back_group();
        rest = rest_of(histogram, packed, indices, capacity);
      }
      std::uint64_t groups = rest.group_count;
      for (std::uint64_t const times : packed.multiplicities) groups += times;
      if (groups >= plan.group_count) return plan;
      plan.group_count = groups;
      write(plan, input, packed, indices, rest);
      return plan;
    });
  }

 private:
  static constexpr std::string_view name = "best_patterns";

  /// Packs the samples that are left.
  template <std::size_t R, class Capacity>
  [[nodiscard]] static pattern_plan<R> rest_of(sample_histogram<R> const& histogram,
                                               detail::counted_patterns const& packed,
                                               std::vector<std::uint32_t> const& indices,
                                               Capacity const& capacity) {
    std::vector<demand_count<R>> left;
    for (std::size_t k = 0; k != indices.size(); ++k) {
      left.push_back({histogram.entries()[indices[k]].demand, packed.left[k]});
    }
    return pack_histogram(sample_histogram<R>(std::move(left)), capacity);
  }

  /// Writes the patterns of linear programs and of the other samples into a plan.
  template <std::size_t R, class Layout>
  static void write(pattern_plan<R>& plan, detail::measured<Layout> const& input,
                    detail::counted_patterns const& packed,
                    std::vector<std::uint32_t> const& indices, pattern_plan<R> const& rest) {
    plan.offsets.assign(1, 0);
    plan.parts.clear();
    plan.multiplicities = packed.multiplicities;
    detail::sample_size const size(input.capacity, size_measure::sum_of_shares);
    for (detail::pattern pattern : packed.patterns) {
      std::sort(pattern.begin(), pattern.end(),
                [&](detail::pattern_entry left, detail::pattern_entry right) {
                  auto const left_size = size(input.amounts(left.type), left.type);
                  auto const right_size = size(input.amounts(right.type), right.type);
                  return left_size > right_size ||
                         (left_size == right_size && left.type < right.type);
                });
      for (detail::pattern_entry const entry : pattern) {
        plan.parts.push_back({indices[entry.type], entry.count});
      }
      plan.offsets.push_back(plan.parts.size());
    }
    for (std::size_t p = 0; p != rest.multiplicities.size(); ++p) {
      for (pattern_part const part : rest.pattern(p)) {
        auto const& demand = rest.histogram.entries()[part.entry].demand;
        plan.parts.push_back({static_cast<std::uint32_t>(plan.histogram.find(demand)), part.count});
      }
      plan.offsets.push_back(plan.parts.size());
      plan.multiplicities.push_back(rest.multiplicities[p]);
    }
  }
};

/// Packs a histogram of samples close to the bound; see `best_patterns_fn`.
inline constexpr best_patterns_fn best_patterns{};

}  // namespace omnibal::inline v0
