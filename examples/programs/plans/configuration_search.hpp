// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Searches for the configuration of a training step, and for what other machines would change.

#include "configure_options.hpp"

#include <omnibal/plan/configuration_plan.hpp>

#include <optional>
#include <string>
#include <vector>

namespace examples {

/// A machine that differs in one number.
struct changed_machine {
  /// "twice the memory"
  std::string change;
  omnibal::configuration_plan plan{};
};

struct configuration_results {
  omnibal::configuration_plan best{};
  /// The configuration of the user, whose memory may exceed the memory of a device.
  std::optional<omnibal::configuration_plan> compared{};
  std::vector<changed_machine> changes{};
  /// Tokens of a step, without padding.
  double tokens = 0;
};

/// The samples of a step, by length files or of one length. Errors: those of `read_lengths`, and
/// `std::runtime_error` for a tower without samples that have images.
[[nodiscard]] omnibal::step_data step_data_of(configure_options const& options);

/// Errors: `std::runtime_error` if no configuration fits, with the bytes that are missing; those of
/// `plan_configuration`.
[[nodiscard]] configuration_results search_configurations(configure_options const& options);

}  // namespace examples
