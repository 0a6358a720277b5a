// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How even and how full batches are, before and after packing.

#include "dataset.hpp"
#include "pack_options.hpp"

#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace examples {

/// Whether a batch is a rectangle, with each sample as long as the longest.
enum class batch_layout { padded, concatenated };

/// Images and tokens.
using amounts = omnibal::resources<2, double>;

/// One way of making batches out of the samples that are not oversized.
struct batch_figures {
  std::size_t batches = 0;
  double samples_per_batch = 0;
  /// Batches that hold more than the capacity, their padding included.
  std::size_t over_capacity = 0;
  /// The share of the capacity that samples take, without padding.
  amounts fill{};
  /// The share of the tokens that is padding, mean over the batches.
  double pad_ratio = 0;
  /// The share of a step for which ranks wait, mean over the steps.
  amounts dist_ratio{};
};

/// What the figures are means of.
struct measured_batches {
  batch_figures figures;
  /// What a rank computes for each batch, padding included.
  std::vector<amounts> loads;
  /// The share of the capacity that the samples of each batch take, without padding.
  std::vector<amounts> fill;
  /// The share of each step for which ranks wait for the slowest, padding included.
  std::vector<amounts> waiting;
};

/// Returns the number of loads that exceed the capacity.
[[nodiscard]] std::size_t count_above(std::span<amounts const> loads,
                                      omnibal::resources<2> const& capacity);

/// The share of each step for which ranks wait where the groups are dealt in this order. A rank
/// that gets none in the last step waits for all of it.
[[nodiscard]] std::vector<amounts> waiting_per_step(std::span<std::uint32_t const> order,
                                                    std::size_t ranks,
                                                    std::span<omnibal::resources<2> const> loads);

/// The groups of a packing, dealt to the ranks in this order.
[[nodiscard]] measured_batches measure_packed(dataset const& data, pack_options const& options,
                                              omnibal::packing const& result,
                                              std::span<omnibal::resources<2> const> loads,
                                              std::span<std::uint32_t const> order);

/// The same samples in shuffled order, in batches of as many as fit under the capacity, padded to
/// the longest sample of a batch or not: what training without a planner can do.
[[nodiscard]] measured_batches measure_filled(dataset const& data, pack_options const& options,
                                              omnibal::packing const& result, batch_layout layout);

/// The same samples in shuffled order, in batches of a fixed number of samples, the mean number of
/// the packing, each padded to its longest sample: what training without packing does.
[[nodiscard]] measured_batches measure_random(dataset const& data, pack_options const& options,
                                              omnibal::packing const& result);

}  // namespace examples
