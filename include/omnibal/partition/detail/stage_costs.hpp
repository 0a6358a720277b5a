#pragma once

/// \file
/// Stages as a search sees them: the cost with its checks, the bound, the memory, the rules.

#include <omnibal/check.hpp>
#include <omnibal/partition/detail/chain_rules.hpp>
#include <omnibal/partition/detail/stage_limits.hpp>
#include <omnibal/partition/memory_rule.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace omnibal::inline v0::detail {

/// The cost of what cannot run.
template <class C>
inline constexpr C never = std::numeric_limits<C>::max();

/// A chain with everything that is known of its stages. `C` is a `working_weight`.
template <class C, class Cost, class Fits>
class stage_costs {
 public:
  stage_costs(std::string_view function, chain_rules const& rules, stage_bound<C> const& bound,
              stage_memory const& memory, Cost const& cost, Fits const& fits,
              std::string_view cost_name = "stage_cost")
      : function_(function),
        cost_name_(cost_name),
        rules_(rules),
        bound_(bound),
        memory_(memory),
        cost_(cost),
        fits_(fits) {}

  [[nodiscard]] std::string_view function() const { return function_; }
  [[nodiscard]] chain_rules const& rules() const { return rules_; }
  [[nodiscard]] stage_bound<C> const& bound() const { return bound_; }
  [[nodiscard]] stage_memory const& memory() const { return memory_; }
  [[nodiscard]] std::size_t layers() const { return rules_.layers; }
  [[nodiscard]] std::size_t stages() const { return rules_.stages; }

  /// The cost of a stage that has layers.
  [[nodiscard]] C operator()(std::size_t stage, std::size_t first, std::size_t last) const {
    auto const given = cost_(stage, first, last);
    auto const value = static_cast<C>(given);
    if (!is_valid_weight(value) || value < bound_(stage, first, last)) [[unlikely]] {
      throw_bad(stage, first, last, given);
    }
    return value;
  }

  /// The same where the bound is not known.
  [[nodiscard]] C valid_cost(std::size_t stage, std::size_t first, std::size_t last) const {
    auto const given = cost_(stage, first, last);
    auto const value = static_cast<C>(given);
    if (!is_valid_weight(value)) [[unlikely]]
      throw_bad(stage, first, last, given);
    return value;
  }

  /// What the user's predicate says.
  [[nodiscard]] bool fits(std::size_t stage, std::size_t first, std::size_t last) const {
    return static_cast<bool>(fits_(stage, first, last));
  }

  /// False where the layers cannot be that stage whatever the memory: its predicate says so, which
  /// is no memory rule, or its cost.
  [[nodiscard]] bool admits(std::size_t stage, std::size_t first, std::size_t last) const {
    if constexpr (!memory_predicate<Fits>) {
      if (!fits(stage, first, last)) return false;
    }
    return valid_cost(stage, first, last) != never<C>;
  }

  /// Whether memory is a part of what is known of the stages.
  [[nodiscard]] bool knows_memory() const { return memory_.is_limited() || memory_predicate<Fits>; }
  /// What the user's memory rule lacks, negative where it has more than enough; the least number
  /// where there is no such rule.
  [[nodiscard]] std::int64_t missing_by_rule(std::size_t stage, std::size_t first,
                                             std::size_t last) const {
    if constexpr (memory_predicate<Fits>) return fits_.missing_bytes(stage, first, last);
    return std::numeric_limits<std::int64_t>::min();
  }
  /// What a stage alone on its device lacks in memory.
  [[nodiscard]] std::int64_t missing_bytes(std::size_t stage, std::size_t first,
                                           std::size_t last) const {
    std::int64_t const by_rule = missing_by_rule(stage, first, last);
    if (!memory_.is_limited()) return by_rule;
    return std::max(by_rule, memory_.bytes(first, last) - memory_.capacity(stage));
  }

  /// True where the layers may be that stage at some cost.
  [[nodiscard]] bool can_be(std::size_t stage, std::size_t first, std::size_t last) const {
    return !is_over(stage, first, last, never<C>) && fits(stage, first, last) &&
           (*this)(stage, first, last) != never<C>;
  }

  /// True where the layers may be that stage and cost at most `limit`.
  [[nodiscard]] bool is_within(std::size_t stage, std::size_t first, std::size_t last,
                               C limit) const {
    return (*this)(stage, first, last) <= limit && fits(stage, first, last);
  }

  /// True where even the bound is above the limit, or memory or rules allow fewer layers; then more
  /// layers are over too.
  [[nodiscard]] bool is_over(std::size_t stage, std::size_t first, std::size_t last,
                             C limit) const {
    return bound_(stage, first, last) > limit || last - first > rules_.longest[stage] ||
           !memory_.fits(stage, first, last);
  }

  /// Throws because no end of a stage in [low, high] has what an earlier call has promised. Names
  /// the first that changes between two calls.
  [[noreturn, gnu::noinline]] void throw_changed(std::size_t stage, std::size_t first,
                                                 std::size_t low, std::size_t high) const {
    std::string const rule = ", must be equal for equal arguments";
    for (std::size_t last = std::max(low, first + 1); last <= high; ++last) {
      std::string const arguments =
          "(" + to_text(stage) + ", " + to_text(first) + ", " + to_text(last) + ") was ";
      std::string const cost = to_text(cost_(stage, first, last));
      std::string const cost_now = to_text(cost_(stage, first, last));
      if (cost != cost_now) {
        throw_invalid(function_, std::string(cost_name_) + arguments + cost + " and is now " +
                                     cost_now + rule);
      }
      bool const is_legal = fits(stage, first, last);
      if (is_legal == fits(stage, first, last)) continue;
      throw_invalid(function_, "stage_predicate" + arguments + (is_legal ? "true" : "false") +
                                   " and is now " + (is_legal ? "false" : "true") + rule);
    }
    throw_invalid(function_, std::string(cost_name_) + " or stage_predicate of stage " +
                                 to_text(stage) + " with the layers from " + to_text(first) +
                                 " on has changed between calls" + rule);
  }
  /// The same for stages with these boundaries: they are not what earlier calls have promised.
  [[noreturn]] void throw_changed(std::span<std::uint32_t const> boundaries) const {
    std::size_t s = 0;
    auto const is_stable = [&] {
      std::size_t const first = boundaries[s];
      std::size_t const last = boundaries[s + 1];
      return first == last || (to_text(cost_(s, first, last)) == to_text(cost_(s, first, last)) &&
                               fits(s, first, last) == fits(s, first, last));
    };
    while (s + 2 != boundaries.size() && is_stable()) ++s;
    throw_changed(s, boundaries[s], boundaries[s + 1], boundaries[s + 1]);
  }

  /// The last end up to `high` of a stage from `first` on that is not over. There is one.
  [[nodiscard]] std::size_t furthest(std::size_t stage, std::size_t first, std::size_t high,
                                     C limit) const {
    std::size_t low = first;
    while (low != high) {
      std::size_t const half = high - (high - low) / 2;
      if (is_over(stage, first, half, limit)) {
        high = half - 1;
      } else {
        low = half;
      }
    }
    return low;
  }

  /// The first beginning from `low` on of a stage up to `last` that is not over. There is one.
  [[nodiscard]] std::size_t nearest(std::size_t stage, std::size_t low, std::size_t last,
                                    C limit) const {
    std::size_t high = last;
    while (low != high) {
      std::size_t const half = low + (high - low) / 2;
      if (is_over(stage, half, last, limit)) {
        low = half + 1;
      } else {
        high = half;
      }
    }
    return low;
  }

 private:
  template <class T>
  [[noreturn]] void throw_bad(std::size_t stage, std::size_t first, std::size_t last,
                              T value) const {
    std::string const text = "the cost of stage " + to_text(stage) + " with the layers [" +
                             to_text(first) + ", " + to_text(last) + ") is " + to_text(value);
    if (!is_valid_weight(static_cast<C>(value))) {
      throw_invalid(function_, text + ", must be finite, not negative and at most 2^63 - 1");
    }
    throw_invalid(function_, text + ", below its base " + to_text(bound_(stage, first, last)));
  }

  std::string_view function_;
  std::string_view cost_name_;
  chain_rules const& rules_;
  stage_bound<C> const& bound_;
  stage_memory const& memory_;
  Cost const& cost_;
  Fits const& fits_;
};

}  // namespace omnibal::inline v0::detail
