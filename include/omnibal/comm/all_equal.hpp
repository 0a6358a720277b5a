#pragma once

/// \file
/// Whether all ranks have the same value.

#include <omnibal/comm/all_gather.hpp>
#include <omnibal/comm/communicator.hpp>

#include <algorithm>
#include <concepts>
#include <vector>

namespace omnibal::inline v0 {

struct all_equal_fn {
  /// True on all ranks where all have equal values, such as the digest of a plan, and false on all
  /// ranks otherwise.
  ///
  /// A collective call. Complexity: one collective. Memory: a value per rank. Errors: those of the
  /// communicator.
  template <communicator Comm, wire_value Value>
    requires std::equality_comparable<Value>
  [[nodiscard]] bool operator()(Comm&& comm, Value const& value) const {
    Value const one[] = {value};
    std::vector<Value> const all = all_gather(comm, one);
    return std::all_of(all.begin(), all.end(), [&](Value const& other) { return other == all[0]; });
  }
};

/// Whether all ranks have equal values; see `all_equal_fn`.
inline constexpr all_equal_fn all_equal{};

}  // namespace omnibal::inline v0
