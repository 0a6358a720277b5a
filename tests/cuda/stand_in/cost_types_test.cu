// SPDX-License-Identifier: Apache-2.0
// Costs of all types are balanced as the host balances them.

#include "catch.hpp"
#include "launch.hpp"
#include "reference/refine_rounds.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/cuda/deal.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/lpt.cuh>
#include <omnibal/cuda/refine_parts.cuh>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <type_traits>
#include <vector>

namespace {

namespace gpu = omnibal::gpu;
using omnibal::grouping;

constexpr std::size_t parts = 5;

/// Steps of costs; sums of floating-point ones are at a power of two, too, and near one.
template <class T>
std::vector<std::vector<T>> steps_of(std::size_t largest) {
  std::vector<std::vector<T>> result;
  for (std::size_t const count : {largest, std::size_t{0}, std::size_t{1}, largest / 2}) {
    std::vector<T> costs;
    for (std::size_t i = 0; i != count; ++i) costs.push_back(static_cast<T>(random() >> 3));
    result.push_back(costs);
  }
  if constexpr (std::is_floating_point_v<T>) {
    for (T& cost : result[0]) cost *= T(0x1p-90);
    // In this order the last costs are too small to bring the sum to one, which halves the second.
    std::vector<T> below_one{T(0), T(0x1p-62), T(0x1.fffffep-1), T(0x1.fffffep-25), T(0x1.fp-49)};
    below_one.insert(below_one.end(), 40, T(0x1p-56));
    result.push_back(below_one);
    result.push_back({T(0.5), T(0.25), T(0.125), T(0.125)});
    result.push_back({T(0x1.fffffep127), T(0x1.fffffep127), T(0), T(1)});
  }
  return result;
}

template <class T, class Algorithm, class Expected>
void check_equal(std::size_t bound, Algorithm const& algorithm, Expected const& expected) {
  auto const exec = gpu::on(cudaStreamPerThread);
  auto const steps = steps_of<T>(200);
  std::vector<T> all;
  std::vector<std::uint32_t> offsets{0};
  grouping wanted;
  for (auto const& costs : steps) {
    grouping const of_step = expected(costs);
    for (std::size_t part = 0; part != parts; ++part) {
      for (std::uint32_t const item : of_step[part]) wanted.push(item + offsets.back());
      wanted.close();
    }
    all.insert(all.end(), costs.begin(), costs.end());
    offsets.push_back(static_cast<std::uint32_t>(all.size()));
  }
  // Behind the last step, not to be looked at.
  std::size_t const count = all.size();
  all.resize(std::max(count, bound), T(7));
  auto const on_device = gpu::upload(exec, all);
  auto const of_steps = gpu::upload(exec, offsets);
  gpu::device_grouping<> const groups(exec, parts * steps.size(), all.size());
  algorithm(exec, gpu::cost_steps(on_device, of_steps, std::max(bound, count)),
            gpu::part_span{groups.out()});
  grouping const found = groups.download(exec);
  REQUIRE(found.size() == wanted.size());
  for (std::size_t group = 0; group != wanted.size(); ++group) {
    REQUIRE(std::ranges::equal(found[group], wanted[group]));
  }
}

template <class T>
void check_all(std::size_t bound) {
  check_equal<T>(
      bound,
      [](auto const& exec, auto const& steps, auto const& out) {
        gpu::deal(exec, steps, parts, out);
      },
      [](std::vector<T> const& costs) { return omnibal::deal(costs, parts); });
  check_equal<T>(
      bound,
      [](auto const& exec, auto const& steps, auto const& out) {
        gpu::lpt(exec, steps, parts, {}, out);
      },
      [](std::vector<T> const& costs) { return omnibal::lpt(costs, parts); });
  check_equal<T>(
      bound,
      [](auto const& exec, auto const& steps, auto const& out) {
        gpu::refine_parts(exec, steps, parts, {.max_overload = 0.001, .rounds = 5}, out);
      },
      [](std::vector<T> const& costs) {
        return test::refine_rounds(costs, omnibal::deal(costs, parts), std::identity{},
                                   {.max_overload = 0.001, .rounds = 5});
      });
}

TEST_CASE("costs of all types are balanced as on the host", "[balance]") {
  stand_in::set_thread_order(
      GENERATE(stand_in::thread_order::ascending, stand_in::thread_order::random));
  // In a block, and sorted at first.
  std::size_t const bound = GENERATE(std::size_t{0}, std::size_t{9000});
  SECTION("64 bits") { check_all<std::int64_t>(bound); }
  SECTION("32 bits") { check_all<std::int32_t>(bound); }
  SECTION("without a sign") { check_all<std::uint32_t>(bound); }
  SECTION("floating-point numbers") { check_all<float>(bound); }
}

TEST_CASE("costs of other types that are wrong are faults", "[balance]") {
  auto const exec = gpu::on(cudaStreamPerThread);
  auto const faults_of = [&](auto const& costs) {
    auto const on_device = gpu::upload(exec, costs);
    auto const word = gpu::upload(exec, std::vector(1, gpu::fault::none));
    gpu::device_grouping<> const groups(exec, parts, costs.size());
    gpu::deal(exec, on_device, parts, gpu::part_span{groups.out(), {}, word});
    return gpu::download(exec, word).front();
  };
  CHECK(faults_of(std::vector<std::uint32_t>{~0u, ~0u, 0}) == gpu::fault::none);
  CHECK(faults_of(std::vector<std::int32_t>{1, -1, 2}) == gpu::fault::invalid_amount);
  for (float const wrong : {-1.0f, HUGE_VALF, std::nanf("")}) {
    CHECK(faults_of(std::vector<float>{1.0f, wrong}) == gpu::fault::invalid_amount);
  }
}

TEST_CASE("scratch for costs of other types is counted", "[balance]") {
  auto const bytes = [](auto of_type) {
    gpu::cost_steps const steps(gpu::device_span<decltype(of_type) const>(nullptr, 512));
    return gpu::deal.scratch_bytes(steps, parts,
                                   gpu::part_span{{{nullptr, parts + 1}, {nullptr, 512}, {}}});
  };
  CHECK(bytes(std::int64_t{}) == 0);
  CHECK(bytes(std::int32_t{}) == 512 * 8);
  CHECK(bytes(float{}) == 512 * 8);
}

}  // namespace
