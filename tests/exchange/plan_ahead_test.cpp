#include "rank_checks.hpp"
#include "samples.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/plan_exchange.hpp>

#include <cstddef>
#include <cstdint>
#include <future>
#include <thread>
#include <vector>

#include <catch.hpp>

namespace {

std::vector<std::int64_t> drawn(std::size_t step, std::size_t rank) {
  test::random_amounts random(100 * step + rank);
  std::vector<std::int64_t> result(static_cast<std::size_t>(random.between(0, 20)));
  for (auto& length : result) length = random.heavy_tail(5000);
  return result;
}

}  // namespace

TEST_CASE("the next plan is made while the present one is executed") {
  test::watchdog const limit;
  constexpr std::size_t ranks = 3;
  constexpr std::size_t steps = 30;
  using omnibal::thread_communicator;
  std::vector<std::vector<std::promise<omnibal::exchange_plan>>> plans(ranks);
  for (auto& of_rank : plans) of_rank.resize(steps);

  // Each rank plans on a thread and a communicator of their own.
  std::jthread const planners([&] {
    thread_communicator::run(ranks, [&](thread_communicator& comm) {
      auto const length = [](std::int64_t value) { return value; };
      omnibal::plan_exchange_workspace<1> workspace;
      for (std::size_t step = 0; step != steps; ++step) {
        plans[comm.rank()][step].set_value(omnibal::plan_exchange(
            comm, drawn(step, comm.rank()), length, length, {}, omnibal::keep_home, workspace));
      }
    });
  });
  CHECK_NOTHROW(thread_communicator::run(ranks, [&](thread_communicator& comm) {
    auto& mine_to_come = plans[comm.rank()];
    omnibal::exchange_plan plan = mine_to_come[0].get_future().get();
    for (std::size_t step = 0; step != steps; ++step) {
      auto const local = drawn(step, comm.rank());
      auto const mine = omnibal::exchange_samples(comm, plan, local);
      // In the middle of this step all ranks wait for the plan of the next one.
      omnibal::exchange_plan next;
      if (step + 1 != steps) next = mine_to_come[step + 1].get_future().get();
      test::require(omnibal::exchange_samples(comm, plan.inverse(), mine) == local,
                    "the plan is still that of this step");
      plan = std::move(next);
    }
  }));
}
