// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "kept_ranks.hpp"
#include "rank_checks.hpp"
#include "samples.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/plan_dispatcher.hpp>
#include <omnibal/exchange/plan_exchange.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::exchange_plan;
using omnibal::thread_communicator;
using numbers = std::vector<std::int64_t>;

/// What a rank plans a step from. It may be late, and may throw.
struct drawn_step {
  numbers lengths;
  int delay = 0;
  bool fails = false;
};
using dispatcher = omnibal::plan_dispatcher<drawn_step, exchange_plan>;

void sleep(int tenths) { std::this_thread::sleep_for(std::chrono::microseconds(100 * tenths)); }

/// One seed for a step, so that every rank knows who fails.
std::size_t failing_rank(std::uint64_t seed, std::size_t step, std::size_t ranks) {
  test::random_amounts random(1000 * seed + step);
  return static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(3 * ranks)));
}

drawn_step drawn(std::uint64_t seed, std::size_t step, std::size_t rank, std::size_t ranks) {
  test::random_amounts random(777 * seed + 100 * step + rank);
  drawn_step result;
  result.lengths.resize(static_cast<std::size_t>(random.between(0, 20)));
  for (auto& length : result.lengths) length = random.heavy_tail(5000);
  result.delay = static_cast<int>(random.between(0, 3) * random.between(0, 4));
  result.fails = failing_rank(seed, step, ranks) == rank;
  return result;
}

exchange_plan plan_of(thread_communicator const& comm, drawn_step const& step) {
  sleep(step.delay);
  auto const length = [&](std::int64_t value) {
    if (step.fails) throw std::domain_error("a step that fails");
    return value;
  };
  // Also a rank without samples can fail.
  numbers const lengths = step.fails && step.lengths.empty() ? numbers{1} : step.lengths;
  return omnibal::plan_exchange(comm, lengths, length, length);
}

/// Trains on every plan in turn; a step whose plan failed has the error of its rank.
void train(thread_communicator& comm, dispatcher& plans, std::uint64_t seed, std::size_t steps,
           std::size_t ahead) {
  std::size_t submitted = 0;
  for (std::size_t step = 0; step != steps; ++step) {
    for (; submitted != steps && submitted <= step + ahead; ++submitted) {
      plans.submit(drawn(seed, submitted, comm.rank(), comm.size()));
    }
    std::size_t const fails = failing_rank(seed, step, comm.size());
    exchange_plan plan;
    auto const found = test::error_of<std::domain_error, omnibal::communication_error>(
        [&] { plan = plans.next(); });
    if (fails < comm.size()) {
      test::require(found == (fails == comm.rank() ? test::seen::own : test::seen::remote),
                    "the error of this step");
      continue;
    }
    test::require(found == test::seen::nothing, "a step that can be planned");
    auto const local = drawn(seed, step, comm.rank(), comm.size());
    auto const mine = omnibal::exchange_samples(comm, plan, local.lengths);
    sleep(static_cast<int>((seed + step + comm.rank()) % 4));
    test::require(omnibal::exchange_samples(comm, plan.inverse(), mine) == local.lengths,
                  "the plan is that of this step");
  }
}

}  // namespace

TEST_CASE("plans of the next steps are made on a thread of the dispatcher while steps train") {
  test::watchdog const limit;
  for (std::size_t ranks = 1; ranks <= 8; ++ranks) {
    test::kept_ranks planners(ranks);
    CHECK_NOTHROW(thread_communicator::run(ranks, [&](thread_communicator& comm) {
      dispatcher plans(planners.of(comm.rank()), plan_of);
      train(comm, plans, ranks, 30, 1 + ranks % 3);
      test::require(test::error_text<std::invalid_argument>([&] {
                      static_cast<void>(plans.next());
                    }) == "omnibal::plan_dispatcher::next: every submitted step has been taken",
                    "no further step");
    }));
  }
}

TEST_CASE("plans of the next steps are made on a thread that the caller gives") {
  test::watchdog const limit;
  for (std::size_t const ranks : {1u, 3u, 5u}) {
    std::vector<dispatcher> plans(ranks);
    auto const planners = std::async(std::launch::async, [&] {
      thread_communicator::run(ranks, [&](thread_communicator& comm) {
        plans[comm.rank()].serve([&](drawn_step const& step) { return plan_of(comm, step); });
      });
    });
    CHECK_NOTHROW(thread_communicator::run(ranks, [&](thread_communicator& comm) {
      auto& own = plans[comm.rank()];
      std::unique_ptr<dispatcher, void (*)(dispatcher*)> const closed(
          &own, [](dispatcher* one) { one->close(); });
      train(comm, own, 50 + ranks, 20, 2);
    }));
  }
}

TEST_CASE("a dispatcher that is destroyed early, on one rank or on all, ends nobody's wait") {
  test::watchdog const limit;
  for (std::size_t ranks = 1; ranks <= 8; ++ranks) {
    for (std::size_t const step : {0u, 1u, 4u}) {
      for (bool const all : {false, true}) {
        test::kept_ranks planners(ranks);
        std::size_t const leaving = (ranks + step) % ranks;
        std::vector<int> left(ranks, 0);
        auto const text = test::error_text<std::runtime_error>([&] {
          thread_communicator::run(ranks, [&](thread_communicator& comm) {
            dispatcher plans(planners.of(comm.rank()), plan_of);
            for (std::size_t s = 0; s != 6; ++s) {
              if (all && s == step) plans.submit({});
              if (s == step && (all || comm.rank() == leaving)) {
                left[comm.rank()] = 1;
                throw std::runtime_error("left");
              }
              plans.submit({.lengths = numbers(comm.rank(), 5), .delay = static_cast<int>(s % 2)});
              try {
                static_cast<void>(plans.next());
              } catch (omnibal::communication_error const& error) {
                std::string const what = error.what();
                test::require(what.find("has left") != std::string::npos, what);
                return;
              }
            }
          });
        });
        CHECK(text == "left");
      }
    }
  }
}

TEST_CASE("a dispatcher that is closed plans no more and says so") {
  omnibal::plan_dispatcher<int, int> plans;
  plans.submit(1);
  plans.close();
  plans.submit(2);
  plans.serve([](int step) { return step; });
  for (int step = 0; step != 2; ++step) {
    CHECK(
        test::error_text<omnibal::communication_error>([&] { static_cast<void>(plans.next()); }) ==
        "omnibal::plan_dispatcher::next: the dispatcher was closed before this step was "
        "planned");
  }
  // Of a communicator that cannot leave.
  omnibal::plan_dispatcher<int, int> alone(omnibal::self_communicator{},
                                           [](auto const&, int step) { return 2 * step; });
  alone.submit(3);
  alone.submit(4);
  CHECK(alone.next() == 6);
  CHECK(alone.next() == 8);
}
