#pragma once

/// \file
/// Even loads with few bytes moved.

#include <omnibal/balance/detail/collect_parts.hpp>
#include <omnibal/balance/detail/costs.hpp>
#include <omnibal/balance/detail/home_exchange.hpp>
#include <omnibal/balance/detail/leading_order.hpp>
#include <omnibal/balance/detail/least_load.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/part_of_samples.hpp>
#include <omnibal/balance/detail/place_longest_first.hpp>
#include <omnibal/balance/detail/ranked_load.hpp>
#include <omnibal/balance/detail/relabel_parts.hpp>
#include <omnibal/balance/detail/relief_rank.hpp>
#include <omnibal/balance/detail/sample_lists.hpp>
#include <omnibal/balance/detail/tolerance.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Starts from where samples are and moves some of them until no load is above a target.
template <std::size_t R>
class home_keeper {
 public:
  /// To be filled by the caller before `run`.
  whole_costs<R> costs;
  whole_costs<1> bytes;

  /// Finds the rank of each sample.
  void run(std::string_view function, grouping_view home, double tolerance) {
    ranks_ = home.size();
    part_of_samples(function, "rank", home, costs.size(), home_of_);
    start_at_home();
    if (ranks_ == 0) return;
    std::int64_t const target = with_tolerance(lower_bound(), tolerance);
    if (!settle(target)) choose_fallback(target);
  }

  /// The samples of each rank by ascending index.
  void write(grouping& result) { collect_parts_into(rank_of_, ranks_, offsets_, order_, result); }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  using light_loads = std::conditional_t<R == 1, ranked_loads<uint128>, compared_loads<R>>;

  void start_at_home() {
    rank_of_ = home_of_;
    sum_loads();
  }
  void sum_loads() {
    loads_.assign(ranks_, resources<R>{});
    for (std::size_t i = 0; i != rank_of_.size(); ++i) loads_[rank_of_[i]] += costs[i];
  }
  [[nodiscard]] std::int64_t largest_load() const {
    std::int64_t result = 0;
    for (resources<R> const& load : loads_) result = std::max(result, largest_amount(load));
    return result;
  }
  [[nodiscard]] std::int64_t moved_bytes() const {
    std::int64_t result = 0;
    for (std::size_t i = 0; i != rank_of_.size(); ++i) {
      if (rank_of_[i] != home_of_[i]) result += bytes[i][0];
    }
    return result;
  }
  void move(std::uint32_t sample, std::uint32_t rank) {
    loads_[rank_of_[sample]] -= costs[sample];
    loads_[rank] += costs[sample];
    rank_of_[sample] = rank;
  }

  [[nodiscard]] auto costs_more() const {
    return [this](std::uint32_t a, std::uint32_t b) {
      std::int64_t const cost_a = sum_of(costs[a]);
      std::int64_t const cost_b = sum_of(costs[b]);
      return cost_a > cost_b || (cost_a == cost_b && a < b);
    };
  }

  /// `least_load`, for which only the largest samples have to be in order.
  [[nodiscard]] std::int64_t lower_bound() {
    order_.resize(costs.size());
    std::iota(order_.begin(), order_.end(), 0u);
    if (ranks_ < order_.size()) {
      auto const after = order_.begin() + static_cast<std::ptrdiff_t>(ranks_);
      std::nth_element(order_.begin(), after, order_.end(), costs_more());
      std::nth_element(order_.begin(), after - 1, after, costs_more());
    }
    return least_load(costs, std::span(std::as_const(order_)), ranks_);
  }

  /// Starts at home and moves samples; true where no load is above the target then.
  [[nodiscard]] bool settle(std::int64_t target) {
    if (largest_load() <= target) return true;
    send_away(target);
    exchange(target);
    bring_back(target);
    return largest_load() <= target;
  }

  /// Samples of ranks above the target go where the least load is, those first that save the most
  /// bytes, as long as that neither takes more from a rank than its excess nor gives it to another.
  void send_away(std::int64_t target) {
    words_.clear();
    light_.reset(ranks_);
    for (std::size_t rank = 0; rank != ranks_; ++rank) {
      light_.add(rank, loads_[rank]);
      if (excess_of(loads_[rank], target) != 0) light_.close(rank);
    }
    for (std::uint32_t i = 0; i != costs.size(); ++i) {
      std::int64_t const relief = relief_of(i, target);
      if (relief == 0) continue;
      std::uint64_t const key = ~relief_rank(relief, bytes[i][0]);
      words_.push_back(key << 32 | i);
    }
    radix_sort(words_, spare_, 32, 32);
    for (std::uint64_t const word : words_) {
      auto const sample = static_cast<std::uint32_t>(word);
      if (!can_leave(sample, target)) continue;
      std::uint32_t const rank = light_.best(costs[sample]);
      if (excess_of(loads_[rank] + costs[sample], target) != 0) continue;
      move(sample, rank);
      light_.add(rank, costs[sample]);
    }
  }

  /// What a sample takes from the excess of its rank, in the kinds that are above the target.
  [[nodiscard]] std::int64_t relief_of(std::uint32_t sample, std::int64_t target) const {
    resources<R> const& load = loads_[rank_of_[sample]];
    std::int64_t relief = 0;
    for (std::size_t r = 0; r != R; ++r) {
      if (load[r] > target) relief += costs[sample][r];
    }
    return relief;
  }
  [[nodiscard]] bool can_leave(std::uint32_t sample, std::int64_t target) const {
    resources<R> const& load = loads_[rank_of_[sample]];
    bool is_relief = false;
    for (std::size_t r = 0; r != R; ++r) {
      if (load[r] <= target) continue;
      if (costs[sample][r] > load[r] - target) return false;
      is_relief = is_relief || costs[sample][r] > 0;
    }
    return is_relief;
  }

  /// Exchanges samples until no load is above the target or nothing helps.
  void exchange(std::int64_t target) {
    if (largest_load() <= target) return;
    auto const size = [this](std::uint32_t sample) { return sum_of(costs[sample]); };
    order_by_leading_bits(costs.size(), size, words_, spare_, order_);
    lists_.fill(order_, rank_of_, ranks_);
    for (std::size_t left = 16 * ranks_; left != 0; --left) {
      std::uint32_t heavy = 0;
      for (std::uint32_t rank = 1; rank != ranks_; ++rank) {
        if (largest_amount(loads_[rank]) > largest_amount(loads_[heavy])) heavy = rank;
      }
      if (largest_amount(loads_[heavy]) <= target || !relieve(heavy, target)) return;
    }
  }

  /// The exchange with one of the lightest ranks, or else with any rank, that takes most away from
  /// the excess for its bytes; of a sample against several where one alone leaves some of it.
  [[nodiscard]] bool relieve(std::uint32_t heavy, std::int64_t target) {
    constexpr std::size_t few = 4;
    list_partners(heavy, target);
    open(heavy, heavy_);
    home_exchange best;
    std::uint32_t partner = none;
    auto const try_partners = [&](std::size_t first, std::size_t last, auto const& best_with) {
      for (std::size_t i = first; i < std::min(last, partners_.size()); ++i) {
        std::uint32_t const light = ranked_load<uint128>(ranks_).part(partners_[i]);
        open(light, light_rank_);
        home_exchange const found = best_with(heavy_, light_rank_, target);
        if (!found.is_better_than(best)) continue;
        best = found;
        partner = light;
      }
    };
    auto const single = [](auto const&... a) { return best_home_exchange(a...); };
    auto const set = [](auto const&... a) { return best_set_exchange(a...); };
    try_partners(0, few, single);
    if (best.relief < excess_of(loads_[heavy], target)) try_partners(0, few, set);
    if (partner == none) try_partners(few, partners_.size(), single);
    if (partner == none) return false;
    carry_out(best, heavy, partner, target);
    return true;
  }

  /// The ranks with which one that has too much may exchange, the lightest first.
  void list_partners(std::uint32_t heavy, std::int64_t target) {
    ranked_load<uint128> const ranked(ranks_);
    partners_.clear();
    for (std::uint32_t rank = 0; rank != ranks_; ++rank) {
      std::int64_t const load = largest_amount(loads_[rank]);
      // With several kinds two ranks may help each other that both have too much.
      if (R == 1 ? load < target : rank != heavy) partners_.push_back(ranked(load, rank));
    }
    std::sort(partners_.begin(), partners_.end());
  }

  void carry_out(home_exchange const& chosen, std::uint32_t heavy, std::uint32_t light,
                 std::int64_t target) {
    open(light, light_rank_);
    auto const come = [&](std::size_t j) { relink(light_rank_.samples[j].index, heavy); };
    if (chosen.comes == home_exchange::several) {
      for_each_in_return(heavy_, light_rank_, chosen.leaves, target, come);
    } else if (chosen.comes != home_exchange::nothing) {
      come(chosen.comes);
    }
    relink(heavy_.samples[chosen.leaves].index, light);
  }

  void relink(std::uint32_t sample, std::uint32_t rank) {
    lists_.remove(sample, rank_of_[sample]);
    lists_.insert(sample, rank, costs_more());
    move(sample, rank);
  }

  /// Samples that were moved and fit at home return, those with the most bytes first.
  void bring_back(std::int64_t target) {
    order_.clear();
    for (std::uint32_t i = 0; i != rank_of_.size(); ++i) {
      if (rank_of_[i] != home_of_[i]) order_.push_back(i);
    }
    std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return bytes[a][0] > bytes[b][0] || (bytes[a] == bytes[b] && a < b);
    });
    for (std::uint32_t const sample : order_) {
      std::uint32_t const rank = home_of_[sample];
      if (excess_of(loads_[rank] + costs[sample], target) == 0) move(sample, rank);
    }
  }

  /// The parts of `lpt` are the measure where the target was not reached, and the result where no
  /// others that are as even move fewer bytes.
  void choose_fallback(std::int64_t target) {
    std::int64_t const reached = largest_load();
    kept_.swap(rank_of_);
    place_afresh();
    std::int64_t const fresh = largest_load();
    if (fresh >= reached) {
      rank_of_.swap(kept_);
      return;
    }
    std::int64_t const limit = std::max(target, fresh);
    relabeller_.run(bytes, home_of_, ranks_, rank_of_);
    sum_loads();
    bring_back(limit);
    if (limit == target) return;
    std::int64_t const moved = moved_bytes();
    kept_.swap(rank_of_);
    start_at_home();
    if (!settle(limit) || moved_bytes() > moved) rank_of_.swap(kept_);
  }

  /// The parts of `lpt`.
  void place_afresh() {
    order_.resize(costs.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), costs_more());
    light_.reset(ranks_);
    rank_of_.assign(costs.size(), 0);
    any_room room{ranks_};
    auto const cost = [this](std::uint32_t sample) -> resources<R> const& { return costs[sample]; };
    place(std::span<std::uint32_t const>(order_), cost, light_, room, rank_of_);
    sum_loads();
  }

  void open(std::uint32_t rank, open_rank<R>& result) const {
    result.load = loads_[rank];
    result.samples.clear();
    lists_.for_each(rank, [&](std::uint32_t i) {
      // What is away has been paid for.
      result.samples.push_back({i, costs[i], home_of_[i] == rank ? bytes[i][0] : 0});
    });
  }

  std::size_t ranks_ = 0;
  std::vector<std::uint32_t> home_of_;
  std::vector<std::uint32_t> rank_of_;
  whole_costs<R> loads_;
  light_loads light_{0};
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> spare_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> offsets_;
  sample_lists lists_;
  std::vector<uint128> partners_;
  open_rank<R> heavy_;
  open_rank<R> light_rank_;
  std::vector<std::uint32_t> kept_;
  part_relabeller relabeller_;
};

}  // namespace omnibal::inline v0::detail
