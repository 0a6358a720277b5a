#include "samples.hpp"

#include <omnibal/cuda/detail/furthest.hpp>
#include <omnibal/cuda/detail/run_minimax.hpp>
#include <omnibal/cuda/detail/scratch_meter.hpp>
#include <omnibal/cuda/detail/serial_backend.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/partition/minimax.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

namespace detail = omnibal::gpu::detail;
using detail::minimax_plan;
using detail::minimax_search;
using detail::serial_backend;
using detail::visit_order;
using omnibal::empty_stages;
using omnibal::gpu::fault;

constexpr visit_order orders[] = {visit_order::forward, visit_order::backward,
                                  visit_order::shuffled};

constexpr minimax_plan plans[] = {{minimax_search::by_stages, 1},
                                  {minimax_search::by_stages, 31},
                                  {minimax_search::by_chain, 1},
                                  {minimax_search::by_chain, 7}};

struct outcome {
  std::vector<std::uint32_t> boundaries;
  std::int64_t bottleneck = -1;
  fault faults{};
};

template <class T>
outcome run(serial_backend& backend, std::vector<T> const& costs, std::size_t stages,
            empty_stages empty, minimax_plan const& plan) {
  constexpr std::uint32_t untouched = 0xabababab;
  outcome result;
  result.boundaries.assign(stages + 2, untouched);
  detail::run_minimax(backend, costs.data(), costs.size(), stages,
                      empty == empty_stages::forbidden ? 1 : 0,
                      {result.boundaries.data(), &result.bottleneck, &result.faults}, plan);
  CHECK(result.boundaries.back() == untouched);
  result.boundaries.pop_back();
  return result;
}

/// The launches that a call is documented to make.
std::size_t launches(std::size_t layers, int bits, minimax_plan const& plan) {
  bool const by_chain = plan.search == minimax_search::by_chain;
  std::size_t const sums = layers == 0 ? 1 : 3;
  if (!by_chain) return sums + 2 * plan.passes(bits) + 2;
  return layers == 0 ? sums + plan.passes(bits) + 2 : sums + 4 * plan.passes(bits) + 6;
}

template <class T>
void check_against_host(std::vector<T> const& costs, std::size_t stages, empty_stages empty,
                        minimax_plan const& plan) {
  auto const expected = omnibal::minimax(costs, stages, std::identity{}, {.empty = empty});
  for (visit_order const order : orders) {
    INFO("plan " << static_cast<int>(plan.search) << ", " << plan.candidates << " candidates, "
                 << costs.size() << " layers, " << stages << " stages");
    serial_backend backend(order, costs.size());
    outcome const found = run(backend, costs, stages, empty, plan);
    REQUIRE(found.faults == fault::none);
    REQUIRE(found.bottleneck == expected.bottleneck);
    REQUIRE(found.boundaries == expected.boundaries);
    int const bits = std::min(std::numeric_limits<T>::digits, 63);
    CHECK(backend.launches() == launches(costs.size(), bits, plan));
    detail::scratch_meter meter;
    detail::run_minimax(meter, costs.data(), costs.size(), stages, 1, {}, plan);
    CHECK(meter.scratch_bytes() == backend.scratch_bytes());
  }
}

template <class T>
void check_all_plans(std::vector<T> const& costs, std::size_t stages) {
  for (minimax_plan const& plan : plans) {
    check_against_host(costs, stages, empty_stages::allowed, plan);
    if (stages > costs.size()) continue;
    check_against_host(costs, stages, empty_stages::forbidden, plan);
  }
}

using costs_type = std::vector<std::int64_t>;

/// Chains on which a search fails most easily.
std::vector<std::pair<std::string, costs_type>> chains(std::size_t count, std::uint64_t seed) {
  test::random_amounts random(seed);
  std::vector<std::pair<std::string, costs_type>> result;
  auto const add = [&](std::string name, auto const& cost) {
    costs_type costs(count);
    for (std::size_t i = 0; i != count; ++i) costs[i] = cost(i);
    result.emplace_back(std::move(name), std::move(costs));
  };
  std::int64_t const most = std::numeric_limits<std::int64_t>::max();
  auto const last = static_cast<std::int64_t>(count);
  add("zeros", [](std::size_t) { return 0; });
  add("ones", [](std::size_t) { return 1; });
  add("small", [&](std::size_t) { return random.between(0, 10); });
  add("large", [&](std::size_t) { return random.between(0, most / (last + 1)); });
  add("heavy tail", [&](std::size_t) { return random.heavy_tail(1 << 30); });
  add("one giant", [&](std::size_t i) { return i == count / 2 ? std::int64_t{1} << 50 : 3; });
  add("giants at the ends", [&](std::size_t i) {
    return i == 0 || i + 1 == count ? std::int64_t{1} << 40 : random.between(0, 5);
  });
  add("ascending", [](std::size_t i) { return static_cast<std::int64_t>(i); });
  add("descending", [&](std::size_t i) { return static_cast<std::int64_t>(count - i); });
  add("mostly zeros", [&](std::size_t) { return random.between(0, 19) / 19; });
  add("two blocks", [&](std::size_t i) { return i < count / 2 ? 1 : 3; });
  return result;
}

}  // namespace

TEST_CASE("minimax on the device gives what it gives on the host") {
  for (std::size_t const count : {1u, 2u, 3u, 10u, 33u, 100u}) {
    for (auto const& [name, costs] : chains(count, count)) {
      INFO(name);
      for (std::size_t const stages : {1u, 2u, 3u, 7u, 32u, 100u, 130u}) {
        check_all_plans(costs, stages);
      }
    }
  }
  for (std::size_t const stages : {1u, 5u}) check_all_plans(costs_type{}, stages);
}

TEST_CASE("minimax on the device gives the host's stages of thousands of small chains") {
  test::random_amounts random(3);
  for (int round = 0; round != 3000; ++round) {
    INFO(round);
    auto const count = static_cast<std::size_t>(random.between(0, 25));
    auto const stages = static_cast<std::size_t>(random.between(1, 30));
    auto const most = std::int64_t{1} << random.between(0, 40);
    costs_type costs(count);
    for (auto& cost : costs) cost = random.between(0, most);
    auto const& plan = plans[static_cast<std::size_t>(round) % std::size(plans)];
    bool const may_be_empty = stages > count || round % 8 < 4;
    check_against_host(costs, stages,
                       may_be_empty ? empty_stages::allowed : empty_stages::forbidden, plan);
  }
}

TEST_CASE("minimax on the device gives the host's stages of large chains") {
  for (std::size_t const count : {4096u, 4097u, 30000u}) {
    for (auto const& [name, costs] : chains(count, count)) {
      INFO(name);
      for (std::size_t const stages : {2u, 40u, 4000u}) {
        check_against_host(costs, stages, empty_stages::forbidden, {minimax_search::by_chain, 3});
      }
      check_against_host(costs, 40, empty_stages::forbidden, {minimax_search::by_stages, 63});
    }
  }
}

TEST_CASE("minimax on the device follows its plan for 1e5 layers") {
  test::random_amounts random(4);
  costs_type costs(100000);
  for (auto& cost : costs) cost = random.heavy_tail(1 << 20);
  for (std::size_t const stages : {16u, 2000u}) {
    check_against_host(costs, stages, empty_stages::forbidden,
                       detail::plan_minimax(costs.size(), stages));
  }
  CHECK(detail::plan_minimax(100000, 16).search == minimax_search::by_stages);
  CHECK(detail::plan_minimax(100000, 2000).search == minimax_search::by_chain);
}

TEST_CASE("minimax on the device takes integers of every width") {
  test::random_amounts random(5);
  auto const check = [&]<class T>(T most) {
    std::vector<T> costs(300);
    for (T& cost : costs) {
      cost = static_cast<T>(random.between(0, static_cast<std::int64_t>(most)));
    }
    costs[7] = most;
    check_all_plans(costs, 20);
  };
  check(std::numeric_limits<std::int8_t>::max());
  check(std::numeric_limits<std::uint8_t>::max());
  check(std::numeric_limits<std::int16_t>::max());
  check(std::numeric_limits<std::int32_t>::max());
  check(std::numeric_limits<std::uint32_t>::max());
  check(std::uint64_t{1} << 54);
}

TEST_CASE("minimax on the device finds costs that are not valid") {
  auto const faults_of = [](auto const& costs) {
    fault found{};
    for (minimax_plan const& plan : plans) {
      serial_backend backend;
      found = run(backend, costs, 3, empty_stages::forbidden, plan).faults;
    }
    return found;
  };
  std::int64_t const most = std::numeric_limits<std::int64_t>::max();
  costs_type costs(5000, 0);
  costs[4000] = most;
  CHECK(faults_of(costs) == fault::none);
  costs[10] = 1;
  CHECK(faults_of(costs) == fault::overflow);
  CHECK(faults_of(costs_type(5000, most)) == fault::overflow);
  costs[10] = -1;
  CHECK(faults_of(costs) == fault::invalid_amount);
  costs[10] = std::numeric_limits<std::int64_t>::min();
  CHECK(faults_of(costs) == fault::invalid_amount);
  CHECK(faults_of(std::vector<std::uint64_t>{1, 2, std::uint64_t{1} << 63}) ==
        fault::invalid_amount);
  CHECK(faults_of(std::vector<std::int8_t>{1, 2, -1}) == fault::invalid_amount);
}

TEST_CASE("a plan makes enough passes to end with a single number") {
  for (std::size_t const candidates : {1u, 3u, 7u, 31u, 4095u}) {
    minimax_plan const plan{minimax_search::by_chain, candidates};
    for (int const bits : {7, 8, 31, 32, 63}) {
      std::uint64_t range = ~std::uint64_t{0} >> (64 - bits);
      for (std::size_t pass = 0; pass != plan.passes(bits); ++pass) {
        range /= candidates + 1;
      }
      CHECK(range == 0);
    }
  }
}

TEST_CASE("limits lie evenly in their range, below its upper end") {
  detail::minimax_state state{10, 20, 0};
  for (std::size_t k = 0; k != 4; ++k) CHECK(state.limit(k, 4) == 12 + 2 * k);
  state.high = 11;
  for (std::size_t k = 0; k != 7; ++k) CHECK(state.limit(k, 7) == 10);
  state = {0, ~std::uint64_t{0} >> 1, 0};
  CHECK(state.limit(4094, 4095) < state.high);
  CHECK(state.limit(0, 4095) == state.high / 4096);
}

TEST_CASE("a search finds the furthest distance from every guess") {
  for (std::uint32_t most = 1; most != 70; ++most) {
    for (std::uint32_t answer = 1; answer <= most; ++answer) {
      auto const fits = [&](std::uint32_t d) {
        REQUIRE(d >= 1);
        REQUIRE(d <= most);
        return d <= answer;
      };
      for (std::uint32_t likely = 0; likely < 90; likely += 1 + likely / 3) {
        REQUIRE(detail::furthest(fits, most, likely) == answer);
        detail::serial_block block(32, 0, visit_order::shuffled, most);
        REQUIRE(detail::furthest(block, fits, most, likely) == answer);
      }
    }
  }
  // At the largest sizes.
  std::uint32_t const most = 0xfffffffe;
  for (std::uint32_t const answer : {1u, 2u, 0x7fffffffu, 0x80000000u, 0xfffffffdu, most}) {
    auto const fits = [&](std::uint32_t d) { return d <= answer; };
    for (std::uint32_t const likely : {0u, 1000u, 0x80000000u, most}) {
      CHECK(detail::furthest(fits, most, likely) == answer);
      detail::serial_block block(32, 0, visit_order::backward, 1);
      CHECK(detail::furthest(block, fits, most, likely) == answer);
    }
  }
}
