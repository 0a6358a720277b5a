#pragma once

/// \file
/// The least time of a run of layers for any memory, from below.

#include <omnibal/plan/detail/whole_layers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A time that nothing has.
inline constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::max();

/// Numbers of transient bytes to which those of all choices are rounded down, a few at most.
class transient_levels {
 public:
  explicit transient_levels(whole_layers const& layers) {
    std::vector<std::int64_t> all;
    for (auto const& way : layers.all()) all.push_back(way.transient_bytes);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::size_t const count = std::min(all.size(), most);
    for (std::size_t k = 0; k != count; ++k) bytes_.push_back(all[k * all.size() / count]);
  }

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::int64_t operator[](std::size_t level) const { return bytes_[level]; }
  [[nodiscard]] std::size_t level_of(std::int64_t transient_bytes) const {
    auto const above = std::upper_bound(bytes_.begin(), bytes_.end(), transient_bytes);
    return static_cast<std::size_t>(above - bytes_.begin()) - 1;
  }

 private:
  static constexpr std::size_t most = 4;

  std::vector<std::int64_t> bytes_;
};

/// Kept bytes and time of some choices of a run of layers.
struct floor_point {
  std::int64_t bytes;
  std::int64_t time;
};

/// For each level of transient bytes a list of the best choices of a run of layers that stay within
/// it, to which a layer is appended at a time. Points ascend in bytes and descend in time. Where a
/// list grows too long, neighbours merge into a point with the fewest bytes and the least time of
/// them, so that times are never too large.
class floor_lists {
 public:
  floor_lists(whole_layers const& layers, transient_levels const& levels, std::size_t states)
      : layers_(layers), levels_(levels), states_(states), lists_(levels.size()) {}

  /// Forgets all layers. No more than `kept_bytes` and `time` will be asked for.
  void begin(std::int64_t kept_bytes, std::int64_t time) {
    most_bytes_ = kept_bytes;
    most_time_ = time;
    for (auto& one : lists_) one.is_own = false;
    lists_[0].is_own = true;
    lists_[0].points.assign(1, {0, 0});
  }

  void push(std::size_t layer) {
    // A list is that of the level below as long as they admit the same choices.
    for (std::size_t k = lists_.size(); --k != 0;) {
      if (lists_[k].is_own || !has_choice_at(layer, k)) continue;
      std::size_t below = k - 1;
      while (!lists_[below].is_own) --below;
      lists_[k].points = lists_[below].points;
      lists_[k].is_own = true;
    }
    for (std::size_t k = 0; k != lists_.size(); ++k) {
      if (lists_[k].is_own) append(layer, k, lists_[k].points);
    }
  }

  /// True where some choices remain.
  [[nodiscard]] bool has_points() const {
    return std::any_of(lists_.begin(), lists_.end(),
                       [](list const& one) { return one.is_own && !one.points.empty(); });
  }

  /// No choices take less time where `room` holds the kept bytes of `in_flight` micro-batches and
  /// the transient bytes.
  [[nodiscard]] std::int64_t least_time(std::int64_t room, std::int64_t in_flight) const {
    std::int64_t result = no_time;
    for (std::size_t k = 0; k != lists_.size() && levels_[k] <= room; ++k) {
      if (!lists_[k].is_own) continue;
      auto const& points = lists_[k].points;
      std::int64_t const kept = (room - levels_[k]) / in_flight;
      auto const above = std::upper_bound(
          points.begin(), points.end(), kept,
          [](std::int64_t bytes, floor_point const& point) { return bytes < point.bytes; });
      if (above != points.begin()) result = std::min(result, std::prev(above)->time);
    }
    return result;
  }

 private:
  struct list {
    bool is_own = false;
    std::vector<floor_point> points;
  };

  [[nodiscard]] bool has_choice_at(std::size_t layer, std::size_t level) const {
    for (auto const& way : layers_[layer]) {
      if (levels_.level_of(way.transient_bytes) == level) return true;
    }
    return false;
  }

  void append(std::size_t layer, std::size_t level, std::vector<floor_point>& points) {
    sum_.clear();
    for (auto const& way : layers_[layer]) {
      if (levels_.level_of(way.transient_bytes) > level) continue;
      std::swap(sum_, merged_);
      sum_.clear();
      merge(points, way);
    }
    trim();
    std::swap(points, sum_);
  }

  /// Adds a point with no fewer bytes than the last one unless it is worse.
  void add(floor_point const& point) {
    if (point.time > most_time_ || (!sum_.empty() && point.time >= sum_.back().time)) return;
    if (!sum_.empty() && point.bytes == sum_.back().bytes) sum_.pop_back();
    sum_.push_back(point);
  }

  /// `merged_` and the points with one more choice.
  void merge(std::span<floor_point const> points, whole_choice const& way) {
    auto known = merged_.cbegin();
    for (auto const& point : points) {
      if (way.bytes > most_bytes_ - point.bytes) break;
      floor_point const longer{point.bytes + way.bytes, point.time + way.time};
      while (known != merged_.cend() && known->bytes <= longer.bytes) add(*known++);
      add(longer);
    }
    while (known != merged_.cend()) add(*known++);
  }

  void trim() {
    if (sum_.size() <= states_) return;
    std::int64_t const span = sum_.front().time - sum_.back().time;
    std::int64_t const width = span / static_cast<std::int64_t>(states_) + 1;
    std::size_t count = 0;
    std::int64_t slowest = 0;
    for (auto const& point : sum_) {
      if (count != 0 && slowest - point.time < width) {
        sum_[count - 1].time = point.time;
        continue;
      }
      slowest = point.time;
      sum_[count++] = point;
    }
    sum_.resize(count);
  }

  whole_layers const& layers_;
  transient_levels const& levels_;
  std::size_t states_;
  std::int64_t most_bytes_ = 0;
  std::int64_t most_time_ = 0;
  std::vector<list> lists_;
  std::vector<floor_point> sum_;
  std::vector<floor_point> merged_;
};

}  // namespace omnibal::inline v0::detail
