// SPDX-License-Identifier: Apache-2.0 All local searches in a program with OMNIBAL_CHECK_GAINS: a
// move whose claimed gain is not the real one aborts the program. The other programs are compiled
// without checks.
#include "samples.hpp"

#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/detail/checked_gain.hpp>
#include <omnibal/experts/place_experts.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

namespace {

static_assert(omnibal::detail::checks_gains);

/// Samples without ties, with many ties, with many zeros, with a heavy tail and with giants.
template <std::size_t R, class T>
std::vector<omnibal::resources<R, T>> random_samples(std::uint64_t seed, std::size_t count,
                                                     std::int64_t limit) {
  test::random_amounts random(seed);
  std::vector<omnibal::resources<R, T>> samples(count);
  for (auto& sample : samples) {
    for (T& amount : sample.amounts) {
      std::int64_t whole = 0;
      switch (seed % 5) {
        case 0: whole = random.between(1, limit); break;
        case 1: whole = random.between(1, 3) * (limit / 4); break;
        case 2: whole = random.between(0, 1) * random.between(1, limit); break;
        case 3: whole = random.heavy_tail(limit); break;
        default: whole = random.between(0, 19) == 0 ? limit : random.between(1, limit / 20 + 1);
      }
      amount = static_cast<T>(whole);
      // Sevenths cannot be added without rounding.
      if constexpr (std::floating_point<T>) amount /= 7;
    }
  }
  return samples;
}

/// Each sample is in one of the first `used` parts.
omnibal::grouping random_parts(test::random_amounts& random, std::size_t samples, std::size_t parts,
                               std::size_t used) {
  std::vector<std::vector<std::uint32_t>> lists(parts);
  for (std::uint32_t i = 0; i != samples; ++i) {
    lists[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(used) - 1))]
        .push_back(i);
  }
  omnibal::grouping result;
  for (auto const& list : lists) {
    for (std::uint32_t const i : list) result.push(i);
    result.close();
  }
  return result;
}

/// Calls `body(seed, count)` for lists of several lengths.
template <class Body>
void for_each_list(Body const& body) {
  for (std::uint64_t seed = 0; seed != 40; ++seed) {
    body(seed, std::size_t{5 + 4 * seed});
  }
}

template <std::size_t R, class T>
void refine_all() {
  for_each_list([](std::uint64_t seed, std::size_t count) {
    auto const samples = random_samples<R, T>(seed, count, 1000 + 37 * static_cast<int>(seed));
    test::random_amounts random(seed);
    std::size_t const count_of_parts = 2 + seed % 6;
    auto const parts = random_parts(random, count, count_of_parts, count_of_parts);
    for (auto const counts : {omnibal::part_counts::free, omnibal::part_counts::kept}) {
      auto const refined = omnibal::refine_parts(samples, parts, std::identity{},
                                                 {.counts = counts, .splits = 64, .seed = seed});
      CHECK(refined.item_count() == count);
    }
  });
}

template <std::size_t R, class T>
void balance_all() {
  for_each_list([](std::uint64_t seed, std::size_t count) {
    auto const samples = random_samples<R, T>(seed, count, 100);
    omnibal::resources<R, T> capacity{};
    for (auto const& sample : samples) capacity += sample;
    for (T& amount : capacity.amounts) amount = amount / 3 + 100;
    auto const cost = [](auto const& sample) { return sample[0] * sample[0] + 1; };
    auto const result = omnibal::balance_under_capacity(samples, 4, cost, std::identity{}, capacity,
                                                        {.splits = 64, .seed = seed});
    CHECK(result.parts.size() <= 4);
  });
}

template <std::size_t R, class T>
void rebalance_all() {
  for_each_list([](std::uint64_t seed, std::size_t count) {
    auto const samples = random_samples<R, T>(seed, count, 1000);
    test::random_amounts random(seed);
    std::vector<std::int64_t> bytes(count);
    for (auto& of_sample : bytes) of_sample = random.between(0, 3) * random.between(0, 50);
    std::size_t const ranks = 2 + seed % 7;
    auto const home = random_parts(random, count, ranks, ranks / (1 + seed % 2));
    std::vector<double> const all_speeds{3, 2, 4, 3, 2, 5, 3, 4};
    std::span const speeds = std::span(all_speeds).first(ranks);
    for (std::size_t const of_node : {1u, 2u}) {
      for (auto const rule : {omnibal::rank_counts::any, omnibal::rank_counts::kept}) {
        for (bool const has_speeds : {false, true}) {
          auto const moved = omnibal::rebalance(
              home, [&](std::uint32_t i) { return samples[i]; },
              [&](std::uint32_t i) { return bytes[i]; },
              {.max_overload = 0.0,
               .ranks_per_node = of_node,
               .counts = rule,
               .speeds = speeds.first(has_speeds ? ranks : 0)});
          CHECK(moved.item_count() == count);
        }
      }
    }
  });
}

template <std::size_t R, class T>
void improve_all() {
  for_each_list([](std::uint64_t seed, std::size_t count) {
    auto const samples = random_samples<R, T>(seed, count, 400);
    omnibal::resources<R, T> capacity{};
    for (T& amount : capacity.amounts) amount = static_cast<T>(seed % 3 == 0 ? 401 : 1000);
    if constexpr (std::floating_point<T>) {
      for (T& amount : capacity.amounts) amount /= 7;
    }
    auto const start = omnibal::next_fit(samples, std::identity{}, capacity);
    for (double const spare : {0.0, 0.5}) {
      auto const better = omnibal::improve_packing(
          samples, std::identity{}, capacity, start,
          {.passes = 30, .even_passes = 8, .spare_groups = spare, .seed = seed});
      CHECK(better.groups.item_count() == start.groups.item_count());
    }
  });
}

template <std::size_t R, class T>
void schedule_all() {
  for_each_list([](std::uint64_t seed, std::size_t count) {
    auto const loads = random_samples<R, T>(seed, 4 * count + seed % 3, 1 << 20);
    for (std::uint32_t const of_rank : {2u, 4u, 18u}) {
      for (double const ratio : {0.01, 0.3}) {
        omnibal::schedule_steps_options options;
        options.seed = seed;
        options.max_dist_ratio = ratio;
        options.groups_per_rank = of_rank;
        options.even_positions = seed % 2 == 1;
        CHECK(omnibal::schedule_steps(loads, 1 + seed % 4, options).ranks() == 1 + seed % 4);
      }
    }
  });
}

/// Returns the message of a process in which `body` aborts; empty if it does not abort.
template <class Body>
std::string message_of_abort(Body const& body) {
  int ends[2] = {};
  REQUIRE(pipe(ends) == 0);
  pid_t const child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    body();
    _exit(0);
  }
  close(ends[1]);
  std::string message;
  char letter = 0;
  while (read(ends[0], &letter, 1) == 1) message.push_back(letter);
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? message : "";
}

/// Applies a move that lowers an objective from 10 to 7.
void move_by_three(std::int64_t claimed, std::int64_t tolerance) {
  std::int64_t objective = 10;
  omnibal::detail::apply_checked(
      {"some_search", "swap"}, claimed, [&] { return objective; }, [&] { objective = 7; },
      tolerance);
}

}  // namespace

TEST_CASE("a wrong gain aborts with the search, the move and both gains") {
  CHECK(message_of_abort([] { move_by_three(4, 0); }) ==
        "omnibal: some_search: swap: the claimed gain is 4, but the real gain is 3\n");
  CHECK(message_of_abort([] { move_by_three(1, 1); }) ==
        "omnibal: some_search: swap: the claimed gain is 1, but the real gain is 3\n");
  CHECK(message_of_abort([] { move_by_three(3, 0); }).empty());
  CHECK(message_of_abort([] { move_by_three(4, 1); }).empty());
  CHECK(message_of_abort([] { move_by_three(2, 1); }).empty());
}

TEST_CASE("part_refiner and pair_repartition claim the real gains in refine_parts") {
  refine_all<1, std::int64_t>();
  refine_all<1, double>();
  refine_all<2, std::int64_t>();
  refine_all<3, double>();
}

TEST_CASE("part_refiner and pair_repartition claim the real gains under a capacity") {
  balance_all<1, std::int64_t>();
  balance_all<1, double>();
  balance_all<2, std::int64_t>();
  balance_all<2, double>();
}

TEST_CASE("placement_search claims the real gains") {
  for_each_list([](std::uint64_t seed, std::size_t count) {
    test::random_amounts random(seed);
    std::size_t const experts = std::max<std::size_t>(count, 4);
    std::vector<std::int64_t> loads(2 * experts);
    for (auto& load : loads) load = random.between(0, 3) * random.between(0, 500);
    std::size_t const ranks = 2 + seed % 5;
    std::size_t const slots = std::min((experts - 1) / ranks + 2, experts);
    auto const placed = omnibal::place_experts(loads, slots, ranks, {.layers = 2, .seed = seed});
    for (auto& load : loads) load += random.between(0, 300);
    auto const moved = omnibal::place_experts(
        loads, slots, ranks, {.layers = 2, .old = placed.experts, .max_moved = experts});
    CHECK(moved.experts.size() == placed.experts.size());
  });
}

TEST_CASE("swap_search claims the real gains and bytes") {
  rebalance_all<1, std::int64_t>();
  rebalance_all<1, double>();
  rebalance_all<2, std::int64_t>();
  rebalance_all<3, double>();
}

TEST_CASE("bin_elimination, annealing_fill and group_evener claim the real gains") {
  improve_all<1, std::int64_t>();
  improve_all<1, double>();
  improve_all<2, std::int64_t>();
  improve_all<3, std::int64_t>();
  improve_all<2, double>();
}

TEST_CASE("load_bundles and step_mixer claim the real gains") {
  schedule_all<1, std::int64_t>();
  schedule_all<1, double>();
  schedule_all<2, std::int64_t>();
  schedule_all<3, double>();
}
