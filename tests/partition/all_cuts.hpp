// SPDX-License-Identifier: Apache-2.0
#pragma once

// All ways to cut a short chain, and what must hold of the stages that a constraint allows.

#include <omnibal/partition/partition_layers_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace test {

using cuts = std::vector<std::uint32_t>;

/// Calls `visit` with all boundaries of so many layers and stages, in lexicographic order.
template <class Visit>
void for_all_cuts(std::size_t layers, std::size_t stages, omnibal::empty_stages empty,
                  Visit const& visit) {
  std::uint32_t const fewest = empty == omnibal::empty_stages::allowed ? 0 : 1;
  cuts boundaries(stages + 1, 0);
  boundaries[stages] = static_cast<std::uint32_t>(layers);
  auto const place = [&](auto const& self, std::size_t s) -> void {
    if (s == stages) {
      if (boundaries[s - 1] + fewest <= boundaries[s]) visit(boundaries);
      return;
    }
    for (std::uint32_t i = boundaries[s - 1] + fewest; i <= layers; ++i) {
      boundaries[s] = i;
      self(self, s + 1);
    }
  };
  place(place, 1);
}

template <class T>
T value_for(std::span<T const> list, std::size_t stage) {
  return list.size() == 1 ? list[0] : list[stage];
}

/// The bytes of the layers [first, last).
inline std::int64_t bytes_of(omnibal::partition_constraints const& constraints, std::size_t first,
                             std::size_t last) {
  std::int64_t sum = 0;
  for (std::size_t l = first; l != last; ++l) sum += constraints.bytes.values()[l];
  return sum;
}

/// Whether the boundaries satisfy everything but the memory.
inline bool obeys_rules(cuts const& boundaries, omnibal::partition_constraints const& constraints) {
  std::size_t const stages = boundaries.size() - 1;
  for (std::size_t s = 0; s != stages; ++s) {
    auto const length = static_cast<std::int64_t>(boundaries[s + 1] - boundaries[s]);
    auto const least = constraints.min_layers.values();
    auto const most = constraints.max_layers.values();
    if (length != 0 && !least.empty() && length < value_for(least, s)) return false;
    if (!most.empty() && length > value_for(most, s)) return false;
    for (std::uint32_t const cut : constraints.forbidden_cuts) {
      if (s != 0 && boundaries[s] == cut) return false;
    }
    for (auto const& tie : constraints.tied) {
      if (tie.first < boundaries[s] && boundaries[s] <= tie.last) return false;
    }
  }
  for (auto const& pin : constraints.pinned) {
    if (pin.layer < boundaries[pin.stage] || pin.layer >= boundaries[pin.stage + 1]) return false;
  }
  return true;
}

/// The most that any device lacks; not positive where all have enough.
inline std::int64_t missing_bytes(cuts const& boundaries,
                                  omnibal::partition_constraints const& constraints) {
  if (constraints.capacity.empty()) return 0;
  std::size_t const stages = boundaries.size() - 1;
  std::size_t const devices = constraints.devices == 0 ? stages : constraints.devices;
  std::vector<std::int64_t> missing(devices);
  for (std::size_t d = 0; d != devices; ++d) {
    missing[d] = -value_for(constraints.capacity.values(), d);
  }
  for (std::size_t s = 0; s != stages; ++s) {
    missing[s % devices] += bytes_of(constraints, boundaries[s], boundaries[s + 1]);
  }
  return *std::max_element(missing.begin(), missing.end());
}

/// The best boundaries by trying all of them.
template <class Value>
struct best_cuts {
  bool found = false;
  Value value{};
  cuts boundaries;

  /// To be called with the boundaries in lexicographic order.
  void offer(Value const& other, cuts const& with) {
    if (found && !(other < value)) return;
    found = true;
    value = other;
    boundaries = with;
  }
};

}  // namespace test
