#pragma once

// NOT CUB: a stand-in for its selections.

#include "../submit.hpp"

#include <cstddef>
#include <vector>

namespace cub {

struct DeviceSelect {
  template <class In, class Flags, class Out, class Count>
  static cudaError_t Flagged(void* temporary, std::size_t& bytes, In in, Flags flags, Out out,
                             Count* count, std::uint32_t n, cudaStream_t stream) {
    return stand_in::submit(temporary, bytes, n, stream, [=] {
      std::uint32_t kept = 0;
      stand_in::for_tiles(n, [&](std::size_t first, std::size_t last) {
        std::vector<std::remove_reference_t<decltype(out[0])>> tile;
        for (std::size_t i = first; i != last; ++i) {
          if (stand_in::element(flags, i)) tile.push_back(stand_in::element(in, i));
        }
        for (auto const& value : tile) out[kept++] = value;
      });
      *count = kept;
    });
  }
};

}  // namespace cub
