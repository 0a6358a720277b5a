#pragma once

/// \file
/// Local search on parts.

#include <omnibal/balance/detail/part_exchange.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/winner_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Any exchange of samples is legal.
struct free_exchanges {
  template <std::size_t R>
  [[nodiscard]] part_exchange operator()(open_part<R> const& heavy, open_part<R> const& light,
                                         whole_costs<R> const& costs, bool may_move) const {
    return best_exchange(heavy, light, costs, may_move);
  }
};

/// Lowers the largest load by exchanges between the part that has it and another one. The largest
/// amount of its kinds is the load of a part. `Exchanges` finds the best exchange of two parts.
template <std::size_t R, class Exchanges = free_exchanges>
class part_refiner {
 public:
  /// `part_of` has the part of each sample, `order` is that of `largest_first`.
  part_refiner(whole_costs<R> const& costs, std::span<std::uint32_t const> order,
               std::span<std::uint32_t const> part_of, std::size_t parts, Exchanges exchanges = {})
      : exchanges_(std::move(exchanges)),
        lists_(costs, order, part_of, parts),
        rank_(parts),
        heaviest_nodes_(winner_tree<uint128>::nodes_for(parts)),
        lightest_nodes_(heaviest_nodes_.size()) {
    heaviest().fill(parts, [this](std::size_t part) { return inverse_word(part); });
    lightest().fill(parts, [this](std::size_t part) { return word(part); });
  }

  /// Exchanges until no load is above `target`, nothing helps or there were `exchanges`.
  void run(std::int64_t target, std::size_t exchanges, bool may_move) {
    left_ = exchanges;
    may_move_ = may_move;
    while (left_ != 0) {
      std::uint32_t const heavy = rank_.part(heaviest().least());
      if (lists_.load(heavy) <= target || !relieve(heavy)) return;
    }
  }

  /// Calls `body(place, part)` for each sample.
  template <class Body>
  void for_each_sample(Body const& body) const {
    lists_.for_each_sample(body);
  }

 private:
  [[nodiscard]] winner_tree<uint128> heaviest() { return winner_tree<uint128>(heaviest_nodes_); }
  [[nodiscard]] winner_tree<uint128> lightest() { return winner_tree<uint128>(lightest_nodes_); }
  [[nodiscard]] uint128 word(std::size_t part) const { return rank_(lists_.load(part), part); }
  [[nodiscard]] uint128 inverse_word(std::size_t part) const {
    return rank_(std::numeric_limits<std::int64_t>::max() - lists_.load(part), part);
  }

  /// Evens a part with the lightest one, or with the first other from the lightest on with which
  /// that is possible.
  bool relieve(std::uint32_t heavy) {
    std::uint32_t const light = rank_.part(lightest().least());
    if (light != heavy && even(heavy, light)) return true;
    others_.clear();
    for (std::size_t part = 0; part != lists_.size(); ++part) {
      if (part != light && lists_.load(part) < lists_.load(heavy)) others_.push_back(word(part));
    }
    std::sort(others_.begin(), others_.end());
    return std::any_of(others_.begin(), others_.end(),
                       [&](uint128 other) { return even(heavy, rank_.part(other)); });
  }

  /// Exchanges between two parts as long as the larger of their loads falls; true where it did.
  bool even(std::uint32_t heavy, std::uint32_t light) {
    lists_.open(heavy, heavy_);
    lists_.open(light, light_);
    bool has_changed = false;
    while (left_ != 0) {
      bool const is_turned = largest_amount(heavy_.load) < largest_amount(light_.load);
      open_part<R>& from = is_turned ? light_ : heavy_;
      open_part<R>& to = is_turned ? heavy_ : light_;
      part_exchange const exchange = exchanges_(from, to, lists_.costs(), may_move_);
      if (exchange.leaves == part_exchange::nothing) break;
      lists_.carry_out(exchange, from, to);
      --left_;
      has_changed = true;
    }
    if (!has_changed) return false;
    close(heavy, heavy_);
    close(light, light_);
    return true;
  }

  void close(std::uint32_t part, open_part<R> const& from) {
    lists_.close(part, from);
    heaviest().set(part, inverse_word(part));
    lightest().set(part, word(part));
  }

  Exchanges exchanges_;
  part_lists<R> lists_;
  ranked_load<uint128> rank_;
  std::vector<uint128> heaviest_nodes_;
  std::vector<uint128> lightest_nodes_;
  std::size_t left_ = 0;
  bool may_move_ = true;
  open_part<R> heavy_;
  open_part<R> light_;
  std::vector<uint128> others_;
};

}  // namespace omnibal::inline v0::detail
