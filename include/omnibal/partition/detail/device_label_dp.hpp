#pragma once

/// \file
/// Stages that share the memory of a device with other stages: label search.

#include <omnibal/config.hpp>
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

/// What some stages cost.
template <class C>
struct device_label {
  C bottleneck;
  C sum;
};

/// Labels with the bytes that they take on each device. The last of them are the list that is made.
template <class C>
class device_labels {
 public:
  using label = device_label<C>;

  void clear(std::size_t devices) {
    devices_ = devices;
    labels_.clear();
    usage_.clear();
  }

  [[nodiscard]] std::size_t size() const { return labels_.size(); }
  [[nodiscard]] label const& operator[](std::size_t index) const { return labels_[index]; }
  /// The bytes on each device.
  [[nodiscard]] std::span<std::int64_t const> usage(std::size_t index) const {
    return std::span(usage_).subspan(index * devices_, devices_);
  }

  void add(label const& made, std::span<std::int64_t const> used) {
    labels_.push_back(made);
    usage_.insert(usage_.end(), used.begin(), used.end());
  }

  /// Adds a label to the list from `begin` on and drops whichever is no better than another.
  void add_unless_dominated(std::size_t begin, label const& made,
                            std::span<std::int64_t const> used) {
    for (std::size_t l = begin; l != labels_.size(); ++l) {
      if (is_as_good(labels_[l], usage(l), made, used)) return;
    }
    std::size_t kept = begin;
    for (std::size_t l = begin; l != labels_.size(); ++l) {
      if (!is_as_good(made, used, labels_[l], usage(l))) move_label(l, kept++);
    }
    resize(kept);
    add(made, used);
  }

  /// Drops all of the list from `begin` on but those that are named, by ascending index in it.
  void keep_only(std::size_t begin, std::span<std::size_t const> ascending) {
    for (std::size_t i = 0; i != ascending.size(); ++i) move_label(begin + ascending[i], begin + i);
    resize(begin + ascending.size());
  }

 private:
  /// Whether `left` is nowhere worse.
  [[nodiscard]] static bool is_as_good(label const& left, std::span<std::int64_t const> left_used,
                                       label const& right,
                                       std::span<std::int64_t const> right_used) {
    if (left.bottleneck > right.bottleneck || left.sum > right.sum) return false;
    for (std::size_t d = 0; d != left_used.size(); ++d) {
      if (left_used[d] > right_used[d]) return false;
    }
    return true;
  }

  void move_label(std::size_t from, std::size_t to) {
    if (from == to) return;
    labels_[to] = labels_[from];
    std::copy_n(usage_.begin() + static_cast<std::ptrdiff_t>(from * devices_), devices_,
                usage_.begin() + static_cast<std::ptrdiff_t>(to * devices_));
  }

  void resize(std::size_t count) {
    labels_.resize(count);
    usage_.resize(count * devices_);
  }

  std::size_t devices_ = 0;
  std::vector<label> labels_;
  std::vector<std::int64_t> usage_;  ///< of each label, device by device
};

/// As many of the labels as a search that is one of many may keep.
[[nodiscard]] constexpr std::size_t some_of(std::size_t labels) {
  return std::max<std::size_t>(1, labels / 16);
}

/// Looks for the stages with the least time such that each device has room for all of its stages.
///
/// Dynamic programming from the last stage to the first with lists of labels: what the stages from
/// a position on cost, and what they take on each device, as far as it can matter to the stages
/// before. A label that is nowhere better than another of its list is dropped, and so is one that
/// leaves the layers before too little room. Of too many labels some with the least time are kept,
/// and some that leave the most room.
template <class C, class Cost, class Fits>
class device_label_dp {
 public:
  /// `least` is a lower bound of the bottleneck, `labels` the most that are kept.
  device_label_dp(stage_costs<C, Cost, Fits> const& stages, step_time<C> const& time, C least,
                  std::size_t labels)
      : stages_(stages),
        memory_(stages.memory()),
        time_(time),
        least_(least),
        most_labels_(labels) {}

  /// True where stages within `limit` are found; `best_time` and `best_bottleneck` are theirs.
  [[nodiscard]] bool run(C limit) {
    limit_ = limit;
    labels_.clear(devices());
    is_complete_ = true;
    if (!windows_.narrow(stages_, limit)) return false;
    std::size_t const count = stages_.stages();
    is_complete_ = windows_.offsets[count + 1] <= most_labels_;
    if (!is_complete_) return false;
    find_most_before();
    begins_.assign(windows_.offsets[count + 1], 0);
    ends_.assign(windows_.offsets[count + 1], 0);
    most_of_cell_ = most_labels_ / begins_.size();
    most_of_list_ = std::max<std::size_t>(shortest_list, 2 * most_of_cell_);
    labels_.add({least_, C{}}, std::vector<std::int64_t>(devices(), 0));
    ends_.back() = 1;
    for (std::size_t s = count; s-- != 0;) {
      for (std::size_t first = windows_.first[s]; first <= windows_.last[s]; ++first) {
        fill_cell(s, first);
      }
    }
    best_.reset();
    for (std::size_t l = begins_.front(); l != ends_.front(); ++l) {
      outcome const found = outcome_of(labels_[l]);
      if (!best_ || found < *best_) best_ = found;
    }
    return best_.has_value();
  }

  [[nodiscard]] C limit() const { return limit_; }
  /// False where labels were dropped that might have been needed.
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  [[nodiscard]] wide_weight<C> best_time() const { return best_->time; }
  [[nodiscard]] C best_bottleneck() const { return best_->bottleneck; }

  /// The first boundaries, in lexicographic order, of what `run` has found, or of better ones that
  /// it has lost; `best_time` and `best_bottleneck` are theirs then.
  void cut_leftmost(std::vector<std::uint32_t>& boundaries) {
    boundaries.assign(stages_.stages() + 1, 0);
    std::vector<std::int64_t> used(devices(), 0);
    std::vector<C> costs;
    std::size_t first = 0;
    for (std::size_t s = 0; s != stages_.stages(); ++s) {
      first = first_end(s, first, used, costs);
      boundaries[s + 1] = static_cast<std::uint32_t>(first);
    }
    best_ = outcome_of(with_costs({least_, C{}}, costs));
  }

 private:
  /// A list of labels may become so long while it is made, however few are kept.
  static constexpr std::size_t shortest_list = 16;

  using label = device_label<C>;

  struct outcome {
    wide_weight<C> time;
    C bottleneck;

    [[nodiscard]] bool operator<(outcome const& other) const {
      return time < other.time || (time == other.time && bottleneck < other.bottleneck);
    }
  };

  [[nodiscard]] std::size_t devices() const { return memory_.devices(); }
  [[nodiscard]] std::size_t device(std::size_t stage) const { return stage % devices(); }

  /// For each boundary and device the most that the stages before may take.
  void find_most_before() {
    std::size_t const count = stages_.stages();
    most_before_.assign((count + 1) * devices(), 0);
    for (std::size_t s = 0; s != count; ++s) {
      for (std::size_t d = 0; d != devices(); ++d) {
        most_before_[(s + 1) * devices() + d] = most_before_[s * devices() + d];
      }
      std::int64_t const most =
          std::min(memory_.bytes(windows_.first[s], windows_.last[s + 1]), memory_.capacity(s));
      std::int64_t& sum = most_before_[(s + 1) * devices() + device(s)];
      sum += std::min(most, memory_.capacity(s) - std::min(sum, memory_.capacity(s)));
    }
  }

  /// Makes the labels of the stages from `s` on, the first of which begins at `first`.
  void fill_cell(std::size_t s, std::size_t first) {
    std::size_t const cell = windows_.cell(s, first);
    begins_[cell] = labels_.size();
    auto const& rules = stages_.rules();
    if (rules.may_cut[first] != 0) {
      if (rules.may_be_empty && windows_.contains(s + 1, first)) extend(s, first, first, C{});
      auto const low = std::max<std::size_t>(windows_.first[s + 1], first + rules.shortest[s]);
      for (std::size_t last = low; last <= windows_.last[s + 1]; ++last) {
        if (stages_.is_over(s, first, last, limit_)) break;
        std::size_t const next = windows_.cell(s + 1, last);
        if (begins_[next] == ends_[next]) continue;
        C const cost = stages_(s, first, last);
        if (cost <= limit_ && cost != never<C> && stages_.fits(s, first, last)) {
          extend(s, first, last, cost);
        }
      }
    }
    if (labels_.size() - begins_[cell] > most_of_cell_) keep_best(s, first);
    ends_[cell] = labels_.size();
  }

  /// Puts a stage before each label of the next cell.
  void extend(std::size_t s, std::size_t first, std::size_t last, C cost) {
    std::size_t const begin = begins_[windows_.cell(s, first)];
    std::size_t const next = windows_.cell(s + 1, last);
    std::int64_t const bytes = memory_.bytes(first, last);
    for (std::size_t l = begins_[next]; l != ends_[next]; ++l) {
      auto const used_after = labels_.usage(l);
      used_.assign(used_after.begin(), used_after.end());
      if (bytes > memory_.capacity(s) - used_[device(s)]) continue;
      used_[device(s)] += bytes;
      if (!leaves_room(s, first)) continue;
      for (std::size_t d = 0; d != devices(); ++d) {
        // What always fits together with the stages before need not be told apart.
        if (most_before_[s * devices() + d] <= memory_.capacity(d) - used_[d]) used_[d] = 0;
      }
      label made{std::max(labels_[l].bottleneck, cost), C{}};
      if (time_.of_sum != 0) {
        made.sum = labels_[l].sum;
        checked_add(stages_.function(), "the sum over the stages", made.sum, cost);
      }
      labels_.add_unless_dominated(begin, made, used_);
      if (labels_.size() - begin > most_of_list_) keep_best(s, first);
    }
  }

  /// Whether the layers up to `first` could fit into what is left beside `used_`.
  [[nodiscard]] bool leaves_room(std::size_t s, std::size_t first) const {
    std::int64_t rest = memory_.bytes(0, first);
    for (std::size_t d = 0; d != devices(); ++d) {
      std::int64_t const room = memory_.capacity(d) - used_[d];
      rest -= std::min({rest, room, most_before_[s * devices() + d]});
    }
    return rest == 0;
  }

  [[nodiscard]] outcome outcome_of(label const& made) const {
    return {time_(made.bottleneck, made.sum), made.bottleneck};
  }

  /// What the neediest device lacks if the devices share the layers before evenly by stages.
  [[nodiscard]] std::int64_t need_of(std::size_t s, std::size_t first, std::size_t l) const {
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

  /// Keeps of the labels that are made half with the least time and half that leave the most room.
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
    std::size_t const quick = most_of_cell_ / 2;
    std::nth_element(at(0), at(quick), order_.end(), [&](std::size_t a, std::size_t b) {
      outcome const first_one = outcome_of(labels_[begin + a]);
      outcome const second_one = outcome_of(labels_[begin + b]);
      return first_one < second_one || (!(second_one < first_one) && a < b);
    });
    std::nth_element(at(quick), at(most_of_cell_), order_.end(), [&](std::size_t a, std::size_t b) {
      return needs_[a] < needs_[b] || (needs_[a] == needs_[b] && a < b);
    });
    order_.resize(most_of_cell_);
    std::sort(order_.begin(), order_.end());
    labels_.keep_only(begin, order_);
  }

  [[nodiscard]] std::size_t first_end(std::size_t s, std::size_t first,
                                      std::vector<std::int64_t>& used,
                                      std::vector<C>& costs) const {
    if (stages_.rules().may_be_empty && windows_.contains(s + 1, first)) {
      if (leads_to_best(s + 1, first, used, costs)) return first;
    }
    std::size_t const low =
        std::max<std::size_t>(windows_.first[s + 1], first + stages_.rules().shortest[s]);
    std::size_t const high = windows_.last[s + 1];
    for (std::size_t last = low; last <= high; ++last) {
      std::int64_t const bytes = memory_.bytes(first, last);
      std::size_t const next = windows_.cell(s + 1, last);
      if (begins_[next] == ends_[next]) continue;
      costs.push_back(stages_(s, first, last));
      used[device(s)] += bytes;
      bool const is_legal = costs.back() <= limit_ && stages_.fits(s, first, last);
      if (is_legal && leads_to_best(s + 1, last, used, costs)) return last;
      costs.pop_back();
      used[device(s)] -= bytes;
    }
    stages_.throw_changed(s, first, low, high);
  }

  /// Whether stages with these costs, which take this much, are the beginning of the best.
  [[nodiscard]] bool leads_to_best(std::size_t boundary, std::size_t position,
                                   std::span<std::int64_t const> used,
                                   std::span<C const> costs) const {
    std::size_t const cell = windows_.cell(boundary, position);
    for (std::size_t l = begins_[cell]; l != ends_[cell]; ++l) {
      bool fits = true;
      for (std::size_t d = 0; d != devices(); ++d) {
        fits = fits && labels_.usage(l)[d] <= memory_.capacity(d) - used[d];
      }
      if (!fits) continue;
      if (!(*best_ < outcome_of(with_costs(labels_[l], costs)))) return true;
    }
    return false;
  }

  /// A label after stages with these costs.
  [[nodiscard]] label with_costs(label whole, std::span<C const> costs) const {
    for (std::size_t i = costs.size(); i-- != 0;) {
      whole.bottleneck = std::max(whole.bottleneck, costs[i]);
      if (time_.of_sum == 0) continue;
      bool const is_wide = costs[i] > never<C> - whole.sum;
      whole.sum = is_wide ? never<C> : static_cast<C>(whole.sum + costs[i]);
    }
    return whole;
  }

  stage_costs<C, Cost, Fits> const& stages_;
  stage_memory const& memory_;
  step_time<C> time_;
  C least_;
  C limit_{};
  std::size_t most_labels_;
  std::size_t most_of_cell_ = 0;
  std::size_t most_of_list_ = 0;
  bool is_complete_ = true;
  cut_windows windows_;
  device_labels<C> labels_;
  std::vector<std::size_t> begins_;  ///< of the labels of each cell
  std::vector<std::size_t> ends_;
  std::vector<std::int64_t> most_before_;  ///< of each boundary, device by device
  std::vector<std::int64_t> used_;         ///< of the label that is made
  std::vector<std::size_t> order_;         ///< of the labels of a cell
  std::vector<std::int64_t> needs_;        ///< of the labels of a cell
  std::optional<outcome> best_;
};

/// Runs a search with limits that grow from the least bottleneck on; false without stages.
template <class C, class Search>
[[nodiscard]] bool run_with_limits(Search& devices, C least) {
  C gap = static_cast<C>(least / 64 + (std::integral<C> ? 1 : 0));
  C limit = least;
  while (!devices.run(limit)) {
    if (limit == never<C>) return false;
    // Very much is as good as no limit, and far from an overflow.
    bool const is_much = gap == C{} || gap / 4 > least || gap > never<C> / 16 - least;
    limit = is_much ? never<C> : static_cast<C>(least + gap);
    if (!is_much) gap = static_cast<C>(8 * gap);
  }
  return true;
}

}  // namespace omnibal::inline v0::detail
