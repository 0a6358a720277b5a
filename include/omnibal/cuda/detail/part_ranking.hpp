#pragma once

/// \file
/// Parts by their loads, ranked by a block.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>

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
  /// As many elements as there are parts, and at least as many as there are threads.
  std::uint32_t* spare;

  template <class Arena>
  [[nodiscard]] OMNIBAL_HOST_DEVICE static part_ranking take(Arena& arena, std::size_t parts,
                                                             std::size_t threads) {
    auto* const loads = arena.template take<std::uint64_t>(parts);
    auto* const ranked = arena.template take<std::uint32_t>(parts);
    return {loads, ranked, arena.template take<std::uint32_t>(larger_of(parts, threads))};
  }

  /// Ranks so many parts by `load(part)`: each by the number of those before it, which several
  /// threads count, or by a sort where there are more parts than threads.
  template <class Block, class Load>
  OMNIBAL_HOST_DEVICE void rank(Block& block, std::uint32_t count, Load const& load) const {
    if (count > block.threads()) {
      block.for_each(count, [&](std::size_t part) {
        loads[part] = load(static_cast<std::uint32_t>(part));
        parts[part] = static_cast<std::uint32_t>(part);
      });
      block.sort_pairs(loads, parts, count);
      return;
    }
    std::uint32_t const shares = block.threads() / count;
    block.for_each(std::size_t{count} * shares, [&](std::size_t i) {
      auto const part = static_cast<std::uint32_t>(i) % count;
      auto const share = static_cast<std::uint32_t>(i) / count;
      std::uint64_t const own = load(part);
      std::uint32_t const last = (share + 1) * count / shares;
      std::uint32_t before = 0;
      for (std::uint32_t other = share * count / shares; other != last; ++other) {
        before += is_before(load(other), other, own, part) ? 1u : 0u;
      }
      spare[i] = before;
    });
    block.for_each(count, [&](std::size_t i) {
      auto const part = static_cast<std::uint32_t>(i);
      std::uint32_t rank = 0;
      for (std::uint32_t share = 0; share != shares; ++share) rank += spare[share * count + part];
      loads[rank] = load(part);
      parts[rank] = part;
    });
  }

  /// The first rank of [first, last) whose part comes after a part with this load, or `last`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t first_after(std::uint32_t first,
                                                              std::uint32_t last,
                                                              std::uint64_t load,
                                                              std::uint32_t part) const {
    while (first != last) {
      std::uint32_t const middle = first + (last - first) / 2;
      if (is_before(load, part, loads[middle], parts[middle])) {
        last = middle;
      } else {
        first = middle + 1;
      }
    }
    return first;
  }
};

}  // namespace omnibal::inline v0::gpu::detail
