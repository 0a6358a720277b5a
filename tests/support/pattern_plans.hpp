// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Histograms and their plans in tests.

#include <omnibal/pack/pattern_plan.hpp>
#include <omnibal/pack/sample_histogram.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace test {

/// What is wrong with a plan of a histogram, empty if nothing is.
template <std::size_t R>
std::string plan_fault(omnibal::pattern_plan<R> const& plan,
                       omnibal::sample_histogram<R> const& histogram,
                       omnibal::resources<R> const& capacity) {
  if (plan.histogram != histogram) return "another histogram";
  auto const entries = histogram.entries();
  std::vector<std::uint64_t> packed(entries.size(), 0);
  std::uint64_t groups = 0;
  if (plan.offsets.size() != plan.multiplicities.size() + 1) return "not an end for each pattern";
  if (plan.offsets.back() != plan.parts.size()) return "parts without a pattern";
  for (std::size_t p = 0; p != plan.multiplicities.size(); ++p) {
    if (plan.multiplicities[p] == 0 || plan.pattern(p).empty()) return "an empty pattern";
    groups += plan.multiplicities[p];
    omnibal::resources<R> left = capacity;
    for (auto const part : plan.pattern(p)) {
      packed[part.entry] += plan.multiplicities[p] * part.count;
      if (part.count == 0) return "an empty part";
      for (std::size_t r = 0; r != R; ++r) {
        std::int64_t const amount = entries[part.entry].demand[r];
        if (amount == 0) continue;
        if (part.count > static_cast<std::uint64_t>(left[r] / amount)) return "above the capacity";
        left[r] -= static_cast<std::int64_t>(part.count) * amount;
      }
    }
  }
  if (groups != plan.group_count) return "not the sum of the multiplicities";
  if (plan.lower_bound > groups) return "fewer groups than the bound";
  std::vector<std::uint32_t> oversized;
  for (std::uint32_t entry = 0; entry != entries.size(); ++entry) {
    bool const fits = entries[entry].demand.fits(capacity);
    if (!fits) oversized.push_back(entry);
    if (packed[entry] != (fits ? entries[entry].count : 0)) return "samples lost or doubled";
  }
  return plan.oversized == oversized ? "" : "the oversized entries are wrong";
}

/// The samples of a histogram in the order of its entries.
template <std::size_t R>
std::vector<omnibal::resources<R>> expanded(omnibal::sample_histogram<R> const& histogram) {
  std::vector<omnibal::resources<R>> samples;
  for (auto const& entry : histogram.entries()) {
    samples.insert(samples.end(), static_cast<std::size_t>(entry.count), entry.demand);
  }
  return samples;
}

/// A random histogram; `most` limits the entries, the counts and each resource.
template <std::size_t R>
omnibal::sample_histogram<R> random_histogram(omnibal::rng::engine& random, std::uint64_t entries,
                                              std::uint64_t counts,
                                              omnibal::resources<R> const& most) {
  std::vector<omnibal::demand_count<R>> result(
      static_cast<std::size_t>(omnibal::rng::below(random, entries)));
  for (auto& entry : result) {
    entry.count = 1 + omnibal::rng::below(random, counts);
    for (std::size_t r = 0; r != R; ++r) {
      entry.demand[r] = static_cast<std::int64_t>(
          omnibal::rng::below(random, static_cast<std::uint64_t>(most[r]) + 1));
    }
  }
  return omnibal::sample_histogram<R>(std::move(result));
}

}  // namespace test
