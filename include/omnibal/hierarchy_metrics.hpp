#pragma once

/// \file
/// What long contexts cost: attention balance and communication ratio.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/sample_at.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>

namespace omnibal::inline v0 {

namespace detail {

/// The number of tokens of a sample, which is not negative.
template <class Samples, class Length>
[[nodiscard]] std::int64_t tokens_at(std::string_view function, Samples const& samples,
                                     Length const& length, std::size_t group, std::uint32_t item) {
  auto const tokens = to_working<std::int64_t>(
      {function, "length", item}, std::invoke(length, sample_at(function, samples, group, item)));
  check_weight(function, "length", item, tokens);
  return tokens;
}

/// The samples of a range have a length in whole tokens.
template <class Samples, class Length>
concept samples_with_length =
    sample_range<Samples> && cost_function<Length, sample_reference<Samples>> &&
    integral_amount<demand_result<Length, sample_reference<Samples>>>;

}  // namespace detail

struct attention_balance_fn {
  /// The share of the attention time of a step for which ranks wait for the slowest (the attention
  /// balance ratio ABR): the mean over all steps of 1 - mean / largest over the ranks, where a rank
  /// has the sum of the squares of its samples' lengths. 0 where all are even. A rank without
  /// groups waits the whole step, so that a short last step counts as what it is.
  ///
  /// `schedule` names groups of `groups`, `length` gives the tokens of a sample. A step in which
  /// several ranks share a pack has one cell for each pack; see `level_steps`.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable. Errors: `std::invalid_argument`
  /// for an index of a group or sample that does not exist and for a negative length;
  /// `std::overflow_error` where the squares of a step exceed 2^63 - 1. Source: Yao et al.,
  /// "Hierarchical balance packing", NeurIPS 2025.
  template <class Samples, class Length = std::identity>
    requires detail::samples_with_length<Samples, Length>
  [[nodiscard]] double operator()(steps const& schedule, groups_argument groups,
                                  Samples const& samples, Length const& length = {}) const {
    double sum = 0.0;
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      std::int64_t largest = 0;
      std::int64_t total = 0;
      for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
        std::int64_t squares = 0;
        for (std::uint32_t const group : schedule(step, rank)) {
          add_squares(groups, group, samples, length, squares);
        }
        detail::checked_add(name, "the squares of a step", total, squares);
        largest = std::max(largest, squares);
      }
      if (largest == 0) continue;
      sum += 1.0 - static_cast<double>(total) / static_cast<double>(largest) /
                       static_cast<double>(schedule.ranks());
    }
    return schedule.empty() ? 0.0 : std::max(0.0, sum / static_cast<double>(schedule.size()));
  }

 private:
  static constexpr std::string_view name = "attention_balance";

  template <class Samples, class Length>
  static void add_squares(grouping_view groups, std::uint32_t group, Samples const& samples,
                          Length const& length, std::int64_t& sum) {
    if (group >= groups.size()) {
      detail::throw_invalid(name, "schedule names group " + detail::to_text(group) + " of " +
                                      detail::to_text(groups.size()));
    }
    for (std::uint32_t const item : groups[group]) {
      std::int64_t const tokens = detail::tokens_at(name, samples, length, group, item);
      std::int64_t square = 0;
      if (__builtin_mul_overflow(tokens, tokens, &square)) {
        detail::throw_overflow(name, "the square of length[" + detail::to_text(item) + "]");
      }
      detail::checked_add(name, "the squares of a step", sum, square);
    }
  }
};

/// The attention balance ratio; see `attention_balance_fn`.
inline constexpr attention_balance_fn attention_balance{};

struct communication_ratio_fn {
  /// The share of the tokens in groups that take part in sequence-parallel communication (CR):
  /// those of groups that more than one rank shares. 0 without tokens.
  ///
  /// `degree(group)` is the number of ranks that share a group, such as
  /// `[&](std::uint32_t g) { return packed.levels[packed.level_of(g)].setting.sequence; }`.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable. Errors: `std::invalid_argument`
  /// for an index that is not in `samples`, a negative length and a degree below one;
  /// `std::overflow_error` where the sum of the lengths exceeds 2^63 - 1. Source: as
  /// `attention_balance`.
  template <class Samples, class Degree, class Length = std::identity>
    requires detail::samples_with_length<Samples, Length> && cost_function<Degree, std::uint32_t>
  [[nodiscard]] double operator()(groups_argument groups, Samples const& samples,
                                  Degree const& degree, Length const& length = {}) const {
    std::int64_t shared = 0;
    std::int64_t all = 0;
    for (std::size_t g = 0; g != groups.size(); ++g) {
      auto const ranks = std::invoke(degree, static_cast<std::uint32_t>(g));
      if (!(ranks >= 1)) {
        detail::throw_invalid(name, "the degree of group " + detail::to_text(g) + " is " +
                                        detail::to_text(ranks) + ", must be at least 1");
      }
      std::int64_t const before = all;
      for (std::uint32_t const item : groups[g]) {
        detail::checked_add(name, "the sum of the lengths", all,
                            detail::tokens_at(name, samples, length, g, item));
      }
      if (ranks > 1) shared += all - before;
    }
    return all == 0 ? 0.0 : static_cast<double>(shared) / static_cast<double>(all);
  }

 private:
  static constexpr std::string_view name = "communication_ratio";
};

/// The share of tokens in sequence-parallel groups; see `communication_ratio_fn`.
inline constexpr communication_ratio_fn communication_ratio{};

}  // namespace omnibal::inline v0
