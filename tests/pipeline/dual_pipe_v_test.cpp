// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/pipeline/dual_pipe_v.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::operation_kind;
using omnibal::simulate_pipeline;
using omnibal::stage_time;

}  // namespace

// The order is the published one, also for sizes that other tests do not print.
TEST_CASE("dual_pipe_v keeps its promises for all sizes") {
  for (std::size_t stages = 1; stages != 9; ++stages) {
    for (std::size_t batches = 2 * stages; batches != 2 * stages + 7; ++batches) {
      auto const schedule = omnibal::dual_pipe_v(stages, batches);
      auto const peaks = omnibal::peak_in_flight(schedule);
      CHECK(std::ranges::max(peaks) == static_cast<std::int64_t>(2 * stages + 1));
      // Every operation runs, in an order that ends. With equal times no stage waits after its
      // first operation.
      auto const result = simulate_pipeline(schedule, stage_time<>{1, 1, 1});
      CHECK(result.makespan == static_cast<std::int64_t>(6 * batches + stages - 1));
      CHECK(result.busy ==
            std::vector<std::int64_t>(stages, static_cast<std::int64_t>(6 * batches)));
    }
  }
}

// These lists are the published algorithm by hand.
TEST_CASE("dual_pipe_v for two stages") {
  using omnibal::listed_operation;
  auto const schedule = omnibal::dual_pipe_v(2, 4);
  auto const f = [](std::uint32_t c, std::uint32_t m) {
    return listed_operation{operation_kind::forward, c, m};
  };
  auto const b = [](std::uint32_t c, std::uint32_t m) {
    return listed_operation{operation_kind::backward, c, m};
  };
  auto const w = [](std::uint32_t c, std::uint32_t m) {
    return listed_operation{operation_kind::weight, c, m};
  };
  std::vector<listed_operation> const first{f(0, 0), f(0, 1), f(0, 2), f(1, 0), b(1, 0), w(1, 0),
                                            f(1, 1), f(0, 3), b(1, 1), w(1, 1), f(1, 2), b(0, 0),
                                            w(0, 0), b(1, 2), w(1, 2), f(1, 3), b(0, 1), w(0, 1),
                                            b(1, 3), w(1, 3), b(0, 2), w(0, 2), b(0, 3), w(0, 3)};
  auto const list = schedule.operations(0);
  CHECK(std::vector<listed_operation>(list.begin(), list.end()) == first);
  CHECK(test::error_text<std::invalid_argument>([] {
          static_cast<void>(omnibal::dual_pipe_v(4, 7));
        }) == "omnibal::dual_pipe_v: batches is 7, must be at least twice the stages, which is 8");
  CHECK(test::error_text<std::invalid_argument>([] {
          static_cast<void>(omnibal::dual_pipe_v(0, 7));
        }) == "omnibal::dual_pipe_v: stages is 0, must be positive");
}
