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
deadline=${OMNIBAL_GPU_SECONDS:-570}
PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer

skip() {
  echo "skipped: $1"
  exit 77
}
say() { printf '[%3d s] %s\n' "$SECONDS" "$*"; }
left() { echo $((deadline > SECONDS ? deadline - SECONDS : 0)); }

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
  library=$(ls "$nccl"/lib/libnccl.so* 2>/dev/null | head -1)
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
  [[ -e $source ]] && add "time_$(basename "$source" .cu)" "$source" "-I$root/bench/support" -DNDEBUG
done

jobs=$(nproc)
say "compiling ${#programs[@]} programs, $jobs at a time"
rm -f "${programs[@]/#/$out/}"
printf '%s\n' "${programs[@]}" |
  xargs -P "$jobs" -I{} sh -c 'sh "$0/{}.command" >"$0/logs/{}.compile" 2>&1' "$out"

failures=0
# kind, name, verdict, what else
row() {
  printf '%s\t%s\t%s\t%s\n' "$@" >>"$out/rows"
  case $3 in FAILED*) failures=$((failures + 1)) ;; esac
}
verdict_of() {
  case $1 in
    0) echo passed ;;
    77) echo skipped ;;
    124 | 137) echo "FAILED: out of time" ;;
    *) echo FAILED ;;
  esac
}

# run kind name [setting of the environment [argument ...]]
run() {
  local kind=$1 name=$2 begin=$SECONDS log=$out/logs/$2 status
  if [[ ! -x $out/$name ]]; then
    row "$kind" "$name" "FAILED: does not compile" "$log.compile"
    return
  fi
  if (($(left) == 0)); then
    row "$kind" "$name" "not run: out of time" ""
    return
  fi
  local seconds=$(($(left) < 150 ? $(left) : 150))
  env ${3:-} timeout -k 5 "$seconds" "$out/$name" "${@:4}" >"$log" 2>&1
  status=$?
  row "$kind" "$name" "$(verdict_of $status)" "$((SECONDS - begin)) s; $(grep -v '^TIME' "$log" | tail -1)"
}

for name in "${programs[@]}"; do
  [[ $name == test_* ]] || continue
  say "$name"
  case $name in
    test_without_device) run test "$name" CUDA_VISIBLE_DEVICES= ;;
    # Ranks are processes, which may all share the device.
    test_nccl_ranks) run test "$name" "" 1 2 4 ;;
    *) run test "$name" ;;
  esac
done
if [[ -n $nccl_missing ]]; then row test nccl "not run: $nccl_missing" ""; fi
if [[ -x $root/tests/cuda/libraries/two_libraries.sh ]]; then
  say "two libraries"
  "$root/tests/cuda/libraries/two_libraries.sh" "$out/libraries" "$nvcc" -std=c++20 \
    "-arch=$target" "-I$root/include" >"$out/logs/two_libraries" 2>&1
  row test two_libraries "$(verdict_of $?)" "$(tail -1 "$out/logs/two_libraries")"
fi

# Timings have the device for themselves.
for name in "${programs[@]}"; do
  [[ $name == time_* ]] || continue
  say "$name"
  run time "$name"
done

# Under a tool the programs leave large sizes out.
sanitize() {
  local out=$1 tool=$2 name=$3 seconds=$4
  local log=$out/logs/$tool.$name
  if ((seconds < 10)); then
    echo "not run: out of time" >"$log.verdict"
    return
  fi
  local arguments=()
  [[ $name == test_nccl_ranks ]] && arguments=(1)
  OMNIBAL_SMALL=1 timeout -k 5 "$seconds" compute-sanitizer --tool "$tool" --error-exitcode 9 \
    --target-processes all "$out/$name" "${arguments[@]}" >"$log" 2>&1
  local status=$?
  if grep -q -i "device not supported" "$log"; then
    echo "not run: compute-sanitizer refuses this device" >"$log.verdict"
  elif ((status == 124 || status == 137)); then
    echo "not run to the end: out of time" >"$log.verdict"
  elif ((status == 0)); then
    echo passed >"$log.verdict"
  else
    echo "FAILED: $(grep -m 1 'ERROR SUMMARY\|RACECHECK SUMMARY\|FAILED\|Error' "$log")" >"$log.verdict"
  fi
}
export -f sanitize
if ! command -v compute-sanitizer >"$out/logs/sanitizer"; then
  row sanitizer "all tools" "not run: there is no compute-sanitizer" ""
else
  for tool in memcheck racecheck initcheck synccheck; do
    say "compute-sanitizer $tool"
    tested=()
    for name in "${programs[@]}"; do
      [[ $name == test_* && $name != test_without_device && -x $out/$name ]] || continue
      # The other tools would judge the kernels of NCCL.
      [[ $name == test_nccl_ranks && $tool != memcheck ]] || tested+=("$name")
    done
    share=$(($(left) / 2))
    # What one tool may take, so that every tool has its turn.
    printf '%s\n' "${tested[@]}" |
      xargs -P 4 -I{} bash -c "sanitize '$out' $tool {} $((share < 120 ? share : 120))"
    for name in "${tested[@]}"; do
      verdict=$(cat "$out/logs/$tool.$name.verdict")
      row sanitizer "$tool $name" "$verdict" ""
    done
  done
fi

# The table.
missed=$(grep -h '^TIME' "$out"/logs/time_* 2>/dev/null | grep -c $'\tMISSED$')
echo
echo "== $device; nvcc $release, $target; $SECONDS s"
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
