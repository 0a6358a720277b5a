// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The timeline of a pipeline as one picture, or several on one time axis: a row for each stage, a
/// box for each operation.

#include <omnibal/pipeline/schedule.hpp>

#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace examples {

using drawn_operation = omnibal::timed_operation<double>;

struct pipeline_picture {
  std::string title;
  /// Of the times, such as "ms".
  std::string unit;
};

/// A timeline with every time multiplied by `factor`.
template <class T>
[[nodiscard]] std::vector<drawn_operation> scaled(
    std::vector<omnibal::timed_operation<T>> const& timeline, double factor) {
  std::vector<drawn_operation> result;
  result.reserve(timeline.size());
  for (auto const& one : timeline) {
    result.push_back({one.kind, one.stage, one.chunk, one.micro_batch,
                      factor * static_cast<double>(one.begin),
                      factor * static_cast<double>(one.end)});
  }
  return result;
}

/// Draws operations as `simulate_pipeline` lists them: by stage, then by time. Boxes that are wide
/// enough have the number of their micro-batch; later chunks of a stage are paler. Operations too
/// short to be seen are drawn together, in the color of the kind that takes most of the time, so
/// that the file stays below 1 MB however many there are. Equal input gives equal bytes.
void write_pipeline_picture(std::span<drawn_operation const> timeline,
                            pipeline_picture const& picture, std::ostream& out);

/// A timeline with the name of its schedule.
struct named_timeline {
  std::string name;
  std::vector<drawn_operation> timeline;
};

/// Draws timelines one below the other at one scale, each with its name, its end and its waiting,
/// and a line at the shortest end. Precondition: there are timelines, and their operations are few
/// enough for boxes. Equal input gives equal bytes.
void write_schedule_pictures(std::span<named_timeline const> timelines,
                             pipeline_picture const& picture, std::ostream& out);

}  // namespace examples
