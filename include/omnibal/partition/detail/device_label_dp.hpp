// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Stages that share a device with other stages: label search.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/partition/detail/chain_dp.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Labels with the bytes and the load of each device. The last labels belong to the list that is
/// growing.
template <class C>
class device_labels {
 public:
  /// Removes all labels. Each label has `used` numbers of bytes and `loads` numbers of loads; both
  /// numbers may be zero.
  void clear(std::size_t used, std::size_t loads) {
    bytes_per_label_ = used;
    loads_per_label_ = loads;
    size_ = 0;
    usage_.clear();
    loads_.clear();
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  /// Returns the bytes of each device in a label.
  [[nodiscard]] std::span<std::int64_t const> usage(std::size_t index) const {
    return std::span(usage_).subspan(index * bytes_per_label_, bytes_per_label_);
  }

  /// Returns the load of each device in a label.
  [[nodiscard]] std::span<C const> loads(std::size_t index) const {
    return std::span(loads_).subspan(index * loads_per_label_, loads_per_label_);
  }

  void add(std::span<std::int64_t const> used, std::span<C const> loads) {
    ++size_;
    usage_.insert(usage_.end(), used.begin(), used.end());
    loads_.insert(loads_.end(), loads.begin(), loads.end());
  }

  /// Adds a label to the list that starts at `begin`, unless another label of the list is at least
  /// as good in all numbers. Drops the labels of the list that the new label dominates.
  void add_unless_dominated(std::size_t begin, std::span<std::int64_t const> used,
                            std::span<C const> loads) {
    for (std::size_t l = begin; l != size_; ++l) {
      if (is_below(usage(l), used) && is_below(this->loads(l), loads)) return;
    }
    std::size_t kept = begin;
    for (std::size_t l = begin; l != size_; ++l) {
      bool const is_dominated = is_below(used, usage(l)) && is_below(loads, this->loads(l));
      if (!is_dominated) move_label(l, kept++);
    }
    resize(kept);
    add(used, loads);
  }

  /// Keeps only some labels of the list that starts at `begin`. `ascending` has their indices in
  /// the list, in ascending order.
  void keep_only(std::size_t begin, std::span<std::size_t const> ascending) {
    for (std::size_t i = 0; i != ascending.size(); ++i) move_label(begin + ascending[i], begin + i);
    resize(begin + ascending.size());
  }

 private:
  template <class T>
  [[nodiscard]] static bool is_below(std::span<T const> left, std::span<T const> right) {
    for (std::size_t i = 0; i != left.size(); ++i) {
      if (left[i] > right[i]) return false;
    }
    return true;
  }

  void move_label(std::size_t from, std::size_t to) {
    if (from == to) return;
    std::copy_n(usage_.begin() + static_cast<std::ptrdiff_t>(from * bytes_per_label_),
                bytes_per_label_,
                usage_.begin() + static_cast<std::ptrdiff_t>(to * bytes_per_label_));
    std::copy_n(loads_.begin() + static_cast<std::ptrdiff_t>(from * loads_per_label_),
                loads_per_label_,
                loads_.begin() + static_cast<std::ptrdiff_t>(to * loads_per_label_));
  }

  void resize(std::size_t count) {
    size_ = count;
    usage_.resize(count * bytes_per_label_);
    loads_.resize(count * loads_per_label_);
  }

  std::size_t bytes_per_label_ = 0;
  std::size_t loads_per_label_ = 0;
  std::size_t size_ = 0;
  std::vector<std::int64_t> usage_;  ///< of each label, device by device
  std::vector<C> loads_;             ///< of each label, device by device
};

/// Returns the number of labels that each of many searches may keep.
[[nodiscard]] constexpr std::size_t some_of(std::size_t labels) {
  return std::max<std::size_t>(1, labels / 16);
}

/// The aim of a label search: to minimize the largest load of a device, or only to satisfy the
/// memory.
enum class device_loads { minimized, ignored };

/// Finds the stages with the smallest largest load of a device such that each device has room for
/// all of its stages.
///
/// The method is dynamic programming from the last stage to the first with lists of labels. A label
/// has, for each device, the bytes and the load of all stages after a position. Bytes and loads
/// that cannot limit earlier stages are set to zero. The search drops a label that another label of
/// its list dominates, and a label that leaves too little memory for the layers before. If a list
/// has too many labels, the search keeps some with the smallest load and some that leave the most
/// memory.
template <class C, class Cost, class Fits>
class device_label_dp {
 public:
  /// `labels` is the largest number of labels that the search keeps at the same time.
  device_label_dp(stage_costs<C, Cost, Fits> const& stages, std::size_t labels,
                  device_loads loads = device_loads::minimized)
      : stages_(stages),
        memory_(stages.memory()),
        max_labels_(labels),
        loads_per_label_(loads == device_loads::minimized ? memory_.devices() : 0) {}

  /// Returns true if the search finds stages that cost at most `limit` each. If loads are
  /// minimized, the load of each device is also at most `limit`.
  [[nodiscard]] bool run(C limit) {
    limit_ = limit;
    labels_.clear(used_devices(), loads_per_label_);
    is_complete_ = true;
    if (!windows_.narrow(stages_, limit)) return false;
    std::size_t const count = stages_.stages();
    is_complete_ = windows_.offsets[count + 1] <= max_labels_;
    if (!is_complete_) return false;
    find_most_before();
    find_least_before();
    begins_.assign(windows_.offsets[count + 1], 0);
    ends_.assign(windows_.offsets[count + 1], 0);
    max_of_cell_ = max_labels_ / begins_.size();
    max_of_list_ = std::max<std::size_t>(shortest_list, 2 * max_of_cell_);
    labels_.add(std::vector<std::int64_t>(used_devices(), 0),
                std::vector<C>(loads_per_label_, C{}));
    ends_.back() = 1;
    for (std::size_t s = count; s-- != 0;) {
      for (std::size_t first = windows_.first[s]; first <= windows_.last[s]; ++first) {
        fill_cell(s, first);
      }
    }
    best_.reset();
    for (std::size_t l = begins_.front(); l != ends_.front(); ++l) {
      C const found = max_of(labels_.loads(l));
      if (!best_ || found < *best_) best_ = found;
    }
    return best_.has_value();
  }

  /// Returns false if the search dropped labels that might have been needed.
  [[nodiscard]] bool is_complete() const { return is_complete_; }

  /// Finds the boundaries of the result of `run` that are first in lexicographic order. Better
  /// stages whose labels were dropped may be found instead.
  void cut_leftmost(std::vector<std::uint32_t>& boundaries) const {
    boundaries.assign(stages_.stages() + 1, 0);
    std::vector<std::int64_t> used(used_devices(), 0);
    std::vector<C> costs;
    std::size_t first = 0;
    for (std::size_t s = 0; s != stages_.stages(); ++s) {
      first = first_end(s, first, used, costs);
      boundaries[s + 1] = static_cast<std::uint32_t>(first);
    }
  }

 private:
  /// The number of labels that a growing list may always have, even if fewer are kept.
  static constexpr std::size_t shortest_list = 16;

  [[nodiscard]] std::size_t devices() const { return memory_.devices(); }
  [[nodiscard]] std::size_t device(std::size_t stage) const { return stage % devices(); }
  /// Returns the number of devices whose bytes a label stores.
  [[nodiscard]] std::size_t used_devices() const { return memory_.is_limited() ? devices() : 0; }

  /// Finds, for each boundary and device, the largest number of bytes that the stages before the
  /// boundary may have on the device.
  void find_most_before() {
    if (!memory_.is_limited()) return;
    std::size_t const count = stages_.stages();
    max_before_.assign((count + 1) * devices(), 0);
    for (std::size_t s = 0; s != count; ++s) {
      for (std::size_t d = 0; d != devices(); ++d) {
        max_before_[(s + 1) * devices() + d] = max_before_[s * devices() + d];
      }
      std::int64_t const most =
          std::min(memory_.bytes(windows_.first[s], windows_.last[s + 1]), memory_.capacity(s));
      std::int64_t& sum = max_before_[(s + 1) * devices() + device(s)];
      sum += std::min(most, memory_.capacity(s) - std::min(sum, memory_.capacity(s)));
    }
  }

  /// Finds the least sum of the costs of the stages before each cell; `infinite_cost` if there are
  /// none.
  void find_least_before() {
    if (loads_per_label_ == 0) return;
    auto const& rules = stages_.rules();
    min_before_.assign(windows_.offsets[stages_.stages() + 1], infinite_cost<C>);
    min_before_.front() = C{};
    for (std::size_t s = 0; s != stages_.stages(); ++s) {
      for (std::size_t first = windows_.first[s]; first <= windows_.last[s]; ++first) {
        C const before = min_before_[windows_.cell(s, first)];
        if (before == infinite_cost<C> || rules.may_cut[first] == 0) continue;
        if (rules.may_be_empty && windows_.contains(s + 1, first)) {
          C& cell = min_before_[windows_.cell(s + 1, first)];
          cell = std::min(cell, before);
        }
        auto const low = std::max<std::size_t>(windows_.first[s + 1], first + rules.shortest[s]);
        for (std::size_t last = low; last <= windows_.last[s + 1]; ++last) {
          if (stages_.is_over(s, first, last, limit_)) break;
          C& cell = min_before_[windows_.cell(s + 1, last)];
          C const cost = stages_(s, first, last);
          if (cost == infinite_cost<C>) continue;
          // If the sum exceeds its type, the largest valid value is a lower bound of it.
          C const sum = cost < infinite_cost<C> - before ? static_cast<C>(before + cost)
                                                         : just_below(infinite_cost<C>);
          if (sum < cell && stages_.fits(s, first, last)) cell = sum;
        }
      }
    }
  }

  /// Computes the labels of the stages from stage `s` on, if stage `s` begins at `first`.
  void fill_cell(std::size_t s, std::size_t first) {
    std::size_t const cell = windows_.cell(s, first);
    begins_[cell] = labels_.size();
    auto const& rules = stages_.rules();
    bool const is_reached = loads_per_label_ == 0 || min_before_[cell] != infinite_cost<C>;
    if (rules.may_cut[first] != 0 && is_reached) {
      if (rules.may_be_empty && windows_.contains(s + 1, first)) extend(s, first, first, C{});
      auto const low = std::max<std::size_t>(windows_.first[s + 1], first + rules.shortest[s]);
      for (std::size_t last = low; last <= windows_.last[s + 1]; ++last) {
        if (stages_.is_over(s, first, last, limit_)) break;
        std::size_t const next = windows_.cell(s + 1, last);
        if (begins_[next] == ends_[next]) continue;
        C const cost = stages_(s, first, last);
        if (cost <= limit_ && cost != infinite_cost<C> && stages_.fits(s, first, last)) {
          extend(s, first, last, cost);
        }
      }
    }
    if (labels_.size() - begins_[cell] > max_of_cell_) keep_best(s, first);
    ends_[cell] = labels_.size();
  }

  /// Adds a stage in front of each label of the next cell.
  void extend(std::size_t s, std::size_t first, std::size_t last, C cost) {
    std::size_t const begin = begins_[windows_.cell(s, first)];
    std::size_t const next = windows_.cell(s + 1, last);
    for (std::size_t l = begins_[next]; l != ends_[next]; ++l) {
      if (!add_bytes(s, first, last, l) || !add_load(s, first, cost, l)) continue;
      labels_.add_unless_dominated(begin, used_bytes_, loads_);
      if (labels_.size() - begin > max_of_list_) keep_best(s, first);
    }
  }

  /// Sets `used_bytes_` to the bytes of each device with a stage and the label after it. Returns
  /// false if the bytes exceed the capacity.
  [[nodiscard]] bool add_bytes(std::size_t s, std::size_t first, std::size_t last, std::size_t l) {
    auto const used_after = labels_.usage(l);
    used_bytes_.assign(used_after.begin(), used_after.end());
    if (!memory_.is_limited()) return true;
    std::int64_t const bytes = memory_.bytes(first, last);
    if (bytes > memory_.capacity(s) - used_bytes_[device(s)]) return false;
    used_bytes_[device(s)] += bytes;
    if (!leaves_room(s, first)) return false;
    for (std::size_t d = 0; d != devices(); ++d) {
      // Bytes that fit together with any earlier stages need not be distinguished.
      if (max_before_[s * devices() + d] <= memory_.capacity(d) - used_bytes_[d])
        used_bytes_[d] = 0;
    }
    return true;
  }

  /// Sets `loads_` to the load of each device with a stage and the label after it. Returns false if
  /// a load must exceed the limit.
  [[nodiscard]] bool add_load(std::size_t s, std::size_t first, C cost, std::size_t l) {
    auto const loads_after = labels_.loads(l);
    loads_.assign(loads_after.begin(), loads_after.end());
    if (loads_per_label_ == 0) return true;
    C& load = loads_[device(s)];
    if (load > limit_ || cost > limit_ - load) {
      if (limit_ == infinite_cost<C>) throw_overflow(stages_.function(), "the load of a device");
      return false;
    }
    load = static_cast<C>(load + cost);
    if (load > limit_) return false;
    using wide = wide_weight<C>;
    wide room{};
    for (C const each : loads_) room += static_cast<wide>(limit_) - static_cast<wide>(each);
    if constexpr (std::floating_point<C>) {
      // Sums in another order may have other rounding errors.
      room += static_cast<wide>(limit_) * static_cast<wide>(stages_.stages() + 4) * C{0x1p-50};
    }
    return static_cast<wide>(min_before_[windows_.cell(s, first)]) <= room;
  }

  /// Returns true if the layers before `first` may fit into the memory that `used_bytes_` leaves.
  [[nodiscard]] bool leaves_room(std::size_t s, std::size_t first) const {
    std::int64_t rest = memory_.bytes(0, first);
    for (std::size_t d = 0; d != devices(); ++d) {
      std::int64_t const room = memory_.capacity(d) - used_bytes_[d];
      rest -= std::min({rest, room, max_before_[s * devices() + d]});
    }
    return rest == 0;
  }

  /// Returns the largest load, or zero if labels have no loads.
  [[nodiscard]] static C max_of(std::span<C const> loads) {
    return loads.empty() ? C{} : *std::max_element(loads.begin(), loads.end());
  }

  /// Returns the largest shortfall of a device in bytes, if the layers before `first` are divided
  /// among the devices in proportion to their stages.
  [[nodiscard]] std::int64_t need_of(std::size_t s, std::size_t first, std::size_t l) const {
    if (!memory_.is_limited()) return 0;
    std::int64_t const bytes = memory_.bytes(0, first);
    std::int64_t result = std::numeric_limits<std::int64_t>::min();
    for (std::size_t d = 0; d != devices(); ++d) {
      std::size_t const before = s / devices() + (d < s % devices() ? 1 : 0);
      auto const share =
          static_cast<std::int64_t>(int128{bytes} * static_cast<int128>(before) /
                                    static_cast<int128>(std::max<std::size_t>(s, 1)));
      result = std::max(result, share - (memory_.capacity(d) - labels_.usage(l)[d]));
    }
    return result;
  }

  /// Keeps some labels of the growing list: half of them have the smallest load, the other half
  /// leaves the most memory. If loads are ignored, all kept labels leave the most memory.
  void keep_best(std::size_t s, std::size_t first) {
    is_complete_ = false;
    std::size_t const begin = begins_[windows_.cell(s, first)];
    order_.resize(labels_.size() - begin);
    needs_.resize(order_.size());
    for (std::size_t i = 0; i != order_.size(); ++i) {
      order_[i] = i;
      needs_[i] = need_of(s, first, begin + i);
    }
    auto const at = [&](std::size_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); };
    std::size_t const quick = loads_per_label_ == 0 ? 0 : max_of_cell_ / 2;
    std::nth_element(at(0), at(quick), order_.end(), [&](std::size_t a, std::size_t b) {
      C const first_load = max_of(labels_.loads(begin + a));
      C const second_load = max_of(labels_.loads(begin + b));
      return first_load < second_load || (first_load == second_load && a < b);
    });
    std::nth_element(at(quick), at(max_of_cell_), order_.end(), [&](std::size_t a, std::size_t b) {
      return needs_[a] < needs_[b] || (needs_[a] == needs_[b] && a < b);
    });
    order_.resize(max_of_cell_);
    std::sort(order_.begin(), order_.end());
    labels_.keep_only(begin, order_);
  }

  [[nodiscard]] std::size_t first_end(std::size_t s, std::size_t first,
                                      std::vector<std::int64_t>& used,
                                      std::vector<C>& costs) const {
    if (stages_.rules().may_be_empty && windows_.contains(s + 1, first)) {
      costs.push_back(C{});
      if (leads_to_best(s + 1, first, used, costs)) return first;
      costs.pop_back();
    }
    std::size_t const low =
        std::max<std::size_t>(windows_.first[s + 1], first + stages_.rules().shortest[s]);
    std::size_t const high = windows_.last[s + 1];
    for (std::size_t last = low; last <= high; ++last) {
      std::size_t const next = windows_.cell(s + 1, last);
      if (begins_[next] == ends_[next]) continue;
      std::int64_t const bytes = memory_.is_limited() ? memory_.bytes(first, last) : 0;
      costs.push_back(stages_(s, first, last));
      if (memory_.is_limited()) used[device(s)] += bytes;
      bool const is_legal = costs.back() <= limit_ && stages_.fits(s, first, last);
      if (is_legal && leads_to_best(s + 1, last, used, costs)) return last;
      costs.pop_back();
      if (memory_.is_limited()) used[device(s)] -= bytes;
    }
    stages_.throw_changed(s, first, low, high);
  }

  /// Returns true if stages with these costs and bytes are the beginning of the best stages.
  [[nodiscard]] bool leads_to_best(std::size_t boundary, std::size_t position,
                                   std::span<std::int64_t const> used,
                                   std::span<C const> costs) const {
    std::size_t const cell = windows_.cell(boundary, position);
    for (std::size_t l = begins_[cell]; l != ends_[cell]; ++l) {
      bool fits = true;
      for (std::size_t d = 0; d != used.size(); ++d) {
        fits = fits && labels_.usage(l)[d] <= memory_.capacity(d) - used[d];
      }
      if (fits && max_after(costs, l) <= *best_) return true;
    }
    return false;
  }

  /// Returns the largest load of a device, from stages with these costs and a label after them.
  [[nodiscard]] C max_after(std::span<C const> costs, std::size_t l) const {
    auto const behind = labels_.loads(l);
    std::vector<C> loads(behind.begin(), behind.end());
    for (std::size_t s = costs.size(); s-- != 0 && loads_per_label_ != 0;) {
      C& load = loads[device(s)];
      load =
          costs[s] > infinite_cost<C> - load ? infinite_cost<C> : static_cast<C>(load + costs[s]);
    }
    return max_of(loads);
  }

  stage_costs<C, Cost, Fits> const& stages_;
  stage_memory const& memory_;
  C limit_{};
  std::size_t max_labels_;
  std::size_t loads_per_label_;  ///< the number of loads of a label
  std::size_t max_of_cell_ = 0;
  std::size_t max_of_list_ = 0;
  bool is_complete_ = true;
  cut_windows windows_;
  device_labels<C> labels_;
  std::vector<std::size_t> begins_;  ///< of the labels of each cell
  std::vector<std::size_t> ends_;
  std::vector<std::int64_t> max_before_;  ///< of each boundary, device by device
  std::vector<C> min_before_;             ///< of each cell
  std::vector<std::int64_t> used_bytes_;  ///< of the new label
  std::vector<C> loads_;                  ///< of the new label
  std::vector<std::size_t> order_;        ///< of the labels of a cell
  std::vector<std::int64_t> needs_;       ///< of the labels of a cell
  std::optional<C> best_;                 ///< the smallest largest load
};

/// Runs a search with growing limits, beginning with the least bottleneck. Returns false if there
/// are no stages.
template <class C, class Search>
[[nodiscard]] bool run_with_limits(Search& devices, C least) {
  C gap = static_cast<C>(least / 64 + (std::integral<C> ? 1 : 0));
  C limit = least;
  while (!devices.run(limit)) {
    if (limit == infinite_cost<C>) return false;
    // A very large limit is replaced by no limit, which stays far from an overflow.
    bool const is_much = gap == C{} || gap / 4 > least || gap > infinite_cost<C> / 16 - least;
    limit = is_much ? infinite_cost<C> : static_cast<C>(least + gap);
    if (!is_much) gap = static_cast<C>(8 * gap);
  }
  return true;
}

}  // namespace omnibal::inline v0::detail
