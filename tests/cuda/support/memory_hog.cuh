// SPDX-License-Identifier: Apache-2.0
#pragma once

// A kernel that takes the memory of the device for itself.

#include "background.hpp"
#include "device_program.hpp"

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

namespace test {

/// Each thread copies every so-many-th word, again and again.
struct copies_words {
  std::uint64_t const* from;
  std::uint64_t* to;
  std::size_t words;
  std::size_t threads;
  unsigned passes;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    for (unsigned pass = 0; pass != passes; ++pass) {
      for (std::size_t k = i; k < words; k += threads) to[k] = from[k] + pass;
    }
  }
};

/// Launches of so many threads, in blocks of 256, copy memory that is larger than the L2 of a
/// device, one launch after the other, while it lives.
class memory_hog {
 public:
  memory_hog(std::size_t threads, unsigned passes)
      : exec_(omnibal::gpu::on(cudaStreamPerThread)),
        from_(zeros(exec_)),
        to_(exec_, words()),
        copies_{from_.data(), to_.data(), words(),
                is_small() ? std::min<std::size_t>(threads, 512) : threads, passes},
        background_([this](cudaStream_t stream) {
          omnibal::gpu::detail::launch_for_each(stream, copies_.threads, copies_);
        }) {}

  /// Ends it: what went wrong, or nothing.
  std::string end() { return background_.end(); }

 private:
  static omnibal::gpu::device_array<std::uint64_t> zeros(omnibal::gpu::execution<> const& exec) {
    omnibal::gpu::device_array<std::uint64_t> result(exec, words());
    omnibal::gpu::check(
        cudaMemsetAsync(result.data(), 0, words() * sizeof(std::uint64_t), exec.stream()));
    exec.synchronize();
    return result;
  }
  static std::size_t words() { return std::size_t{is_small() ? 1u << 12 : 1u << 24}; }

  omnibal::gpu::execution<> exec_;
  omnibal::gpu::device_array<std::uint64_t> from_;
  omnibal::gpu::device_array<std::uint64_t> to_;
  copies_words copies_;
  background background_;
};

}  // namespace test
