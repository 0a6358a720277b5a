// SPDX-License-Identifier: Apache-2.0
// Costs, predicates and memory rules that say something else at every call: an error, or stages of
// the chain, and an end in any case.

#include "samples.hpp"

#include <omnibal/partition/neighbors.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/partition/search_cuts.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::empty_stages;
using omnibal::solve_status;

/// How a functor lies, and the chain that it lies about.
struct liar {
  std::uint64_t seed;
  std::size_t layers;
  std::size_t stages;
  mutable test::random_amounts random{seed};

  [[nodiscard]] bool lies() const { return seed % 3 == 0 || random.between(0, 15) == 0; }
  template <class C>
  [[nodiscard]] C cost(std::size_t first, std::size_t last) const {
    auto const length = static_cast<std::int64_t>(last - first);
    std::int64_t const noise = lies() ? random.between(0, seed % 2 == 0 ? 5 : 1000) : 0;
    return static_cast<C>(10 * length + noise) * (seed % 5 == 0 ? C{1} : static_cast<C>(3) / C{2});
  }
  [[nodiscard]] bool fits() const { return !lies() || random.between(0, 3) != 0; }
  [[nodiscard]] std::int64_t bytes(std::size_t first, std::size_t last) const {
    return static_cast<std::int64_t>(last - first) * 10 + (lies() ? random.between(0, 90) : 0);
  }
};

/// What a lie has led to: `errors` of them name it.
struct outcomes {
  int results = 0;
  int errors = 0;
};

template <class Call>
void check_ends(liar const& made, outcomes& seen, Call const& call) {
  try {
    auto const result = call();
    ++seen.results;
    if (result.status != solve_status::solved) return;
    REQUIRE(result.boundaries.size() == made.stages + 1);
    REQUIRE(result.boundaries.front() == 0);
    REQUIRE(result.boundaries.back() == made.layers);
    for (std::size_t s = 0; s != made.stages; ++s) {
      REQUIRE(result.boundaries[s] <= result.boundaries[s + 1]);
    }
  } catch (std::invalid_argument const& error) {
    ++seen.errors;
    std::string const text = error.what();
    CAPTURE(text);
    CHECK(text.find("must be equal for equal arguments") != std::string::npos);
  }
}

omnibal::partition_constraints constraints_of(liar const& made) {
  omnibal::partition_constraints result;
  if (made.seed % 4 == 1) result.empty = empty_stages::allowed;
  if (made.seed % 3 == 1) {
    result.bytes = std::vector<std::int64_t>(made.layers, 10);
    auto const room = static_cast<std::int64_t>(10 * made.layers / made.stages);
    result.capacity = {room + static_cast<std::int64_t>(made.seed % 5) * 10};
    if (made.stages % 2 == 0 && made.seed % 2 == 0) {
      result.devices = made.stages / 2;
      result.capacity = {2 * room + static_cast<std::int64_t>(made.seed % 4) * 10};
    }
  }
  if (made.layers > 4 && made.seed % 7 == 3) result.forbidden_cuts = {2};
  return result;
}

template <class C>
void check_partitions(liar const& made, outcomes& seen) {
  auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
    return made.template cost<C>(first, last);
  };
  auto const fits = [&](std::size_t, std::size_t, std::size_t) { return made.fits(); };
  auto const bytes = [&](std::size_t, std::size_t first, std::size_t last) {
    return made.bytes(first, last);
  };
  auto const capacity = static_cast<std::int64_t>(20 * made.layers / made.stages);
  omnibal::memory_rule const rule{bytes, capacity};
  for (bool const with_base : {false, true}) {
    omnibal::partition_layers_options<C> options{.constraints = constraints_of(made)};
    options.labels = made.seed % 9 == 0 ? 200 : 100'000;
    if (with_base) options.base = std::vector<C>(made.layers, C{10});
    omnibal::partition_throughput_options<C> const step{.micro_batches = 1 + made.seed % 6,
                                                        .base = options.base,
                                                        .constraints = options.constraints,
                                                        .labels = options.labels};
    auto const n = made.layers;
    auto const p = made.stages;
    check_ends(made, seen, [&] { return omnibal::partition_layers(n, p, cost, {}, options); });
    check_ends(made, seen, [&] { return omnibal::partition_layers(n, p, cost, fits, options); });
    check_ends(made, seen, [&] { return omnibal::partition_layers(n, p, cost, rule, options); });
    check_ends(made, seen, [&] { return omnibal::partition_throughput(n, p, cost, fits, step); });
    check_ends(made, seen, [&] { return omnibal::partition_throughput(n, p, cost, rule, step); });
  }
}

}  // namespace

TEST_CASE("a stage cost, predicate or memory rule that changes is an error or does no harm") {
  outcomes seen;
  for (std::uint64_t seed = 0; seed != 200; ++seed) {
    CAPTURE(seed);
    test::random_amounts random(seed);
    auto const stages = static_cast<std::size_t>(random.between(1, 6));
    auto const layers = stages + static_cast<std::size_t>(random.between(0, 34));
    liar const made{seed, layers, stages};
    check_partitions<double>(made, seen);
    check_partitions<std::int64_t>(made, seen);
  }
  CHECK(seen.results > 100);
  CHECK(seen.errors > 100);
}

TEST_CASE("a stage cost that is measured at every call is named with both values") {
  test::random_amounts random(1);
  auto const measured = [&](std::size_t, std::size_t first, std::size_t last) {
    return static_cast<double>(last - first) * 10 + static_cast<double>(random.between(0, 99)) / 20;
  };
  for (int i = 0; i != 50; ++i) {
    try {
      static_cast<void>(omnibal::partition_layers(40, 4, measured));
    } catch (std::invalid_argument const& error) {
      std::string const text = error.what();
      CAPTURE(text);
      CHECK(text.find("omnibal::partition_layers: stage_cost(") == 0);
      CHECK(text.find(") was ") != std::string::npos);
      CHECK(text.find(" and is now ") != std::string::npos);
    }
  }
}

TEST_CASE("layer costs, scores and measured times that change do no harm") {
  for (std::uint64_t seed = 0; seed != 100; ++seed) {
    test::random_amounts random(seed);
    std::vector<int> const layers(20, 1);
    auto const any = [&](int) { return random.between(0, 100); };
    auto const found = omnibal::partition_minimax(layers, 4, any);
    CHECK(found.boundaries.back() == 20);
    CHECK(omnibal::partition_minimax(layers, std::vector{1.0, 2.0, 1.5}, any).boundaries.back() ==
          20);
    auto const score = [&](std::size_t, std::size_t, std::size_t) { return random.between(0, 9); };
    auto const whole = [&](std::span<std::uint32_t const>) { return random.between(0, 9); };
    auto const near = omnibal::neighbors(found.boundaries, 2);
    CHECK(!omnibal::search_cuts(near, score, 5, whole).candidates.empty());
    CHECK(!omnibal::search_cuts(near, whole, 5, whole).candidates.empty());
  }
}

TEST_CASE("a memory rule that lacks as much as there can be has a stage") {
  struct endless {
    [[nodiscard]] std::int64_t missing_bytes(std::size_t, std::size_t, std::size_t) const {
      return std::numeric_limits<std::int64_t>::max();
    }
    [[nodiscard]] bool operator()(std::size_t, std::size_t, std::size_t) const { return false; }
  };
  auto const one = [](std::size_t, std::size_t, std::size_t) { return 1; };
  auto const result = omnibal::partition_layers(5, 2, one, endless{});
  CHECK(result.status == solve_status::infeasible);
  CHECK(result.missing_bytes > 0);
}
