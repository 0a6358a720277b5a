// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Optimizer steps inside a batch, and the micro-batches of each step.

#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct optimizer_steps_options {
  /// The divisor of the number of micro-batches of a rank in each step.
  std::size_t multiple_of = 1;
  /// The tolerance of the searches for even costs, as a share of a lower bound.
  double max_overload = 0.01;
  /// The effort of the searches for micro-batches; see `micro_batches_options`.
  omnibal::effort effort = omnibal::effort::normal;
  /// The seed of the searches; other seeds find other groups.
  std::uint64_t seed = 0;
  /// The treatment of samples that exceed the capacity by themselves: `reject`, an error, or
  /// `own_group`, a micro-batch for each of them. `list` is not available.
  oversize_policy oversized = oversize_policy::reject;
};

struct optimizer_steps_fn {
  /// Divides a batch into optimizer steps, and each step into micro-batches under a capacity:
  /// element s of the result contains the micro-batches of optimizer step s. A batch of a rollout
  /// that is trained in several optimizer steps has this form.
  ///
  /// The costs of all pairs of a step and a rank are even, and each step has short and long
  /// samples. In contrast, step 0 of `micro_batches` has the largest micro-batches. In each step,
  /// all ranks have the same number of micro-batches, none of which exceeds `capacity` in any
  /// resource; steps may differ in this number. If there are fewer samples than micro-batches, some
  /// are empty.
  ///
  /// `karmarkar_karp` and `refine_parts` form a part for each step and rank. `lpt` assigns parts to
  /// steps so that the steps have similar numbers of samples. In each step the part with the
  /// largest cost goes to the rank with the smallest cost so far, and so on. The function
  /// `micro_batches` packs each part, and `balance_under_capacity` packs parts again that have
  /// fewer micro-batches than another part of their step.
  ///
  /// `demand` and `cost` are called once for each sample. Complexity: the costs of these functions.
  /// Determinism: portable for integers. Errors: the errors of `micro_batches`, and
  /// `std::invalid_argument` if there are no steps.
  template <class Samples, class Cost, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity> &&
        cost_function<Cost, sample_reference<Samples>>
  [[nodiscard]] std::vector<micro_batch_steps> operator()(
      Samples const& samples, std::size_t steps, std::size_t ranks, Cost const& cost,
      Demand const& demand, Capacity const& capacity,
      optimizer_steps_options const& options = {}) const {
    detail::check_positive(name, "steps", steps);
    detail::check_positive(name, "ranks", ranks);
    detail::check_positive(name, "options.multiple_of", options.multiple_of);
    detail::check_number(name, "steps", steps);
    detail::check_number(name, "ranks", ranks);
    detail::check_number(name, "steps * ranks", steps * ranks);
    auto const costs = detail::given_costs(name, "cost", samples, cost);
    auto const limits = detail::checked_capacity<Samples, Demand, Capacity>(name, capacity);
    using amounts_type = std::remove_cvref_t<decltype(limits)>;
    std::vector<amounts_type> const demands =
        measured_demands<amounts_type>(samples, demand, limits, options.oversized);
    grouping const parts =
        refine_parts(costs, karmarkar_karp(costs, steps * ranks), std::identity{},
                     {.max_overload = options.max_overload, .seed = options.seed});
    auto const rank_parts = assign_parts(parts, costs, steps, ranks);
    std::vector<micro_batch_steps> result;
    result.reserve(steps);
    for (std::size_t s = 0; s != steps; ++s) {
      std::span const step_parts = std::span(rank_parts).subspan(s * ranks, ranks);
      auto const batches = packed_parts(parts, step_parts, costs, demands, limits, options);
      result.push_back(join(parts, step_parts, batches));
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "optimizer_steps";

  /// Returns the demands of all samples. Throws if a demand is invalid, or above `limits` with the
  /// policy `reject`.
  template <class Amounts, class Samples, class Demand>
  [[nodiscard]] static std::vector<Amounts> measured_demands(Samples const& samples,
                                                             Demand const& demand,
                                                             Amounts const& limits,
                                                             oversize_policy oversized) {
    std::vector<Amounts> result;
    result.reserve(std::ranges::size(samples));
    detail::for_each_demand<Amounts>(
        name, samples, demand, [&](std::uint32_t index, Amounts const& amounts) {
          detail::check_demand(name, index, amounts);
          if (oversized == oversize_policy::reject && !amounts.fits(limits)) {
            detail::throw_invalid(name, "sample ", index, " takes ",
                                  detail::list_text(amounts.amounts), ", more than the capacity ",
                                  detail::list_text(limits.amounts));
          }
          result.push_back(amounts);
        });
    return result;
  }

  /// Packs the parts of one step into micro-batches, one number of them for all ranks if possible.
  /// The result contains positions in the parts.
  template <class Costs, class Amounts>
  [[nodiscard]] static std::vector<grouping> packed_parts(grouping const& parts,
                                                          std::span<std::uint32_t const> step_parts,
                                                          Costs const& costs,
                                                          std::vector<Amounts> const& demands,
                                                          Amounts const& limits,
                                                          optimizer_steps_options const& options) {
    std::vector<grouping> result;
    std::size_t most = 0;
    auto const cost_of = [&costs](std::uint32_t i) { return costs[i]; };
    auto const demand_of = [&demands](std::uint32_t i) { return demands[i]; };
    for (std::uint32_t const p : step_parts) {
      micro_batch_steps const packed = micro_batches(parts[p], 1, cost_of, demand_of, limits,
                                                     {.multiple_of = options.multiple_of,
                                                      .max_overload = options.max_overload,
                                                      .effort = options.effort,
                                                      .seed = options.seed,
                                                      .oversized = options.oversized});
      grouping_view const cells = packed.cells();
      result.emplace_back(std::vector(cells.offsets().begin(), cells.offsets().end()),
                          std::vector(cells.items().begin(), cells.items().end()));
      most = std::max(most, result.back().size());
    }
    for (std::size_t r = 0; r != result.size(); ++r) {
      if (result[r].size() == most) continue;
      auto found = balance_under_capacity(parts[step_parts[r]], most, cost_of, demand_of, limits,
                                          {.max_overload = options.max_overload,
                                           .effort = options.effort,
                                           .seed = options.seed,
                                           .oversized = options.oversized});
      if (found.status == solve_status::solved) result[r] = std::move(found.parts);
    }
    return result;
  }

  /// Returns the part of each step and rank.
  template <class Costs>
  [[nodiscard]] static std::vector<std::uint32_t> assign_parts(grouping const& parts,
                                                               Costs const& costs,
                                                               std::size_t steps,
                                                               std::size_t ranks) {
    std::vector<std::uint64_t> counts;
    std::vector<typename Costs::value_type> loads;
    for (std::size_t p = 0; p != parts.size(); ++p) {
      counts.push_back(parts[p].size());
      loads.push_back({});
      for (std::uint32_t const i : parts[p]) loads.back() += costs[i];
    }
    grouping const by_step = lpt(counts, steps, std::identity{}, {.count = count_policy::equal});
    std::vector<std::pair<typename Costs::value_type, std::size_t>> sums;
    for (std::size_t r = 0; r != ranks; ++r) sums.push_back({{}, r});
    std::vector<std::uint32_t> part_of(steps * ranks);
    for (std::size_t s = 0; s != steps; ++s) {
      std::vector<std::uint32_t> order(by_step[s].begin(), by_step[s].end());
      std::stable_sort(order.begin(), order.end(), [&loads](std::uint32_t one, std::uint32_t two) {
        return loads[one] > loads[two];
      });
      std::sort(sums.begin(), sums.end());
      for (std::size_t r = 0; r != ranks; ++r) {
        part_of[s * ranks + sums[r].second] = order[r];
        sums[r].first += loads[order[r]];
      }
    }
    return part_of;
  }

  /// Joins the micro-batches of the ranks of one step; `batches` contain positions in the parts.
  [[nodiscard]] static micro_batch_steps join(grouping const& parts,
                                              std::span<std::uint32_t const> step_parts,
                                              std::vector<grouping> const& batches) {
    std::size_t count = 0;
    for (grouping const& of_rank : batches) count = std::max(count, of_rank.size());
    micro_batch_steps result(batches.size());
    for (std::size_t m = 0; m != count; ++m) {
      for (std::size_t r = 0; r != batches.size(); ++r) {
        if (m < batches[r].size()) {
          for (std::uint32_t const k : batches[r][m]) result.push(parts[step_parts[r]][k]);
        }
        result.close();
      }
    }
    return result;
  }
};

/// Divides a batch into optimizer steps and their micro-batches; see `optimizer_steps_fn`.
inline constexpr optimizer_steps_fn optimizer_steps{};

}  // namespace omnibal::inline v0
