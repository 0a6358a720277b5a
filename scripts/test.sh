#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the tests of the headers with one compiler: that of CXX, else clang++, which takes half of
# the time of g++. The tests of programs, CUDA, libtorch, C and Python, the certificates, and what takes longer
# are in .ci/run and scripts/nightly.sh.
# usage: test.sh [OPTIONS OF cmake]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/setup.sh" test
cd "$root"
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$(nproc)}
# More compilers than processors share their caches and end no sooner.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
cmake --preset test -DCMAKE_CXX_COMPILER="${CXX:-clang++}" "$@"
cmake --build --preset test
ctest --preset test
