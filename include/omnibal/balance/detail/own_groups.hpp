// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups of their own for samples that exceed a capacity, for balancers under a capacity.

#include <omnibal/check.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/pack/place_oversized.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Throws for a policy other than `own_group` and `reject`. The results of balancers have no list
/// of oversized samples.
inline void check_oversized(std::string_view function, oversize_policy policy) {
  if (policy == oversize_policy::own_group || policy == oversize_policy::reject) return;
  throw_invalid(function, "options.oversized is ",
                policy == oversize_policy::list ? "list" : "no policy",
                ", must be own_group or reject");
}

/// Oversized samples as samples that fill a group. Balancers then place each of them in a group of
/// its own, except for samples without a demand, which `separate` moves.
class own_groups {
 public:
  /// Gives each oversized sample of `input` the demand of a full group. Afterwards, the numbers of
  /// samples in `input` are their indices.
  template <class Layout>
  explicit own_groups(measured<Layout>& input)
      : samples_(std::move(input.oversized)), bound_(measured_bound(input) + samples_.size()) {
    input.oversized.clear();
    if (samples_.empty()) return;
    auto const full = input.layout.encode(input.capacity);
    if (!input.demands.empty()) keep_apart(input, full);
    std::vector<typename Layout::demand_type> demands;
    demands.reserve(input.size() + samples_.size());
    auto fitting = input.demands.cbegin();
    auto oversized = samples_.cbegin();
    while (fitting != input.demands.cend() || oversized != samples_.cend()) {
      bool const is_oversized = oversized != samples_.cend() && *oversized == demands.size();
      demands.push_back(is_oversized ? full : *fitting);
      if (is_oversized) {
        ++oversized;
      } else {
        ++fitting;
      }
    }
    input.demands = std::move(demands);
  }

  [[nodiscard]] bool is_empty() const { return samples_.empty(); }
  /// Returns a lower bound on the number of groups, including the groups of oversized samples.
  [[nodiscard]] std::size_t bound() const { return bound_; }

  /// Moves samples without a demand from the groups of oversized samples to other groups, always to
  /// the group with the smallest cost. Complexity: linear, and a logarithm for each moved sample.
  void separate(std::vector<std::uint32_t>& part_of, std::size_t parts,
                integer_costs<1> const& costs) const {
    if (samples_.empty()) return;
    constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> owner_of(parts, none);
    for (std::uint32_t const sample : samples_) owner_of[part_of[sample]] = sample;
    std::vector<std::int64_t> loads(parts, 0);
    std::vector<std::uint32_t> guests;
    for (std::uint32_t i = 0; i != part_of.size(); ++i) {
      std::uint32_t const owner = owner_of[part_of[i]];
      if (owner != none && owner != i) guests.push_back(i);
      loads[part_of[i]] += costs[i][0];
    }
    if (guests.empty()) return;
    using loaded_part = std::pair<std::int64_t, std::uint32_t>;
    std::priority_queue<loaded_part, std::vector<loaded_part>, std::greater<>> others;
    for (std::uint32_t part = 0; part != parts; ++part) {
      if (owner_of[part] == none) others.push({loads[part], part});
    }
    std::stable_sort(guests.begin(), guests.end(), [&costs](std::uint32_t one, std::uint32_t two) {
      return costs[one][0] > costs[two][0];
    });
    for (std::uint32_t const guest : guests) {
      auto const [load, part] = others.top();
      others.pop();
      part_of[guest] = part;
      others.push({load + costs[guest][0], part});
    }
  }

 private:
  /// Changes demands so that no oversized sample shares its group with a sample that has a demand,
  /// and so that one group remains for samples without a demand.
  template <class Layout>
  static void keep_apart(measured<Layout>& input, typename Layout::demand_type const& full) {
    using weight_type = typename Layout::amounts_type::value_type;
    if constexpr (std::integral<weight_type>) {
      typename Layout::amounts_type const nothing{};
      bool const has_demand =
          std::any_of(input.demands.begin(), input.demands.end(),
                      [&](auto const& of) { return input.layout.amounts(of) != nothing; });
      if (!has_demand) input.demands.front() = full;
    } else {
      // A sum with the capacity rounds smaller demands away, also if they are not zero.
      weight_type const limit = input.capacity[0];
      weight_type const least = std::min(limit, 2 * (limit - std::nextafter(limit, weight_type{})));
      auto room = input.layout.empty_room();
      input.layout.take(room, full);
      for (auto& demand : input.demands) {
        if (input.layout.fits(room, demand)) demand[0] = least;
      }
    }
  }

  std::vector<std::uint32_t> samples_;
  std::size_t bound_;
};

}  // namespace omnibal::inline v0::detail
