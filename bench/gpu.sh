#!/usr/bin/env bash
# Everything that needs a GPU, in one call of at most ten minutes: builds the programs of tests/cuda,
# tests/nccl and bench/cuda with nvcc alone, runs the tests, the timings, and the tests again under
# compute-sanitizer, and prints a short table last.
# usage: gpu.sh [folder for programs and logs]
# NVCC and NVCC_FLAGS say how to compile, OMNIBAL_GPU_SECONDS when to stop (570).
# Returns 77 where there is no GPU or no nvcc, and 1 where a test failed or a promise was missed.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-$root/build/gpu}
begin=$(date +%s)
deadline=$((begin + ${OMNIBAL_GPU_SECONDS:-570}))
PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer

skip() {
  echo "skipped: $1"
  exit 77
}
say() { printf '[%3d s] %s\n' "$(($(date +%s) - begin))" "$*"; }
# Seconds that are left, at most so many.
left() {
  local seconds=$((deadline - $(date +%s)))
  ((seconds > 0)) || seconds=0
  echo $((seconds < $1 ? seconds : $1))
}

nvcc=${NVCC:-$(command -v nvcc)} || skip "there is no nvcc"
mkdir -p "$out/logs" || exit 1
rm -f "$out"/logs/* "$out"/rows

# The device, asked by a program, since nvidia-smi may be missing.
cat >"$out/device.cu" <<'END'
#include <cstdio>
#include <cuda_runtime_api.h>
int main() {
  cudaDeviceProp device{};
  int driver = 0;
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) return 77;
  cudaDriverGetVersion(&driver);
  std::printf("%d%d\n%s, %d multiprocessors, %.0f GiB, L2 %.0f MiB, driver for CUDA %d.%d\n",
              device.major, device.minor, device.name, device.multiProcessorCount,
              static_cast<double>(device.totalGlobalMem) / (1u << 30),
              static_cast<double>(device.l2CacheSize) / (1u << 20), driver / 1000,
              driver % 1000 / 10);
}
END
"$nvcc" "$out/device.cu" -o "$out/device" >"$out/logs/device" 2>&1 ||
  skip "$nvcc cannot compile here, see $out/logs/device"
device=$("$out/device") || skip "there is no CUDA device"
architecture=${device%%$'\n'*}
device=${device#*$'\n'}
# Code for a device that is newer than nvcc is compiled by the driver.
target=sm_$architecture
"$nvcc" --list-gpu-code | grep -qx "$target" ||
  target=$("$nvcc" --list-gpu-arch | grep -x 'compute_[0-9]*' | sort -t_ -k2 -n | tail -1)
release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
say "$device; nvcc $release for $target"

# name, source, options
programs=()
add() {
  programs+=("$1")
  local command=("$nvcc" -std=c++20 -O3 -lineinfo "-arch=$target" "-I$root/include"
    "-I$root/tests/cuda/support" "${@:3}" "$2" -o "$out/$1")
  # shellcheck disable=SC2086
  printf '%q ' "${command[@]}" ${NVCC_FLAGS:-} >"$out/$1.command"
}
for source in "$root"/tests/cuda/*.cu; do
  [[ -e $source ]] && add "test_$(basename "$source" .cu)" "$source" "-I$root/tests/support"
done
# NCCL where nvcc finds it, or where a Python package has brought it.
nccl_missing=
nccl_options=(-lnccl)
if ! echo '#include <nccl.h>' | "$nvcc" -x cu -E - >"$out/logs/nccl" 2>&1; then
  nccl=$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])' 2>>"$out/logs/nccl")
  library=$(find "$nccl/lib" -name 'libnccl.so*' 2>/dev/null | head -1)
  if [[ -n $nccl && -e $nccl/include/nccl.h && -n $library ]]; then
    nccl_options=("-isystem=$nccl/include" "$library" -Xlinker -rpath -Xlinker "$nccl/lib")
  else
    nccl_missing="there is no nccl.h"
  fi
fi
if [[ -z $nccl_missing && -e $root/tests/nccl/ranks.cu ]]; then
  add test_nccl_ranks "$root/tests/nccl/ranks.cu" "-I$root/tests/support" "-I$root/tests/nccl" \
    "${nccl_options[@]}" -Xcompiler -pthread
fi
for source in "$root"/bench/cuda/*.cu; do
  options=("-I$root/bench/support" -DNDEBUG)
  if grep -q 'cuda/nccl/\|<nccl.h>' "$source"; then
    [[ -z $nccl_missing ]] || continue
    options+=("-I$root/tests/nccl" "${nccl_options[@]}" -Xcompiler -pthread)
  fi
  add "time_$(basename "$source" .cu)" "$source" "${options[@]}"
done

jobs=$(nproc)
say "compiling ${#programs[@]} programs, $jobs at a time"
rm -f "${programs[@]/#/$out/}"
# shellcheck disable=SC2016
printf '%s\n' "${programs[@]}" |
  xargs -P "$jobs" -I{} sh -c 'sh "$0/{}.command" >"$0/logs/{}.compile" 2>&1' "$out"

failures=0
# kind, name, verdict, what else
row() {
  printf '%s\t%s\t%s\t%s\n' "$@" >>"$out/rows"
  case $3 in FAILED*) failures=$((failures + 1)) ;; esac
}

# run name most_seconds: writes the log and, beside it, the verdict and how long it took.
run() {
  local name=$1 begin log=$out/logs/$1 status=0 seconds
  begin=$(date +%s)
  seconds=$(left "$2")
  if [[ $name != two_libraries && ! -x $out/$name ]]; then
    printf 'FAILED: does not compile\t%s\n' "$log.compile" >"$log.verdict"
    return
  fi
  if ((seconds == 0)); then
    printf 'not run: out of time\t\n' >"$log.verdict"
    return
  fi
  local command=(timeout -k 5 "$seconds" "$out/$name")
  case $name in
    test_without_device) command=(env CUDA_VISIBLE_DEVICES= "${command[@]}") ;;
    # Ranks are processes, which may all share the device; few rounds.
    test_nccl_ranks) command=(env OMNIBAL_SMALL=1 "${command[@]}" 1 2 4) ;;
    # The loader looks for the shared runtime.
    two_libraries)
      command=(env "LD_LIBRARY_PATH=$(dirname "$nvcc")/../lib64:${LD_LIBRARY_PATH:-}" timeout -k 5
        "$seconds" "$root/tests/cuda/libraries/two_libraries.sh" "$out/libraries" "$nvcc" -std=c++20
        "-I$root/include")
      ;;
  esac
  "${command[@]}" >"$log" 2>&1 || status=$?
  local verdict=FAILED
  case $status in
    0) verdict=passed ;;
    77) verdict=skipped ;;
    124 | 137) verdict="FAILED: out of time" ;;
  esac
  printf '%s\t%d s; %s\n' "$verdict" "$(($(date +%s) - begin))" \
    "$(grep -v '^TIME' "$log" | tail -1)" >"$log.verdict"
}
rows_of() {
  local kind=$1 name verdict more
  for name in "${@:2}"; do
    IFS=$'\t' read -r verdict more <"$out/logs/$name.verdict"
    row "$kind" "$name" "$verdict" "$more"
  done
}
export -f run left
export out root nvcc target deadline

# The tests run beside each other: most of their time the host makes what it compares with.
tests=()
timings=()
for name in "${programs[@]}"; do
  case $name in
    test_nccl_ranks) tests=("$name" "${tests[@]}") ;;
    test_*) tests+=("$name") ;;
    *) timings+=("$name") ;;
  esac
done
tests+=(two_libraries)
beside=$((jobs / 2 > 1 ? jobs / 2 : 1))
say "testing, $beside programs at a time"
printf '%s\n' "${tests[@]}" | xargs -P "$beside" -I{} bash -c 'run {} 150'
rows_of test "${tests[@]}"
if [[ -n $nccl_missing ]]; then row test nccl "not run: $nccl_missing" ""; fi

# Timings have the device for themselves.
for name in "${timings[@]}"; do
  say "$name"
  run "$name" 100
done
rows_of time "${timings[@]}"

# Under a tool the programs leave large sizes out.
sanitize() {
  local tool=$1 name=$2 status=0 seconds
  local log=$out/logs/$tool.$name
  seconds=$(left 150)
  if ((seconds < 10)); then
    echo "not run: out of time" >"$log.verdict"
    return
  fi
  local arguments=()
  [[ $name == test_nccl_ranks ]] && arguments=(1)
  OMNIBAL_SMALL=1 timeout -k 5 "$seconds" compute-sanitizer --tool "$tool" --error-exitcode 9 \
    --target-processes all "$out/$name" "${arguments[@]}" >"$log" 2>&1 || status=$?
  if grep -q -i "device not supported" "$log"; then
    echo "not run: compute-sanitizer refuses this device" >"$log.verdict"
  elif ((status == 124 || status == 137)); then
    echo "not run to the end: out of time" >"$log.verdict"
  elif ((status == 0)); then
    echo passed >"$log.verdict"
  else
    local reason
    reason=$(grep -m 1 'ERROR SUMMARY\|RACECHECK SUMMARY\|FAILED\|Error' "$log") ||
      reason="returns $status"
    echo "FAILED: $reason" >"$log.verdict"
  fi
}
export -f sanitize
if ! command -v compute-sanitizer >"$out/logs/sanitizer"; then
  row sanitizer "all tools" "not run: there is no compute-sanitizer" ""
else
  say "compute-sanitizer, $beside programs at a time"
  pairs=()
  for tool in memcheck racecheck initcheck synccheck; do
    for name in "${tests[@]}"; do
      case $name in
        test_without_device | two_libraries) continue ;;
        # The other tools would judge the kernels of NCCL.
        test_nccl_ranks) [[ $tool == memcheck ]] || continue ;;
      esac
      [[ -x $out/$name ]] && pairs+=("$tool $name")
    done
  done
  printf '%s\n' "${pairs[@]}" | xargs -P "$beside" -I{} bash -c 'sanitize {}'
  for pair in "${pairs[@]}"; do
    row sanitizer "$pair" "$(cat "$out/logs/${pair/ /.}.verdict")" ""
  done
fi

# The table.
missed=$(grep -h '^TIME' "$out"/logs/time_* 2>/dev/null | grep -c $'\tMISSED$')
echo
echo "== $device; nvcc $release, $target; $(($(date +%s) - begin)) s"
echo
awk -F '\t' '
  $1 == "sanitizer" && $3 == "passed" { split($2, words, " "); ++clean[words[1]]; next }
  { printf "%-10s %-28s %-24s %s\n", $1, $2, $3, substr($4, 1, 90) }
  END { for (name in clean) printf "%-10s %-28s clean in %d programs\n", "sanitizer", name, clean[name] }
' "$out/rows"
echo
printf '%-56s %12s %8s  %-30s %12s %-12s %s\n' "median time" us ratio "to this limit" us promise ""
grep -h '^TIME' "$out"/logs/time_* 2>/dev/null | awk -F '\t' '
  { printf "%-56s %12.1f %8.2f  %-30s %12.1f %-12s %s\n", $2, $3, $6, $4, $5, $7, $8 }'
echo
echo "$failures failed, $missed promises missed; logs in $out/logs"
((failures == 0 && missed == 0))
