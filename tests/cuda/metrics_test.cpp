// SPDX-License-Identifier: Apache-2.0
#include "random_groups.hpp"
#include "support/serial_backend.hpp"

#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/metrics/metric_kernels.hpp>
#include <omnibal/metrics.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::resources;
using omnibal::detail::uint128;
using omnibal::gpu::fault;
using omnibal::gpu::detail::element_count;
using omnibal::gpu::detail::scratch_meter;
using test::serial_backend;
using test::visit_order;

constexpr visit_order orders[] = {visit_order::forward, visit_order::backward,
                                  visit_order::shuffled};
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

template <class Amount, class Ratio>
void check_ratio(std::vector<Amount> const& amounts, Ratio const& ratio,
                 std::vector<double> const& expected) {
  // Elements that do not count follow those that do.
  std::vector<Amount> padded = amounts;
  Amount other{};
  if constexpr (omnibal::scalar_measure<Amount>) {
    other = 7;
  } else {
    other[0] = 7;
  }
  padded.resize(amounts.size() + 5, other);
  auto const count = static_cast<std::uint32_t>(amounts.size());
  for (visit_order const order : orders) {
    for (bool const counted : {false, true}) {
      serial_backend backend(order, amounts.size());
      std::vector<double> out(expected.size(), -1.0);
      fault faults = fault::none;
      auto const algorithm = [&](auto& on) {
        omnibal::gpu::detail::ratios_of(
            on, padded.data(),
            counted ? element_count{padded.size(), &count} : element_count{amounts.size(), nullptr},
            ratio, out.data(), &faults);
      };
      scratch_meter meter;
      algorithm(meter);
      algorithm(backend);
      CHECK(out == expected);
      CHECK(faults == fault::none);
      CHECK(meter.scratch_bytes() == backend.scratch_bytes());
    }
  }
}

template <std::size_t R>
std::vector<double> all_of(resources<R, double> const& ratios) {
  return {ratios.amounts, ratios.amounts + R};
}

}  // namespace

TEST_CASE("128 bits become the double that the compiler makes of them") {
  omnibal::rng::engine words(3);
  for (unsigned bits = 1; bits <= 128; ++bits) {
    for (int k = 0; k != 300; ++k) {
      uint128 value = static_cast<uint128>(words()) << 64 | words();
      // Ties and their neighbors: a run of zeros or ones below some upper bits.
      if (k % 3 != 0) {
        auto const low = static_cast<unsigned>(words() % 127);
        value = value >> low << low;
        if (k % 3 == 2) value -= 1;
      }
      value >>= 128 - bits;
      CAPTURE(bits, k);
      REQUIRE(omnibal::gpu::detail::to_double(value) == static_cast<double>(value));
    }
  }
  CHECK(omnibal::gpu::detail::to_double(0) == 0.0);
}

TEST_CASE("ratios of amounts are those of the host to the last bit") {
  for (std::size_t const n : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{1000}}) {
    for (std::uint64_t const limit :
         {std::uint64_t{1}, std::uint64_t{50}, std::uint64_t{1} << 40}) {
      CAPTURE(n, limit);
      auto const weights = test::random_weights<std::int64_t>(n, n + 1, limit);
      check_ratio(weights, omnibal::gpu::detail::idle_share{}, {omnibal::dist_ratio(weights)});
      check_ratio(weights, omnibal::gpu::detail::idle_share{}, {omnibal::pad_ratio(weights)});
      check_ratio(weights, omnibal::gpu::detail::largest_over_mean{},
                  {omnibal::imbalance(weights)});
      check_ratio(weights, omnibal::gpu::detail::mean_over_limit<1>{{4096.0}},
                  {omnibal::utilization(weights, 4096)});
      std::vector<resources<2, std::int32_t>> pairs(n);
      for (std::size_t i = 0; i != n; ++i) {
        pairs[i] = {static_cast<std::int32_t>(weights[i] % 1000), static_cast<std::int32_t>(i)};
      }
      check_ratio(pairs, omnibal::gpu::detail::idle_share{}, all_of(omnibal::dist_ratio(pairs)));
      check_ratio(pairs, omnibal::gpu::detail::largest_over_mean{},
                  all_of(omnibal::imbalance(pairs)));
      check_ratio(pairs, omnibal::gpu::detail::mean_over_limit<2>{{9.0, 4096.5}},
                  all_of(omnibal::utilization(pairs, resources{9.0, 4096.5})));
    }
  }
  std::vector<std::int64_t> const wide{largest / 3, largest / 3, largest / 3 - 12345};
  check_ratio(wide, omnibal::gpu::detail::idle_share{}, {omnibal::dist_ratio(wide)});
}

TEST_CASE("the mean pad ratio of groups is the host's") {
  for (auto const& sizes : test::group_sizes()) {
    CAPTURE(sizes.name);
    grouping const groups = test::random_groups(sizes.sizes, 8);
    auto const lengths = test::random_weights<std::int32_t>(groups.item_count() + 1, 2, 9999);
    for (visit_order const order : orders) {
      serial_backend backend(order);
      double out = -1.0;
      fault faults = fault::none;
      auto const algorithm = [&](auto& on) {
        omnibal::gpu::detail::pad_ratio_of_groups(on, groups.view(), lengths.data(), lengths.size(),
                                                  &out, &faults);
      };
      scratch_meter meter;
      algorithm(meter);
      algorithm(backend);
      CHECK(out == omnibal::pad_ratio(groups, lengths));
      CHECK(faults == fault::none);
      CHECK(meter.scratch_bytes() == backend.scratch_bytes());
    }
  }
}

TEST_CASE("the mean dist ratio of a schedule is the host's") {
  omnibal::rng::engine words(5);
  for (std::size_t const ranks : {std::size_t{1}, std::size_t{3}, std::size_t{200}}) {
    for (std::size_t const count : {std::size_t{0}, std::size_t{1}, std::size_t{70}}) {
      CAPTURE(ranks, count);
      std::vector<resources<2>> loads(40);
      for (auto& load : loads) {
        load = {static_cast<std::int64_t>(words() % 10), static_cast<std::int64_t>(words() % 5000)};
      }
      omnibal::steps schedule(ranks);
      for (std::size_t cell = 0; cell != count * ranks; ++cell) {
        for (std::uint64_t k = words() % 3; k != 0; --k) {
          schedule.push(static_cast<std::uint32_t>(words() % loads.size()));
        }
        schedule.close();
      }
      // Steps after the last one, as where the device alone knows how many there are.
      omnibal::steps padded = schedule;
      for (std::size_t cell = 0; cell != 2 * ranks; ++cell) padded.close();
      auto const counted = static_cast<std::uint32_t>(count);
      for (visit_order const order : orders) {
        for (bool const with_count : {false, true}) {
          serial_backend backend(order);
          std::vector<double> out(2, -1.0);
          fault faults = fault::none;
          auto const algorithm = [&](auto& on) {
            omnibal::gpu::detail::dist_ratio_of_steps(
                on, with_count ? padded.cells() : schedule.cells(), ranks,
                with_count ? &counted : nullptr, loads.data(), loads.size(), out.data(), &faults);
          };
          scratch_meter meter;
          algorithm(meter);
          algorithm(backend);
          CHECK(out == all_of(omnibal::dist_ratio(schedule, loads)));
          CHECK(faults == fault::none);
          CHECK(meter.scratch_bytes() == backend.scratch_bytes());
        }
      }
    }
  }
}

TEST_CASE("what the host's metrics refuse is a fault") {
  for (visit_order const order : orders) {
    auto const faults_of = [&](std::vector<std::int64_t> const& amounts) {
      serial_backend backend(order);
      double out = 0.0;
      fault faults = fault::none;
      omnibal::gpu::detail::ratios_of(backend, amounts.data(),
                                      element_count{amounts.size(), nullptr},
                                      omnibal::gpu::detail::idle_share{}, &out, &faults);
      return faults;
    };
    CHECK(faults_of({largest, 0}) == fault::none);
    CHECK(faults_of({largest, 1}) == fault::overflow);
    CHECK(faults_of({largest, largest, largest}) == fault::overflow);
    CHECK(faults_of({3, -1}) == fault::invalid_amount);
  }
}
