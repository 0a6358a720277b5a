// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What balancing after the draw changes: waiting, bytes that move, time for the plan.

#include "modality_mix.hpp"

#include <omnibal/exchange/make_orchestration.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

namespace examples {

/// Bytes that change their rank, and their node.
struct moved_bytes {
  double across_ranks = 0;
  double across_nodes = 0;
};

/// Sums over steps.
struct phase_sums {
  double waiting_before = 0;
  double waiting_after = 0;
  /// The time of the slowest rank, in nanoseconds.
  double slowest_before = 0;
  double slowest_after = 0;
  /// Of what enters the phase, and of what the encoder makes, by placement: one that does not know
  /// nodes, and one that does.
  std::array<moved_bytes, 2> inputs;
  std::array<moved_bytes, 2> outputs;
};

/// The language model comes first, then the encoders.
class phase_report {
 public:
  explicit phase_report(std::size_t ranks_per_node) : ranks_per_node_(ranks_per_node) {}

  /// Adds a step. `blind` are the plans that do not know nodes.
  void add(batch_measures const& batch, omnibal::orchestration const& blind,
           omnibal::orchestration const& aware);

  /// Means over the steps.
  void print(std::ostream& out) const;

  /// Of the slowest ranks of all phases, one after the other, in the mean. A third of the time is
  /// forward.
  [[nodiscard]] double forward_seconds_before() const;
  [[nodiscard]] double forward_seconds_after() const;

 private:
  std::size_t ranks_per_node_;
  std::size_t steps_ = 0;
  std::array<phase_sums, 1 + modality_count> phases_;
};

/// The plan's time in the mean, beside the forward time of a step.
struct planning_time {
  /// To gather the measures and agree, and to make the plans alone; zero where nothing was
  /// gathered.
  double collective_seconds = 0;
  double seconds = 0;
};
void print_overhead(phase_report const& report, planning_time const& planning, std::ostream& out);

}  // namespace examples
