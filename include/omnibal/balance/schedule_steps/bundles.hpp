#pragma once

/// \file
/// Groups in bundles whose loads complement each other, and steps of them that are alike.

#include <omnibal/balance/schedule_steps/sorted_cells.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/schedule_rules.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Loads in 2^-14 of the mean load of a group, but for giants.
inline constexpr int share_bits = 14;
inline constexpr std::int64_t largest_share = std::int64_t{1} << 24;
template <std::size_t R>
using load_shares = std::array<std::int64_t, R>;

/// As many groups in each bundle, with a load near the mean in all kinds: random ones that exchange
/// groups. Bundle k has those at the places k, k + count, k + 2 count and so on.
///
/// In each round bundles are sorted by a kind, the kinds in turn; the one that lacks most and the
/// one with most too much, the next ones, and so on exchange those groups by which both come
/// nearest to the mean.
template <std::size_t R>
class load_bundles {
 public:
  load_bundles(std::span<std::array<load_level, R> const> levels, std::size_t size)
      : size_(size),
        count_(levels.size() / size),
        groups_(levels.size()),
        of_groups_(levels.size()),
        loads_(count_) {
    std::iota(groups_.begin(), groups_.end(), std::uint32_t{0});
    for (std::size_t r = 0; r != R; ++r) {
      uint128 sum = 0;
      for (auto const& level : levels) sum += level[r];
      for (std::size_t i = 0; i != levels.size() && sum != 0; ++i) {
        uint128 const scaled = (static_cast<uint128>(levels[i][r]) << share_bits) * levels.size();
        of_groups_[i][r] =
            static_cast<std::int64_t>(std::min(scaled / sum, static_cast<uint128>(largest_share)));
        loads_[i % count_][r] += of_groups_[i][r];
      }
    }
    for (std::size_t round = 0; round != rounds; ++round) exchange(round);
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  /// The number of the group at a place of a bundle, and the load of a bundle.
  [[nodiscard]] std::uint32_t group(std::size_t bundle, std::size_t place) const {
    return groups_[place * count_ + bundle];
  }
  [[nodiscard]] load_shares<R> const& load(std::size_t bundle) const { return loads_[bundle]; }

 private:
  static constexpr std::size_t rounds = 8;
  /// The groups of the other bundle with which each may be exchanged in a round.
  static constexpr std::size_t partners = 4;

  void exchange(std::size_t round) {
    auto const order = order_descending(
        count_, [&](std::size_t k) { return static_cast<std::uint64_t>(loads_[k][round % R]); });
    for (std::size_t k = 0; k != count_ / 2; ++k) exchange(order[k], order[count_ - 1 - k], round);
  }

  /// Exchanges two groups, if that brings the squares of both loads down.
  void exchange(std::size_t high, std::size_t low, std::size_t round) {
    load_shares<R> apart;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const all = loads_[low][r] - loads_[high][r];
      apart[r] = std::clamp(all, -16 * largest_share, 16 * largest_share);
    }
    std::int64_t least = 0;
    std::uint32_t* best_from = nullptr;
    std::uint32_t* best_to = nullptr;
    for (std::size_t i = 0; i != size_; ++i) {
      std::uint32_t& from = groups_[i * count_ + low];
      for (std::size_t t = 0; t != std::min(size_, partners); ++t) {
        std::uint32_t& to = groups_[(i + round + t) % size_ * count_ + high];
        // Half of what low gains and high loses changes the squares by.
        std::int64_t change = 0;
        for (std::size_t r = 0; r != R; ++r) {
          std::int64_t const more = of_groups_[to][r] - of_groups_[from][r];
          change += more * (more + apart[r]);
        }
        if (change >= least) continue;
        least = change;
        best_from = &from;
        best_to = &to;
      }
    }
    if (best_from == nullptr) return;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const more = of_groups_[*best_to][r] - of_groups_[*best_from][r];
      loads_[low][r] += more;
      loads_[high][r] -= more;
    }
    std::swap(*best_from, *best_to);
  }

  std::size_t size_;
  std::size_t count_;
  std::vector<std::uint32_t> groups_;
  std::vector<load_shares<R>> of_groups_;
  std::vector<load_shares<R>> loads_;
};

/// The cells of the last step that repeat nothing, and the groups in one of them.
struct last_cells {
  last_cells(schedule_shape const& shape, std::size_t ranks, std::size_t groups_per_rank)
      : groups(shape.extra),
        count(shape.repeated != 0 ? (groups + groups_per_rank - 1) / groups_per_rank
                                  : std::min(groups, ranks)) {}

  [[nodiscard]] std::size_t size(std::size_t cell) const {
    return groups / count + (cell < groups % count ? 1 : 0);
  }

  std::size_t groups;
  std::size_t count;
};

/// Puts the groups of the last step into the order of its cells, which get large and small ones in
/// turn, and measures how long ranks wait there.
template <std::size_t R>
void deal_last_step(schedule_pool<R>& pool, load_levels<R> const& levels, std::size_t ranks,
                    std::size_t groups_per_rank) {
  auto const size = [&](std::uint32_t group) {
    std::uint32_t result = 0;
    for (std::size_t r = 0; r != R; ++r) {
      result = std::max(result, share_of_level(levels.of_group[group][r], levels.largest[r]));
    }
    return result;
  };
  if (pool.last.empty()) return;
  last_cells const own(pool.shape, ranks, groups_per_rank);
  std::vector<std::uint32_t> sorted = pool.last;
  std::stable_sort(
      sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(own.groups),
      [&](std::uint32_t left, std::uint32_t right) { return size(left) > size(right); });
  std::array<load_level, R> largest{};
  std::array<std::uint64_t, R> all{};
  std::size_t next = 0;
  for (std::size_t cell = 0; next != sorted.size(); ++cell) {
    bool const is_own = cell < own.count;
    std::size_t const count = is_own ? own.size(cell) : groups_per_rank;
    std::array<load_level, R> sum{};
    for (std::size_t k = 0; k != count; ++k) {
      bool const turns = k % 2 == 1 && (k + 1) * own.count <= own.groups;
      std::size_t const from = k * own.count + (turns ? own.count - 1 - cell : cell);
      std::uint32_t const group = is_own ? sorted[from] : sorted[next];
      for (std::size_t r = 0; r != R; ++r) sum[r] += levels.of_group[group][r];
      pool.last[next++] = group;
    }
    for (std::size_t r = 0; r != R; ++r) {
      largest[r] = std::max(largest[r], sum[r]);
      all[r] += sum[r];
    }
  }
  for (std::size_t r = 0; r != R; ++r) {
    pool.last_waiting[r] = waiting_of_step(largest[r], all[r], ranks);
  }
}

/// Makes bundles of the groups of full steps: those of bundle k from `k * groups_per_rank` on, with
/// the levels of bundles, of which those with carried groups come first. Returns their loads.
template <std::size_t R>
[[nodiscard]] std::vector<load_shares<R>> bundle_groups(schedule_pool<R>& pool, std::size_t ranks,
                                                        std::size_t groups_per_rank) {
  load_bundles<R> const bundles(pool.levels, groups_per_rank);
  std::vector<std::uint32_t> order(bundles.count());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  auto const behind = std::stable_partition(order.begin(), order.end(), [&](std::uint32_t bundle) {
    for (std::size_t place = 0; place != groups_per_rank; ++place) {
      if (bundles.group(bundle, place) < pool.carried) return true;
    }
    return false;
  });
  schedule_pool<R> result{pool.shape, {}, {}, 0, {}, {}};
  result.groups.reserve(pool.groups.size());
  std::vector<load_shares<R>> loads;
  loads.reserve(order.size());
  result.levels.reserve(order.size());
  for (std::uint32_t const bundle : order) {
    std::array<load_level, R> sum{};
    for (std::size_t place = 0; place != groups_per_rank; ++place) {
      std::uint32_t const item = bundles.group(bundle, place);
      result.groups.push_back(pool.groups[item]);
      for (std::size_t r = 0; r != R; ++r) sum[r] += pool.levels[item][r];
    }
    result.levels.push_back(sum);
    loads.push_back(bundles.load(bundle));
  }
  pool.groups = std::move(result.groups);
  pool.levels = std::move(result.levels);
  pool.carried = static_cast<std::size_t>(behind - order.begin());
  pool.shape.ranks = static_cast<std::uint32_t>(ranks);
  return loads;
}

/// Steps of bundles, of which two at a time exchange bundles at random, wherever that brings the
/// loads of steps nearer to the mean and ranks do not wait for longer than they may.
template <std::size_t R>
class step_mixer {
 public:
  step_mixer(schedule_pool<R> const& pool, std::span<load_shares<R> const> loads,
             std::span<std::uint32_t> items)
      : pool_(pool), loads_(loads), items_(items) {
    if (pool.shape.steps == 0) return;
    mean_ = static_cast<std::int64_t>(pool.groups.size() / pool.shape.steps) << share_bits;
    for (std::uint32_t step = 0; step != pool.shape.steps; ++step) {
      of_step_.push_back(measured(step));
      for (std::size_t r = 0; r != R; ++r) waiting_[r] += of_step_[step].waiting[r];
    }
  }

  void mix(std::array<std::int64_t, R> const& goals, rng::engine words) {
    std::size_t const steps = of_step_.size();
    if (steps < 2) return;
    for (std::size_t k = 0; k != tries_per_step * steps; ++k) {
      auto const one = static_cast<std::uint32_t>(rng::below(words, steps));
      auto const gap = static_cast<std::uint32_t>(rng::below(words, steps - 1)) + 1;
      auto const other = static_cast<std::uint32_t>((std::size_t{one} + gap) % steps);
      rng::engine const exchange(words());
      swap_some(one, other, exchange);
      if (!keep(one, other, goals)) swap_some(one, other, exchange);
    }
  }

 private:
  static constexpr std::size_t tries_per_step = 6;

  struct figures {
    std::array<std::int64_t, R> waiting{};
    int128 squares = 0;
  };

  [[nodiscard]] std::span<std::uint32_t> items_of(std::uint32_t step) {
    std::size_t const ranks = pool_.shape.ranks;
    return items_.subspan(step * ranks, ranks);
  }

  [[nodiscard]] figures measured(std::uint32_t step) {
    std::array<load_level, R> largest{};
    std::array<std::uint64_t, R> sum{};
    load_shares<R> load{};
    for (std::uint32_t const item : items_of(step)) {
      for (std::size_t r = 0; r != R; ++r) {
        largest[r] = std::max(largest[r], pool_.levels[item][r]);
        sum[r] += pool_.levels[item][r];
        load[r] += loads_[item][r];
      }
    }
    figures result;
    for (std::size_t r = 0; r != R; ++r) {
      result.waiting[r] = waiting_of_step(largest[r], sum[r], pool_.shape.ranks);
    }
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const apart = load[r] - mean_;
      result.squares += static_cast<int128>(apart) * apart;
    }
    return result;
  }

  /// Its own inverse.
  void swap_some(std::uint32_t one, std::uint32_t other, rng::engine const& words) {
    auto const left = items_of(one);
    auto const right = items_of(other);
    std::size_t const turn = words.word(0) % left.size();
    for (std::size_t k = 0; k != left.size(); ++k) {
      if ((words.word(1 + k / 64) >> k % 64 & 1) == 0) continue;
      std::swap(left[k], right[(k + turn) % left.size()]);
    }
  }

  [[nodiscard]] bool keep(std::uint32_t one, std::uint32_t other,
                          std::array<std::int64_t, R> const& goals) {
    figures const left = measured(one);
    figures const right = measured(other);
    if (left.squares + right.squares >= of_step_[one].squares + of_step_[other].squares) {
      return false;
    }
    auto waiting = waiting_;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const more = left.waiting[r] + right.waiting[r] - of_step_[one].waiting[r] -
                                of_step_[other].waiting[r];
      waiting[r] += more;
      if (more > 0 && waiting[r] > goals[r]) return false;
    }
    waiting_ = waiting;
    of_step_[one] = left;
    of_step_[other] = right;
    return true;
  }

  schedule_pool<R> const& pool_;
  std::span<load_shares<R> const> loads_;
  std::span<std::uint32_t> items_;
  std::int64_t mean_ = 0;
  std::vector<figures> of_step_;
  std::array<std::int64_t, R> waiting_{};
};

}  // namespace omnibal::inline v0::detail
