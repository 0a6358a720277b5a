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

/// As many groups in each bundle, with a load near the mean in all kinds: random ones that exchange
/// groups.
///
/// In each round bundles are sorted by a kind, the kinds in turn; the one that lacks most and the
/// one with most too much, the next ones, and so on exchange those groups by which both come
/// nearest to the mean.
template <std::size_t R>
class load_bundles {
 public:
  load_bundles(std::span<std::array<load_level, R> const> levels, std::size_t size,
               std::size_t rounds)
      : size_(size), groups_(levels.size()), loads_(levels.size() / size) {
    for (std::size_t r = 0; r != R; ++r) {
      uint128 sum = 0;
      for (auto const& level : levels) sum += level[r];
      double const scale = share_of_mean * static_cast<double>(levels.size()) /
                           std::max(1.0, static_cast<double>(sum));
      for (std::size_t i = 0; i != levels.size(); ++i) {
        double const share = std::min(static_cast<double>(levels[i][r]) * scale, largest_share);
        groups_[i].load[r] = static_cast<std::int32_t>(share);
      }
    }
    for (std::uint32_t i = 0, bundle = 0; i != groups_.size(); ++bundle) {
      for (std::size_t place = 0; place != size; ++place, ++i) {
        groups_[i].number = i;
        for (std::size_t r = 0; r != R; ++r) loads_[bundle][r] += groups_[i].load[r];
      }
    }
    for (std::size_t round = 0; round != rounds; ++round) exchange(round);
  }

  [[nodiscard]] std::size_t count() const { return loads_.size(); }
  /// The number of the group at a place of a bundle.
  [[nodiscard]] std::uint32_t group(std::size_t bundle, std::size_t place) const {
    return groups_[bundle * size_ + place].number;
  }

 private:
  /// The groups of the other bundle with which each may be exchanged in a round. On generated packs
  /// more change nothing, and fewer make bundles of four less even.
  static constexpr std::size_t partners = 4;
  /// The mean load of a group, and that of giants, so that products of sums fit.
  static constexpr double share_of_mean = 0x1p14;
  static constexpr double largest_share = 0x1p24;

  struct measured_group {
    std::uint32_t number;
    std::array<std::int32_t, R> load;
  };
  using load_type = std::array<std::int64_t, R>;

  void exchange(std::size_t round) {
    // In 2^-10 of the mean group they are sorted by counting, and those that differ most still
    // meet.
    auto const order = order_descending(count(), [&](std::size_t k) {
      return static_cast<std::uint64_t>(loads_[k][round % R]) >> 4;
    });
    for (std::size_t k = 0; k != count() / 2; ++k) {
      exchange(order[k], order[count() - 1 - k], round);
    }
  }

  /// Exchanges two groups, if that brings the squares of both loads down.
  void exchange(std::size_t high, std::size_t low, std::size_t round) {
    load_type apart;
    for (std::size_t r = 0; r != R; ++r) {
      constexpr auto most = static_cast<std::int64_t>(16 * largest_share);
      apart[r] = std::clamp(loads_[low][r] - loads_[high][r], -most, most);
    }
    measured_group* const lows = &groups_[low * size_];
    measured_group* const highs = &groups_[high * size_];
    std::int64_t least = 0;
    measured_group* best_from = nullptr;
    measured_group* best_to = nullptr;
    std::size_t first = round % size_;
    for (std::size_t i = 0; i != size_; ++i) {
      for (std::size_t t = 0, k = first; t != std::min(size_, partners); ++t) {
        // Half of what low gains and high loses changes the squares by.
        std::int64_t change = 0;
        for (std::size_t r = 0; r != R; ++r) {
          std::int64_t const more = highs[k].load[r] - lows[i].load[r];
          change += more * (more + apart[r]);
        }
        if (change < least) {
          least = change;
          best_from = &lows[i];
          best_to = &highs[k];
        }
        k = k + 1 == size_ ? 0 : k + 1;
      }
      first = first + 1 == size_ ? 0 : first + 1;
    }
    if (best_from == nullptr) return;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const more = best_to->load[r] - best_from->load[r];
      loads_[low][r] += more;
      loads_[high][r] -= more;
    }
    std::swap(*best_from, *best_to);
  }

  std::size_t size_;
  /// Those of bundle k from `k * size_` on.
  std::vector<measured_group> groups_;
  std::vector<load_type> loads_;
};

/// Joins cells to bundles of `size` whose loads complement each other; cell k has the `items` of
/// the pool from `k * width` on. What all cells of a bundle have at the same place becomes an item,
/// those of bundles with carried groups first: its groups lie from `number * size` on, and its
/// level is their sum.
template <std::size_t R>
void join_cells(schedule_pool<R>& pool, std::span<std::uint32_t const> items, std::size_t width,
                std::size_t size) {
  auto const totals = [&] {
    std::vector<std::array<load_level, R>> result(items.size() / width);
    for (std::size_t cell = 0; cell != result.size(); ++cell) {
      for (std::uint32_t const item : items.subspan(cell * width, width)) {
        for (std::size_t r = 0; r != R; ++r) result[cell][r] += pool.levels[item][r];
      }
    }
    return result;
  };
  // On generated packs groups get no evener with three times as many rounds. Steps are fewer, and
  // further from the mean.
  load_bundles<R> const bundles(totals(), size, width == 1 ? 8 : 64);
  auto const item_at = [&](std::size_t bundle, std::size_t place, std::size_t k) {
    return items[bundles.group(bundle, place) * width + k];
  };
  std::vector<std::uint32_t> order(bundles.count());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  auto const behind = std::stable_partition(order.begin(), order.end(), [&](std::uint32_t bundle) {
    std::uint32_t first = ~std::uint32_t{0};
    for (std::size_t place = 0; place != size && pool.carried != 0; ++place) {
      for (std::size_t k = 0; k != width; ++k) first = std::min(first, item_at(bundle, place, k));
    }
    return first < pool.carried;
  });
  std::vector<std::uint32_t> groups;
  groups.reserve(pool.groups.size());
  std::vector<std::array<load_level, R>> levels(order.size() * width);
  for (std::size_t item = 0; item != levels.size(); ++item) {
    std::uint32_t const bundle = order[item / width];
    for (std::size_t place = 0, k = item % width; place != size; ++place) {
      std::uint32_t const from = item_at(bundle, place, k);
      groups.push_back(pool.groups[from]);
      for (std::size_t r = 0; r != R; ++r) levels[item][r] += pool.levels[from][r];
    }
  }
  pool.groups = std::move(groups);
  pool.levels = std::move(levels);
  pool.carried = static_cast<std::size_t>(behind - order.begin()) * width;
}

/// Joins groups to so many for each rank.
template <std::size_t R>
void join_groups(schedule_pool<R>& pool, std::uint32_t groups_per_rank) {
  std::vector<std::uint32_t> items(pool.groups.size());
  std::iota(items.begin(), items.end(), std::uint32_t{0});
  join_cells(pool, items, 1, groups_per_rank);
}

/// Joins steps to steps of so many groups for each rank, whose bundles are the `items` then.
template <std::size_t R>
void join_steps(schedule_pool<R>& pool, std::vector<std::uint32_t>& items,
                std::uint32_t groups_per_rank, schedule_draws const& draws) {
  std::uint32_t const ranks = pool.shape.ranks;
  // Steps of one cell are neighbours, bundles begin at random.
  auto const order = draws.steps(pool.shape.steps);
  std::vector<std::uint32_t> drawn;
  drawn.reserve(items.size());
  for (std::uint32_t p = 0; p != pool.shape.steps; ++p) {
    auto const step = std::span(items).subspan(static_cast<std::size_t>(order(p)) * ranks, ranks);
    drawn.insert(drawn.end(), step.begin(), step.end());
  }
  join_cells(pool, drawn, ranks, groups_per_rank);
  pool.shape.steps /= groups_per_rank;
  items.resize(pool.levels.size());
  std::iota(items.begin(), items.end(), std::uint32_t{0});
}

/// Steps of bundles, of which two at a time exchange bundles at random, wherever that brings the
/// loads of steps nearer to the mean and ranks do not wait for longer than they may.
template <std::size_t R>
class step_mixer {
 public:
  step_mixer(schedule_pool<R> const& pool, std::span<std::uint32_t> items)
      : pool_(pool), items_(items) {
    for (std::size_t r = 0; r != R; ++r) {
      uint128 sum = 0;
      for (auto const& level : pool.levels) sum += level[r];
      scale_[r] = share_of_mean * pool.shape.steps / std::max(1.0, static_cast<double>(sum));
    }
    for (std::uint32_t step = 0; step != pool.shape.steps; ++step) {
      of_step_.push_back(measured(step));
      for (std::size_t r = 0; r != R; ++r) waiting_[r] += of_step_[step].waiting[r];
    }
  }

  void mix(std::array<std::int64_t, R> const& goals, rng::engine words) {
    std::size_t const steps = of_step_.size();
    if (steps < 2) return;
    // A try for each position. On generated packs three times as many lower the mix by a tenth.
    std::size_t const tries = pool_.groups.size() / pool_.shape.ranks;
    for (std::size_t k = 0; k != tries; ++k) {
      auto const one = static_cast<std::uint32_t>(rng::below(words, steps));
      auto const gap = static_cast<std::uint32_t>(rng::below(words, steps - 1)) + 1;
      auto const other = static_cast<std::uint32_t>((std::size_t{one} + gap) % steps);
      rng::engine const exchange(words());
      swap_some(one, other, exchange);
      if (!keep(one, other, goals)) swap_some(one, other, exchange);
    }
  }

 private:
  /// The mean load of a step, and the largest, so that sums of squares fit.
  static constexpr double share_of_mean = 0x1p24;
  static constexpr double largest_share = 0x1p28;

  struct figures {
    std::array<std::int64_t, R> waiting;
    std::int64_t squares = 0;
  };

  [[nodiscard]] std::span<std::uint32_t> items_of(std::uint32_t step) const {
    std::size_t const ranks = pool_.shape.ranks;
    return items_.subspan(step * ranks, ranks);
  }

  [[nodiscard]] figures measured(std::uint32_t step) const {
    step_load<R> load;
    for (std::uint32_t const item : items_of(step)) load.add(pool_.levels[item]);
    figures result{load.waiting(pool_.shape.ranks)};
    for (std::size_t r = 0; r != R; ++r) {
      double const share = std::min(static_cast<double>(load.sum[r]) * scale_[r], largest_share);
      auto const apart = static_cast<std::int64_t>(share) - std::int64_t{1 << 24};
      result.squares += apart * apart;
    }
    return result;
  }

  /// Its own inverse.
  void swap_some(std::uint32_t one, std::uint32_t other, rng::engine const& words) {
    auto const left = items_of(one);
    auto const right = items_of(other);
    std::size_t turned = words.word(0) % left.size();
    for (std::size_t k = 0; k != left.size(); ++k) {
      if ((words.word(1 + k / 64) >> k % 64 & 1) != 0) std::swap(left[k], right[turned]);
      turned = turned + 1 == left.size() ? 0 : turned + 1;
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
  std::span<std::uint32_t> items_;
  std::array<double, R> scale_;
  std::vector<figures> of_step_;
  std::array<std::int64_t, R> waiting_{};
};

}  // namespace omnibal::inline v0::detail
