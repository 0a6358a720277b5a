// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of placements of experts, and their optimum by brute force.

#include <omnibal/experts/place_experts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace test {

/// Returns the load of the heaviest rank of one layer, computed anew.
template <class Load>
double heaviest_rank(std::span<Load const> loads, std::span<std::uint32_t const> slots,
                     std::size_t per_rank) {
  std::vector<double> copies(loads.size(), 0);
  for (std::uint32_t const expert : slots) ++copies[expert];
  double result = 0;
  for (std::size_t first = 0; first != slots.size(); first += per_rank) {
    double load = 0;
    for (std::uint32_t const expert : slots.subspan(first, per_rank)) {
      load += static_cast<double>(loads[expert]) / copies[expert];
    }
    result = std::max(result, load);
  }
  return result;
}

/// Returns the slots of one layer with an expert that the rank does not have in `old`.
inline std::size_t moved_slots(std::span<std::uint32_t const> old,
                               std::span<std::uint32_t const> slots, std::size_t per_rank) {
  std::size_t result = 0;
  for (std::size_t first = 0; first != slots.size(); first += per_rank) {
    auto const rank = old.subspan(first, per_rank);
    for (std::uint32_t const expert : slots.subspan(first, per_rank)) {
      if (std::find(rank.begin(), rank.end(), expert) == rank.end()) ++result;
    }
  }
  return result;
}

/// Returns what is wrong with a placement; empty if nothing is. `old` may be empty.
template <class Load>
std::string placement_faults(std::vector<Load> const& loads,
                             omnibal::expert_placement const& placement, std::size_t groups = 1,
                             std::size_t nodes = 1, std::span<std::uint32_t const> old = {}) {
  std::size_t const experts = loads.size() / placement.layers;
  std::size_t const count = placement.ranks * placement.slots;
  if (placement.experts.size() != placement.layers * count) return "number of slots";
  for (std::size_t l = 0; l != placement.layers; ++l) {
    std::vector<std::set<std::size_t>> nodes_of(groups);
    std::set<std::uint32_t> placed;
    for (std::size_t r = 0; r != placement.ranks; ++r) {
      auto const rank = placement(l, r);
      std::set<std::uint32_t> const own(rank.begin(), rank.end());
      if (own.size() != placement.slots) return "two copies on a rank";
      if (*own.rbegin() >= experts) return "unknown expert";
      placed.insert(own.begin(), own.end());
      for (std::uint32_t const expert : own) {
        nodes_of[expert / (experts / groups)].insert(r / (placement.ranks / nodes));
      }
    }
    if (placed.size() != experts) return "an expert without a copy";
    for (auto const& own : nodes_of) {
      if (own.size() != 1) return "a group on two nodes";
    }
    auto const slots = std::span(placement.experts).subspan(l * count, count);
    auto const own_loads = std::span(loads).subspan(l * experts, experts);
    double const largest = heaviest_rank(own_loads, slots, placement.slots);
    if (std::abs(largest - placement.largest_loads[l]) > 1e-12 * largest) return "largest load";
    if (placement.lower_bounds[l] > placement.largest_loads[l]) return "bound above largest load";
    std::size_t const moved =
        old.empty() ? 0 : moved_slots(old.subspan(l * count, count), slots, placement.slots);
    if (moved != placement.moved[l]) return "moved copies";
  }
  return "";
}

/// All placements of one layer with the experts of each rank in ascending order.
class all_placements {
 public:
  all_placements(std::size_t experts, std::size_t slots, std::size_t ranks)
      : experts_(experts), slots_(slots), ranks_(ranks) {
    std::vector<std::uint32_t> set;
    add_sets(set, 0);
  }

  /// Calls `visit` with the slots of each placement in which every expert has a copy.
  template <class Visit>
  void for_each(Visit const& visit) const {
    std::vector<std::uint32_t> slots;
    fill(slots, visit);
  }

 private:
  void add_sets(std::vector<std::uint32_t>& set, std::uint32_t first) {
    if (set.size() == slots_) return sets_.push_back(set);
    for (std::uint32_t e = first; e != experts_; ++e) {
      set.push_back(e);
      add_sets(set, e + 1);
      set.pop_back();
    }
  }

  template <class Visit>
  void fill(std::vector<std::uint32_t>& slots, Visit const& visit) const {
    if (slots.size() == slots_ * ranks_) {
      std::uint32_t placed = 0;
      for (std::uint32_t const expert : slots) placed |= 1u << expert;
      if (placed == (1u << experts_) - 1) visit(slots);
      return;
    }
    for (auto const& set : sets_) {
      slots.insert(slots.end(), set.begin(), set.end());
      fill(slots, visit);
      slots.resize(slots.size() - slots_);
    }
  }

  std::size_t experts_;
  std::size_t slots_;
  std::size_t ranks_;
  std::vector<std::vector<std::uint32_t>> sets_;
};

/// Returns the least heaviest rank of all placements with at most `max_moved` moved copies.
template <class Load>
double least_heaviest_rank(std::vector<Load> const& loads, std::size_t slots, std::size_t ranks,
                           std::span<std::uint32_t const> old = {}, std::size_t max_moved = 0) {
  double result = std::numeric_limits<double>::infinity();
  all_placements const all(loads.size(), slots, ranks);
  all.for_each([&](std::vector<std::uint32_t> const& candidate) {
    if (!old.empty() && moved_slots(old, candidate, slots) > max_moved) return;
    result = std::min(result, heaviest_rank(std::span(loads), candidate, slots));
  });
  return result;
}

}  // namespace test
