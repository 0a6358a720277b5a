// SPDX-License-Identifier: Apache-2.0
#pragma once

// Different numbers of values of every rank, for the test bodies of communicators.

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/detail/padded_gather.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <vector>

namespace test {

/// The values of all ranks, a row for each.
template <class Comm, class Values>
[[nodiscard]] auto gathered_rows(Comm& comm, Values const& values) {
  auto const own = omnibal::detail::values_of(values);
  std::vector<std::uint64_t> const counts =
      omnibal::all_gather(comm, static_cast<std::uint64_t>(own.size()));
  omnibal::ragged<std::ranges::range_value_t<Values const>> result;
  omnibal::detail::padded_gather().run(comm, own, counts, result);
  return result;
}

/// What the other ranks send to this one, a row for each: of `values` the first `sent[0]` go to
/// rank 0, the next `sent[1]` to rank 1; `received` has the number of values of each row.
template <class Comm, class T>
[[nodiscard]] auto exchanged_rows(Comm& comm, std::vector<T> const& values,
                                  std::vector<std::uint64_t> sent,
                                  std::vector<std::uint64_t> received) {
  omnibal::ragged<T> result;
  result.shape(received);
  for (std::uint64_t& count : sent) count *= sizeof(T);
  for (std::uint64_t& count : received) count *= sizeof(T);
  comm.all_to_all_v(std::as_bytes(std::span(values)), std::span<std::uint64_t const>(sent),
                    std::as_writable_bytes(result.values()),
                    std::span<std::uint64_t const>(received));
  return result;
}

}  // namespace test
