// SPDX-License-Identifier: Apache-2.0
// Times of best-fit packing beside kernels that copy memory all the time.

#include "beside.cuh"
#include "device_program.hpp"
#include "memory_hog.cuh"
#include "timing.hpp"

#include <cstddef>
#include <string>

namespace {

void time_beside(test::comparison& results, bench::packing_beside& packing, std::size_t threads,
                 unsigned passes, std::string const& what) {
  test::memory_hog hog(threads, passes);
  packing.print_beside(results, what);
  auto const error = hog.end();
  results.expect(error.empty(), what + ": " + error);
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    bench::stopwatch watch;
    bench::packing_beside packing(watch);
    // As many threads as a collective has, which stay; and more than a device holds, in short
    // launches and in long ones.
    time_beside(results, packing, std::size_t{1} << 13, 4, "copies by 32 blocks");
    time_beside(results, packing, std::size_t{1} << 22, 1, "short copies by all blocks");
    time_beside(results, packing, std::size_t{1} << 22, 16, "long copies by all blocks");
  });
}
