// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Radix sorts on the device, by CUB.

#include <omnibal/cuda/detail/device_backend.cuh>

#include <cstddef>
#include <cstdint>

#include <cub/device/device_radix_sort.cuh>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Sorts pairs by a radix sort, which moves them between two buffers. `in_place` becomes true if
/// the result is in `keys` and `values`, and false if it is in the spare buffers.
template <class Key, class Value>
struct device_sort {
  static cudaError_t pairs(void* temporary, std::size_t& bytes, std::uint32_t n, Key* keys,
                           Key* spare_keys, Value* values, Value* spare_values, int begin_bit,
                           int end_bit, cudaStream_t stream, bool& in_place) {
    cub::DoubleBuffer<Key> key_buffers(keys, spare_keys);
    cub::DoubleBuffer<Value> value_buffers(values, spare_values);
    cudaError_t const status = cub::DeviceRadixSort::SortPairs(
        temporary, bytes, key_buffers, value_buffers, n, begin_bit, end_bit, stream);
    in_place = key_buffers.selector == 0;
    return status;
  }
};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
