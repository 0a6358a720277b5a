#pragma once

// NOT CUB: a stand-in for its prefix sums.

#include "../submit.hpp"

#include <cstddef>
#include <vector>

namespace cub {

struct DeviceScan {
  template <class In, class Out, class Op, class Init>
  static cudaError_t ExclusiveScan(void* temporary, std::size_t& bytes, In in, Out out, Op op,
                                   Init init, std::uint32_t n, cudaStream_t stream) {
    return stand_in::submit(temporary, bytes, n, stream, [=] {
      Init before = init;
      stand_in::for_tiles(n, [&](std::size_t first, std::size_t last) {
        auto const sums = stand_in::scanned_tile<Init>(in, first, last, op);
        for (std::size_t i = first; i != last; ++i) {
          out[i] = i == first ? before : op(before, sums[i - first - 1]);
        }
        before = op(before, sums.back());
      });
    });
  }
};

}  // namespace cub
