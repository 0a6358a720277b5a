// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Rounds of iterative sampling and filtering.

#include <omnibal/check.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/detail/collect_groups.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A sample in the pool of `isf`.
template <class Demand>
struct record {
  Demand demand;
  std::uint32_t index;
};

/// Returns all samples that fit an empty group.
template <class Layout>
[[nodiscard]] std::vector<record<typename Layout::demand_type>> pool_of(
    measured<Layout> const& input) {
  std::vector<record<typename Layout::demand_type>> pool(input.size());
  fitting_indices indices(input.oversized);
  for (std::size_t k = 0; k != pool.size(); ++k) pool[k] = {input.demands[k], indices.next()};
  return pool;
}

/// The groups that a round of `isf` keeps: the groups that satisfy the keep rule, or every group.
enum class groups_to_keep { by_rule, every };

/// The rounds of `isf`.
template <class Layout, class Keep>
class isf_rounds {
 public:
  using record_type = record<typename Layout::demand_type>;

  /// Starts with the samples of `pool`, the pool of `input`.
  isf_rounds(measured<Layout> const& input, std::vector<record_type> pool, Keep const& keep)
      : layout_(input.layout),
        units_(input.units),
        keep_(keep),
        pool_(std::move(pool)),
        groups_(pool_.size()) {}

  [[nodiscard]] std::vector<record_type> const& pool() const { return pool_; }

  /// Shuffles the pool and packs it by next-fit. The samples of groups that are not kept remain in
  /// the pool.
  template <class Shuffle>
  void run(Shuffle const& shuffle, std::size_t round, groups_to_keep kept, packing_report& report) {
    report.item_rounds += pool_.size();
    ++report.rounds;
    shuffle_pool(shuffle, round);
    pool_.resize(regroup(kept, report));
  }

  /// Adds groups of records of the pool and returns all groups. The items of `tail` are places in
  /// the pool.
  [[nodiscard]] grouping take_with(grouping const& tail) && {
    auto output = groups_.end();
    for (std::size_t g = 0; g != tail.size(); ++g) {
      for (std::uint32_t const place : tail[g]) output.write(pool_[place].index, 1);
      output.close(tail[g].size(), 1);
    }
    groups_.set_end(output);
    return std::move(*this).take();
  }

  [[nodiscard]] grouping take() && {
    release(pool_);
    release(spare_);
    return std::move(groups_).take();
  }

 private:
  using room_type = typename Layout::room_type;

  template <class Shuffle>
  void shuffle_pool(Shuffle const& shuffle, std::size_t round) {
    if constexpr (!rng::any_element_shuffler<Shuffle>) {
      std::vector<std::uint32_t> order(pool_.size());
      std::iota(order.begin(), order.end(), std::uint32_t{0});
      shuffle(std::span<std::uint32_t>(order), round);
      std::string const who = "shuffle in round " + to_text(round);
      permutation_check named("isf", who, "indices", order.size());
      named.take(order);
      gather([&order](std::size_t i) { return order[i]; });
    } else if constexpr (rng::random_access_shuffler<Shuffle>) {
      auto const order = shuffle.order(pool_.size(), round);
      gather([&order](std::size_t i) { return static_cast<std::size_t>(order(i)); });
    } else {
      shuffle(std::span<record_type>(pool_), round);
    }
  }

  template <class Order>
  void gather(Order const& order) {
    spare_.resize(pool_.size());
    for (std::size_t i = 0; i != spare_.size(); ++i) spare_[i] = pool_[order(i)];
    pool_.swap(spare_);
  }

  /// The groups that end in a block of samples.
  struct group_ends {
    static constexpr std::size_t max_samples = 1024;
    /// The number of the groups, and the number of groups that end before each sample.
    std::size_t count;
    std::uint16_t before[max_samples];
    /// The first sample after each group, and the room of the group.
    std::uint32_t ends[max_samples];
    room_type rooms[max_samples];
  };

  /// Cuts the samples of the pool from `begin` to before `end` into groups by next-fit. `room` is
  /// the room of the open group.
  static void cut(Layout const& layout, record_type const* pool, std::size_t begin, std::size_t end,
                  room_type& room, group_ends& result) {
    std::size_t closed = 0;
    for (std::size_t i = begin; i != end; ++i) {
      result.rooms[closed] = room;
      result.ends[closed] = static_cast<std::uint32_t>(i);
      closed += 1 - static_cast<std::size_t>(layout.take_or_renew(room, pool[i].demand));
      result.before[i - begin] = static_cast<std::uint16_t>(closed);
    }
    result.count = closed;
  }

  /// Packs the pool by next-fit. Appends the kept groups to the result and moves the records of the
  /// other groups to the front of the pool. Returns the number of these records.
  ///
  /// The end of a group and whether the group is kept are unpredictable. The loops over samples
  /// therefore have no branches that depend on them. A block of samples is cut into groups, and the
  /// groups are judged. Each sample is then written to the output and to the pool, and only one of
  /// the two positions advances.
  std::size_t regroup(groups_to_keep kept, packing_report& report) {
    group_ends closed;
    std::uint8_t is_kept[group_ends::max_samples];

    // Copies remain in registers because no write through a pointer can change them.
    Layout const layout = layout_;
    auto const units = units_;
    auto output = groups_.end();
    record_type* const pool = pool_.data();
    std::size_t const pool_size = pool_.size();
    bool const keeps_every_group = kept == groups_to_keep::every;
    std::size_t below_keep = 0;

    auto const judge = [&](room_type const& room, std::size_t size) {
      bool const is_full = keep_(measured<Layout>::in_user_units(layout.load(room), units));
      bool const keeps = is_full | keeps_every_group;
      below_keep += static_cast<std::size_t>(keeps & !is_full);
      output.close(size, static_cast<std::size_t>(keeps));
      return static_cast<std::uint8_t>(keeps);
    };
    std::size_t rejected = 0;
    auto const move = [&](std::size_t position, std::size_t keep) {
      record_type const next = pool[position];
      output.write(next.index, keep);
      pool[rejected] = next;
      rejected += 1 - keep;
    };

    std::size_t open_begin = 0;
    room_type room = layout.empty_room();
    for (std::size_t begin = 0; begin != pool_size;) {
      std::size_t const end = std::min(begin + group_ends::max_samples, pool_size);
      cut(layout, pool, begin, end, room, closed);
      std::size_t group_begin = open_begin;
      for (std::size_t k = 0; k != closed.count; ++k) {
        is_kept[k] = judge(closed.rooms[k], closed.ends[k] - group_begin);
        group_begin = closed.ends[k];
      }
      if (closed.count != 0) {
        for (std::size_t i = open_begin; i != begin; ++i) move(i, is_kept[0]);
        for (std::size_t i = begin; i != group_begin; ++i)
          move(i, is_kept[closed.before[i - begin]]);
        open_begin = group_begin;
      }
      begin = end;
    }
    std::size_t const keep_last = judge(room, pool_size - open_begin);
    for (std::size_t i = open_begin; i != pool_size; ++i) move(i, keep_last);

    groups_.set_end(output);
    report.below_keep += below_keep;
    return rejected;
  }

  Layout layout_;
  typename Layout::amounts_type units_;
  Keep const& keep_;
  std::vector<record_type> pool_;
  std::vector<record_type> spare_;
  group_writer groups_;
};

/// Runs all rounds of `isf` and returns the groups.
template <class Layout, class Keep, class Shuffle>
[[nodiscard]] grouping run_isf(measured<Layout>& input, isf_options const& options,
                               Keep const& keep, Shuffle const& shuffle, packing_report& report) {
  auto pool = pool_of(input);
  release(input.demands);
  isf_rounds rounds(input, std::move(pool), keep);
  bool gains = true;
  for (std::size_t round = 0; !rounds.pool().empty() && round != options.rounds; ++round) {
    std::size_t const before = rounds.pool().size();
    bool const is_last = round + 1 == options.rounds || !gains;
    rounds.run(shuffle, round, is_last ? groups_to_keep::every : groups_to_keep::by_rule, report);
    std::size_t const kept = before - rounds.pool().size();
    gains = static_cast<double>(kept) >= options.min_gain * static_cast<double>(before);
  }
  return std::move(rounds).take();
}

}  // namespace omnibal::inline v0::detail
