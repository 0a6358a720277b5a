// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Local search over groups of paths.

#include <omnibal/config.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/detail/path_groups.hpp>
#include <omnibal/prefix/pack_prefixes/group_recreation.hpp>
#include <omnibal/prefix/prefix_bound.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Local search by ruin and recreate. In each round a few groups, which are neighbors in the forest
/// or have much room, are removed and their paths are packed again at random. The new groups
/// replace the old ones if the objective does not become worse.
class path_group_search {
 public:
  path_group_search(path_ends const& ends, std::uint64_t capacity, std::uint64_t group_price,
                    std::uint64_t seed)
      : ends_(ends),
        shared_(ends.shared),
        capacity_(capacity),
        price_(group_price),
        random_(seed),
        recreation_(ends, shared_, capacity) {}

  path_group_search(path_group_search const&) = delete;
  path_group_search& operator=(path_group_search const&) = delete;

  /// Improves groups until they reach the bound or until the budget is spent. Each assignment of a
  /// path to a group costs a step of the budget.
  void run(std::vector<path_group>& groups, prefix_bounds const& bound, search_budget budget) {
    group_of_.resize(ends_.size());
    std::uint64_t tokens = 0;
    for (std::uint32_t g = 0; g != groups.size(); ++g) {
      tokens += groups[g].tokens;
      number_paths(groups, g);
    }
    while (!budget.is_spent() && groups.size() > 1 &&
           (tokens > bound.tokens || groups.size() > bound.groups)) {
      choose_ruined(groups);
      gather(groups);
      budget.spend(pool_.paths.size() + ruin_steps);
      if ((random_() & 1) != 0) {
        recreation_.pack_pieces(pool_, random_, made_);
      } else {
        recreation_.insert_paths(pool_, random_, made_);
      }
      objective const before = sum_of(groups, ruined_);
      objective const after = sum_of(made_.groups());
      if (after.value > before.value) continue;
      replace_ruined(groups);
      tokens = tokens - before.tokens + after.tokens;
    }
  }

 private:
  /// The steps that each round costs in addition to the number of its paths.
  static constexpr std::size_t ruin_steps = 16;
  /// A group with much room is the group with the most room among at most this number of random
  /// groups.
  static constexpr std::uint64_t max_compared = 4;
  /// The number of groups that a round ruins is random within these limits.
  static constexpr std::uint64_t min_ruined = 2;
  static constexpr std::uint64_t max_ruined = 6;
  static constexpr int max_choices = 32;
  /// On average one of this number of choices is a group with much room, and the other choices are
  /// neighbors.
  static constexpr std::uint64_t roomy_period = 3;
  /// The largest distance between the paths of neighbors, in depth-first order.
  static constexpr std::uint64_t max_distance = 3;

  /// The value of groups in the objective, and their tokens.
  struct objective {
    uint128 value = 0;
    std::uint64_t tokens = 0;
  };

  [[nodiscard]] std::uint32_t random_group(std::vector<path_group> const& groups) {
    return static_cast<std::uint32_t>(rng::below(random_, groups.size()));
  }

  /// Returns a group with much room.
  [[nodiscard]] std::uint32_t roomy_group(std::vector<path_group> const& groups) {
    std::uint32_t best = random_group(groups);
    for (std::uint64_t k = rng::below(random_, max_compared); k != 0; --k) {
      std::uint32_t const other = random_group(groups);
      if (groups[other].tokens < groups[best].tokens) best = other;
    }
    return best;
  }

  /// Returns the group of a path near a path of a ruined group in depth-first order. Such paths
  /// often share many tokens.
  [[nodiscard]] std::uint32_t neighbor_group(std::vector<path_group> const& groups) {
    auto const& from = groups[ruined_[rng::below(random_, ruined_.size())]].ends;
    std::uint32_t const path = from[rng::below(random_, from.size())];
    bool const is_after = (random_() & 1) != 0;
    auto const distance = static_cast<std::uint32_t>(1 + rng::below(random_, max_distance));
    if (is_after) return group_of_[path + distance < ends_.size() ? path + distance : path];
    return group_of_[path >= distance ? path - distance : path];
  }

  /// Chooses the groups that are ruined.
  void choose_ruined(std::vector<path_group> const& groups) {
    ruined_.assign(1, roomy_group(groups));
    std::size_t const count = std::min<std::size_t>(
        min_ruined + rng::below(random_, max_ruined - min_ruined + 1), groups.size());
    for (int tries = 0; ruined_.size() != count && tries != max_choices; ++tries) {
      bool const is_neighbor = rng::below(random_, roomy_period) != 0;
      std::uint32_t const other = is_neighbor ? neighbor_group(groups) : roomy_group(groups);
      if (std::ranges::find(ruined_, other) == ruined_.end()) ruined_.push_back(other);
    }
  }

  /// Gathers the paths of the ruined groups in the pool.
  void gather(std::vector<path_group> const& groups) {
    auto& [paths, depths, shared] = pool_;
    paths.clear();
    depths.clear();
    shared.clear();
    for (std::uint32_t const g : ruined_) {
      paths.insert(paths.end(), groups[g].ends.begin(), groups[g].ends.end());
    }
    std::sort(paths.begin(), paths.end());
    for (std::size_t k = 0; k != paths.size(); ++k) {
      depths.push_back(ends_.depths[paths[k]]);
      shared.push_back(k == 0 ? 0 : shared_(paths[k - 1], paths[k]));
    }
  }

  /// Adds a group to an objective. The value of a group decreases with its free room more than
  /// linearly. Therefore the search concentrates the free room in few groups.
  void add(path_group const& group, objective& sum) const {
    constexpr unsigned bits = 20;
    uint128 const share = (static_cast<uint128>(capacity_ - group.tokens) << bits) / capacity_;
    sum.value += group.tokens + price_ - (price_ * share * share >> (2 * bits + 1));
    sum.tokens += group.tokens;
  }
  [[nodiscard]] objective sum_of(std::span<path_group const> groups) const {
    objective sum;
    for (path_group const& group : groups) add(group, sum);
    return sum;
  }
  [[nodiscard]] objective sum_of(std::vector<path_group> const& groups,
                                 std::span<std::uint32_t const> numbers) const {
    objective sum;
    for (std::uint32_t const g : numbers) add(groups[g], sum);
    return sum;
  }

  /// Replaces the ruined groups by the recreated groups.
  void replace_ruined(std::vector<path_group>& groups) {
    std::size_t const kept = std::min(made_.size(), ruined_.size());
    for (std::size_t g = 0; g != made_.size(); ++g) {
      auto const place = g < kept ? ruined_[g] : static_cast<std::uint32_t>(groups.size());
      if (g >= kept) groups.emplace_back();
      std::swap(groups[place], made_[g]);
      number_paths(groups, place);
    }
    std::sort(ruined_.begin() + static_cast<std::ptrdiff_t>(kept), ruined_.end());
    for (std::size_t k = ruined_.size(); k > kept; --k) remove(groups, ruined_[k - 1]);
  }

  /// Removes a group. The last group takes its number.
  void remove(std::vector<path_group>& groups, std::uint32_t g) {
    if (g + 1 != groups.size()) {
      groups[g] = std::move(groups.back());
      number_paths(groups, g);
    }
    groups.pop_back();
  }

  void number_paths(std::vector<path_group> const& groups, std::uint32_t g) {
    for (std::uint32_t const path : groups[g].ends) group_of_[path] = g;
  }

  path_ends const& ends_;
  shared_minima shared_;
  std::uint64_t capacity_;
  uint128 price_;
  rng::engine random_;
  group_recreation recreation_;
  std::vector<std::uint32_t> group_of_;
  /// The groups that a round ruins, their paths, and the groups that are recreated from these
  /// paths.
  std::vector<std::uint32_t> ruined_;
  path_pool pool_;
  reused_groups made_;
};

}  // namespace omnibal::inline v0::detail
