// SPDX-License-Identifier: Apache-2.0
#pragma once

// What parts must satisfy, and the best ones by trying all.

#include "samples.hpp"

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace test {

template <std::size_t R>
using cost_vectors = std::vector<omnibal::resources<R>>;

/// The first resource as a cost.
inline constexpr auto first_amount = [](auto const& amounts) { return amounts[0]; };

/// What is wrong with parts of so many samples; empty where nothing is.
inline std::string parts_fault(omnibal::groups_argument result, std::size_t samples,
                               std::size_t parts,
                               omnibal::count_policy policy = omnibal::count_policy::any) {
  if (result.size() != parts) return "there are " + std::to_string(result.size()) + " parts";
  std::vector<std::uint8_t> seen(samples, 0);
  for (std::uint32_t const item : result.items()) {
    if (item >= samples) return std::to_string(item) + " is not an index";
    if (seen[item]++ != 0) return "sample " + std::to_string(item) + " is in two places";
  }
  if (result.item_count() != samples) return "samples are lost";
  std::size_t least = samples;
  std::size_t most = 0;
  for (std::size_t p = 0; p != parts; ++p) {
    least = std::min(least, result[p].size());
    most = std::max(most, result[p].size());
  }
  if (policy == omnibal::count_policy::equal && most != least) return "counts differ";
  if (policy == omnibal::count_policy::at_most_one_apart && most > least + 1) {
    return "counts differ by more than one";
  }
  return "";
}

/// True where every part has its samples by ascending index.
inline bool is_ascending(omnibal::groups_argument parts) {
  for (std::size_t p = 0; p != parts.size(); ++p) {
    if (!std::is_sorted(parts[p].begin(), parts[p].end())) return false;
  }
  return true;
}

/// The largest load of the parts, for each resource.
template <std::size_t R>
omnibal::resources<R> largest_loads(omnibal::groups_argument parts, cost_vectors<R> const& costs) {
  omnibal::resources<R> result{};
  for (std::size_t p = 0; p != parts.size(); ++p) {
    omnibal::resources<R> load{};
    for (std::uint32_t const item : parts[p]) load += costs[item];
    for (std::size_t r = 0; r != R; ++r) result[r] = std::max(result[r], load[r]);
  }
  return result;
}

template <std::size_t R>
omnibal::resources<R> sum_of_costs(cost_vectors<R> const& costs) {
  omnibal::resources<R> sum{};
  for (auto const& cost : costs) sum += cost;
  return sum;
}

/// The largest share of the sum of a resource that a part has.
template <std::size_t R>
double largest_share(omnibal::groups_argument parts, cost_vectors<R> const& costs) {
  auto const sum = sum_of_costs(costs);
  auto const largest = largest_loads(parts, costs);
  double result = 0;
  for (std::size_t r = 0; r != R; ++r) {
    if (sum[r] == 0) continue;
    result = std::max(result, static_cast<double>(largest[r]) / static_cast<double>(sum[r]));
  }
  return result;
}

/// The mean load or the largest cost of the first resource, whichever is larger.
template <std::size_t R>
double mean_or_largest(cost_vectors<R> const& costs, std::size_t parts) {
  double largest = 0;
  for (auto const& cost : costs) largest = std::max(largest, static_cast<double>(cost[0]));
  return std::max(largest,
                  static_cast<double>(sum_of_costs(costs)[0]) / static_cast<double>(parts));
}

/// The least `largest_share` under a policy, by trying all parts; for seven samples or fewer.
template <std::size_t R>
double min_largest_share(cost_vectors<R> const& costs, std::size_t parts,
                         omnibal::count_policy policy = omnibal::count_policy::any) {
  std::vector<std::size_t> part_of(costs.size(), 0);
  double least = 2;
  for (;;) {
    omnibal::grouping tried;
    for (std::size_t p = 0; p != parts; ++p) {
      for (std::size_t i = 0; i != costs.size(); ++i) {
        if (part_of[i] == p) tried.push(static_cast<std::uint32_t>(i));
      }
      tried.close();
    }
    if (parts_fault(tried, costs.size(), parts, policy).empty()) {
      least = std::min(least, largest_share(tried, costs));
    }
    std::size_t i = 0;
    while (i != costs.size() && ++part_of[i] == parts) part_of[i++] = 0;
    if (i == costs.size()) return least;
  }
}

/// The small sets, and the same with costs of about 2^40 and 2^52 and noise.
template <std::size_t R>
std::vector<sample_set<R>> cost_sets(std::uint64_t seed, std::size_t count) {
  std::vector<sample_set<R>> sets = small_sets<R>(seed, count);
  std::size_t const small_count = sets.size();
  for (unsigned const shift : {28u, 40u}) {
    std::int64_t const factor = std::int64_t{1} << shift;
    for (std::size_t s = 0; s != small_count; ++s) {
      sets.push_back(scaled(sets[s], factor, factor / 16));
    }
  }
  return sets;
}

}  // namespace test
