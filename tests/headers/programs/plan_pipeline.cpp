// SPDX-License-Identifier: Apache-2.0
// One plan of a pipeline.

#include <omnibal/plan/plan_pipeline.hpp>

#include <cstdint>
#include <vector>

auto plan(std::vector<omnibal::plan_layer<std::int64_t>> const& layers,
          omnibal::pipeline_machine const& machine) {
  return omnibal::plan_pipeline(layers, machine, {.micro_batches = 8});
}
