#pragma once

/// \file
/// From measured samples to groups by best-fit decreasing of several resources, in several
/// attempts.

#include <omnibal/check.hpp>
#include <omnibal/detail/capacity_shares.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/release.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/best_fit_decreasing_options.hpp>
#include <omnibal/pack/detail/assignment.hpp>
#include <omnibal/pack/detail/isf_rounds.hpp>
#include <omnibal/pack/detail/open_groups.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/resources.hpp>
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

/// Best-fit of `demands` in their order, each of which fits an empty group; overwrites them.
///
/// The room of group g replaces demand g: a group is opened by a sample of its own, so sample g has
/// been packed by then.
template <class Layout, std::size_t R, class T, class Score>
[[nodiscard]] group_assignment best_fit_cells(Layout const& layout,
                                              std::vector<typename Layout::demand_type> demands,
                                              resources<R, T> const& capacity, Score const& score) {
  group_assignment result(demands.size());
  if (demands.empty()) return result;
  auto const traits = traits_of(layout, demands, capacity);
  auto const least_demand = layout.encode(traits.smallest);
  auto* const rooms = demands.data();
  cell_rooms<Layout, R, T> open(layout, rooms, capacity, traits, demands.size());
  for (std::size_t k = 0; k != demands.size(); ++k) {
    auto const demand = demands[k];
    std::uint32_t group = open.take(demand, score);
    if (group == open.none) {
      group = result.open();
      rooms[group] = layout.empty_room();
    }
    layout.take(rooms[group], demand);
    result.assign(group);
    if (layout.fits(rooms[group], least_demand)) open.push(group);
  }
  return result;
}

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

/// The bytes that a sample takes in the input of `pack_sampled` and in its pool.
template <class Layout>
inline constexpr std::size_t pool_bytes = sizeof(typename Layout::demand_type) +
                                          sizeof(record<typename Layout::demand_type>);

/// Random groups that come out full, and best-fit decreasing of the samples that are left: the
/// better way where sizes are alike and only a mixture of them fills a group. Nothing where more
/// samples are left than there is memory for: a half or, of large records, a quarter.
template <class Layout, class Score>
[[nodiscard]] std::optional<grouping> pack_sampled(measured<Layout>& input, size_measure by,
                                                   Score const& score, packing_report& report) {
  constexpr std::size_t most_rounds = 24;
  constexpr std::size_t kinds = Layout::amounts_type::size();
  auto keep = reaches_most(input.capacity);
  keep.threshold = measured<Layout>::in_user_units(keep.threshold, input.units);
  isf_rounds rounds(input, demands_after::kept, keep);
  auto const& pool = rounds.pool();
  for (std::size_t round = 0; round != most_rounds && pool.size() > input.size() / 256; ++round) {
    std::size_t const before = pool.size();
    rounds.run(rng::fisher_yates{}, round, false, report);
    if (before - pool.size() < before / 16) break;
  }
  if (pool.size() > input.size() / (pool_bytes<Layout> <= 8 * kinds ? 2 : 4)) return std::nullopt;
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

/// True where random groups take no more groups than best-fit decreasing, judged by some of the
/// samples, drawn at random.
template <class Layout, class Score>
[[nodiscard]] bool sampling_pays(measured<Layout> const& input, size_measure by,
                                 Score const& score) {
  std::size_t const draws = std::clamp<std::size_t>(input.size() / 16, 1024, 8192);
  measured<Layout> some{input.layout, input.capacity, input.units, {}, {}};
  some.demands.resize(draws);
  rng::engine words(0);
  for (auto& demand : some.demands) {
    demand = input.demands[static_cast<std::size_t>(rng::below(words, input.size()))];
  }
  packing_report unused;
  auto const sampled = pack_sampled(some, by, score, unused);
  if (!sampled) return false;
  sample_size const size(some.capacity, by, 0);
  return sampled->size() <= pack_cells(some, demands_after::freed, size, score).size();
}

/// Whether `pack_attempts` may try random groups, in which no score has a say.
enum class random_groups { allowed, excluded };

/// The packing with the fewest groups of several attempts, as many as are cheap; one that reaches
/// the lower bound is the last. Of many samples the attempt is one, the more promising.
template <class Layout, class Score>
[[nodiscard]] packing pack_attempts(measured<Layout>&& input,
                                    best_fit_decreasing_options const& options, Score const& score,
                                    random_groups random) {
  if (options.attempts == 0) {
    throw_invalid("best_fit_decreasing", "options.attempts is 0, must be positive");
  }
  // A pool of wide demands beside the demands themselves would take more than 24 + 8R bytes.
  constexpr bool has_memory = pool_bytes<Layout> <= 8 + 8 * Layout::amounts_type::size();
  bool const may_sample = has_memory && random == random_groups::allowed && options.attempts > 1;

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
    auto sampled = pack_sampled(input, options.measure, score, report);
    if (sampled) keep_better(std::move(*sampled));
  };
  std::size_t const count = input.size();
  auto const try_order = [&](std::size_t attempt, demands_after after) {
    ++report.rounds;
    report.item_rounds += count;
    sample_size const size(input.capacity, options.measure, attempt);
    keep_better(pack_cells(input, after, size, score));
  };

  constexpr std::size_t cheap_item_rounds = 16384;
  std::size_t const cheap_attempts = cheap_item_rounds / std::max<std::size_t>(count, 1);
  if (cheap_attempts <= 1) {
    if (may_sample && sampling_pays(input, options.measure, score)) try_sampled();
    if (!found) try_order(0, demands_after::freed);
  } else {
    std::size_t const most_attempts = std::min(options.attempts, cheap_attempts);
    for (std::size_t attempt = 0; attempt != most_attempts && !is_at_bound(); ++attempt) {
      try_order(attempt, demands_after::kept);
      if (attempt == 0 && may_sample && !is_at_bound()) try_sampled();
    }
  }
  result.oversized = std::move(input.oversized);
  return result;
}

}  // namespace omnibal::inline v0::detail
