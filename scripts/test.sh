#!/usr/bin/env bash
# Builds and runs the tests with one compiler: that of CXX, else the system's. Without CUDA
# and libtorch; what takes longer is in .ci/run and scripts/nightly.sh.
# usage: test.sh [OPTIONS OF cmake]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/setup.sh" test
cd "$root"
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$(nproc)}
cmake --preset test "$@"
cmake --build --preset test
ctest --preset test
