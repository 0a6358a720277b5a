#pragma once

// The serial backend, but that blocks are the device's own, whose threads are threads of the host.
// Included after block_on_threads.hpp.

#include <omnibal/cuda/detail/serial_backend.hpp>

#include <cstddef>

namespace stand_in {

/// Blocks run one after the other, their threads at once. Fewer threads than on a device have more
/// work each.
struct threaded_backend : omnibal::gpu::detail::serial_backend {
  template <int Threads, class F>
  void for_each_block(std::size_t blocks, std::size_t shared_bytes, F const& f) {
    for (std::size_t k = 0; k != blocks; ++k) {
      run_block<Threads == 32 ? 32 : 64>(shared_bytes, [&](auto& block) { f(block, k); });
    }
  }
};

}  // namespace stand_in
