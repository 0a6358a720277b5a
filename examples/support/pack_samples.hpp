#pragma once

/// \file
/// From lengths to groups: the capacity, the packer, the keep rule and the shuffler that the options name.

#include "dataset.hpp"
#include "pack_options.hpp"

#include <omnibal/demand.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/tune_capacity_options.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace examples {

/// The demand of a sample as it is.
inline constexpr auto true_demand = omnibal::demand_of(&sample::images, &sample::tokens);

/// The demand with the tokens rounded up to the multiple of the options.
[[nodiscard]] inline auto packed_demand(pack_options const& options) {
  return omnibal::aligned(true_demand, omnibal::resources{1, options.align_tokens});
}

/// Makes sure that no sum of demands, in whichever group, leaves 64 bits. Samples that exceed the
/// capacity alone are in no group and do not count. Errors: `input_error` for the first record that
/// is too much.
void check_sums(dataset const& data, pack_options const& options);

[[nodiscard]] omnibal::packing pack_samples(dataset const& data, pack_options const& options);

/// The capacity at which the packer's groups have `options.target_batch` samples in the mean, or up
/// to one more, and ranks wait the least.
[[nodiscard]] omnibal::tuned<2> choose_capacity(dataset const& data, pack_options const& options);

/// A random order in which the groups are dealt: group `order[step * ranks + rank]` goes to that
/// rank.
[[nodiscard]] std::vector<std::uint32_t> dealing_order(std::size_t groups, std::uint64_t seed,
                                                       std::uint64_t epoch = 0);

}  // namespace examples
