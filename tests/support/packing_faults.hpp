// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every packing must satisfy.

#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace test {

/// What is wrong with a packing of samples with these demands; empty where nothing is. Groups of
/// floating-point demands may exceed the capacity by what depends on the order of summation.
template <std::size_t R, class T>
std::string fault(omnibal::packing const& result,
                  std::vector<omnibal::resources<R, T>> const& demands,
                  omnibal::resources<R, T> const& capacity) {
  auto limit = capacity;
  if constexpr (std::floating_point<T>) {
    for (T& amount : limit.amounts) amount *= T{1} + T{1e-12};
  }
  std::vector<std::uint8_t> seen(demands.size(), 0);
  for (std::size_t g = 0; g != result.groups.size(); ++g) {
    if (result.groups[g].empty()) return "group " + std::to_string(g) + " is empty";
    auto room = limit;
    for (std::uint32_t const item : result.groups[g]) {
      if (item >= demands.size()) return std::to_string(item) + " is not an index";
      if (seen[item]++ != 0) return "sample " + std::to_string(item) + " is in two places";
      if (!demands[item].fits(room)) return "group " + std::to_string(g) + " is over the capacity";
      room -= demands[item];
    }
  }
  std::size_t next = 0;
  for (std::uint32_t i = 0; i != demands.size(); ++i) {
    bool const oversized = !demands[i].fits(capacity);
    bool const listed = next != result.oversized.size() && result.oversized[next] == i;
    if (listed) ++next;
    if (oversized != listed || oversized == (seen[i] != 0)) {
      return "sample " + std::to_string(i) + " is " + (oversized ? "" : "not ") +
             "oversized, and lost or listed wrongly";
    }
  }
  if (next != result.oversized.size()) return "the oversized samples are not ascending";

  auto const& report = result.report;
  std::size_t const packed = result.groups.item_count();
  if (report.lower_bound > result.groups.size()) return "the lower bound is above the groups";
  if ((report.lower_bound == 0) != (packed == 0)) return "the lower bound is not positive";
  if (report.below_keep > result.groups.size()) return "more groups below the rule than groups";
  if (report.item_rounds < packed) return "fewer item-rounds than samples";
  if (report.item_rounds > report.rounds * packed) return "too many item-rounds";
  return {};
}

}  // namespace test
