// SPDX-License-Identifier: Apache-2.0
#include "packers.hpp"
#include "packing_faults.hpp"
#include "samples.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

template <std::size_t R, class T>
using demands = std::vector<omnibal::resources<R, T>>;

/// The packing is sound, and the same when it is made again.
template <std::size_t R, class T, class Packer>
void check_packer(std::string const& packer, demands<R, T> const& samples,
                  omnibal::resources<R, T> const& capacity, Packer const& pack) {
  INFO(packer);
  omnibal::packing const result = pack(samples, std::identity{}, capacity);
  CHECK(test::fault(result, samples, capacity) == "");
  CHECK(pack(samples, std::identity{}, capacity) == result);
}

template <std::size_t R, class T>
void check_default_packers(demands<R, T> const& samples, omnibal::resources<R, T> const& capacity) {
  test::for_each_packer([&](std::string const& name, auto const& pack) {
    check_packer(name, samples, capacity, pack);
  });
}

template <std::size_t R>
void check_isf(demands<R, std::int64_t> const& samples, omnibal::resources<R> const& capacity) {
  auto const check = [&](std::string const& name, auto const& keep, auto const& shuffle) {
    check_packer("isf, " + name, samples, capacity,
                 [&](auto const& range, auto const& demand, auto const& limit) {
                   return omnibal::isf(range, demand, limit, {.rounds = 6, .min_gain = 0.01}, keep,
                                       shuffle);
                 });
  };
  auto const most = omnibal::reaches_most(capacity);
  auto const exactly_full = [&](auto const& load) { return load == capacity; };
  auto const reverse = [](std::span<std::uint32_t> order, std::uint64_t) {
    std::reverse(order.begin(), order.end());
  };
  check("fisher_yates", most, omnibal::rng::fisher_yates{1});
  check("feistel", most, omnibal::rng::feistel{1});
  check("numpy_shuffle", most, omnibal::rng::numpy_shuffle{1});
  check("a user's shuffler", most, reverse);
  check("a user's rule", exactly_full, omnibal::rng::fisher_yates{1});
  check(
      "a rule that keeps all", [](auto const&) { return true; }, reverse);
}

template <std::size_t R>
void check_best_fit(demands<R, std::int64_t> const& samples,
                    omnibal::resources<R> const& capacity) {
  auto const min_left = [](auto const& left, auto const&) {
    return *std::min_element(std::begin(left.amounts), std::end(left.amounts));
  };
  auto const all_equal = [](auto const&, auto const&) { return 1; };
  for (auto const measure :
       {omnibal::size_measure::sum_of_shares, omnibal::size_measure::largest_share}) {
    omnibal::best_fit_decreasing_options const options{.measure = measure};
    auto const check = [&](std::string const& name, auto const&... score) {
      check_packer("best_fit_decreasing, " + name, samples, capacity,
                   [&](auto const& range, auto const& demand, auto const& limit) {
                     return omnibal::best_fit_decreasing(range, demand, limit, options, score...);
                   });
    };
    check("default score");
    check("a user's score", min_left);
    check("a constant score", all_equal);
  }
}

template <class T, std::size_t R>
omnibal::resources<R, T> converted(omnibal::resources<R> const& amounts, T unit = 1) {
  omnibal::resources<R, T> result{};
  for (std::size_t r = 0; r != R; ++r) result[r] = static_cast<T>(amounts[r]) * unit;
  return result;
}

template <class T, std::size_t R>
demands<R, T> converted(demands<R, std::int64_t> const& samples, T unit = 1) {
  demands<R, T> result;
  for (auto const& sample : samples) result.push_back(converted<T>(sample, unit));
  return result;
}

}  // namespace

TEMPLATE_TEST_CASE("packers are sound for 64-bit integers", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  for (auto const& set : test::all_sets<TestType::value>(1, 120)) {
    INFO(set.name);
    check_default_packers(set.samples, set.capacity);
    check_isf(set.samples, set.capacity);
    check_best_fit(set.samples, set.capacity);
  }
}

TEMPLATE_TEST_CASE("packers are sound for narrow and for unsigned integers", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  for (auto const& set : test::small_sets<TestType::value>(2, 120)) {
    INFO(set.name);
    check_default_packers(converted<std::int32_t>(set.samples),
                          converted<std::int32_t>(set.capacity));
    check_default_packers(converted<std::uint64_t>(set.samples),
                          converted<std::uint64_t>(set.capacity));
  }
}

TEMPLATE_TEST_CASE("packers are sound for floating-point numbers", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  for (auto const& set : test::small_sets<TestType::value>(3, 250)) {
    // Sums are exact in the first unit; in the others they meet the capacity only after rounding.
    for (double const unit : {0.125, 0.1, 1e-300, 1e280}) {
      INFO(set.name << " in units of " << unit);
      check_default_packers(converted(set.samples, unit), converted(set.capacity, unit));
    }
  }
}

TEST_CASE("packers are sound for capacities of any size") {
  test::random_amounts random(4);
  for (int bits = 0; bits != 63; ++bits) {
    std::int64_t const power = std::int64_t{1} << bits;
    for (std::int64_t const capacity : {power, power + (power - 1)}) {
      INFO("capacity " << capacity);
      // The fields of the other resources grow with it, so that every word size is tried.
      omnibal::resources<3> const limits{capacity, 1 + bits * bits, 1 + (capacity >> 7)};
      auto const samples = test::make_samples<3>(100, [&](std::size_t, std::size_t r) {
        return random.between(0, std::min(limits[r], random.between(0, limits[r] / 2) + 1));
      });
      check_default_packers(samples, limits);
      demands<1, std::int64_t> first;
      for (auto const& sample : samples) first.push_back({sample[0]});
      check_default_packers(first, omnibal::resources<1>{capacity});
      for (std::int64_t const amount : {std::int64_t{0}, capacity / 2, capacity}) {
        first.assign(100, {amount});
        check_default_packers(first, omnibal::resources<1>{capacity});
      }
    }
  }
}

TEST_CASE("packers take demands and capacities of different types") {
  std::vector<int> const lengths{3, 0, 7, 11, 5};
  auto const as_weight = [](int length) { return static_cast<std::uint8_t>(length); };
  auto const as_double = [](int length) { return static_cast<float>(length); };
  test::for_each_packer([&](std::string const& name, auto const& pack) {
    INFO(name);
    auto const expected = pack(lengths, std::identity{}, 10);
    CHECK(expected.oversized == std::vector<std::uint32_t>{3});
    CHECK(pack(lengths, as_weight, 10u).groups == expected.groups);
    CHECK(pack(lengths, as_weight, omnibal::resources{10}) == expected);
    CHECK(pack(lengths, as_double, 10).oversized == expected.oversized);
    CHECK(pack(lengths, std::identity{}, 10.5).oversized == expected.oversized);
  });
}

TEST_CASE("packers call the demand functor with the user's samples") {
  struct sample {
    std::vector<int> lengths;
  };
  std::vector<sample> const samples{{{4, 5}}, {{1}}, {{}}, {{20}}};
  auto const demand = [](sample const& s) {
    std::int64_t sum = 0;
    for (int const length : s.lengths) sum += length;
    return omnibal::resources{static_cast<std::int64_t>(s.lengths.size()), sum};
  };
  omnibal::resources const capacity{2, 10};
  CHECK(omnibal::next_fit(samples, demand, capacity).groups ==
        omnibal::grouping({0, 1, 3}, {0, 1, 2}));
  CHECK(omnibal::best_fit_decreasing(samples, demand, capacity).oversized ==
        std::vector<std::uint32_t>{3});
}
