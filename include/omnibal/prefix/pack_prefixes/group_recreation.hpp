// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// New groups from the paths of groups that a search has ruined.

#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/detail/path_groups.hpp>
#include <omnibal/prefix/detail/piece_packer.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The paths of some groups in ascending order, the number of tokens of each path, and the number
/// of tokens that it shares with the path before it.
struct path_pool {
  std::vector<std::uint32_t> paths;
  std::vector<std::uint64_t> depths;
  std::vector<std::uint64_t> shared;
};

/// A list of groups that keeps the memory of removed groups.
class reused_groups {
 public:
  [[nodiscard]] std::span<path_group> groups() { return std::span(groups_).first(size_); }
  [[nodiscard]] path_group& operator[](std::size_t g) { return groups_[g]; }
  [[nodiscard]] std::size_t size() const { return size_; }
  void clear() { size_ = 0; }

  /// Adds an empty group, and returns the group.
  path_group& add() {
    if (size_ == groups_.size()) groups_.emplace_back();
    path_group& added = groups_[size_++];
    added.ends.clear();
    added.tokens = 0;
    return added;
  }

 private:
  std::vector<path_group> groups_;
  std::size_t size_ = 0;
};

/// Recreates groups from a pool of paths in two ways: by the construction that packs the whole
/// forest, or by inserting one path after the other.
class group_recreation {
 public:
  group_recreation(path_ends const& ends, shared_minima const& shared, std::uint64_t capacity)
      : ends_(ends), shared_(shared), capacity_(capacity) {}

  /// Packs the paths of the pool by the construction for the whole forest, with random settings.
  void pack_pieces(path_pool const& pool, rng::engine& random, reused_groups& result) {
    piece_packer_settings settings{.capacity = capacity_};
    settings.split_ratio = split_ratios[rng::below(random, split_ratios.size())];
    settings.noise = (random() & 1) != 0 ? high_noise : low_noise;
    packer_.pack(pool.depths, pool.shared, settings, random, packed_);
    result.clear();
    for (std::size_t g = 0; g != packed_.tokens.size(); ++g) result.add();
    for (std::size_t k = 0; k != pool.paths.size(); ++k) {
      result[packed_.group_of[k]].ends.push_back(pool.paths[k]);
    }
    // Several pieces of one node may be in the same group, which contains the node only once.
    for (path_group& group : result.groups()) {
      for (std::size_t k = 0; k != group.ends.size(); ++k) {
        group.tokens += ends_.depths[group.ends[k]];
        if (k != 0) group.tokens -= shared_(group.ends[k - 1], group.ends[k]);
      }
    }
  }

  /// Inserts the paths of the pool one by one into the group to which each adds the fewest tokens,
  /// in a random order that prefers long paths.
  void insert_paths(path_pool const& pool, rng::engine& random, reused_groups& result) {
    order_.clear();
    std::uint64_t const noise = 1 + rng::below(random, capacity_);
    for (std::size_t k = 0; k != pool.paths.size(); ++k) {
      order_.push_back({pool.depths[k] + rng::below(random, noise), pool.paths[k]});
    }
    std::sort(order_.begin(), order_.end(), [](keyed_path const& left, keyed_path const& right) {
      if (left.key != right.key) return left.key > right.key;
      return left.path < right.path;
    });
    result.clear();
    for (keyed_path const& next : order_) insert(next.path, random, result);
  }

 private:
  static constexpr std::uint64_t unit = prefix_pieces::ratio_unit;
  static constexpr std::array<std::uint64_t, 6> split_ratios{0,        unit,     3 * unit / 2,
                                                             2 * unit, 3 * unit, 6 * unit};
  /// The two values of `piece_packer_settings::noise` that are used at random.
  static constexpr std::uint32_t high_noise = 64;
  static constexpr std::uint32_t low_noise = 19;
  /// A path skips a possible group with the probability 1 / `skip_period`, for random variation.
  static constexpr std::uint64_t skip_period = 16;

  struct keyed_path {
    std::uint64_t key;
    std::uint32_t path;
  };

  void insert(std::uint32_t path, rng::engine& random, reused_groups& result) const {
    std::uint64_t const depth = ends_.depths[path];
    std::size_t best = result.size();
    std::uint64_t best_added = 0;
    for (std::size_t g = 0; g != result.size(); ++g) {
      path_group const& group = result[g];
      std::uint64_t const added = depth - shared_with(group.ends, path, shared_);
      if (group.tokens + added > capacity_ || rng::below(random, skip_period) == 0) continue;
      bool const is_better = best == result.size() || added < best_added ||
                             (added == best_added && group.tokens > result[best].tokens);
      if (!is_better) continue;
      best = g;
      best_added = added;
    }
    bool const is_new = best == result.size();
    path_group& to = is_new ? result.add() : result[best];
    to.tokens += is_new ? depth : best_added;
    to.ends.insert(std::upper_bound(to.ends.begin(), to.ends.end(), path), path);
  }

  path_ends const& ends_;
  shared_minima const& shared_;
  std::uint64_t capacity_;
  /// Memory that calls use again.
  piece_packer packer_;
  path_assignment packed_;
  std::vector<keyed_path> order_;
};

}  // namespace omnibal::inline v0::detail
