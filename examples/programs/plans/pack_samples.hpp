// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// From lengths to groups: the capacity, the packer, the keep rule and the shuffler that the
/// options name.

#include "dataset.hpp"
#include "pack_options.hpp"

#include <omnibal/demand.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace examples {

/// The demand of a sample as it is.
inline constexpr auto true_demand = omnibal::demand_of(&sample::images, &sample::tokens);

/// The demand with the tokens rounded up to the multiple of the options.
[[nodiscard]] inline auto packed_demand(pack_options const& options) {
  return omnibal::aligned(true_demand, omnibal::resources{1, options.align_tokens});
}

/// The same of text, which has one resource.
[[nodiscard]] inline auto packed_text_demand(pack_options const& options) {
  return omnibal::aligned(omnibal::demand_of(&sample::tokens),
                          omnibal::resources{options.align_tokens});
}

/// Makes sure that no sum of demands, in whichever group, leaves 64 bits. Samples that exceed the
/// capacity alone are in no group and do not count. Errors: `input_error` for the first record that
/// is too much.
void check_sums(dataset const& data, pack_options const& options);

[[nodiscard]] omnibal::packing pack_samples(dataset const& data, pack_options const& options);

/// The capacity at which the packer's groups have `options.target_batch` samples in the mean, or up
/// to one more, and ranks wait the least.
struct chosen_capacity {
  omnibal::solve_status status;
  omnibal::resources<2> capacity;
  double samples_per_group;
  std::size_t packings;
  std::size_t finalists;
};

[[nodiscard]] chosen_capacity choose_capacity(dataset const& data, pack_options const& options);

/// For each resource the smallest amount that 999 of 1000 samples do not exceed.
[[nodiscard]] omnibal::resources<2> usual_most(dataset const& data, pack_options const& options);

/// The power of two that holds all samples but one in a thousand, rounded up to a multiple of the
/// alignment.
[[nodiscard]] std::int64_t context_length(dataset const& data, pack_options const& options);

/// Fails where more than half of the samples are oversized, and names a capacity that holds most.
void check_oversized(dataset const& data, pack_options const& options,
                     omnibal::packing const& result);

/// Says how many samples are in no group, the capacity and the most that one of them has; empty
/// where there are none.
[[nodiscard]] std::string left_out_text(dataset const& data, pack_options const& options,
                                        omnibal::packing const& result);

/// A random order in which the groups are dealt: group `order[step * ranks + rank]` goes to that
/// rank.
[[nodiscard]] std::vector<std::uint32_t> dealing_order(std::size_t groups, std::uint64_t seed,
                                                       std::uint64_t epoch = 0);

}  // namespace examples
