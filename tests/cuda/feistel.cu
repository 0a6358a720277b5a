// SPDX-License-Identifier: Apache-2.0
// The Feistel order of the device is that of the host.

#include "device_program.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/feistel.cuh>
#include <omnibal/rng/feistel.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace gpu = omnibal::gpu;

int main() {
  return test::device_program([](test::comparison& results) {
    auto const exec = gpu::on(cudaStreamPerThread);
    std::vector<std::size_t> counts{0, 1, 2, 63, 64, 255, 256, 257, 100'000};
    if (!test::is_small()) counts.push_back(10'000'019);
    for (std::size_t const n : counts) {
      omnibal::rng::feistel const shuffle{n + 3};
      std::vector<std::uint32_t> expected(n);
      std::iota(expected.begin(), expected.end(), 0u);
      shuffle(std::span(expected), 7);

      gpu::device_array<std::uint32_t> const order(exec, n);
      gpu::feistel(exec, shuffle, 7, order.span());
      results.same(gpu::download(exec, order), expected, "the order of " + std::to_string(n));

      std::vector<double> values(n);
      std::iota(values.begin(), values.end(), 0.5);
      auto const in = gpu::upload(exec, values);
      gpu::device_array<double> const out(exec, n);
      gpu::feistel(exec, in, shuffle, 7, out.span());
      shuffle(std::span(values), 7);
      results.same(gpu::download(exec, out), values, "a shuffle of " + std::to_string(n));
    }
  });
}
