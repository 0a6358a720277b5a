// SPDX-License-Identifier: Apache-2.0
// The packing in rounds on the device is that of the host.

#include "device_program.hpp"
#include "reference/best_fit_rounds.hpp"
#include "samples.hpp"

#include <omnibal/cuda/best_fit_rounds.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/execution.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gpu = omnibal::gpu;

namespace {

void compare(test::comparison& results, std::vector<std::int64_t> const& demands,
             std::int64_t capacity, std::string const& what,
             gpu::best_fit_rounds_options const& options = {}) {
  auto const exec = gpu::on(cudaStreamPerThread);
  auto const values = gpu::upload(exec, demands);
  gpu::device_packing<> const packed(exec, demands.size());
  gpu::device_array<std::byte> const memory(
      exec, gpu::best_fit_rounds.scratch_bytes(values, capacity, options, packed.out()));
  gpu::given_scratch scratch(memory.span());
  gpu::best_fit_rounds(gpu::on(cudaStreamPerThread, scratch), values, capacity, options,
                       packed.out());
  omnibal::packing const device = packed.download(exec, "best_fit_rounds");
  omnibal::packing const host = test::best_fit_rounds(demands, std::identity{}, capacity);
  results.expect(device.groups == host.groups, what + ": groups");
  results.expect(device.oversized == host.oversized, what + ": oversized");
  results.expect(device.report.rounds == host.report.rounds, what + ": rounds");
  results.expect(device.report.item_rounds == host.report.item_rounds, what + ": item-rounds");
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    for (auto const& set : test::all_sets<1>(1, 700)) {
      if (!results.takes_next()) continue;
      std::vector<std::int64_t> demands;
      for (auto const& sample : set.samples) demands.push_back(sample[0]);
      compare(results, demands, set.capacity[0], set.name);
    }
    test::random_amounts random(9);
    std::vector<std::size_t> counts{1'000, 30'000};
    if (!test::is_small()) counts.insert(counts.end(), {1'200'000, 10'000'000});
    for (std::size_t const count : counts) {
      for (std::int64_t const share : {1, 3, 50}) {
        if (!results.takes_next()) continue;
        std::vector<std::int64_t> demands(count);
        for (auto& demand : demands) demand = random.between(0, 131072 / share);
        compare(results, demands, 131072,
                std::to_string(count) + " up to 1/" + std::to_string(share) + " of the capacity");
      }
      std::vector<std::int64_t> tail(count);
      for (auto& demand : tail) demand = random.heavy_tail(4500);
      compare(results, tail, 4096, std::to_string(count) + " with a heavy tail");
      compare(results, tail, 4096, std::to_string(count) + " on two blocks", {.max_blocks = 2});
    }
  });
}
