// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A search for cuts that computes a cheap score for all candidates and measures the best ones.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/prefix_sums.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/neighbors.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// The weights of the two parts of `cut_score`. The weight `variance` is the score of stages whose
/// times have a standard deviation equal to their mean. `traffic` is the score of cuts that send
/// the average traffic of a layer.
struct cut_weights {
  double variance = 1.0;
  /// With the default, average traffic has the same score as times with a standard deviation of a
  /// hundredth of their mean.
  double traffic = 0.0001;
};

/// OmniBal's score of cuts, by the variance of the times of the stages and the traffic of the cuts;
/// lower is better. The variance is divided by the square of the mean time. The mean traffic of the
/// cuts is divided by the mean traffic of all places where layers can be cut. Each part is
/// multiplied by the user's weight. Neither part has a unit, so the same weights are suitable for
/// every model and machine. A call with a stage returns the part of the score that the stage adds.
/// Therefore a search can find the best cuts without trying all of them.
///
/// Determinism: run-to-run. Source: Yao et al., OmniBal, ICML 2025.
class cut_score {
 public:
  /// Creates the score from `seconds`, the forward time of each layer, and `traffic`, the amount
  /// that each layer sends to the next layer. The traffic of the last layer is ignored. Both lists
  /// may have any unit. If all layers have zero time or send nothing, that part of the score is
  /// zero.
  ///
  /// Errors: `std::invalid_argument` for no stages, lists of different lengths, and a value that is
  /// negative or not finite; `std::overflow_error` if the sum of the times or of the traffic
  /// exceeds its type.
  cut_score(weight_list<double> const& seconds, weight_list<double> const& traffic,
            std::size_t stages, cut_weights const& weights = {})
      : traffic_(traffic.values().begin(), traffic.values().end()) {
    detail::check_weight(name, "weights.variance", weights.variance);
    detail::check_weight(name, "weights.traffic", weights.traffic);
    std::size_t const layers = seconds.values().size();
    detail::check_stages(name, layers, stages, empty_stages::allowed);
    detail::check_size(name, "traffic", traffic_.size(), layers, "layers");
    detail::sum_costs(name, traffic_, std::identity{}, sums_,
                      {"traffic", "the sum of the traffic"});
    scale_traffic(weights.traffic, stages);
    detail::sum_costs(name, seconds.values(), std::identity{}, sums_,
                      {"seconds", "the sum of the seconds"});
    mean_ = sums_.back() / static_cast<double>(stages);
    variance_weight_ = mean_ > 0.0 ? weights.variance / static_cast<double>(stages) : 0.0;
  }

  /// Returns the part of the score of a stage: its squared distance from the mean time, and its
  /// traffic.
  [[nodiscard]] double operator()(std::size_t, std::size_t first, std::size_t last) const {
    double const sent = last == traffic_.size() || last == first ? 0.0 : traffic_[last - 1];
    if (variance_weight_ == 0.0) return sent;
    double const distance = (sums_[last] - sums_[first]) / mean_ - 1.0;
    return variance_weight_ * distance * distance + sent;
  }

 private:
  static constexpr std::string_view name = "cut_score";

  /// Replaces the traffic of each layer by its part of the score. Precondition: `sums_` has the
  /// sums of the traffic.
  void scale_traffic(double weight, std::size_t stages) {
    std::size_t const places = traffic_.empty() ? 0 : traffic_.size() - 1;
    double const mean = sums_[places] / static_cast<double>(std::max<std::size_t>(places, 1));
    double const cuts = static_cast<double>(std::max<std::size_t>(stages, 2) - 1);
    for (double& sent : traffic_) sent = mean > 0.0 ? weight * (sent / mean / cuts) : 0.0;
  }

  std::vector<double> sums_;
  std::vector<double> traffic_;
  double mean_ = 0.0;
  double variance_weight_ = 0.0;
};

namespace detail {

/// Throws unless the score is finite. In contrast to a cost, a score may be negative.
template <class S>
void check_score(std::string_view function, S score) {
  if constexpr (std::floating_point<S>) {
    if (is_finite(score)) return;
    throw_invalid(function, "a score is " + to_text(score) + ", must be finite");
  }
}

/// Adds two scores. Throws if an integer sum exceeds its type or if a floating-point sum is not
/// finite.
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

/// Boundaries and their score.
template <class S>
struct scored {
  std::vector<std::uint32_t> boundaries;
  S score;
};

/// Enumerates the boundaries of a neighborhood from the lowest score to the highest; equal scores
/// are in lexicographic order. The method is best-first search with the exact least score of the
/// remaining stages. Scores are added from the last stage to the first.
template <class S>
class cut_ranking {
 public:
  /// Calls `score(stage, first, last)` once for each stage that boundaries of the neighborhood may
  /// have.
  template <class Score>
  cut_ranking(std::string_view function, neighborhood const& cuts, Score const& score)
      : function_(function), cuts_(cuts) {
    find_terms(score);
    find_least_left();
    open_.push({*left_[0][0], {cuts_.anchor().front()}});
  }

  /// Returns the next best boundaries, or no value after the last ones.
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
  /// The first boundaries of a partition, and the least score of any completion.
  struct node {
    S least;
    std::vector<std::uint32_t> boundaries;

    /// Orders a heap, whose top is the largest element.
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
  /// Returns the score of stage `s` with the layers [first, last).
  [[nodiscard]] S term(std::size_t s, std::uint32_t first, std::uint32_t last) const {
    return terms_[s][place_of(s, first, last)];
  }
  /// Returns the least score of the stages from a position on, or no value if no boundaries
  /// continue from this position.
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
  neighborhood const& cuts_;
  std::vector<std::vector<S>> terms_;                ///< for each stage
  std::vector<std::vector<std::optional<S>>> left_;  ///< for each boundary
  std::priority_queue<node> open_;
};

}  // namespace detail

/// The limit on the number of measurements.
struct search_budget {
  std::size_t measurements = std::numeric_limits<std::size_t>::max();
};

/// The progress of `search_cuts`.
template <scalar_measure M>
struct search_progress {
  std::size_t measurements;  ///< the number of measurements
  M best;                    ///< the smallest measured value
};

/// Cuts, their score and their measured value.
template <scalar_measure S, scalar_measure M>
struct measured_cuts {
  std::vector<std::uint32_t> boundaries{};
  S score{};
  /// The measured value; infinity or the largest value of the type if the cuts were not measured.
  M measured{};

  [[nodiscard]] friend bool operator==(measured_cuts const&, measured_cuts const&) = default;
};

/// The result of `search_cuts`.
template <scalar_measure S, scalar_measure M>
struct search_result {
  /// The candidates with the best scores, the best candidate first. The first `measurements`
  /// candidates were measured.
  std::vector<measured_cuts<S, M>> candidates{};
  std::size_t measurements = 0;
  /// The index of the candidate with the smallest measured value; among equal values, of the
  /// candidate with the better score. If nothing was measured, the index of the candidate with the
  /// best score.
  std::size_t best = 0;

  [[nodiscard]] friend bool operator==(search_result const&, search_result const&) = default;
};

/// A score of whole boundaries; lower is better.
template <class Score>
concept boundaries_score =
    std::regular_invocable<Score const&, std::span<std::uint32_t const>> && scalar_measure<
        std::remove_cvref_t<std::invoke_result_t<Score const&, std::span<std::uint32_t const>>>>;

/// A score of whole boundaries, or a functor (stage, first, last); the sum of the functor over the
/// stages is then the score.
template <class Score>
concept cut_scorer = stage_cost<Score> || boundaries_score<Score>;

/// A functor that runs a pipeline with given boundaries for some time and returns its measured
/// time.
template <class Measure>
concept cut_measurement =
    std::invocable<Measure&, std::span<std::uint32_t const>> && scalar_measure<
        std::remove_cvref_t<std::invoke_result_t<Measure&, std::span<std::uint32_t const>>>>;

/// A range of boundaries.
template <class Candidates>
concept cut_range = std::ranges::input_range<Candidates const> &&
    std::convertible_to<std::ranges::range_reference_t<Candidates const>,
                        std::span<std::uint32_t const>>;

/// A progress predicate that is always true, so that only the budget ends the search.
struct measure_all {
  template <class Progress>
  [[nodiscard]] constexpr bool operator()(Progress const&) const {
    return true;
  }
};

namespace detail {

/// The type of a score: the result for a stage if the functor scores stages, otherwise the result
/// for boundaries.
template <class Score>
struct score_result {
  using type =
      std::remove_cvref_t<std::invoke_result_t<Score const&, std::span<std::uint32_t const>>>;
};
template <stage_cost Score>
struct score_result<Score> {
  using type = std::remove_cvref_t<
      std::invoke_result_t<Score const&, std::size_t, std::size_t, std::size_t>>;
};
template <class Score>
using score_type_of = working_weight<typename score_result<Score>::type>;

template <class Measure>
using measured_type_of =
    std::remove_cvref_t<std::invoke_result_t<Measure&, std::span<std::uint32_t const>>>;

/// A predicate that is called after each measurement and returns true if the search continues.
template <class GoOn, class Measure>
concept progress_predicate_of = std::predicate < GoOn&,
        search_progress<measured_type_of<Measure>>
const& > ;

/// The boundaries with the best scores among the boundaries that are offered one by one; among
/// equal scores, the earlier ones.
template <class S>
class best_scored {
 public:
  explicit best_scored(std::size_t most) : max_count_(most) {}

  void offer(std::span<std::uint32_t const> boundaries, S score) {
    auto const place =
        std::upper_bound(all_.begin(), all_.end(), score,
                         [](S value, scored<S> const& other) { return value < other.score; });
    if (place == all_.end() && all_.size() == max_count_) return;
    all_.insert(place, {{boundaries.begin(), boundaries.end()}, score});
    if (all_.size() > max_count_) all_.pop_back();
  }

  [[nodiscard]] std::vector<scored<S>>& all() { return all_; }

 private:
  std::size_t max_count_;
  std::vector<scored<S>> all_;
};

}  // namespace detail

struct search_cuts_fn {
  /// Searches for the fastest cuts as OmniBal does: computes a cheap score of each candidate,
  /// measures the `top_k` candidates with the best scores, and returns the fastest one. Lower
  /// scores and lower measured values are better.
  ///
  /// `candidates` is the result of `neighbors` or any range of boundaries. `score` is called with
  /// (stage, first, last) and returns the part of the score of a stage, as `cut_score` does.
  /// Alternatively `score` is called with boundaries and returns the whole score. If candidates are
  /// neighbors and `score` scores stages, the search finds the best neighbors without examining all
  /// of them; equal scores are in lexicographic order. Otherwise every candidate is scored, and
  /// among equal scores the earlier candidate is better. Scores may be negative. `measure` is
  /// called with boundaries; infinity means that these cuts could not be run. After each call
  /// `go_on` receives a `search_progress` and may end the search, for instance at a time limit.
  /// `budget.measurements` also ends the search.
  ///
  /// Complexity: for neighbors and a score of stages, (2 radius + 1)^2 calls of `score` for each
  /// stage, and a search of about `top_k` * stages * positions steps. Otherwise, a call of `score`
  /// for each candidate. Memory: the memory of the search. Determinism: portable for integer scores
  /// and a portable `measure`. Errors: `std::invalid_argument` for no `top_k`, scores that are not
  /// finite and measured values that are NaN; `std::overflow_error` if the sum of integer scores
  /// exceeds its type. Sources: Yao et al., OmniBal, ICML 2025; Lawler, "A procedure for computing
  /// the K best solutions to discrete optimization problems", Management Science 1972.
  template <cut_range Candidates, cut_scorer Score, cut_measurement Measure,
            detail::progress_predicate_of<Measure> GoOn = measure_all>
  [[nodiscard]] auto operator()(Candidates const& candidates, Score const& score, std::size_t top_k,
                                Measure&& measure, search_budget const& budget = {},
                                GoOn go_on = {}) const {
    using score_type = detail::score_type_of<Score>;
    using measured_type = detail::measured_type_of<Measure>;
    detail::check_positive(name, "top_k", top_k);
    constexpr measured_type not_measured = std::numeric_limits<measured_type>::has_infinity
                                               ? std::numeric_limits<measured_type>::infinity()
                                               : std::numeric_limits<measured_type>::max();
    search_result<score_type, measured_type> result;
    for (auto& candidate : best_of<score_type>(candidates, score, top_k)) {
      result.candidates.push_back({std::move(candidate.boundaries), candidate.score, not_measured});
    }
    for (auto& candidate : result.candidates) {
      if (result.measurements == budget.measurements) break;
      candidate.measured = measure(std::span<std::uint32_t const>(candidate.boundaries));
      if (candidate.measured != candidate.measured) {
        detail::throw_invalid(name, "the cuts " + detail::list_text(candidate.boundaries) +
                                        " measured " + detail::to_text(candidate.measured) +
                                        ", must be a number or infinity");
      }
      if (candidate.measured < result.candidates[result.best].measured) {
        result.best = result.measurements;
      }
      ++result.measurements;
      search_progress<measured_type> const progress{result.measurements,
                                                    result.candidates[result.best].measured};
      if (!go_on(progress)) break;
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "search_cuts";

  template <class S, class Candidates, class Score>
  [[nodiscard]] static std::vector<detail::scored<S>> best_of(Candidates const& candidates,
                                                              Score const& score,
                                                              std::size_t top_k) {
    if constexpr (stage_cost<Score> && std::same_as<Candidates, neighborhood>) {
      std::vector<detail::scored<S>> result;
      detail::cut_ranking<S> ranking(name, candidates, score);
      while (result.size() != top_k) {
        auto found = ranking.next();
        if (!found) break;
        result.push_back(*std::move(found));
      }
      return result;
    } else {
      detail::best_scored<S> best(top_k);
      for (auto&& candidate : candidates) {
        std::span<std::uint32_t const> const boundaries(candidate);
        best.offer(boundaries, whole_score<S>(boundaries, score));
      }
      return std::move(best.all());
    }
  }

  template <class S, class Score>
  [[nodiscard]] static S whole_score(std::span<std::uint32_t const> boundaries,
                                     Score const& score) {
    S sum{};
    if constexpr (stage_cost<Score>) {
      for (std::size_t s = boundaries.size(); s-- > 1;) {
        sum = detail::add_scores(name,
                                 static_cast<S>(score(s - 1, std::size_t{boundaries[s - 1]},
                                                      std::size_t{boundaries[s]})),
                                 sum);
      }
    } else {
      sum = static_cast<S>(score(boundaries));
    }
    detail::check_score(name, sum);
    return sum;
  }
};

/// Searches for the fastest cuts by cheap scores and measurements of the best candidates; see
/// `search_cuts_fn`.
inline constexpr search_cuts_fn search_cuts{};

}  // namespace omnibal::inline v0
