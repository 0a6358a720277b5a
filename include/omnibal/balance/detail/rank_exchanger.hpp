#pragma once

/// \file
/// Exchanges of samples between ranks until no load is above a target.

#include <omnibal/balance/detail/costs.hpp>
#include <omnibal/balance/detail/home_exchange.hpp>
#include <omnibal/balance/detail/home_loads.hpp>
#include <omnibal/balance/detail/leading_order.hpp>
#include <omnibal/balance/detail/sample_lists.hpp>
#include <omnibal/balance/detail/sorted_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/node_layout.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Lets the rank with the largest load exchange samples, one after the other. Keeps its memory.
template <std::size_t R>
class rank_exchanger {
 public:
  /// Goes on until no load is above the target, nothing helps or there were 16 exchanges for each
  /// rank.
  void run(home_loads<R>& state, node_layout const& layout, std::int64_t target) {
    if (state.largest_load() <= target) return;
    auto const size = [&](std::uint32_t sample) { return sum_of(state.costs[sample]); };
    order_by_leading_bits(state.costs.size(), size, words_, spare_, order_);
    lists_.fill(order_, state.rank_of, state.ranks());
    sorted_.reset(state.ranks(), [&](std::size_t r) { return largest_amount(state.loads[r]); });
    for (std::size_t left = 16 * state.ranks(); left != 0; --left) {
      std::uint32_t const heavy = sorted_.heaviest();
      if (largest_amount(state.loads[heavy]) <= target) return;
      if (!relieve(state, layout, heavy, target)) return;
    }
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t few = 4;

  /// The exchange with one of the lightest ranks of the same node, or else with one of the lightest
  /// of all, or else with any, that takes most away from the excess for its bytes; of a sample
  /// against several where one alone leaves some of it.
  [[nodiscard]] bool relieve(home_loads<R>& state, node_layout const& layout, std::uint32_t heavy,
                             std::int64_t target) {
    open(state, heavy, heavy_);
    home_exchange best;
    std::uint32_t partner = none;
    auto const consider = [&](std::uint32_t light, home_exchange const& found) {
      if (!found.is_better_than(best)) return;
      best = found;
      partner = light;
    };
    auto const try_both = [&] {
      for (std::size_t p = 0; p != partners_.size(); ++p) {
        std::uint32_t const light = sorted_.rank(partners_[p]);
        open(state, light, opened_[p]);
        consider(light, best_home_exchange(heavy_, opened_[p], target, best));
      }
      if (best.relief >= excess_of(state.loads[heavy], target)) return;
      for (std::size_t p = 0; p != partners_.size(); ++p) {
        consider(sorted_.rank(partners_[p]), best_set_exchange(heavy_, opened_[p], target, best));
      }
    };
    if (layout.ranks_per_node != 1) {
      list_neighbours(state, layout, heavy, target);
      try_both();
    }
    if (partner == none) {
      list_lightest(heavy, target, few);
      try_both();
    }
    if (partner == none) {
      list_lightest(heavy, target, state.ranks());
      for (uint128 const word : partners_) {
        std::uint32_t const light = sorted_.rank(word);
        open(state, light, light_);
        consider(light, best_home_exchange(heavy_, light_, target, best));
      }
    }
    if (partner == none) return false;
    std::int64_t const heavy_load = largest_amount(state.loads[heavy]);
    std::int64_t const light_load = largest_amount(state.loads[partner]);
    carry_out(state, best, heavy, partner, target);
    sorted_.change(heavy, heavy_load, largest_amount(state.loads[heavy]));
    sorted_.change(partner, light_load, largest_amount(state.loads[partner]));
    return true;
  }

  /// With several kinds two ranks may help each other that both have too much.
  [[nodiscard]] static bool may_help(std::int64_t load, std::int64_t target) {
    return R != 1 || load < target;
  }

  /// The lightest ranks, at most so many, with which one that has too much may exchange.
  void list_lightest(std::uint32_t heavy, std::int64_t target, std::size_t most) {
    partners_.clear();
    partners_.reserve(sorted_.words().size());
    for (uint128 const word : sorted_.words()) {
      if (partners_.size() == most || !may_help(sorted_.load(word), target)) return;
      if (sorted_.rank(word) != heavy) partners_.push_back(word);
    }
  }
  /// Those of the same node.
  void list_neighbours(home_loads<R> const& state, node_layout const& layout, std::uint32_t heavy,
                       std::int64_t target) {
    partners_.clear();
    partners_.reserve(sorted_.words().size());
    std::size_t const node = layout.node_of(heavy);
    std::size_t const first = layout.first_rank(node);
    for (std::size_t rank = first; rank != first + layout.ranks_in(node); ++rank) {
      std::int64_t const load = largest_amount(state.loads[rank]);
      if (rank != heavy && may_help(load, target)) partners_.push_back(sorted_.word(load, rank));
    }
    std::sort(partners_.begin(), partners_.end());
    partners_.resize(std::min(partners_.size(), few));
  }

  void open(home_loads<R> const& state, std::uint32_t rank, open_rank<R>& result) const {
    result.load = state.loads[rank];
    result.samples.clear();
    lists_.for_each(rank, [&](std::uint32_t i) {
      // What is away has been paid for.
      result.samples.push_back(
          {i, state.costs[i], state.home_of[i] == rank ? state.bytes[i][0] : 0});
    });
  }

  void carry_out(home_loads<R>& state, home_exchange const& chosen, std::uint32_t heavy,
                 std::uint32_t light, std::int64_t target) {
    open(state, light, light_);
    auto const come = [&](std::size_t j) { relink(state, light_.samples[j].index, heavy); };
    if (chosen.comes == home_exchange::several) {
      for_each_in_return(heavy_, light_, chosen.leaves, target, come);
    } else if (chosen.comes != home_exchange::nothing) {
      come(chosen.comes);
    }
    relink(state, heavy_.samples[chosen.leaves].index, light);
  }

  void relink(home_loads<R>& state, std::uint32_t sample, std::uint32_t rank) {
    lists_.remove(sample, state.rank_of[sample]);
    lists_.insert(sample, rank, state.costs_more());
    state.move(sample, rank);
  }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> spare_;
  std::vector<std::uint32_t> order_;
  sample_lists lists_;
  sorted_loads sorted_;
  std::vector<uint128> partners_;
  open_rank<R> heavy_;
  open_rank<R> light_;
  /// The partners, where they are few.
  std::array<open_rank<R>, few> opened_;
};

}  // namespace omnibal::inline v0::detail
