// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the stand-ins for CUB share.

#include "runtime.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace stand_in {

/// Leaves nothing of what was there.
inline void spoil(void* memory, std::size_t bytes) { std::memset(memory, 0xa5, bytes); }

/// A call of CUB: without temporary memory it says how much it needs; with too little, or with
/// memory that is not that of the device, it refuses.
template <class Work>
cudaError_t submit(void* temporary, std::size_t& bytes, std::uint32_t n, cudaStream_t stream,
                   Work work) {
  std::size_t const needed = 500 + n % 97 + n / 16;
  if (temporary == nullptr) {
    bytes = needed;
    return cudaSuccess;
  }
  if (bytes < needed || kind_of(temporary, needed) != memory_kind::device) {
    return cudaErrorInvalidValue;
  }
  enqueue(stream, [=] {
    spoil(temporary, needed);
    work();
  });
  // As CUB does: also an error from before.
  return cudaPeekAtLastError();
}

/// An element of what may be any random-access iterator.
template <class In>
decltype(auto) element(In const& in, std::size_t i) {
  return in[static_cast<std::ptrdiff_t>(i)];
}

}  // namespace stand_in
