#pragma once

/// \file
/// From measured samples to groups by best-fit decreasing of several resources, in several
/// attempts.

#include <omnibal/check.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/release.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/best_fit_options.hpp>
#include <omnibal/pack/detail/best_fit_cells.hpp>
#include <omnibal/pack/detail/capacity_shares.hpp>
#include <omnibal/pack/detail/isf_rounds.hpp>
#include <omnibal/pack/detail/measure.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/lower_bound.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/rng/below.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The size of a sample in units of 2^-32, and variations of it: attempt 0 is `measure` itself,
/// attempt 1 the other measure, and the further ones take them in turn but give every resource a
/// weight and every sample a factor, both random and in [1/2, 1).
template <std::size_t R, class T>
class sample_size {
 public:
  sample_size(resources<R, T> const& capacity, size_measure measure, std::size_t attempt)
      : share_(capacity),
        sums_((measure == size_measure::sum_of_shares) == (attempt % 2 == 0)),
        varies_(attempt > 1),
        words_(0, attempt) {
    for (std::uint64_t& weight : weights_) weight = half_to_one(words_());
  }

  [[nodiscard]] std::uint64_t operator()(resources<R, T> const& amounts, std::size_t sample) const {
    std::uint64_t sum = 0;
    std::uint64_t largest = 0;
    for (std::size_t r = 0; r != R; ++r) {
      std::uint64_t share = share_(amounts[r], r);
      if (varies_) share = (share >> 16) * weights_[r];
      sum += share;
      largest = std::max(largest, share);
    }
    std::uint64_t const size = sums_ ? sum : largest;
    if (!varies_) return size >> 31;
    return (size >> 16) * half_to_one(words_.word(R + sample)) >> 31;
  }

 private:
  [[nodiscard]] static std::uint64_t half_to_one(std::uint64_t word) {
    return (word >> 49) | std::uint64_t{1} << 15;
  }

  capacity_shares<R, T> share_;
  bool sums_;
  bool varies_;
  rng::engine words_;
  std::uint64_t weights_[R] = {};
};

/// Best-fit decreasing by `score`, the largest samples by `size` first.
template <class Layout, class Size, class Score>
[[nodiscard]] grouping pack_cells(measured<Layout>& input, demands_after after, Size const& size,
                                  Score const& score) {
  std::vector<std::uint32_t> order = order_descending(
      input.size(), [&size, layout = input.layout, first = input.demands.data()](std::size_t k) {
        return size(layout.amounts(first[k]), k);
      });
  std::vector<typename Layout::demand_type> demands(input.size());
  for (std::size_t position = 0; position != order.size(); ++position) {
    demands[position] = input.demands[order[position]];
  }
  if (after == demands_after::freed) release(input.demands);
  auto assigned = best_fit_cells(input.layout, std::move(demands), input.capacity, score);
  number_to_index(order, input.oversized);
  return std::move(assigned).collect(order);
}

/// True where a quarter of the samples of random groups are in groups that come out full, judged by
/// 4096 random samples.
template <class Layout, class Keep>
[[nodiscard]] bool is_often_full(measured<Layout> const& input, Keep const& keep) {
  if (input.size() == 0) return false;
  constexpr std::size_t draws = 4096;
  rng::engine words(0);
  auto room = input.layout.empty_room();
  std::size_t group_size = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i != draws; ++i) {
    auto const load = measured<Layout>::in_user_units(input.layout.load(room), input.units);
    auto const k = static_cast<std::size_t>(rng::below(words, input.size()));
    if (!input.layout.take_or_renew(room, input.demands[k])) {
      if (keep(load)) kept += group_size;
      group_size = 0;
    }
    ++group_size;
  }
  return 4 * kept >= draws;
}

/// When `pack_sampled` gives up.
enum class patience {
  low,   ///< before it begins, where few random groups come out full
  high,  ///< after its rounds, where more than half of the samples are left
};

/// Random groups that come out full, and best-fit decreasing of the samples that are left: the
/// better way where sizes are alike and only a mixture of them fills a group. Nothing where it
/// gives up.
template <class Layout, class Score>
[[nodiscard]] std::optional<grouping> pack_sampled(measured<Layout>& input, size_measure by,
                                                   Score const& score, patience how_long,
                                                   packing_report& report) {
  constexpr std::size_t most_rounds = 24;
  auto keep = reaches_most(input.capacity);
  keep.threshold = measured<Layout>::in_user_units(keep.threshold, input.units);
  if (how_long == patience::low && !is_often_full(input, keep)) return std::nullopt;
  isf_rounds rounds(input, demands_after::kept, keep);
  auto const& pool = rounds.pool();
  std::size_t const least_share = how_long == patience::low ? 8 : 16;
  for (std::size_t round = 0; round != most_rounds && pool.size() > input.size() / 256; ++round) {
    std::size_t const before = pool.size();
    rounds.run(rng::fisher_yates{}, round, false, report);
    std::size_t const kept = before - pool.size();
    if (kept < before / least_share) break;
  }
  if (pool.size() > input.size() / 2) return std::nullopt;
  sample_size const size(input.capacity, by, 0);
  std::vector<std::uint32_t> const order = order_descending(
      pool.size(), [&](std::size_t k) { return size(input.layout.amounts(pool[k].demand), k); });
  std::vector<typename Layout::demand_type> demands(pool.size());
  for (std::size_t k = 0; k != order.size(); ++k) demands[k] = pool[order[k]].demand;
  ++report.rounds;
  report.item_rounds += order.size();
  auto assigned = best_fit_cells(input.layout, std::move(demands), input.capacity, score);
  return std::move(rounds).take_with(std::move(assigned).collect(order));
}

/// Whether `pack_attempts` may keep random groups, in which no score has a say.
enum class random_groups { allowed, excluded };

/// The packing with the fewest groups of several attempts, as many as are cheap; one that reaches
/// the lower bound is the last.
template <class Layout, class Score>
[[nodiscard]] packing pack_attempts(measured<Layout>&& input, best_fit_options const& options,
                                    Score const& score, random_groups random) {
  if (options.attempts == 0) {
    throw_invalid("best_fit_decreasing", "options.attempts is 0, must be positive");
  }
  constexpr std::size_t cheap_item_rounds = 16384;
  std::size_t const count = input.size();
  std::size_t const cheap_attempts = cheap_item_rounds / std::max<std::size_t>(count, 1);
  std::size_t const most_attempts =
      std::min(options.attempts, std::max<std::size_t>(1, cheap_attempts));
  packing result;
  packing_report& report = result.report;
  report.lower_bound = measured_bound(input);
  bool found = false;
  auto const keep_better = [&](grouping&& groups) {
    if (!found || groups.size() < result.groups.size()) result.groups = std::move(groups);
    found = true;
  };

  auto const is_within = [&](std::size_t excess) {
    return found && result.groups.size() <= report.lower_bound + excess;
  };
  // A pool of wide demands beside the demands themselves would take more than 24 + 8R bytes.
  constexpr std::size_t demand_bytes = sizeof(typename Layout::demand_type);
  constexpr std::size_t record_bytes = sizeof(record<typename Layout::demand_type>);
  constexpr bool has_memory = demand_bytes + record_bytes <= 8 * Layout::amounts_type::size();
  bool const samples = has_memory && random == random_groups::allowed && options.attempts > 1;
  auto const sample_groups = [&](patience how_long) {
    auto sampled = pack_sampled(input, options.measure, score, how_long, report);
    if (sampled) keep_better(std::move(*sampled));
    return sampled.has_value();
  };

  // Of many samples a thousandth and two groups above the bound is good enough, and random groups
  // are the cheaper attempt; of few, best-fit decreasing comes first.
  bool const many = cheap_attempts <= 1;
  std::size_t const excess = many ? report.lower_bound / 1024 + 2 : 0;
  bool const gave_up = many && samples && !sample_groups(patience::low);
  for (std::size_t attempt = 0; attempt != most_attempts && !is_within(excess); ++attempt) {
    bool const is_last = attempt + 1 == most_attempts && !gave_up;
    sample_size const size(input.capacity, options.measure, attempt);
    keep_better(
        pack_cells(input, is_last ? demands_after::freed : demands_after::kept, size, score));
    ++report.rounds;
    report.item_rounds += count;
    if (!many && samples && attempt == 0 && !is_within(0)) sample_groups(patience::low);
  }
  if (gave_up && !is_within(report.lower_bound / 256)) sample_groups(patience::high);
  result.oversized = std::move(input.oversized);
  return result;
}

}  // namespace omnibal::inline v0::detail
