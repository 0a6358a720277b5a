// SPDX-License-Identifier: Apache-2.0
// Executors: equal results with any order and any threads, errors of bodies, and wrong executors.

#include "error_text.hpp"
#include "executors.hpp"

#include <omnibal/executor.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/pack/sample_histogram.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::effort;
using omnibal::packing;
using omnibal::resources;
using omnibal::serial_executor;
using test::random_executor;
using test::reversed_executor;
using test::threads_executor;
using test::with_executors;

constexpr std::identity itself{};

template <class Call>
std::string message_of(Call const& call) {
  return test::error_text<std::invalid_argument>(call);
}

template <std::size_t R>
std::vector<resources<R>> random_samples(omnibal::rng::engine& words, std::size_t count,
                                         std::uint64_t most) {
  std::vector<resources<R>> samples(count);
  for (auto& sample : samples) {
    for (auto& amount : sample.amounts) {
      amount = static_cast<std::int64_t>(omnibal::rng::below(words, most + 1));
    }
  }
  return samples;
}

template <std::size_t R>
resources<R> capacity_of(std::int64_t amount) {
  resources<R> capacity{};
  for (auto& limit : capacity.amounts) limit = amount;
  return capacity;
}

static_assert(omnibal::executor<serial_executor>);
static_assert(omnibal::executor<reversed_executor>);
static_assert(omnibal::executor<threads_executor>);
static_assert(!omnibal::executor<std::identity>);
static_assert(!omnibal::executor<int>);
static_assert(!omnibal::progress_predicate<threads_executor>);

template <std::size_t R>
void check_counts(std::uint64_t seed, std::size_t count, std::uint64_t most) {
  omnibal::rng::engine words(seed);
  auto const samples = random_samples<R>(words, count, most);
  auto const expected = omnibal::count_samples(samples, itself);
  with_executors(seed, [&](auto const& run) {
    CHECK(omnibal::count_samples(samples, itself, run) == expected);
  });
}

TEST_CASE("an executor does not change the histogram of samples", "[pack]") {
  check_counts<1>(1, 1000, 50);
  check_counts<1>(2, 400'000, 5000);
  check_counts<1>(3, 200'000, std::uint64_t{1} << 40);
  check_counts<2>(4, 270'000, 300);
  check_counts<2>(5, 131'072, 1'000'000);
}

template <std::size_t R>
void check_bounds(std::uint64_t seed) {
  omnibal::rng::engine words(seed);
  auto const count = static_cast<std::size_t>(omnibal::rng::below(words, 60));
  auto const samples = random_samples<R>(words, count, 300);
  auto const capacity = capacity_of<R>(200 + static_cast<std::int64_t>(seed % 300));
  for (auto const strength : {effort::normal, effort::thorough}) {
    omnibal::packing_bound_options const options{.effort = strength};
    auto const expected = omnibal::packing_bound(samples, itself, capacity, options);
    with_executors(seed, [&](auto const& run) {
      CHECK(omnibal::packing_bound(samples, itself, capacity, options, run) == expected);
    });
  }
}

TEST_CASE("an executor does not change the bound", "[pack]") {
  for (std::uint64_t seed = 0; seed != 60; ++seed) {
    check_bounds<1>(seed);
    check_bounds<2>(seed);
    check_bounds<3>(seed);
  }
}

template <std::size_t R>
void check_capacities(std::uint64_t seed, auto const& pack) {
  omnibal::rng::engine words(seed);
  auto const count = static_cast<std::size_t>(omnibal::rng::below(words, 1500));
  auto const samples = random_samples<R>(words, count, 1 + omnibal::rng::below(words, 500));
  omnibal::tune_capacity_options<R> options;
  options.candidates = 20;
  options.first_samples = 100;
  options.finalists = 1 + seed % 4;
  // Without a tolerance, no capacity is accepted in some instances.
  if (seed % 3 == 0) options.width = 0.01;
  auto const expected = omnibal::tune_capacity(samples, itself, 3.0, pack, options);
  with_executors(seed, [&](auto const& run) {
    CHECK(omnibal::tune_capacity(samples, itself, 3.0, pack, options, run) == expected);
    CHECK(omnibal::tune_capacity(samples, itself, 3.0, pack, omnibal::published_rule<>{}, options,
                                 run) == expected);
  });
}

TEST_CASE("an executor does not change the capacity that is found", "[pack]") {
  for (std::uint64_t seed = 0; seed != 6; ++seed) {
    check_capacities<1>(seed, omnibal::best_fit_decreasing);
    check_capacities<2>(seed, omnibal::isf);
  }
}

template <std::size_t R>
void check_even(std::uint64_t seed, std::size_t count) {
  omnibal::rng::engine words(seed);
  auto const samples = random_samples<R>(words, count, 500);
  auto const capacity = capacity_of<R>(1000);
  packing const start = omnibal::best_packing(samples, itself, capacity);
  omnibal::improve_packing_options const options{.passes = seed % 3, .even_passes = 6};
  packing const expected = omnibal::improve_packing(samples, itself, capacity, start, options);
  with_executors(seed, [&](auto const& run) {
    CHECK(omnibal::improve_packing(samples, itself, capacity, start, options, run) == expected);
    auto const go_on = [](omnibal::improve_packing_progress const&) { return true; };
    CHECK(omnibal::improve_packing(samples, itself, capacity, start, options, go_on, run) ==
          expected);
  });
}

TEST_CASE("an executor does not change the groups of a local search", "[pack]") {
  for (std::uint64_t seed = 0; seed != 4; ++seed) {
    check_even<1>(seed, static_cast<std::size_t>(seed));
    check_even<1>(seed, 6000 + static_cast<std::size_t>(seed));
    check_even<2>(seed, 4000 + static_cast<std::size_t>(seed));
  }
}

TEST_CASE("with an executor, the error is the error of the first body that fails", "[pack]") {
  std::vector<int> lengths(400'000, 7);
  lengths[150'000] = -1;
  lengths[150'001] = -2;
  lengths[399'999] = -3;
  auto const expected = message_of([&] { (void)omnibal::count_samples(lengths, itself); });
  CHECK(expected.find("sample 150000") != std::string::npos);
  with_executors(9, [&](auto const& run) {
    CHECK(message_of([&] { (void)omnibal::count_samples(lengths, itself, run); }) == expected);
  });

  std::vector<int> const few(100, 3);
  auto const faulty = [](auto const& samples, auto const& demand, auto const& capacity) -> packing {
    if (capacity[0] >= 10) throw std::runtime_error("capacity " + std::to_string(capacity[0]));
    return omnibal::best_fit_decreasing(samples, demand, capacity);
  };
  auto const first = test::error_text<std::runtime_error>(
      [&] { (void)omnibal::tune_capacity(few, itself, 3.0, faulty); });
  with_executors(9, [&](auto const& run) {
    CHECK(test::error_text<std::runtime_error>(
              [&] { (void)omnibal::tune_capacity(few, itself, 3.0, faulty, {}, run); }) == first);
  });
}

TEST_CASE("what an executor throws passes through", "[pack]") {
  std::vector<int> const lengths(400'000, 7);
  auto const no_threads = [](std::size_t, auto const&) {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  CHECK_THROWS_AS(omnibal::count_samples(lengths, itself, no_threads), std::system_error);
  auto const ends_early = [](std::size_t, auto const& body) {
    body(0);
    throw std::runtime_error("no more threads");
  };
  CHECK(test::error_text<std::runtime_error>([&] {
          (void)omnibal::count_samples(lengths, itself, ends_early);
        }) == "no more threads");
}

TEST_CASE("an executor must call each body once", "[pack]") {
  std::vector<int> const lengths(400'000, 7);
  auto const error_of = [&](auto const& run) {
    return message_of([&] { (void)omnibal::count_samples(lengths, itself, run); });
  };
  std::string const begin = "omnibal::count_samples: executor called ";
  std::string const end = " of 6 bodies, or called a body twice, must call each body once";
  auto const does_nothing = [](std::size_t, auto const&) {};
  auto const skips_last = [](std::size_t count, auto const& body) {
    serial_executor{}(count - 1, body);
  };
  auto const repeats = [](std::size_t count, auto const& body) {
    serial_executor{}(count, body);
    body(0);
  };
  auto const goes_beyond = [](std::size_t count, auto const& body) {
    serial_executor{}(count + 1, body);
  };
  CHECK(error_of(does_nothing) == begin + "0" + end);
  CHECK(error_of(skips_last) == begin + "5" + end);
  CHECK(error_of(repeats) == begin + "6" + end);
  CHECK(error_of(goes_beyond) == begin + "6" + end);
}

}  // namespace
