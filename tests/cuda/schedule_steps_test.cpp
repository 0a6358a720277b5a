// SPDX-License-Identifier: Apache-2.0
#include "parts.hpp"
#include "samples.hpp"
#include "support/serial_backend.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/cuda/schedule_steps/schedule_steps_kernels.hpp>
#include <omnibal/detail/schedule_rules.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::remainder_policy;
using omnibal::schedule_steps_options;
using omnibal::gpu::device_span;
using omnibal::gpu::fault;
using omnibal::gpu::detail::scratch_meter;
using test::serial_backend;
using test::visit_order;

template <std::size_t R>
using load_vectors = std::vector<omnibal::resources<R>>;
using indices = std::vector<std::uint32_t>;

constexpr remainder_policy policies[] = {remainder_policy::short_step, remainder_policy::repeat,
                                         remainder_policy::carry};

struct written_schedule {
  indices groups;
  fault faults = fault::none;
};

template <class Backend, std::size_t R>
written_schedule run(Backend& backend, load_vectors<R> const& loads, std::size_t ranks,
                     schedule_steps_options const& options) {
  auto const shape = omnibal::detail::shape_of_schedule(loads.size(), options.carried.size(), ranks,
                                                        options.remainder);
  written_schedule result;
  result.groups.assign(shape.cells(), 0xababababu);
  omnibal::gpu::detail::schedule_steps(
      backend, device_span<omnibal::resources<R> const>(loads.data(), loads.size()),
      {options.carried.data(), options.carried.size()}, shape,
      omnibal::detail::schedule_rng(options.seed, options.epoch), options.max_dist_ratio,
      options.rounds, {{result.groups.data(), result.groups.size()}, {&result.faults, 1}});
  return result;
}

/// What differs between the device's algorithm on one thread and the host's.
template <std::size_t R>
std::string fault_of(load_vectors<R> const& loads, std::size_t ranks,
                     schedule_steps_options const& options) {
  serial_backend forward(visit_order::forward);
  written_schedule const written = run(forward, loads, ranks, options);
  if (written.faults != fault::none) return "there is a fault";
  for (visit_order const order : {visit_order::backward, visit_order::shuffled}) {
    serial_backend other(order, ranks);
    if (run(other, loads, ranks, options).groups != written.groups) return "the order matters";
  }
  scratch_meter meter;
  run(meter, loads, ranks, options);
  if (meter.scratch_bytes() != forward.scratch_bytes()) return "the scratch was not measured";

  auto const expected = omnibal::schedule_steps(loads, ranks, options);
  auto const items = expected.cells().items();
  if (!std::equal(items.begin(), items.end(), written.groups.begin(), written.groups.end())) {
    return "the schedule differs";
  }
  return "";
}

}  // namespace

TEMPLATE_TEST_CASE("the schedule of the device is that of the host", "[slow]",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  constexpr std::size_t kinds = TestType::value;
  for (std::size_t const count : {1u, 7u, 60u, 211u}) {
    for (auto const& set : test::cost_sets<kinds>(count, count)) {
      for (std::size_t const ranks : {1u, 2u, 7u, 60u, 300u}) {
        for (remainder_policy const policy : policies) {
          for (double const tolerance : {0.0, 0.005, 0.1}) {
            schedule_steps_options const options{
                .seed = count, .epoch = ranks, .max_dist_ratio = tolerance, .remainder = policy};
            INFO(set.name << ", " << count << " groups, " << ranks << " ranks, policy "
                          << static_cast<int>(policy) << ", tolerance " << tolerance);
            REQUIRE(fault_of(set.samples, ranks, options) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("carried groups come first on the device too") {
  test::random_amounts random(3);
  load_vectors<2> loads(500);
  for (auto& load : loads) load = {random.between(16, 18), random.between(5000, 6000)};
  for (std::size_t const count : {1u, 3u, 70u}) {
    indices carried(count);
    for (std::uint32_t i = 0; i != count; ++i) carried[i] = (i * 37 + 5) % 500;
    for (remainder_policy const policy : policies) {
      for (std::size_t const ranks : {1u, 8u, 64u, 600u}) {
        INFO(count << " carried, policy " << static_cast<int>(policy) << ", " << ranks << " ranks");
        CHECK(fault_of(loads, ranks, {.remainder = policy, .carried = carried}) == "");
      }
    }
  }
}

TEST_CASE("the rounds end where they are asked to") {
  test::random_amounts random(4);
  load_vectors<1> loads(3000);
  for (auto& load : loads) load[0] = random.heavy_tail(1 << 20);
  for (std::uint32_t const rounds : {0u, 1u, 2u, 5u, 32u}) {
    CHECK(fault_of(loads, 8, {.max_dist_ratio = 0, .rounds = rounds}) == "");
  }
}

TEST_CASE("a round is seven launches that end where no cell is to be cut") {
  load_vectors<2> const even(3001, {5, 5});
  indices const carried{0, 1, 2};
  serial_backend few;
  serial_backend many;
  static_cast<void>(run(few, even, 8, {.rounds = 1, .carried = carried}));
  static_cast<void>(run(many, even, 8, {.rounds = 31, .carried = carried}));
  CHECK(many.launches() - few.launches() == 30 * 7);
}

TEST_CASE("the device bears the largest loads, and says what is wrong with them") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  load_vectors<1> const huge{{largest}, {largest}, {largest / 4}, {largest / 16}, {3}, {0}};
  for (std::size_t const ranks : {2u, 3u, 1000u}) {
    CHECK(fault_of(huge, ranks, {.max_dist_ratio = 0}) == "");
  }
  serial_backend backend;
  load_vectors<2> const negative{{1, 2}, {3, -4}, {5, 6}};
  CHECK(run(backend, negative, 2, {}).faults == fault::invalid_amount);
  indices const carried{1, 3};
  load_vectors<2> const good{{1, 2}, {3, 4}, {5, 6}};
  CHECK(run(backend, good, 2, {.carried = carried}).faults == fault::unknown_index);
  CHECK(run(backend, load_vectors<2>{}, 2, {}).groups.empty());
}
