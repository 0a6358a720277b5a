// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The constants of devices, links and software that predict the time of a training step.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace omnibal::inline v0 {

/// Devices, their links, and the software that runs on them, by ten rates and durations. They are
/// achieved numbers and not the numbers of a data sheet: `fit_machine` finds them from a few runs.
/// None of them depends on a model. A rate may be infinite; such work costs no time.
struct machine {
  /// FLOPs per second that the largest matrix products in bf16 or fp16 approach.
  double matmul_flops_per_second = 0;
  /// The rate of products in FP8 divided by the rate in bf16.
  double fp8_gain = 2;
  /// Bytes per second at which a product reads and writes its three matrices, in addition to its
  /// FLOPs. This number bends the curve of the efficiency: it decides how slow small products are.
  double operand_bytes_per_second = 0;
  /// Bytes per second of all operations that are no products: norms, activations, sums, casts,
  /// scores of unfused attention, the optimizer. Fused kernels move fewer bytes than are counted,
  /// so that the number may exceed the bandwidth of the memory.
  double memory_bytes_per_second = 0;
  /// FLOPs per second of fused attention; a causal mask counts half.
  double attention_flops_per_second = 0;
  /// Bytes per second of one device in collectives within a node.
  double node_bytes_per_second = 0;
  /// Bytes per second of one device between nodes: the rate of a node divided by its devices.
  double network_bytes_per_second = 0;
  /// Bytes per second of one device that sends tokens to experts within a node.
  double exchange_bytes_per_second = 0;
  /// Seconds of one step of a ring or a tree, whatever it carries.
  double hop_seconds = 0;
  /// The least seconds in which the host launches one pass of one layer.
  double launch_seconds = 0;
  /// Devices that are connected by fast links; a fact and not a constant.
  std::int64_t devices_per_node = 8;

  [[nodiscard]] friend bool operator==(machine const&, machine const&) = default;
};

/// A member of a machine that is a constant.
using machine_member = double machine::*;

/// A constant of a machine with the name of its member.
struct machine_constant {
  std::string_view name;
  machine_member member;
};

/// The constants of a machine in the order of its members.
inline constexpr std::array<machine_constant, 10> machine_constants{{
    {"matmul_flops_per_second", &machine::matmul_flops_per_second},
    {"fp8_gain", &machine::fp8_gain},
    {"operand_bytes_per_second", &machine::operand_bytes_per_second},
    {"memory_bytes_per_second", &machine::memory_bytes_per_second},
    {"attention_flops_per_second", &machine::attention_flops_per_second},
    {"node_bytes_per_second", &machine::node_bytes_per_second},
    {"network_bytes_per_second", &machine::network_bytes_per_second},
    {"exchange_bytes_per_second", &machine::exchange_bytes_per_second},
    {"hop_seconds", &machine::hop_seconds},
    {"launch_seconds", &machine::launch_seconds},
}};

namespace detail {

/// Returns true for the constants that may be zero.
[[nodiscard]] constexpr bool is_duration(machine_constant const& constant) {
  return constant.member == &machine::hop_seconds || constant.member == &machine::launch_seconds;
}

/// Throws unless a machine has positive rates, which may be infinite, and finite durations.
inline void check_machine(std::string_view function, machine const& given) {
  for (machine_constant const& constant : machine_constants) {
    double const value = given.*constant.member;
    if (is_duration(constant)) {
      check_weight(function, joined_text("machine.", constant.name), value);
    } else if (!(value > 0.0)) {
      throw_invalid(function, "machine.", constant.name, " is ", value, ", must be positive");
    }
  }
  check_between(function, "machine.devices_per_node", given.devices_per_node, 1,
                std::int64_t{1} << 20);
}

}  // namespace detail

}  // namespace omnibal::inline v0
