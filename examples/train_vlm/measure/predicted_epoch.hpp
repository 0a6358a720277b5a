// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Predicted times of an epoch, before anything is trained.

#include "trainer.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace train_vlm {

/// The samples of each rank in a step.
using rank_samples = std::vector<std::vector<std::uint32_t>>;

/// The samples that each rank runs after the ranks exchanged what they drew.
[[nodiscard]] rank_samples post_balanced(packed_data const& data, time_model const& cost,
                                         rank_samples const& drawn);

/// The expected time of the slowest rank if each time differs from its prediction by a normal
/// error with the relative standard deviation `spread`. More ranks wait longer, even if their
/// predictions are equal.
[[nodiscard]] double expected_largest(std::span<double const> predicted, double spread);

/// The predicted seconds of an epoch in the form of the options: for each step the expected time of
/// the slowest rank, and the rest of a step.
[[nodiscard]] double predicted_epoch(train_options const& options, packed_data const& data,
                                     batch_profile const& profile, std::size_t ranks);

/// Prints the predicted epoch of the form of the options and of unpadded random batches, and says
/// if the form saves nothing on this data.
void print_prediction(train_options const& options, packed_data const& data,
                      batch_profile const& profile, std::size_t ranks);

}  // namespace train_vlm
