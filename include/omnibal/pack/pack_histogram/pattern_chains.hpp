// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Patterns under construction.

#include <omnibal/pack/pattern_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Patterns with multiplicities, each of which begins with the first parts of the pattern from
/// which it was split. A pattern is open, that is, parts are appended to it, as long as its groups
/// have room.
class pattern_chains {
 public:
  /// Best-fit decreasing of `demands` different demands creates at most `max_patterns(demands)`
  /// patterns. Each demand adds one pattern when it is exhausted, and one for the rest that does
  /// not fill a group.
  [[nodiscard]] static constexpr std::size_t max_patterns(std::size_t demands) {
    return 2 * demands;
  }

  explicit pattern_chains(std::size_t demands) {
    patterns_.reserve(max_patterns(demands));
    groups_.reserve(max_patterns(demands));
    links_.reserve(4 * demands);
  }

  /// Adds a pattern without parts.
  std::uint32_t open(std::uint64_t groups) {
    patterns_.push_back({0, 0, 0});
    groups_.push_back(groups);
    return static_cast<std::uint32_t>(patterns_.size() - 1);
  }

  /// Moves `groups` of a pattern to a new pattern with the same parts.
  std::uint32_t split(std::uint32_t target, std::uint64_t groups) {
    groups_[target] -= groups;
    std::uint32_t const parts = patterns_[target].parts;
    patterns_.push_back({target, parts, parts});
    groups_.push_back(groups);
    return static_cast<std::uint32_t>(patterns_.size() - 1);
  }

  /// Appends samples to each group of a pattern.
  void append(std::uint32_t target, std::uint32_t sample, std::uint64_t count) {
    links_.push_back({target, sample, count});
    ++patterns_[target].parts;
  }

  /// Returns the multiplicity of a pattern.
  [[nodiscard]] std::uint64_t groups(std::uint32_t target) const { return groups_[target]; }

  /// Writes the patterns into a plan without patterns; `indices` are the entries of the samples.
  template <std::size_t R>
  void move_to(pattern_plan<R>& plan, std::span<std::uint32_t const> indices) && {
    // While parts are written, offsets[p + 1] is the place of the next part of pattern p.
    plan.offsets.reserve(patterns_.size() + 1);
    std::size_t end = 0;
    for (chain const& made : patterns_) {
      plan.offsets.push_back(end + made.inherited);
      end += made.parts;
    }
    plan.parts.resize(end);
    for (link const& own : links_) {
      plan.parts[plan.offsets[own.pattern + 1]++] = {indices[own.sample], own.count};
    }
    // A pattern was split from an earlier pattern, which has all of its parts.
    for (std::size_t p = 0; p != patterns_.size(); ++p) {
      std::copy_n(
          plan.parts.begin() + static_cast<std::ptrdiff_t>(plan.offsets[patterns_[p].origin]),
          patterns_[p].inherited,
          plan.parts.begin() + static_cast<std::ptrdiff_t>(plan.offsets[p]));
    }
    for (std::uint64_t const groups : groups_) plan.group_count += groups;
    plan.multiplicities = std::move(groups_);
  }

 private:
  /// The parts of a pattern, of which the first `inherited` are the parts of the pattern `origin`.
  struct chain {
    std::uint32_t origin;
    std::uint32_t inherited;
    std::uint32_t parts;
  };
  /// Equal samples of each group of a pattern; `sample` is the index of their demand.
  struct link {
    std::uint32_t pattern;
    std::uint32_t sample;
    std::uint64_t count;
  };

  std::vector<chain> patterns_;
  std::vector<std::uint64_t> groups_;
  std::vector<link> links_;
};

/// Packs counted samples by best fit in the order `order`, with the decisions of best fit sample by
/// sample. Equal samples are packed into a group one after the other until no further one fits, and
/// groups with equal contents receive the same samples. `open` finds the open pattern with the best
/// fit.
template <class OpenPatterns>
[[nodiscard]] pattern_chains best_fit_patterns(std::span<std::uint32_t const> order,
                                               std::span<std::uint64_t const> counts,
                                               OpenPatterns& open) {
  pattern_chains chains(order.size());
  for (std::uint32_t const sample : order) {
    open.start(sample);
    for (std::uint64_t left = counts[sample]; left != 0;) {
      std::uint32_t target = open.take();
      bool const is_new = target == OpenPatterns::none;
      std::uint64_t const count = open.count_in(target, left);
      std::uint64_t groups = count == 1 ? left : left / count;
      if (is_new) {
        target = chains.open(groups);
        open.renew(target);
      } else if (groups < chains.groups(target)) {
        std::uint32_t const rest = target;
        target = chains.split(rest, groups);
        open.copy_room(rest, target);
        open.put_back(rest);
      } else {
        groups = chains.groups(target);
      }
      chains.append(target, sample, count);
      left -= groups * count;
      open.put(target, count);
    }
  }
  return chains;
}

}  // namespace omnibal::inline v0::detail
