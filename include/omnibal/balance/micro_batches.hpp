// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Micro-batches under a capacity, the same number on every rank.

#include <omnibal/balance/detail/capped_balancer.hpp>
#include <omnibal/balance/detail/own_groups.hpp>
#include <omnibal/balance/detail/rank_lanes.hpp>
#include <omnibal/balance/micro_batches/timed_batches.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// Groups batches with neighboring costs into steps, balances each step, and assigns each batch to
/// the rank with the smallest cost so far. Batches stay on ranks of the same speed and capacity.
template <class Layout>
class micro_batch_cells {
 public:
  /// Creates the cells. The arguments must outlive this object.
  micro_batch_cells(capped_balancer<Layout> const& balancer, timed_batches<Layout> const& timed,
                    own_groups const& own, integer_costs<1> const& costs, rank_lanes const& lanes,
                    std::size_t ranks)
      : balancer_(balancer),
        timed_(timed),
        own_(own),
        costs_(costs),
        lanes_(lanes),
        ranks_(ranks) {}

  /// Arranges the batches in steps. `batch_of` contains the batch of each sample; the number of
  /// batches is a multiple of the ranks.
  [[nodiscard]] micro_batch_steps arrange(std::vector<std::uint32_t> batch_of,
                                          std::size_t batches) const {
    number_by_cost(batch_of, batches);
    even_steps(batch_of, batches);
    own_.separate(batch_of, batches, costs_);
    return deal(batch_of, batches);
  }

 private:
  [[nodiscard]] std::vector<std::int64_t> loads_of(std::vector<std::uint32_t> const& batch_of,
                                                   std::size_t batches) const {
    std::vector<std::int64_t> loads(batches, 0);
    for (std::size_t i = 0; i != batch_of.size(); ++i) loads[batch_of[i]] += costs_[i][0];
    return loads;
  }

  /// Numbers the batches of each lane from the largest to the smallest cost. The batches of step s
  /// are s * ranks, s * ranks + 1, ...
  void number_by_cost(std::vector<std::uint32_t>& batch_of, std::size_t batches) const {
    auto const loads = loads_of(batch_of, batches);
    std::vector<std::uint32_t> number_of(batches);
    for (rank_lane const& lane : lanes_.all()) {
      auto const batch_at = [&](std::size_t n) {
        return n / lane.ranks * ranks_ + lanes_.rank_at(lane.first + n % lane.ranks);
      };
      auto const order = order_descending(batches / ranks_ * lane.ranks,
                                          [&](std::size_t n) { return loads[batch_at(n)]; });
      for (std::size_t n = 0; n != order.size(); ++n) {
        number_of[batch_at(order[n])] = static_cast<std::uint32_t>(batch_at(n));
      }
    }
    for (std::uint32_t& batch : batch_of) batch = number_of[batch];
  }

  /// Balances each step by exchanges of samples between its batches.
  void even_steps(std::vector<std::uint32_t>& batch_of, std::size_t batches) const {
    if (ranks_ == 1) return;
    auto const ranks = static_cast<std::uint32_t>(ranks_);
    std::vector<std::vector<std::uint32_t>> orders(batches / ranks_);
    for (std::uint32_t const sample : balancer_.order()) {
      orders[batch_of[sample] / ranks].push_back(sample);
    }
    std::vector<std::uint32_t> rank_of = batch_of;
    for (std::uint32_t& rank : rank_of) rank %= ranks;
    for (std::vector<std::uint32_t> const& order : orders) {
      std::int64_t sum = 0;
      for (std::uint32_t const sample : order) sum += costs_[sample][0];
      std::int64_t const largest = order.empty() ? 0 : costs_[order.front()][0];
      if (!lanes_.is_single()) {
        timed_.even_step(order, rank_of, sum, largest);
        continue;
      }
      auto const count = static_cast<std::int64_t>(ranks_);
      std::int64_t const mean = sum / count + (sum % count != 0 ? 1 : 0);
      // Batches with neighboring costs are already similar; exchanges remove the remaining
      // differences.
      balancer_.even(order, rank_of, ranks_, std::max(mean, largest), 0);
    }
    for (std::size_t i = 0; i != batch_of.size(); ++i) {
      batch_of[i] += rank_of[i] - batch_of[i] % ranks;
    }
  }

  /// Assigns the largest batch of a lane in each step to the rank with the smallest cost so far,
  /// and so on.
  [[nodiscard]] micro_batch_steps deal(std::vector<std::uint32_t> const& batch_of,
                                       std::size_t batches) const {
    grouping const groups = collect_parts(batch_of, batches);
    auto const loads = loads_of(batch_of, batches);
    std::vector<load_order<std::int64_t>> ranks;
    for (std::uint32_t place = 0; place != ranks_; ++place) {
      ranks.push_back({0, lanes_.rank_at(place)});
    }
    std::vector<std::size_t> batch_at(ranks_);
    micro_batch_steps result(ranks_);
    result.reserve(batches / ranks_, batch_of.size());
    for (std::size_t first = 0; first != batches; first += ranks_) {
      for (rank_lane const& lane : lanes_.all()) {
        auto const batch = [&](std::size_t k) { return first + lanes_.rank_at(lane.first + k); };
        auto const largest =
            order_descending(lane.ranks, [&](std::size_t k) { return loads[batch(k)]; });
        auto const own = std::span(ranks).subspan(lane.first, lane.ranks);
        std::sort(own.begin(), own.end());
        for (std::size_t i = 0; i != lane.ranks; ++i) {
          batch_at[own[i].part] = batch(largest[i]);
          own[i].load += loads[batch(largest[i])];
        }
      }
      for (std::size_t const batch : batch_at) {
        for (std::uint32_t const item : groups[batch]) result.push(item);
        result.close();
      }
    }
    return result;
  }

  capped_balancer<Layout> const& balancer_;
  timed_batches<Layout> const& timed_;
  own_groups const& own_;
  integer_costs<1> const& costs_;
  rank_lanes const& lanes_;
  std::size_t ranks_;
};

}  // namespace detail

struct micro_batches_options {
  /// The divisor of the number of micro-batches of a rank, such as the number of pipeline stages
  /// that an interleaved schedule requires.
  std::size_t multiple_of = 1;
  /// The tolerance of the search for even costs, as a share of a lower bound. The search ends when
  /// the largest cost exceeds the bound by at most this share.
  double max_overload = 0.01;
  /// The effort of the search. A limit below that is set takes precedence over the effort. `fast`
  /// and `thorough` differ from `normal` only if fewer micro-batches may be possible or costs are
  /// hard to balance.
  omnibal::effort effort = omnibal::effort::normal;
  /// The maximum number of moves, swaps and splits, for all micro-batches and then for the
  /// micro-batches of each step: 10,000, 100,000 or 10,000,000, by effort.
  std::optional<std::size_t> exchanges = {};
  /// The maximum number of splits without success, as in `refine_parts`: 64, 2048 or 16,384, by
  /// effort. The search over the micro-batches of all steps makes no splits if there are more
  /// micro-batches than exchanges.
  std::optional<std::size_t> splits = {};
  /// The maximum number of passes that search for fewer micro-batches, if fewer may be possible: 2,
  /// 4 or 64, by effort. For few samples the default is larger: all passes together then look at up
  /// to 2^14, 2^18 or 2^24 samples.
  std::optional<std::size_t> passes = {};
  /// The maximum number of placements in an exhaustive search for fewer micro-batches, for at most
  /// 64 samples: 10,000, 100,000 or 10,000,000, by effort.
  std::optional<std::uint64_t> nodes = {};
  /// The seed of the search; other seeds find other groups.
  std::uint64_t seed = 0;
  /// The treatment of samples that exceed the capacity by themselves: `reject`, an error, or
  /// `own_group`, a micro-batch for each of them. `list` is not available.
  oversize_policy oversized = oversize_policy::reject;
  /// The speed of each rank, or one value for all; empty for equal speeds. The array must outlive
  /// the option.
  detail::speed_list speeds = {};
};

struct micro_batches_fn {
  /// Packs samples into micro-batches, the same number on every rank, none above `capacity` in any
  /// resource. `capacity` may also be a range of capacities, one for each rank. Their number is the
  /// smallest that the search finds, and their costs are even. In the result `batches(m, r)`
  /// contains the ascending indices of the samples of micro-batch m of rank r.
  ///
  /// The number of micro-batches per rank is at least `packing_bound` over the ranks, rounded up to
  /// a multiple of `options.multiple_of`. The functions `best_packing` and `improve_packing`
  /// determine the number, and for up to 64 samples also an exhaustive search. The costs are
  /// balanced as by `balance_under_capacity` over all micro-batches. Micro-batches that run at the
  /// same time are neighbors in the order of their costs, and are balanced again among themselves.
  /// The largest of them goes to the rank with the smallest cost so far, and so on. Step 0 has the
  /// largest micro-batches. If there are fewer samples than micro-batches, some micro-batches are
  /// empty. Their ranks then participate in the collectives of a step without samples.
  ///
  /// With `options.speeds`, the function balances times instead of costs: the time of a micro-batch
  /// is its cost over the speed of its rank. The largest sum of the times of a rank is small too.
  /// All ranks have the same number of micro-batches and the same capacity, so the micro-batches of
  /// fast ranks are larger. There are more of them: their number is at least `packing_bound` times
  /// the largest speed over the mean speed. Micro-batches that run at the same time on ranks of
  /// equal speed are neighbors in the order of their costs. If fast ranks have no room for their
  /// share, times remain uneven; a larger `options.multiple_of` makes more room. Speeds are rounded
  /// as in `lpt`.
  ///
  /// With different capacities, the number of micro-batches is at least the number with which each
  /// rank has room for its share of the demand; the shares are equal, or in proportion to the
  /// speeds. Micro-batches that run at the same time on ranks of equal speed and capacity are
  /// neighbors in the order of their costs. Equal capacities of a range give the result of one
  /// capacity.
  ///
  /// With `oversize_policy::own_group`, each sample that exceeds the capacity has a micro-batch of
  /// its own, and no other micro-batch exceeds the capacity. A lower bound on the number of
  /// micro-batches is then `packing_bound` of the other samples plus the number of these samples.
  /// The number of micro-batches of each rank stays the same on all ranks, and a multiple of
  /// `options.multiple_of`.
  ///
  /// `improve_packing` calls `go_on` after each pass. If `go_on` returns false, the search for
  /// fewer micro-batches ends, and the result is still complete.
  ///
  /// `demand` is called once or twice for each sample, `cost` once. Complexity: the costs of
  /// `best_packing` and `balance_under_capacity`, and of passes of `improve_packing` while fewer
  /// micro-batches may be possible. With different speeds, the search for even costs runs twice.
  /// Memory: about 200 + 32R bytes per sample and 350 per micro-batch. Determinism: portable for
  /// integers. Errors: the errors of `balance_under_capacity`; `std::invalid_argument` if the
  /// multiple is zero, or if there is not one speed for each rank. It is also thrown if a speed is
  /// not positive, not finite or below 2^-31 of the largest, if `options.oversized` is `list`, or,
  /// with `reject`, if a sample exceeds the capacity. The text then names the sample and its
  /// demand. Further errors: `std::length_error` above 2^32 - 1 micro-batches.
  template <class Samples, class Cost, class Demand, class Capacity,
            class GoOn = detail::never_ends>
    requires detail::limited_samples<Samples, Demand, Capacity> &&
        cost_function<Cost, sample_reference<Samples>> && progress_predicate<GoOn>
  [[nodiscard]] micro_batch_steps operator()(Samples const& samples, std::size_t ranks,
                                             Cost const& cost, Demand const& demand,
                                             Capacity const& capacity,
                                             micro_batches_options const& options = {},
                                             GoOn go_on = {}) const {
    detail::check_positive(name, "ranks", ranks);
    detail::check_positive(name, "options.multiple_of", options.multiple_of);
    detail::check_max_overload(name, options.max_overload);
    detail::check_oversized(name, options.oversized);
    detail::part_speeds const speeds(name, options.speeds, ranks, "ranks");
    detail::part_capacities_of<Samples, Demand, Capacity> const capacities(name, capacity, ranks,
                                                                           "ranks");
    auto const costs = detail::measure_costs(name, samples, cost);
    return detail::with_measured(name, samples, demand, capacities.largest(), [&](auto&& input) {
      auto const limits = capacities.limits(input);
      detail::separate_unplaceable(input, limits);
      if (!input.oversized.empty() && options.oversized == oversize_policy::reject) {
        reject(samples, demand, capacity, input.oversized.front());
      }
      detail::own_groups const own(input);
      if (input.size() == 0) return micro_batch_steps(ranks);
      std::size_t const step = checked_cells(ranks, options.multiple_of);
      detail::capped_effort const effort = detail::effort_of(options, levels);
      detail::capped_balancer balancer(input, costs, effort);
      detail::timed_batches const timed(input, costs, balancer.order(), effort, speeds, limits);
      detail::rank_lanes const lanes(speeds,
                                     [&](std::uint32_t rank) { return limits.first_alike(rank); });
      detail::micro_batch_cells const cells(balancer, timed, own, costs, lanes, ranks);
      if (!limits.are_equal()) {
        if (!own.is_empty() && !limits.contain(input.capacity)) {
          detail::throw_invalid(name,
                                "no rank has the largest capacity in each resource, which "
                                "samples require that exceed the capacity");
        }
        std::size_t batches = next_multiple(own.bound(), step);
        detail::check_number(name, "the number of micro-batches", timed.fewest_of_rank());
        batches = std::max(batches, next_multiple(timed.fewest_of_rank() * ranks, step));
        for (;; batches = next_multiple(batches + 1 + batches / 64, step)) {
          detail::check_number(name, "the number of micro-batches", batches);
          if (auto batch_of = timed.balance(batches, go_on)) {
            return cells.arrange(std::move(*batch_of), batches);
          }
        }
      }
      std::size_t const least = next_multiple(fewest_batches(own.bound(), speeds), step);
      std::size_t batches =
          std::max(least, next_multiple(balancer.few_groups(least, go_on).size(), step));
      while (batches > least && balancer.search(batches - step) == solve_status::solved) {
        batches -= step;
      }
      for (;; batches += step) {
        detail::check_number(name, "the number of micro-batches", batches);
        if (auto batch_of = balancer.balance(batches, go_on)) {
          if (!lanes.is_single()) timed.even_batches(*batch_of, batches);
          return cells.arrange(std::move(*batch_of), batches);
        }
      }
    });
  }

 private:
  static constexpr std::string_view name = "micro_batches";
  // The limits of each effort: `fast`, `normal`, `thorough`.
  static constexpr detail::by_effort<detail::capped_effort> levels{
      .fast = {10'000, 64, 2, 1u << 14, 10'000},
      .normal = {100'000, 2048, 4, 1u << 18, 100'000},
      .thorough = {10'000'000, 16'384, 64, 1u << 24, 10'000'000}};

  /// Checks the arguments and returns the number of which the number of all micro-batches is a
  /// multiple.
  [[nodiscard]] static std::size_t checked_cells(std::size_t ranks, std::size_t multiple_of) {
    detail::check_number(name, "ranks", ranks);
    detail::check_number(name, "options.multiple_of", multiple_of);
    detail::check_number(name, "ranks * options.multiple_of", ranks * multiple_of);
    return ranks * multiple_of;
  }
  /// Returns the number of micro-batches in which the fastest ranks have room for their share of
  /// the demand: the bound times the largest speed over the mean speed.
  [[nodiscard]] static std::size_t fewest_batches(std::size_t bound,
                                                  detail::part_speeds const& speeds) {
    if (speeds.are_equal()) return bound;
    auto const wanted = detail::saturate_cast<std::int64_t>(detail::ceiled_quotient(
        detail::int128{bound} * static_cast<std::int64_t>(speeds.size()) * speeds.largest(),
        speeds.sum()));
    detail::check_number(name, "the number of micro-batches", static_cast<std::size_t>(wanted));
    return static_cast<std::size_t>(wanted);
  }
  [[nodiscard]] static std::size_t next_multiple(std::size_t count, std::size_t step) {
    return (count + step - 1) / step * step;
  }

  template <class Samples, class Demand, class Capacity>
  [[noreturn]] static void reject(Samples const& samples, Demand const& demand,
                                  Capacity const& capacity, std::uint32_t index) {
    using given = typename detail::capacity_of<Capacity>::type;
    using working = detail::working_weight_of<Samples, Demand, given>;
    auto const first = std::ranges::begin(samples);
    auto&& sample = first[static_cast<std::ranges::range_difference_t<Samples const>>(index)];
    auto const taken =
        detail::to_resources<working>({name, "demand", index}, std::invoke(demand, sample));
    if constexpr (measure<Capacity>) {
      auto const limits = detail::to_capacity<working>(name, capacity);
      detail::throw_invalid(name, "sample ", index, " takes ", detail::list_text(taken.amounts),
                            ", more than the capacity ", detail::list_text(limits.amounts));
    } else {
      detail::throw_invalid(name, "sample ", index, " takes ", detail::list_text(taken.amounts),
                            ", which fits no rank");
    }
  }
};

/// Packs samples into micro-batches under a capacity, the same number on every rank; see
/// `micro_batches_fn`.
inline constexpr micro_batches_fn micro_batches{};

}  // namespace omnibal::inline v0
