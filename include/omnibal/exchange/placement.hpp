#pragma once

/// \file
/// Which rank takes which part.

#include <omnibal/balance/detail/costs.hpp>
#include <omnibal/balance/detail/part_of_samples.hpp>
#include <omnibal/check.hpp>
#include <omnibal/exchange/detail/measured_bytes.hpp>
#include <omnibal/exchange/detail/rank_placer.hpp>
#include <omnibal/exchange/exchange_options.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct placement_result {
  std::vector<std::uint32_t> rank_of_part;
  /// The bytes of samples that change their rank, and of those that change their node.
  std::int64_t moved_bytes = 0;
  std::int64_t moved_bytes_across_nodes = 0;
  /// No placement moves fewer bytes across nodes.
  std::int64_t least_across_nodes = 0;
  /// No placement moves fewer bytes across nodes, nor fewer across ranks of those that move as few
  /// across nodes.
  bool proven = false;
};

struct placement_fn {
  /// Gives each part to a rank so that the fewest bytes leave their node, and of such placements
  /// one by which the fewest leave their rank. `home` has the samples that lie on each rank,
  /// `parts` as many parts of the same samples; `bytes` is a functor of the index of a sample, or a
  /// range with an element for each.
  ///
  /// Up to 128 ranks and 2^61 bytes the result is the best, and proven. Above, and where parts are
  /// not all where they have most bytes, the pair of a part and a node with the most bytes goes
  /// first, then in each node the pair of a part and a rank, and then two parts change places while
  /// that helps, for at most 16 passes. A `home` that is as good as the pairs keeps its places.
  ///
  /// Complexity: linear and a sort of the ranks on which each part has bytes; the best placement
  /// takes at most ranks^3 where parts are not all where they have most. Memory: 16 bytes per
  /// sample, 48 per pair of a part and a rank where it has bytes, and 16 ranks^2 for the best
  /// placement. Determinism: portable. Errors: `std::invalid_argument` for bytes that are negative
  /// or above 2^63 - 1, another number of parts than of ranks, no ranks in a node, and a `home` or
  /// `parts` that name an index twice or leave one out; `std::overflow_error` where the sum of the
  /// bytes leaves its type. Source: the assignment of batches to nodes is that of OrchMLLM
  /// (arXiv 2503.23830, 2025).
  template <detail::index_bytes Bytes>
  [[nodiscard]] placement_result operator()(grouping_view home, grouping_view parts,
                                            Bytes const& bytes,
                                            placement_options const& options = {}) const {
    detail::check_ranks_per_node(name, options.ranks_per_node);
    if (parts.size() != home.size()) {
      detail::throw_invalid(name, "there are " + detail::to_text(parts.size()) + " parts, but " +
                                      detail::to_text(home.size()) + " ranks");
    }
    std::size_t const count = home.item_count();
    detail::whole_costs<1> whole;
    detail::measure_bytes_into(name, bytes, count, whole);
    std::vector<std::uint32_t> home_of;
    std::vector<std::uint32_t> part_of;
    detail::part_of_samples(name, "rank", home, count, home_of);
    detail::part_of_samples(name, "part", parts, count, part_of);
    if (parts.empty()) return {{}, 0, 0, 0, true};

    detail::rank_placer placer;
    placer.run(
        home_of, parts, [&](std::uint32_t sample) { return whole[sample][0]; },
        options.ranks_per_node);
    return {{placer.rank_of().begin(), placer.rank_of().end()},
            placer.moved_bytes(),
            placer.moved_bytes_across_nodes(),
            placer.least_across_nodes(),
            placer.is_proven()};
  }

 private:
  static constexpr std::string_view name = "placement";
};

/// Which rank takes which part; see `placement_fn`.
inline constexpr placement_fn placement{};

}  // namespace omnibal::inline v0
