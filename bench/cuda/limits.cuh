// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What a device can do at best: copy, read, sort.

#include "timing.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cuda_runtime_api.h>

namespace bench {

/// Copies so many bytes within the device.
[[nodiscard]] inline limit time_copy(stopwatch& watch, std::size_t bytes, std::string name) {
  auto const exec = omnibal::gpu::on(watch.stream());
  omnibal::gpu::device_array<std::byte> const from(exec, bytes);
  omnibal::gpu::device_array<std::byte> const to(exec, bytes);
  omnibal::gpu::check(cudaMemsetAsync(from.data(), 1, bytes, watch.stream()));
  return {std::move(name), watch.median([&] {
            omnibal::gpu::check(cudaMemcpyAsync(to.data(), from.data(), bytes,
                                                cudaMemcpyDeviceToDevice, watch.stream()));
          })};
}

/// The time that so many bytes take at the bandwidth of a large copy, which reads and writes: no
/// work that must read or write them can take less.
[[nodiscard]] inline limit time_at_bandwidth(stopwatch& watch, std::size_t bytes) {
  static double const microseconds_per_byte = [&] {
    std::size_t const copied = sized(std::size_t{1} << 29);
    return time_copy(watch, copied, {}).microseconds / static_cast<double>(2 * copied);
  }();
  return {std::to_string(bytes / 1'000) + " KB at a copy's speed",
          static_cast<double>(bytes) * microseconds_per_byte};
}

/// Prints how long `work()` takes with what it reads in the cache of the device and without, beside
/// the time of the bytes that it must read and write at least.
template <class Work>
void time_hot_and_cold(stopwatch& watch, std::string const& name, std::size_t bytes,
                       Work const& work) {
  limit const best = time_at_bandwidth(watch, bytes);
  print_time(name + ", hot", watch.median(work), best);
  print_time(name + ", cold", watch.median_cold(work), best);
}

/// Reads so many bytes: CUB's sum of 64-bit words.
[[nodiscard]] inline limit time_read(stopwatch& watch, std::size_t bytes, std::string name) {
  auto const exec = omnibal::gpu::on(watch.stream());
  auto const count = static_cast<std::uint32_t>(bytes / sizeof(std::uint64_t));
  omnibal::gpu::device_array<std::uint64_t> const words(exec, count);
  omnibal::gpu::device_array<std::uint64_t> const sum(exec, 1);
  omnibal::gpu::check(
      cudaMemsetAsync(words.data(), 1, count * sizeof(std::uint64_t), watch.stream()));
  std::size_t scratch_bytes = 0;
  omnibal::gpu::check(cub::DeviceReduce::Sum(nullptr, scratch_bytes, words.data(), sum.data(),
                                             count, watch.stream()));
  omnibal::gpu::device_array<std::byte> const scratch(exec, scratch_bytes);
  return {std::move(name), watch.median([&] {
            omnibal::gpu::check(cub::DeviceReduce::Sum(scratch.data(), scratch_bytes, words.data(),
                                                       sum.data(), count, watch.stream()));
          })};
}

/// CUB's radix sort of these keys with 32-bit values.
template <class Key>
[[nodiscard]] limit time_sort(stopwatch& watch, omnibal::gpu::device_span<Key const> keys,
                              std::string name) {
  auto const exec = omnibal::gpu::on(watch.stream());
  auto const count = static_cast<std::uint32_t>(keys.size());
  omnibal::gpu::device_array<Key> const sorted(exec, count);
  omnibal::gpu::device_array<std::uint32_t> const values(exec, count);
  omnibal::gpu::device_array<std::uint32_t> const moved(exec, count);
  omnibal::gpu::check(
      cudaMemsetAsync(values.data(), 0, count * sizeof(std::uint32_t), watch.stream()));
  auto const sort = [&](void* scratch, std::size_t& bytes) {
    omnibal::gpu::check(cub::DeviceRadixSort::SortPairs(
        scratch, bytes, keys.data(), sorted.data(), values.data(), moved.data(), count, 0,
        static_cast<int>(8 * sizeof(Key)), watch.stream()));
  };
  std::size_t bytes = 0;
  sort(nullptr, bytes);
  omnibal::gpu::device_array<std::byte> const scratch(exec, bytes);
  return {std::move(name), watch.median([&] { sort(scratch.data(), bytes); })};
}

}  // namespace bench
