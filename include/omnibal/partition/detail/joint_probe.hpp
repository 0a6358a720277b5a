#pragma once

/// \file
/// Probes of a chain at several limits in one pass over the stages.

#include <omnibal/partition/detail/probed_stages.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Ends stages at several limits. The searches of one limit do not wait for those of the others,
/// and most have no branch that a processor could guess wrong: four take about as long as one.
template <class T>
class joint_probe {
 public:
  /// `length` is the usual number of layers of a stage.
  joint_probe(std::span<T const> sums, probe_limits<T> const& limits, std::size_t length)
      : sums_(sums) {
    for (std::size_t k = 0; k != width; ++k) {
      limits_[k] = limits.values[std::min(k, limits.count - 1)];
    }
    length_.fill(length);
  }

  /// Writes where the stages end. Those of the limits end between `low` and `high`.
  void run(std::span<walked_stage<T> const> low, std::span<walked_stage<T> const> high,
           std::span<joint_ends> ends) {
    for (std::size_t s = 1; s + 1 < ends.size(); ++s) {
      if (high[s].last - low[s].last <= narrow) {
        search_all(low[s].last, high[s].last);
      } else {
        for (std::size_t k = 0; k != width; ++k) approach(k, low[s].last, high[s].last);
        finish_all();
      }
      for (std::size_t k = 0; k != width; ++k) {
        length_[k] = last_[k] - first_[k];
        first_[k] = last_[k];
        ends[s][k] = static_cast<std::uint32_t>(last_[k]);
        // Where the next search will begin.
        __builtin_prefetch(sums_.data() + std::min(last_[k] + 2 * length_[k], sums_.size() - 1));
      }
    }
  }

 private:
  static constexpr std::size_t width = probe_limits<T>::most;
  /// The width up to which all of a window is searched.
  static constexpr std::size_t narrow = 255;
  /// How far from a guess most ends lie.
  static constexpr std::size_t reach = 16;

  [[nodiscard]] static std::size_t all_ones_if(bool condition) {
    return std::size_t{0} - static_cast<std::size_t>(condition);
  }

  [[nodiscard]] bool is_within(std::size_t k, std::size_t last) const {
    return sums_[last] - sums_[first_[k]] <= limits_[k];
  }

  [[nodiscard]] std::array<T, width> sums_before() const {
    std::array<T, width> result;
    for (std::size_t k = 0; k != width; ++k) result[k] = sums_[first_[k]];
    return result;
  }

  /// The last ends in [low, high] within the limits. Precondition: `low` is.
  void search_all(std::size_t low, std::size_t high) {
    auto const before = sums_before();
    last_.fill(low);
    for (std::size_t left = high - low; left != 0;) {
      std::size_t const half = (left + 1) / 2;
      for (std::size_t k = 0; k != width; ++k) {
        bool const fits = sums_[last_[k] + half] - before[k] <= limits_[k];
        last_[k] += half & all_ones_if(fits);
      }
      left -= half;
    }
  }

  /// Leaves fewer than `2 * reach` ends behind `last_[k]`.
  void approach(std::size_t k, std::size_t low, std::size_t high) {
    std::size_t from = guess(k, low, high);
    from -= std::min(from - low, reach);
    for (std::size_t step = 2 * reach; !is_within(k, from); step *= 2) {
      from -= std::min(from - low, step);
    }
    std::size_t step = 2 * reach;
    for (; step <= high - from && is_within(k, from + step); step *= 2) from += step;
    std::size_t left = std::min(step - 1, high - from);
    while (left >= 2 * reach) {
      std::size_t const half = (left + 1) / 2;
      if (is_within(k, from + half)) from += half;
      left -= half;
    }
    last_[k] = from;
    left_[k] = left;
  }

  /// An end after as many layers as the last stage had, moved by a step of Newton's method with the
  /// mean of these layers as the slope.
  [[nodiscard]] std::size_t guess(std::size_t k, std::size_t low, std::size_t high) const {
    std::size_t const usual = std::clamp(first_[k] + length_[k], low, high);
    auto const load = static_cast<double>(sums_[usual] - sums_[first_[k]]);
    auto const room = static_cast<double>(limits_[k]);
    double const scale = load < 2 * room && room < 2 * load ? room / load : 1.0;
    double const steps = scale * static_cast<double>(usual - first_[k]);
    return std::clamp(first_[k] + static_cast<std::size_t>(steps), low, high);
  }

  void finish_all() {
    auto const before = sums_before();
    for (std::size_t half = reach; half != 0; half /= 2) {
      for (std::size_t k = 0; k != width; ++k) {
        std::size_t const step = std::min(half, left_[k]);
        std::size_t const ones = all_ones_if(sums_[last_[k] + step] - before[k] <= limits_[k]);
        last_[k] += step & ones;
        left_[k] = ((left_[k] - step) & ones) | ((step - 1) & ~ones);
      }
    }
  }

  std::span<T const> sums_;
  std::array<T, width> limits_{};
  std::array<std::size_t, width> first_{};
  std::array<std::size_t, width> last_{};
  std::array<std::size_t, width> length_{};
  std::array<std::size_t, width> left_{};
};

}  // namespace omnibal::inline v0::detail
