#pragma once

/// \file
/// Writes the parts of steps to the arrays of the caller.

#include <omnibal/config.hpp>
#include <omnibal/cuda/cost_steps.hpp>
#include <omnibal/cuda/detail/step_table.hpp>
#include <omnibal/cuda/part_span.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// A `part_span` as device code sees it.
struct part_writer {
  part_writer(cost_steps const& all, std::size_t parts_of_step, part_span const& out)
      : offsets(out.groups.offsets.data()),
        items(out.groups.items.data()),
        group_count(out.groups.group_count.data()),
        part_of(out.part_of.data()),
        steps(static_cast<std::uint32_t>(all.step_count)),
        parts(static_cast<std::uint32_t>(parts_of_step)) {}

  /// Makes a sample the item at a position.
  OMNIBAL_HOST_DEVICE void put(std::size_t position, std::uint32_t sample,
                               std::uint32_t part) const {
    items[position] = sample;
    name_part(sample, part);
  }
  /// Says which part a sample is in, without putting it there.
  OMNIBAL_HOST_DEVICE void name_part(std::uint32_t sample, std::uint32_t part) const {
    if (part_of != nullptr) part_of[sample] = part;
  }

  /// The position of the first item of a part.
  OMNIBAL_HOST_DEVICE void begin(std::size_t step, std::size_t part, std::uint32_t position) const {
    offsets[step * parts + part] = position;
  }
  /// The end of all groups, which the last step knows.
  OMNIBAL_HOST_DEVICE void end(std::size_t step, step_range const& range) const {
    if (step + 1 == steps) finish(range.first + range.size);
  }
  OMNIBAL_HOST_DEVICE void finish(std::uint32_t item_count) const {
    offsets[std::size_t{steps} * parts] = item_count;
    if (group_count != nullptr) *group_count = steps * parts;
  }

  std::uint32_t* offsets;
  std::uint32_t* items;
  std::uint32_t* group_count;
  std::uint32_t* part_of;
  std::uint32_t steps;
  std::uint32_t parts;
};

/// What is written where there are no steps.
struct write_no_steps {
  part_writer out;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t) const { out.finish(0); }
};

}  // namespace omnibal::inline v0::gpu::detail
