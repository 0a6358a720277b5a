// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"
#include "support/serial_backend.hpp"

#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/isf/isf_kernels.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/feistel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

namespace detail = omnibal::gpu::detail;
using omnibal::gpu::fault;
using test::serial_backend;
using test::visit_order;

constexpr visit_order orders[] = {visit_order::forward, visit_order::backward,
                                  visit_order::shuffled};
constexpr std::uint32_t untouched = 0xabababab;

/// Where the device writes, with elements behind the end that it must leave alone.
struct arrays {
  static constexpr std::size_t margin = 3;

  arrays(std::size_t groups, std::size_t samples, std::size_t oversized_room)
      : offsets(groups + 1 + margin, untouched),
        items(samples + margin, untouched),
        oversized(oversized_room + margin, untouched) {}

  omnibal::gpu::packing_span out() {
    return {{{offsets.data(), offsets.size() - margin},
             {items.data(), items.size() - margin},
             {&group_count, 1}},
            {oversized.data(), oversized.size() - margin},
            {&oversized_count, 1},
            {&report, 1},
            {&faults, 1}};
  }

  void check_margins() const {
    for (auto const* array : {&offsets, &items, &oversized}) {
      CHECK(std::count(array->end() - margin, array->end(), untouched) == margin);
    }
  }

  /// The result, in which everything the host would not write has been checked.
  omnibal::packing result() const {
    check_margins();
    REQUIRE(group_count + 1 <= offsets.size() - margin);
    std::uint32_t const item_count = offsets[group_count];
    std::size_t const room = offsets.size() - margin;
    for (std::size_t g = group_count; g != room; ++g) REQUIRE(offsets[g] == item_count);
    omnibal::packing packed;
    packed.groups = omnibal::grouping({offsets.begin(), offsets.begin() + group_count + 1},
                                      {items.begin(), items.begin() + item_count});
    REQUIRE(oversized_count + margin <= oversized.size());
    packed.oversized = {oversized.begin(), oversized.begin() + oversized_count};
    packed.report = report;
    return packed;
  }

  std::vector<std::uint32_t> offsets;
  std::vector<std::uint32_t> items;
  std::vector<std::uint32_t> oversized;
  std::uint32_t group_count = untouched;
  std::uint32_t oversized_count = untouched;
  omnibal::packing_report report;
  fault faults{};
};

template <class Backend, class Amount, std::size_t R, class Keep>
void run(Backend& backend, std::vector<Amount> const& samples,
         omnibal::resources<R> const& capacity, omnibal::isf_options const& options,
         Keep const& keep, std::uint64_t seed, arrays& to) {
  detail::run_isf(backend, detail::isf_input<Amount, R>{samples.data(), samples.size(), capacity},
                  options, keep, omnibal::rng::feistel{seed}, to.out());
}

/// Compares with the host in every order of visits.
template <class Amount, std::size_t R, class Keep>
void check_against_host(std::vector<Amount> const& samples, omnibal::resources<R> const& capacity,
                        omnibal::isf_options const& options, Keep const& keep,
                        std::uint64_t seed = 0) {
  auto expected =
      omnibal::isf(samples, std::identity{}, capacity, options, keep, omnibal::rng::feistel{seed});
  for (visit_order const order : orders) {
    arrays to(samples.size(), samples.size(), samples.size());
    serial_backend backend(order, seed + 1);
    run(backend, samples, capacity, options, keep, seed, to);
    REQUIRE(to.faults == fault::none);
    auto const result = to.result();
    CHECK(result.report.lower_bound <= expected.report.lower_bound);
    expected.report.lower_bound = result.report.lower_bound;
    CHECK(result.report == expected.report);
    CHECK(result.oversized == expected.oversized);
    REQUIRE(result.groups == expected.groups);
    detail::scratch_meter meter;
    run(meter, samples, capacity, options, keep, seed, to);
    CHECK(backend.scratch_bytes() == meter.scratch_bytes());
    std::size_t const rounds = samples.empty() ? 0 : options.rounds;
    CHECK(backend.launches() == (samples.empty() ? 3 : 5) + 4 * rounds);
  }
}

/// Keeps groups by a property that has nothing to do with their size.
struct keeps_even {
  template <std::size_t R>
  bool operator()(omnibal::resources<R> const& load) const {
    return load[0] % 2 == 0;
  }
};
struct keeps_all {
  template <std::size_t R>
  bool operator()(omnibal::resources<R> const&) const {
    return true;
  }
};
struct keeps_none {
  template <std::size_t R>
  bool operator()(omnibal::resources<R> const&) const {
    return false;
  }
};

template <std::size_t R>
void check_all_options(std::vector<omnibal::resources<R>> const& samples,
                       omnibal::resources<R> const& capacity) {
  check_against_host(samples, capacity, {.rounds = 6}, omnibal::reaches_most(capacity), 1);
  check_against_host(samples, capacity, {.rounds = 9, .min_gain = 0.3}, keeps_even{}, 2);
  check_against_host(samples, capacity, {.rounds = 1}, omnibal::reaches_most(capacity), 3);
}

/// The sums of these samples stay in 64 bits.
template <std::size_t R>
bool is_summable(test::sample_set<R> const& set) {
  for (std::size_t r = 0; r != R; ++r) {
    double sum = 0;
    for (auto const& sample : set.samples) sum += static_cast<double>(sample[r]);
    if (sum > 9e18) return false;
  }
  return true;
}

}  // namespace

TEMPLATE_TEST_CASE("isf on the device gives what it gives on the host", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  std::size_t compared = 0;
  for (std::size_t const count : {1u, 7u, 60u, 300u}) {
    for (auto const& set : test::all_sets<TestType::value>(count, count)) {
      if (!is_summable(set)) continue;
      INFO(set.name << ", " << count);
      check_all_options(set.samples, set.capacity);
      ++compared;
    }
  }
  CHECK(compared > 200);
}

TEST_CASE("isf on the device gives the host's groups around the ends of tiles and chunks") {
  for (std::size_t const count : {1023u, 1024u, 1025u, 2048u, 4095u, 4096u, 4097u, 8192u, 13000u}) {
    // Groups of few samples, of hundreds, and of more than there are in a chunk.
    for (std::int64_t const largest : {2000, 20, 1, 0}) {
      INFO(count << " of up to " << largest);
      test::random_amounts random(count);
      auto const samples = test::make_samples<2>(count, [&](std::size_t, std::size_t r) {
        return r == 0 ? random.between(0, largest) : random.between(0, 4);
      });
      omnibal::resources<2> const capacity{4096, largest > 20 ? 9 : 400000};
      check_against_host(samples, capacity, {.rounds = 4}, omnibal::reaches_most(capacity));
      check_against_host(samples, capacity, {.rounds = 3}, keeps_even{});
    }
  }
}

TEST_CASE("isf on the device carries a group over chunks, kept or not") {
  // Samples that take a whole group lie between many that take nothing.
  for (std::int64_t const gap : {1, 15, 16, 255, 256, 4095, 4096, 4097, 9000, 30000}) {
    INFO(gap);
    auto const samples = test::make_samples<1>(20000, [&](std::size_t i, std::size_t) {
      return static_cast<std::int64_t>(i) % gap == 0 ? 10 : 0;
    });
    check_against_host(samples, omnibal::resources{10}, {.rounds = 3},
                       omnibal::reaches_any{omnibal::resources{10}});
    check_against_host(samples, omnibal::resources{10}, {.rounds = 3}, keeps_none{});
  }
}

TEST_CASE("isf on the device gives the host's groups of thousands of small sets", "[slow]") {
  test::random_amounts random(11);
  for (int round = 0; round != 3000; ++round) {
    INFO(round);
    auto const count = static_cast<std::size_t>(random.between(0, 40));
    omnibal::resources<2> const capacity{random.between(1, 30), random.between(1, 30)};
    auto const largest = random.between(0, 35);
    auto const samples = test::make_samples<2>(
        count, [&](std::size_t, std::size_t) { return random.between(0, largest); });
    omnibal::isf_options const options{.rounds = static_cast<std::size_t>(random.between(1, 8)),
                                       .min_gain = static_cast<double>(random.between(0, 4)) / 4};
    auto const seed = static_cast<std::uint64_t>(round);
    check_against_host(samples, capacity, options, omnibal::reaches_most(capacity), seed);
    check_against_host(samples, capacity, options, keeps_even{}, seed);
  }
}

TEST_CASE("isf on the device gives the host's groups of large sets") {
  test::random_amounts random(12);
  auto const samples = test::make_samples<2>(100000, [&](std::size_t, std::size_t r) {
    return r == 0 ? random.heavy_tail(4400) : random.between(0, 5);
  });
  omnibal::resources<2> const capacity{4096, 9};
  check_against_host(samples, capacity, {.rounds = 12}, omnibal::reaches_most(capacity), 7);
  check_against_host(samples, capacity, {.rounds = 12, .min_gain = 0.2},
                     omnibal::reaches_most(capacity), 8);
  check_against_host(samples, omnibal::resources<2>{1, 1}, {.rounds = 3}, keeps_even{}, 8);
  omnibal::resources<2> const huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
  check_against_host(samples, huge, {.rounds = 3}, omnibal::reaches_most(huge), 9);
}

TEST_CASE("isf on the device stops where the host stops") {
  std::vector<std::int64_t> lengths(99, 6);
  lengths.push_back(10);
  omnibal::resources<1> const capacity{10};
  auto const keep = omnibal::reaches_any{omnibal::resources{10}};
  for (double const min_gain : {0.0, 0.005, 0.01, 0.010000000000000002, 0.02, 1.0}) {
    INFO(min_gain);
    check_against_host(lengths, capacity, {.rounds = 50, .min_gain = min_gain}, keep);
  }
  check_against_host(lengths, capacity, {.rounds = 50}, keeps_all{});
  check_against_host(std::vector<std::int64_t>{11, 12}, capacity, {.rounds = 50}, keeps_all{});
}

TEST_CASE("isf on the device takes integers of every width") {
  test::random_amounts random(13);
  auto const make = [&]<class T>(T most) {
    std::vector<T> lengths(500);
    for (T& length : lengths) {
      length = static_cast<T>(random.between(0, static_cast<std::int64_t>(most)));
    }
    return lengths;
  };
  omnibal::resources<1> const capacity{100};
  auto const keep = omnibal::reaches_most(capacity);
  check_against_host(make(std::int8_t{110}), capacity, {.rounds = 5}, keep);
  check_against_host(make(std::uint8_t{110}), capacity, {.rounds = 5}, keep);
  check_against_host(make(std::int16_t{110}), capacity, {.rounds = 5}, keep);
  check_against_host(make(std::uint32_t{110}), capacity, {.rounds = 5}, keep);
  check_against_host(make(std::int32_t{110}), capacity, {.rounds = 5}, keep);
  check_against_host(make(std::uint64_t{110}), capacity, {.rounds = 5}, keep);
  std::vector<omnibal::resources<2, std::int32_t>> pairs(300);
  for (auto& pair : pairs) {
    pair = {static_cast<std::int32_t>(random.between(0, 60)),
            static_cast<std::int32_t>(random.between(0, 110))};
  }
  omnibal::resources<2> const both{90, 100};
  check_against_host(pairs, both, {.rounds = 5}, omnibal::reaches_most(both));
}

TEST_CASE("the lower bound of isf on the device is that of volumes and large samples") {
  test::random_amounts random(14);
  for (int round = 0; round != 200; ++round) {
    omnibal::resources<2> const capacity{random.between(1, 9), random.between(1, 9)};
    auto const samples =
        test::make_samples<2>(static_cast<std::size_t>(random.between(0, 30)),
                              [&](std::size_t, std::size_t) { return random.between(0, 10); });
    std::int64_t expected = 0;
    for (std::size_t r = 0; r != 2; ++r) {
      std::int64_t volume = 0;
      std::int64_t large = 0;
      for (auto const& sample : samples) {
        if (!sample.fits(capacity)) continue;
        expected = std::max<std::int64_t>(expected, 1);
        volume += sample[r];
        large += 2 * sample[r] > capacity[r] ? 1 : 0;
      }
      expected = std::max({expected, large, (volume + capacity[r] - 1) / capacity[r]});
    }
    arrays to(samples.size(), samples.size(), samples.size());
    serial_backend backend;
    run(backend, samples, capacity, {.rounds = 1}, keeps_all{}, 0, to);
    CHECK(to.report.lower_bound == static_cast<std::size_t>(expected));
  }
}

TEST_CASE("isf on the device finds demands that are not valid") {
  auto const faults_of = [](auto const& samples, auto const& capacity) {
    fault found{};
    for (visit_order const order : orders) {
      arrays to(samples.size(), samples.size(), samples.size());
      serial_backend backend(order);
      run(backend, samples, capacity, {.rounds = 3}, keeps_all{}, 0, to);
      auto const result = to.result();
      found = to.faults;
      if (found == fault::none) continue;
      CHECK(result == omnibal::packing{});
    }
    return found;
  };
  std::int64_t const most = std::numeric_limits<std::int64_t>::max();
  omnibal::resources<1> const small{10};
  omnibal::resources<1> const large{most};

  std::vector<std::int64_t> lengths(6000, 1);
  CHECK(faults_of(lengths, small) == fault::none);
  lengths[5000] = -1;
  CHECK(faults_of(lengths, small) == fault::invalid_amount);
  lengths[5000] = std::numeric_limits<std::int64_t>::min();
  CHECK(faults_of(lengths, large) == fault::invalid_amount);
  // Oversized samples do not count in the sum.
  lengths[5000] = most;
  CHECK(faults_of(lengths, small) == fault::none);
  CHECK(faults_of(lengths, large) == fault::overflow);
  lengths[5000] = most - 5999;
  CHECK(faults_of(lengths, large) == fault::none);
  lengths[5000] += 1;
  CHECK(faults_of(lengths, large) == fault::overflow);
  // A sum that would pass zero again.
  CHECK(faults_of(std::vector<std::int64_t>(6000, most), large) == fault::overflow);
  CHECK(faults_of(std::vector<std::uint64_t>{1, std::uint64_t{1} << 63}, small) ==
        fault::invalid_amount);
  CHECK(faults_of(std::vector<omnibal::resources<2>>{{1, 1}, {11, -1}},
                  omnibal::resources<2>{10, 10}) == fault::invalid_amount);
}

TEST_CASE("isf on the device says where an output has no room") {
  // Ten groups and three oversized samples.
  std::vector<std::int64_t> lengths(10, 10);
  lengths.insert(lengths.end(), 3, 11);
  omnibal::resources<1> const capacity{10};
  for (std::size_t const groups : {0u, 9u, 10u, 11u}) {
    for (std::size_t const oversized : {0u, 2u, 3u}) {
      INFO(groups << " groups, " << oversized << " oversized");
      arrays to(groups, lengths.size(), oversized);
      serial_backend backend;
      run(backend, lengths, capacity, {.rounds = 2}, keeps_all{}, 0, to);
      to.check_margins();
      bool const has_room = groups >= 10 && oversized >= 3;
      CHECK(to.faults == (has_room ? fault::none : fault::no_room));
      CHECK(to.group_count == 10);
      CHECK(to.oversized_count == 3);
    }
  }
}

TEST_CASE("isf on the device needs no more than groups, and loses no fault") {
  std::vector<std::int64_t> const lengths{7, 4, 11, -9, 2};
  std::vector<std::uint32_t> offsets(6);
  std::vector<std::uint32_t> items(5);
  omnibal::gpu::packing_span const out{{{offsets.data(), 6}, {items.data(), 5}, {}}};
  auto const pack = [&](std::size_t count) {
    serial_backend backend;
    detail::run_isf(backend, detail::isf_input<std::int64_t, 1>{lengths.data(), count, {10}},
                    {.rounds = 2}, keeps_all{}, omnibal::rng::feistel{}, out);
  };
  pack(2);
  CHECK(offsets == std::vector<std::uint32_t>{0, 1, 2, 2, 2, 2});
  CHECK_THROWS_AS(pack(3), std::length_error);
  CHECK_THROWS_AS(pack(5), std::invalid_argument);
}
