// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Checks on the host of the arguments of algorithms on the device.

#include <omnibal/check.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Throws `std::invalid_argument` if the size of an output is below `needed`, the number of
/// elements that are written, or above `most`.
inline void check_room(std::string_view function, std::string_view output, std::size_t size,
                       std::size_t needed, std::size_t most = ~std::size_t{0}) {
  if (size >= needed && size <= most) return;
  omnibal::detail::throw_invalid(function,
                                 std::string(output) + " has " + omnibal::detail::to_text(size) +
                                     " elements, must have " + omnibal::detail::to_text(needed));
}

/// Throws if there are no parts, or if the costs, the steps or the parts of all steps are too many
/// for 32-bit indices.
inline void check_steps(std::string_view function, cost_steps const& steps, std::size_t parts) {
  omnibal::detail::check_positive(function, "parts", parts);
  omnibal::detail::check_index_count(function, "costs", steps.costs.size());
  omnibal::detail::check_number(function, "parts", parts);
  omnibal::detail::check_number(function, "steps.step_count", steps.step_count);
  omnibal::detail::check_number(function, "steps.step_count * parts", steps.step_count * parts);
}

/// Returns the number of parts of each step for `groups` groups in all. Throws if the steps do not
/// divide the groups.
[[nodiscard]] inline std::size_t checked_parts_of_steps(std::string_view function,
                                                        cost_steps const& steps,
                                                        std::size_t groups) {
  std::size_t const count = steps.step_count == 0 ? 1 : groups / steps.step_count;
  check_steps(function, steps, count);
  if (count * steps.step_count != groups) {
    omnibal::detail::throw_invalid(function,
                                   omnibal::detail::to_text(groups) + " groups are not parts of " +
                                       omnibal::detail::to_text(steps.step_count) + " steps");
  }
  return count;
}

/// Throws unless the arrays have room for the parts of all steps.
inline void check_out(std::string_view function, cost_steps const& steps, std::size_t parts,
                      part_span const& out) {
  std::size_t const offsets = steps.step_count * parts + 1;
  check_room(function, "offsets", out.groups.offsets.size(), offsets, offsets);
  check_room(function, "items", out.groups.items.size(), steps.costs.size());
  if (out.part_of.empty()) return;
  check_room(function, "part_of", out.part_of.size(), steps.costs.size());
}

/// Throws if an output for a single value has more than one element. It may have none.
inline void check_word(std::string_view function, std::string_view output, std::size_t size) {
  if (size <= 1) return;
  omnibal::detail::throw_invalid(function, std::string(output) + " has " +
                                               omnibal::detail::to_text(size) +
                                               " elements, must have one or none");
}

/// Checks the sizes of demands and outputs and returns the capacity in 64-bit integers.
template <measure Capacity>
[[nodiscard]] auto checked_packing(std::string_view function, std::size_t samples,
                                   Capacity const& capacity, packing_span const& out) {
  omnibal::detail::check_index_count(function, "demands", samples);
  auto const limits = omnibal::detail::to_capacity<std::int64_t>(function, capacity);
  omnibal::detail::check_capacity(function, limits);
  check_room(function, "groups.offsets", out.groups.offsets.size(), 1);
  check_room(function, "groups.items", out.groups.items.size(), samples);
  check_word(function, "groups.group_count", out.groups.group_count.size());
  check_word(function, "oversized_count", out.oversized_count.size());
  check_word(function, "report", out.report.size());
  check_word(function, "faults", out.faults.size());
  return limits;
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
