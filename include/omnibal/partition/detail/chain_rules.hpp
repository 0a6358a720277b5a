// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Constraints on the cuts of a chain, without memory, as intervals and a mask.

#include <omnibal/check.hpp>
#include <omnibal/partition/partition_layers_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The allowed positions of boundaries. Boundary s is the first layer of stage s.
struct chain_rules {
  std::size_t layers;
  std::size_t stages;
  bool may_be_empty;
  bool may_cut_anywhere = true;
  std::vector<std::uint8_t> may_cut;     ///< for each position from zero to `layers`
  std::vector<std::uint32_t> shortest;   ///< of a stage that is not empty
  std::vector<std::uint32_t> longest;    ///< of a stage
  std::vector<std::uint32_t> first_cut;  ///< for each boundary
  std::vector<std::uint32_t> last_cut;   ///< for each boundary

  [[nodiscard]] std::size_t fewest(std::size_t stage) const {
    return may_be_empty ? 0 : shortest[stage];
  }
};

enum class rule_kind { min_layers, max_layers, pinned, forbidden_cut, tied };

/// One element of a list of the constraints.
struct chain_rule {
  rule_kind kind;
  std::size_t index;
};

/// The constraints of a chain with given numbers of layers and stages; each element can be applied
/// separately.
class rule_book {
 public:
  /// Throws if an element names a layer or a stage that does not exist, or if the element itself is
  /// out of range.
  rule_book(std::string_view function, std::size_t layers, std::size_t stages,
            partition_constraints const& constraints)
      : function_(function), layers_(layers), stages_(stages), constraints_(constraints) {
    check_list("min_layers", constraints.min_layers.values());
    check_list("max_layers", constraints.max_layers.values());
    for (std::size_t i = 0; i != constraints.pinned.size(); ++i) {
      check_index("pinned", i, "layer", constraints.pinned[i].layer, layers);
      check_index("pinned", i, "stage", constraints.pinned[i].stage, stages);
    }
    for (std::size_t i = 0; i != constraints.forbidden_cuts.size(); ++i) {
      check_index("forbidden_cuts", i, "layer", constraints.forbidden_cuts[i], layers);
      if (constraints.forbidden_cuts[i] == 0) {
        throw_invalid(function, "forbidden_cuts[" + to_text(i) +
                                    "] is 0, but every chain begins with that layer");
      }
    }
    for (std::size_t i = 0; i != constraints.tied.size(); ++i) {
      check_index("tied", i, "layer", constraints.tied[i].last, layers);
      if (constraints.tied[i].first > constraints.tied[i].last) {
        throw_invalid(function, "tied[" + to_text(i) + "] ends before it begins");
      }
    }
  }

  /// Returns all constraints together; throws if they contradict each other.
  [[nodiscard]] chain_rules rules() const {
    chain_rules result = without_rules();
    for_each_rule([&](chain_rule rule) { apply(rule, result); });
    if (!tighten(result)) throw_contradiction();
    bool const has_gaps = !result.may_cut_anywhere || result.may_be_empty;
    if (has_gaps && !can_reach_end(result)) throw_contradiction();
    return result;
  }

 private:
  void check_list(std::string_view argument, std::span<std::int64_t const> values) const {
    if (values.size() > 1) check_size(function_, argument, values.size(), stages_, "stages");
    for (std::size_t i = 0; i != values.size(); ++i) {
      check_weight(function_, argument, i, values[i]);
    }
  }

  void check_index(std::string_view argument, std::size_t index, std::string_view what,
                   std::size_t value, std::size_t count) const {
    if (value < count) return;
    throw_invalid(function_, std::string(argument) + "[" + to_text(index) + "] names " +
                                 std::string(what) + " " + to_text(value) + ", but there are " +
                                 to_text(count));
  }

  [[nodiscard]] chain_rules without_rules() const {
    auto const last = static_cast<std::uint32_t>(layers_);
    chain_rules result{.layers = layers_,
                       .stages = stages_,
                       .may_be_empty = constraints_.empty == empty_stages::allowed,
                       .may_cut = std::vector<std::uint8_t>(layers_ + 1, 1),
                       .shortest = std::vector<std::uint32_t>(stages_, 1),
                       .longest = std::vector<std::uint32_t>(stages_, last),
                       .first_cut = std::vector<std::uint32_t>(stages_ + 1, 0),
                       .last_cut = std::vector<std::uint32_t>(stages_ + 1, last)};
    result.last_cut.front() = 0;
    result.first_cut.back() = last;
    return result;
  }

  template <class Function>
  void for_each_rule(Function const& function) const {
    auto const each = [&](rule_kind kind, std::size_t count) {
      for (std::size_t i = 0; i != count; ++i) function(chain_rule{kind, i});
    };
    each(rule_kind::min_layers, constraints_.min_layers.values().size());
    each(rule_kind::max_layers, constraints_.max_layers.values().size());
    each(rule_kind::pinned, constraints_.pinned.size());
    each(rule_kind::forbidden_cut, constraints_.forbidden_cuts.size());
    each(rule_kind::tied, constraints_.tied.size());
  }

  /// Returns the range of stages to which element `index` of a list applies.
  [[nodiscard]] std::pair<std::size_t, std::size_t> stages_of(std::span<std::int64_t const> values,
                                                              std::size_t index) const {
    if (values.size() == 1) return {0, stages_};
    return {index, index + 1};
  }

  [[nodiscard]] std::uint32_t at_most_layers(std::int64_t value) const {
    return static_cast<std::uint32_t>(std::min(value, static_cast<std::int64_t>(layers_)));
  }

  void apply(chain_rule rule, chain_rules& rules) const {
    switch (rule.kind) {
      case rule_kind::min_layers: {
        auto const values = constraints_.min_layers.values();
        // All minimums above the number of layers are impossible, so they are cut off at one layer
        // more.
        auto const fewest = static_cast<std::uint32_t>(
            std::min(values[rule.index], static_cast<std::int64_t>(layers_) + 1));
        auto const [begin, end] = stages_of(values, rule.index);
        for (std::size_t s = begin; s != end; ++s) {
          rules.shortest[s] = std::max(rules.shortest[s], fewest);
        }
        return;
      }
      case rule_kind::max_layers: {
        auto const values = constraints_.max_layers.values();
        auto const [begin, end] = stages_of(values, rule.index);
        for (std::size_t s = begin; s != end; ++s) {
          rules.longest[s] = at_most_layers(values[rule.index]);
        }
        return;
      }
      case rule_kind::pinned: {
        pinned_layer const pin = constraints_.pinned[rule.index];
        auto& last = rules.last_cut[pin.stage];
        auto& first = rules.first_cut[pin.stage + 1];
        last = std::min(last, pin.layer);
        first = std::max(first, pin.layer + 1);
        return;
      }
      case rule_kind::forbidden_cut: {
        std::uint32_t const layer = constraints_.forbidden_cuts[rule.index];
        return forbid(layer, layer, rules);
      }
      case rule_kind::tied: {
        tied_layers const tie = constraints_.tied[rule.index];
        return forbid(tie.first + 1, tie.last, rules);
      }
    }
  }

  /// Forbids boundaries from `first` to `last` inside the chain. The ends of the chain are not
  /// cuts.
  static void forbid(std::uint32_t first, std::uint32_t last, chain_rules& rules) {
    for (std::size_t i = std::max(first, 1u); i <= last; ++i) {
      rules.may_cut[i] = 0;
      rules.may_cut_anywhere = false;
    }
  }

  /// Narrows the range of each boundary to the positions that the ranges of its neighbors allow.
  /// Returns false if a range is empty.
  [[nodiscard]] static bool tighten(chain_rules& rules) {
    auto& first = rules.first_cut;
    auto& last = rules.last_cut;
    for (std::size_t s = 0; s != rules.stages; ++s) {
      if (rules.longest[s] < rules.fewest(s)) return false;
      std::uint64_t const nearest = first[s] + std::uint64_t{rules.fewest(s)};
      std::uint64_t const furthest = last[s] + std::uint64_t{rules.longest[s]};
      if (nearest > last[s + 1] || furthest < first[s + 1]) return false;
      first[s + 1] = std::max(first[s + 1], static_cast<std::uint32_t>(nearest));
      last[s + 1] = static_cast<std::uint32_t>(std::min<std::uint64_t>(last[s + 1], furthest));
      if (first[s + 1] > last[s + 1]) return false;
    }
    for (std::size_t s = rules.stages; s-- != 0;) {
      std::int64_t const nearest = std::int64_t{first[s + 1]} - rules.longest[s];
      std::int64_t const furthest =
          std::int64_t{last[s + 1]} - static_cast<std::int64_t>(rules.fewest(s));
      if (furthest < first[s] || nearest > last[s]) return false;
      first[s] = static_cast<std::uint32_t>(std::max<std::int64_t>(first[s], nearest));
      last[s] = static_cast<std::uint32_t>(std::min<std::int64_t>(last[s], furthest));
    }
    return true;
  }

  /// Returns true if boundaries exist that satisfy the rules. Visits all positions.
  [[nodiscard]] static bool can_reach_end(chain_rules const& rules) {
    std::vector<std::uint8_t> reached(rules.layers + 1, 0);
    std::vector<std::uint32_t> before(rules.layers + 2, 0);
    reached[0] = 1;
    for (std::size_t s = 0; s != rules.stages; ++s) {
      for (std::size_t i = 0; i != reached.size(); ++i) before[i + 1] = before[i] + reached[i];
      for (std::size_t i = 0; i != reached.size(); ++i) {
        bool const stays = rules.may_be_empty && reached[i] != 0;
        bool const is_near = rules.first_cut[s + 1] <= i && i <= rules.last_cut[s + 1];
        std::size_t const begin = i - std::min<std::size_t>(i, rules.longest[s]);
        std::size_t const end = i + 1 - std::min<std::size_t>(i + 1, rules.shortest[s]);
        bool const comes = begin < end && before[end] != before[begin];
        reached[i] = rules.may_cut[i] != 0 && is_near && (stays || comes);
      }
    }
    return reached[rules.layers] != 0;
  }

  [[nodiscard]] bool can_hold(std::vector<chain_rule> const& some) const {
    chain_rules rules = without_rules();
    for (chain_rule const rule : some) apply(rule, rules);
    return tighten(rules) && can_reach_end(rules);
  }

  /// Throws with a message that names constraints that contradict each other. The set is minimal:
  /// without any one of them the others can be satisfied.
  [[noreturn]] void throw_contradiction() const {
    std::vector<chain_rule> culprits;
    for_each_rule([&](chain_rule rule) { culprits.push_back(rule); });
    for (std::size_t i = 0; i != culprits.size();) {
      std::vector<chain_rule> others = culprits;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      if (can_hold(others)) {
        ++i;
      } else {
        culprits = std::move(others);
      }
    }
    std::string text =
        to_text(layers_) + " layers on " + to_text(stages_) + " stages cannot satisfy ";
    for (std::size_t i = 0; i != culprits.size(); ++i) {
      text += (i == 0 ? "" : " and ") + name_of(culprits[i]);
    }
    throw_invalid(function_, text);
  }

  [[nodiscard]] std::string name_of(chain_rule rule) const {
    std::string const place = "[" + to_text(rule.index) + "]";
    switch (rule.kind) {
      case rule_kind::min_layers:
        return "min_layers" + place + " = " + to_text(constraints_.min_layers.values()[rule.index]);
      case rule_kind::max_layers:
        return "max_layers" + place + " = " + to_text(constraints_.max_layers.values()[rule.index]);
      case rule_kind::pinned:
        return "pinned" + place + " (layer " + to_text(constraints_.pinned[rule.index].layer) +
               " on stage " + to_text(constraints_.pinned[rule.index].stage) + ")";
      case rule_kind::forbidden_cut:
        return "forbidden_cuts" + place + " (layer " +
               to_text(constraints_.forbidden_cuts[rule.index]) + ")";
      case rule_kind::tied: break;
    }
    return "tied" + place + " (layers " + to_text(constraints_.tied[rule.index].first) + " to " +
           to_text(constraints_.tied[rule.index].last) + ")";
  }

  std::string_view function_;
  std::size_t layers_;
  std::size_t stages_;
  partition_constraints const& constraints_;
};

}  // namespace omnibal::inline v0::detail
