// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How little the totals of steps can vary where ranks wait for no longer than they do.

#include <omnibal/resources.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace bench {

/// The groups of a schedule with several of them for each rank, in one resource.
struct bundled_loads {
  std::vector<double> of_groups;
  double ranks;
  double groups_per_rank;
  double largest = 0;
  double least = 0;
  double mean = 0;
  /// The standard deviation of the total of a random step.
  double random = 0;

  template <class Loads>
  bundled_loads(Loads const& loads, std::size_t kind, std::size_t of_ranks, std::size_t of_rank)
      : ranks(static_cast<double>(of_ranks)), groups_per_rank(static_cast<double>(of_rank)) {
    for (auto const& load : loads) of_groups.push_back(static_cast<double>(load[kind]));
    auto const count = static_cast<double>(of_groups.size());
    auto const [low, high] = std::minmax_element(of_groups.begin(), of_groups.end());
    largest = *high;
    least = *low;
    for (double const load : of_groups) mean += load / count;
    double variance = 0;
    for (double const load : of_groups) variance += (load - mean) * (load - mean) / (count - 1);
    double const in_step = ranks * groups_per_rank;
    random = std::sqrt(variance * in_step * std::max(0.0, 1 - in_step / count));
  }
};

/// A lower bound on the mix where some groups are far lighter than all others.
///
/// No bundle has more than m times the largest load L, so that one with a group that lacks f of L
/// has at most m L - f. Where the mean of its step is x it lacks f - (m L - x), which others must
/// have too much: of n ranks one has x and 1 / (n - 1) of that at least, and ranks wait for so much
/// of at most m L. Summed over all steps, what groups lack so exceeds what the waiting allows
/// unless steps are below the mean, and others as much above: twice the missing is their mean
/// deviation, which the standard deviation is not below.
[[nodiscard]] inline double mix_of_light_groups(bundled_loads const& of, double waiting) {
  double const m = of.groups_per_rank;
  double lacking = 0;
  for (double const load : of.of_groups) {
    lacking += std::max(0.0, of.largest - load - m * (of.largest - of.mean));
  }
  lacking *= of.ranks * m / static_cast<double>(of.of_groups.size());
  return std::max(0.0, 2 * (lacking - (of.ranks - 1) * m * of.largest * waiting) / of.random);
}

struct point {
  double x;
  double y;
};

/// The lower convex hull of points with ascending x at a place.
[[nodiscard]] inline double convex_hull_at(std::vector<point> const& points, double place) {
  std::vector<point> hull;
  auto const rises = [](point const& a, point const& b, point const& c) {
    return (b.y - a.y) * (c.x - a.x) < (c.y - a.y) * (b.x - a.x);
  };
  for (point const& next : points) {
    while (hull.size() > 1 && !rises(hull[hull.size() - 2], hull.back(), next)) hull.pop_back();
    hull.push_back(next);
  }
  for (std::size_t i = 1; i < hull.size(); ++i) {
    if (hull[i].x < place) continue;
    double const share = (place - hull[i - 1].x) / (hull[i].x - hull[i - 1].x);
    return hull[i - 1].y + share * (hull[i].y - hull[i - 1].y);
  }
  return hull.back().y;
}

/// A lower bound on the mix where loads are small integers.
///
/// The largest bundle of a step with the mean x has the next integer at least, so that ranks wait
/// for 1 - x / ceil(x). Of all distributions of x with the mean of all bundles and no more waiting
/// than `waiting` the least variance is bounded by duality: for each price of waiting, the variance
/// and the price have a convex hull, whose value at the mean is a bound. Zero for loads above 1000.
[[nodiscard]] inline double mix_of_integers(bundled_loads const& of, double waiting) {
  double const m = of.groups_per_rank;
  if (m * of.largest > 1000) return 0;
  double const mean = m * of.mean;
  double variance = 0;
  std::vector<point> points;
  for (double price = 0.01; price < 1e6; price *= 1.3) {
    points.clear();
    for (double total = of.ranks * m * of.least; total <= of.ranks * m * of.largest; ++total) {
      double const x = total / of.ranks;
      double const waits = x == 0 ? 0 : 1 - x / std::ceil(x);
      points.push_back({x, (x - mean) * (x - mean) + price * waits});
    }
    variance = std::max(variance, convex_hull_at(points, mean) - price * waiting);
  }
  return std::sqrt(variance) * of.ranks / of.random;
}

/// A lower bound on the mix where loads are small integers and some groups are light.
///
/// In a step whose largest bundle has b each bundle lacks m L - b at least of m times the largest
/// load, so that groups that lack more cannot be many in it: of what groups lack beyond a threshold
/// a bundle has no more than `max_beyond`, and all steps together have what there is. As in
/// `mix_of_integers` prices of waiting and of that give a convex hull, whose value at the mean is a
/// bound for each pair of prices. Between places that are 1/8 apart squares are up to 1/256 lower.
[[nodiscard]] inline double mix_of_light_integers(bundled_loads const& of, double waiting) {
  double const m = of.groups_per_rank;
  double const full = m * of.largest;
  double const max_lacking = of.largest - of.least;
  if (full > 1000) return 0;
  constexpr double places = 8;
  double const mean = m * of.mean;
  double const near = 4 + 6 * of.random / of.ranks;
  struct option {
    double waits;
    double beyond;
  };
  double variance = 0;
  for (double threshold = 0; threshold < max_lacking; ++threshold) {
    double beyond = 0;
    for (double const load : of.of_groups) {
      beyond += std::max(0.0, of.largest - load - threshold);
    }
    beyond *= m / static_cast<double>(of.of_groups.size());
    auto const max_beyond = [&](double x, double largest) {
      double const lacks = full - x;
      double const least = full - largest;
      if (least >= threshold) return lacks - threshold;
      return (lacks - least) * (max_lacking - threshold) / (max_lacking - least);
    };
    std::vector<double> xs;
    std::vector<std::vector<option>> options;
    for (double place = places * m * of.least; place <= places * full; ++place) {
      double const x = place / places;
      xs.push_back(x);
      auto& of_x = options.emplace_back();
      if (x == 0 || std::abs(x - mean) > near) {
        of_x.push_back({0, (full - x) * (1 - threshold / max_lacking)});
        continue;
      }
      for (double largest = std::ceil(x); largest <= full; ++largest) {
        of_x.push_back({1 - x / largest, max_beyond(x, largest)});
      }
    }
    std::vector<point> points;
    for (double price = 0.1; price < 1e5; price *= 1.7) {
      for (double prize = 0.01; prize < 1e3; prize *= 1.7) {
        points.clear();
        for (std::size_t i = 0; i != xs.size(); ++i) {
          double least = 1e18;
          for (option const& one : options[i]) {
            least = std::min(least, price * one.waits - prize * one.beyond);
          }
          points.push_back({xs[i], (xs[i] - mean) * (xs[i] - mean) + least});
        }
        variance =
            std::max(variance, convex_hull_at(points, mean) - price * waiting + prize * beyond);
      }
    }
  }
  return std::sqrt(std::max(0.0, variance - 1 / (4 * places * places))) * of.ranks / of.random;
}

/// The largest of these, over the resources, where ranks wait for `waiting`. All steps are full.
template <class Loads>
[[nodiscard]] double min_mix(Loads const& loads, std::size_t ranks, std::size_t groups_per_rank,
                             double waiting) {
  double result = 0;
  for (std::size_t kind = 0; kind != loads.front().size(); ++kind) {
    bundled_loads const of(loads, kind, ranks, groups_per_rank);
    if (of.random <= 0) continue;
    result = std::max({result, mix_of_light_groups(of, waiting), mix_of_integers(of, waiting),
                       mix_of_light_integers(of, waiting)});
  }
  return result;
}

}  // namespace bench
