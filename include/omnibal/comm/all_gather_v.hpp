#pragma once

/// \file
/// Any number of values of every rank.

#include <omnibal/comm/all_gather.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/detail/padded_gather.hpp>

#include <cstdint>
#include <ranges>
#include <vector>

namespace omnibal::inline v0 {

struct all_gather_v_fn {
  /// The values of all ranks, a row for each. Ranks may give different numbers, also none.
  ///
  /// A collective call. Complexity: two collectives, the counts and then blocks that are padded to
  /// the largest count. Memory: the result and, where counts differ, those blocks. Determinism:
  /// portable among equal ranks. Errors: those of the communicator.
  template <communicator Comm, wire_range Values>
  [[nodiscard]] auto operator()(Comm&& comm, Values const& values) const {
    auto const own = detail::values_of(values);
    std::vector<std::uint64_t> const counts =
        all_gather(comm, static_cast<std::uint64_t>(own.size()));
    ragged<std::ranges::range_value_t<Values const>> result;
    detail::padded_gather().run(comm, own, counts, result);
    return result;
  }
};

/// The values of all ranks, a row for each; see `all_gather_v_fn`.
inline constexpr all_gather_v_fn all_gather_v{};

}  // namespace omnibal::inline v0
