#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of omnibal/cuda/nccl over real NCCL: 1, 2 and 4 processes, each a rank, which may
# all share one device, and again with a rank that dies.
# usage: run_ranks.sh [program [number of ranks ...]]
#   program: tests/nccl/ranks.cu as nvcc has compiled it; compiled here where it does not exist.
#   NVCC and NVCC_FLAGS say how to compile. NCCL_DEBUG=WARN shows what NCCL says.
# Returns 0 where all passed, 77 where there is no nvcc, no NCCL or no device, and 1 otherwise.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=${1:-${TMPDIR:-/tmp}/omnibal_nccl_ranks}
shift || true
PATH=$PATH:/usr/local/cuda/bin

if [[ ! -x $program ]]; then
  nvcc=${NVCC:-$(command -v nvcc)} || {
    echo "skipped: there is no nvcc"
    exit 77
  }
  echo '#include <nccl.h>' | "$nvcc" -x cu -E - >/dev/null 2>&1 || {
    echo "skipped: there is no nccl.h"
    exit 77
  }
  # shellcheck disable=SC2086
  "$nvcc" -std=c++20 -O3 -arch=sm_80 "-I$root/include" "-I$root/tests/support" \
    "-I$root/tests/nccl" "$root/tests/nccl/ranks.cu" -o "$program" -Xcompiler -pthread \
    ${NVCC_FLAGS:-} || exit 1
fi
exec "$program" "$@"
