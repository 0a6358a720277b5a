#pragma once

/// \file
/// Checks of arguments on the device, as far as the host knows them.

#include <omnibal/check.hpp>
#include <omnibal/cuda/cost_steps.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace omnibal::inline v0::gpu::detail {

/// Throws `std::invalid_argument` where an output has room for fewer elements than are written.
inline void check_room(std::string_view function, std::string_view output, std::size_t size,
                       std::size_t needed) {
  if (size >= needed) return;
  omnibal::detail::throw_invalid(function,
                                 std::string(output) + " has " + omnibal::detail::to_text(size) +
                                     " elements, must have " + omnibal::detail::to_text(needed));
}

/// Throws unless there is one element or none.
inline void check_word(std::string_view function, std::string_view output, std::size_t size) {
  if (size <= 1) return;
  omnibal::detail::throw_invalid(function, std::string(output) + " has " +
                                               omnibal::detail::to_text(size) +
                                               " elements, must have one or none");
}

/// Checks the sizes of demands and outputs and returns the capacity in 64-bit integers.
template <amount Capacity>
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

/// Throws unless so many parts of each step have numbers. `function` is the name without `gpu::`.
inline void check_steps(std::string_view function, cost_steps const& steps, std::size_t parts) {
  auto const name = std::string("gpu::").append(function);
  if (parts == 0) omnibal::detail::throw_invalid(name, "parts is 0, must be positive");
  omnibal::detail::check_index_count(name, "costs", steps.costs.size());
  omnibal::detail::check_number(name, "parts", parts);
  omnibal::detail::check_number(name, "steps.step_count", steps.step_count);
  omnibal::detail::check_number(name, "steps.step_count * parts", steps.step_count * parts);
}

/// The parts of each step where there are `groups` in all. Throws unless each step has as many.
[[nodiscard]] inline std::size_t checked_parts_of_steps(std::string_view function,
                                                        cost_steps const& steps,
                                                        std::size_t groups) {
  std::size_t const count = steps.step_count == 0 ? 1 : groups / steps.step_count;
  check_steps(function, steps, count);
  if (count * steps.step_count != groups) {
    omnibal::detail::throw_invalid(std::string("gpu::").append(function),
                                   omnibal::detail::to_text(groups) + " groups are not parts of " +
                                       omnibal::detail::to_text(steps.step_count) + " steps");
  }
  return count;
}

/// Throws unless the arrays have room for the parts of all steps.
inline void check_out(std::string_view function, cost_steps const& steps, std::size_t parts,
                      part_span const& out) {
  auto const name = std::string("gpu::").append(function);
  auto const text = [](std::size_t number) { return omnibal::detail::to_text(number); };
  std::size_t const groups = steps.step_count * parts;
  if (out.groups.offsets.size() != groups + 1) {
    omnibal::detail::throw_invalid(name, "offsets has " + text(out.groups.offsets.size()) +
                                             " elements, must have " + text(groups + 1));
  }
  if (out.groups.items.size() < steps.costs.size()) {
    omnibal::detail::throw_invalid(name, "items has " + text(out.groups.items.size()) +
                                             " elements, must have " + text(steps.costs.size()));
  }
  if (!out.part_of.empty() && out.part_of.size() < steps.costs.size()) {
    omnibal::detail::throw_invalid(name, "part_of has " + text(out.part_of.size()) +
                                             " elements, must have " + text(steps.costs.size()));
  }
}

}  // namespace omnibal::inline v0::gpu::detail
