#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/gpu.sh without a GPU: programs, nvcc, compute-sanitizer and the clock are stand-ins, so that no
# busy machine changes what happens. Looks at what it runs, goes on with, gives up and prints.
# usage: gpu_script.sh FOLDER
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../../..
work=$1
rm -rf "$work"
mkdir -p "$work"
export NVCC=$here/nvcc.sh PATH=$here:$PATH CALLS=$work/calls CLOCK=$work/clock DEVICE='stand-in GPU'
echo 0 >"$CLOCK"

failed=0
fail() {
  printf 'FAILED: %s\n' "$1"
  failed=$((failed + 1))
}
# call STATUS OPTIONS...: what it says goes to the file `said`.
call() {
  local expected=$1 status=0
  : >"$CALLS"
  "$root/bench/gpu.sh" "${@:2}" "$work/gpu" >"$work/said" 2>&1 || status=$?
  [[ $status == "$expected" ]] || { fail "it returns $status, must return $expected" && cat "$work/said"; }
}
says() { grep -q -- "$1" "$work/said" || { fail "it does not say: $1" && cat "$work/said"; }; }
runs() { grep -qx -- "$1" "$CALLS" || fail "it does not run $1"; }
does_not_run() { ! grep -qx -- "$1" "$CALLS" || fail "it runs $1"; }

# A failing program, one that does not compile and one that lasts too long do not stop the others.
FAILING=test_isf BROKEN=test_balance SLOW=time_balance OMNIBAL_GPU_STEP_SECONDS=3 call 1
for program in test_best_fit_rounds 'test_repeated graphs' 'test_repeated seeds' test_isf time_packing \
  memcheck racecheck initcheck synccheck; do
  runs "$program"
done
says '^test_best_fit_rounds .*passed .*5 comparisons, 0 failed'
says '^test_isf .*FAILED: returns 1 .*FAILED: a comparison'
says '^test_balance .*FAILED: does not compile'
says '^time_balance .*FAILED: out of time'
says '^memcheck test_isf .*FAILED'
says '^racecheck .*clean in [1-9][0-9]* programs'
says '^time_packing at work .*10.0 .*2.00 .*a copy .*held'
says '^== stand-in GPU; nvcc 13.0, sm_90'
says ' 0 steps left'

# All have results: nothing is run, and the table is the same.
grep '^test_\|^time_\|^[a-z]*check' "$work/said" >"$work/table"
call 1
[[ ! -s $CALLS ]] || fail 'a second call runs steps that have results'
diff "$work/table" <(grep '^test_\|^time_\|^[a-z]*check' "$work/said") || fail 'another table'

# What is forgotten is run again.
call 1 --anew=isf
runs test_isf
does_not_run test_best_fit_rounds
says '^test_isf .*passed'
does_not_run time_packing

# A call that is cut off leaves steps to the next one: that which was cut off and those behind it.
SLOW=time_packing OMNIBAL_GPU_SECONDS=15 call 2 --anew
runs test_isf
runs time_packing
does_not_run memcheck
says '[1-9][0-9]* steps left for the next call'
call 0
runs time_packing
runs memcheck
does_not_run 'test_repeated graphs'
does_not_run time_balance
says '^0 failed, 0 promises missed, 0 steps left'

# Results of one device are not those of another, and come back with it.
DEVICE='another GPU' FAILING=test_metrics call 1
runs test_isf
call 0
[[ ! -s $CALLS ]] || fail 'it forgets the results of the first device'
cut -f1 "$work/gpu/results.tsv" | sort -u | grep -c 'GPU; nvcc 13.0' | grep -qx 2 ||
  fail 'a result has no device'

DEVICE='' NVCC=/nonexistent call 77
printf '%d failed\n' "$failed"
[[ $failed == 0 ]]
