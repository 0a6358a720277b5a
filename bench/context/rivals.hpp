#pragma once

/// \file
/// The rule of Megatron's dynamic context parallelism.

#include "context_rivals.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace bench {

using examples::context_step;

/// Megatron's rule, written anew: the longest sample that is left has the least power of two that
/// holds it, and its time is what the others of the micro-step aim at; each joins the group of its
/// degree with the least time, or opens one while there are ranks. Ranks that are left over widen
/// the groups, the slowest first.
class largest_first {
 public:
  explicit largest_first(context_step const& step) : step_(step), left_(step.lengths) {
    std::sort(left_.rbegin(), left_.rend());
  }

  [[nodiscard]] double makespan() {
    double sum = 0;
    while (!left_.empty()) sum += step_.cost.micro_step + micro_step();
    return sum;
  }

 private:
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

  [[nodiscard]] double micro_step() {
    std::vector<group> groups;
    std::vector<std::int64_t> rest;
    std::uint32_t free_ranks = step_.ranks;
    double aim = 0;
    for (std::int64_t const length : left_) {
      std::uint32_t const degree = needed(length);
      if (groups.empty()) aim = time(with({.degree = degree}, length));
      group* best = nullptr;
      for (group& open : groups) {
        if (open.degree != degree) continue;
        group const joined = with(open, length);
        if (joined.bytes > step_.options.capacity || time(joined) > aim) continue;
        if (best == nullptr || time(open) < time(*best)) best = &open;
      }
      if (free_ranks >= degree) {
        groups.push_back(with({.degree = degree}, length));
        free_ranks -= degree;
      } else if (best != nullptr) {
        *best = with(*best, length);
      } else {
        rest.push_back(length);
      }
    }
    widen(groups, free_ranks);
    left_ = std::move(rest);
    double longest = 0;
    for (group const& made : groups) longest = std::max(longest, time(made));
    return longest;
  }

  void widen(std::vector<group>& groups, std::uint32_t free_ranks) const {
    for (;;) {
      auto const slowest =
          std::max_element(groups.begin(), groups.end(),
                           [&](group const& a, group const& b) { return time(a) < time(b); });
      group wider = *slowest;
      wider.degree *= 2;
      if (slowest->degree > free_ranks || time(wider) >= time(*slowest)) return;
      free_ranks -= slowest->degree;
      *slowest = wider;
    }
  }

  context_step const& step_;
  std::vector<std::int64_t> left_;
};

}  // namespace bench
