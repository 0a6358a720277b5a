// SPDX-License-Identifier: Apache-2.0
// A user's program with the component cuda: a C++ file that owns device memory, and a CUDA file
// with what runs on the device.

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>

#include <cstdint>
#include <cstdio>

void shuffle_on_device(omnibal::gpu::execution<> const& exec,
                       omnibal::gpu::device_span<std::uint32_t> order);

int main() {
  try {
    auto const exec = omnibal::gpu::on(nullptr);
    omnibal::gpu::device_array<std::uint32_t> const order(exec, 8);
    shuffle_on_device(exec, order);
    for (std::uint32_t const i : omnibal::gpu::download(exec, order)) std::printf("%u ", i);
    std::puts("");
  } catch (omnibal::gpu::error const& error) {
    // The program was built and runs as far as it can.
    std::puts(error.what());
    bool const is_missing =
        error.code() == cudaErrorInsufficientDriver || error.code() == cudaErrorNoDevice;
    return is_missing ? 0 : 1;
  }
}
