// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchanges that are timed: most samples move.

#include "device_program.hpp"

#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace bench {

/// `rows` samples on each rank, dealt in turn to all parts but one. A plan keeps at home what it
/// can, so that about one in `ranks - 1` does not move.
inline omnibal::exchange_plan plan_of_moves(std::size_t ranks, std::uint32_t rows) {
  std::vector<std::uint32_t> offsets;
  for (std::size_t rank = 0; rank <= ranks; ++rank) {
    offsets.push_back(static_cast<std::uint32_t>(rank) * rows);
  }
  std::vector<std::int64_t> const ones(ranks * rows, 1);
  auto const spread = [&](auto const&, std::size_t parts, auto const&) {
    omnibal::grouping result;
    for (std::size_t part = 0; part != parts; ++part) {
      for (std::uint32_t i = 0; i != ones.size(); ++i) {
        if ((i / rows + 1 + i % (parts - 1)) % parts == part) result.push(i);
      }
      result.close();
    }
    return result;
  };
  return omnibal::make_plan(offsets, ones, ones, {}, spread);
}

/// The bytes that a rank sends to each other one and gets from it, and those that stay.
struct traffic {
  std::vector<std::uint64_t> sent;
  std::vector<std::uint64_t> received;
  std::uint64_t kept = 0;

  traffic(omnibal::exchange_plan const& plan, std::size_t rank, std::size_t row_bytes)
      : sent(plan.ranks()), received(plan.ranks()) {
    auto const sends = plan.sends(rank);
    for (std::size_t peer = 0; peer != sent.size(); ++peer) {
      if (peer != rank) sent[peer] = sends[peer].size() * row_bytes;
    }
    for (std::uint32_t const sample : plan.arrivals(rank)) {
      std::size_t const home = plan.home_of(sample);
      (home == rank ? kept : received[home]) += row_bytes;
    }
  }

  /// What leaves, what comes and what stays: each is copied once.
  [[nodiscard]] std::uint64_t copied() const {
    return std::accumulate(sent.begin(), sent.end(), kept) +
           std::accumulate(received.begin(), received.end(), std::uint64_t{0});
  }
};

[[nodiscard]] inline std::size_t bytes_to_move() {
  return std::size_t{test::is_small() ? 16u : 256u} << 20;
}

}  // namespace bench
