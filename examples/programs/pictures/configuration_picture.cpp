// SPDX-License-Identifier: Apache-2.0
#include "configuration_picture.hpp"

#include "pipeline_picture.hpp"
#include "table.hpp"

#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>

#include <cstddef>
#include <cstdint>

namespace examples {

void write_configuration_picture(std::string const& choices,
                                 omnibal::planned_configuration const& planned, std::ostream& out) {
  omnibal::training_step const& step = planned.step;
  omnibal::interleaved_1f1b const schedule{
      .stages = static_cast<std::size_t>(step.degrees.pipeline),
      .micro_batches = static_cast<std::size_t>(step.micro_batches),
      .chunks = static_cast<std::size_t>(step.chunks)};
  auto const simulated =
      omnibal::simulate_pipeline(schedule, planned.prediction.passes, 0.0, std::int64_t{0},
                                 {.timeline = omnibal::timeline_policy::recorded});
  double const behind = planned.prediction.total() - simulated.makespan;
  std::string const title = choices + ": passes " + fixed(simulated.makespan, 2) +
                            " s, then gradients and optimizer " + fixed(behind, 2) + " s";
  write_pipeline_picture(scaled(simulated.timeline, 1.0), {title, "s"}, out);
}

}  // namespace examples
