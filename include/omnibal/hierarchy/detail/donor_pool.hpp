#pragma once

/// \file
/// The samples that may fill the gaps of longer levels.

#include <omnibal/detail/radix_sort.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Samples out of which the longest that fits is taken, of equal ones the one with the lowest
/// index.
class donor_pool {
 public:
  static constexpr std::uint32_t no_sample = std::numeric_limits<std::uint32_t>::max();

  explicit donor_pool(std::span<std::int64_t const> lengths)
      : order_(order_descending(lengths.size(), [&](std::size_t i) { return lengths[i]; })),
        next_(lengths.size() + 1),
        is_taken_(lengths.size(), 0) {
    falling_.reserve(order_.size());
    for (std::uint32_t const sample : order_) falling_.push_back(lengths[sample]);
    std::iota(next_.begin(), next_.end(), std::uint32_t{0});
  }

  /// Takes the longest sample of at most `room` that is still there, or `no_sample`.
  [[nodiscard]] std::uint32_t take(std::int64_t room) {
    auto const fits =
        std::lower_bound(falling_.begin(), falling_.end(), room, std::greater<std::int64_t>());
    std::uint32_t const place = first_free(static_cast<std::uint32_t>(fits - falling_.begin()));
    if (place == order_.size()) return no_sample;
    next_[place] = place + 1;
    is_taken_[order_[place]] = 1;
    return order_[place];
  }

  [[nodiscard]] bool is_taken(std::uint32_t sample) const { return is_taken_[sample] != 0; }

 private:
  /// The first place from this one on whose sample is still there; halves the paths it walks.
  [[nodiscard]] std::uint32_t first_free(std::uint32_t place) {
    while (next_[place] != place) {
      next_[place] = next_[next_[place]];
      place = next_[place];
    }
    return place;
  }

  /// The samples by falling length.
  std::vector<std::uint32_t> order_;
  std::vector<std::int64_t> falling_;
  /// A place at or behind this one, itself where the sample is still there.
  std::vector<std::uint32_t> next_;
  std::vector<std::uint8_t> is_taken_;
};

}  // namespace omnibal::inline v0::detail
