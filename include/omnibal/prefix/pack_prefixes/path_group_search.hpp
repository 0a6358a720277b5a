// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Local search over groups of paths.

#include <omnibal/config.hpp>
#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/detail/path_groups.hpp>
#include <omnibal/prefix/detail/piece_packer.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Ruins some groups and recreates them: a few groups, neighbors in the forest or groups with much
/// room, are packed again with random settings. The new groups replace the old ones if the
/// objective does not become worse.
class path_group_search {
 public:
  path_group_search(path_ends const& ends, std::uint64_t capacity, std::uint64_t group_price,
                    std::uint64_t seed)
      : ends_(ends), shared_(ends.shared), capacity_(capacity), price_(group_price), words_(seed) {}

  void run(std::vector<path_group>& groups, std::uint64_t bound_tokens, std::size_t bound_groups,
           std::size_t steps) {
    group_of_.resize(ends_.size());
    std::uint64_t tokens = 0;
    for (std::uint32_t g = 0; g != groups.size(); ++g) {
      tokens += groups[g].tokens;
      for (std::uint32_t const t : groups[g].ends) group_of_[t] = g;
    }
    std::size_t spent = 0;
    while (spent < steps && groups.size() > 1 &&
           (tokens > bound_tokens || groups.size() > bound_groups)) {
      choose(groups);
      std::size_t const visited = gather(groups);
      spent += visited + 16;
      recreate(groups, tokens);
    }
  }

 private:
  [[nodiscard]] std::uint32_t roomy(std::vector<path_group> const& groups) {
    std::uint32_t best = random_group(groups);
    for (std::uint64_t k = rng::below(words_, 4); k != 0; --k) {
      std::uint32_t const other = random_group(groups);
      if (groups[other].tokens < groups[best].tokens) best = other;
    }
    return best;
  }
  [[nodiscard]] std::uint32_t random_group(std::vector<path_group> const& groups) {
    return static_cast<std::uint32_t>(rng::below(words_, groups.size()));
  }

  void choose(std::vector<path_group> const& groups) {
    chosen_.assign(1, roomy(groups));
    std::size_t const most = std::min<std::size_t>(2 + rng::below(words_, 5), groups.size());
    for (int tries = 0; chosen_.size() != most && tries != 32; ++tries) {
      std::uint32_t other = 0;
      if (rng::below(words_, 3) != 0) {
        // The group of a path next to a path of a chosen group shares most tokens with it.
        auto const& from = groups[chosen_[rng::below(words_, chosen_.size())]].ends;
        std::uint32_t const t = from[rng::below(words_, from.size())];
        bool const up = (words_() & 1) != 0;
        std::uint32_t step = 1 + static_cast<std::uint32_t>(rng::below(words_, 3));
        std::uint32_t neighbor = t;
        if (up && t + step < ends_.size()) neighbor = t + step;
        if (!up && t >= step) neighbor = t - step;
        other = group_of_[neighbor];
      } else {
        other = roomy(groups);
      }
      if (std::find(chosen_.begin(), chosen_.end(), other) == chosen_.end()) {
        chosen_.push_back(other);
      }
    }
  }

  std::size_t gather(std::vector<path_group> const& groups) {
    pool_.clear();
    for (std::uint32_t const g : chosen_) {
      pool_.insert(pool_.end(), groups[g].ends.begin(), groups[g].ends.end());
    }
    std::sort(pool_.begin(), pool_.end());
    depths_.clear();
    shares_.clear();
    for (std::size_t k = 0; k != pool_.size(); ++k) {
      depths_.push_back(ends_.depths[pool_[k]]);
      shares_.push_back(k == 0 ? 0 : shared_(pool_[k - 1], pool_[k]));
    }
    return pool_.size();
  }

  /// A group counts less the more room it has, so that room collects in few groups.
  [[nodiscard]] uint128 value(std::uint64_t tokens) const {
    constexpr unsigned bits = 20;
    uint128 const share = (static_cast<uint128>(capacity_ - tokens) << bits) / capacity_;
    return static_cast<uint128>(tokens) + price_ - (price_ * share * share >> (2 * bits + 1));
  }

  void recreate(std::vector<path_group>& groups, std::uint64_t& tokens) {
    uint128 before = 0;
    std::uint64_t tokens_before = 0;
    for (std::uint32_t const g : chosen_) {
      before += value(groups[g].tokens);
      tokens_before += groups[g].tokens;
    }
    if ((words_() & 1) != 0) {
      pack_pieces();
    } else {
      insert_paths();
    }
    uint128 after = 0;
    std::uint64_t tokens_after = 0;
    for (std::size_t g = 0; g != count_; ++g) {
      after += value(made_[g].tokens);
      tokens_after += made_[g].tokens;
    }
    if (after > before) return;
    tokens = tokens - tokens_before + tokens_after;
    for (std::size_t g = 0; g != count_; ++g) {
      std::uint32_t place = 0;
      if (g < chosen_.size()) {
        place = chosen_[g];
      } else {
        place = static_cast<std::uint32_t>(groups.size());
        groups.emplace_back();
      }
      std::swap(groups[place], made_[g]);
      for (std::uint32_t const t : groups[place].ends) group_of_[t] = place;
    }
    std::sort(chosen_.begin() + static_cast<std::ptrdiff_t>(std::min(count_, chosen_.size())),
              chosen_.end());
    for (std::size_t k = chosen_.size(); k > count_; --k) remove(groups, chosen_[k - 1]);
  }

  /// Returns an empty new group.
  path_group& add_group() {
    if (count_ == made_.size()) made_.emplace_back();
    path_group& made = made_[count_++];
    made.ends.clear();
    made.tokens = 0;
    return made;
  }

  /// Packs the pool as the whole forest was packed, with random settings.
  void pack_pieces() {
    constexpr std::uint64_t ratios[] = {0, 16, 24, 32, 48, 96};
    piece_packer_settings settings;
    settings.capacity = capacity_;
    settings.split_ratio = ratios[rng::below(words_, 6)];
    settings.noise = (words_() & 1) != 0 ? 64 : 19;
    packer_.pack(depths_, shares_, settings, words_);
    packer_.assign(packed_);
    count_ = 0;
    for (std::size_t g = 0; g != packer_.size(); ++g) add_group();
    for (std::size_t k = 0; k != pool_.size(); ++k) made_[packed_[k]].ends.push_back(pool_[k]);
    for (std::size_t g = 0; g != count_; ++g) {
      path_group& made = made_[g];
      // Two pieces of one node may have met in a group, which needs the node once.
      for (std::size_t k = 0; k != made.ends.size(); ++k) {
        made.tokens += ends_.depths[made.ends[k]];
        if (k != 0) made.tokens -= shared_(made.ends[k - 1], made.ends[k]);
      }
    }
  }

  /// Inserts the paths of the pool one by one into the group to which each adds the fewest tokens,
  /// in a random order that prefers long paths.
  void insert_paths() {
    order_.clear();
    std::uint64_t const spread = 1 + rng::below(words_, capacity_);
    for (std::size_t k = 0; k != pool_.size(); ++k) {
      order_.push_back({depths_[k] + rng::below(words_, spread), pool_[k]});
    }
    std::sort(order_.begin(), order_.end(), [](keyed const& left, keyed const& right) {
      if (left.key != right.key) return left.key > right.key;
      return left.path < right.path;
    });
    count_ = 0;
    for (keyed const& next : order_) {
      std::size_t best = count_;
      std::uint64_t least = 0;
      for (std::size_t g = 0; g != count_; ++g) {
        std::uint64_t const added =
            ends_.depths[next.path] - shared_with(made_[g].ends, next.path, shared_);
        if (made_[g].tokens + added > capacity_ || rng::below(words_, 16) == 0) continue;
        bool const better = best == count_ || added < least ||
                            (added == least && made_[g].tokens > made_[best].tokens);
        if (!better) continue;
        best = g;
        least = added;
      }
      if (best == count_) {
        add_group();
        least = ends_.depths[next.path];
      }
      path_group& to = made_[best];
      to.tokens += least;
      to.ends.insert(std::upper_bound(to.ends.begin(), to.ends.end(), next.path), next.path);
    }
  }

  path_ends const& ends_;
  shared_minima shared_;
  std::uint64_t capacity_;
  uint128 price_;
  rng::engine words_;
  piece_packer packer_;
  std::vector<std::uint32_t> group_of_;
  /// Removes an empty group; the last group gets its number.
  void remove(std::vector<path_group>& groups, std::uint32_t g) {
    auto const last = static_cast<std::uint32_t>(groups.size() - 1);
    if (g != last) {
      groups[g] = std::move(groups[last]);
      for (std::uint32_t const t : groups[g].ends) group_of_[t] = g;
    }
    groups.pop_back();
  }

  struct keyed {
    std::uint64_t key;
    std::uint32_t path;
  };

  std::vector<path_group> made_;
  std::size_t count_ = 0;
  std::vector<keyed> order_;
  std::vector<std::uint32_t> chosen_;
  std::vector<std::uint32_t> pool_;
  std::vector<std::uint32_t> packed_;
  std::vector<std::uint64_t> depths_;
  std::vector<std::uint64_t> shares_;
};

}  // namespace omnibal::inline v0::detail
