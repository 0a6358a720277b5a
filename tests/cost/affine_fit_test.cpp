// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/cost/affine_fit.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::affine_fit;

struct point {
  std::int64_t tokens;
  std::int64_t squares;
  double seconds;
};

struct whole_point {
  std::int64_t tokens;
  std::int64_t nanoseconds;
};

constexpr auto tokens_and_squares() { return omnibal::demand_of(&point::tokens, &point::squares); }

double uniform(test::random_amounts& random, double low, double high) {
  return low + (high - low) * 0x1p-30 * static_cast<double>(random.between(0, 1 << 30));
}

/// The sum of the squares of what a functor misses.
template <class Cost>
double missed_squares(std::vector<point> const& points, Cost const& cost) {
  double sum = 0.0;
  for (auto const& p : points) {
    double const missed = p.seconds - cost(p);
    sum += missed * missed;
  }
  return sum;
}

std::vector<point> noisy_points(test::random_amounts& random, std::size_t count, double noise) {
  std::vector<point> points(count);
  for (auto& p : points) {
    p.tokens = random.between(0, 8000);
    p.squares = random.between(0, 1'000'000);
    p.seconds = 5.0 + 2e-3 * static_cast<double>(p.tokens) + 3e-6 * static_cast<double>(p.squares) +
                uniform(random, -noise, noise);
  }
  return points;
}

template <class Points>
std::string error_of(Points const& points, omnibal::affine_fit_options const& options = {}) {
  return test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(affine_fit(points, &point::tokens, &point::seconds, options)); });
}

}  // namespace

TEST_CASE("integers on a line are recovered exactly") {
  test::random_amounts random(1);
  for (int run = 0; run != 300; ++run) {
    INFO("run " << run);
    std::int64_t const slope = random.heavy_tail(1'000'000) - random.heavy_tail(1'000'000);
    std::int64_t const offset = random.heavy_tail(1'000'000'000);
    std::vector<whole_point> points(static_cast<std::size_t>(random.between(2, 50)));
    for (auto& p : points) p.tokens = random.heavy_tail(1 << 20);
    points[0].tokens = points[1].tokens + 1;
    for (auto& p : points) p.nanoseconds = offset + slope * p.tokens;
    auto const cost = affine_fit(points, &whole_point::tokens, &whole_point::nanoseconds);
    CHECK(cost.exact);
    CHECK(cost.offset == static_cast<double>(offset));
    CHECK(cost.slopes[0] == static_cast<double>(slope));
    CHECK(cost.root_mean_square_residual == 0.0);
    CHECK(cost.largest_residual == 0.0);
  }
}

TEST_CASE("integers by several kinds of size are recovered exactly") {
  test::random_amounts random(2);
  using size_type = omnibal::resources<3>;
  for (int run = 0; run != 100; ++run) {
    INFO("run " << run);
    std::array<std::int64_t, 4> truth{};
    for (auto& coefficient : truth) coefficient = random.heavy_tail(1'000'000);
    std::vector<size_type> sizes(20);
    for (auto& size : sizes) {
      for (auto& kind : size.amounts) kind = random.between(0, 100'000);
    }
    auto const value = [&](size_type const& size) {
      return truth[0] * size[0] + truth[1] * size[1] + truth[2] * size[2] + truth[3];
    };
    auto const cost = affine_fit(sizes, std::identity{}, value);
    CHECK(cost.exact);
    for (std::size_t r = 0; r != 3; ++r) CHECK(cost.slopes[r] == static_cast<double>(truth[r]));
    CHECK(cost.offset == static_cast<double>(truth[3]));
    CHECK(cost(sizes[7]) == static_cast<double>(value(sizes[7])));
  }
}

TEST_CASE("a single wrong integer is not exact, and named") {
  std::vector<whole_point> points;
  for (std::int64_t i = 0; i != 20; ++i) points.push_back({i, 100 + 7 * i});
  points[13].nanoseconds += 40;
  auto const cost = affine_fit(points, &whole_point::tokens, &whole_point::nanoseconds);
  CHECK(!cost.exact);
  CHECK(cost.largest_residual_index == 13);
  CHECK(cost.largest_residual > 30.0);
  CHECK(cost.root_mean_square_residual < cost.largest_residual);
}

TEST_CASE("no small change of the coefficients misses less") {
  test::random_amounts random(3);
  for (int run = 0; run != 50; ++run) {
    auto const points = noisy_points(random, 40, 1.0);
    auto const cost = affine_fit(points, tokens_and_squares(), &point::seconds);
    auto const with = [&](double offset, double first, double second) {
      return missed_squares(points, [&](point const& p) {
        return cost.offset + offset + (cost.slopes[0] + first) * static_cast<double>(p.tokens) +
               (cost.slopes[1] + second) * static_cast<double>(p.squares);
      });
    };
    double const least = with(0, 0, 0);
    CHECK(cost.root_mean_square_residual == Approx(std::sqrt(least / 40)));
    for (double const sign : {-1.0, 1.0}) {
      CHECK(with(sign * 1e-4, 0, 0) > least);
      CHECK(with(0, sign * 1e-7, 0) > least);
      CHECK(with(0, 0, sign * 1e-9) > least);
    }
  }
}

TEST_CASE("units do not matter") {
  test::random_amounts random(4);
  auto const points = noisy_points(random, 30, 1.0);
  auto const seconds = affine_fit(points, tokens_and_squares(), &point::seconds);
  auto const small =
      affine_fit(points, tokens_and_squares(), [](point const& p) { return p.seconds * 0x1p-900; });
  CHECK(small.offset == Approx(seconds.offset * 0x1p-900).margin(0));
  CHECK(small.slopes[1] == Approx(seconds.slopes[1] * 0x1p-900).margin(0));
  CHECK(small.root_mean_square_residual ==
        Approx(seconds.root_mean_square_residual * 0x1p-900).margin(0));
}

TEST_CASE("without an offset the line goes through zero") {
  std::vector<point> const points{{1, 0, 3.0}, {2, 0, 5.0}};
  auto const cost =
      affine_fit(points, &point::tokens, &point::seconds, {.offset = omnibal::fit_offset::zero});
  CHECK(cost.offset == 0.0);
  CHECK(cost.slopes[0] == Approx(13.0 / 5.0));
  std::vector<point> const one{{4, 0, 3.0}};
  CHECK(affine_fit(one, &point::tokens, &point::seconds, {.offset = omnibal::fit_offset::zero})
            .slopes[0] == Approx(0.75));
}

TEST_CASE("coefficients that would be negative are zero where signs matter") {
  test::random_amounts random(5);
  int changed = 0;
  for (int run = 0; run != 100; ++run) {
    auto points = noisy_points(random, 12, 20.0);
    auto const free = affine_fit(points, tokens_and_squares(), &point::seconds);
    auto const kept = affine_fit(points, tokens_and_squares(), &point::seconds,
                                 {.signs = omnibal::fit_signs::not_negative});
    CHECK(kept.offset >= 0.0);
    CHECK(kept.slopes[0] >= 0.0);
    CHECK(kept.slopes[1] >= 0.0);
    CHECK(kept.root_mean_square_residual >= free.root_mean_square_residual * (1 - 1e-12));
    bool const is_valid = free.offset >= 0 && free.slopes[0] >= 0 && free.slopes[1] >= 0;
    if (is_valid) {
      CHECK(kept.slopes[0] == Approx(free.slopes[0]));
    } else {
      ++changed;
    }
    // No point of a grid of coefficients that are not negative misses less.
    double const least = kept.root_mean_square_residual;
    for (int i = 0; i != 1000; ++i) {
      double const offset = kept.offset * uniform(random, 0.5, 1.5) + uniform(random, 0, 0.1);
      double const first = kept.slopes[0] * uniform(random, 0.5, 1.5) + uniform(random, 0, 1e-4);
      double const second = kept.slopes[1] * uniform(random, 0.5, 1.5) + uniform(random, 0, 1e-7);
      double const squares = missed_squares(points, [&](point const& p) {
        return offset + first * static_cast<double>(p.tokens) +
               second * static_cast<double>(p.squares);
      });
      if (std::sqrt(squares / 12) < least * (1 - 1e-12)) FAIL("a better fit exists");
    }
  }
  CHECK(changed > 10);
}

TEST_CASE("a few wrong measurements do little harm under Huber's loss") {
  test::random_amounts random(6);
  auto points = noisy_points(random, 60, 0.01);
  for (std::size_t i = 0; i < points.size(); i += 10) points[i].seconds *= 20;
  auto const plain = affine_fit(points, tokens_and_squares(), &point::seconds);
  auto const robust =
      affine_fit(points, tokens_and_squares(), &point::seconds, {.loss = omnibal::fit_loss::huber});
  CHECK(std::abs(plain.offset - 5.0) > 1.0);
  CHECK(robust.offset == Approx(5.0).epsilon(0.01));
  CHECK(robust.slopes[0] == Approx(2e-3).epsilon(0.01));
  CHECK(robust.slopes[1] == Approx(3e-6).epsilon(0.01));
  CHECK(robust.largest_residual_index % 10 == 0);
}

TEST_CASE("most points on a line make it the line of Huber's loss") {
  std::vector<whole_point> points;
  for (std::int64_t i = 0; i != 20; ++i) points.push_back({i, 100 + 7 * i});
  points[3].nanoseconds = 100'000;
  auto const cost = affine_fit(points, &whole_point::tokens, &whole_point::nanoseconds,
                               {.loss = omnibal::fit_loss::huber});
  CHECK(cost.offset == Approx(100.0).epsilon(0.01));
  CHECK(cost.slopes[0] == Approx(7.0).epsilon(0.01));
}

TEST_CASE("a fit is a cost that is never negative") {
  std::vector<whole_point> const points{{10, 5}, {20, 25}};
  auto const cost = affine_fit(points, &whole_point::tokens, &whole_point::nanoseconds);
  CHECK(cost(15) == 15.0);
  CHECK(cost(0) == 0.0);
  std::vector<int> const lengths{30, 10, 25};
  CHECK(omnibal::lpt(lengths, 2, cost) == omnibal::grouping({0, 1, 3}, {0, 1, 2}));
}

TEST_CASE("samples of a batch have its slopes, and the batch the offset once") {
  test::random_amounts random(7);
  // Batches of one to eight samples, by tokens and number of samples.
  using size_type = omnibal::resources<2>;
  std::vector<std::vector<size_type>> batches(40);
  for (auto& batch : batches) {
    batch.resize(static_cast<std::size_t>(random.between(1, 8)));
    for (auto& sample : batch) sample = {random.between(0, 4000), 1};
  }
  auto const size_of = [](std::vector<size_type> const& batch) {
    size_type sum{};
    for (size_type const& sample : batch) sum += sample;
    return sum;
  };
  auto const nanoseconds = [&](std::vector<size_type> const& batch) {
    return 900 + 3 * size_of(batch)[0] + 70 * size_of(batch)[1];
  };
  auto const cost = affine_fit(batches, size_of, nanoseconds);
  auto const of_sample = cost.per_sample();
  CHECK(of_sample(size_type{100, 1}) == 370.0);
  CHECK(of_sample(size_type{0, 0}) == 0.0);
  for (auto const& batch : batches) {
    double sum = cost.offset;
    for (size_type const& sample : batch) sum += of_sample(sample);
    CHECK(sum == cost(size_of(batch)));
  }
  CHECK(of_sample == omnibal::affine_cost<2>{.slopes = cost.slopes});
  static_assert(omnibal::affine_cost<1>{.offset = 5, .slopes = {2}}.per_sample().offset == 0.0);
}

TEST_CASE("points that do not determine a line are errors") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<point> points;
  CHECK(error_of(points) ==
        "omnibal::affine_fit: points has 0 elements, fewer than the 2 coefficients");
  points = {{3, 1, 2.0}};
  CHECK(error_of(points) ==
        "omnibal::affine_fit: points has 1 elements, fewer than the 2 coefficients");
  CHECK(error_of(points, {.offset = omnibal::fit_offset::zero}) == "no error");
  points = {{3, 1, 2.0}, {3, 1, 4.0}};
  CHECK(error_of(points) ==
        "omnibal::affine_fit: kind 0 of size is 3 in all points, which cannot be told from the "
        "offset");
  CHECK(error_of(points, {.offset = omnibal::fit_offset::zero}) == "no error");
  points = {{0, 1, 2.0}, {0, 1, 4.0}};
  CHECK(error_of(points, {.offset = omnibal::fit_offset::zero}) ==
        "omnibal::affine_fit: kind 0 of size is 0 in all points");
  CHECK(error_of(points) == "omnibal::affine_fit: kind 0 of size is 0 in all points");
  points = {{3, 1, 2.0}, {4, 1, nan}};
  CHECK(error_of(points) == "omnibal::affine_fit: value[1] is nan, must be finite");
  points = {{3, 1, -infinity}, {4, 1, 2.0}};
  CHECK(error_of(points) == "omnibal::affine_fit: value[0] is -inf, must be finite");
  auto const by_nan = [](point const&) { return nan; };
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(affine_fit(points, by_nan, &point::tokens));
        }) == "omnibal::affine_fit: size[0] is nan, must be finite");
}

TEST_CASE("kinds that cannot be told apart are named with what they are") {
  using omnibal::fit_offset;
  using omnibal::resources;
  auto const error = [](std::vector<resources<3>> const& sizes, fit_offset offset) {
    return test::error_text<std::invalid_argument>([&] {
      auto const value = [](resources<3> const& size) { return size[0]; };
      static_cast<void>(affine_fit(sizes, std::identity{}, value, {.offset = offset}));
    });
  };
  std::string const name = "omnibal::affine_fit: ";
  // A kind that does not vary, which the offset is too.
  std::vector<resources<3>> sizes{{1, 4096, 2}, {2, 4096, 5}, {3, 4096, 1}, {7, 4096, 3}};
  CHECK(error(sizes, fit_offset::free) ==
        name + "kind 1 of size is 4096 in all points, which cannot be told from the offset");
  CHECK(error(sizes, fit_offset::zero) == "no error");
  for (auto& size : sizes) size[2] = 0;
  CHECK(error(sizes, fit_offset::zero) == name + "kind 2 of size is 0 in all points");
  // Without an offset one kind may be the same in all points, two not.
  for (auto& size : sizes) size[2] = 1024;
  CHECK(error(sizes, fit_offset::zero) ==
        name + "kind 2 of size is 0.25 * kind 1 in all points, up to rounding");
  // Combinations, where kinds that are no part of them are not named.
  sizes = {{1, 5, 2}, {2, 0, 4}, {3, 7, 6}, {7, 1, 14}};
  CHECK(error(sizes, fit_offset::free) ==
        name + "kind 2 of size is 2 * kind 0 in all points, up to rounding");
  sizes = {{1, 5, 7}, {2, 0, 4}, {3, 7, 13}, {7, 1, 15}};
  CHECK(error(sizes, fit_offset::zero) ==
        name + "kind 2 of size is 2 * kind 0 + 1 * kind 1 in all points, up to rounding");
  sizes = {{1, 5, 7}, {2, 0, 6}, {3, 7, 5}, {7, 1, 1}};
  CHECK(error(sizes, fit_offset::free) == name +
                                              "0.125 * kind 0 + 0.125 * kind 2 of size is 1 in all "
                                              "points, up to rounding, which cannot be told "
                                              "from the offset");
  CHECK(error(sizes, fit_offset::zero) == "no error");
}

TEST_CASE("the inflation of a slope is what the other kinds leave of its kind") {
  test::random_amounts random(8);
  using size_type = omnibal::resources<3, double>;
  for (auto const offset : {omnibal::fit_offset::free, omnibal::fit_offset::zero}) {
    for (int run = 0; run != 40; ++run) {
      std::vector<size_type> sizes(30);
      for (auto& size : sizes) {
        double const shared = uniform(random, 0, 10);
        size = {shared, uniform(random, 3, 5), shared * uniform(random, 0.5, 1)};
      }
      auto const value = [&](size_type const&) { return uniform(random, 0, 1); };
      auto const cost = affine_fit(sizes, std::identity{}, value, {.offset = offset});
      for (std::size_t kind = 0; kind != 3; ++kind) {
        // This kind fitted by the others and the offset.
        auto const others = [&](size_type const& size) {
          return omnibal::resources{size[(kind + 1) % 3], size[(kind + 2) % 3]};
        };
        auto const own = [&](size_type const& size) { return size[kind]; };
        auto const rest = affine_fit(sizes, others, own, {.offset = offset});
        double squares = 0.0;
        for (auto const& size : sizes) squares += size[kind] * size[kind];
        double const left = rest.root_mean_square_residual;
        CHECK(cost.variance_inflation[kind] == Approx(squares / 30 / (left * left)));
      }
    }
  }
}

TEST_CASE("kinds that nearly go together are warned of, whatever the units") {
  test::random_amounts random(9);
  auto const kinds_of = [&](double low, double spread, double unit) {
    using size_type = omnibal::resources<3, double>;
    std::vector<size_type> sizes(50);
    for (auto& size : sizes) {
      // The second kind is about twice the first, the third on its own.
      double const first = uniform(random, low, low + 10);
      size = {first * unit, 2 * first + uniform(random, -spread, spread), uniform(random, 0, 1)};
    }
    auto const value = [](size_type const& size) { return size[1] + size[2]; };
    return affine_fit(sizes, std::identity{}, value).collinear_kinds();
  };
  using kinds = std::vector<std::size_t>;
  for (double const unit : {1.0, 1e-9, 1e12}) {
    CHECK(kinds_of(0, 20, unit) == kinds{});
    CHECK(kinds_of(0, 0.01, unit) == kinds{0, 1});
    // Far from zero, a kind goes with the offset.
    CHECK(kinds_of(1000, 5000, unit) == kinds{0});
  }
  // Lengths that hardly vary: their slope takes from the offset.
  std::vector<whole_point> const points{{4090, 1}, {4096, 5}, {4100, 2}};
  auto const cost = affine_fit(points, &whole_point::tokens, &whole_point::nanoseconds);
  CHECK(cost.collinear_kinds() == kinds{0});
  CHECK(cost.collinear_kinds(1e9) == kinds{});
  auto const through_zero = affine_fit(points, &whole_point::tokens, &whole_point::nanoseconds,
                                       {.offset = omnibal::fit_offset::zero});
  CHECK(through_zero.variance_inflation[0] == Approx(1.0));
  CHECK(omnibal::affine_cost<1>{}.collinear_kinds() == kinds{});
}

TEST_CASE("a kind without a slope is judged as the others are") {
  // The second kind costs nothing, so that its slope is zero where signs matter.
  std::vector<point> points;
  for (std::int64_t i = 1; i != 20; ++i) {
    points.push_back(
        {i, i * 1000 + i % 2, static_cast<double>(i) - 1e-3 * static_cast<double>(i % 2)});
  }
  auto const free = affine_fit(points, tokens_and_squares(), &point::seconds);
  auto const kept = affine_fit(points, tokens_and_squares(), &point::seconds,
                               {.signs = omnibal::fit_signs::not_negative});
  auto const robust =
      affine_fit(points, tokens_and_squares(), &point::seconds, {.loss = omnibal::fit_loss::huber});
  CHECK(free.collinear_kinds() == std::vector<std::size_t>{0, 1});
  CHECK(kept.variance_inflation == free.variance_inflation);
  CHECK(robust.variance_inflation == free.variance_inflation);
}

TEST_CASE("integers that a double cannot hold are not called exact") {
  constexpr std::int64_t large = std::int64_t{1} << 60;
  std::vector<whole_point> const points{{1, large + 1}, {2, large + 2}, {3, large + 3}};
  auto const cost = affine_fit(points, &whole_point::tokens, &whole_point::nanoseconds);
  CHECK(!cost.exact);
  CHECK(cost(2) == Approx(static_cast<double>(large)));

  // As doubles these are on a line with slope 1.
  constexpr std::int64_t most = std::int64_t{1} << 53;
  std::vector<whole_point> const rounded{{1, most - 1}, {2, most + 1}};
  CHECK(!affine_fit(rounded, &whole_point::tokens, &whole_point::nanoseconds).exact);
}

TEST_CASE("what a fit of the largest numbers misses is a number, or an error") {
  constexpr double most = std::numeric_limits<double>::max();
  std::size_t refused = 0;
  for (std::int64_t tokens = 1; tokens != 1000; ++tokens) {
    std::vector<point> const points{{tokens, 0, most}, {tokens + 1, 0, most / 3}};
    for (std::size_t const count : {1u, 2u}) {
      std::vector<point> const some(points.begin(),
                                    points.begin() + static_cast<std::ptrdiff_t>(count));
      std::string const text = test::error_text<std::overflow_error>([&] {
        auto const fit =
            affine_fit(some, &point::tokens, &point::seconds,
                       {.offset = omnibal::fit_offset::zero, .loss = omnibal::fit_loss::huber});
        CHECK(std::isfinite(fit.root_mean_square_residual));
        CHECK(std::isfinite(fit.largest_residual));
      });
      if (text == "no error") continue;
      ++refused;
      CHECK(text == "omnibal::affine_fit: a residual exceeds the largest value of its type");
    }
  }
  CHECK(refused != 0);
}

namespace {

using points_type = std::vector<point>;
using algorithm = omnibal::affine_fit_fn;

static_assert(std::invocable<algorithm, points_type, std::int64_t point::*, double point::*>);
static_assert(!std::invocable<algorithm, points_type, std::int64_t point::*>);
static_assert(!std::invocable<algorithm, points_type, std::string (*)(point), double point::*>);
static_assert(omnibal::cost_function<omnibal::affine_cost<2>, omnibal::resources<2>>);
static_assert(!std::invocable<omnibal::affine_cost<2>, std::int64_t>);

}  // namespace
