#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What takes longer than .ci/run: sanitizers, the other compiler, emulated processors, planted bugs, compile
# time, fuzzing.
# FUZZ_SECONDS (default 60) bounds each fuzzer. With the word cuda only what concerns omnibal/cuda.
# usage: nightly.sh [cuda]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/setup.sh" nightly
cd "$root"
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$(nproc)}
# More compilers than processors share their caches and end no sooner.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

failed=()
step() {
  local begin=$SECONDS
  printf '\n== %s\n' "$*"
  "$@" || failed+=("$*")
  printf '== %d s: %s\n' "$((SECONDS - begin))" "$*"
}
finish() {
  printf '\n%d steps failed\n' "${#failed[@]}"
  [[ ${#failed[@]} == 0 ]] || { printf '  %s\n' "${failed[@]}"; exit 1; }
  exit 0
}

# Where nothing can be downloaded, or without nvcc, there is nothing to see.
cccl() { ./scripts/cccl.sh || [[ $? == 77 ]]; }
packages() { ./scripts/packages.sh || [[ $? == 77 ]]; }

if [[ ${1:-} == cuda ]]; then
  for preset in release asan; do
    build=build/cuda-$preset
    step cmake --preset "$preset" -B "$build" -DCMAKE_COMPILE_WARNING_AS_ERROR=ON \
      -DOMNIBAL_BUILD_EXAMPLES=OFF -DOMNIBAL_BUILD_DOCS=OFF
    step cmake --build "$build" --target test_cuda tests/cuda/all \
      tests/nccl/all
    # What nvcc compiles is the same with every preset.
    unless=$([[ $preset == release ]] || echo '^(nightly|compiles)$')
    step ctest --test-dir "$build" --output-on-failure -R '^(cuda[._]|bench.compile cuda)' \
      ${unless:+-LE "$unless"}
  done
  for folder in cuda_races cuda_stand_in; do
    step ./scripts/planted_bugs.sh "| $folder"
  done
  step cccl
  finish
fi

for preset in asan tsan clang aarch64 s390x; do
  step cmake --workflow --preset "$preset"
done
# Not installed by setup.sh: on Debian 12 libc++-dev takes the place of libunwind-dev, which libtorch needs.
if clang++ -stdlib=libc++ -include version -x c++ -fsyntax-only /dev/null 2>/dev/null; then
  step cmake --workflow --preset libcxx
fi

step cmake --preset release -DCMAKE_COMPILE_WARNING_AS_ERROR=ON
step cmake --build --preset release
step ctest --preset release
step ctest --preset nightly

step packages
step cccl

shopt -s nullglob
for fuzzer in build/clang/tests/fuzz/fuzz_*; do
  name=${fuzzer##*/fuzz_}
  found=build/clang/tests/fuzz/found/$name/
  mkdir -p "$found"
  step "$fuzzer" -max_total_time="${FUZZ_SECONDS:-60}" -artifact_prefix="$found" \
    "$found" "tests/fuzz/corpus/$name"
done

finish
