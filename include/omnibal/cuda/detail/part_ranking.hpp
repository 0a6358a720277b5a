#pragma once

/// \file
/// Parts by their loads, ranked by a block.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/sorted_pairs.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// A load above all others.
inline constexpr std::uint64_t no_load = ~std::uint64_t{0};

/// True where the first part comes before the second: the less loaded one, of equal ones the lower.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool is_before(std::uint64_t load, std::uint32_t part,
                                                           std::uint64_t other_load,
                                                           std::uint32_t other_part) {
  return load < other_load || (load == other_load && part < other_part);
}

/// The parts of a step from the least loaded one on.
struct part_ranking {
  std::uint64_t* loads;
  std::uint32_t* parts;
  /// More parts are sorted.
  static constexpr std::size_t most_counted = 128;
  /// Memory of so many words for that; what is there is lost.
  std::uint64_t* spare;
  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr std::size_t spare_words(std::size_t parts) {
    return parts > most_counted ? parts + (parts + 1) / 2 : 0;
  }

  /// The memory to spare is that of another array.
  template <class Arena>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static part_ranking take(Arena& arena, std::size_t parts,
                                                             void* spare) {
    auto* const loads = arena.template take<std::uint64_t>(parts);
    return {loads, arena.template take<std::uint32_t>(parts), static_cast<std::uint64_t*>(spare)};
  }

  /// Ranks so many parts by `load(part)`: each by the number of those before it, which several
  /// threads count, or by a merge sort where that takes longer.
  template <class Block, class Load>
  OMNIBAL_HOST_DEVICE void rank(Block& block, std::uint32_t count, Load const& load) const {
    if (count > most_counted) {
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

  /// How many of so many ranks have no larger load.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t first_above(std::uint32_t count,
                                                              std::uint64_t load) const {
    return first_false(std::uint32_t{0}, count,
                       [&](std::uint32_t rank) { return loads[rank] <= load; });
  }

  /// The first rank of [first, last) whose part comes after a part with this load, or `last`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t first_after(std::uint32_t first,
                                                              std::uint32_t last,
                                                              std::uint64_t load,
                                                              std::uint32_t part) const {
    return first_false(first, last, [&](std::uint32_t rank) {
      return !is_before(load, part, loads[rank], parts[rank]);
    });
  }
};

}  // namespace omnibal::inline v0::gpu::detail
