#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that needs a GPU, in steps, within nine minutes a call: builds the programs of tests/cuda,
# tests/nccl and bench/cuda with nvcc alone, compares with the host, replays graphs, repeats, times, runs
# the tests again under compute-sanitizer, and prints a table last.
# usage: gpu.sh [--anew[=TEXT]] [folder for programs and logs]
# Each step writes its result as it ends, to the file OMNIBAL_GPU_RESULTS (results.tsv in the folder). A
# call runs the steps that have no result yet on this device for these sources; --anew forgets all
# results, --anew=TEXT those of steps whose name has the text in it.
# NVCC and NVCC_FLAGS say how to compile, OMNIBAL_GPU_SECONDS when to stop (530); OMNIBAL_GPU_STEP_SECONDS
# takes the place of each step's own limit.
# Returns 77 where there is no GPU or no nvcc, 1 where a step failed or a promise was missed, and 2 where
# steps are left for the next call.
set -uo pipefail

anew=
if [[ ${1:-} == --anew* ]]; then
  anew=$1
  shift
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-$root/build/gpu}
results=${OMNIBAL_GPU_RESULTS:-$out/results.tsv}
begin=$(date +%s)
deadline=$((begin + ${OMNIBAL_GPU_SECONDS:-530}))
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
touch "$results" || exit 1

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

# Results count for the same device, sources and options.
sources=$(cd "$root" && find include tests/cuda tests/nccl tests/support bench/cuda bench/support -type f \
  -exec cksum {} + | LC_ALL=C sort -k3 | cksum | cut -d' ' -f1)
key="$device; nvcc $release ${NVCC_FLAGS:-}; sources $sources"

# A line of the file: key, STEP, its name, verdict, seconds, last words; or key, TIME, the step, a timing.
if [[ -n $anew ]]; then
  awk -F '\t' -v text="${anew#--anew}" '
    BEGIN { sub(/^=/, "", text) }
    text != "" && !index($3, text)' "$results" >"$results.kept" && mv "$results.kept" "$results"
fi
rows() { KEY=$key awk -F '\t' -v kind="$1" '$1 == ENVIRON["KEY"] && $2 == kind' "$results"; }
# write name verdict seconds words: one line, or the timings of a log and one line, at once.
write() {
  {
    [[ $1 != time* || ! -e $out/logs/$1 ]] ||
      sed -n "s/^TIME\t//p" "$out/logs/$1" | KEY=$key NAME=$1 awk '
        { print ENVIRON["KEY"] "\tTIME\t" ENVIRON["NAME"] "\t" $0 }'
    printf '%s\tSTEP\t%s\t%s\t%s\t%s\n' "$key" "$@"
  } >"$out/logs/${1// /.}.result"
  cat "$out/logs/${1// /.}.result" >>"$results"
}

# name, source, options
programs=()
add() {
  programs+=("$1")
  local command=("$nvcc" -std=c++20 -O3 -lineinfo "-arch=$target" "-I$root/include"
    "-I$root/tests/cuda/support" "${@:3}" "$2" -o "$out/$1")
  # shellcheck disable=SC2086
  printf '%q ' "${command[@]}" ${NVCC_FLAGS:-} >"$out/$1.command"
}
# Those that take longest to compile and to run first.
for source in "$root"/tests/cuda/{best_fit_rounds,balance,repeated,isf}.cu \
  "$root"/tests/cuda/*.cu; do
  name=test_$(basename "$source" .cu)
  [[ " ${programs[*]} " == *" $name "* ]] || add "$name" "$source" "-I$root/tests/support"
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
nccl_options+=(-Xcompiler -pthread)
if [[ -z $nccl_missing ]]; then
  add test_nccl_ranks "$root/tests/nccl/ranks.cu" "-I$root/tests/support" "-I$root/tests/nccl" \
    "${nccl_options[@]}"
fi
for source in "$root"/bench/cuda/*.cu; do
  options=("-I$root/bench/support" -DNDEBUG)
  if grep -q 'cuda/nccl/\|<nccl.h>' "$source"; then
    [[ -z $nccl_missing ]] || continue
    options+=("-I$root/tests/nccl" "${nccl_options[@]}")
  fi
  add "time_$(basename "$source" .cu)" "$source" "${options[@]}"
done

# The steps in their order: a tool of the sanitizer and a program, or a program and its arguments.
tests=()
timings=()
for name in "${programs[@]}"; do
  case $name in
    test_repeated) tests+=("$name graphs" "$name seeds") ;;
    test_*) tests+=("$name") ;;
    *) timings+=("$name") ;;
  esac
done
tests+=(two_libraries)
checks=()
if command -v compute-sanitizer >"$out/logs/sanitizer"; then
  for tool in memcheck racecheck initcheck synccheck; do
    for name in "${programs[@]}"; do
      case $name in
        time_* | test_without_device) continue ;;
        # The other tools would judge the kernels of NCCL.
        test_nccl_ranks) [[ $tool == memcheck ]] || continue ;;
      esac
      checks+=("$tool $name")
    done
  done
fi

# Those of these steps that have no result.
missing=()
find_missing() {
  missing=()
  local step
  local -A known=()
  while IFS= read -r step; do known[$step]=yes; done < <(rows STEP | cut -f3)
  for step in "$@"; do [[ -n ${known[$step]:-} ]] || missing+=("$step"); done
}

# Programs that a step needs and that were not built of these sources.
compile() {
  local how=$out/$1.command
  [[ -x $out/$1 && "$key $(<"$how")" == "$(cat "$out/$1.built" 2>/dev/null)" ]] && return
  rm -f "$out/$1" "$out/$1.built"
  timeout -k 5 "$(left 400)" sh "$how" >"$out/logs/$1.compile" 2>&1 &&
    echo "$key $(<"$how")" >"$out/$1.built"
}

# The program of a step and, in the array `command`, how it is run.
command_of() {
  local words
  read -ra words <<<"$1"
  program=${words[0]}
  case $1 in
    memcheck* | racecheck* | initcheck* | synccheck*)
      # Under a tool the programs leave large sizes out, and most of many comparisons that are alike.
      program=${words[1]}
      command=(env OMNIBAL_SMALL=1 OMNIBAL_FEW=1 compute-sanitizer --tool "${words[0]}" --error-exitcode 9
        --target-processes all)
      case $1 in
        # NCCL asks for kernels that it may not have.
        *test_nccl_ranks) command+=(--report-api-errors no "$out/$program" 1) ;;
        # It looks at what a graph will copy before the graph's kernels have written it.
        "initcheck test_repeated") command+=("$out/$program" seeds) ;;
        *) command+=("$out/$program") ;;
      esac
      ;;
    test_without_device) command=(env CUDA_VISIBLE_DEVICES= "$out/$1") ;;
    # Ranks are processes, which may all share the device; few rounds.
    test_nccl_ranks) command=(env OMNIBAL_SMALL=1 "$out/$1" 1 2 4) ;;
    # The loader looks for the shared runtime.
    two_libraries)
      command=(env "LD_LIBRARY_PATH=$(dirname "$nvcc")/../lib64:${LD_LIBRARY_PATH:-}"
        "$root/tests/cuda/libraries/two_libraries.sh" "$out/libraries" "$nvcc" -std=c++20
        "-I$root/include")
      ;;
    *) command=("$out/$program" "${words[@]:1}") ;;
  esac
}

# run name max_seconds: the log, and the result where the step has one.
run() {
  local name=$1 most=${OMNIBAL_GPU_STEP_SECONDS:-$2} log=$out/logs/${1// /.} status=0
  local seconds begin program command
  command_of "$name"
  if [[ $program != two_libraries && ! -x $out/$program ]]; then
    # Where time ran out it is compiled by the next call.
    (($(left 1) == 0)) || write "$name" "FAILED: does not compile" 0 "$out/logs/$program.compile"
    return
  fi
  seconds=$(left "$most")
  # A step that cannot last long is left for the next call.
  ((seconds >= 3 || seconds == most)) || return
  begin=$(date +%s)
  timeout -k 5 "$seconds" "${command[@]}" >"$log" 2>&1 || status=$?
  # As is one that was cut off by the end of this call.
  ((status != 124 && status != 137 || seconds == most)) || return
  local verdict
  case $status in
    0) verdict=passed ;;
    77) verdict=skipped ;;
    124 | 137) verdict="FAILED: out of time" ;;
    *) verdict="FAILED: returns $status" ;;
  esac
  grep -q -i "device not supported" "$log" && verdict="not run: the tool refuses this device"
  local words
  words=$(grep -m 1 '^FAILED\|ERROR SUMMARY: [1-9]\|RACECHECK SUMMARY: [1-9]' "$log" ||
    grep -v '^TIME' "$log" | tail -1)
  write "$name" "$verdict" "$(($(date +%s) - begin))" "$(tr '\t' ' ' <<<"$words")"
}
export -f run write left compile command_of
export out root nvcc target deadline key results

jobs=$(nproc)
beside=$((jobs / 2 > 1 ? jobs / 2 : 1))
# run_all seconds at_a_time step...
run_all() {
  # shellcheck disable=SC2016
  printf '%s\n' "${@:3}" | xargs -P "$2" -d '\n' -I{} bash -c 'run "$1" "$2"' run {} "$1"
}

find_missing "${tests[@]}" "${timings[@]}" "${checks[@]}"
say "${#missing[@]} of $((${#tests[@]} + ${#timings[@]} + ${#checks[@]})) steps have no result yet"
needed=()
for name in "${programs[@]}"; do
  [[ " ${missing[*]} " != *" $name "* ]] || needed+=("$name")
done
if ((${#needed[@]} != 0)); then
  say "compiling ${#needed[@]} programs, $jobs at a time"
  printf '%s\n' "${needed[@]}" | xargs -P "$jobs" -I{} bash -c 'compile {}'
fi

# The tests run beside each other: most of their time the host makes what it compares with.
find_missing "${tests[@]}"
if ((${#missing[@]} != 0)); then
  say "testing, $beside programs at a time"
  run_all 240 "$beside" "${missing[@]}"
fi
# Timings have the device for themselves.
find_missing "${timings[@]}"
for name in "${missing[@]}"; do
  say "$name"
  run "$name" 100
done
find_missing "${checks[@]}"
if ((${#missing[@]} != 0)); then
  say "compute-sanitizer, $beside programs at a time"
  run_all 240 "$beside" "${missing[@]}"
fi

# The table, of this device and these sources.
echo
echo "== $device; nvcc $release, $target; $(($(date +%s) - begin)) s"
echo
rows STEP | awk -F '\t' '
  { split($3, words, " ") }
  words[1] ~ /check$/ && $4 == "passed" { ++clean[words[1]]; next }
  { printf "%-36s %-26s %4d s  %s\n", $3, $4, $5, substr($6, 1, 90) }
  END { for (tool in clean) printf "%-36s clean in %d programs\n", tool, clean[tool] }'
[[ -z $nccl_missing ]] || printf '%-36s not run: %s\n' NCCL "$nccl_missing"
((${#checks[@]} != 0)) || printf '%-36s not run: there is none\n' compute-sanitizer
echo
printf '%-64s %12s %8s  %-30s %12s %-12s %s\n' "median time" us ratio "to this limit" us promise ""
rows TIME | awk -F '\t' '
  { printf "%-64s %12.1f %8.2f  %-30s %12.1f %-12s %s\n", $4, $5, $8, $6, $7, $9, $10 }'
echo
failures=$(rows STEP | awk -F '\t' '$4 ~ /^FAILED/' | wc -l)
missed=$(rows TIME | awk -F '\t' '$10 == "MISSED"' | wc -l)
rows STEP | awk -F '\t' '$4 ~ /^FAILED/ { print $3 }' | while IFS= read -r name; do
  printf -- '-- %s\n' "$name"
  tail -n 12 "$out/logs/${name// /.}" 2>/dev/null
done
find_missing "${tests[@]}" "${timings[@]}" "${checks[@]}"
echo "$failures failed, $missed promises missed, ${#missing[@]} steps left for the next call; results in $results"
((failures == 0 && missed == 0)) || exit 1
((${#missing[@]} == 0)) || exit 2
