// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a packing changes, as one picture: how much groups hold, how full they are, how long ranks
/// wait.

#include "chart.hpp"
#include "dataset.hpp"
#include "measure_batches.hpp"
#include "pack_options.hpp"
#include "schedule_groups.hpp"

#include <array>
#include <cstddef>
#include <ostream>

namespace examples {

/// Before and after in each, for images and for tokens; the waiting also for scheduled steps.
struct packing_charts {
  /// How many groups hold how much, padding included.
  std::array<chart, 2> loads;
  /// The share of the capacity that samples take, from the fullest group to the emptiest.
  std::array<chart, 2> fill;
  /// The share of each step for which ranks wait for the slowest.
  std::array<chart, 2> waiting;
};

[[nodiscard]] packing_charts draw_packing(pack_options const& options,
                                          measured_batches const& before,
                                          measured_batches const& after,
                                          measured_steps const& scheduled);

/// The charts with headings that explain them, as an SVG file of less than 100 KB whatever the
/// number of samples. Its figures are those of the printed report. `oversized` is the number of
/// samples in no group. Equal input gives equal bytes.
void write_pictures(dataset const& data, pack_options const& options, std::size_t oversized,
                    measured_batches const& before, measured_batches const& after,
                    measured_steps const& scheduled, std::ostream& out);

}  // namespace examples
