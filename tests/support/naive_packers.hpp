// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packers as one would write them down first: the oracles of the fast ones.

#include <omnibal/grouping.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace test {

/// The indices of the samples that fit and of those that do not.
template <std::size_t R, class T>
std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>> split_oversized(
    std::vector<omnibal::resources<R, T>> const& demands,
    omnibal::resources<R, T> const& capacity) {
  std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>> result;
  for (std::uint32_t i = 0; i != demands.size(); ++i) {
    (demands[i].fits(capacity) ? result.first : result.second).push_back(i);
  }
  return result;
}

template <std::size_t R, class T>
struct loaded_group {
  std::vector<std::uint32_t> items;
  omnibal::resources<R, T> load{};
};

/// Whether a group with this load takes this demand, without overflow.
template <std::size_t R, class T>
bool joins(omnibal::resources<R, T> const& demand, omnibal::resources<R, T> const& load,
           omnibal::resources<R, T> const& capacity) {
  if constexpr (std::floating_point<T>) return (load + demand).fits(capacity);
  return demand.fits(capacity - load);
}

/// Next-fit of the samples in `pool`, in that order.
template <std::size_t R, class T>
std::vector<loaded_group<R, T>> naive_groups(std::vector<std::uint32_t> const& pool,
                                             std::vector<omnibal::resources<R, T>> const& demands,
                                             omnibal::resources<R, T> const& capacity) {
  std::vector<loaded_group<R, T>> groups;
  for (std::uint32_t const item : pool) {
    if (groups.empty() || !joins(demands[item], groups.back().load, capacity)) {
      groups.emplace_back();
    }
    groups.back().items.push_back(item);
    groups.back().load += demands[item];
  }
  return groups;
}

inline void append(omnibal::grouping& groups, std::vector<std::uint32_t> const& items) {
  for (std::uint32_t const item : items) groups.push(item);
  groups.close();
}

/// The result of `next_fit` without the report.
template <std::size_t R, class T>
omnibal::packing naive_next_fit(std::vector<omnibal::resources<R, T>> const& demands,
                                omnibal::resources<R, T> const& capacity) {
  omnibal::packing result;
  auto [pool, oversized] = split_oversized(demands, capacity);
  for (auto const& group : naive_groups(pool, demands, capacity))
    append(result.groups, group.items);
  result.oversized = std::move(oversized);
  return result;
}

/// The result of `isf` without the lower bound.
template <std::size_t R, class T, class Keep, class Shuffle>
omnibal::packing naive_isf(std::vector<omnibal::resources<R, T>> const& demands,
                           omnibal::resources<R, T> const& capacity,
                           omnibal::isf_options const& options, Keep const& keep,
                           Shuffle const& shuffle) {
  omnibal::packing result;
  auto [pool, oversized] = split_oversized(demands, capacity);
  result.oversized = std::move(oversized);
  auto& report = result.report;
  bool last = false;
  while (!pool.empty() && report.rounds != options.rounds) {
    last = last || report.rounds + 1 == options.rounds;
    std::vector<std::uint32_t> order(pool.size());
    std::iota(order.begin(), order.end(), 0u);
    shuffle(std::span<std::uint32_t>(order), report.rounds);
    for (std::uint32_t& position : order) position = pool[position];

    std::vector<std::uint32_t> rejected;
    for (auto const& group : naive_groups(order, demands, capacity)) {
      bool const full = keep(group.load);
      if (full || last) {
        append(result.groups, group.items);
        report.below_keep += full ? 0 : 1;
      } else {
        rejected.insert(rejected.end(), group.items.begin(), group.items.end());
      }
    }
    auto const before = static_cast<double>(pool.size());
    last = before - static_cast<double>(rejected.size()) < options.min_gain * before;
    report.item_rounds += pool.size();
    ++report.rounds;
    pool = std::move(rejected);
  }
  return result;
}

/// The groups of one-resource best-fit decreasing: equal samples by ascending index, and of equal
/// rooms the one that arose last.
inline omnibal::grouping naive_best_fit(std::vector<omnibal::resources<1>> const& demands,
                                        std::int64_t capacity) {
  std::vector<std::uint32_t> order = split_oversized(demands, {capacity}).first;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
    return demands[left][0] > demands[right][0];
  });
  struct room {
    std::int64_t left;
    std::int64_t born;
    std::size_t group;
    auto operator<=>(room const&) const = default;
  };
  std::set<room> rooms;
  std::vector<std::vector<std::uint32_t>> groups;
  std::int64_t now = 0;
  for (std::uint32_t const item : order) {
    std::int64_t const size = demands[item][0];
    --now;
    auto best = rooms.lower_bound({size, now, 0});
    if (best == rooms.end()) {
      best = rooms.insert({capacity, now, groups.size()}).first;
      groups.emplace_back();
    }
    room const filled{best->left - size, now, best->group};
    rooms.erase(best);
    rooms.insert(filled);
    groups[filled.group].push_back(item);
  }
  omnibal::grouping result;
  for (auto const& group : groups) append(result, group);
  return result;
}

}  // namespace test
