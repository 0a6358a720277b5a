// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs the benchmarks of a program with a heap that keeps what is freed.
///
/// By default glibc gives large blocks back to the system, or not, depending on what has been freed
/// before; the page faults of the next allocation then decide the time of a linear algorithm.

#include <cstdlib>

#include <benchmark/benchmark.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

int main(int argc, char** argv) {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
#endif
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return EXIT_FAILURE;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return EXIT_SUCCESS;
}
