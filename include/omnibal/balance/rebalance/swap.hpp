// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Swaps of samples between two ranks in `rebalance`.

#include <omnibal/balance/detail/part_refiner.hpp>
#include <omnibal/balance/rebalance/assignment_state.hpp>
#include <omnibal/balance/rebalance/open_rank.hpp>
#include <omnibal/balance/rebalance/rotation.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/checked_gain.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/detail/node_layout.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The positions of a sample that leaves a rank and of a sample, `nothing` or `several`, that
/// arrives instead.
struct home_exchange : exchange_value {
  static constexpr std::size_t nothing = no_sample;
  /// The value of `comes` for the samples that `for_each_in_return` selects.
  static constexpr std::size_t several = nothing - 1;

  std::size_t leaves = nothing;
  std::size_t comes = nothing;
};

/// Returns the gain if `heavy` loses the amounts `moved` and `light` receives them: the decrease of
/// the excess of both ranks. `before` is this excess before the exchange.
template <std::size_t R>
[[nodiscard]] constexpr std::int64_t evaluate_exchange(open_rank<R> const& heavy,
                                                       open_rank<R> const& light,
                                                       resources<R> const& moved,
                                                       std::int64_t target, std::int64_t before) {
  return before - excess_of(heavy.load - moved, target) - excess_of(light.load + moved, target);
}

/// Returns the exchange between `heavy` and `light` that lowers the excess most per byte, or `best`
/// if none is better. With one kind, `light` has no excess before or after the exchange.
template <std::size_t R>
[[nodiscard]] home_exchange best_home_exchange(open_rank<R> const& heavy, open_rank<R> const& light,
                                               std::int64_t target, home_exchange best) {
  std::int64_t const before = excess_of(heavy.load, target) + excess_of(light.load, target);
  std::int64_t const room = target - light.load[0];
  auto const leaves = [&](std::size_t i) -> auto const& { return heavy.samples[i].cost; };
  auto const comes = [&](std::size_t j) -> auto const& { return light.samples[j].cost; };
  // With one kind, no exchange of sample i removes more excess or adds fewer bytes than `at_best`.
  auto const may_leave = [&](std::size_t i) {
    exchange_value const at_best{std::min({leaves(i)[0], before, room}), heavy.samples[i].bytes};
    return R != 1 || at_best.is_better_than(best);
  };
  for_each_exchange<R>(heavy.samples.size(), light.samples.size(), leaves, comes, before, may_leave,
                       [&](std::size_t i, std::size_t j) {
                         home_exchange found{{0, heavy.samples[i].bytes}, i, j};
                         resources<R> moved = leaves(i);
                         if (j != home_exchange::nothing) {
                           moved -= comes(j);
                           found.bytes += light.samples[j].bytes;
                         } else if (!heavy.may_lose || !light.may_gain) {
                           return;
                         }
                         if (R == 1 && (moved[0] <= 0 || moved[0] > room)) return;
                         found.relief = evaluate_exchange(heavy, light, moved, target, before);
                         keep_better(best, found);
                       });
  return best;
}

/// Calls `body(position)` for the samples of `light` that are exchanged for a sample of `heavy`.
/// Starting with the largest, these are the samples for which `heavy` has room, until `light` has
/// no excess.
template <std::size_t R, class Body>
void for_each_in_return(open_rank<R> const& heavy, open_rank<R> const& light, std::size_t leaves,
                        std::int64_t target, Body const& body) {
  resources<R> from = heavy.load - heavy.samples[leaves].cost;
  resources<R> to = light.load + heavy.samples[leaves].cost;
  for (std::size_t j = 0; j != light.samples.size() && excess_of(to, target) != 0; ++j) {
    resources<R> const& comes = light.samples[j].cost;
    if (excess_of(from + comes, target) > excess_of(from, target)) continue;
    from += comes;
    to -= comes;
    body(j);
  }
}

/// Returns the best exchange of one sample of `heavy` for several of `light`, or `best` if none is
/// better. The candidates of `heavy` are evenly spaced samples; `for_each_in_return` selects the
/// samples of `light`.
template <std::size_t R>
[[nodiscard]] home_exchange best_set_exchange(open_rank<R> const& heavy, open_rank<R> const& light,
                                              std::int64_t target, home_exchange best) {
  std::int64_t const before = excess_of(heavy.load, target) + excess_of(light.load, target);
  for_each_spaced(heavy.samples.size(), [&](std::size_t i) {
    movable_sample<R> const& leaves = heavy.samples[i];
    home_exchange found{{before, leaves.bytes}, i, home_exchange::several};
    // With one kind, only the leaving sample lowers the excess, within the room of the other rank.
    if constexpr (R == 1) {
      found.relief = std::min({before, leaves.cost[0], target - light.load[0]});
    }
    if (!found.is_better_than(best)) return;
    resources<R> moved = leaves.cost;
    for_each_in_return(heavy, light, i, target, [&](std::size_t j) {
      moved -= light.samples[j].cost;
      found.bytes += light.samples[j].bytes;
    });
    found.relief = evaluate_exchange(heavy, light, moved, target, before);
    keep_better(best, found);
  });
  return best;
}

/// Exchanges samples of the rank with the largest load, one exchange after the other. Later calls
/// reuse its memory.
template <std::size_t R>
class swap_search {
 public:
  /// Exchanges samples until no load is above the target, no exchange helps, or 16 exchanges per
  /// rank were made.
  void run(assignment_state<R>& state, node_layout const& layout, std::int64_t target) {
    if (state.largest_load() <= target) return;
    auto const size = [&](std::uint32_t sample) { return sum_of(state.costs[sample]); };
    order_by_leading_bits(state.costs.size(), size, words_, spare_, order_);
    lists_.clear(state.ranks(), order_.size());
    for (std::size_t i = order_.size(); i-- != 0;) {
      lists_.push_front(state.rank_of[order_[i]], order_[i]);
    }
    for (search_budget budget(16 * state.ranks()); !budget.is_spent(); budget.spend()) {
      std::uint32_t const heavy = state.heaviest();
      if (largest_amount(state.loads[heavy]) <= target) return;
      if (!relieve(state, layout, heavy, target)) return;
    }
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t few = 4;
  /// The number of partners that are compared if counts are limited. Exchanges then have fewer
  /// forms and fit fewer partners.
  static constexpr std::size_t max_counted_partners = 64;

  /// An exchange with a partner.
  struct partner_exchange : home_exchange {
    std::uint32_t partner = none;
  };

  /// Carries out the exchange that lowers the excess most per byte. Returns false if no exchange
  /// helps. The partner is one of the lightest ranks of the same node, or else one of the lightest
  /// of all ranks. If none of these helps, heavier ranks follow, `few` at a time, until an exchange
  /// helps. If an exchange of single samples leaves some excess, an exchange of one sample for
  /// several is also considered. If counts are limited, the partner is one of the
  /// `max_counted_partners` lightest of all ranks and, with one kind, rotations with two of them
  /// take the place of exchanges for several samples.
  [[nodiscard]] bool relieve(assignment_state<R>& state, node_layout const& layout,
                             std::uint32_t heavy, std::int64_t target) {
    open(state, heavy, heavy_);
    std::int64_t const excess_of_heavy = excess_of(state.loads[heavy], target);
    bool const is_counted = state.counts.is_limited();
    partner_exchange best;
    if (layout.ranks_per_node() != 1) {
      std::size_t const node = layout.node_of(heavy);
      std::size_t const first = layout.first_rank(node);
      order_partners(state, {first, first + layout.ranks_in(node)}, heavy, target, few);
      try_partners(state, 0, target, best);
    }
    index_range const all{0, state.ranks()};
    if (is_counted) {
      order_partners(state, all, heavy, target, max_counted_partners);
      for (std::size_t first = 0; first < partners_.size(); first += few) {
        try_partners(state, first, target, best);
      }
      if constexpr (R == 1) {
        if (best.relief < excess_of_heavy && rotate(state, heavy, target, best)) return true;
      }
    } else if (best.partner == none) {
      order_partners(state, all, heavy, target, few);
      try_partners(state, 0, target, best);
    }
    if (best.partner == none) {
      order_partners(state, all, heavy, target, state.ranks());
      for (std::size_t first = few; best.partner == none && first < partners_.size();
           first += few) {
        try_partners(state, first, target, best);
      }
    }
    if (best.partner == none) return false;
    apply_best(state, best, heavy, target);
    return true;
  }

  /// Compares exchanges of `heavy_` with up to `few` partners from position `first` on. A better
  /// exchange replaces `best`.
  void try_partners(assignment_state<R> const& state, std::size_t first, std::int64_t target,
                    partner_exchange& best) {
    auto const consider = [&](std::uint32_t light, home_exchange const& found) {
      if (found.is_better_than(best)) best = {found, light};
    };
    std::size_t const count = std::min(few, partners_.size() - first);
    for (std::size_t p = 0; p != count; ++p) {
      open(state, partners_[first + p], opened_[p]);
      consider(partners_[first + p], best_home_exchange(heavy_, opened_[p], target, best));
    }
    bool const is_counted = state.counts.is_limited();
    if (is_counted || best.relief >= excess_of(heavy_.load, target)) return;
    for (std::size_t p = 0; p != count; ++p) {
      consider(partners_[first + p], best_set_exchange(heavy_, opened_[p], target, best));
    }
  }

  void apply_best(assignment_state<R>& state, partner_exchange const& best, std::uint32_t heavy,
                  std::int64_t target) {
    open(state, best.partner, light_);
    auto const excess = [&] {
      return measured_excess(state, heavy, heavy_, target) +
             measured_excess(state, best.partner, light_, target);
    };
    auto const bytes = [&] { return bytes_away(state, heavy_) + bytes_away(state, light_); };
    apply_checked({"swap_search", "exchange"}, best.relief, excess, [&] {
      apply_checked({"swap_search", "bytes of an exchange"}, -best.bytes, bytes,
                    [&] { apply_exchange(state, best, heavy, best.partner, target); });
    });
  }

  /// Carries out the rotation among `heavy` and two of the partners that lowers the excess most per
  /// byte. Returns false if no rotation is better than `best`.
  [[nodiscard]] bool rotate(assignment_state<R>& state, std::uint32_t heavy, std::int64_t target,
                            exchange_value const& best) {
    others_.resize(std::max(others_.size(), partners_.size()));
    std::span const others = std::span(others_).first(partners_.size());
    for (std::size_t p = 0; p != others.size(); ++p) open(state, partners_[p], others[p]);
    rotation const found = best_rotation(heavy_, others, target, best);
    if (found.relief == 0) return false;
    std::array<open_rank<R>*, 3> const ranks{&heavy_, &others[found.next], &others[found.last]};
    std::array const numbers{heavy, partners_[found.next], partners_[found.last]};
    auto const sample_at = [&](std::size_t rank, std::size_t position) {
      return ranks[rank]->samples[position].index;
    };
    std::array const leaving{sample_at(0, found.from_heavy), sample_at(1, found.from_next),
                             sample_at(2, found.from_last)};
    auto const sum_over = [&](auto const& amount) { return amount(0) + amount(1) + amount(2); };
    auto const excess = [&] {
      return sum_over(
          [&](std::size_t r) { return measured_excess(state, numbers[r], *ranks[r], target); });
    };
    auto const bytes = [&] {
      return sum_over([&](std::size_t r) { return bytes_away(state, *ranks[r]); });
    };
    apply_checked({"swap_search", "rotation"}, found.relief, excess, [&] {
      apply_checked({"swap_search", "bytes of a rotation"}, -found.bytes, bytes, [&] {
        for (std::size_t r = 0; r != 3; ++r) {
          std::size_t const to = (r + 1) % 3;
          relink(state, leaving[r], *ranks[r], *ranks[to], numbers[to]);
        }
        for (std::size_t r = 0; r != 3; ++r) assign_list(numbers[r], *ranks[r]);
      });
    });
    return true;
  }

  /// Returns the excess of a rank, computed from its samples.
  [[nodiscard]] static std::int64_t measured_excess(assignment_state<R> const& state,
                                                    std::uint32_t rank, open_rank<R> const& opened,
                                                    std::int64_t target) {
    resources<R> load{};
    if (!state.offsets.empty()) {
      for (std::int64_t& amount : load.amounts) amount = state.offsets[rank];
    }
    for (movable_sample<R> const& sample : opened.samples) load += state.costs[sample.index];
    return excess_of(load, target);
  }

  /// Returns the bytes of samples that have left their home since their rank was opened.
  [[nodiscard]] static std::int64_t bytes_away(assignment_state<R> const& state,
                                               open_rank<R> const& rank) {
    std::int64_t bytes = 0;
    for (movable_sample<R> const& sample : rank.samples) {
      if (sample.bytes != 0 && !state.is_home(sample.index)) bytes += state.bytes[sample.index][0];
    }
    return bytes;
  }

  struct index_range {
    std::size_t first;
    std::size_t last;
  };
  /// Lists the lightest ranks, at most `most` of them, with which `heavy` may exchange samples.
  void order_partners(assignment_state<R> const& state, index_range ranks, std::uint32_t heavy,
                      std::int64_t target, std::size_t most) {
    auto const loaded = [&](std::size_t rank) {
      return load_order<std::int64_t>{largest_amount(state.loads[rank]),
                                      static_cast<std::uint32_t>(rank)};
    };
    partners_.clear();
    partners_.reserve(state.ranks());
    for (std::size_t rank = ranks.first; rank != ranks.last; ++rank) {
      // With several kinds, two ranks above the target may help each other.
      bool const may_help = R != 1 || loaded(rank).load < target;
      if (rank != heavy && may_help) partners_.push_back(static_cast<std::uint32_t>(rank));
    }
    std::size_t const kept = std::min(most, partners_.size());
    std::partial_sort(partners_.begin(), partners_.begin() + static_cast<std::ptrdiff_t>(kept),
                      partners_.end(),
                      [&](std::uint32_t a, std::uint32_t b) { return loaded(a) < loaded(b); });
    partners_.resize(kept);
  }

  void open(assignment_state<R> const& state, std::uint32_t rank, open_rank<R>& result) const {
    result.load = state.loads[rank];
    result.may_lose = state.counts.may_leave(rank);
    result.may_gain = state.counts.may_arrive(rank);
    result.samples.clear();
    lists_.for_each(rank, [&](std::uint32_t i) {
      // A sample that is already away from home adds no moved bytes.
      result.samples.push_back(
          {i, state.costs[i], state.home_of[i] == rank ? state.bytes[i][0] : 0});
    });
  }

  void apply_exchange(assignment_state<R>& state, home_exchange const& chosen, std::uint32_t heavy,
                      std::uint32_t light, std::int64_t target) {
    std::uint32_t const leaves = heavy_.samples[chosen.leaves].index;
    order_.clear();
    auto const come = [&](std::size_t j) { order_.push_back(light_.samples[j].index); };
    if (chosen.comes == home_exchange::several) {
      for_each_in_return(heavy_, light_, chosen.leaves, target, come);
    } else if (chosen.comes != home_exchange::nothing) {
      come(chosen.comes);
    }
    for (std::uint32_t const sample : order_) relink(state, sample, light_, heavy_, heavy);
    relink(state, leaves, heavy_, light_, light);
    assign_list(heavy, heavy_);
    assign_list(light, light_);
  }

  void assign_list(std::uint32_t rank, open_rank<R> const& opened) {
    lists_.assign(rank, opened.samples,
                  [](movable_sample<R> const& sample) { return sample.index; });
  }

  /// Moves a sample from `from` to its place in `to`, which stays sorted.
  static void relink(assignment_state<R>& state, std::uint32_t sample, open_rank<R>& from,
                     open_rank<R>& to, std::uint32_t rank) {
    auto const moved =
        std::find_if(from.samples.begin(), from.samples.end(),
                     [sample](movable_sample<R> const& one) { return one.index == sample; });
    auto const place = std::find_if(to.samples.begin(), to.samples.end(),
                                    [&, precedes = state.costs_more()](auto const& one) {
                                      return !precedes(one.index, sample);
                                    });
    to.samples.insert(place, *moved);
    from.samples.erase(moved);
    state.move(sample, rank);
  }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> spare_;
  std::vector<std::uint32_t> order_;
  part_lists lists_;
  std::vector<std::uint32_t> partners_;
  open_rank<R> heavy_;
  open_rank<R> light_;
  /// The samples of up to `few` partners that are compared.
  std::array<open_rank<R>, few> opened_;
  /// The samples of all partners of a rotation.
  std::vector<open_rank<R>> others_;
};

}  // namespace omnibal::inline v0::detail
