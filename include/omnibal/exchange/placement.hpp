// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Assignment of parts to ranks.

#include <omnibal/balance/index_measure.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/detail/rank_placer.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// The rank of each part, and the bytes that move.
struct placement_result {
  std::vector<std::uint32_t> rank_of_part;
  /// The bytes of samples that change their rank.
  std::int64_t moved_bytes = 0;
  /// The bytes of samples that change their node.
  std::int64_t moved_bytes_across_nodes = 0;
  /// A lower bound: no placement moves fewer bytes across nodes.
  std::int64_t min_across_nodes = 0;
  /// Whether no placement moves fewer bytes across nodes, and no placement with equally few bytes
  /// across nodes moves fewer bytes across ranks.
  bool proven = false;
};

struct placement_fn {
  /// Assigns each part to a rank such that the fewest bytes leave their node. Among such placements
  /// it selects a placement with the fewest bytes that leave their rank. The argument `home`
  /// contains the samples of each rank, and `parts` the same number of parts with the same samples.
  /// The argument `bytes` is a functor of the index of a sample, or a range with an element for
  /// each sample.
  ///
  /// The result is the best, and proven, if the search requires at most 2^25 steps and all bytes
  /// are less than 2^61. This holds always up to 128 ranks, and for thousands of ranks if each part
  /// has bytes on tens of them. Beyond that limit, a search among 64 parts selects the best place
  /// for each further part, and `min_across_nodes` remains a valid bound. If the placement of each
  /// part r on rank r is as good as the placement that was found, it is returned.
  ///
  /// Complexity: linear in the pairs of a part and a rank that has bytes of the part, if most parts
  /// go to the rank with most of their bytes. Beyond the limit on steps, the search for the place
  /// of a part looks at the pairs of at most 64 parts. Memory: 56 bytes per sample and 200 per
  /// rank. Determinism: portable. Errors: `std::invalid_argument` if bytes are negative or above
  /// 2^63 - 1, if the number of parts differs from the ranks, or if a node has no ranks. It is also
  /// thrown if `home` or `parts` name an index twice or leave one out. Further errors:
  /// `std::overflow_error` if the sum of the bytes exceeds its type. Sources: OrchMLLM (arXiv
  /// 2503.23830, 2025), the assignment of batches to nodes; Jonker and Volgenant (Computing 38,
  /// 1987), shortest augmenting paths.
  template <detail::index_bytes Bytes>
  [[nodiscard]] placement_result operator()(groups_argument home, groups_argument parts,
                                            Bytes const& bytes,
                                            placement_options const& options = {}) const {
    if (parts.size() != home.size()) {
      detail::throw_invalid(name, "there are " + detail::to_text(parts.size()) + " parts, but " +
                                      detail::to_text(home.size()) + " ranks");
    }
    detail::check_nodes(name, options, home.size());
    std::size_t const count = home.item_count();
    detail::integer_costs<1> whole;
    detail::measure_bytes_into(name, bytes, count, whole);
    std::vector<std::uint32_t> home_of;
    std::vector<std::uint32_t> part_of;
    detail::part_of_samples(name, "rank", home, count, home_of);
    detail::part_of_samples(name, "part", parts, count, part_of);
    if (parts.empty()) return {{}, 0, 0, 0, true};

    detail::rank_placer placer;
    placer.run(
        home_of, parts, [&](std::uint32_t sample) { return whole[sample][0]; },
        detail::given_nodes::of(options));
    std::vector<std::uint32_t> rank_of_part;
    for (std::size_t part = 0; part != parts.size(); ++part) {
      rank_of_part.push_back(placer.rank_of(part));
    }
    return {std::move(rank_of_part), placer.moved_bytes(), placer.moved_bytes_across_nodes(),
            placer.min_across_nodes(), placer.is_proven()};
  }

 private:
  static constexpr std::string_view name = "placement";
};

/// Assigns each part to a rank such that few bytes move; see `placement_fn`.
inline constexpr placement_fn placement{};

}  // namespace omnibal::inline v0
