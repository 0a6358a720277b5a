// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The figures of a packing and of its steps.

#include "dataset.hpp"
#include "measure_batches.hpp"
#include "pack_options.hpp"
#include "schedule_groups.hpp"

#include <omnibal/pack/packing.hpp>

#include <ostream>

namespace examples {

struct phase_seconds {
  double reading = 0;
  double choosing = 0;
  double packing = 0;
  double scheduling = 0;
  double writing = 0;
};

/// Prints the numbers of samples and micro-batches, the bound, and the samples without a batch.
void print_summary(dataset const& data, pack_options const& options, omnibal::packing const& result,
                   std::ostream& out);

/// Prints the table of what packing changes.
void print_report(pack_options const& options, omnibal::packing const& result,
                  batch_figures const& before, batch_figures const& after,
                  phase_seconds const& seconds, std::ostream& out);

/// How even and how random the steps of the packed groups are.
void print_schedule(pack_options const& options, measured_steps const& random,
                    measured_steps const& scheduled, phase_seconds const& seconds,
                    std::ostream& out);

}  // namespace examples
