// SPDX-License-Identifier: Apache-2.0
#pragma once

// The fewest groups and the most even parts by trying all of them.

#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace test {

/// The fewest sets that together have all elements, of those that are allowed: bit i of the index
/// of a set says whether it has element i. Every set of one element counts as allowed.
inline std::size_t min_sets(std::vector<std::uint8_t> const& is_allowed) {
  std::vector<std::size_t> fewest(is_allowed.size(), 0);
  for (std::size_t set = 1; set != is_allowed.size(); ++set) {
    std::size_t const first = set & (~set + 1);
    fewest[set] = fewest[set ^ first] + 1;
    for (std::size_t group = set; group != 0; group = (group - 1) & set) {
      if ((group & first) == 0 || is_allowed[group] == 0) continue;
      fewest[set] = std::min(fewest[set], fewest[set ^ group] + 1);
    }
  }
  return fewest.back();
}

/// The fewest groups for the samples that fit `capacity` alone; meant for ten samples or fewer.
/// Floating-point sums may exceed the capacity by their rounding.
template <std::size_t R, class T>
std::size_t min_groups(std::vector<omnibal::resources<R, T>> samples,
                       omnibal::resources<R, T> capacity) {
  std::erase_if(samples, [&](auto const& sample) { return !sample.fits(capacity); });
  if constexpr (std::floating_point<T>) {
    for (T& limit : capacity.amounts) limit *= 1 + 64 * std::numeric_limits<T>::epsilon();
  }
  std::size_t const sets = std::size_t{1} << samples.size();
  std::vector<std::uint8_t> fits(sets);
  for (std::size_t set = 0; set != sets; ++set) {
    auto room = capacity;
    bool all = true;
    for (std::size_t i = 0; i != samples.size() && all; ++i) {
      if ((set >> i & 1) == 0) continue;
      all = samples[i].fits(room);
      if (all) room -= samples[i];
    }
    fits[set] = all;
  }
  return min_sets(fits);
}

/// The least `largest value of a set` of all ways to make `parts` sets, empty ones included, of all
/// elements; `value[set]` is that of a set, and sets that are not allowed have `none`, which is the
/// largest value of all and the result where there is no way. Sets are as in `min_sets`.
template <class Value>
Value min_largest_value(std::vector<Value> const& value, std::size_t parts, Value none) {
  std::vector<Value> least = value;
  for (std::size_t part = 1; part < parts; ++part) {
    std::vector<Value> next(value.size(), none);
    for (std::size_t set = 0; set != value.size(); ++set) {
      for (std::size_t taken = set;; taken = (taken - 1) & set) {
        if (least[set ^ taken] < next[set] && value[taken] < next[set]) {
          next[set] = std::max(least[set ^ taken], value[taken]);
        }
        if (taken == 0) break;
      }
    }
    least = std::move(next);
  }
  return least.back();
}

}  // namespace test
