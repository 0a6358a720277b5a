// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The stages of a chain for a search: checked costs, bounds, memory, rules, windows of boundaries
/// and objective.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/prefix_sums.hpp>
#include <omnibal/detail/search.hpp>
#include <omnibal/partition/detail/chain_rules.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns a lower bound of the largest value of `stages` stages whose values have the sum `sum`.
template <class T>
[[nodiscard]] constexpr T min_largest(T sum, std::size_t stages) {
  if constexpr (std::floating_point<T>) {
    // The difference of two sums may be rounded, and the quotient may be rounded too.
    return sum / static_cast<T>(stages) * (1 - 4 * std::numeric_limits<T>::epsilon());
  } else {
    auto const count = static_cast<T>(std::min<std::size_t>(stages, max_index_count));
    return static_cast<T>(sum / count + (sum % count != 0));
  }
}

/// Returns a number between `low` and `high` that is smaller than `high` if the two differ.
template <class T>
[[nodiscard]] constexpr T middle(T low, T high) {
  T const between = static_cast<T>(low + (high - low) / 2);
  return between < high ? between : low;
}

/// A lower bound of the cost of a stage: a sum over its layers.
template <class C>
class stage_bound {
 public:
  stage_bound(std::string_view function, std::size_t layers, std::size_t stages,
              std::span<C const> base, std::span<double const> speeds)
      : is_known_(!base.empty()), stages_(stages), speeds_(speeds.begin(), speeds.end()) {
    if (base.empty()) {
      sums_.assign(layers + 1, C{});
    } else {
      check_size(function, "base", base.size(), layers, "layers");
      largest_ = sum_costs(function, base, std::identity{}, sums_, {"base", "the sum of base"});
    }
    if (!speeds.empty()) check_size(function, "speeds", speeds.size(), stages, "stages");
    for (std::size_t s = 0; s != speeds.size(); ++s) {
      check_positive(function, "speeds", s, speeds[s]);
    }
    if constexpr (std::floating_point<C>) {
      // A caller may add the costs of the layers of a stage in another order.
      slack_ = sums_.back() * static_cast<C>(layers + 4) * std::numeric_limits<C>::epsilon();
    }
  }

  /// Returns false if no bound was given.
  [[nodiscard]] bool is_known() const { return is_known_; }

  /// Returns a lower bound of the cost of stage `stage` with the layers [first, last).
  [[nodiscard]] C operator()(std::size_t stage, std::size_t first, std::size_t last) const {
    C const sum = static_cast<C>(sums_[last] - sums_[first] - slack_);
    return speeds_.empty() ? sum : divided(sum, speeds_[stage]);
  }

  /// Returns a lower bound of the cost of the most expensive stage.
  [[nodiscard]] C min_bottleneck() const {
    if (!speeds_.empty()) {
      return divided(sums_.back(), std::accumulate(speeds_.begin(), speeds_.end(), 0.0));
    }
    return std::max(largest_, min_largest(sums_.back(), stages_)) - slack_;
  }

  /// Returns a lower bound of the sum of the costs of all stages.
  [[nodiscard]] C min_sum() const {
    C const sum = static_cast<C>(sums_.back() - slack_ * static_cast<C>(stages_));
    if (speeds_.empty()) return sum;
    return divided(sum, *std::max_element(speeds_.begin(), speeds_.end()));
  }

 private:
  /// Divides and rounds down, also if the floating-point quotient is rounded up.
  [[nodiscard]] static C divided(C sum, double speed) {
    double const quotient = static_cast<double>(sum) / speed * (1 - 0x1p-40);
    if constexpr (std::floating_point<C>) {
      return quotient;
    } else {
      return quotient < 0x1p62 ? static_cast<C>(quotient) : C{1} << 62;
    }
  }

  bool is_known_;
  std::size_t stages_;
  std::vector<C> sums_;
  std::vector<double> speeds_;
  C largest_{};
  C slack_{};
};

/// The bytes of the layers and the capacities of the stages.
class stage_memory {
 public:
  stage_memory(std::string_view function, std::size_t layers, std::size_t stages,
               partition_constraints const& constraints)
      : devices_(constraints.devices == 0 ? stages : constraints.devices),
        is_limited_(!constraints.capacity.empty()) {
    if (stages % devices_ != 0) {
      throw_invalid(function,
                    to_text(stages) + " stages are no multiple of devices, " + to_text(devices_));
    }
    if (!is_limited_ && constraints.bytes.empty()) return;
    auto const bytes = constraints.bytes.values();
    auto const capacity = constraints.capacity.values();
    check_size(function, "bytes", bytes.size(), layers, "layers");
    if (capacity.size() != 1) {
      check_size(function, "capacity", capacity.size(), devices_, "stages or devices");
    }
    sum_costs(function, bytes, std::identity{}, sums_, {"bytes", "the sum of the bytes"});
    capacity_.resize(stages);
    for (std::size_t s = 0; s != stages; ++s) {
      std::size_t const index = capacity.size() == 1 ? 0 : s % devices_;
      check_weight(function, "capacity", index, capacity[index]);
      capacity_[s] = capacity[index];
    }
  }

  [[nodiscard]] bool is_limited() const { return is_limited_; }
  /// Returns true if memory is limited and a device runs several stages.
  [[nodiscard]] bool is_shared() const { return is_limited_ && devices_ != capacity_.size(); }
  [[nodiscard]] std::size_t devices() const { return devices_; }

  [[nodiscard]] std::int64_t bytes(std::size_t first, std::size_t last) const {
    return sums_[last] - sums_[first];
  }
  /// Returns the capacity of the device that runs the stage.
  [[nodiscard]] std::int64_t capacity(std::size_t stage) const { return capacity_[stage]; }

  /// Returns true if the layers fit into the memory of a stage that is the only stage of its
  /// device.
  [[nodiscard]] bool fits(std::size_t stage, std::size_t first, std::size_t last) const {
    return !is_limited_ || bytes(first, last) <= capacity_[stage];
  }

  /// Adds bytes to all capacities.
  void enlarge(std::int64_t more) {
    for (std::int64_t& value : capacity_) {
      value += std::min(more, std::numeric_limits<std::int64_t>::max() - value);
    }
  }

 private:
  std::size_t devices_;
  bool is_limited_;
  std::vector<std::int64_t> sums_;
  std::vector<std::int64_t> capacity_;
};

/// The cost that marks an impossible stage.
template <class C>
inline constexpr C infinite_cost = std::numeric_limits<C>::max();

/// The stages of a chain with their costs, bounds, memory and rules. `C` is a `working_weight`.
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

  /// Returns the cost of a stage. Precondition: the stage has layers. Throws if the cost is invalid
  /// or below its bound.
  [[nodiscard]] C operator()(std::size_t stage, std::size_t first, std::size_t last) const {
    auto const given = cost_(stage, first, last);
    auto const value = static_cast<C>(given);
    if (!is_valid_weight(value) || value < bound_(stage, first, last)) [[unlikely]] {
      throw_bad(stage, first, last, given);
    }
    return value;
  }

  /// Returns the cost of a stage from the functor. Throws if the cost is invalid; does not compare
  /// the cost with its bound.
  [[nodiscard]] C valid_cost(std::size_t stage, std::size_t first, std::size_t last) const {
    auto const given = cost_(stage, first, last);
    auto const value = static_cast<C>(given);
    if (!is_valid_weight(value)) [[unlikely]]
      throw_bad(stage, first, last, given);
    return value;
  }

  /// Returns the result of the user's predicate.
  [[nodiscard]] bool fits(std::size_t stage, std::size_t first, std::size_t last) const {
    return static_cast<bool>(fits_(stage, first, last));
  }

  /// Returns false if no memory would make the stage possible, because the cost or a predicate that
  /// is not a memory rule forbids the layers.
  [[nodiscard]] bool admits(std::size_t stage, std::size_t first, std::size_t last) const {
    if constexpr (!memory_predicate<Fits>) {
      if (!fits(stage, first, last)) return false;
    }
    return valid_cost(stage, first, last) != infinite_cost<C>;
  }

  /// Returns true if memory limits the stages.
  [[nodiscard]] bool knows_memory() const { return memory_.is_limited() || memory_predicate<Fits>; }
  /// Returns the bytes by which a stage exceeds the memory rule, negative if memory remains; the
  /// smallest number if there is no memory rule.
  [[nodiscard]] std::int64_t missing_by_rule(std::size_t stage, std::size_t first,
                                             std::size_t last) const {
    if constexpr (memory_predicate<Fits>) return fits_.missing_bytes(stage, first, last);
    return std::numeric_limits<std::int64_t>::min();
  }
  /// Returns the bytes by which a stage exceeds the memory if it is the only stage of its device.
  [[nodiscard]] std::int64_t missing_bytes(std::size_t stage, std::size_t first,
                                           std::size_t last) const {
    std::int64_t const by_rule = missing_by_rule(stage, first, last);
    if (!memory_.is_limited()) return by_rule;
    return std::max(by_rule, memory_.bytes(first, last) - memory_.capacity(stage));
  }

  /// Returns true if the layers can form the stage at a finite cost.
  [[nodiscard]] bool can_be(std::size_t stage, std::size_t first, std::size_t last) const {
    return !is_over(stage, first, last, infinite_cost<C>) && fits(stage, first, last) &&
           (*this)(stage, first, last) != infinite_cost<C>;
  }

  /// Returns true if the layers can form the stage and cost at most `limit`.
  [[nodiscard]] bool is_within(std::size_t stage, std::size_t first, std::size_t last,
                               C limit) const {
    return (*this)(stage, first, last) <= limit && fits(stage, first, last);
  }

  /// Returns true if the stage has too many layers for bound, memory or rules; stages with more
  /// layers then also have too many.
  [[nodiscard]] bool is_over(std::size_t stage, std::size_t first, std::size_t last,
                             C limit) const {
    return bound_(stage, first, last) > limit || last - first > rules_.longest[stage] ||
           !memory_.fits(stage, first, last);
  }

  /// Throws because no end in [low, high] has the cost that an earlier call returned. Names the
  /// first end whose cost changed.
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
  /// Throws because the stages with these boundaries do not have the cost that earlier calls
  /// returned.
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

  /// Returns the last end, up to `high`, of a stage from `first` on for which `is_over` is false.
  /// Precondition: such an end exists.
  [[nodiscard]] std::size_t furthest(std::size_t stage, std::size_t first, std::size_t high,
                                     C limit) const {
    return first_false(first, high,
                       [&](std::size_t last) { return !is_over(stage, first, last + 1, limit); });
  }

  /// Returns the first beginning, from `low` on, of a stage that ends at `last` for which `is_over`
  /// is false. Precondition: such a beginning exists.
  [[nodiscard]] std::size_t nearest(std::size_t stage, std::size_t low, std::size_t last,
                                    C limit) const {
    return first_false(low, last,
                       [&](std::size_t first) { return is_over(stage, first, last, limit); });
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

/// The range of positions that each boundary can have if no stage is over a limit.
struct cut_windows {
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> last;
  /// The index of the first cell of each boundary in an array of all cells.
  std::vector<std::size_t> offsets;

  /// Computes the ranges. Returns false if no such stages exist.
  template <class Stages, class C>
  [[nodiscard]] bool narrow(Stages const& stages, C limit) {
    first = stages.rules().first_cut;
    last = stages.rules().last_cut;
    if (!narrow_by_bound(stages, limit)) return false;
    if (stages.bound().is_known() && limit != infinite_cost<C> && !narrow_by_cost(stages, limit)) {
      return false;
    }
    offsets.resize(stages.stages() + 2);
    offsets[0] = 0;
    for (std::size_t s = 0; s <= stages.stages(); ++s) offsets[s + 1] = offsets[s] + size(s);
    return true;
  }

  [[nodiscard]] std::size_t size(std::size_t boundary) const {
    return std::size_t{last[boundary]} - first[boundary] + 1;
  }
  [[nodiscard]] bool contains(std::size_t boundary, std::size_t position) const {
    return first[boundary] <= position && position <= last[boundary];
  }
  [[nodiscard]] std::size_t cell(std::size_t boundary, std::size_t position) const {
    return offsets[boundary] + (position - first[boundary]);
  }

 private:
  template <class Stages, class C>
  [[nodiscard]] bool narrow_by_bound(Stages const& stages, C limit) {
    std::size_t const count = stages.stages();
    for (std::size_t s = 0; s != count; ++s) {
      auto const end = stages.furthest(s, last[s], std::max(last[s], last[s + 1]), limit);
      last[s + 1] = std::min(last[s + 1], static_cast<std::uint32_t>(end));
      if (last[s + 1] < first[s + 1]) return false;
    }
    for (std::size_t s = count; s-- != 0;) {
      auto const begin = stages.nearest(s, std::min(first[s], first[s + 1]), first[s + 1], limit);
      first[s] = std::max(first[s], static_cast<std::uint32_t>(begin));
      if (last[s] < first[s]) return false;
    }
    return true;
  }

  /// Moves the ends of windows to positions at which some stage is possible, repeatedly, because
  /// windows often shrink many times.
  template <class Stages, class C>
  [[nodiscard]] bool narrow_by_cost(Stages const& stages, C limit) {
    std::size_t const count = stages.stages();
    for (std::size_t s = 0; s + 1 != count; ++s) {
      while (!has_begin(stages, s, last[s + 1], limit)) {
        if (last[s + 1]-- == first[s + 1]) return false;
      }
    }
    for (std::size_t s = count; --s != 0;) {
      while (!has_end(stages, s, first[s], limit)) {
        if (first[s]++ == last[s]) return false;
      }
    }
    return true;
  }

  /// Returns true if stage `s` may end at position `end`.
  template <class Stages, class C>
  [[nodiscard]] bool has_begin(Stages const& stages, std::size_t s, std::size_t end,
                               C limit) const {
    auto const& rules = stages.rules();
    if (rules.may_cut[end] == 0) return false;
    if (rules.may_be_empty && contains(s, end)) return true;
    if (end < rules.shortest[s]) return false;
    std::size_t const most = std::min<std::size_t>(last[s], end - rules.shortest[s]);
    for (std::size_t i = most + 1; i-- > first[s];) {
      if (stages.is_over(s, i, end, limit)) return false;
      if (stages.is_within(s, i, end, limit)) return true;
    }
    return false;
  }

  /// Returns true if stage `s` may begin at position `begin`.
  template <class Stages, class C>
  [[nodiscard]] bool has_end(Stages const& stages, std::size_t s, std::size_t begin,
                             C limit) const {
    auto const& rules = stages.rules();
    if (rules.may_cut[begin] == 0) return false;
    if (rules.may_be_empty && contains(s + 1, begin)) return true;
    auto const least = std::max<std::size_t>(first[s + 1], begin + rules.shortest[s]);
    for (std::size_t j = least; j <= last[s + 1]; ++j) {
      if (stages.is_over(s, begin, j, limit)) return false;
      if (stages.is_within(s, begin, j, limit)) return true;
    }
    return false;
  }
};

/// The type in which multiples of costs are computed without overflow.
template <class C>
using wide_weight = std::conditional_t<std::floating_point<C>, C, int128>;

/// The time of a step: `of_bottleneck` times the largest cost of a stage, plus `of_sum` times the
/// sum of the costs.
template <class C>
struct step_time {
  std::uint64_t of_bottleneck = 1;
  std::uint64_t of_sum = 0;

  [[nodiscard]] wide_weight<C> operator()(C bottleneck, C sum) const {
    using wide = wide_weight<C>;
    return static_cast<wide>(of_bottleneck) * static_cast<wide>(bottleneck) +
           static_cast<wide>(of_sum) * static_cast<wide>(sum);
  }

  /// Returns an upper bound of the bottleneck of stages whose time is at most `time` and whose
  /// costs add up to at least `sum`.
  [[nodiscard]] C highest_bottleneck(wide_weight<C> time, C sum) const {
    using wide = wide_weight<C>;
    if (of_bottleneck == 0) return infinite_cost<C>;
    wide const rest = std::max(wide{}, time - static_cast<wide>(of_sum) * static_cast<wide>(sum));
    wide result = rest / static_cast<wide>(of_bottleneck);
    // The subtraction may have lost a few bits of `time`.
    if constexpr (std::floating_point<C>) result += time * C{0x1p-50};
    return static_cast<C>(std::min(result, static_cast<wide>(infinite_cost<C>)));
  }
};

/// Returns `time` in the type of a cost. Throws if the type cannot represent it.
template <class C>
[[nodiscard]] C checked_time(std::string_view function, wide_weight<C> time) {
  if (!(time <= static_cast<wide_weight<C>>(infinite_cost<C>))) {
    throw_overflow(function, "the time of a step");
  }
  return static_cast<C>(time);
}

}  // namespace omnibal::inline v0::detail
