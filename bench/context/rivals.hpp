// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The rule of Megatron's dynamic context parallelism.

#include "context_rivals.hpp"

#include <omnibal/context/context_groups.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace bench {

using examples::context_step;

/// The packing-aware rule of Megatron, written anew, with the times of the step in place of squared
/// lengths. Degrees are powers of two. The longest sample that is left has the least degree that
/// holds it; each shorter one joins a group or opens one, of any degree that holds it, where the
/// longest time of all groups is least then, of equal ones the least degree, and waits for the next
/// micro-step where that exceeds the time of ranks that are full of samples as long as the longest.
/// Ranks that are left over double the smallest groups, the first of them first.
class megatron_groups {
 public:
  explicit megatron_groups(context_step const& step) : step_(step), left_(step.lengths) {
    std::sort(left_.rbegin(), left_.rend());
  }

  [[nodiscard]] double makespan() {
    double sum = 0;
    while (!left_.empty()) sum += step_.cost.micro_step + micro_step();
    return sum;
  }

 private:
  /// By how much the time of full ranks may be exceeded.
  static constexpr double slack = 1.05;

  struct group {
    std::uint32_t degree = 1;
    std::int64_t bytes = 0;
    double tokens = 0;
    double squares = 0;
  };

  [[nodiscard]] double time(group const& of) const {
    return step_.cost.degrees[of.degree - 1](of.tokens, of.squares);
  }

  static group with(group of, std::int64_t length) {
    auto const tokens = static_cast<double>(length);
    of.bytes += context_step::memory(length, of.degree);
    of.tokens += tokens;
    of.squares += tokens * tokens;
    return of;
  }

  [[nodiscard]] std::uint32_t needed(std::int64_t length) const {
    std::uint32_t degree = 1;
    while (context_step::memory(length, degree) > step_.options.capacity) degree *= 2;
    return degree;
  }

  /// The time of ranks that are full of samples of a length.
  [[nodiscard]] double time_of_full(std::int64_t length) const {
    group full{.degree = needed(length)};
    full.tokens = full.degree * static_cast<double>(step_.options.capacity);
    full.squares = full.tokens * static_cast<double>(length);
    return time(full);
  }

  /// Puts a sample into a group; false where the longest time would exceed a limit.
  bool place(std::int64_t length, double limit) {
    double least = std::numeric_limits<double>::infinity();
    std::size_t chosen = 0;
    std::uint32_t opened = 0;
    auto const consider = [&](double after, std::size_t place, std::uint32_t degree) {
      double const longest = std::max(longest_, after);
      if (longest > limit || longest >= least) return;
      least = longest;
      chosen = place;
      opened = degree;
    };
    for (std::uint32_t degree = needed(length); degree <= step_.ranks; degree *= 2) {
      for (std::size_t g = 0; g != groups_.size() && least > longest_; ++g) {
        if (groups_[g].degree != degree) continue;
        group const joined = with(groups_[g], length);
        if (joined.bytes <= step_.options.capacity) consider(time(joined), g, 0);
      }
      if (degree <= free_ranks_) consider(time(with({.degree = degree}, length)), 0, degree);
      if (least <= longest_) break;
    }
    if (least == std::numeric_limits<double>::infinity()) return false;
    if (opened == 0) {
      groups_[chosen] = with(groups_[chosen], length);
    } else {
      groups_.push_back(with({.degree = opened}, length));
      free_ranks_ -= opened;
    }
    longest_ = least;
    return true;
  }

  [[nodiscard]] double micro_step() {
    groups_.clear();
    free_ranks_ = step_.ranks;
    std::uint32_t const first = needed(left_.front());
    groups_.push_back(with({.degree = first}, left_.front()));
    free_ranks_ -= first;
    longest_ = time(groups_.front());
    double const limit = slack * time_of_full(left_.front());
    std::vector<std::int64_t> rest;
    for (std::size_t i = 1; i != left_.size(); ++i) {
      if (!place(left_[i], limit)) rest.push_back(left_[i]);
    }
    left_ = std::move(rest);
    widen();
    double longest = 0;
    for (group const& made : groups_) longest = std::max(longest, time(made));
    return longest;
  }

  void widen() {
    while (free_ranks_ != 0) {
      auto const smallest =
          std::ranges::min_element(groups_, {}, [](group const& of) { return of.degree; });
      if (smallest->degree > free_ranks_) return;
      free_ranks_ -= smallest->degree;
      smallest->degree *= 2;
    }
  }

  context_step const& step_;
  std::vector<std::int64_t> left_;
  std::vector<group> groups_;
  std::uint32_t free_ranks_ = 0;
  double longest_ = 0;
};

}  // namespace bench
