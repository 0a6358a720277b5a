// SPDX-License-Identifier: Apache-2.0
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/feistel.cuh>
#include <omnibal/rng/feistel.hpp>

#include <cstdint>

void shuffle_on_device(omnibal::gpu::execution<> const& exec,
                       omnibal::gpu::device_span<std::uint32_t> order) {
  omnibal::gpu::feistel(exec, omnibal::rng::feistel{1024}, 0, order);
}
