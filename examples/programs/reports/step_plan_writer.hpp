// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The plans of pack_long_context on disk: which ranks run which samples in each step.

#include "context_comparison.hpp"
#include "dataset.hpp"
#include "long_context_options.hpp"
#include "long_context_plans.hpp"
#include "staged_files.hpp"

#include <string>
#include <vector>

namespace examples {

/// Write plan.json and, for each plan, a file of JSON lines with its steps for `options.output`,
/// where they appear when the files are committed; docs/reference/files.md describes them. Equal
/// input gives equal bytes. Return the names of the files. Errors: `std::runtime_error` where a
/// file cannot be written.
std::vector<std::string> write_level_plan(staged_files& files, dataset const& data,
                                          long_context_options const& options,
                                          heard_profile const& profile,
                                          long_context_plan const& plan);
std::vector<std::string> write_step_plans(staged_files& files, dataset const& data,
                                          long_context_options const& options,
                                          context_setting const& setting,
                                          context_comparison const& comparison);

}  // namespace examples
