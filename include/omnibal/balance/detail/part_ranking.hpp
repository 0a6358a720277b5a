// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The parts with the largest and with the smallest load or load over speed.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/detail/part_speeds.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// A ranking of parts by their loads; of equally loaded parts, the lowest is selected.
class load_ranking {
 public:
  /// Creates the ranking. `load_of(part)` returns the load of each part.
  template <class LoadOf>
  load_ranking(equal_speeds, std::size_t parts, LoadOf const& load_of)
      : key_(parts),
        heaviest_nodes_(winner_tree<uint128>::nodes_for(parts)),
        lightest_nodes_(heaviest_nodes_.size()) {
    heaviest_tree().fill(parts,
                         [&](std::size_t part) { return inverse_word(part, load_of(part)); });
    lightest_tree().fill(parts, [&](std::size_t part) { return key_(load_of(part), part); });
  }

  [[nodiscard]] std::uint32_t heaviest() { return key_.part(heaviest_tree().least()); }
  [[nodiscard]] std::uint32_t lightest() { return key_.part(lightest_tree().least()); }

  /// Replaces the load of a part.
  void set(std::size_t part, std::int64_t load) {
    heaviest_tree().set(part, inverse_word(part, load));
    lightest_tree().set(part, key_(load, part));
  }

 private:
  [[nodiscard]] winner_tree<uint128> heaviest_tree() {
    return winner_tree<uint128>(heaviest_nodes_);
  }
  [[nodiscard]] winner_tree<uint128> lightest_tree() {
    return winner_tree<uint128>(lightest_nodes_);
  }
  [[nodiscard]] uint128 inverse_word(std::size_t part, std::int64_t load) const {
    return key_(std::numeric_limits<std::int64_t>::max() - load, part);
  }

  load_key<uint128> key_;
  std::vector<uint128> heaviest_nodes_;
  std::vector<uint128> lightest_nodes_;
};

/// A ranking of parts by their loads over speeds; of equal parts, the lowest is selected. Words of
/// 128 bits cannot hold exact quotients, so the nodes of two tournaments contain parts.
class time_ranking {
 public:
  template <class LoadOf>
  time_ranking(part_speeds const& speeds, std::size_t parts, LoadOf const& load_of)
      : leaves_(std::bit_ceil(parts)), heaviest_(2 * leaves_, none), lightest_(2 * leaves_, none) {
    times_.reserve(parts);
    for (std::uint32_t part = 0; part != parts; ++part) {
      times_.push_back(speeds.time_of(part, load_of(part)));
      heaviest_[leaves_ + part] = part;
      lightest_[leaves_ + part] = part;
    }
    for (std::size_t node = leaves_; --node != 0;) update(node);
  }

  [[nodiscard]] std::uint32_t heaviest() const { return heaviest_[1]; }
  [[nodiscard]] std::uint32_t lightest() const { return lightest_[1]; }

  /// Replaces the load of a part.
  void set(std::size_t part, std::int64_t load) {
    times_[part].load = load;
    for (std::size_t node = (leaves_ + part) / 2; node != 0; node /= 2) update(node);
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// Selects the winners of a node. Left children have lower parts, which win if times are equal.
  void update(std::size_t node) {
    std::uint32_t const heavy = heaviest_[2 * node + 1];
    bool const is_heavier = heavy != none && times_[heaviest_[2 * node]] < times_[heavy];
    heaviest_[node] = is_heavier ? heavy : heaviest_[2 * node];
    std::uint32_t const light = lightest_[2 * node + 1];
    bool const is_lighter = light != none && times_[light] < times_[lightest_[2 * node]];
    lightest_[node] = is_lighter ? light : lightest_[2 * node];
  }

  std::size_t leaves_;
  std::vector<part_time> times_;
  std::vector<std::uint32_t> heaviest_;
  std::vector<std::uint32_t> lightest_;
};

/// Selects the ranking for equal or for different speeds.
template <class Speeds>
using ranking_for =
    std::conditional_t<std::same_as<Speeds, equal_speeds>, load_ranking, time_ranking>;

}  // namespace omnibal::inline v0::detail
