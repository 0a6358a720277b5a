// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Checks the arguments of `context_groups`, and makes the instance of the call from them.

#include <omnibal/check.hpp>
#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_groups/allowed_degrees.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/keyed_indices.hpp>
#include <omnibal/context/context_groups/sorted_samples.hpp>
#include <omnibal/context/context_groups_options.hpp>
#include <omnibal/detail/part_speeds.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace omnibal::inline v0::detail {

inline constexpr std::uint32_t max_context_multiple = 65536;

/// Throws if a time of degree `row` + 1 is invalid.
inline void check_degree_time(std::size_t row, degree_time const& time) {
  bool const is_valid = is_valid_weight(time.fixed) && is_valid_weight(time.linear) &&
                        is_valid_weight(time.quadratic);
  if (is_valid && (time.fixed > 0 || time.linear > 0 || time.quadratic > 0)) return;
  throw_invalid(context_groups_name, "cost.degrees[", row, "] is ",
                list_text(std::array{time.fixed, time.linear, time.quadratic}),
                (is_valid ? ", must not be zero" : ", must be finite and not negative"));
}

/// Throws if the ranks, the costs or the options of a call are invalid.
inline void check_context_arguments(std::size_t ranks, context_cost const& cost,
                                    context_groups_options const& options) {
  constexpr auto name = context_groups_name;
  check_positive(name, "ranks", ranks);
  check_number(name, "ranks", ranks);
  check_weight(name, "options.capacity", options.capacity);
  if (!options.capacities.empty()) {
    check_size(name, "options.capacities", options.capacities.size(), ranks, "ranks");
  }
  for (std::size_t rank = 0; rank != options.capacities.size(); ++rank) {
    check_positive(name, "options.capacities", rank, options.capacities[rank]);
  }
  check_positive(name, "options.multiple", options.multiple);
  if (options.multiple > max_context_multiple) {
    throw_invalid(name, "options.multiple is ", options.multiple, ", must be at most ",
                  max_context_multiple);
  }
  if (options.ranks_per_node != 0 && ranks % options.ranks_per_node != 0) {
    throw_invalid(name, "options.ranks_per_node is ", options.ranks_per_node,
                  ", must divide the ranks, which are ", ranks);
  }
  for (std::size_t i = 0; i != options.degrees.size(); ++i) {
    // The largest degree has a successor in 64 bits.
    std::uint64_t const least = i == 0 ? 1 : std::uint64_t{options.degrees[i - 1]} + 1;
    if (options.degrees[i] >= least) continue;
    throw_invalid(name, "options.degrees[", i, "] is ", options.degrees[i], ", must be at least ",
                  least);
  }
  check_weight(name, "cost.micro_step", cost.micro_step);
  if (cost.degrees.empty()) throw_invalid(name, "cost.degrees is empty");
  for (std::size_t d = 0; d != std::min(ranks, cost.degrees.size()); ++d) {
    check_degree_time(d, cost.degrees[d]);
  }
}

/// Sets the slowness of all ranks. One speed, or no speed, means equal speeds.
inline void set_speeds(context_instance& instance, std::vector<double> const& given) {
  part_speeds const speeds(context_groups_name, given, instance.ranks, "ranks");
  auto const fastest = static_cast<double>(speeds.largest());
  instance.total_speed = static_cast<double>(speeds.sum()) / fastest;
  instance.slowness.clear();
  instance.max_slowness = 1;
  if (speeds.are_equal()) return;
  for (std::size_t rank = 0; rank != instance.ranks; ++rank) {
    instance.slowness.push_back(fastest / static_cast<double>(speeds[rank]));
    instance.max_slowness = std::max(instance.max_slowness, instance.slowness.back());
  }
}

/// Sets the capacities of all ranks. Precondition: `set_speeds` was called. If only speeds or only
/// capacities differ, the lists of both are complete.
inline void set_capacities(context_instance& instance, context_groups_options const& options) {
  auto const& given = options.capacities;
  instance.capacity = instance.min_capacity = options.capacity;
  if (!given.empty()) {
    auto const [smallest, largest] = std::minmax_element(given.begin(), given.end());
    instance.min_capacity = *smallest;
    instance.capacity = *largest;
  }
  instance.capacities.clear();
  instance.total_capacity =
      static_cast<double>(instance.ranks) * static_cast<double>(instance.capacity);
  if (instance.has_equal_capacities()) {
    if (!instance.has_equal_ranks()) {
      instance.capacities.assign(instance.ranks, instance.capacity);
    }
    return;
  }
  instance.capacities = given;
  instance.total_capacity = 0;
  for (std::int64_t const capacity : given) {
    instance.total_capacity += static_cast<double>(capacity);
  }
  if (instance.has_equal_ranks()) instance.slowness.assign(instance.ranks, 1);
}

/// Writes the whole instance of a call from checked arguments. Throws if the options and the ranks
/// allow no degree. Returns the first sample by index that fits on no degree, if there is one; then
/// the instance is not complete. `sorting` is scratch memory.
[[nodiscard]] inline std::optional<misfit_sample> make_instance(
    std::span<std::uint32_t const> lengths, std::size_t ranks, context_cost const& cost,
    context_memory memory, context_groups_options const& options, keyed_indices& sorting,
    context_instance& instance) {
  instance.ranks = static_cast<std::uint32_t>(ranks);
  set_speeds(instance, options.speeds);
  set_capacities(instance, options);
  // Without nodes each rank is a node, and every group consists of whole nodes.
  instance.ranks_per_node = std::max<std::uint32_t>(1, options.ranks_per_node);
  instance.multiple = options.multiple;
  instance.micro_step_time = cost.micro_step;
  if (!select_degrees(instance, cost, options.degrees, options.placement)) {
    throw_invalid(
        context_groups_name, "options.degrees is ", list_text(options.degrees),
        ", must have a degree that ", ranks, " ranks",
        (options.ranks_per_node == 0 ? "" : " in nodes of " + to_text(options.ranks_per_node)),
        " allow");
  }
  write_sorted_samples(lengths, sorting, instance.samples);
  return set_min_degrees(instance, memory);
}

}  // namespace omnibal::inline v0::detail
