// SPDX-License-Identifier: Apache-2.0
// The balancers on small blocks of the device: with the thread sanitizer tests/cuda/balance.cu does
// not come to an end.

#include "../serial_balance.hpp"
#include "catch.hpp"
#include "cost_shapes.hpp"
#include "reference/refine_rounds.hpp"
#include "run_block.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/cuda/deal/deal_kernels.hpp>
#include <omnibal/cuda/lpt/lpt_kernels.hpp>
#include <omnibal/cuda/refine_parts/refine_kernels.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace {

namespace detail = omnibal::gpu::detail;
using omnibal::grouping;
using test::cost_list;
using test::step_costs;

constexpr int threads = 64;

/// A backend for algorithms that take one launch of blocks.
struct block_backend {
  template <class T>
  [[nodiscard]] T* scratch(std::size_t) {
    return nullptr;
  }
  template <class F>
  void for_each(std::size_t n, F const& f) {
    for (std::size_t i = 0; i != n; ++i) f(i);
  }
  template <int, class F>
  void for_each_block(std::size_t blocks, std::size_t shared_bytes, F const& f) {
    for (std::size_t index = 0; index != blocks; ++index) {
      stand_in::run_block<threads>(shared_bytes, [&](auto& block) { f(block, index); });
    }
    launches += blocks;
  }
  template <class Key, class Value>
  void sort_pairs(Key*, Value*, std::size_t, int, int) {}
  template <class T>
  void fill_zero(T*, std::size_t) {}

  std::size_t launches = 0;
};

template <class Algorithm, class Expected>
std::string fault_of(step_costs const& steps, std::size_t parts, Algorithm const& algorithm,
                     Expected const& expected) {
  test::written_parts written = test::room_for(steps.view(), parts);
  block_backend backend;
  algorithm(backend, steps.view(), written.span());
  if (backend.launches != steps.steps()) return "not one launch";
  return test::differs_from_host(written, steps, parts, expected);
}

/// Two steps, one of them small.
step_costs steps_of(cost_list const& costs) {
  step_costs result;
  result.add(costs);
  result.add({7, 0, 7, 7, 3});
  return result;
}

void check_balancers(step_costs const& steps, std::size_t parts) {
  CHECK(fault_of(
            steps, parts,
            [&](auto& backend, auto const& costs, auto const& out) {
              detail::deal(backend, costs, parts, out);
            },
            [&](cost_list const& costs) { return omnibal::deal(costs, parts); }) == "");
  for (auto const policy : {omnibal::count_policy::any, omnibal::count_policy::at_most_one_apart}) {
    CHECK(fault_of(
              steps, parts,
              [&](auto& backend, auto const& costs, auto const& out) {
                detail::lpt(backend, costs, parts, policy, out);
              },
              [&](cost_list const& costs) {
                return omnibal::lpt(costs, parts, std::identity{}, {.count = policy});
              }) == "");
  }
}

template <class Start>
void check_refined(step_costs const& steps, std::size_t parts, Start const& start,
                   double tolerance) {
  grouping const groups = test::start_of_all(steps, parts, start);
  CHECK(fault_of(
            steps, parts,
            [&](auto& backend, auto const& costs, auto const& out) {
              detail::given_parts const given{groups, static_cast<std::uint32_t>(parts)};
              detail::refine_parts(backend, costs, given, tolerance,
                                   detail::round_refiner{10, omnibal::part_counts::free}, out);
            },
            [&](cost_list const& costs) {
              return test::refine_rounds(costs, start(costs, parts), std::identity{},
                                         {.max_overload = tolerance, .rounds = 10});
            }) == "");
}

}  // namespace

TEST_CASE("the balancers have no races") {
  stand_in::set_thread_order(stand_in::thread_order::random);
  for (std::size_t const parts : {3u, 70u, 130u}) {
    std::size_t number = 0;
    for (auto const& shape : test::cost_shapes(parts, 72, parts)) {
      // Threads of the host are slow to meet: a few shapes, others for other parts.
      if (number++ % 8 != parts % 8) continue;
      INFO(shape.name << ", " << parts << " parts");
      step_costs const steps = steps_of(shape.costs);
      check_balancers(steps, parts);
      check_refined(steps, parts, omnibal::deal, 0.001);
    }
  }
}

TEST_CASE("refining has no races where the least loaded part does not help") {
  stand_in::set_thread_order(stand_in::thread_order::random);
  std::size_t number = 0;
  for (auto const& shape : test::cost_shapes(5, 14, 5)) {
    if (number++ % 4 != 0) continue;
    INFO(shape.name);
    check_refined(steps_of(shape.costs), 5, test::consecutive, 0.0);
  }
}
