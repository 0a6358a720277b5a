#pragma once

/// \file
/// The parts of steps as device code writes them, where dealt samples come, and from the part of
/// each sample to the samples of each part, by ascending index.

#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/step_table.hpp>
#include <omnibal/cuda/outputs.hpp>

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

/// Where each sample of a step comes when its samples are dealt: arithmetic, no search.
class dealing {
 public:
  OMNIBAL_HOST_DEVICE dealing(std::uint32_t samples, std::uint32_t parts)
      : parts_(parts), rounds_(samples / parts), rest_(samples % parts) {}

  /// The part of the sample at a place of the order.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t part(std::uint32_t place) const {
    std::uint32_t const turn = place % parts_;
    return place / parts_ % 2 == 0 ? turn : parts_ - 1 - turn;
  }

  /// The samples in the parts before this one; for `part == parts` those in all.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t offset(std::uint32_t part) const {
    std::uint32_t const others = parts_ - rest_;
    std::uint32_t const more = rounds_ % 2 == 0 ? smaller_of(part, rest_)
                               : part > others  ? part - others
                                                : 0;
    return part * rounds_ + more;
  }

  /// The position of that sample among those of all parts.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t position(std::uint32_t place) const {
    return offset(part(place)) + place / parts_;
  }

 private:
  std::uint32_t parts_;
  std::uint32_t rounds_;
  std::uint32_t rest_;
};

/// What is written where there are no steps.
struct write_no_steps {
  part_writer out;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t) const { out.finish(0); }
};

/// Writes where the parts of a step begin: that of a part is `first(part)` behind the step's own.
template <class Block, class First>
OMNIBAL_HOST_DEVICE void write_offsets(Block& block, part_writer const& out, std::size_t step,
                                       step_range const& range, First const& first) {
  block.for_each(out.parts, [&](std::size_t part) {
    out.begin(step, part, range.first + first(static_cast<std::uint32_t>(part)));
  });
  block.once([&] { out.end(step, range); });
}

/// The same of counts. `counts` has the number of samples of each part, and is
/// not the same afterwards.
template <class Block>
OMNIBAL_HOST_DEVICE void write_part_offsets(Block& block, part_writer const& out, std::size_t step,
                                            step_range const& range, std::uint32_t* counts) {
  static_cast<void>(block.exclusive_sum(counts, out.parts));
  write_offsets(block, out, step, range, [&](std::uint32_t part) { return counts[part]; });
}

/// Writes the samples of the parts of a step, which are sorted for that: `parts[i]` is the part of
/// sample i of the step. `samples` is memory for as many.
template <class Block, class Part>
OMNIBAL_HOST_DEVICE void write_parts_in_block(Block& block, part_writer const& out,
                                              step_range const& range, Part* parts,
                                              std::uint32_t* samples) {
  block.sort_numbered(parts, samples, range.size);
  block.for_each(range.size, [&](std::size_t i) {
    out.put(range.first + i, range.first + samples[i], static_cast<std::uint32_t>(parts[i]));
  });
}

/// Says for each sample which part of which step it is in.
struct name_parts {
  step_table table;
  part_writer out;
  std::uint32_t const* samples;
  std::uint32_t const* part_of_place;
  std::uint32_t* groups;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t place) const {
    std::uint32_t const sample = samples[place];
    std::uint32_t const step = table.step_of(sample);
    bool const is_in_step = step != table.steps() && table[step].size != 0;
    if (is_in_step) out.name_part(sample, part_of_place[place]);
    groups[sample] =
        is_in_step ? step * out.parts + part_of_place[place] : table.steps() * out.parts;
    out.items[sample] = sample;
  }
};

/// The same for all steps by a sort of all samples. `samples[place]` is an index into all costs,
/// `groups` is memory for as many keys; the offsets of the parts are written elsewhere.
template <class Backend>
void write_parts_of_places(Backend& backend, cost_steps const& steps, step_table const& table,
                           part_writer const& out, std::uint32_t const* samples,
                           std::uint32_t const* part_of_place, std::uint32_t* groups) {
  std::size_t const count = steps.costs.size();
  backend.for_each(count, name_parts{table, out, samples, part_of_place, groups});
  backend.sort_pairs(groups, out.items, count, 0, bits_up_to(std::size_t{out.steps} * out.parts));
}

}  // namespace omnibal::inline v0::gpu::detail
