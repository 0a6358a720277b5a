// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Machines by name or from a file: what a device has and reaches, and what connects devices.
/// docs/reference/models.md describes the file.

#include <omnibal/cost/device_model.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace examples {

/// Rates are per second. Those at their largest value are of what takes no time.
struct machine_description {
  static constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::max();

  std::string name;
  /// Of a device, and what of it is for the context of the device, buffers and fragmentation.
  std::int64_t memory_bytes = 0;
  std::int64_t reserve_bytes = 0;
  /// By the data sheet, and what matrix products reach.
  std::int64_t peak_flops = 0;
  std::int64_t flops = 0;
  /// Of memory, for what is no matrix product.
  std::int64_t bytes = no_time;
  /// Between devices of a node, and between those of different nodes, in one direction.
  std::int64_t node_link_bytes = no_time;
  std::int64_t link_bytes = no_time;
  /// All that train; 0 where the machine does not say.
  std::int64_t ranks = 0;
  std::int64_t ranks_per_node = 8;

  [[nodiscard]] omnibal::device_model device() const {
    return {.flops_per_second = flops, .bytes_per_second = bytes};
  }
};

[[nodiscard]] std::vector<machine_description> const& known_machines();

/// A known machine by its name, or one from a file, which ends with `.json` or has a slash. Errors:
/// `input_error` that names the file, the field and the value, or the nearest known name.
[[nodiscard]] machine_description find_machine(std::string const& given);

}  // namespace examples
