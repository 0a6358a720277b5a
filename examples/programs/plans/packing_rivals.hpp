// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What other packers of long and short sequences do. They are compared with the library's and are
/// not part of it.

#include <omnibal/pack/packing.hpp>

#include <cstdint>
#include <span>

namespace examples {

/// First fit of the samples in random order (first-fit shuffle): each goes to the first pack that
/// has room. Oversized ones are listed. Complexity: n log n.
[[nodiscard]] omnibal::packing first_fit_shuffled(std::span<std::int64_t const> lengths,
                                                  std::int64_t capacity, std::uint64_t seed);

/// Shortest-pack-first histogram packing: from the longest length to the shortest, samples go to
/// the pack with the most room. Packs with the same lengths are one with a number until they part,
/// so that the work grows with the kinds of packs. Oversized samples are listed. Source: Krell et
/// al., "Efficient sequence packing without cross-contamination", 2021 (arXiv 2107.02027).
[[nodiscard]] omnibal::packing shortest_pack_first(std::span<std::int64_t const> lengths,
                                                   std::int64_t capacity);

}  // namespace examples
