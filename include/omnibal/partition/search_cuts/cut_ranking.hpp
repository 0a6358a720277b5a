#pragma once

/// \file
/// The best cuts of a neighbourhood under a score that is a sum over the stages.

#include <omnibal/check.hpp>
#include <omnibal/partition/neighbours.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Throws unless the score is finite. Unlike a cost it may be negative.
template <class S>
void check_score(std::string_view function, S score) {
  if constexpr (std::floating_point<S>) {
    if (std::isfinite(score)) return;
    throw_invalid(function, "a score is " + to_text(score) + ", must be finite");
  }
}

/// The sum of two scores; throws where an integer leaves its type or another number is not finite.
template <class S>
[[nodiscard]] S add_scores(std::string_view function, S left, S right) {
  if constexpr (std::floating_point<S>) {
    S const sum = left + right;
    check_score(function, sum);
    return sum;
  } else {
    S sum{};
    if (__builtin_add_overflow(left, right, &sum))
      throw_overflow(function, "the sum of the scores");
    return sum;
  }
}

/// Boundaries and what a score says about them.
template <class S>
struct scored {
  std::vector<std::uint32_t> boundaries;
  S score;
};

/// Makes the boundaries of a neighbourhood one by one, from the lowest score to the highest, equal
/// ones in lexicographic order: best-first search with the exact least score of what is left.
/// Scores are added from the last stage to the first.
template <class S>
class cut_ranking {
 public:
  /// Calls `score(stage, first, last)` once for each stage that neighbours may have.
  template <class Score>
  cut_ranking(std::string_view function, neighbourhood const& cuts, Score const& score)
      : function_(function), cuts_(cuts) {
    find_terms(score);
    find_least_left();
    open_.push({*left_[0][0], {cuts_.anchor().front()}});
  }

  /// The next best; none after the last.
  [[nodiscard]] std::optional<scored<S>> next() {
    while (!open_.empty()) {
      node best = open_.top();
      open_.pop();
      if (best.boundaries.size() == cuts_.stages() + 1) {
        return scored<S>{std::move(best.boundaries), best.least};
      }
      extend(best);
    }
    return std::nullopt;
  }

 private:
  /// The first boundaries of some cuts, and the least score that they lead to.
  struct node {
    S least;
    std::vector<std::uint32_t> boundaries;

    /// The order of a heap, whose top is the largest.
    [[nodiscard]] friend bool operator<(node const& left, node const& right) {
      if (left.least != right.least) return right.least < left.least;
      return right.boundaries < left.boundaries;
    }
  };

  [[nodiscard]] std::size_t width(std::size_t boundary) const {
    return std::size_t{cuts_.last_position(boundary)} - cuts_.first_position(boundary) + 1;
  }
  [[nodiscard]] std::size_t place_of(std::size_t s, std::uint32_t first, std::uint32_t last) const {
    return (first - cuts_.first_position(s)) * width(s + 1) + (last - cuts_.first_position(s + 1));
  }
  /// The score of stage s from one position to another.
  [[nodiscard]] S term(std::size_t s, std::uint32_t first, std::uint32_t last) const {
    return terms_[s][place_of(s, first, last)];
  }
  /// The least score from a position on; nothing where no boundaries lead on from there.
  [[nodiscard]] std::optional<S> const& left_from(std::size_t boundary,
                                                  std::uint32_t position) const {
    return left_[boundary][position - cuts_.first_position(boundary)];
  }

  template <class Visit>
  void for_each_end(std::size_t s, std::uint32_t first, Visit const& visit) const {
    auto const low = std::max(first + 1, cuts_.first_position(s + 1));
    for (std::uint32_t last = low; last <= cuts_.last_position(s + 1); ++last) visit(last);
  }
  template <class Visit>
  void for_each_position(std::size_t boundary, Visit const& visit) const {
    for (auto p = cuts_.first_position(boundary); p <= cuts_.last_position(boundary); ++p) visit(p);
  }

  template <class Score>
  void find_terms(Score const& score) {
    terms_.resize(cuts_.stages());
    for (std::size_t s = 0; s != cuts_.stages(); ++s) {
      terms_[s].resize(width(s) * width(s + 1));
      for_each_position(s, [&](std::uint32_t first) {
        for_each_end(s, first, [&](std::uint32_t last) {
          auto const value =
              static_cast<S>(score(std::size_t{s}, std::size_t{first}, std::size_t{last}));
          check_score(function_, value);
          terms_[s][place_of(s, first, last)] = value;
        });
      });
    }
  }

  void find_least_left() {
    std::size_t const stages = cuts_.stages();
    left_.resize(stages + 1);
    left_[stages] = {S{}};
    for (std::size_t s = stages; s-- != 0;) {
      left_[s].resize(width(s));
      for_each_position(s, [&](std::uint32_t first) {
        auto& least = left_[s][first - cuts_.first_position(s)];
        for_each_end(s, first, [&](std::uint32_t last) {
          auto const& rest = left_from(s + 1, last);
          if (!rest) return;
          S const sum = add_scores(function_, term(s, first, last), *rest);
          if (!least || sum < *least) least = sum;
        });
      });
    }
  }

  void extend(node const& from) {
    std::size_t const s = from.boundaries.size() - 1;
    for_each_end(s, from.boundaries.back(), [&](std::uint32_t last) {
      auto const& rest = left_from(s + 1, last);
      if (!rest) return;
      node longer{*rest, from.boundaries};
      longer.boundaries.push_back(last);
      for (std::size_t i = s + 1; i-- != 0;) {
        longer.least = add_scores(
            function_, term(i, longer.boundaries[i], longer.boundaries[i + 1]), longer.least);
      }
      open_.push(std::move(longer));
    });
  }

  std::string_view function_;
  neighbourhood const& cuts_;
  std::vector<std::vector<S>> terms_;                ///< for each stage
  std::vector<std::vector<std::optional<S>>> left_;  ///< for each boundary
  std::priority_queue<node> open_;
};

}  // namespace omnibal::inline v0::detail
