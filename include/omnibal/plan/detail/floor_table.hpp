#pragma once

/// \file
/// A time for every stage that a good plan can have, none of which is too large.

#include <omnibal/partition/empty_stages.hpp>
#include <omnibal/plan/detail/priced_runs.hpp>
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

/// The least time of each stage, which is `no_time` where it does not fit the memory or takes longer
/// than a limit. Each time may be raised.
class floor_table {
 public:
  floor_table(whole_layers const& layers, stage_rooms const& rooms)
      : layers_(layers), rooms_(rooms), runs_(layers) {}

  /// Computes all times. False where no plan is within the limit.
  [[nodiscard]] bool fill(empty_stages empty, std::int64_t limit) {
    auto const time = [&](std::size_t stage, std::size_t first, std::size_t last) {
      std::int64_t const least =
          runs_.least_time(first, last, room({stage, first, last}), in_flight(stage));
      return least <= limit ? least : no_time;
    };
    stage_windows const windows(layers_.size(), stages(), empty, limit, time);
    if (!windows.is_possible()) return false;
    set_windows(windows);
    for (std::size_t s = 0; s != stages(); ++s) {
      for (std::size_t first = first_[s]; first <= last_[s]; ++first) {
        for (std::size_t last = std::max(first, first_[s + 1]); last <= last_[s + 1]; ++last) {
          std::int64_t const least = time(s, first, last);
          if (least == no_time) break;
          times_[cell({s, first, last})] = least;
        }
      }
    }
    return true;
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

  /// True only if a stage fits its memory.
  [[nodiscard]] bool fits(stage_range const& range) const {
    return runs_.fits(range.first, range.last, room(range), in_flight(range.stage));
  }

  /// What is left of the memory of a stage for activations.
  [[nodiscard]] std::int64_t room(stage_range const& range) const {
    return rooms_.memory[range.stage] - rooms_.reserve[range.stage] -
           layers_.state_bytes(range.first, range.last);
  }

 private:
  void set_windows(stage_windows const& windows) {
    first_ = windows.first;
    last_ = windows.last;
    rows_.assign(1, 0);
    for (std::size_t s = 0; s != stages(); ++s) {
      rows_.push_back(rows_.back() + (last_[s] - first_[s] + 1) * width(s));
    }
    times_.assign(rows_.back(), no_time);
  }

  [[nodiscard]] std::size_t stages() const { return rooms_.memory.size(); }
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

  whole_layers const& layers_;
  stage_rooms const& rooms_;
  priced_runs runs_;
  std::vector<std::size_t> first_;
  std::vector<std::size_t> last_;
  std::vector<std::size_t> rows_;
  std::vector<std::int64_t> times_;
};

}  // namespace omnibal::inline v0::detail
