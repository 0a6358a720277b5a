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

/// Devices, their links and their software, described by ten constants: rates and durations. The
/// constants are achieved values, not the values of a data sheet; `fit_machine` computes them from
/// a few runs. No constant depends on a model. A rate may be infinite; the work then takes no time.
struct machine {
  /// The FLOPs per second that the largest matrix products in bf16 or fp16 approach.
  double matmul_flops_per_second = 0;
  /// The rate of products in FP8 divided by the rate in bf16.
  double fp8_gain = 2;
  /// The bytes per second at which a product reads and writes its three matrices, in addition to
  /// its FLOPs. This rate determines the efficiency of small products.
  double operand_bytes_per_second = 0;
  /// The bytes per second of all operations other than products: norms, activations, sums, casts,
  /// scores of unfused attention, the optimizer. The rate may exceed the bandwidth of the memory,
  /// because fused kernels move fewer bytes than the model counts.
  double memory_bytes_per_second = 0;
  /// The FLOPs per second of fused attention. With a causal mask, half of the FLOPs are counted.
  double attention_flops_per_second = 0;
  /// The bytes per second of one device in collectives within a node.
  double node_bytes_per_second = 0;
  /// The bytes per second of one device between nodes: the rate of a node divided by the number of
  /// its devices.
  double network_bytes_per_second = 0;
  /// The bytes per second at which one device sends tokens to experts within a node.
  double exchange_bytes_per_second = 0;
  /// The seconds of one step of a ring or a tree, independent of its bytes.
  double hop_seconds = 0;
  /// The minimum seconds of one pass of one layer, because the host must launch its kernels.
  double launch_seconds = 0;
  /// The number of devices that fast links connect. It is a fact, not a constant to fit.
  std::int64_t devices_per_node = 8;

  [[nodiscard]] friend bool operator==(machine const&, machine const&) = default;
};

/// A pointer to a member of a machine that is a constant.
using machine_member = double machine::*;

/// A constant of a machine, with the name of its member.
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

/// Returns true if the constant is a duration, which may be zero.
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
