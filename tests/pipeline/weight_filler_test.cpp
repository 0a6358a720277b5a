// SPDX-License-Identifier: Apache-2.0
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/detail/make_list_problem.hpp>
#include <omnibal/pipeline/detail/weight_filler.hpp>
#include <omnibal/pipeline/list_objective.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <cstdint>
#include <limits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::operation_kind;

omnibal::detail::list_times<std::int64_t> run(omnibal::operation_lists const& passes) {
  std::vector const times(2, omnibal::stage_time<std::int64_t>{.forward = 2, .backward = 3});
  auto const problem = omnibal::detail::make_list_problem<std::int64_t>(
      "test", {.stages = 2, .micro_batches = 1}, times, std::int64_t{0}, std::int64_t{1}, {});
  omnibal::operation_lists lists;
  return omnibal::detail::weight_filler<std::int64_t>(problem, omnibal::list_objective::makespan)
      .run(passes, 0, lists);
}

}  // namespace

// Lists whose first operation waits for a later one of its own list made the loop endless.
TEST_CASE("the weight filler ends if stages wait forever") {
  omnibal::listed_operation const forward{operation_kind::forward, 0, 0};
  omnibal::listed_operation const backward{operation_kind::backward, 0, 0};
  CHECK(run({{forward, backward}, {forward, backward}}).makespan == 10);
  CHECK(run({{backward, forward}, {forward, backward}}).makespan ==
        std::numeric_limits<std::int64_t>::max());
}
