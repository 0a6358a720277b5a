#pragma once

/// \file
/// A few levels of transient bytes.

#include <omnibal/plan/detail/whole_layers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// A time that nothing has.
inline constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::max();

/// Numbers of transient bytes to which those of all choices are rounded down. Those of similar
/// layers are close together: a new level begins after each of the widest gaps between them.
class transient_levels {
 public:
  explicit transient_levels(whole_layers const& layers) {
    std::vector<std::int64_t> all;
    for (auto const& way : layers.all()) all.push_back(way.transient_bytes);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (all.empty()) return;
    std::vector<gap> gaps;
    for (std::size_t i = 1; i != all.size(); ++i) gaps.push_back({all[i] - all[i - 1], all[i]});
    std::size_t const count = std::min(gaps.size(), most_levels - 1);
    std::partial_sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(count), gaps.end(),
                      [](gap const& left, gap const& right) {
                        return left.width != right.width ? left.width > right.width
                                                         : left.end < right.end;
                      });
    bytes_.push_back(all.front());
    for (std::size_t i = 0; i != count; ++i) bytes_.push_back(gaps[i].end);
    std::sort(bytes_.begin(), bytes_.end());
    for (std::size_t k = 1; k != bytes_.size(); ++k) {
      most_.push_back(*std::prev(std::lower_bound(all.begin(), all.end(), bytes_[k])));
    }
    most_.push_back(all.back());
  }

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::int64_t operator[](std::size_t level) const { return bytes_[level]; }
  /// The most transient bytes that are rounded down to a level.
  [[nodiscard]] std::int64_t most(std::size_t level) const { return most_[level]; }
  [[nodiscard]] std::size_t level_of(std::int64_t transient_bytes) const {
    auto const above = std::upper_bound(bytes_.begin(), bytes_.end(), transient_bytes);
    return static_cast<std::size_t>(above - bytes_.begin()) - 1;
  }

 private:
  struct gap {
    std::int64_t width;
    std::int64_t end;
  };

  static constexpr std::size_t most_levels = 6;

  std::vector<std::int64_t> bytes_;
  std::vector<std::int64_t> most_;
};

}  // namespace omnibal::inline v0::detail
