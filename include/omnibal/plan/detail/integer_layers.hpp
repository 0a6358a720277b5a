// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Layers with choices in whole numbers.

#include <omnibal/check.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/detail/conversions.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

using whole_choice = numbered_choice<std::int64_t>;

/// The choices of each layer that no other choice of the layer beats in time and both kinds of
/// bytes, by ascending bytes.
class integer_layers {
 public:
  /// Converts floating-point times to whole numbers. The numbers are small enough that the time of
  /// a step of `micro_batches` is at most the largest `std::int64_t`.
  template <class Time>
  integer_layers(std::string_view function, choice_table<Time> const& table,
                 std::span<std::int64_t const> state_bytes, std::size_t micro_batches)
      : shift_(std::floating_point<Time> ? static_cast<int>(std::bit_width(micro_batches)) + 1
                                         : 0) {
    for (std::size_t l = 0; l != table.size(); ++l) {
      for (auto const& way : table[l]) {
        auto const time = table.to_whole(way.time) >> shift_;
        push(whole_choice{way.bytes, time, way.transient_bytes, way.index});
      }
      close(function, state_bytes[l]);
    }
  }

  [[nodiscard]] std::size_t size() const { return offsets_.size() - 1; }
  [[nodiscard]] std::span<whole_choice const> operator[](std::size_t layer) const {
    return std::span(choices_).subspan(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
  }
  /// The choices of a layer, ordered by their numbers.
  [[nodiscard]] std::span<whole_choice const> by_index(std::size_t layer) const {
    return std::span(by_index_).subspan(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
  }
  /// The distinct values of the transient bytes of all choices, ascending.
  [[nodiscard]] std::vector<std::int64_t> transient_bytes() const {
    std::vector<std::int64_t> result;
    for (auto const& way : choices_) result.push_back(way.transient_bytes);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  /// Converts a difference of whole-number times back to `Time`. Precondition: `table` is the table
  /// of the constructor.
  template <class Time>
  [[nodiscard]] Time original(choice_table<Time> const& table, std::int64_t time) const {
    if constexpr (std::floating_point<Time>) {
      return std::ldexp(table.from_whole(time), shift_);
    } else {
      return time;
    }
  }

  [[nodiscard]] std::int64_t state_bytes(std::size_t first, std::size_t last) const {
    return state_before_[last] - state_before_[first];
  }
  /// The sum over all layers of the time of the slowest choice.
  [[nodiscard]] std::int64_t max_time() const { return max_time_; }
  /// The sum over the layers [first, last) of the time of the fastest choice.
  [[nodiscard]] std::int64_t min_time(std::size_t first, std::size_t last) const {
    return min_before_[last] - min_before_[first];
  }

 private:
  /// Keeps a choice unless an earlier choice of the layer has at most its time and at most its
  /// transient bytes. Precondition: choices come by ascending bytes.
  void push(whole_choice const& way) {
    for (std::size_t other = offsets_.back(); other != choices_.size(); ++other) {
      auto const& known = choices_[other];
      if (known.time <= way.time && known.transient_bytes <= way.transient_bytes) return;
    }
    choices_.push_back(way);
  }

  void close(std::string_view function, std::int64_t state_bytes) {
    std::int64_t least = choices_.back().time;
    std::int64_t most = least;
    std::vector<sort_key> indices;
    for (std::size_t c = offsets_.back(); c != choices_.size(); ++c) {
      least = std::min(least, choices_[c].time);
      most = std::max(most, choices_[c].time);
      indices.push_back({choices_[c].index, c});
    }
    sort_keys(indices);
    for (sort_key const& key : indices) by_index_.push_back(choices_[key.place]);
    offsets_.push_back(choices_.size());
    min_before_.push_back(min_before_.back() + least);
    max_time_ += most;
    state_before_.push_back(state_before_.back());
    checked_add(function, "the sum of the state bytes", state_before_.back(), state_bytes);
  }

  int shift_;
  std::vector<std::size_t> offsets_{0};
  std::vector<whole_choice> choices_;
  std::vector<whole_choice> by_index_;
  std::vector<std::int64_t> min_before_{0};
  std::vector<std::int64_t> state_before_{0};
  std::int64_t max_time_ = 0;
};

}  // namespace omnibal::inline v0::detail
