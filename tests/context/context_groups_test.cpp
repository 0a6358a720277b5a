// SPDX-License-Identifier: Apache-2.0
#include "context_faults.hpp"
#include "error_text.hpp"

#include <omnibal/context/context_groups.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::context_groups;
using test::context_faults;
using test::context_question;

/// Work that is shared among the ranks of a group, and a part that grows with their number. Beyond
/// eight ranks links are slower.
omnibal::context_cost shared_cost(std::uint32_t degrees) {
  omnibal::context_cost cost{.micro_step = 40};
  for (std::uint32_t degree = 1; degree <= degrees; ++degree) {
    double const others = (degree - 1.0) / degree;
    double const link = degree <= 8 ? 0.05 : 0.2;
    cost.degrees.push_back(
        {degree == 1 ? 10.0 : 25.0, (1 + link * others) / degree, 0.00002 / degree});
  }
  return cost;
}

/// Lengths of conversations, and now and then a document.
std::vector<std::int64_t> mixed_lengths(std::size_t count, std::uint64_t seed) {
  omnibal::rng::engine random(seed);
  std::vector<std::int64_t> lengths(count);
  for (std::int64_t& length : lengths) {
    bool const is_document = omnibal::rng::below(random, 100) == 0;
    std::uint64_t const octave = is_document ? 4096 + omnibal::rng::below(random, 122'880)
                                             : 64u << omnibal::rng::below(random, 6);
    length = static_cast<std::int64_t>(octave + omnibal::rng::below(random, octave) / 2);
    length = std::min<std::int64_t>(length, 131'072);
  }
  return lengths;
}

context_question mixed_question(std::size_t count, std::uint32_t ranks, std::uint64_t seed) {
  return {.lengths = mixed_lengths(count, seed),
          .ranks = ranks,
          .cost = shared_cost(ranks),
          .options = {.capacity = 16'384}};
}

TEST_CASE("a long document runs on many ranks beside short ones", "[context]") {
  context_question question{.lengths = {131'072, 4'000, 4'000, 4'000, 4'000, 4'000, 4'000, 4'000,
                                        4'000, 4'000, 4'000, 4'000, 4'000, 4'000, 4'000, 4'000},
                            .ranks = 16,
                            .cost = shared_cost(16),
                            .options = {.capacity = 32'768}};
  question.cost.micro_step = 20'000;
  auto const plan = question.plan();
  CHECK(context_faults(question, plan) == "");
  REQUIRE(plan.micro_steps() == 1);
  std::uint32_t most = 0;
  for (auto const& own : plan.groups) most = std::max(most, own.degree);
  CHECK(most >= 4);
  CHECK(plan.groups.size() > 1);
}

TEST_CASE("groups of any mixture keep all promises", "[context]") {
  auto const ranks = GENERATE(8u, 24u, 64u);
  auto const count = GENERATE(std::size_t{1}, std::size_t{7}, std::size_t{100}, std::size_t{700});
  context_question question = mixed_question(count, ranks, count + ranks);
  SECTION("any degree") {}
  SECTION("inside nodes or whole ones") { question.options.ranks_per_node = 8; }
  SECTION("powers of two") { question.options.degrees = omnibal::powers_of_two(ranks); }
  SECTION("divisors in nodes of four, four micro-steps at a time") {
    question.options = {
        .capacity = 20'000, .degrees = omnibal::divisors(24), .ranks_per_node = 4, .multiple = 4};
    for (auto& length : question.lengths) length = std::min<std::int64_t>(length, 100'000);
  }
  SECTION("memory that every sample takes on every rank") {
    question.rank_bytes = 300;
    question.token_bytes = 2;
    question.options.capacity = 40'000;
  }
  SECTION("times that do not fall with the degree") {
    for (auto& time : question.cost.degrees) time = {5, 1, 0.001};
  }
  SECTION("times that do not grow with the length") {
    for (auto& time : question.cost.degrees) time = {5, 0, 0};
  }
  SECTION("a few wide rows, the others narrow") {
    for (std::size_t d = 0; d < question.cost.degrees.size(); d += 3) {
      question.cost.degrees[d].linear *= 3;
    }
  }
  auto const plan = question.plan();
  CHECK(context_faults(question, plan) == "");
  CHECK(plan == question.plan());
  CHECK(plan.digest() == question.plan().digest());

  question.options.effort = omnibal::effort::fast;
  auto const fast = question.plan();
  question.options.effort = omnibal::effort::thorough;
  auto const thorough = question.plan();
  CHECK(context_faults(question, thorough) == "");
  CHECK(plan.makespan <= fast.makespan * (1 + 1e-9));
  CHECK(thorough.makespan <= plan.makespan * (1 + 1e-9));
}

TEST_CASE("ranks of different speed end together", "[context]") {
  auto const ranks = GENERATE(8u, 24u, 64u);
  context_question question = mixed_question(64 * ranks, ranks, ranks);
  question.options.capacity = 400'000;
  SECTION("groups anywhere") {}
  SECTION("inside nodes or whole ones") { question.options.ranks_per_node = 8; }
  SECTION("powers of two") { question.options.degrees = omnibal::powers_of_two(ranks); }
  SECTION("blocks that are no chain") {
    question.options.placement = omnibal::group_placement::blocks;
  }
  auto const same = question.plan();
  question.options.speeds = {3};
  CHECK(question.plan() == same);
  question.options.speeds.assign(ranks, 0.3);
  CHECK(question.plan() == same);

  std::vector<double> slow_rank(ranks, 1.0);
  slow_rank[ranks / 3] = 0.5;
  std::vector<double> slow_half(ranks, 1.5);
  std::fill_n(slow_half.begin(), ranks / 2, 1.0);
  std::vector<double> all_differ(ranks);
  for (std::uint32_t rank = 0; rank != ranks; ++rank) {
    all_differ[rank] = 1 + 0.5 * (rank * 7 % ranks) / ranks;
  }
  for (auto const& speeds : {slow_rank, slow_half, all_differ}) {
    question.options.speeds = speeds;
    auto const plan = question.plan();
    CHECK(context_faults(question, plan) == "");
    // Neighbors whose speeds all differ wait for each other, which the bound does not know.
    CHECK(plan.makespan <= (speeds == all_differ ? 1.15 : 1.03) * plan.lower_bound);
  }
}

TEST_CASE("a plan with a capacity for each rank", "[context]") {
  context_question question = mixed_question(64 * 16, 16, 16);
  question.options.capacity = 400'000;
  auto const same = question.plan();
  question.options.capacities.assign(16, 400'000);
  question.options.capacity = 1;
  CHECK(question.plan() == same);

  // Half of the ranks have twice the memory, which costs no time.
  std::fill_n(question.options.capacities.begin(), 8, 800'000);
  auto const mixed = question.plan();
  CHECK(context_faults(question, mixed) == "");
  CHECK(mixed.makespan <= 1.01 * same.makespan);

  question.options.capacities = {400'000, 400'000};
  auto const text = [&] {
    return test::error_text<std::invalid_argument>([&] { static_cast<void>(question.plan()); });
  };
  CHECK(text() == "omnibal::context_groups: options.capacities has 2 values for 16 ranks");
  question.options.capacities.assign(16, 400'000);
  question.options.capacities[3] = 0;
  CHECK(text() == "omnibal::context_groups: options.capacities[3] is 0, must be positive");
}

TEST_CASE("mixtures of speeds are close to the bound on average", "[context]") {
  double sum = 0;
  constexpr std::uint32_t questions = 400;
  for (std::uint32_t seed = 0; seed != questions; ++seed) {
    omnibal::rng::engine random(seed);
    auto const below = [&](std::uint32_t most) {
      return static_cast<std::uint32_t>(omnibal::rng::below(random, most));
    };
    std::uint32_t const ranks = 2 + below(7);
    context_question question{.lengths = {}, .ranks = ranks, .options = {.capacity = 1'000'000}};
    for (auto left = ranks * (2 + below(30)); left != 0; --left) {
      question.lengths.push_back(100 + below(400));
    }
    question.options.speeds.assign(ranks, 1.0);
    for (double& speed : question.options.speeds) {
      if (below(2) == 1) speed = 0.125 * (1 + below(8));
    }
    for (std::uint32_t degree = 1; degree <= 1 + seed % 3; ++degree) {
      question.cost.degrees.push_back({0.1, 0.01 / degree * (1 + 0.1 * degree), 0});
    }
    auto const plan = question.plan();
    INFO("seed " << seed);
    REQUIRE(context_faults(question, plan) == "");
    sum += plan.makespan / plan.lower_bound;
  }
  CHECK(sum / questions <= 1.018);
}

TEST_CASE("a short sample runs on the fastest rank", "[context]") {
  context_question question{.lengths = {100, 10},
                            .ranks = 4,
                            .cost = {.degrees = {{1, 1, 0}}},
                            .options = {.speeds = {1, 2, 4, 2}}};
  auto const plan = question.plan();
  REQUIRE(plan.groups.size() == 2);
  // The long sample takes 101 on rank 2. The short one takes 21 on the fastest of the other ranks.
  CHECK(plan.groups[0] == omnibal::context_group{1, 1, 21});
  CHECK(plan.groups[1] == omnibal::context_group{2, 1, 101});
  CHECK(plan.makespan == 101);
  CHECK(plan.proven);
}

TEST_CASE("mixtures are within a few per cent of the bound", "[context]") {
  struct aim {
    double mean;
    double worst;
  };
  auto const kind = GENERATE(0, 1, 2);
  aim const most[] = {{1.02, 1.06}, {1.03, 1.06}, {1.04, 1.06}};
  double sum = 0;
  double worst = 0;
  int questions = 0;
  for (std::uint32_t const ranks : {64u, 256u}) {
    for (std::uint64_t seed = 1; seed != 6; ++seed) {
      context_question question = mixed_question(1024, ranks, seed);
      if (kind == 1) question.options.ranks_per_node = 8;
      if (kind == 2) question.options.degrees = omnibal::powers_of_two(ranks);
      auto const plan = question.plan();
      double const ratio = plan.makespan / plan.lower_bound;
      sum += ratio;
      worst = std::max(worst, ratio);
      ++questions;
    }
  }
  CAPTURE(kind, sum / questions, worst);
  CHECK(sum / questions <= most[kind].mean);
  CHECK(worst <= most[kind].worst);
}

TEST_CASE("groups of degrees that are a chain of divisors lie on blocks", "[slow]") {
  // The exact search opens the groups of this step as 1, 2 and 1 ranks.
  test::context_question small{
      .lengths = {8, 6, 3, 4, 5, 5}, .ranks = 4, .options = {.capacity = 8, .degrees = {1, 2, 4}}};
  for (int degree = 1; degree <= 4; ++degree) {
    small.cost.degrees.push_back({static_cast<double>(degree), 1.0 / degree, 0});
  }
  auto const found = small.plan();
  CHECK(test::context_faults(small, found) == "");
  CHECK(found.makespan == 9.5);
  CHECK(found.proven);
  REQUIRE(found.groups.size() == 3);
  CHECK(found.groups[0].degree == 2);
  CHECK(found.groups[1].first_rank == 2);

  std::vector<std::uint32_t> const chains[] = {
      {1, 2, 4, 8}, {1, 3, 6}, {2, 4, 12}, {1, 2, 4, 8, 24}};
  for (std::uint32_t k = 0; k != 30'000; ++k) {
    omnibal::rng::engine random(k);
    test::context_question question;
    question.options.degrees = chains[omnibal::rng::below(random, 4)];
    // Any number of ranks, or nodes that the small degrees divide.
    question.ranks = static_cast<std::uint32_t>(2 + omnibal::rng::below(random, 23));
    if (omnibal::rng::below(random, 3) == 0) {
      question.options.ranks_per_node = 12;
      question.options.degrees = {1, 2, 4, 12, 24};
      question.ranks = 24;
    }
    auto const fixed = static_cast<double>(omnibal::rng::below(random, 4));
    for (std::uint32_t degree = 1; degree <= question.ranks; ++degree) {
      question.cost.degrees.push_back({fixed * degree, 1.0 / degree, 0.125 / degree});
    }
    question.options.capacity = static_cast<std::int64_t>(8 + omnibal::rng::below(random, 8));
    question.options.effort = k % 3 == 0 ? omnibal::effort::fast : omnibal::effort::normal;
    for (auto left = 2 + omnibal::rng::below(random, 14); left != 0; --left) {
      question.lengths.push_back(static_cast<std::int64_t>(1 + omnibal::rng::below(random, 16)));
    }
    INFO("seed " << k);
    auto const plan = question.plan();
    if (plan.status != omnibal::solve_status::solved) continue;
    REQUIRE(test::context_faults(question, plan) == "");
  }
}

TEST_CASE("an option puts groups of any degrees on blocks", "[context]") {
  // Groups of three and of two ranks have blocks on six ranks, [0,3) and [4,6), and none on five.
  test::context_question pair{
      .lengths = {3, 2}, .ranks = 5, .options = {.capacity = 1, .degrees = {2, 3}}};
  for (int degree = 1; degree <= 6; ++degree) pair.cost.degrees.push_back({1, 1.0 / degree, 0});
  pair.cost.micro_step = 8;
  CHECK(pair.plan().micro_steps() == 1);
  pair.options.placement = omnibal::group_placement::blocks;
  auto const apart = pair.plan();
  CHECK(test::context_faults(pair, apart) == "");
  CHECK(apart.micro_steps() == 2);
  CHECK(apart.proven);
  pair.ranks = 6;
  auto const together = pair.plan();
  CHECK(test::context_faults(pair, together) == "");
  CHECK(together.micro_steps() == 1);

  for (std::uint32_t k = 0; k != 3'000; ++k) {
    omnibal::rng::engine random(k);
    test::context_question question;
    question.ranks = static_cast<std::uint32_t>(2 + omnibal::rng::below(random, 23));
    question.options.placement = omnibal::group_placement::blocks;
    if (omnibal::rng::below(random, 3) == 0) {
      question.options.ranks_per_node = 6;
      question.ranks = 24;
    }
    if (omnibal::rng::below(random, 2) == 0) question.options.degrees = {1, 2, 3, 4, 6, 12};
    for (std::uint32_t degree = 1; degree <= question.ranks; ++degree) {
      question.cost.degrees.push_back({1, 1.0 / degree, 0.125 / degree});
    }
    question.options.capacity = static_cast<std::int64_t>(8 + omnibal::rng::below(random, 8));
    question.options.effort = k % 3 == 0 ? omnibal::effort::fast : omnibal::effort::normal;
    for (auto left = 2 + omnibal::rng::below(random, 30); left != 0; --left) {
      question.lengths.push_back(static_cast<std::int64_t>(1 + omnibal::rng::below(random, 16)));
    }
    INFO("seed " << k);
    auto const plan = question.plan();
    if (plan.status != omnibal::solve_status::solved) continue;
    REQUIRE(test::context_faults(question, plan) == "");
  }
}

TEST_CASE("samples that leave ranks idle take more ranks than they need", "[context]") {
  // One more sample than ranks: with one rank for each a second micro-step would be nearly empty.
  context_question question{.lengths = std::vector<std::int64_t>(65, 4096), .ranks = 64};
  for (std::uint32_t degree = 1; degree <= question.ranks; ++degree) {
    question.cost.degrees.push_back({0, 1.0 / degree, 0});
  }
  auto const plan = question.plan();
  CHECK(context_faults(question, plan) == "");
  CHECK(plan.makespan < 1.05 * plan.lower_bound);

  // Documents that need two ranks for their memory, a few more than there are pairs.
  context_question documents = mixed_question(0, 16, 1);
  for (std::int64_t k = 0; k != 44; ++k) documents.lengths.push_back(30'000 + 50 * k);
  auto const many = documents.plan();
  CHECK(context_faults(documents, many) == "");
  CHECK(many.makespan < 1.02 * many.lower_bound);
}

TEST_CASE("powers of two are about as good as two levels with the best degrees", "[context]") {
  double sum = 0;
  double worst = 0;
  for (std::uint64_t seed = 1; seed != 9; ++seed) {
    context_question question = mixed_question(512, 256, seed);
    question.options.degrees = omnibal::powers_of_two(question.ranks);
    auto const plan = question.plan();
    REQUIRE(context_faults(question, plan) == "");
    auto const best_of = [](context_question level) {
      double best = std::numeric_limits<double>::infinity();
      for (std::uint32_t const degree : omnibal::powers_of_two(level.ranks)) {
        level.options.degrees = {degree};
        auto const own = level.plan();
        if (own.status == omnibal::solve_status::solved) best = std::min(best, own.makespan);
      }
      return best;
    };
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t const longest : {1'024, 4'096, 16'384}) {
      context_question levels[] = {question, question};
      for (auto& level : levels) level.lengths.clear();
      for (std::int64_t const length : question.lengths) {
        levels[length <= longest ? 0 : 1].lengths.push_back(length);
      }
      least = std::min(least, best_of(levels[0]) + best_of(levels[1]));
    }
    sum += plan.makespan / least;
    worst = std::max(worst, plan.makespan / least);
  }
  CAPTURE(sum / 8, worst);
  CHECK(sum <= 8 * 1.007);
  CHECK(worst <= 1.03);
}

TEST_CASE("no plan is worse than one of less effort", "[context]") {
  for (std::uint64_t seed = 0; seed != 300; ++seed) {
    omnibal::rng::engine random(seed);
    context_question question{.lengths = {}, .ranks = 2u << omnibal::rng::below(random, 5)};
    double const shared = static_cast<double>(20 + omnibal::rng::below(random, 120));
    for (std::uint32_t degree = 1; degree <= question.ranks; ++degree) {
      double const others = degree == 1 ? 0 : 1;
      question.cost.degrees.push_back(
          {shared * others, 1.0 / degree + 0.02 * others, 0.001 / degree});
    }
    question.options.capacity = static_cast<std::int64_t>(300 + omnibal::rng::below(random, 2000));
    question.options.degrees = omnibal::powers_of_two(question.ranks);
    auto const longest = static_cast<std::uint64_t>(question.options.capacity) * question.ranks / 2;
    for (std::uint64_t k = 13 + omnibal::rng::below(random, 60); k != 0; --k) {
      std::uint64_t const limit = omnibal::rng::below(random, 3) == 0 ? longest : 400;
      question.lengths.push_back(static_cast<std::int64_t>(omnibal::rng::below(random, limit)));
    }
    double before = std::numeric_limits<double>::infinity();
    for (auto const level :
         {omnibal::effort::fast, omnibal::effort::normal, omnibal::effort::thorough}) {
      question.options.effort = level;
      auto const plan = question.plan();
      INFO("seed " << seed);
      REQUIRE(context_faults(question, plan) == "");
      REQUIRE(plan.makespan <= (1 + 1e-12) * before);
      before = plan.makespan;
    }
  }
}

TEST_CASE("a sample that fits nowhere is named with the degree that would do", "[context]") {
  context_question question{
      .lengths = {10, 90, 5, 95}, .ranks = 4, .cost = shared_cost(4), .options = {.capacity = 20}};
  auto const plan = question.plan();
  CHECK(plan.status == omnibal::solve_status::infeasible);
  CHECK(plan.sample == 1);
  CHECK(plan.min_degree == 5);
  CHECK(plan.groups.empty());
  CHECK(plan.micro_steps() == 0);

  question.rank_bytes = 21;
  CHECK(question.plan().sample == 0);
  CHECK(question.plan().min_degree == 0);
}

TEST_CASE("no samples, no tokens, and one rank are questions too", "[context]") {
  context_question question{.lengths = {}, .ranks = 4, .cost = shared_cost(4)};
  auto const none = question.plan();
  CHECK(context_faults(question, none) == "");
  CHECK(none.proven);
  CHECK(none.micro_steps() == 0);

  question.lengths = {0, 0, 0};
  question.options.capacity = 0;
  CHECK(context_faults(question, question.plan()) == "");

  question.lengths = {5, 7, 9};
  question.ranks = 1;
  question.options.capacity = 9;
  auto const one_rank = question.plan();
  CHECK(context_faults(question, one_rank) == "");
  CHECK(one_rank.micro_steps() == 3);
  CHECK(one_rank.proven);
}

TEST_CASE("a strict memory makes more micro-steps, and empty ones fill a multiple", "[context]") {
  context_question question = mixed_question(300, 8, 3);
  std::size_t before = 0;
  for (std::int64_t const capacity : {200'000, 60'000, 17'000}) {
    question.options.capacity = capacity;
    auto const plan = question.plan();
    CHECK(context_faults(question, plan) == "");
    CHECK(plan.micro_steps() >= before);
    before = plan.micro_steps();
  }
  question.options.multiple = static_cast<std::uint32_t>(before + 3);
  auto const padded = question.plan();
  CHECK(context_faults(question, padded) == "");
  CHECK(padded.micro_steps() == before + 3);
}

TEST_CASE("digests tell plans apart, but for times", "[context]") {
  context_question question = mixed_question(50, 8, 1);
  auto plan = question.plan();
  std::uint64_t const digest = plan.digest();
  plan.groups[0].time += 1;
  CHECK(plan.digest() == digest);
  plan.groups[0].degree += 1;
  CHECK(plan.digest() != digest);
}

TEST_CASE("lists of degrees", "[context]") {
  CHECK(omnibal::powers_of_two(9) == std::vector<std::uint32_t>{1, 2, 4, 8});
  CHECK(omnibal::powers_of_two(0).empty());
  CHECK(omnibal::divisors(12) == std::vector<std::uint32_t>{1, 2, 3, 4, 6, 12});
  CHECK(omnibal::divisors(4'294'967'295u).size() == 32);
  CHECK(omnibal::divisors(0).empty());
}

}  // namespace
