// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Collectives of values instead of bytes.

#include <omnibal/comm/communicator.hpp>

#include <algorithm>
#include <concepts>
#include <ranges>
#include <span>
#include <vector>

namespace omnibal::inline v0 {

struct all_gather_fn {
  /// Gathers the values of all ranks in the order of the ranks. The argument `value` is a value
  /// that is sent as its bytes, or an array of such values with the same number of elements on
  /// every rank. The elements of rank 0 come first in the result.
  ///
  /// A collective call: all ranks must make the call. Complexity: one collective. Allocates the
  /// result. Determinism: portable among equal ranks. Errors: the errors of the communicator, for
  /// example if ranks pass different numbers of values.
  template <communicator Comm, wire_value Value>
    requires(!wire_range<Value>)
  [[nodiscard]] std::vector<Value> operator()(Comm&& comm, Value const& value) const {
    return (*this)(comm, std::span<Value const>(&value, 1));
  }

  template <communicator Comm, wire_range Values>
  [[nodiscard]] auto operator()(Comm&& comm, Values const& values) const {
    auto const own = detail::values_of(values);
    std::vector<std::ranges::range_value_t<Values const>> result(own.size() *
                                                                 detail::rank_count(comm));
    comm.all_gather(std::as_bytes(own), std::as_writable_bytes(std::span(result)));
    return result;
  }
};

/// Gathers the values of all ranks in the order of the ranks; see `all_gather_fn`.
inline constexpr all_gather_fn all_gather{};

struct all_equal_fn {
  /// Returns true on all ranks if all ranks pass equal values, such as the digest of a plan.
  /// Returns false on all ranks otherwise.
  ///
  /// A collective call. Complexity: one collective. Memory: a value per rank. Errors: the errors of
  /// the communicator.
  template <communicator Comm, wire_value Value>
    requires std::equality_comparable<Value>
  [[nodiscard]] bool operator()(Comm&& comm, Value const& value) const {
    Value const one[] = {value};
    std::vector<Value> const all = all_gather(comm, one);
    return std::all_of(all.begin(), all.end(), [&](Value const& other) { return other == all[0]; });
  }
};

/// Compares the values of all ranks and returns whether all are equal; see `all_equal_fn`.
inline constexpr all_equal_fn all_equal{};

}  // namespace omnibal::inline v0
