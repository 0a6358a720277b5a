// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchanges of paths between ranks.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/detail/path_groups.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Levels the work of ranks by moves and swaps of paths between their groups. The rank with the
/// largest work gives paths, and the rank with the smallest work or a random rank receives them.
template <class Cost>
class work_leveler {
 public:
  work_leveler(path_ends const& ends, std::uint64_t capacity, Cost cost, std::size_t ranks)
      : ends_(ends), shared_(ends.shared), capacity_(capacity), cost_(cost), loads_(ranks, 0.0) {}

  /// Sets the groups and computes their tokens and work. The ends of each group must ascend.
  void start(std::vector<path_group> groups) {
    groups_ = std::move(groups);
    for (path_group& group : groups_) {
      double work = 0.0;
      group.tokens = 0;
      for (std::size_t k = 0; k != group.ends.size(); ++k) {
        std::uint64_t const shared = k == 0 ? 0 : shared_(group.ends[k - 1], group.ends[k]);
        group.tokens += ends_.depths[group.ends[k]] - shared;
        work += cost_(shared, ends_.depths[group.ends[k]]);
      }
      works_.push_back(work);
    }
  }

  /// Assigns the groups to ranks with similar work, the same number of groups to each rank.
  void assign() {
    grouping const parts =
        refine_parts(works_, lpt(works_, loads_.size(), std::identity{}, {count_policy::equal}),
                     std::identity{}, {.counts = part_counts::kept, .exchanges = 100'000});
    std::vector<std::uint32_t> ranks(groups_.size(), 0);
    for (std::uint32_t r = 0; r != parts.size(); ++r) {
      for (std::uint32_t const g : parts[r]) ranks[g] = r;
    }
    assign(std::move(ranks));
  }
  /// Assigns the groups to given ranks.
  void assign(std::vector<std::uint32_t> ranks) {
    rank_of_ = std::move(ranks);
    groups_of_.assign(loads_.size(), {});
    for (std::uint32_t g = 0; g != groups_.size(); ++g) {
      groups_of_[rank_of_[g]].push_back(g);
      loads_[rank_of_[g]] += works_[g];
    }
  }

  /// Exchanges paths until the largest work of a rank exceeds the mean by at most `max_overload`.
  /// Ends earlier after `exchanges` tries, or after `max_failures` tries in sequence that did not
  /// help.
  void level(double max_overload, std::size_t exchanges, std::uint64_t seed) {
    rng::engine words(seed);
    std::size_t failures = 0;
    while (exchanges-- != 0 && failures != max_failures) {
      auto const largest = std::max_element(loads_.begin(), loads_.end());
      double sum = 0.0;
      for (double const load : loads_) sum += load;
      if (*largest * static_cast<double>(loads_.size()) <= sum * (1.0 + max_overload)) return;
      auto const from = static_cast<std::size_t>(largest - loads_.begin());
      auto to =
          static_cast<std::size_t>(std::min_element(loads_.begin(), loads_.end()) - loads_.begin());
      if (failures % 2 == 1) to = rng::below(words, loads_.size());
      bool const helps = from != to && exchange(from, to, words);
      failures = helps ? 0 : failures + 1;
    }
  }

  [[nodiscard]] std::vector<path_group> const& groups() const { return groups_; }
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t group) const { return rank_of_[group]; }
  [[nodiscard]] double work(std::uint32_t group) const { return works_[group]; }
  [[nodiscard]] std::vector<double> const& loads() const { return loads_; }

 private:
  static constexpr std::size_t max_failures = 256;
  static constexpr int tries = 512;
  static constexpr std::uint32_t none = prefix_forest::no_parent;

  /// A move of a path from one group to another group, or a swap of two paths: the path `given`,
  /// and the path `returned` or `none`.
  struct change {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t given = none;
    std::uint32_t returned = none;
    double lost = 0.0;
    double gained = 0.0;
    std::uint64_t tokens_from = 0;
    std::uint64_t tokens_to = 0;
  };

  /// Makes the best of some random changes between two ranks, if it lowers the larger load. Returns
  /// false if no change does.
  bool exchange(std::size_t from, std::size_t to, rng::engine& words) {
    change best;
    double lowest = loads_[from];
    for (int k = 0; k != tries; ++k) {
      change now;
      now.from = random_of(groups_of_[from], words);
      now.to = random_of(groups_of_[to], words);
      auto const& given = groups_[now.from].ends;
      auto const& returned = groups_[now.to].ends;
      // A group keeps at least one path, so that no rank is idle in a step.
      if (given.empty() || (given.size() == 1 && k % 4 == 0) || returned.empty()) continue;
      now.given = random_of(given, words);
      if (k % 4 != 0) now.returned = random_of(returned, words);
      if (!measure(now)) continue;
      double const larger = std::max(loads_[from] - now.lost, loads_[to] + now.gained);
      if (larger >= lowest) continue;
      lowest = larger;
      best = now;
    }
    if (best.given == none || lowest > loads_[from] * (1.0 - 1e-12)) return false;
    apply(best, from, to);
    return true;
  }

  [[nodiscard]] static std::uint32_t random_of(std::vector<std::uint32_t> const& list,
                                               rng::engine& words) {
    return list[rng::below(words, list.size())];
  }

  /// Computes the work and the tokens of both groups after a change. Returns false if the change is
  /// impossible or a group would exceed the capacity.
  [[nodiscard]] bool measure(change& now) const {
    auto const& from = groups_[now.from];
    auto const& to = groups_[now.to];
    if (contains(to, now.given) || (now.returned != none && contains(from, now.returned))) {
      return false;
    }
    std::uint64_t const depth = ends_.depths[now.given];
    std::uint64_t const left = shared_with(from.ends, now.given, shared_);
    now.lost = cost_(left, depth);
    now.tokens_from = from.tokens - (depth - left);
    std::uint64_t const joined = shared_with(to.ends, now.given, shared_, now.returned);
    now.gained = cost_(joined, depth);
    now.tokens_to = to.tokens + (depth - joined);
    if (now.returned != none) {
      std::uint64_t const back = ends_.depths[now.returned];
      std::uint64_t const kept = shared_with(to.ends, now.returned, shared_);
      now.gained -= cost_(kept, back);
      now.tokens_to -= back - kept;
      std::uint64_t const found = shared_with(from.ends, now.returned, shared_, now.given);
      now.lost -= cost_(found, back);
      now.tokens_from += back - found;
    }
    return now.tokens_to <= capacity_ && now.tokens_from <= capacity_;
  }

  [[nodiscard]] static bool contains(path_group const& group, std::uint32_t path) {
    return std::binary_search(group.ends.begin(), group.ends.end(), path);
  }

  void apply(change const& now, std::size_t from, std::size_t to) {
    replace(groups_[now.from].ends, now.given, now.returned);
    replace(groups_[now.to].ends, now.returned, now.given);
    groups_[now.from].tokens = now.tokens_from;
    groups_[now.to].tokens = now.tokens_to;
    works_[now.from] -= now.lost;
    works_[now.to] += now.gained;
    loads_[from] -= now.lost;
    loads_[to] += now.gained;
  }

  static void replace(std::vector<std::uint32_t>& ends, std::uint32_t out, std::uint32_t in) {
    if (out != none) ends.erase(std::lower_bound(ends.begin(), ends.end(), out));
    if (in != none) ends.insert(std::lower_bound(ends.begin(), ends.end(), in), in);
  }

  path_ends const& ends_;
  shared_minima shared_;
  std::uint64_t capacity_;
  Cost cost_;
  std::vector<path_group> groups_;
  std::vector<double> works_;
  std::vector<double> loads_;
  std::vector<std::uint32_t> rank_of_;
  std::vector<std::vector<std::uint32_t>> groups_of_;
};

}  // namespace omnibal::inline v0::detail
