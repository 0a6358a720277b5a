// SPDX-License-Identifier: Apache-2.0
// All neighbors and the best of them, compared with all cuts of short chains.

#include "all_cuts.hpp"
#include "certificate.hpp"

#include <omnibal/config.hpp>
#include <omnibal/partition/neighbors.hpp>
#include <omnibal/partition/search_cuts.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::detail::int128;
using test::cuts;
using test::number_between;
using boundaries_view = std::span<std::uint32_t const>;

template <class T>
using working = omnibal::detail::working_weight<T>;
template <class T>
using wide = std::conditional_t<std::floating_point<T>, double, int128>;

std::size_t size_between(omnibal::rng::engine& random, std::int64_t least, std::int64_t most) {
  return static_cast<std::size_t>(number_between(random, least, most));
}

/// Boundaries of at most eight layers and five stages.
cuts draw_anchor(omnibal::rng::engine& random) {
  std::size_t const stages = size_between(random, 1, 5);
  auto left = number_between(random, 0, 8 - static_cast<std::int64_t>(stages));
  cuts anchor{0};
  while (anchor.size() <= stages) {
    auto const more = number_between(random, 0, left);
    left -= more;
    anchor.push_back(anchor.back() + 1 + static_cast<std::uint32_t>(more));
  }
  return anchor;
}

std::size_t draw_radius(omnibal::rng::engine& random) {
  if (number_between(random, 0, 15) == 0) return std::numeric_limits<std::size_t>::max();
  return size_between(random, 0, 4);
}

std::uint32_t apart(std::uint32_t left, std::uint32_t right) {
  return std::max(left, right) - std::min(left, right);
}

/// In the order of `neighbors`.
std::vector<cuts> all_neighbors(cuts const& anchor, std::size_t radius) {
  std::vector<std::pair<std::uint32_t, cuts>> found;
  test::for_all_cuts(anchor.back(), anchor.size() - 1, omnibal::empty_stages::forbidden,
                     [&](cuts const& at) {
                       std::uint32_t sum = 0;
                       for (std::size_t s = 0; s != at.size(); ++s) {
                         if (apart(at[s], anchor[s]) > radius) return;
                         sum += apart(at[s], anchor[s]);
                       }
                       found.emplace_back(sum, at);
                     });
  std::sort(found.begin(), found.end());
  std::vector<cuts> result;
  for (auto& [sum, at] : found) result.push_back(std::move(at));
  return result;
}

/// A score of each stage, negative too where the type can be.
template <class T>
class stage_scores {
 public:
  stage_scores(omnibal::rng::engine& random, std::size_t stages, std::int64_t most)
      : values_(stages * side * side) {
    test::weight_source<T> const draw(random, most);
    bool const is_signed = number_between(random, 0, 1) == 0;
    for (T& value : values_) {
      value = draw();
      if constexpr (!std::unsigned_integral<T>) {
        if (is_signed && number_between(random, 0, 1) == 0) value = static_cast<T>(-value);
      }
    }
  }

  T operator()(std::size_t stage, std::size_t first, std::size_t last) const {
    return values_[(stage * side + first) * side + last];
  }

 private:
  static constexpr std::size_t side = 9;
  std::vector<T> values_;
};

template <class T>
std::int64_t draw_most(omnibal::rng::engine& random) {
  if constexpr (std::floating_point<T>) {
    return std::int64_t{1} << 58;
  } else {
    std::int64_t const most = std::numeric_limits<T>::max();
    // Sums of five stages fit, or not always.
    return std::same_as<T, std::int64_t> && number_between(random, 0, 3) != 0 ? most / 5 : most;
  }
}

template <class T>
struct candidate {
  wide<T> score;
  std::size_t place;
  cuts boundaries;
};

/// Adds the stages from the last to the first, as `search_cuts` does.
template <class T>
wide<T> score_of(cuts const& at, stage_scores<T> const& score, bool& overflows) {
  wide<T> sum{};
  for (std::size_t s = at.size() - 1; s-- != 0;) {
    sum = static_cast<wide<T>>(score(s, at[s], at[s + 1])) + sum;
    if constexpr (std::integral<T>) {
      overflows = overflows || sum > std::numeric_limits<std::int64_t>::max() ||
                  sum < std::numeric_limits<std::int64_t>::min();
    }
  }
  return sum;
}

/// Measures what was drawn before, and ends after so many calls.
template <class T>
struct measurement {
  std::vector<T> values;
  std::size_t budget;
  std::size_t patience;
};

template <class T>
measurement<T> draw_measurement(omnibal::rng::engine& random, std::size_t count) {
  measurement<T> made;
  test::weight_source<T> const draw(random, 1'000'000);
  bool const may_fail = std::floating_point<T> && number_between(random, 0, 3) == 0;
  for (std::size_t i = 0; i != count; ++i) {
    made.values.push_back(draw());
    if (may_fail && number_between(random, 0, 1) == 0) {
      made.values.back() = std::numeric_limits<T>::infinity();
    }
  }
  auto const most = static_cast<std::int64_t>(count);
  made.budget = number_between(random, 0, 3) == 0 ? size_between(random, 0, most) : count;
  made.patience = number_between(random, 0, 3) == 0 ? size_between(random, 1, most) : count;
  return made;
}

template <class T, class Result>
std::string wrong_measurement(Result const& result, measurement<T> const& given) {
  std::size_t const count = std::min({result.candidates.size(), given.budget, given.patience});
  if (result.measurements != count) return "other measurements";
  std::size_t best = 0;
  for (std::size_t i = 0; i != result.candidates.size(); ++i) {
    T const unknown =
        std::floating_point<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    T const value = i < count ? given.values[i] : unknown;
    if (result.candidates[i].measured != value) return "another measured value";
    if (i < count && value < given.values[best]) best = i;
  }
  return result.best == best ? "" : "not the best measured";
}

enum class way { stages_of_neighbors, boundaries_of_neighbors, stages_of_list };

template <class T>
std::string fault_of(omnibal::rng::engine& random) {
  cuts const anchor = draw_anchor(random);
  std::size_t const radius = draw_radius(random);
  stage_scores<T> const score(random, anchor.size() - 1, draw_most<T>(random));
  auto const how = static_cast<way>(number_between(random, 0, 2));
  auto tried = all_neighbors(anchor, radius);
  if (how == way::stages_of_list) tried.push_back(tried[tried.size() / 2]);
  bool overflows = false;
  std::vector<candidate<T>> all;
  for (std::size_t i = 0; i != tried.size(); ++i) {
    all.push_back({score_of(tried[i], score, overflows), i, tried[i]});
  }
  std::sort(all.begin(), all.end(), [&](candidate<T> const& left, candidate<T> const& right) {
    if (left.score != right.score) return left.score < right.score;
    if (how == way::stages_of_neighbors) return left.boundaries < right.boundaries;
    return left.place < right.place;
  });
  std::size_t const top = size_between(random, 1, number_between(random, 0, 3) == 0 ? 100 : 9);
  auto const measured = draw_measurement<T>(random, std::min(top, all.size()));

  std::size_t calls = 0;
  auto const measure = [&](boundaries_view) { return measured.values[calls++]; };
  auto const go_on = [&](auto const& progress) {
    return progress.measurements < measured.patience;
  };
  auto const found = [&](auto const& candidates, auto const& by) {
    return omnibal::search_cuts(candidates, by, top, measure, {.measurements = measured.budget},
                                go_on);
  };
  auto const whole = [&](boundaries_view at) {
    bool ignored = false;
    return static_cast<working<T>>(score_of(cuts(at.begin(), at.end()), score, ignored));
  };
  if (overflows && how == way::boundaries_of_neighbors) return "";
  try {
    auto const near = omnibal::neighbors(anchor, radius);
    auto const result = how == way::stages_of_neighbors       ? found(near, score)
                        : how == way::boundaries_of_neighbors ? found(near, whole)
                                                              : found(tried, score);
    if (result.candidates.size() != std::min(top, all.size())) return "another number of cuts";
    for (std::size_t i = 0; i != result.candidates.size(); ++i) {
      if (static_cast<wide<T>>(result.candidates[i].score) != all[i].score) return "another score";
      if (result.candidates[i].boundaries != all[i].boundaries) return "other cuts of a score";
    }
    return wrong_measurement(result, measured);
  } catch (std::overflow_error const& error) {
    return overflows ? "" : error.what();
  }
}

}  // namespace

TEST_CASE("neighbors are all cuts near the anchor, once and in order", "[certificate]") {
  test::certify<std::uint32_t>("neighbors", [](omnibal::rng::engine& random) -> std::string {
    cuts const anchor = draw_anchor(random);
    std::size_t const radius = draw_radius(random);
    std::vector<cuts> made;
    auto const range = omnibal::neighbors(anchor, radius);
    for (cuts const& at : range) made.push_back(at);
    return made == all_neighbors(anchor, radius) ? "" : "other neighbors";
  });
}

TEMPLATE_TEST_CASE("search_cuts finds the best cuts of all, in order", "[certificate]",
                   TEST_CERTIFIED_WEIGHTS) {
  test::certify<TestType>("search_cuts", fault_of<TestType>);
}
