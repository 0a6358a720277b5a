// SPDX-License-Identifier: Apache-2.0
// The bound of list_schedule, compared with all lists of small pipelines within their memory.

#include "certificate.hpp"
#include "random_pipeline.hpp"

#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/list_objective.hpp>
#include <omnibal/pipeline/list_schedule.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include <catch.hpp>

namespace {

using omnibal::list_objective;
using omnibal::list_order;
using test::chunk_layout;
using test::chunk_placement;

/// A layout with at most eight units.
chunk_layout small_layout(omnibal::rng::engine& random) {
  auto const placement = static_cast<chunk_placement>(test::below(random, 3));
  chunk_layout layout{.stages = test::one_to(random, 3), .placement = placement};
  if (placement != chunk_placement::bidirectional) layout.chunks = test::one_to(random, 2);
  std::size_t const most = 8 / (layout.stages * layout.chunks);
  layout.micro_batches = test::one_to(random, most == 0 ? 1 : most > 3 ? 3 : most);
  return layout;
}

template <class Times>
std::string fault_of(test::random_pipeline const& pipeline, Times const& times, bool splits,
                     list_objective objective, list_order order) {
  auto const found =
      omnibal::list_schedule(pipeline.layout, times, pipeline.transfers, pipeline.bytes,
                             pipeline.memory, {.objective = objective, .micro_batches = order});
  std::int64_t const time =
      objective == list_objective::makespan ? found.makespan : found.longest_stage;
  if (found.lower_bound > time) return "a bound above the time";
  test::list_oracle oracle(pipeline, objective, splits);
  // If the bound is the time, shorter lists are looked for. Otherwise some list is as short.
  if (found.lower_bound == time) {
    return oracle.least(time) < time ? "lists that are shorter than the bound" : "";
  }
  std::int64_t const least = oracle.least(time + 1);
  if (least > time) return "lists that cannot be run";
  return least < found.lower_bound ? "lists that are shorter than the bound" : "";
}

}  // namespace

TEST_CASE("no lists are shorter than the bound of list_schedule") {
  test::certify<std::int64_t>("list_schedule", [](omnibal::rng::engine& random) {
    test::random_pipeline const pipeline(random, small_layout(random));
    auto const objective = static_cast<list_objective>(test::below(random, 2));
    auto const order = static_cast<list_order>(test::below(random, 2));
    if (test::below(random, 3) != 0) {
      return fault_of(pipeline, pipeline.times, true, objective, order);
    }
    return fault_of(pipeline, pipeline.unsplit_times(), false, objective, order);
  });
}
