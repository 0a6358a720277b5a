#pragma once

/// \file
/// What the search for the smallest bottleneck holds on the device.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/atomics.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/fault.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// The limits between which the smallest bottleneck lies. Both are sums that occur, or bounds.
struct minimax_state {
  std::uint64_t low;
  std::uint64_t high;
  std::uint32_t size;  ///< layers; none where there is a fault

  [[nodiscard]] OMNIBAL_HOST_DEVICE bool is_found() const { return low >= high; }
  /// Limit k of several that divide the range evenly, below the upper end.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t limit(std::size_t k, std::size_t count) const {
    std::uint64_t const range = high - low;
    return low + range / (count + 1) * (k + 1) + range % (count + 1) * (k + 1) / (count + 1);
  }
};

/// What a probe has seen: stages that are as long as a limit allows.
struct probed_stages {
  std::uint64_t realised;  ///< the largest cost of a stage
  std::uint64_t overflow;  ///< the least cost of a stage with the layer after it
  std::uint64_t count;     ///< stages
};

inline constexpr probed_stages nothing_probed{0, ~std::uint64_t{0}, 0};

struct merge_probed {
  OMNIBAL_HOST_DEVICE probed_stages operator()(probed_stages const& a,
                                               probed_stages const& b) const {
    return {larger_of(a.realised, b.realised), smaller_of(a.overflow, b.overflow),
            a.count + b.count};
  }
};

/// The chain and what is known of it.
struct minimax_chain {
  std::uint64_t const* sums;  ///< of the first layers
  minimax_state const* state;
  std::uint32_t likely;  ///< layers of a stage
};

/// Layers whose costs are added at once.
inline constexpr std::size_t layer_tile = 4096;
inline constexpr int layer_threads = 512;

/// The costs of the caller as unsigned numbers, in which one that is not valid is above all others.
template <class T>
struct layer_costs {
  T const* costs;
  std::size_t size;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t operator[](std::size_t i) const {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(costs[i]));
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t tile_size(std::size_t tile) const {
    return smaller_of(layer_tile, size - tile * layer_tile);
  }
};

/// Sum and largest cost of each tile.
template <class T>
struct measure_layers {
  layer_costs<T> costs;
  std::uint64_t* sums_of_tiles;
  std::uint64_t* largest_of_tiles;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t tile) const {
    std::size_t const count = costs.tile_size(tile);
    auto const cost = [&](std::size_t i) { return costs[tile * layer_tile + i]; };
    std::uint64_t const sum = block.reduce(count, cost, add_saturating{}, std::uint64_t{0});
    std::uint64_t const largest = block.reduce(count, cost, take_larger{}, std::uint64_t{0});
    block.once([&] {
      sums_of_tiles[tile] = sum;
      largest_of_tiles[tile] = largest;
    });
  }
};

/// Adds the tiles, makes the first limits and empties the cells of the probes.
struct begin_minimax {
  std::uint64_t* sums;
  std::uint64_t* sums_of_tiles;
  std::uint64_t const* largest_of_tiles;
  std::size_t size;
  std::size_t stages;
  minimax_state* state;
  probed_stages* probed;
  std::size_t candidates;
  fault* faults;

  static constexpr int threads = 1024;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    std::size_t const tiles = parts_of(size, layer_tile);
    std::uint64_t const sum = block.reduce(
        tiles, [&](std::size_t t) { return sums_of_tiles[t]; }, add_saturating{}, std::uint64_t{0});
    std::uint64_t const largest = block.reduce(
        tiles, [&](std::size_t t) { return largest_of_tiles[t]; }, take_larger{}, std::uint64_t{0});
    block.exclusive_sum(sums_of_tiles, tiles);
    block.for_each(candidates, [&](std::size_t k) { probed[k] = nothing_probed; });
    block.once([&] {
      sums[size] = sum;
      if (largest > largest_sum) raise(faults, fault::invalid_amount);
      if (largest <= largest_sum && sum > largest_sum) raise(faults, fault::overflow);
      *state = first_limits(sum, largest);
    });
  }

 private:
  [[nodiscard]] OMNIBAL_HOST_DEVICE minimax_state first_limits(std::uint64_t sum,
                                                               std::uint64_t largest) const {
    if (largest > largest_sum || sum > largest_sum) return {0, 0, 0};
    std::uint64_t const mean = sum / stages + (sum % stages != 0 ? 1 : 0);
    // Enough for stages that are all fuller than the mean but for the last.
    std::uint64_t const enough = largest < sum - mean ? mean + largest : sum;
    return {larger_of(largest, mean), enough, static_cast<std::uint32_t>(size)};
  }
};

/// Writes the sum before each layer of a tile.
template <class T>
struct write_sums {
  layer_costs<T> costs;
  std::uint64_t const* sums_of_tiles;
  std::uint64_t* sums;

  static constexpr std::size_t shared_bytes = layer_tile * sizeof(std::uint64_t);

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t tile) const {
    std::size_t const first = tile * layer_tile;
    std::size_t const count = costs.tile_size(tile);
    auto* const before = block.template shared<std::uint64_t>(layer_tile);
    block.for_each(count, [&](std::size_t i) { before[i] = costs[first + i]; });
    block.exclusive_sum(before, count);
    block.for_each(count,
                   [&](std::size_t i) { sums[first + i] = sums_of_tiles[tile] + before[i]; });
  }
};

/// Moves the limits to what the probes have seen.
struct narrow_minimax {
  minimax_state* state;
  probed_stages* probed;
  std::size_t candidates;
  std::size_t stages;

  static constexpr int threads = 256;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    if (state->is_found()) return;
    std::uint64_t const high = block.reduce(
        candidates,
        [&](std::size_t k) {
          return probed[k].count <= stages ? probed[k].realised : ~std::uint64_t{0};
        },
        take_smaller{}, state->high);
    std::uint64_t const low = block.reduce(
        candidates,
        [&](std::size_t k) { return probed[k].count <= stages ? 0 : probed[k].overflow; },
        take_larger{}, state->low);
    block.for_each(candidates, [&](std::size_t k) {
      probed[k] = nothing_probed;
      if (k != 0) return;
      state->low = low;
      state->high = high;
    });
  }
};

/// The stages of an empty chain, which the cuts of a longer one replace, and the bottleneck.
struct write_no_cuts {
  minimax_state const* state;
  std::size_t stages;
  std::size_t fewest;
  std::uint32_t* boundaries;
  std::int64_t* bottleneck;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t s) const {
    boundaries[s] = s == stages ? state->size : static_cast<std::uint32_t>(s * fewest);
    if (s == 0 && bottleneck != nullptr) *bottleneck = static_cast<std::int64_t>(state->high);
  }
};

}  // namespace omnibal::inline v0::gpu::detail
