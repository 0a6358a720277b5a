#!/usr/bin/env bash
# What takes longer than .ci/run: sanitizers, the other compiler, planted bugs, compile time, fuzzing.
# FUZZ_SECONDS (default 60) bounds each fuzzer.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/setup.sh" nightly
cd "$root"
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$(nproc)}

failed=()
step() {
  printf '\n== %s\n' "$*"
  "$@" || failed+=("$*")
}

for preset in asan tsan clang; do
  step cmake --workflow --preset "$preset"
done

step cmake --preset release -DCMAKE_COMPILE_WARNING_AS_ERROR=ON
step cmake --build --preset release
step ctest --preset nightly

# Elsewhere there is nothing to see.
cccl() { ./scripts/cccl.sh || [[ $? == 77 ]]; }
step cccl

shopt -s nullglob
for fuzzer in build/clang/tests/fuzz/fuzz_*; do
  name=${fuzzer##*/fuzz_}
  found=build/clang/tests/fuzz/found/$name/
  mkdir -p "$found"
  step "$fuzzer" -max_total_time="${FUZZ_SECONDS:-60}" -artifact_prefix="$found" \
    "$found" "tests/fuzz/corpus/$name"
done

printf '\n%d steps failed\n' "${#failed[@]}"
[[ ${#failed[@]} == 0 ]] || { printf '  %s\n' "${failed[@]}"; exit 1; }
