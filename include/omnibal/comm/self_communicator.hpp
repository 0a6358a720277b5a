// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A communicator of one rank.

#include <omnibal/detail/agreement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace omnibal::inline v0 {

/// The communicator of a program without other ranks, which copies sent bytes back to the caller.
/// Models `exchanging_communicator`. Complexity: linear in the bytes. Allocates nothing.
/// Determinism: portable. Errors: `std::invalid_argument` if sizes do not match.
class self_communicator {
 public:
  [[nodiscard]] static constexpr std::size_t rank() { return 0; }
  [[nodiscard]] static constexpr std::size_t size() { return 1; }

  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) const {
    detail::check_size("self_communicator::all_gather", "the size of out", out.size(), in.size());
    std::copy(in.begin(), in.end(), out.begin());
  }

  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) const {
    constexpr std::string_view name = "self_communicator::all_to_all_v";
    detail::check_counts(name, "send counts", send_counts, 1, in.size());
    detail::check_counts(name, "receive counts", receive_counts, 1, out.size());
    detail::check_size(name, "the size of out", out.size(), in.size());
    std::copy(in.begin(), in.end(), out.begin());
  }
};

}  // namespace omnibal::inline v0
