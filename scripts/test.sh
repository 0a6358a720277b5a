#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the tests with one compiler: that of CXX, else the system's. Without CUDA, libtorch,
# the interfaces to C and Python and the certificates; these, and what takes longer, are in .ci/run and
# scripts/nightly.sh.
# usage: test.sh [OPTIONS OF cmake]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/setup.sh" test
cd "$root"
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$(nproc)}
# More compilers than processors share their caches and end no sooner.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
cmake --preset test "$@"
cmake --build --preset test
ctest --preset test
