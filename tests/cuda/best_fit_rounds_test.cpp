// SPDX-License-Identifier: Apache-2.0
#include "reference/best_fit_rounds.hpp"

#include "samples.hpp"
#include "support/serial_backend.hpp"

#include <omnibal/cuda/best_fit_rounds/best_fit_rounds_kernels.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/outputs.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

namespace gpu = omnibal::gpu;
using gpu::device_span;
using gpu::fault;
using gpu::detail::scratch_meter;
using test::serial_backend;
using test::visit_order;

constexpr visit_order orders[] = {visit_order::forward, visit_order::backward,
                                  visit_order::shuffled};

struct outcome {
  omnibal::packing packing;
  fault faults = fault::none;
};

template <class Amount>
outcome run(std::vector<Amount> const& demands, std::int64_t capacity, visit_order order,
            std::size_t group_room, std::size_t oversized_room) {
  serial_backend backend(order, demands.size());
  outcome result;
  std::vector<std::uint32_t> offsets(group_room + 1, 77);
  std::vector<std::uint32_t> items(demands.size(), 77);
  std::vector<std::uint32_t> oversized(oversized_room, 77);
  std::uint32_t group_count = 77;
  std::uint32_t oversized_count = 77;
  gpu::packing_span const out{
      {device_span(offsets.data(), offsets.size()), device_span(items.data(), items.size()),
       device_span(&group_count, 1)},
      device_span(oversized.data(), oversized.size()),
      device_span(&oversized_count, 1),
      device_span(&result.packing.report, 1),
      device_span(&result.faults, 1)};
  auto const algorithm = [&](auto& on) {
    gpu::detail::best_fit_rounds(on, demands.data(), demands.size(),
                                 static_cast<std::uint64_t>(capacity), 1024, out);
  };
  scratch_meter meter;
  algorithm(meter);
  algorithm(backend);
  CHECK(meter.scratch_bytes() == backend.scratch_bytes());
  CHECK(backend.launches() <= 20);
  if (result.faults != fault::none) return result;
  for (std::size_t g = group_count; g <= group_room; ++g) {
    REQUIRE(offsets[g] == demands.size() - oversized_count);
  }
  offsets.resize(std::size_t{group_count} + 1);
  items.resize(offsets.back());
  result.packing.groups = omnibal::grouping(std::move(offsets), std::move(items));
  oversized.resize(oversized_count);
  result.packing.oversized = std::move(oversized);
  return result;
}

template <class Amount>
void check_same(std::vector<Amount> const& demands, std::int64_t capacity) {
  omnibal::packing expected = test::best_fit_rounds(demands, std::identity{}, capacity);
  for (visit_order const order : orders) {
    outcome result = run(demands, capacity, order, demands.size(), demands.size());
    CHECK(result.faults == fault::none);
    CHECK(result.packing.groups == expected.groups);
    CHECK(result.packing.oversized == expected.oversized);
    // The device's lower bound has no thresholds.
    CHECK(result.packing.report.lower_bound <= expected.report.lower_bound);
    CHECK((result.packing.report.lower_bound == 0) == expected.groups.empty());
    result.packing.report.lower_bound = expected.report.lower_bound;
    CHECK(result.packing.report == expected.report);
  }
}

}  // namespace

TEST_CASE("packings in rounds are those of the host on adversarial sets") {
  for (auto const& set : test::all_sets<1>(1, 150)) {
    CAPTURE(set.name);
    check_same(set.samples, set.capacity[0]);
  }
}

TEST_CASE("packings in rounds are those of the host on many samples") {
  test::random_amounts random(4);
  for (std::int64_t const capacity :
       {std::int64_t{100}, std::int64_t{4096}, std::int64_t{1} << 45}) {
    for (std::int64_t const share : {1, 2, 3, 7, 40, 2000}) {
      CAPTURE(capacity, share);
      std::vector<std::int64_t> uniform(6000);
      std::vector<std::int64_t> tail(6000);
      for (auto& size : uniform) size = random.between(0, capacity / share);
      for (auto& size : tail) size = random.heavy_tail(capacity);
      check_same(uniform, capacity);
      check_same(tail, capacity);
    }
  }
}

TEST_CASE("narrow, unsigned and wrapped demands are packed alike") {
  std::vector<std::uint16_t> const narrow{9, 60000, 3, 3, 40000, 25536, 65535, 0};
  check_same(narrow, 65535);
  check_same(narrow, 40000);
  std::vector<omnibal::resources<1, std::uint8_t>> const wrapped{{200}, {55}, {0}, {255}, {1}};
  check_same(wrapped, 255);
  check_same(std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(), 1, 0},
             std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("too little room and negative demands are faults, and nothing is written outside") {
  std::vector<std::int64_t> const demands{60, 60, 60, 200, 300};
  for (visit_order const order : orders) {
    CHECK(run(demands, 100, order, 3, 2).faults == fault::none);
    CHECK(run(demands, 100, order, 2, 2).faults == fault::no_room);
    CHECK(run(demands, 100, order, 0, 2).faults == fault::no_room);
    CHECK(run(demands, 100, order, 3, 1).faults == fault::no_room);
    CHECK(run(demands, 100, order, 3, 0).faults == fault::no_room);
    CHECK(run(std::vector<std::int64_t>{5, -1, 7}, 100, order, 3, 3).faults ==
          fault::invalid_amount);
  }
}
