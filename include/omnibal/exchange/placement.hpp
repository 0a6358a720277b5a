#pragma once

/// \file
/// Which rank takes which part.

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

/// Which rank takes which part, and what that moves.
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
  /// The result is the best, and proven, where finding it takes at most 2^25 steps, some 0.1
  /// seconds, and all bytes are less than 2^61: always up to 128 ranks, and for thousands of ranks
  /// where each part has bytes on tens of them. Beyond, each further part is given the best place
  /// that a search among 64 parts finds, and `least_across_nodes` stays a bound; on random parts
  /// the result was within 0.7 % of it. A `home` that is as good as the best keeps its places.
  ///
  /// Complexity: linear in the pairs of a part and a rank where it has bytes, where most parts find
  /// room where they have most; at most 64 such rows per rank beyond the steps above. Memory: 56
  /// bytes per sample and 200 per rank. Determinism: portable. Errors: `std::invalid_argument` for
  /// bytes that are negative or above 2^63 - 1, another number of parts than of ranks, no ranks in
  /// a node, and a `home` or `parts` that name an index twice or leave one out;
  /// `std::overflow_error` where the sum of the bytes leaves its type. Source: the assignment of
  /// batches to nodes is that of OrchMLLM (arXiv 2503.23830, 2025); shortest augmenting paths are
  /// those of Jonker and Volgenant (Computing 38, 1987).
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
            placer.least_across_nodes(), placer.is_proven()};
  }

 private:
  static constexpr std::string_view name = "placement";
};

/// Which rank takes which part; see `placement_fn`.
inline constexpr placement_fn placement{};

}  // namespace omnibal::inline v0
