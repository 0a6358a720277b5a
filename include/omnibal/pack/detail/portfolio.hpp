// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Best-fit decreasing in several orders, and random groups that are full.

#include <omnibal/detail/measure.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/detail/isf_rounds.hpp>
#include <omnibal/pack/detail/measured_bound.hpp>
#include <omnibal/pack/detail/sample_size.hpp>
#include <omnibal/pack/detail/vector_best_fit.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace omnibal::inline v0::detail {

/// The bytes that `pack_sampled` needs for a sample in its input and in its pool.
template <class Layout>
inline constexpr std::size_t pool_bytes = sizeof(typename Layout::demand_type) +
                                          sizeof(record<typename Layout::demand_type>);

/// Packs samples into random groups that are full, and packs the samples that are left by best-fit
/// decreasing. This is the better method if sizes are similar and only a mixture of them fills a
/// group. Returns `std::nullopt` if the samples that are left need too much memory: if they are
/// more than a half or, with large records, more than a quarter of all samples.
template <class Layout>
[[nodiscard]] std::optional<grouping> pack_sampled(measured<Layout> const& input,
                                                   size_measure measure, packing_report& report) {
  constexpr std::size_t max_rounds = 24;
  constexpr std::size_t kinds = Layout::amounts_type::size();
  auto keep = reaches_most(input.capacity);
  keep.threshold = measured<Layout>::in_user_units(keep.threshold, input.units);
  isf_rounds rounds(input, pool_of(input), keep);
  auto const& pool = rounds.pool();
  for (std::size_t round = 0; round != max_rounds && pool.size() > input.size() / 256; ++round) {
    std::size_t const before = pool.size();
    rounds.run(rng::fisher_yates{}, round, groups_to_keep::by_rule, report);
    if (before - pool.size() < before / 16) break;
  }
  if (pool.size() > input.size() / (pool_bytes<Layout> <= 8 * kinds ? 2 : 4)) return std::nullopt;
  ++report.rounds;
  report.item_rounds += pool.size();
  measured<Layout> rest{input.layout, input.capacity, input.units, {}, {}};
  rest.demands.reserve(pool.size());
  for (auto const& sample : pool) rest.demands.push_back(sample.demand);
  return std::move(rounds).take_with(vector_best_fit(
      rest, demands_after::freed, sample_size(input.capacity, measure), min_slack(input.capacity)));
}

/// Returns true if, for some randomly selected samples, `pack_sampled` makes no more groups than
/// best-fit decreasing.
template <class Layout>
[[nodiscard]] bool sampling_pays(measured<Layout> const& input, size_measure measure) {
  std::size_t const draws = std::clamp<std::size_t>(input.size() / 16, 1024, 8192);
  measured<Layout> some{input.layout, input.capacity, input.units, {}, {}};
  some.demands.resize(draws);
  rng::engine words(0);
  for (auto& demand : some.demands) {
    demand = input.demands[static_cast<std::size_t>(rng::below(words, input.size()))];
  }
  packing_report unused;
  auto const sampled = pack_sampled(some, measure, unused);
  if (!sampled) return false;
  sample_size const size(some.capacity, measure);
  min_slack const score(some.capacity);
  return sampled->size() <= vector_best_fit(some, demands_after::freed, size, score).size();
}

/// Limits on the orders that a portfolio tries.
struct portfolio_limits {
  /// The largest number of orders.
  std::size_t orders;
  /// The largest number of samples in all orders together.
  std::size_t samples;
};

inline constexpr portfolio_limits normal_portfolio{256, 16384};

/// Returns the packing with the fewest groups among several attempts, as many as `limits` allow. An
/// attempt that reaches the lower bound is the last. If there are many samples, only one attempt is
/// made, and `sampling_pays` selects the method.
template <class Layout>
[[nodiscard]] packing pack_portfolio(measured<Layout>&& input, size_measure measure,
                                     portfolio_limits const& limits) {
  // A pool of wide demands in addition to the demands would require more than 24 + 8R bytes.
  constexpr bool has_memory = pool_bytes<Layout> <= 8 + 8 * Layout::amounts_type::size();
  bool const may_sample = has_memory && limits.orders > 1;

  packing result;
  packing_report& report = result.report;
  report.lower_bound = measured_bound(input);
  bool found = false;
  auto const keep_better = [&](grouping&& groups) {
    if (!found || groups.size() < result.groups.size()) result.groups = std::move(groups);
    found = true;
  };
  auto const is_at_bound = [&] { return found && result.groups.size() <= report.lower_bound; };
  auto const try_sampled = [&] {
    auto sampled = pack_sampled(input, measure, report);
    if (sampled) keep_better(std::move(*sampled));
  };
  std::size_t const count = input.size();
  min_slack const score(input.capacity);
  auto const try_order = [&](std::size_t attempt, demands_after after) {
    ++report.rounds;
    report.item_rounds += count;
    keep_better(
        vector_best_fit(input, after, sample_size(input.capacity, measure, attempt), score));
  };

  std::size_t const cheap_attempts = limits.samples / std::max<std::size_t>(count, 1);
  if (cheap_attempts <= 1) {
    if (may_sample && sampling_pays(input, measure)) try_sampled();
    if (!found) try_order(0, demands_after::freed);
  } else {
    std::size_t const max_attempts = std::min(limits.orders, cheap_attempts);
    for (std::size_t attempt = 0; attempt != max_attempts && !is_at_bound(); ++attempt) {
      try_order(attempt, demands_after::kept);
      if (attempt == 0 && may_sample && !is_at_bound()) try_sampled();
    }
  }
  result.oversized = std::move(input.oversized);
  return result;
}

}  // namespace omnibal::inline v0::detail
