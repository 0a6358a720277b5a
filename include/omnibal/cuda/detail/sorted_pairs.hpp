// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Merge sort of pairs by the threads of a block or of a grid, and the ranking of parts by load.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/detail/load_order.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Distinct pairs of a key and a value, and memory for the same number of pairs.
struct sorted_pairs {
  std::uint64_t* keys;
  std::uint32_t* values;
  std::uint64_t* spare_keys;
  std::uint32_t* spare_values;

  OMNIBAL_HOST_DEVICE void swap() {
    std::uint64_t* const other_keys = spare_keys;
    std::uint32_t* const other_values = spare_values;
    spare_keys = keys;
    spare_values = values;
    keys = other_keys;
    values = other_values;
  }

  /// Returns the pairs from a pair on.
  [[nodiscard]] OMNIBAL_HOST_DEVICE sorted_pairs from(std::size_t first) const {
    return {keys + first, values + first, spare_keys + first, spare_values + first};
  }

  /// Sorts the first `n` pairs, ascending by key and then by value, if every run of `width` pairs,
  /// a power of two, is sorted. Each pair finds its place in the other one of two runs. After each
  /// doubling of the runs both memories exchange their roles.
  template <thread_group Group>
  OMNIBAL_HOST_DEVICE void merge(Group& group, std::size_t n, std::size_t width) {
    for (; width < n; width *= 2) {
      group.for_each(n, [&](std::size_t i) {
        std::size_t const in_run = i & (width - 1);
        std::size_t const other = smaller_of((i - in_run) ^ width, n);
        std::size_t const before_both = (i - in_run) & ~width;
        move(i, before_both + in_run + count_before(i, other, smaller_of(other + width, n)));
      });
      swap();
    }
  }
  /// Merges two sorted runs, of which the first ends at `middle`.
  template <thread_group Group>
  OMNIBAL_HOST_DEVICE void merge_two(Group& group, std::size_t n, std::size_t middle) {
    if (middle == 0 || middle == n) return;
    group.for_each(n, [&](std::size_t i) {
      move(i,
           i < middle ? i + count_before(i, middle, n) : i - middle + count_before(i, 0, middle));
    });
    swap();
  }
  /// Chooses the memories such that the next merge ends in the memory that is now the first.
  OMNIBAL_HOST_DEVICE void begin_merge(std::size_t n, std::size_t width) {
    for (; width < n; width *= 2) swap();
  }

 private:
  OMNIBAL_HOST_DEVICE void move(std::size_t i, std::size_t place) const {
    spare_keys[place] = keys[i];
    spare_values[place] = values[i];
  }
  /// Returns the number of pairs of the sorted run [first, last) that come before pair i.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t count_before(std::size_t i, std::size_t first,
                                                             std::size_t last) const {
    std::uint64_t const key = keys[i];
    std::uint32_t const value = values[i];
    return first_false(first, last,
                       [&](std::size_t k) {
                         return keys[k] < key || (keys[k] == key && values[k] < value);
                       }) -
           first;
  }
};

/// A load above all others.
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
  /// Memory of `spare_words` words for the sort, whose contents are lost.
  std::uint64_t* spare;
  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr std::size_t spare_words(std::size_t parts) {
    return parts > max_counted ? parts + (parts + 1) / 2 : 0;
  }

  /// Takes the arrays; the spare memory belongs to another array.
  template <array_arena Arena>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static part_ranking take(Arena& arena, std::size_t parts,
                                                             void* spare) {
    auto* const loads = arena.template take<std::uint64_t>(parts);
    return {loads, arena.template take<std::uint32_t>(parts), static_cast<std::uint64_t*>(spare)};
  }

  /// Ranks `count` parts by `load(part)`. The rank of a part is the number of the parts before it,
  /// which several threads count. A merge sort ranks the parts if counting takes longer.
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

  /// Returns the number of the first `count` ranks that have no larger load.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t first_above(std::uint32_t count,
                                                              std::uint64_t load) const {
    return first_false(std::uint32_t{0}, count,
                       [&](std::uint32_t rank) { return loads[rank] <= load; });
  }

  /// Returns the first rank of [first, last) whose part comes after a part with this load, or
  /// `last`.
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
