// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Patterns under construction.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Patterns with multiplicities, as chains of parts that share their beginnings. A pattern is open,
/// that is, parts are appended to it, as long as its groups have room.
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
    links_.reserve(4 * demands);
  }

  /// Adds a pattern without parts.
  std::uint32_t open(std::uint64_t groups) {
    patterns_.push_back({no_link, 0, groups});
    return static_cast<std::uint32_t>(patterns_.size() - 1);
  }

  /// Moves `groups` of a pattern to a new pattern with the same parts.
  std::uint32_t split(std::uint32_t target, std::uint64_t groups) {
    patterns_[target].groups -= groups;
    patterns_.push_back({patterns_[target].last, patterns_[target].parts, groups});
    return static_cast<std::uint32_t>(patterns_.size() - 1);
  }

  /// Appends samples to each group of a pattern.
  void append(std::uint32_t target, std::uint32_t sample, std::uint64_t count) {
    links_.push_back({sample, patterns_[target].last, count});
    patterns_[target].last = static_cast<std::uint32_t>(links_.size() - 1);
    ++patterns_[target].parts;
  }

  /// Returns the multiplicity of a pattern.
  [[nodiscard]] std::uint64_t groups(std::uint32_t target) const {
    return patterns_[target].groups;
  }

  [[nodiscard]] std::size_t size() const { return patterns_.size(); }

  /// Returns the number of parts of a pattern.
  [[nodiscard]] std::size_t part_count(std::size_t target) const { return patterns_[target].parts; }

  /// Calls `body(sample, count)` for each part of a pattern, the last part first.
  template <class Body>
  void for_each_part(std::size_t target, Body const& body) const {
    for (std::uint32_t at = patterns_[target].last; at != no_link; at = links_[at].before) {
      body(links_[at].sample, links_[at].count);
    }
  }

 private:
  static constexpr std::uint32_t no_link = std::numeric_limits<std::uint32_t>::max();

  struct chain {
    std::uint32_t last;
    std::uint32_t parts;
    std::uint64_t groups;
  };
  /// Equal samples of each group of a pattern; `sample` is the index of their demand.
  struct link {
    std::uint32_t sample;
    std::uint32_t before;
    std::uint64_t count;
  };

  std::vector<chain> patterns_;
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
      std::uint64_t groups = left / count;
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
