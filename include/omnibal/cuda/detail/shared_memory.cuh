// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The dynamic shared memory of a block.

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Returns the shared memory that the launch requested, aligned for every type.
[[nodiscard]] __device__ inline unsigned char* shared_memory() {
  extern __shared__ __align__(16) unsigned char omnibal_shared_memory[];
  return omnibal_shared_memory;
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
