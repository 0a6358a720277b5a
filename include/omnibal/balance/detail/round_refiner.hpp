#pragma once

/// \file
/// Local search on parts, many pairs of parts at a time.

#include <omnibal/balance/detail/costs.hpp>
#include <omnibal/balance/detail/part_exchange.hpp>
#include <omnibal/balance/detail/part_lists.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Lowers the largest load by rounds of exchanges, one for each pair of parts.
class round_refiner {
 public:
  /// `part_of` has the part of each sample, `order` is that of `largest_first`.
  round_refiner(whole_costs<1> const& costs, std::span<std::uint32_t const> order,
                std::span<std::uint32_t const> part_of, std::size_t parts)
      : lists_(costs, order, part_of, parts), ranked_(parts) {
    std::iota(ranked_.begin(), ranked_.end(), std::uint32_t{0});
  }

  /// Rounds until no load is above `target`, nothing helps or there were so many.
  void run(std::int64_t target, std::size_t rounds, bool may_move) {
    for (; rounds != 0; --rounds) {
      rank_parts();
      if (load_of_rank(ranked_.size() - 1) <= target) return;
      if (!even_pairs(target, may_move) && !relieve(may_move)) return;
    }
  }

  [[nodiscard]] part_lists<1> const& lists() const { return lists_; }

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
  bool even_pairs(std::int64_t target, bool may_move) {
    for (std::size_t pair = 0; pair != ranked_.size() / 2; ++pair) {
      std::uint32_t const heavy = ranked_[ranked_.size() - 1 - pair];
      if (lists_.load(heavy) <= target) return true;
      lists_.open(heavy, heavy_);
      lists_.open(ranked_[pair], light_);
      part_exchange const best = best_exchange(heavy_, light_, lists_.costs(), may_move);
      if (best.leaves != part_exchange::nothing) {
        carry_out(best, heavy, ranked_[pair]);
      } else if (pair == 0) {
        return false;
      }
    }
    return ranked_.size() > 1;
  }

  /// Evens the most loaded part with the one that helps it most, the least loaded of equal ones.
  bool relieve(bool may_move) {
    std::uint32_t const heavy = ranked_.back();
    lists_.open(heavy, heavy_);
    part_exchange best{.largest = lists_.load(heavy)};
    std::uint32_t partner = heavy;
    for (std::uint32_t const other : ranked_) {
      if (lists_.load(other) == lists_.load(heavy)) break;
      lists_.open(other, light_);
      part_exchange const found = best_exchange(heavy_, light_, lists_.costs(), may_move);
      if (found.largest >= best.largest) continue;
      best = found;
      partner = other;
    }
    if (partner == heavy) return false;
    lists_.open(partner, light_);
    carry_out(best, heavy, partner);
    return true;
  }

  /// Exchanges samples of the open parts.
  void carry_out(part_exchange const& exchange, std::uint32_t heavy, std::uint32_t light) {
    lists_.carry_out(exchange, heavy_, light_);
    lists_.close(heavy, heavy_);
    lists_.close(light, light_);
  }

  part_lists<1> lists_;
  /// Parts, the least loaded first.
  std::vector<std::uint32_t> ranked_;
  open_part<1> heavy_;
  open_part<1> light_;
};

}  // namespace omnibal::inline v0::detail
