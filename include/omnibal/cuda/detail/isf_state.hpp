#pragma once

/// \file
/// What the rounds of `isf` hold on the device.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/chain_links.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/narrow_permutation.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/packing_span.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// The demands as the caller has them: resources or plain weights, integers.
template <class Amount, std::size_t R>
struct isf_input {
  Amount const* demands;
  std::size_t size;
  resources<R> capacity;

  /// What sample i takes of a resource; a value that no signed integer holds comes out negative.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t amount(std::size_t i, std::size_t kind) const {
    return static_cast<std::int64_t>(weight_at(demands[i], kind));
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool is_valid(std::size_t i) const {
    bool result = true;
    for (std::size_t r = 0; r != R; ++r) result = result && amount(i, r) >= 0;
    return result;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool fits(std::size_t i) const {
    bool result = true;
    for (std::size_t r = 0; r != R; ++r) result = result && amount(i, r) <= capacity[r];
    return result;
  }
};

/// The arrays of the caller; a null pointer where nobody asks.
struct isf_output {
  std::uint32_t* offsets;
  std::size_t offset_room;
  std::uint32_t* items;
  std::uint32_t* group_count;
  std::uint32_t* oversized;
  std::size_t oversized_room;
  std::uint32_t* oversized_count;
  packing_report* report;
  fault* faults;
};

[[nodiscard]] inline isf_output isf_output_of(packing_span const& out) {
  return {out.groups.offsets.data(),     out.groups.offsets.size(), out.groups.items.data(),
          out.groups.group_count.data(), out.oversized.data(),      out.oversized.size(),
          out.oversized_count.data(),    out.report.data(),         out.faults.data()};
}

/// What is known before a round.
struct isf_state {
  std::uint32_t pool_size;
  std::uint32_t item_count;   ///< in groups that were kept
  std::uint32_t group_count;  ///< kept
  std::uint32_t below_keep;
  std::uint32_t oversized_count;
  std::uint32_t is_last;
  std::uint64_t rounds;
  std::uint64_t item_rounds;
  std::uint64_t lower_bound;
  /// The order of the round.
  narrow_permutation order;
};

/// Samples whose demands are added at once.
inline constexpr std::uint32_t isf_tile = 1024;

/// Sums of the demands of the first samples of the shuffled pool: those of the tiles before, and in
/// the tile of a sample those before it. There is one for the end of the pool, too.
struct isf_sums {
  std::int64_t* in_tile;
  std::size_t in_tile_stride;  ///< from a resource to the next
  std::int64_t* of_tiles;
  std::size_t of_tiles_stride;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t before(std::uint32_t i, std::size_t kind) const {
    return of_tiles[kind * of_tiles_stride + i / isf_tile] + in_tile[kind * in_tile_stride + i];
  }
};

/// The scratch of the rounds.
struct isf_arrays {
  /// Two, of which a round reads one and writes the other.
  isf_state* states;
  std::uint32_t* pool;
  std::uint32_t* shuffled;
  isf_sums sums;
  chain_links links;
  /// For each segment of a chain: bits of items in kept groups, above them bits of their heads.
  std::uint32_t* marks;

  // For each chunk of a chain, from here on.
  std::uint32_t* is_carried;   ///< whether the group that reaches into it from before is kept
  std::uint32_t* kept_items;   ///< their number, then the number before
  std::uint32_t* kept_groups;  ///< their number, then the number before
  std::uint32_t* below_keep;
};

template <std::size_t R, class Backend>
[[nodiscard]] isf_arrays make_isf_arrays(Backend& backend, std::size_t samples) {
  std::size_t const sum_stride = samples + 1;
  std::size_t const tile_stride = parts_of(samples, isf_tile) + 1;
  chain_links const links = make_links(backend, samples);
  std::size_t const chunks = links.chunk_count;
  return {.states = backend.template scratch<isf_state>(2),
          .pool = backend.template scratch<std::uint32_t>(samples),
          .shuffled = backend.template scratch<std::uint32_t>(samples),
          .sums = {.in_tile = backend.template scratch<std::int64_t>(R * sum_stride),
                   .in_tile_stride = sum_stride,
                   .of_tiles = backend.template scratch<std::int64_t>(R * tile_stride),
                   .of_tiles_stride = tile_stride},
          .links = links,
          .marks = backend.template scratch<std::uint32_t>(chunks * chain_segments),
          .is_carried = backend.template scratch<std::uint32_t>(chunks),
          .kept_items = backend.template scratch<std::uint32_t>(chunks),
          .kept_groups = backend.template scratch<std::uint32_t>(chunks),
          .below_keep = backend.template scratch<std::uint32_t>(chunks)};
}

}  // namespace omnibal::inline v0::gpu::detail
