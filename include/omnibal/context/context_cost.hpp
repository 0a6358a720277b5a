// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Times of groups of ranks of different sizes.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/cost/affine_fit.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

/// The time of a group of one degree: fixed + linear * tokens + quadratic * squares. Here `tokens`
/// is the sum of the lengths of its samples, and `squares` is the sum of the squares of these
/// lengths. Times may have any unit, the same for all times.
struct degree_time {
  double fixed = 0;
  double linear = 0;
  double quadratic = 0;

  [[nodiscard]] constexpr double operator()(double tokens, double squares) const {
    return fixed + linear * tokens + quadratic * squares;
  }

  [[nodiscard]] friend bool operator==(degree_time const&, degree_time const&) = default;
};

/// The times of groups of all degrees: row d - 1 is the time of a group of d ranks.
struct context_cost {
  std::vector<degree_time> degrees{};
  /// The fixed time of a micro-step, which does not depend on its groups.
  double micro_step = 0;

  [[nodiscard]] friend bool operator==(context_cost const&, context_cost const&) = default;
};

/// Options of `tabulate_context_cost`.
struct tabulate_context_options {
  /// The lengths for which the functor is called. If the list is empty, these are the eight powers
  /// of two from 1,024 to 131,072.
  std::vector<std::int64_t> lengths{};
  /// The fixed time of a micro-step, which does not depend on its groups, in the unit of the
  /// functor.
  double micro_step = 0;
};

/// A functor from the length of a sample and a degree to the time of a group that has only this
/// sample: a model, a fit or a table of measurements.
template <class Time>
concept context_time =
    std::regular_invocable<Time const&, std::int64_t, std::uint32_t> && scalar_measure<
        std::remove_cvref_t<std::invoke_result_t<Time const&, std::int64_t, std::uint32_t>>>;

struct tabulate_context_cost_fn {
  /// Tabulates the times of groups of the degrees 1 to `degrees` from a functor:
  /// `tabulate_context_cost(time, 64)`. For each degree the result is the parabola with the least
  /// relative error over some lengths, without negative coefficients. A parabola cannot represent
  /// jumps or other powers of the length in the times of the functor. If these may matter, compare
  /// the parabola with the functor.
  ///
  /// Complexity: linear in degrees and lengths. Memory: 24 bytes for each degree. Determinism: the
  /// same as the functor and `affine_fit`. Errors: `std::invalid_argument` if there are no degrees,
  /// if there are fewer than three lengths or two equal ones, and if a time is not positive and
  /// finite.
  template <context_time Time>
  [[nodiscard]] context_cost operator()(Time const& time, std::uint32_t degrees,
                                        tabulate_context_options const& options = {}) const {
    detail::check_positive(name, "degrees", degrees);
    detail::check_weight(name, "options.micro_step", options.micro_step);
    std::vector<std::int64_t> lengths = options.lengths;
    if (lengths.empty()) {
      for (std::int64_t length = 1024; length <= 131072; length *= 2) lengths.push_back(length);
    }
    check_lengths(lengths);
    context_cost result{.micro_step = options.micro_step};
    result.degrees.reserve(degrees);
    std::vector<point> points(lengths.size());
    for (std::uint32_t degree = 1; degree <= degrees; ++degree) {
      for (std::size_t i = 0; i != lengths.size(); ++i) {
        auto const measured = static_cast<double>(time(lengths[i], degree));
        if (!detail::is_positive(measured)) {
          detail::throw_invalid(name, "time(", lengths[i], ", ", degree, ") is ", measured,
                                ", must be positive and finite");
        }
        points[i] = {static_cast<double>(lengths[i]), measured};
      }
      result.degrees.push_back(fitted(points));
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "tabulate_context_cost";

  struct point {
    double length = 0;
    double time = 0;
  };

  static void check_lengths(std::vector<std::int64_t>& lengths) {
    for (std::size_t i = 0; i != lengths.size(); ++i) {
      detail::check_between(name, "options.lengths[" + detail::to_text(i) + "]", lengths[i], 1,
                            detail::max_tokens);
    }
    std::sort(lengths.begin(), lengths.end());
    bool const has_equal = std::adjacent_find(lengths.begin(), lengths.end()) != lengths.end();
    if (lengths.size() >= 3 && !has_equal) return;
    detail::throw_invalid(name, "options.lengths is ", detail::list_text(lengths),
                          ", must have at least three lengths, no two of them equal");
  }

  /// Division of every equation by its time makes errors relative.
  [[nodiscard]] static degree_time fitted(std::vector<point> const& points) {
    auto const size = [](point const& at) {
      return resources<3, double>{1 / at.time, at.length / at.time,
                                  at.length * at.length / at.time};
    };
    auto const one = [](point const&) { return 1.0; };
    auto const fit = affine_fit(points, size, one,
                                {.offset = fit_offset::zero, .signs = fit_signs::not_negative});
    return {fit.slopes[0], fit.slopes[1], fit.slopes[2]};
  }
};

/// Tabulates the times of groups by degree; see `tabulate_context_cost_fn`.
inline constexpr tabulate_context_cost_fn tabulate_context_cost{};

}  // namespace omnibal::inline v0
