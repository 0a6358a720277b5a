// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The choices of all layers as integers, in an order that does not depend on the order of the
/// layers.

#include <omnibal/activation_option.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// A number and its place, which are sorted instead of larger objects, so that sorting is compiled
/// once.
struct sort_key {
  std::int64_t number;
  std::uint64_t place;
};

/// Sorts numbers ascending, equal numbers by place.
inline void sort_keys(std::vector<sort_key>& keys) {
  std::sort(keys.begin(), keys.end(), [](sort_key const& left, sort_key const& right) {
    return left.number != right.number ? left.number < right.number : left.place < right.place;
  });
}

/// A choice with its number within the layer. Choices with fewer bytes come first in the order.
template <class Time>
struct numbered_choice {
  std::int64_t bytes;
  Time time;
  std::int64_t transient_bytes;
  std::uint32_t index;

  [[nodiscard]] friend auto operator<=>(numbered_choice const&, numbered_choice const&) = default;
};

/// The choices of the layers; the choices of each layer are sorted from the smallest to the
/// largest.
template <class Time>
class choice_table {
 public:
  explicit choice_table(std::string_view function) : function_(function) {}

  [[nodiscard]] std::size_t size() const { return offsets_.size() - 1; }
  [[nodiscard]] std::span<numbered_choice<Time> const> operator[](std::size_t layer) const {
    return std::span(choices_).subspan(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
  }
  /// Returns the choice of a layer with this number.
  [[nodiscard]] numbered_choice<Time> const& choice(std::size_t layer, std::uint32_t index) const {
    std::size_t k = offsets_[layer];
    while (choices_[k].index != index) ++k;
    return choices_[k];
  }
  [[nodiscard]] bool are_equal(std::size_t left, std::size_t right) const {
    auto const a = (*this)[left];
    auto const b = (*this)[right];
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  /// Appends a layer. Errors: `std::invalid_argument` for no choices and for a number that is
  /// negative or not finite, `std::overflow_error` if the sum of the largest times exceeds its
  /// type.
  template <activation_option_range Choices>
  void push_layer(Choices&& choices) {
    Time largest_time{};
    std::uint32_t index = 0;
    for (auto const& way : choices) {
      std::int64_t transient_bytes = 0;
      if constexpr (has_transient_bytes<std::remove_cvref_t<decltype(way)>>) {
        transient_bytes = checked<std::int64_t>("transient_bytes", index, way.transient_bytes);
      }
      choices_.push_back({checked<std::int64_t>("bytes", index, way.bytes),
                          checked<Time>("time", index, way.time), transient_bytes, index});
      largest_time = std::max(largest_time, choices_.back().time);
      ++index;
    }
    close_layer(largest_time);
  }

  /// Returns the layers in the order of their choices, equal layers by index.
  [[nodiscard]] std::vector<std::uint32_t> ordered_layers() const {
    std::vector<std::uint32_t> order(size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
      auto const a = (*this)[left];
      auto const b = (*this)[right];
      auto const result =
          std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
      return result != 0 ? result < 0 : left < right;
    });
    return order;
  }

  /// Returns a time as an integer. The unit is such that the largest times of all layers add up to
  /// at most 2^63 - 1.
  [[nodiscard]] std::int64_t to_whole(Time time) const { return to_whole_time(time, total_time_); }
  [[nodiscard]] Time from_whole(std::int64_t time) const {
    return from_whole_time(time, total_time_);
  }

 private:
  void close_layer(Time largest_time) {
    auto const first = choices_.begin() + static_cast<std::ptrdiff_t>(offsets_.back());
    if (first == choices_.end()) {
      throw_invalid(function_, "layer ", size(), " has no choices");
    }
    checked_add(function_, "the sum of the largest times", total_time_, largest_time);
    std::sort(first, choices_.end());
    offsets_.push_back(choices_.size());
  }

  template <class Working, scalar_measure T>
  [[nodiscard]] Working checked(std::string_view member, std::uint32_t index, T value) const {
    auto const result = static_cast<Working>(value);
    if (is_valid_weight(value) && is_valid_weight(result)) return result;
    throw_invalid(function_, member, " of choice ", index, " of layer ", size(), " is ", value,
                  ", must be finite, not negative and below 2^63");
  }

  std::string_view function_;
  std::vector<std::size_t> offsets_{0};
  std::vector<numbered_choice<Time>> choices_;
  /// The sum of the largest times of the layers.
  Time total_time_{};
};

}  // namespace omnibal::inline v0::detail
