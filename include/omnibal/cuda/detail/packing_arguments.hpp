#pragma once

/// \file
/// Checks of what a packer of cuda/ is given, as far as the host knows it.

#include <omnibal/check.hpp>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

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

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
