#pragma once

/// \file
/// The cheapest exchange of samples between a rank that has too much and one with room.

#include <omnibal/balance/detail/costs.hpp>
#include <omnibal/config.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// A sample as it is looked at for an exchange. `bytes` is what it adds to the moved bytes when it
/// leaves its rank: nothing where it is away from home already.
template <std::size_t R>
struct movable_sample {
  std::uint32_t index;
  resources<R> cost;
  std::int64_t bytes;
};

/// The samples of a rank from the largest to the smallest, and their load.
template <std::size_t R>
struct open_rank {
  std::vector<movable_sample<R>> samples;
  resources<R> load;
};

/// By how much a load exceeds the target, summed over the kinds.
template <std::size_t R>
[[nodiscard]] constexpr std::int64_t excess_of(resources<R> const& load, std::int64_t target) {
  std::int64_t result = 0;
  for (std::int64_t const amount : load.amounts) {
    result += std::max<std::int64_t>(0, amount - target);
  }
  return result;
}

/// Positions of a sample that leaves a rank and of one that comes for it; `nothing` and `several`
/// are legal for the latter.
struct home_exchange {
  static constexpr std::size_t nothing = std::numeric_limits<std::size_t>::max();
  /// Those that `for_each_in_return` names.
  static constexpr std::size_t several = nothing - 1;

  std::size_t leaves = nothing;
  std::size_t comes = nothing;
  /// By how much the excess of both ranks falls.
  std::int64_t relief = 0;
  /// What it adds to the moved bytes.
  std::int64_t bytes = 0;

  /// More relief for the bytes is better, then more relief.
  [[nodiscard]] bool is_better_than(home_exchange const& other) const {
    int128 const value = static_cast<int128>(relief) * (static_cast<int128>(other.bytes) + 1);
    int128 const other_value = static_cast<int128>(other.relief) * (static_cast<int128>(bytes) + 1);
    return value > other_value || (value == other_value && relief > other.relief);
  }
};

inline void keep_better(home_exchange& best, home_exchange const& other) {
  if (other.is_better_than(best)) best = other;
}

/// The exchange between `heavy` and `light` that lowers the excess most for its bytes, or `best`
/// where none is better. Precondition: `light` has no excess.
[[nodiscard]] inline home_exchange best_home_exchange(open_rank<1> const& heavy,
                                                      open_rank<1> const& light,
                                                      std::int64_t target, home_exchange best) {
  std::int64_t const excess = heavy.load[0] - target;
  std::int64_t const room = target - light.load[0];
  auto const consider = [&](std::size_t i, std::size_t j) {
    movable_sample<1> const& leaves = heavy.samples[i];
    bool const comes_any = j != home_exchange::nothing;
    std::int64_t const taken = leaves.cost[0] - (comes_any ? light.samples[j].cost[0] : 0);
    if (taken <= 0 || taken > room) return;
    keep_better(best, {i, j, std::min(taken, excess),
                       leaves.bytes + (comes_any ? light.samples[j].bytes : 0)});
  };
  // What comes should cost just less than what leaves without the excess. As the costs that leave
  // fall so do those that come, and each list is gone through once.
  std::size_t j = 0;
  for (std::size_t i = 0; i != heavy.samples.size(); ++i) {
    movable_sample<1> const& leaves = heavy.samples[i];
    // No exchange takes away more, or adds fewer bytes.
    home_exchange const at_best{i, 0, std::min({leaves.cost[0], excess, room}), leaves.bytes};
    if (!at_best.is_better_than(best)) continue;
    std::int64_t const wanted = leaves.cost[0] - excess;
    while (j != light.samples.size() && light.samples[j].cost[0] > wanted) ++j;
    consider(i, home_exchange::nothing);
    if (j != light.samples.size()) consider(i, j);
    if (j != 0) consider(i, j - 1);
  }
  return best;
}

/// How many samples of a rank are looked at where all would be too many, and how far apart.
inline constexpr std::size_t most_candidates = 64;
template <std::size_t R>
[[nodiscard]] std::size_t candidate_step(open_rank<R> const& rank) {
  return (rank.samples.size() + most_candidates - 1) / most_candidates;
}

/// The same for several kinds, among evenly spaced samples; `light` may have an excess.
template <std::size_t R>
[[nodiscard]] home_exchange best_home_exchange(open_rank<R> const& heavy, open_rank<R> const& light,
                                               std::int64_t target, home_exchange best) {
  std::int64_t const before = excess_of(heavy.load, target) + excess_of(light.load, target);
  for (std::size_t i = 0; i < heavy.samples.size(); i += candidate_step(heavy)) {
    movable_sample<R> const& leaves = heavy.samples[i];
    auto const consider = [&](std::size_t j, resources<R> const& comes, std::int64_t bytes) {
      keep_better(best, {i, j,
                         before - excess_of(heavy.load - leaves.cost + comes, target) -
                             excess_of(light.load - comes + leaves.cost, target),
                         leaves.bytes + bytes});
    };
    consider(home_exchange::nothing, resources<R>{}, 0);
    for (std::size_t j = 0; j < light.samples.size(); j += candidate_step(light)) {
      consider(j, light.samples[j].cost, light.samples[j].bytes);
    }
  }
  return best;
}

/// Calls `body(position)` for the samples of `light` that come for one that leaves `heavy`: from
/// the largest on each that `heavy` can take, until `light` has no excess.
template <std::size_t R, class Body>
void for_each_in_return(open_rank<R> const& heavy, open_rank<R> const& light, std::size_t leaves,
                        std::int64_t target, Body const& body) {
  resources<R> from = heavy.load - heavy.samples[leaves].cost;
  resources<R> to = light.load + heavy.samples[leaves].cost;
  for (std::size_t j = 0; j != light.samples.size() && excess_of(to, target) != 0; ++j) {
    resources<R> const& comes = light.samples[j].cost;
    if (excess_of(from + comes, target) > excess_of(from, target)) continue;
    from += comes;
    to -= comes;
    body(j);
  }
}

/// The same for one kind, where those that are too large for all room are skipped at once.
template <class Body>
void for_each_in_return(open_rank<1> const& heavy, open_rank<1> const& light, std::size_t leaves,
                        std::int64_t target, Body const& body) {
  std::int64_t const cost = heavy.samples[leaves].cost[0];
  std::int64_t owed = light.load[0] + cost - target;
  if (owed <= 0) return;
  std::int64_t room = std::max<std::int64_t>(0, target - (heavy.load[0] - cost));
  auto const first = light.samples.begin();
  auto at = std::partition_point(first, light.samples.end(),
                                 [room](auto const& sample) { return sample.cost[0] > room; });
  for (; at != light.samples.end() && owed > 0; ++at) {
    if (at->cost[0] > room) continue;
    room -= at->cost[0];
    owed -= at->cost[0];
    body(static_cast<std::size_t>(at - first));
  }
}

/// The best exchange of one of evenly spaced samples of `heavy` against as many of `light` as it
/// takes, or `best` where none is better.
template <std::size_t R>
[[nodiscard]] home_exchange best_set_exchange(open_rank<R> const& heavy, open_rank<R> const& light,
                                              std::int64_t target, home_exchange best) {
  std::int64_t const before = excess_of(heavy.load, target) + excess_of(light.load, target);
  for (std::size_t i = 0; i < heavy.samples.size(); i += candidate_step(heavy)) {
    movable_sample<R> const& leaves = heavy.samples[i];
    home_exchange found{i, home_exchange::several, before, leaves.bytes};
    // With one kind only what leaves lowers the excess, and what there is room for.
    if constexpr (R == 1) {
      found.relief = std::min({before, leaves.cost[0], target - light.load[0]});
    }
    if (!found.is_better_than(best)) continue;
    resources<R> from = heavy.load - leaves.cost;
    resources<R> to = light.load + leaves.cost;
    for_each_in_return(heavy, light, i, target, [&](std::size_t j) {
      from += light.samples[j].cost;
      to -= light.samples[j].cost;
      found.bytes += light.samples[j].bytes;
    });
    found.relief = before - excess_of(from, target) - excess_of(to, target);
    keep_better(best, found);
  }
  return best;
}

}  // namespace omnibal::inline v0::detail
