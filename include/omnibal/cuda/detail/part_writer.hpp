// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The output of parts: a `part_span` in device code, and the kernels that write it.

#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/detail/step_table.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/detail/bits.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// A `part_span` in device code.
struct part_writer {
  part_writer(cost_steps const& all, std::size_t parts_of_step, part_span const& out)
      : offsets(out.groups.offsets.data()),
        items(out.groups.items.data()),
        group_count(out.groups.group_count.data()),
        part_of(out.part_of.data()),
        steps(static_cast<std::uint32_t>(all.step_count)),
        parts(static_cast<std::uint32_t>(parts_of_step)) {}

  /// Writes a sample as the item at a position, and records its part.
  OMNIBAL_HOST_DEVICE void put(std::size_t position, std::uint32_t sample,
                               std::uint32_t part) const {
    items[position] = sample;
    name_part(sample, part);
  }
  /// Records the part of a sample without writing the item.
  OMNIBAL_HOST_DEVICE void name_part(std::uint32_t sample, std::uint32_t part) const {
    if (part_of != nullptr) part_of[sample] = part;
  }

  /// Writes the position of the first item of a part.
  OMNIBAL_HOST_DEVICE void begin(std::size_t step, std::size_t part, std::uint32_t position) const {
    offsets[step * parts + part] = position;
  }
  /// If `step` is the last step, writes the end of the last group and the number of groups.
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

/// Writes the result if there are no steps.
struct write_no_steps {
  part_writer out;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t) const { out.finish(0); }
};

/// Writes the positions of the parts of a step: part p begins `first(p)` positions after the first
/// position of the step.
template <thread_block Block, class First>
OMNIBAL_HOST_DEVICE void write_offsets(Block& block, part_writer const& out, std::size_t step,
                                       step_range const& range, First const& first) {
  block.for_each(out.parts, [&](std::size_t part) {
    out.begin(step, part, range.first + first(static_cast<std::uint32_t>(part)));
  });
  block.once([&] { out.end(step, range); });
}

/// Writes the positions of the parts from `counts`, which has the number of samples of each part in
/// shared memory. The contents of `counts` are lost.
template <thread_block Block>
OMNIBAL_HOST_DEVICE void write_part_offsets(Block& block, part_writer const& out, std::size_t step,
                                            step_range const& range, std::uint32_t* counts) {
  static_cast<void>(block.exclusive_sum(counts, out.parts));
  std::uint32_t const* const begins = counts;
  write_offsets(block, out, step, range, [&](std::uint32_t part) { return begins[part]; });
}

/// Writes the samples of the parts of a step, sorted by part: `part_of[i]` is the part of sample i
/// of the step. `sort_memory` is an array for the same number of samples. Both are in shared
/// memory, and their contents are lost.
template <thread_block Block>
OMNIBAL_HOST_DEVICE void write_parts_in_block(Block& block, part_writer const& out,
                                              step_range const& range, std::uint32_t* part_of,
                                              std::uint32_t* sort_memory) {
  std::uint32_t* const samples = sort_memory;
  block.sort_numbered(part_of, samples, range.size);
  std::uint32_t const* const parts = part_of;
  block.for_each(range.size, [&](std::size_t i) {
    out.put(range.first + i, range.first + samples[i], parts[i]);
  });
}

/// Records the part of each sample, and writes its group as a sort key. Samples that belong to no
/// step have the largest key.
struct write_group_keys {
  step_table table;
  part_writer out;
  std::uint32_t const* samples;
  std::uint32_t const* part_of_place;
  std::uint32_t* group_keys;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t place) const {
    std::uint32_t const sample = samples[place];
    std::uint32_t const step = table.step_of(sample);
    bool const is_in_step = step != table.steps() && table[step].size != 0;
    if (is_in_step) out.name_part(sample, part_of_place[place]);
    group_keys[sample] =
        is_in_step ? step * out.parts + part_of_place[place] : table.steps() * out.parts;
    out.items[sample] = sample;
  }
};

/// Writes the samples of the parts of all steps by a sort of all samples. `samples[place]` is an
/// index into all costs, and `group_keys` is memory for the same number of keys. The function does
/// not write the offsets of the parts.
template <kernel_backend Backend>
void write_parts_of_places(Backend& backend, cost_steps const& steps, step_table const& table,
                           part_writer const& out, std::uint32_t const* samples,
                           std::uint32_t const* part_of_place, std::uint32_t* group_keys) {
  std::size_t const count = steps.costs.size();
  backend.for_each(count, write_group_keys{table, out, samples, part_of_place, group_keys});
  backend.sort_pairs(group_keys, out.items, count, 0,
                     omnibal::detail::bit_width(std::size_t{out.steps} * out.parts));
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
