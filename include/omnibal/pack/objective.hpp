// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Objectives that rate packings, by which `tune_capacity` compares capacities.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

/// The input of an objective: a packing of some samples under a capacity. The views refer to arrays
/// that exist as long as the call of the objective.
template <std::size_t R, scalar_measure T = std::int64_t>
struct packed_samples {
  resources<R, T> capacity;
  /// The demands of the packed samples, which are all samples or a part of them.
  std::span<resources<R, T> const> demands;
  /// The groups, at least one; their items are indices into `demands`.
  grouping_view groups;
  /// The load of each group.
  std::span<resources<R, T> const> loads;
};

/// A functor from `packed_samples` to a finite weight; a smaller weight is better. Values are
/// compared across capacities and between parts of the data; therefore they must not grow with the
/// number of samples.
template <class Objective, class Packed>
concept packing_objective = std::regular_invocable<Objective const&, Packed const&> &&
    scalar_measure<std::remove_cvref_t<std::invoke_result_t<Objective const&, Packed const&>>>;

/// An objective that can check its options before the first packing.
template <class Objective>
concept checked_objective = requires(Objective const& objective) {
  objective.check(std::string_view());
};

namespace detail {

/// Calls `body` with the group indices of each step: the groups in random order, `ranks` groups per
/// step. An incomplete last step is omitted, unless it is the only step.
template <class Body>
void for_each_dealt_step(std::size_t group_count, std::size_t ranks, std::uint64_t seed,
                         Body const& body) {
  std::vector<std::uint32_t> order(group_count);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  rng::fisher_yates{seed}(std::span(order), 0);
  std::span<std::uint32_t const> left(order);
  do {
    std::size_t const count = std::min(ranks, left.size());
    body(left.first(count));
    left = left.subspan(count);
  } while (left.size() >= ranks);
}

/// Returns the used share of the capacity, as `utilization` does, even if the sum of the loads
/// exceeds 64 bits.
template <std::size_t R, class T>
[[nodiscard]] resources<R, double> fill_of(std::span<resources<R, T> const> loads,
                                           resources<R, T> const& capacity) {
  using sum_type = std::conditional_t<std::floating_point<T>, double, int128>;
  resources<R, double> result{};
  for (std::size_t r = 0; r != R && !loads.empty(); ++r) {
    sum_type sum{};
    for (auto const& load : loads) sum += static_cast<sum_type>(load[r]);
    result[r] = static_cast<double>(sum) / static_cast<double>(loads.size()) /
                static_cast<double>(capacity[r]);
  }
  return result;
}

/// Returns the share of a step in which ranks are idle in resource `kind`; ranks without a group
/// are idle for the whole step. The computation is portable, because it has no product that a
/// compiler could fuse with a sum.
template <std::size_t R, class T>
[[nodiscard]] double waiting_share(std::span<resources<R, T> const> loads,
                                   std::span<std::uint32_t const> step, std::size_t ranks,
                                   std::size_t kind) {
  using sum_type = std::conditional_t<std::floating_point<T>, double, int128>;
  T largest{};
  for (std::uint32_t const group : step) largest = std::max(largest, loads[group][kind]);
  if (!(largest > T{})) return 0.0;
  sum_type waiting = static_cast<sum_type>(largest) * static_cast<sum_type>(ranks - step.size());
  for (std::uint32_t const group : step) {
    waiting += static_cast<sum_type>(largest - loads[group][kind]);
  }
  return static_cast<double>(waiting) / (static_cast<double>(largest) * static_cast<double>(ranks));
}

}  // namespace detail

/// The padding of groups whose samples are concatenated: none.
struct no_padding {
  template <std::size_t R, class T>
  [[nodiscard]] constexpr double operator()(packed_samples<R, T> const& /*packed*/) const {
    return 0.0;
  }
};

/// The share of the capacity that no sample uses, summed over the resources that any sample uses:
/// the waste if every group is padded to the capacity.
///
/// Complexity: linear in the groups. Allocates nothing. Determinism: portable for integers.
struct unused_capacity {
  template <std::size_t R, class T>
  [[nodiscard]] double operator()(packed_samples<R, T> const& packed) const {
    auto const used = detail::fill_of(packed.loads, packed.capacity);
    double sum = 0.0;
    for (std::size_t r = 0; r != R; ++r) sum += used[r] > 0.0 ? 1.0 - used[r] : 0.0;
    return sum;
  }
};

/// OmniBal's rule: the sum of the pad ratio and the dist ratios of all resources. The groups are
/// assigned to the ranks at random, one group per rank and step.
///
/// `pad` is an objective too: `no_padding` if samples are concatenated, as in OmniBal,
/// `unused_capacity` if groups are padded to the capacity, or a functor of the user. Complexity:
/// linear in the groups. Allocates 4 bytes per group. Determinism: portable for integers. Errors:
/// `std::invalid_argument` if there is no rank. Source: Yao et al., OmniBal, ICML 2025.
template <class Pad = no_padding>
struct published_rule {
  std::size_t ranks = 8;
  std::uint64_t seed = 0;
  Pad pad{};

  template <std::size_t R, class T>
    requires packing_objective<Pad, packed_samples<R, T>>
  [[nodiscard]] double operator()(packed_samples<R, T> const& packed) const {
    check("published_rule");
    double sum = 0.0;
    std::size_t step_count = 0;
    detail::for_each_dealt_step(packed.loads.size(), ranks, seed,
                                [&](std::span<std::uint32_t const> step) {
                                  for (std::size_t r = 0; r != R; ++r) {
                                    sum += detail::waiting_share(packed.loads, step, ranks, r);
                                  }
                                  ++step_count;
                                });
    return static_cast<double>(std::invoke(pad, packed)) + sum / static_cast<double>(step_count);
  }

  void check(std::string_view function) const {
    detail::check_positive(function, "objective.ranks", ranks);
  }
};

/// The estimated training time per sample. The groups are assigned to the ranks at random, one
/// group per rank and step, and the slowest group determines the time of a step. `cost(load)` is
/// the time of a group.
///
/// Complexity: linear in the groups. Allocates 4 bytes per group. Determinism: the same as `cost`.
/// Errors: `std::invalid_argument` if there is no rank, or if a cost is negative or not finite.
template <class Cost>
struct step_time {
  Cost cost;
  std::size_t ranks = 8;
  std::uint64_t seed = 0;

  template <std::size_t R, class T>
    requires cost_function < Cost, resources<R, T>
  const& > [[nodiscard]] double operator()(packed_samples<R, T> const& packed) const {
    check("step_time");
    double sum = 0.0;
    std::size_t samples = 0;
    detail::for_each_dealt_step(
        packed.loads.size(), ranks, seed, [&](std::span<std::uint32_t const> step) {
          double slowest = 0.0;
          for (std::uint32_t const group : step) {
            auto const seconds = static_cast<double>(std::invoke(cost, packed.loads[group]));
            detail::check_weight("step_time", "cost", group, seconds);
            slowest = std::max(slowest, seconds);
            samples += packed.groups.group_size(group);
          }
          sum += slowest;
        });
    return samples == 0 ? 0.0 : sum / static_cast<double>(samples);
  }

  void check(std::string_view function) const {
    detail::check_positive(function, "objective.ranks", ranks);
  }
};

template <class Cost>
step_time(Cost) -> step_time<Cost>;
template <class Cost>
step_time(Cost, std::size_t) -> step_time<Cost>;
template <class Cost>
step_time(Cost, std::size_t, std::uint64_t) -> step_time<Cost>;

}  // namespace omnibal::inline v0
