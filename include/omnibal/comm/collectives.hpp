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
  /// The values of all ranks, by rank. `value` is a value that travels as its bytes, or an array of
  /// them that has as many on every rank; those of rank 0 come first then.
  ///
  /// A collective call: all ranks make it. Complexity: one collective. Allocates the result.
  /// Determinism: portable among equal ranks. Errors: those of the communicator, among them
  /// different numbers of values.
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

/// The values of all ranks; see `all_gather_fn`.
inline constexpr all_gather_fn all_gather{};

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
