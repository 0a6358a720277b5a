// SPDX-License-Identifier: Apache-2.0
#pragma once

// Streams through an online packer, and what must hold of them.

#include <omnibal/pack/online_packer.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace test {

/// One group that left: after how many pushes, which samples, their load.
template <std::size_t R, class T>
struct left_group {
  std::uint64_t pushes;
  std::vector<std::uint64_t> ids;
  omnibal::resources<R, T> load;

  friend bool operator==(left_group const&, left_group const&) = default;
};

/// Everything that came out of a packer.
template <std::size_t R, class T>
struct stream_output {
  std::vector<left_group<R, T>> groups;
  std::vector<std::uint64_t> oversized;

  friend bool operator==(stream_output const&, stream_output const&) = default;
};

/// Pushes the samples from `first` to `last` with their indices as ids.
template <std::size_t R, class T>
void push_all(omnibal::online_packer<R, T>& packer,
              std::vector<omnibal::resources<R, T>> const& samples, std::size_t first,
              std::size_t last, stream_output<R, T>& output) {
  for (std::size_t i = first; i != last; ++i) {
    auto const result = packer.push(i, samples[i]);
    if (result.oversized) output.oversized.push_back(i);
    if (result) output.groups.push_back({i, {result.ids.begin(), result.ids.end()}, result.load});
  }
}

template <std::size_t R, class T>
void flush_all(omnibal::online_packer<R, T>& packer, std::size_t pushes,
               stream_output<R, T>& output) {
  while (auto const result = packer.flush()) {
    output.groups.push_back({pushes, {result.ids.begin(), result.ids.end()}, result.load});
  }
}

template <std::size_t R, class T>
stream_output<R, T> run_stream(omnibal::online_packer<R, T> packer,
                               std::vector<omnibal::resources<R, T>> const& samples) {
  stream_output<R, T> output;
  push_all(packer, samples, 0, samples.size(), output);
  flush_all(packer, samples.size(), output);
  return output;
}

/// What is wrong with the groups of a stream that was flushed at its end; empty where nothing is.
template <std::size_t R, class T>
std::string stream_fault(stream_output<R, T> const& output,
                         std::vector<omnibal::resources<R, T>> const& samples,
                         omnibal::resources<R, T> const& capacity,
                         omnibal::online_packer_options const& options) {
  std::vector<std::uint8_t> seen(samples.size(), 0);
  std::uint64_t taken = 0;
  std::vector<std::uint64_t> groups_before(samples.size() + 1, 0);
  for (auto const& group : output.groups) ++groups_before[group.pushes];
  for (std::size_t i = 0, sum = 0; i != groups_before.size(); ++i) {
    sum += groups_before[i];
    groups_before[i] = sum;
  }
  for (std::size_t g = 0; g != output.groups.size(); ++g) {
    auto const& group = output.groups[g];
    std::string const name = "group " + std::to_string(g);
    omnibal::resources<R, T> load{};
    for (std::uint64_t const id : group.ids) {
      std::string const sample = "sample " + std::to_string(id);
      if (id >= samples.size() || seen[id]++ != 0) return sample + " is in two places";
      if constexpr (std::integral<T>) {
        if (!samples[id].fits(capacity - load)) return name + " is over the capacity";
      }
      load += samples[id];
      if (group.pushes < id || group.pushes - id > options.longest_wait) {
        return sample + " waited for too long";
      }
      if (g + 1 > groups_before[id] + options.buffer) {
        return sample + " saw too many groups leave";
      }
    }
    if (!load.fits(capacity)) return name + " is over the capacity";
    if (!(load == group.load)) return name + " has another load";
    taken += group.ids.size();
  }
  for (std::uint64_t const id : output.oversized) {
    if (id >= samples.size() || seen[id]++ != 0) return "an oversized sample is in two places";
    if (samples[id].fits(capacity)) return "a sample that fits is oversized";
    ++taken;
  }
  return taken == samples.size() ? "" : "samples are lost";
}

}  // namespace test
