#pragma once

/// \file
/// The choices of all layers as whole numbers, in an order that does not depend on that of the
/// layers.

#include <omnibal/check.hpp>
#include <omnibal/recompute/choice.hpp>
#include <omnibal/recompute/detail/layer_fronts.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// A choice with its number within the layer. The order puts small choices first.
template <class Time>
struct numbered_choice {
  std::int64_t bytes;
  Time time;
  std::int64_t transient_bytes;
  std::uint32_t index;

  [[nodiscard]] friend auto operator<=>(numbered_choice const&, numbered_choice const&) = default;
};

/// The choices of the layers, those of each layer from the smallest to the largest.
template <class Time>
class choice_table {
 public:
  explicit choice_table(std::string_view function) : function_(function) {}

  [[nodiscard]] std::size_t size() const { return offsets_.size() - 1; }
  [[nodiscard]] std::span<numbered_choice<Time> const> operator[](std::size_t layer) const {
    return std::span(choices_).subspan(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
  }
  [[nodiscard]] std::span<numbered_choice<Time> const> all() const { return choices_; }

  /// Appends a layer. Errors: `std::invalid_argument` for no choices and for a number that is
  /// negative or not finite, `std::overflow_error` where the largest times add up to more than
  /// their type holds.
  template <choice_range Choices>
  void push_layer(Choices&& choices) {
    Time slowest{};
    std::uint32_t index = 0;
    for (auto const& way : choices) {
      std::int64_t transient_bytes = 0;
      if constexpr (has_transient_bytes<std::remove_cvref_t<decltype(way)>>) {
        transient_bytes = checked<std::int64_t>("transient_bytes", index, way.transient_bytes);
      }
      choices_.push_back({checked<std::int64_t>("bytes", index, way.bytes),
                          checked<Time>("time", index, way.time), transient_bytes, index});
      slowest = std::max(slowest, choices_.back().time);
      ++index;
    }
    if (index == 0) throw_invalid(function_, "layer " + to_text(size()) + " has no choices");
    checked_add(function_, "the sum of the largest times", total_time_, slowest);
    std::sort(choices_.begin() + static_cast<std::ptrdiff_t>(offsets_.back()), choices_.end());
    offsets_.push_back(choices_.size());
  }

  /// The layers by their choices, equal ones by index.
  [[nodiscard]] std::vector<std::uint32_t> ordered_layers() const {
    std::vector<std::uint32_t> order(size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
      auto const a = (*this)[left];
      auto const b = (*this)[right];
      auto const [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
      if (x == a.end() || y == b.end()) {
        return a.size() != b.size() ? a.size() < b.size() : left < right;
      }
      return *x < *y;
    });
    return order;
  }

  /// The sum of the largest times of the layers.
  [[nodiscard]] Time total_time() const { return total_time_; }

  /// A time as a whole number; the largest times of all layers add up to 2^63 - 1 at most.
  [[nodiscard]] std::int64_t to_whole(Time time) const {
    if constexpr (std::floating_point<Time>) {
      return static_cast<std::int64_t>(std::ldexp(time, bits()));
    } else {
      return time;
    }
  }
  [[nodiscard]] Time from_whole(std::int64_t time) const {
    if constexpr (std::floating_point<Time>) {
      return std::ldexp(static_cast<Time>(time), -bits());
    } else {
      return time;
    }
  }

 private:
  template <class Working, weight T>
  [[nodiscard]] Working checked(std::string_view member, std::uint32_t index, T value) const {
    auto const result = static_cast<Working>(value);
    if (is_valid_weight(value) && is_valid_weight(result)) return result;
    throw_invalid(function_, std::string(member) + " of choice " + to_text(index) + " of layer " +
                                 to_text(size()) + " is " + to_text(value) +
                                 ", must be finite, not negative and below 2^63");
  }

  [[nodiscard]] int bits() const {
    int exponent = 0;
    static_cast<void>(std::frexp(total_time_, &exponent));
    return 62 - exponent;
  }

  std::string_view function_;
  std::vector<std::size_t> offsets_{0};
  std::vector<numbered_choice<Time>> choices_;
  Time total_time_{};
};

/// The fronts of layers under a limit.
struct limited_fronts {
  layer_fronts fronts;
  /// Of the first points together.
  std::int64_t bytes = 0;
  std::int64_t time = 0;
  /// Of the last points together.
  std::int64_t most_gain = 0;
};

/// Fills `result` with the fronts of the choices whose transient bytes are at most `most_transient`.
/// Preconditions: each layer has one, and the fewest bytes add up to 2^63 - 1 at most.
template <class Time>
void limit_fronts(choice_table<Time> const& table, std::span<std::uint32_t const> order,
                  std::int64_t most_transient, limited_fronts& result) {
  result.fronts.clear();
  result.bytes = 0;
  result.time = 0;
  result.most_gain = 0;
  for (std::uint32_t const layer : order) {
    std::int64_t first_bytes = 0;
    std::int64_t first_time = -1;
    std::int64_t last_time = 0;
    for (auto const& way : table[layer]) {
      if (way.transient_bytes > most_transient) continue;
      std::int64_t const time = table.to_whole(way.time);
      if (first_time < 0) {
        first_bytes = way.bytes;
        first_time = time;
      } else if (time >= last_time) {
        continue;
      }
      last_time = time;
      result.fronts.push({way.bytes - first_bytes, first_time - time, way.index});
    }
    result.fronts.close();
    result.most_gain += first_time - last_time;
    result.time += first_time;
    result.bytes += first_bytes;
  }
}

}  // namespace omnibal::inline v0::detail
