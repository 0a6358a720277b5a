// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Bundles of groups whose loads complement each other.
///
/// The input is the levels of the groups in random order. `join_positions` passes the sums of whole
/// steps instead, so each step then counts as one group. The output is the groups of each bundle,
/// as indices into the input.

#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/checked_gain.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/search_budget.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Bundles with the same number of groups and a load near the mean in all kinds. Bundles begin with
/// random groups and then exchange groups.
///
/// Each round sorts bundles by one kind, the kinds in turn. The bundles with the smallest and the
/// largest load exchange the two groups that bring both loads nearest to the mean. The bundles with
/// the next smallest and the next largest load follow, and so on. The short bundles of
/// `short_sizes` follow these bundles and become similar to each other. The load of a short bundle
/// also counts the load that short bundles lack on average compared with full bundles. If bundles
/// should have different loads, bundle k should have `wanted[k % wanted.size()]` times the mean
/// load. The load of a bundle then also counts the load that it should lack compared with the
/// bundles with the largest wanted load.
template <std::size_t R>
class load_bundles {
 public:
  load_bundles(std::span<load_levels<R> const> levels, std::size_t size, search_budget budget,
               std::span<std::uint32_t const> short_sizes = {}, std::span<double const> wanted = {})
      : groups_(levels.size()) {
    double const most = wanted.empty() ? 0 : *std::max_element(wanted.begin(), wanted.end());
    for (double const load : wanted) {
      missing_loads_.push_back(
          static_cast<std::int64_t>((most - load) * share_of_mean * static_cast<double>(size)));
    }
    measure_groups(levels);
    make_bundles(size, short_sizes);
    for (; !budget.is_spent(); budget.spend()) exchange(budget.spent());
  }

  /// Returns the number of full bundles.
  [[nodiscard]] std::size_t count() const { return count_; }
  /// Returns the index of the k-th group of a bundle; short bundles follow the full ones.
  [[nodiscard]] std::uint32_t member(std::size_t bundle, std::size_t k) const {
    return groups_[first_[bundle] + k].number;
  }

 private:
  /// The number of groups of the other bundle with which each group may be exchanged in a round.
  static constexpr std::size_t max_partners = 4;
  /// The load of a mean group, and the cap on the load of any group. In these units products of
  /// sums fit 64 bits.
  static constexpr double share_of_mean = 0x1p14;
  static constexpr double max_share = 0x1p24;

  struct measured_group {
    std::uint32_t number;
    std::array<std::int32_t, R> load;
  };
  using load_type = std::array<std::int64_t, R>;

  /// Measures the loads of groups in units of the mean load of their kind.
  void measure_groups(std::span<load_levels<R> const> levels) {
    for (std::uint32_t i = 0; i != groups_.size(); ++i) groups_[i].number = i;
    for (std::size_t r = 0; r != R; ++r) {
      uint128 sum = 0;
      for (auto const& level : levels) sum += level[r];
      double const scale = share_of_mean * static_cast<double>(levels.size()) /
                           std::max(1.0, static_cast<double>(sum));
      for (std::size_t i = 0; i != levels.size(); ++i) {
        double const share = std::min(static_cast<double>(levels[i][r]) * scale, max_share);
        groups_[i].load[r] = static_cast<std::int32_t>(share);
      }
    }
  }

  /// Divides the groups, in their order, into full and short bundles, and sums their loads.
  void make_bundles(std::size_t size, std::span<std::uint32_t const> short_sizes) {
    std::size_t const in_short =
        std::accumulate(short_sizes.begin(), short_sizes.end(), std::size_t{0});
    count_ = (groups_.size() - in_short) / size;
    first_.reserve(count_ + short_sizes.size() + 1);
    for (std::size_t k = 0; k != count_ + 1; ++k) {
      first_.push_back(static_cast<std::uint32_t>(k * size));
    }
    for (std::uint32_t const own : short_sizes) first_.push_back(first_.back() + own);
    if (!short_sizes.empty()) missing_load_ = missing_load(size, in_short, short_sizes.size());
    loads_.resize(first_.size() - 1);
    for (std::size_t bundle = 0; bundle != loads_.size(); ++bundle) {
      loads_[bundle].fill(missing_load_of(bundle));
      for (std::uint32_t i = first_[bundle]; i != first_[bundle + 1]; ++i) {
        for (std::size_t r = 0; r != R; ++r) loads_[bundle][r] += groups_[i].load[r];
      }
    }
  }

  /// Returns the load that short bundles lack compared with a full bundle, on average:
  /// there are `bundles` short bundles with `groups` groups in all.
  [[nodiscard]] static std::int64_t missing_load(std::size_t size, std::size_t groups,
                                                 std::size_t bundles) {
    auto const mean = static_cast<std::size_t>(share_of_mean);
    return static_cast<std::int64_t>(mean * size - mean * groups / bundles);
  }

  /// Returns the load that a bundle lacks compared with the largest full bundles.
  [[nodiscard]] std::int64_t missing_load_of(std::size_t bundle) const {
    if (bundle >= count_) return missing_load_;
    return missing_loads_.empty() ? 0 : missing_loads_[bundle % missing_loads_.size()];
  }

  /// Returns the bundles by descending load of a kind.
  [[nodiscard]] std::vector<std::uint32_t> order_bundles(std::size_t r) const {
    // The order has a resolution of 2^-10 of the mean group, for a counting sort. The bundles that
    // differ most are still exchanged.
    return order_descending(loads_.size(), [&](std::size_t k) {
      return static_cast<std::uint64_t>(loads_[k][r]) >> 4;
    });
  }

  /// Exchanges groups between each heavy bundle of a kind and a light bundle.
  void exchange(std::size_t round) {
    std::size_t const count = loads_.size();
    std::size_t const half = count / 2;
    auto const order = order_bundles(round % R);
    // Bundles of different wanted loads have no groups to exchange if their groups differ as the
    // loads do. Every second round therefore pairs other bundles.
    bool const pairs_others = !missing_loads_.empty() && round / R % 2 == 1 && half != 0;
    std::size_t const gap = pairs_others ? round / R * (half / 2 + half / 8 + 1) % half : 0;
    for (std::size_t k = 0; k != half; ++k) {
      exchange(order[k], order[count - 1 - (k + gap) % half], round);
    }
  }

  /// Exchanges two groups if this lowers the sum of squares of both loads.
  void exchange(std::size_t high, std::size_t low, std::size_t round) {
    load_type distance;
    for (std::size_t r = 0; r != R; ++r) {
      constexpr auto max_distance = static_cast<std::int64_t>(16 * max_share);
      distance[r] = std::clamp(loads_[low][r] - loads_[high][r], -max_distance, max_distance);
    }
    measured_group* const lows = &groups_[first_[low]];
    measured_group* const highs = &groups_[first_[high]];
    std::size_t const of_low = first_[low + 1] - first_[low];
    std::size_t const of_high = first_[high + 1] - first_[high];
    std::int64_t best_gain = 0;
    measured_group* best_from = nullptr;
    measured_group* best_to = nullptr;
    std::size_t first = round % of_high;
    for (std::size_t i = 0; i != of_low; ++i) {
      for (std::size_t t = 0, k = first; t != std::min(of_high, max_partners); ++t) {
        std::int64_t const gain = evaluate_exchange(lows[i], highs[k], distance);
        if (gain > best_gain) {
          best_gain = gain;
          best_from = &lows[i];
          best_to = &highs[k];
        }
        k = k + 1 == of_high ? 0 : k + 1;
      }
      first = first + 1 == of_high ? 0 : first + 1;
    }
    if (best_from == nullptr) return;
    apply_checked(
        {"load_bundles", "exchange"}, 2 * best_gain,
        [&] { return measured_squares(low) + measured_squares(high); },
        [&] { apply_exchange(low, high, *best_from, *best_to); }, tolerance(low, high, distance));
  }

  /// Returns the gain of an exchange of two groups: half of the decrease of the sum of squares of
  /// both loads, whose difference is `distance`.
  [[nodiscard]] static std::int64_t evaluate_exchange(measured_group const& from_low,
                                                      measured_group const& from_high,
                                                      load_type const& distance) {
    std::int64_t gain = 0;
    for (std::size_t r = 0; r != R; ++r) {
      // The low bundle gains `more`, and the high bundle loses it.
      std::int64_t const more = from_high.load[r] - from_low.load[r];
      gain -= more * (more + distance[r]);
    }
    return gain;
  }

  void apply_exchange(std::size_t low, std::size_t high, measured_group& from_low,
                      measured_group& from_high) {
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const more = from_high.load[r] - from_low.load[r];
      loads_[low][r] += more;
      loads_[high][r] -= more;
    }
    std::swap(from_low, from_high);
  }

  /// Returns the sum of squares of the load of a bundle, computed from its groups.
  [[nodiscard]] int128 measured_squares(std::size_t bundle) const {
    int128 result = 0;
    for (std::size_t r = 0; r != R; ++r) {
      int128 load = missing_load_of(bundle);
      for (std::uint32_t i = first_[bundle]; i != first_[bundle + 1]; ++i) {
        load += groups_[i].load[r];
      }
      result += load * load;
    }
    return result;
  }
  /// Returns the tolerance of a checked gain: zero, unless `distance` is limited and so less than
  /// the difference of the loads.
  [[nodiscard]] int128 tolerance(std::size_t low, std::size_t high,
                                 load_type const& distance) const {
    int128 result = 0;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const ignored = loads_[low][r] - loads_[high][r] - distance[r];
      result += int128{2 * static_cast<std::int64_t>(max_share)} * std::abs(ignored);
    }
    return result;
  }

  /// The number of full bundles.
  std::size_t count_ = 0;
  /// The load that a short bundle lacks compared with a full bundle, on average.
  std::int64_t missing_load_ = 0;
  /// The load that full bundle k should lack compared with the largest wanted load, at index k %
  /// size; empty if all bundles should have the same load.
  std::vector<std::int64_t> missing_loads_;
  /// The groups; the groups of bundle k begin at `first_[k]`.
  std::vector<measured_group> groups_;
  std::vector<std::uint32_t> first_;
  std::vector<load_type> loads_;
};

}  // namespace omnibal::inline v0::detail
