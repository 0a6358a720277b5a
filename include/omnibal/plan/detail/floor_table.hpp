#pragma once

/// \file
/// A time for every stage that a good plan can have, none of which is too large.

#include <omnibal/plan/detail/floor_lists.hpp>
#include <omnibal/plan/detail/stage_rooms.hpp>
#include <omnibal/plan/detail/stage_windows.hpp>
#include <omnibal/plan/detail/whole_layers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Layers as a stage.
struct stage_range {
  std::size_t stage;
  std::size_t first;
  std::size_t last;
};

/// A time that is `no_time` for stages that do not fit the memory or take longer than the
/// limit. Each time may be raised.
class floor_table {
 public:
  floor_table(whole_layers const& layers, stage_rooms const& rooms, transient_levels const& levels)
      : layers_(layers), rooms_(rooms), levels_(levels) {}

  /// Computes all times. Lists grow to the right from the first layer of a stage, for the last stage
  /// to the left from the last layer of all. Precondition: `windows.is_possible()`.
  void fill(stage_windows const& windows, std::int64_t limit, std::size_t states) {
    first_ = windows.first;
    last_ = windows.last;
    rows_.assign(1, 0);
    std::size_t const stages = rooms_.memory.size();
    for (std::size_t s = 0; s != stages; ++s) {
      rows_.push_back(rows_.back() + (last_[s] - first_[s] + 1) * width(s));
    }
    times_.assign(rows_.back(), no_time);

    floor_lists lists(layers_, levels_, states);
    std::int64_t const most_bytes = most_kept_bytes();
    for (std::size_t first = 0; first != layers_.size(); ++first) {
      std::size_t begin = 0;
      while (begin + 1 != stages && last_[begin] < first) ++begin;
      std::size_t end = begin;
      while (end + 1 != stages && first_[end] <= first) ++end;
      if (begin == end) continue;
      lists.begin(most_bytes, limit);
      for (std::size_t last = first + 1; last <= last_[end]; ++last) {
        lists.push(last - 1);
        if (!lists.has_points()) break;
        for (std::size_t s = begin; s != end; ++s) set({s, first, last}, lists);
      }
    }
    lists.begin(most_bytes, limit);
    for (std::size_t first = layers_.size(); first-- > first_[stages - 1];) {
      lists.push(first);
      set({stages - 1, first, layers_.size()}, lists);
    }
  }

  [[nodiscard]] std::int64_t operator()(std::size_t stage, std::size_t first,
                                        std::size_t last) const {
    stage_range const range{stage, first, last};
    return contains(range) ? times_[cell(range)] : no_time;
  }

  /// Makes a time no less than this one.
  void raise(stage_range const& range, std::int64_t time) {
    if (times_.empty() || !contains(range)) return;
    auto& known = times_[cell(range)];
    known = std::max(known, time);
  }

  /// What is left of the memory of a stage for activations.
  [[nodiscard]] std::int64_t room(stage_range const& range) const {
    return rooms_.memory[range.stage] - rooms_.reserve[range.stage] -
           layers_.state_bytes(range.first, range.last);
  }

 private:
  void set(stage_range const& range, floor_lists const& lists) {
    if (!contains(range)) return;
    times_[cell(range)] = lists.least_time(room(range), in_flight(range.stage));
  }

  [[nodiscard]] std::int64_t in_flight(std::size_t stage) const { return rooms_.in_flight[stage]; }
  [[nodiscard]] std::size_t width(std::size_t stage) const {
    return last_[stage + 1] - first_[stage + 1] + 1;
  }
  [[nodiscard]] bool contains(stage_range const& range) const {
    return first_[range.stage] <= range.first && range.first <= last_[range.stage] &&
           first_[range.stage + 1] <= range.last && range.last <= last_[range.stage + 1];
  }
  [[nodiscard]] std::size_t cell(stage_range const& range) const {
    return rows_[range.stage] + (range.first - first_[range.stage]) * width(range.stage) +
           range.last - first_[range.stage + 1];
  }

  /// What a micro-batch keeps on any stage at most.
  [[nodiscard]] std::int64_t most_kept_bytes() const {
    std::int64_t result = 0;
    for (std::size_t s = 0; s != rooms_.memory.size(); ++s) {
      result = std::max(result, (rooms_.memory[s] - rooms_.reserve[s]) / in_flight(s));
    }
    return result;
  }

  whole_layers const& layers_;
  stage_rooms const& rooms_;
  transient_levels const& levels_;
  std::vector<std::size_t> first_;
  std::vector<std::size_t> last_;
  std::vector<std::size_t> rows_;
  std::vector<std::int64_t> times_;
};

}  // namespace omnibal::inline v0::detail
