// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A fit of the constants of a machine to measured runs.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/affine_fit.hpp>
#include <omnibal/cost/machine.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <functional>
#include <limits>
#include <ranges>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct fit_machine_options {
  /// The weight of the start values. A constant that differs from its start by a factor of e has
  /// the same loss as a run whose prediction misses by this share. If no run depends on a constant,
  /// the constant keeps its start.
  double prior = 0.02;
  /// The relative error of a prediction above which the loss of its run grows linearly instead of
  /// quadratically.
  double outlier_share = 0.05;
  /// Each constant stays between its start divided by this factor and its start times this factor.
  double bound_factor = 30;
  std::size_t rounds = 60;
};

/// A constant that was fitted.
struct fitted_constant {
  std::string_view name;
  double value = 0;
  /// The standard error divided by the value. The runs are compatible with values within about two
  /// standard errors.
  double relative_error = 0;
  /// The variance inflation: the factor by which the variance of the constant is larger because
  /// other constants can compensate its changes. Do not fit a constant with an inflation above 10
  /// from these runs.
  double inflation = 0;
  /// True if the value is at a bound. Then the constant probably compensates for an effect that the
  /// model does not have.
  bool is_at_bound = false;

  [[nodiscard]] friend bool operator==(fitted_constant const&, fitted_constant const&) = default;
};

/// The result of `fit_machine`.
struct machine_fit {
  machine fitted{};
  /// The fitted constants, in the order of the argument.
  std::vector<fitted_constant> constants{};
  /// The mean and the largest relative error of the predictions of the given runs.
  double mean_error = 0;
  double largest_error = 0;

  [[nodiscard]] friend bool operator==(machine_fit const&, machine_fit const&) = default;
};

namespace detail {

/// The Levenberg-Marquardt method on the logarithms of constants. Residuals are logarithms of
/// predicted seconds divided by measured seconds. Source: Marquardt, "An algorithm for
/// least-squares estimation of nonlinear parameters", 1963. The loss is 2 (sqrt(1 + r^2) - 1) of
/// Charbonnier et al., 1997, by iteratively reweighted least squares.
template <class Residuals>
class machine_search {
 public:
  static constexpr std::size_t most = machine_constants.size();
  using system = least_squares<most>;

  machine_search(Residuals const& residuals, std::size_t count, fit_machine_options const& options)
      : residuals_(residuals), count_(count), options_(options), offsets_(count, 0.0) {}

  void run() {
    current_ = residuals_(offsets_);
    double damping = 1e-3;
    for (std::size_t round = 0; round != options_.rounds; ++round) {
      differentiate();
      bool const improves = improve(damping);
      if (!improves) break;
    }
    differentiate();
  }

  /// Returns the logarithms of the constants divided by their starts.
  [[nodiscard]] std::vector<double> const& offsets() const { return offsets_; }
  [[nodiscard]] std::vector<double> const& residuals() const { return current_; }

  /// Returns the standard error and the variance inflation of each logarithm.
  [[nodiscard]] std::vector<fitted_constant> confidence() const {
    system const all = linearized(0.0);
    std::vector<fitted_constant> result(count_);
    double weights = 0;
    double squares = 0;
    for (double const residual : current_) {
      weights += weight_of(residual);
      squares += weight_of(residual) * residual * residual;
    }
    double const free = std::max(1.0, weights - static_cast<double>(count_));
    for (std::size_t k = 0; k != count_; ++k) {
      double length = options_.prior * options_.prior;
      for (std::size_t i = 0; i != current_.size(); ++i) {
        length += weight_of(current_[i]) * slopes_[i][k] * slopes_[i][k];
      }
      result[k].inflation = all.inflation(k, count_);
      result[k].relative_error = std::sqrt(squares / free * result[k].inflation / length);
    }
    return result;
  }

 private:
  [[nodiscard]] double weight_of(double residual) const {
    double const ratio = residual / options_.outlier_share;
    return 1 / std::sqrt(1 + ratio * ratio);
  }

  [[nodiscard]] double loss(std::vector<double> const& residuals,
                            std::vector<double> const& offsets) const {
    double const scale = options_.outlier_share;
    double sum = 0;
    for (double const residual : residuals) {
      double const ratio = residual / scale;
      sum += 2 * scale * scale * (std::sqrt(1 + ratio * ratio) - 1);
    }
    for (double const offset : offsets) sum += options_.prior * options_.prior * offset * offset;
    return sum;
  }

  void differentiate() {
    constexpr double width = 1e-3;
    slopes_.assign(current_.size(), typename system::row_type{});
    for (std::size_t k = 0; k != count_; ++k) {
      auto moved = offsets_;
      moved[k] += width;
      auto const after = residuals_(moved);
      for (std::size_t i = 0; i != current_.size(); ++i) {
        slopes_[i][k] = (after[i] - current_[i]) / width;
      }
    }
  }

  /// Returns the linear system of the weighted residuals, the prior and the damping.
  [[nodiscard]] system linearized(double damping) const {
    system result;
    for (std::size_t i = 0; i != current_.size(); ++i) {
      double const root = std::sqrt(weight_of(current_[i]));
      auto row = slopes_[i];
      for (double& slope : row) slope *= root;
      result.add(row, -root * current_[i]);
    }
    for (std::size_t k = 0; k != count_; ++k) {
      typename system::row_type row{};
      row[k] = options_.prior;
      result.add(row, -options_.prior * offsets_[k]);
      if (damping <= 0) continue;
      row[k] = std::sqrt(damping);
      result.add(row, 0.0);
    }
    return result;
  }

  /// Takes one step. Increases the damping until the step lowers the loss. Returns false at a
  /// minimum.
  [[nodiscard]] bool improve(double& damping) {
    constexpr double largest_damping = 1e6;
    constexpr double least_gain = 1e-9;
    double const bound = std::log(options_.bound_factor);
    double const before = loss(current_, offsets_);
    unsigned const columns = (1u << count_) - 1;
    for (; damping < largest_damping; damping *= 4) {
      auto const step = linearized(damping).solution(columns);
      auto next = offsets_;
      for (std::size_t k = 0; k != count_; ++k) {
        next[k] = std::clamp(next[k] + step[k], -bound, bound);
      }
      auto after = residuals_(next);
      double const now = loss(after, next);
      if (!(now < before)) continue;
      offsets_ = std::move(next);
      current_ = std::move(after);
      damping = std::max(1e-9, damping / 10);
      return before - now > least_gain * before;
    }
    return false;
  }

  Residuals const& residuals_;
  std::size_t count_;
  fit_machine_options const& options_;
  std::vector<double> offsets_;
  std::vector<double> current_;
  std::vector<typename system::row_type> slopes_;
};

}  // namespace detail

/// A functor from a run and a machine to the predicted seconds of the run.
template <class Predict, class Run>
concept run_predictor =
    std::regular_invocable<Predict const&, Run const&, machine const&> &&
    std::convertible_to < std::invoke_result_t<Predict const&, Run const&, machine const&>,
double > ;

struct fit_machine_fn {
  /// Fits constants of a machine to runs. `predict(run, machine)` returns predicted seconds, for
  /// example by `predict_step`, and `seconds(run)` returns the measured seconds. The argument
  /// `start` is a similar machine: a preset or the rates of a data sheet. `constants` lists the
  /// members to fit, at most all ten. The fit minimizes a robust loss of the logarithms of
  /// predicted divided by measured seconds, so short and long runs have the same weight. Fit only
  /// few constants from few runs; the result has the standard error of each constant.
  ///
  /// Complexity: about `rounds` * (constants + 1) * runs calls of `predict`. Memory: 80 bytes for
  /// each run. Determinism: the same result on the same platform, because logarithms differ between
  /// platforms. Errors: `std::invalid_argument` if there are fewer runs than constants, and for
  /// seconds and predictions that are not positive and finite. It is also thrown for a constant
  /// whose start is not positive and finite, for a constant that is given twice, and for options
  /// that are not positive.
  template <sample_range Runs, class Seconds, class Predict>
    requires cost_function<Seconds, sample_reference<Runs>> &&
        run_predictor<Predict, std::ranges::range_value_t<Runs>>
  [[nodiscard]] machine_fit operator()(Runs const& runs, Seconds const& seconds,
                                       Predict const& predict, machine const& start,
                                       std::vector<double machine::*> const& constants,
                                       fit_machine_options const& options = {}) const {
    check(start, constants, options);
    std::vector<double> measured;
    for (auto&& run : runs) {
      measured.push_back(static_cast<double>(std::invoke(seconds, run)));
      detail::check_positive(name, "seconds", measured.size() - 1, measured.back());
    }
    if (measured.size() < constants.size()) {
      detail::throw_invalid(name, "runs has ", measured.size(), " elements, fewer than the ",
                            constants.size(), " constants");
    }
    auto const residuals = [&](std::vector<double> const& offsets) {
      machine const on = moved(start, constants, offsets);
      std::vector<double> result;
      result.reserve(measured.size());
      for (auto&& run : runs) {
        auto const predicted = static_cast<double>(std::invoke(predict, run, on));
        detail::check_positive(name, "predict", result.size(), predicted);
        result.push_back(std::log(predicted / measured[result.size()]));
      }
      return result;
    };
    detail::machine_search search(residuals, constants.size(), options);
    search.run();
    machine_fit result{.fitted = moved(start, constants, search.offsets()),
                       .constants = search.confidence()};
    for (double const residual : search.residuals()) {
      double const error = std::abs(std::expm1(residual));
      result.mean_error += error / static_cast<double>(measured.size());
      result.largest_error = std::max(result.largest_error, error);
    }
    double const bound = std::log(options.bound_factor);
    for (std::size_t k = 0; k != constants.size(); ++k) {
      auto& constant = result.constants[k];
      constant.name = constant_of(constants[k]).name;
      constant.value = result.fitted.*constants[k];
      constant.is_at_bound = std::abs(search.offsets()[k]) >= bound;
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "fit_machine";

  [[nodiscard]] static machine_constant const& constant_of(double machine::*member) {
    return *std::ranges::find(machine_constants, member, &machine_constant::member);
  }

  static void check(machine const& start, std::vector<double machine::*> const& constants,
                    fit_machine_options const& options) {
    detail::check_machine(name, start);
    detail::check_positive(name, "options.prior", options.prior);
    detail::check_positive(name, "options.outlier_share", options.outlier_share);
    detail::check_positive(name, "options.rounds", options.rounds);
    detail::check_positive(name, "options.bound_factor", options.bound_factor);
    if (!(options.bound_factor > 1)) {
      detail::throw_invalid(name, "options.bound_factor is ", options.bound_factor,
                            ", must be above 1");
    }
    if (constants.empty()) detail::throw_invalid(name, "constants is empty");
    for (std::size_t k = 0; k != constants.size(); ++k) {
      auto const& constant = constant_of(constants[k]);
      if (std::ranges::count(constants, constants[k]) != 1) {
        detail::throw_invalid(name, "constants has ", constant.name, " twice");
      }
      if (!detail::is_positive(start.*constants[k])) {
        detail::throw_invalid(name, "start.", constant.name, " is ", start.*constants[k],
                              ", must be positive and finite to be fitted");
      }
    }
  }

  [[nodiscard]] static machine moved(machine on, std::vector<double machine::*> const& constants,
                                     std::vector<double> const& offsets) {
    for (std::size_t k = 0; k != constants.size(); ++k) {
      on.*constants[k] *= std::exp(offsets[k]);
    }
    return on;
  }
};

/// Fits constants of a machine to measured runs; see `fit_machine_fn`.
inline constexpr fit_machine_fn fit_machine{};

}  // namespace omnibal::inline v0
