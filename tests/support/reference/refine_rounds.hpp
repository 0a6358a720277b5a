// SPDX-License-Identifier: Apache-2.0
#pragma once

// What gpu::refine_parts does, on one thread of the host, for one step.

#include <omnibal/balance/detail/part_refiner.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace test {

/// Lowers the largest load by rounds of exchanges, one for each pair of parts.
class round_refiner {
 public:
  /// `part_of` has the part of each sample, `order` is that of `largest_first`.
  round_refiner(omnibal::detail::integer_costs<1> const& costs,
                std::span<std::uint32_t const> order, std::span<std::uint32_t const> part_of,
                std::size_t parts)
      : lists_(costs, order, part_of, parts), ranked_(parts) {
    std::iota(ranked_.begin(), ranked_.end(), std::uint32_t{0});
  }

  /// Rounds until no load is above `target`, nothing helps or there were so many.
  void run(std::int64_t target, std::size_t rounds, omnibal::part_counts counts) {
    for (; rounds != 0; --rounds) {
      rank_parts();
      if (load_of_rank(ranked_.size() - 1) <= target) return;
      if (!even_pairs(target, counts) && !relieve(counts)) return;
    }
  }

  [[nodiscard]] omnibal::detail::costed_parts<1> const& lists() const { return lists_; }

 private:
  [[nodiscard]] std::int64_t load_of_rank(std::size_t rank) const {
    return lists_.load(ranked_[rank]);
  }

  /// From the least load to the largest, equal ones by number.
  void rank_parts() {
    std::sort(ranked_.begin(), ranked_.end(), [this](std::uint32_t left, std::uint32_t right) {
      return std::pair(lists_.load(left), left) < std::pair(lists_.load(right), right);
    });
  }

  /// Evens the most loaded part with the least loaded one, the second most loaded with the second
  /// least loaded, and so on, each by one exchange. Does nothing and returns false where that does
  /// not help the first.
  bool even_pairs(std::int64_t target, omnibal::part_counts counts) {
    for (std::size_t pair = 0; pair != ranked_.size() / 2; ++pair) {
      std::uint32_t const heavy = ranked_[ranked_.size() - 1 - pair];
      if (lists_.load(heavy) <= target) return true;
      lists_.open(heavy, heavy_);
      lists_.open(ranked_[pair], light_);
      omnibal::detail::part_exchange const best =
          omnibal::detail::best_exchange(heavy_, light_, lists_.costs(), counts);
      if (best.leaves != omnibal::detail::part_exchange::nothing) {
        apply_exchange(best, heavy, ranked_[pair]);
      } else if (pair == 0) {
        return false;
      }
    }
    return ranked_.size() > 1;
  }

  /// Evens the most loaded part with the one that helps it most, the least loaded of equal ones.
  bool relieve(omnibal::part_counts counts) {
    std::uint32_t const heavy = ranked_.back();
    lists_.open(heavy, heavy_);
    omnibal::detail::part_exchange best;
    std::uint32_t partner = heavy;
    for (std::uint32_t const other : ranked_) {
      if (lists_.load(other) == lists_.load(heavy)) break;
      lists_.open(other, light_);
      omnibal::detail::part_exchange const found =
          omnibal::detail::best_exchange(heavy_, light_, lists_.costs(), counts);
      if (found.gain <= best.gain) continue;
      best = found;
      partner = other;
    }
    if (partner == heavy) return false;
    lists_.open(partner, light_);
    apply_exchange(best, heavy, partner);
    return true;
  }

  /// Exchanges samples of the open parts.
  void apply_exchange(omnibal::detail::part_exchange const& exchange, std::uint32_t heavy,
                      std::uint32_t light) {
    lists_.apply_exchange(exchange, heavy_, light_);
    lists_.close(heavy, heavy_);
    lists_.close(light, light_);
  }

  omnibal::detail::costed_parts<1> lists_;
  /// Parts, the least loaded first.
  std::vector<std::uint32_t> ranked_;
  omnibal::detail::open_part<1> heavy_;
  omnibal::detail::open_part<1> light_;
};

struct refine_rounds_options {
  double max_overload = 0.005;
  omnibal::part_counts counts = omnibal::part_counts::free;
  std::size_t rounds = 1000;
};

struct refine_rounds_fn {
  /// Errors: those of `omnibal::refine_parts`.
  template <omnibal::sample_range Samples, class Cost = std::identity>
    requires omnibal::cost_function<Cost, omnibal::sample_reference<Samples>>
  [[nodiscard]] omnibal::grouping operator()(Samples const& samples, omnibal::groups_argument parts,
                                             Cost const& cost = {},
                                             refine_rounds_options const& options = {}) const {
    return omnibal::detail::refined_parts(
        name, samples, parts, cost, options.max_overload, {},
        [&](auto const& costs, auto const& order, auto const& part_of, auto limit, auto const& put,
            auto const&) {
          // Without speeds, limits are loads.
          if constexpr (std::same_as<decltype(limit), std::int64_t>) {
            round_refiner refiner(costs, order, part_of, parts.size());
            refiner.run(limit, options.rounds, options.counts);
            refiner.lists().for_each_sample(put);
          }
        });
  }

 private:
  static constexpr std::string_view name = "refine_rounds";
};

/// Moves and swaps that even parts, many pairs at a time.
inline constexpr refine_rounds_fn refine_rounds{};

}  // namespace test
