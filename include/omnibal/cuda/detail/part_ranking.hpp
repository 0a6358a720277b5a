// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The ranking of parts by load.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/detail/sorted_pairs.hpp>
#include <omnibal/detail/load_order.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// A load above the load of every part, for parts that must be ranked last.
inline constexpr std::uint64_t no_load = ~std::uint64_t{0};

/// Returns whether the first part comes before the second in `load_order`.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool is_before(std::uint64_t load, std::uint32_t part,
                                                           std::uint64_t other_load,
                                                           std::uint32_t other_part) {
  using loaded_part = omnibal::detail::load_order<std::uint64_t>;
  return loaded_part{load, part} < loaded_part{other_load, other_part};
}

/// The parts of a step in ascending order of load.
struct part_ranking {
  std::uint64_t* loads;
  std::uint32_t* parts;
  /// The largest number of parts that are ranked by counting; more parts are sorted.
  static constexpr std::size_t max_counted = 128;
  /// Memory of `spare_words` words of 32 bits for the sort, which overwrites it.
  std::uint64_t* spare;
  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr std::size_t spare_words(std::size_t parts) {
    return parts > max_counted ? parts + (parts + 1) / 2 : 0;
  }

  /// Reserves the arrays from an arena. `spare` may be the memory of another array, which `rank`
  /// overwrites.
  template <array_arena Arena>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static part_ranking take(Arena& arena, std::size_t parts,
                                                             void* spare) {
    auto* const loads = arena.template take<std::uint64_t>(parts);
    return {loads, arena.template take<std::uint32_t>(parts), static_cast<std::uint64_t*>(spare)};
  }

  /// Ranks `count` parts by `load(part)`. The rank of a part is the number of parts before it,
  /// which several threads count. Above `max_counted` parts a merge sort ranks the parts instead.
  template <thread_block Block, class Load>
  OMNIBAL_HOST_DEVICE void rank(Block& block, std::uint32_t count, Load const& load) const {
    if (count > max_counted) {
      sorted_pairs pairs{loads, parts, spare, reinterpret_cast<std::uint32_t*>(spare + count)};
      pairs.begin_merge(count, 1);
      block.for_each(count, [&](std::size_t part) {
        pairs.keys[part] = load(static_cast<std::uint32_t>(part));
        pairs.values[part] = static_cast<std::uint32_t>(part);
      });
      return pairs.merge(block, count, 1);
    }
    block.reduce_each(
        count, count,
        [&](std::size_t i, std::size_t j) {
          auto const part = static_cast<std::uint32_t>(i);
          auto const other = static_cast<std::uint32_t>(j);
          return is_before(load(other), other, load(part), part) ? 1u : 0u;
        },
        add{}, 0u,
        [&](std::size_t i, std::uint32_t rank) {
          auto const part = static_cast<std::uint32_t>(i);
          loads[rank] = load(part);
          parts[rank] = part;
        });
  }

  /// Returns the number of the ranks below `count` whose load is at most `load`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t first_above(std::uint32_t count,
                                                              std::uint64_t load) const {
    return first_false(std::uint32_t{0}, count,
                       [&](std::uint32_t rank) { return loads[rank] <= load; });
  }

  /// Returns the first rank of [first, last) whose part follows `part` in the order of loads if
  /// `part` has the load `load`. Returns `last` if there is no such rank.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t first_after(std::uint32_t first,
                                                              std::uint32_t last,
                                                              std::uint64_t load,
                                                              std::uint32_t part) const {
    return first_false(first, last, [&](std::uint32_t rank) {
      return !is_before(load, part, loads[rank], parts[rank]);
    });
  }
};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
