// SPDX-License-Identifier: Apache-2.0
#pragma once

// Samples of which an algorithm of the device makes something, and whether it has reported a fault.
// The results are those of other tests.

#include "samples.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace test {

/// On the stream of the thread.
class device_run {
 public:
  [[nodiscard]] omnibal::gpu::execution<> const& exec() const { return exec_; }
  [[nodiscard]] auto faults() const { return faults_.span(); }
  /// Waits for the stream.
  [[nodiscard]] bool has_fault() const {
    return omnibal::gpu::download(exec_, faults_)[0] != omnibal::gpu::fault::none;
  }

 private:
  omnibal::gpu::execution<> exec_ = omnibal::gpu::on(cudaStreamPerThread);
  omnibal::gpu::device_array<omnibal::gpu::fault> faults_ =
      omnibal::gpu::upload(exec_, std::vector{omnibal::gpu::fault::none});
};

inline std::vector<std::int64_t> random_costs(std::size_t count, std::uint64_t seed,
                                              std::int64_t most) {
  random_amounts random(seed);
  std::vector<std::int64_t> costs(count);
  for (auto& cost : costs) cost = random.between(1, most);
  return costs;
}

inline std::vector<omnibal::resources<2>> random_pairs(std::size_t count, std::uint64_t seed,
                                                       std::int64_t most) {
  random_amounts random(seed);
  std::vector<omnibal::resources<2>> pairs(count);
  for (auto& pair : pairs) pair = {random.between(1, most), random.between(1, 9)};
  return pairs;
}

}  // namespace test
