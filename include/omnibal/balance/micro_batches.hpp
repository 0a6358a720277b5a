// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Micro-batches under a capacity, the same number on every rank.

#include <omnibal/balance/detail/capped_balancer.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// Groups batches with neighboring costs into steps, balances each step, and assigns each batch to
/// the rank with the smallest cost so far.
template <class Layout>
class micro_batch_cells {
 public:
  /// Creates the cells. The arguments must outlive this object.
  micro_batch_cells(capped_balancer<Layout> const& balancer, integer_costs<1> const& costs,
                    std::size_t ranks)
      : balancer_(balancer), costs_(costs), ranks_(ranks) {}

  /// Arranges the batches in steps. `batch_of` contains the batch of each sample; the number of
  /// batches is a multiple of the ranks.
  [[nodiscard]] micro_batch_steps arrange(std::vector<std::uint32_t> batch_of,
                                          std::size_t batches) const {
    number_by_cost(batch_of, batches);
    even_steps(batch_of, batches);
    return deal(batch_of, batches);
  }

 private:
  [[nodiscard]] std::vector<std::int64_t> loads_of(std::vector<std::uint32_t> const& batch_of,
                                                   std::size_t batches) const {
    std::vector<std::int64_t> loads(batches, 0);
    for (std::size_t i = 0; i != batch_of.size(); ++i) loads[batch_of[i]] += costs_[i][0];
    return loads;
  }

  /// Numbers the batches from the largest to the smallest cost. The batches of step s are s *
  /// ranks, s * ranks + 1, ...
  void number_by_cost(std::vector<std::uint32_t>& batch_of, std::size_t batches) const {
    auto const loads = loads_of(batch_of, batches);
    auto const order = order_descending(batches, [&loads](std::size_t b) { return loads[b]; });
    std::vector<std::uint32_t> number_of(batches);
    for (std::uint32_t n = 0; n != batches; ++n) number_of[order[n]] = n;
    for (std::uint32_t& batch : batch_of) batch = number_of[batch];
  }

  /// Exchanges samples inside each step.
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
      auto const count = static_cast<std::int64_t>(ranks_);
      std::int64_t const mean = sum / count + (sum % count != 0 ? 1 : 0);
      std::int64_t const largest = order.empty() ? 0 : costs_[order.front()][0];
      // Batches with neighboring costs are already similar; exchanges remove the remaining
      // differences.
      balancer_.even(order, rank_of, ranks_, std::max(mean, largest), 0);
    }
    for (std::size_t i = 0; i != batch_of.size(); ++i) {
      batch_of[i] += rank_of[i] - batch_of[i] % ranks;
    }
  }

  /// Assigns the largest batch of each step to the rank with the smallest cost so far, and so on.
  [[nodiscard]] micro_batch_steps deal(std::vector<std::uint32_t> const& batch_of,
                                       std::size_t batches) const {
    grouping const groups = collect_parts(batch_of, batches);
    auto const loads = loads_of(batch_of, batches);
    std::vector<load_order<std::int64_t>> ranks;
    for (std::uint32_t rank = 0; rank != ranks_; ++rank) ranks.push_back({0, rank});
    std::vector<std::size_t> batch_at(ranks_);
    micro_batch_steps result(ranks_);
    result.reserve(batches / ranks_, batch_of.size());
    for (std::size_t first = 0; first != batches; first += ranks_) {
      auto const largest =
          order_descending(ranks_, [&](std::size_t k) { return loads[first + k]; });
      std::sort(ranks.begin(), ranks.end());
      for (std::size_t i = 0; i != ranks_; ++i) {
        batch_at[ranks[i].part] = first + largest[i];
        ranks[i].load += loads[first + largest[i]];
      }
      for (std::size_t const batch : batch_at) {
        for (std::uint32_t const item : groups[batch]) result.push(item);
        result.close();
      }
    }
    return result;
  }

  capped_balancer<Layout> const& balancer_;
  integer_costs<1> const& costs_;
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
  /// The effort of the search. Each of the limits below that is set takes precedence. `fast` and
  /// `thorough` differ from `normal` only if fewer micro-batches may be possible or costs are hard
  /// to balance.
  omnibal::effort effort = omnibal::effort::normal;
  /// The maximum number of moves, swaps and splits, for all micro-batches and then for the
  /// micro-batches of each step: 10,000, 100,000 or 10,000,000, by effort.
  std::optional<std::size_t> exchanges = {};
  /// The maximum number of splits without success, as in `refine_parts`: 64, 2048 or 16,384, by
  /// effort. The search over the micro-batches of all steps makes no splits if there are more
  /// micro-batches than exchanges.
  std::optional<std::size_t> splits = {};
  /// The maximum number of passes that search for fewer micro-batches, if fewer may be possible: 2,
  /// 4 or 64, by effort. The number is larger for few samples: together the passes look at 2^14,
  /// 2^18 or 2^24 samples.
  std::optional<std::size_t> passes = {};
  /// The maximum number of placements in an exhaustive search for fewer micro-batches, for at most
  /// 64 samples: 10,000, 100,000 or 10,000,000, by effort.
  std::optional<std::uint64_t> nodes = {};
  /// The seed of the search; other seeds find other groups.
  std::uint64_t seed = 0;
};

struct micro_batches_fn {
  /// Packs samples into micro-batches, the same number on every rank, none above `capacity` in any
  /// resource. Their number is the smallest that the search finds, and their costs are even. In the
  /// result `batches(m, r)` contains the ascending indices of the samples of micro-batch m of rank
  /// r.
  ///
  /// The number of micro-batches per rank is at least `packing_bound` over the ranks, rounded up to
  /// a multiple of `options.multiple_of`. `best_packing` and `improve_packing` determine the
  /// number, and for up to 64 samples also an exhaustive search. The costs are balanced as by
  /// `balance_under_capacity` over all micro-batches. Micro-batches that run at the same time are
  /// neighbors in the order of their costs, and are balanced again among themselves. Each goes to
  /// the rank with the smallest cost so far. Step 0 has the largest micro-batches. If there are
  /// fewer samples than micro-batches, some micro-batches are empty. Their ranks then participate
  /// in the collectives of a step without samples.
  ///
  /// `go_on` is called after each pass of `improve_packing`, as there. If it returns false, the
  /// search for fewer micro-batches ends, and the result is still complete.
  ///
  /// `demand` is called once or twice for each sample, `cost` once. Complexity: as `best_packing`
  /// and `balance_under_capacity`, and passes as in `improve_packing` while fewer micro-batches may
  /// be possible. Memory: about 200 + 32R bytes per sample and 350 per micro-batch. Determinism:
  /// portable for integers. Errors: the errors of `balance_under_capacity`; `std::invalid_argument`
  /// if the multiple is zero or a sample exceeds the capacity. The text then names the sample and
  /// its demand.
  template <class Samples, class Cost, class Demand, class Capacity,
            class GoOn = detail::never_ends>
    requires detail::measured_samples<Samples, Demand, Capacity> &&
        cost_function<Cost, sample_reference<Samples>> && progress_predicate<GoOn>
  [[nodiscard]] micro_batch_steps operator()(Samples const& samples, std::size_t ranks,
                                             Cost const& cost, Demand const& demand,
                                             Capacity const& capacity,
                                             micro_batches_options const& options = {},
                                             GoOn go_on = {}) const {
    detail::check_positive(name, "ranks", ranks);
    detail::check_positive(name, "options.multiple_of", options.multiple_of);
    detail::check_max_overload(name, options.max_overload);
    auto const costs = detail::measure_costs(name, samples, cost);
    return detail::with_measured(name, samples, demand, capacity, [&](auto&& input) {
      if (!input.oversized.empty()) {
        reject(samples, demand, capacity, input.oversized.front());
      }
      if (input.size() == 0) return micro_batch_steps(ranks);
      detail::capped_balancer balancer(input, costs, detail::effort_of(options, levels));
      std::size_t const step = checked_cells(ranks, options.multiple_of);
      std::size_t const least = next_multiple(detail::measured_bound(input), step);
      std::size_t batches = next_multiple(balancer.few_groups(least, go_on).size(), step);
      while (batches > least && balancer.search(batches - step) == solve_status::solved) {
        batches -= step;
      }
      for (;; batches += step) {
        detail::check_number(name, "the number of micro-batches", batches);
        if (auto batch_of = balancer.balance(batches, go_on)) {
          detail::micro_batch_cells cells(balancer, costs, ranks);
          return cells.arrange(std::move(*batch_of), batches);
        }
      }
    });
  }

 private:
  static constexpr std::string_view name = "micro_batches";
  // The limits of each effort: `fast`, `normal`, `thorough`.
  static constexpr detail::capped_effort levels[] = {
      {10'000, 64, 2, 1u << 14, 10'000},
      {100'000, 2048, 4, 1u << 18, 100'000},
      {10'000'000, 16'384, 64, 1u << 24, 10'000'000}};

  /// Returns the number of micro-batches by which the total can change.
  [[nodiscard]] static std::size_t checked_cells(std::size_t ranks, std::size_t multiple_of) {
    detail::check_number(name, "ranks", ranks);
    detail::check_number(name, "options.multiple_of", multiple_of);
    detail::check_number(name, "ranks * options.multiple_of", ranks * multiple_of);
    return ranks * multiple_of;
  }
  [[nodiscard]] static std::size_t next_multiple(std::size_t count, std::size_t step) {
    return (count + step - 1) / step * step;
  }

  template <class Samples, class Demand, class Capacity>
  [[noreturn]] static void reject(Samples const& samples, Demand const& demand,
                                  Capacity const& capacity, std::uint32_t index) {
    using working = detail::working_weight_of<Samples, Demand, Capacity>;
    auto const first = std::ranges::begin(samples);
    auto&& sample = first[static_cast<std::ranges::range_difference_t<Samples const>>(index)];
    auto const taken =
        detail::to_resources<working>({name, "demand", index}, std::invoke(demand, sample));
    auto const limits = detail::to_capacity<working>(name, capacity);
    detail::throw_invalid(name, "sample ", index, " takes ", detail::list_text(taken.amounts),
                          ", more than the capacity ", detail::list_text(limits.amounts));
  }
};

/// Packs samples into micro-batches under a capacity, the same number on every rank; see
/// `micro_batches_fn`.
inline constexpr micro_batches_fn micro_batches{};

}  // namespace omnibal::inline v0
