// SPDX-License-Identifier: Apache-2.0
#pragma once

// What gpu::best_fit_rounds does, on one thread of the host: the same groups, the same report but
// for the lower bound, which is a better one.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/best_fit_rounds/best_fit_rounds_kernels.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/detail/bounds/martello_toth.hpp>
#include <omnibal/pack/detail/collect_groups.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

namespace test {

/// Sizes in descending order, which are packed; groups are numbered in the order in which they are
/// opened.
class fit_rounds {
 public:
  /// Precondition: `sizes` descends, and no size is above the capacity, which is positive.
  fit_rounds(std::vector<std::uint64_t> sizes, std::uint64_t capacity)
      : sizes_(std::move(sizes)), capacity_(capacity), group_of_(sizes_.size()) {
    while (positive_ != sizes_.size() && sizes_[positive_] != 0) ++positive_;
    waiting_.resize(positive_);
    for (std::size_t k = 0; k != positive_; ++k) waiting_[k] = static_cast<std::uint32_t>(k);
    while (first_ != positive_) run_round();
    if (positive_ == sizes_.size()) return;
    // Samples that take nothing are in good hands anywhere.
    ++rounds_;
    item_rounds_ += sizes_.size() - positive_;
    if (rooms_.empty()) rooms_.push_back(capacity_);
  }

  [[nodiscard]] std::size_t group_count() const { return rooms_.size(); }
  /// The group of each size.
  [[nodiscard]] std::vector<std::uint32_t> const& group_of() const { return group_of_; }
  [[nodiscard]] std::size_t rounds() const { return rounds_; }
  /// The sizes of the windows, summed.
  [[nodiscard]] std::uint64_t item_rounds() const { return item_rounds_; }

 private:
  [[nodiscard]] std::uint64_t size_at(std::size_t k) const { return sizes_[waiting_[k]]; }

  /// The first waiting sample in [first_, last) that is below `size`.
  [[nodiscard]] std::size_t first_below(std::uint64_t size, std::size_t last) const {
    auto const begin = waiting_.begin();
    auto const found = std::lower_bound(
        begin + static_cast<std::ptrdiff_t>(first_), begin + static_cast<std::ptrdiff_t>(last),
        size,
        [this](std::uint32_t position, std::uint64_t limit) { return sizes_[position] >= limit; });
    return static_cast<std::size_t>(found - begin);
  }

  void run_round() {
    std::uint64_t const largest = size_at(first_);
    std::size_t const end =
        first_below(omnibal::gpu::detail::round_window::low(largest, capacity_), positive_);
    omnibal::gpu::detail::round_window const window{largest, size_at(end - 1)};
    ++rounds_;
    item_rounds_ += end - first_;
    open_groups(window, end);
    match(window, end);
    sort_groups();
  }

  void open_groups(omnibal::gpu::detail::round_window const& window, std::size_t end) {
    std::uint64_t const max_room = order_.empty() ? 0 : rooms_[order_.front()];
    std::size_t const too_large = first_below(max_room + 1, end);
    std::size_t const large = first_below(capacity_ / 2 + 1, too_large) - first_;
    omnibal::detail::uint128 too_large_sum = 0;
    for (std::size_t k = first_; k != too_large; ++k) too_large_sum += size_at(k);
    omnibal::detail::uint128 sum = too_large_sum;
    for (std::size_t k = too_large; k != end; ++k) sum += size_at(k);
    omnibal::detail::uint128 rooms = 0;
    for (std::uint32_t const group : order_) {
      if (rooms_[group] >= window.least) rooms += rooms_[group];
    }
    auto const opened = static_cast<std::size_t>(
        window.groups_to_open(capacity_, large, too_large_sum, sum, rooms));
    auto const before = static_cast<std::uint32_t>(rooms_.size());
    rooms_.resize(rooms_.size() + opened, capacity_);
    took_.resize(rooms_.size(), 0);
    spare_.clear();
    for (std::size_t k = 0; k != opened; ++k) {
      spare_.push_back(before + static_cast<std::uint32_t>(k));
    }
    order_.insert(order_.begin(), spare_.begin(), spare_.end());
  }

  /// Every sample of the window, from the largest to the smallest, takes the group with the least
  /// room that holds it, of those that hold one; else a place in the group with the least room that
  /// holds two or more; else it waits on.
  void match(omnibal::gpu::detail::round_window const& window, std::size_t end) {
    std::size_t many = 0;
    while (many != order_.size() && rooms_[order_[many]] / 2 >= window.largest) ++many;
    std::size_t next_single = many;
    std::uint64_t places = 0;
    singles_.clear();
    spare_.clear();
    for (std::size_t k = first_; k != end; ++k) {
      std::uint32_t const position = waiting_[k];
      std::uint64_t const size = sizes_[position];
      while (next_single != order_.size() && rooms_[order_[next_single]] >= size) {
        singles_.push_back(order_[next_single++]);
      }
      if (!singles_.empty()) {
        put(position, singles_.back());
        singles_.pop_back();
        continue;
      }
      if (places == 0 && many != 0) places = rooms_[order_[--many]] / window.largest;
      if (places == 0) {
        spare_.push_back(position);
        continue;
      }
      put(position, order_[many]);
      --places;
    }
    std::copy_backward(spare_.begin(), spare_.end(),
                       waiting_.begin() + static_cast<std::ptrdiff_t>(end));
    first_ = end - spare_.size();
  }

  void put(std::uint32_t position, std::uint32_t group) {
    group_of_[position] = group;
    rooms_[group] -= sizes_[position];
    took_[group] = 1;
  }

  /// Drops the groups that hold no waiting sample, and sorts the others by descending room, groups
  /// with equal rooms by ascending number.
  void sort_groups() {
    if (first_ == positive_) return;
    std::uint64_t const smallest = size_at(positive_ - 1);
    auto const precedes = [this](std::uint32_t left, std::uint32_t right) {
      return rooms_[left] > rooms_[right] || (rooms_[left] == rooms_[right] && left < right);
    };
    // Those that took nothing are still in order.
    spare_.clear();
    std::size_t kept = 0;
    for (std::uint32_t const group : order_) {
      bool const took = std::exchange(took_[group], std::uint8_t{0}) != 0;
      if (rooms_[group] < smallest) continue;
      if (took) {
        spare_.push_back(group);
      } else {
        order_[kept++] = group;
      }
    }
    order_.resize(kept);
    std::sort(spare_.begin(), spare_.end(), precedes);
    merged_.resize(kept + spare_.size());
    std::merge(order_.begin(), order_.end(), spare_.begin(), spare_.end(), merged_.begin(),
               precedes);
    order_.swap(merged_);
  }

  std::vector<std::uint64_t> sizes_;
  std::uint64_t capacity_;
  std::vector<std::uint32_t> group_of_;
  /// Positions of sizes that wait, descending, from `first_` on.
  std::vector<std::uint32_t> waiting_;
  std::size_t first_ = 0;
  std::size_t positive_ = 0;
  std::vector<std::uint64_t> rooms_;
  /// The groups with room, by descending room.
  std::vector<std::uint32_t> order_;
  /// Whether a group took a sample in this round.
  std::vector<std::uint8_t> took_;
  std::vector<std::uint32_t> singles_;
  std::vector<std::uint32_t> spare_;
  std::vector<std::uint32_t> merged_;
  std::size_t rounds_ = 0;
  std::uint64_t item_rounds_ = 0;
};

struct best_fit_rounds_fn {
  /// `demand` maps a sample to an integer, or to resources of one. Errors: those of
  /// `omnibal::best_fit_decreasing`.
  template <class Samples, class Demand, class Capacity>
    requires omnibal::detail::measured_samples<Samples, Demand, Capacity> &&
        omnibal::integral_measure<Capacity> && omnibal::integral_measure<
            omnibal::demand_result<Demand, omnibal::sample_reference<Samples>>> &&
        (omnibal::detail::kinds_of<Capacity> == 1) [[nodiscard]] omnibal::packing
        operator()(Samples const& samples, Demand const& demand, Capacity const& capacity) const {
      omnibal::detail::check_index_count(name, "samples", std::ranges::size(samples));
      auto const limits =
          omnibal::detail::checked_capacity<Samples, Demand, Capacity>(name, capacity);
      using amounts_type = std::remove_const_t<decltype(limits)>;
      omnibal::packing result;
      std::vector<std::uint64_t> demands;
      std::vector<std::uint32_t> indices;
      demands.reserve(std::ranges::size(samples));
      indices.reserve(std::ranges::size(samples));
      omnibal::detail::for_each_demand<amounts_type>(
          name, samples, demand, [&](std::uint32_t index, amounts_type const& amounts) {
            if (omnibal::detail::is_valid_and_fits(amounts, limits)) [[likely]] {
              demands.push_back(static_cast<std::uint64_t>(amounts[0]));
              indices.push_back(index);
            } else {
              omnibal::detail::check_demand(name, index, amounts);
              result.oversized.push_back(index);
            }
          });
      pack(demands, indices, limits[0], result);
      return result;
    }

   private:
    static constexpr std::string_view name = "best_fit_rounds";

    static void pack(std::vector<std::uint64_t> const& demands,
                     std::vector<std::uint32_t> const& indices, std::int64_t capacity,
                     omnibal::packing& result) {
      std::size_t const count = demands.size();
      auto const order =
          omnibal::detail::order_descending(count, [&](std::size_t k) { return demands[k]; });
      std::vector<std::uint64_t> sizes(count);
      for (std::size_t k = 0; k != count; ++k) sizes[k] = demands[order[k]];
      auto const ascending = [&](std::size_t k) {
        return static_cast<std::int64_t>(sizes[count - 1 - k]);
      };
      auto const once = [](std::size_t) { return std::uint32_t{1}; };
      std::size_t const bound =
          omnibal::detail::martello_toth_bound(count, ascending, once, capacity);
      result.report.lower_bound = std::max<std::size_t>(bound, count == 0 ? 0 : 1);

      fit_rounds const packed(std::move(sizes), static_cast<std::uint64_t>(capacity));
      result.report.rounds = packed.rounds();
      result.report.item_rounds = packed.item_rounds();
      std::vector<std::uint32_t> offsets(packed.group_count() + 1, 0);
      for (std::uint32_t const group : packed.group_of()) ++offsets[group + 1];
      for (std::size_t g = 1; g != offsets.size(); ++g) offsets[g] += offsets[g - 1];
      std::vector<std::uint32_t> items(count);
      std::vector<std::uint32_t> next(offsets.begin(), offsets.end() - 1);
      for (std::size_t k = 0; k != count; ++k) {
        items[next[packed.group_of()[k]]++] = indices[order[k]];
      }
      result.groups = omnibal::grouping(std::move(offsets), std::move(items));
    }
};

/// Best-fit packing of one resource in rounds.
inline constexpr best_fit_rounds_fn best_fit_rounds{};

}  // namespace test
