// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Streams through the online packer, beside best-fit decreasing of the whole.

#include "samples.hpp"

#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/online_packer.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace bench {

inline constexpr std::uint64_t stream_buffers[] = {32, 256, 4096};

/// The number of groups of a stream that is flushed at its end.
[[nodiscard]] inline std::size_t stream_groups(std::vector<sample> const& samples,
                                               omnibal::resources<2> const& capacity,
                                               omnibal::online_packer_options const& options) {
  omnibal::online_packer packer(capacity, options);
  std::size_t groups = 0;
  std::uint64_t id = 0;
  for (sample const& one : samples) {
    if (packer.push(id++, images_and_tokens(one))) ++groups;
  }
  while (packer.flush()) ++groups;
  return groups;
}

/// Counters: how full the groups are in the resource that fills them most, offline and online, and
/// by how many percent the groups of the stream exceed those of best-fit decreasing: with several
/// buffers, and with a buffer of 256 and other candidates.
inline void count_stream_groups(benchmark::State& state, std::vector<sample> const& samples,
                                omnibal::resources<2> const& capacity) {
  omnibal::resources<2> taken{};
  for (sample const& one : samples) {
    auto const demand = images_and_tokens(one);
    if (demand.fits(capacity)) taken += demand;
  }
  double most = 0;
  for (std::size_t r = 0; r != 2; ++r) {
    most = std::max(most, static_cast<double>(taken[r]) / static_cast<double>(capacity[r]));
  }
  for (auto _ : state) {
    auto const offline = static_cast<double>(
        omnibal::best_packing(samples, images_and_tokens, capacity).groups.size());
    auto const percent = [&](double online) { return 100 * (online / offline - 1); };
    state.counters["utilization_offline"] = most / offline;
    for (std::uint64_t const buffer : stream_buffers) {
      auto const online = static_cast<double>(stream_groups(samples, capacity, {.buffer = buffer}));
      state.counters["utilization_" + std::to_string(buffer)] = most / online;
      state.counters["percent_" + std::to_string(buffer)] = percent(online);
    }
    for (std::uint64_t const candidates : {std::uint64_t{1}, std::uint64_t{16}}) {
      auto const online =
          static_cast<double>(stream_groups(samples, capacity, {.candidates = candidates}));
      state.counters["percent_with_candidates_" + std::to_string(candidates)] = percent(online);
    }
  }
}

}  // namespace bench
