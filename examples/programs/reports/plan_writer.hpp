// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The plan on disk: one JSON file that says everything, and the arrays for NumPy.

#include "dataset.hpp"
#include "pack_options.hpp"
#include "schedule_groups.hpp"
#include "staged_files.hpp"

#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace examples {

/// Writes plan.json, offsets.npy, items.npy, order.npy, left_out.npy, oversized.npy and loads.npy
/// for `options.output`, where they appear when the files are committed. An older plan is replaced.
/// docs/reference/files.md describes them.
///
/// `loads` has the images and tokens of every group. Equal input gives equal bytes. Returns the
/// names of the files. Errors: `std::runtime_error` where a file cannot be written.
std::vector<std::string> write_plan(staged_files& files, dataset const& data,
                                    pack_options const& options, omnibal::packing const& result,
                                    std::span<omnibal::resources<2> const> loads,
                                    measured_steps const& schedule);

}  // namespace examples
