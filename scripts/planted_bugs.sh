#!/usr/bin/env bash
# Plants each bug of tests/planted/bugs.txt in a copy of the headers, one at a time, and demands that
# the test program named with it fails.
# usage: planted_bugs.sh [TEXT]    (only bugs whose line contains TEXT)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
only=${1:-}
work=$root/build/planted
tree=$work/tree
build=$work/build
log=$work/log.txt

# Splits a line of the list into the array `fields`.
split() {
  local line=${1//'\|'/$'\x01'}
  line=${line//' | | '/' |  | '}
  fields=()
  while [[ $line == *' | '* ]]; do
    fields+=("${line%%' | '*}")
    line=${line#*' | '}
  done
  fields+=("$line")
  fields=("${fields[@]//$'\x01'/'|'}")
}

stop() {
  printf 'planted_bugs: %s\n' "$1" >&2
  exit 2
}

# True where the test program passes. Builds it first; a failing static_assert counts as a red test.
passes() {
  if ! cmake --build "$build" --target "test_$1" >"$log" 2>&1; then
    grep -q 'static assertion failed' "$log" && return 1
    cat "$log"
    stop "the program test_$1 does not compile"
  fi
  OMNIBAL_TEST_INSTANCES=20000 timeout 300 "$build/tests/test_$1" --abort >"$log" 2>&1
}

bugs=()
tests=()
while IFS= read -r line; do
  [[ -n $line && $line != '#'* && $line == *"$only"* ]] || continue
  split "$line"
  [[ ${#fields[@]} == 4 ]] || stop "not four fields: $line"
  bugs+=("$line")
  tests+=("${fields[3]}")
done <"$root/tests/planted/bugs.txt"
[[ ${#bugs[@]} -gt 0 ]] || stop 'no bug to plant'

rm -rf "$tree"
mkdir -p "$tree"
cp -r "$root"/{CMakeLists.txt,cmake,include,tests} "$tree"
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_CXX_FLAGS=-O1 -DOMNIBAL_BUILD_BENCH=OFF \
  -DOMNIBAL_BUILD_EXAMPLES=OFF -DOMNIBAL_BUILD_DOCS=OFF >/dev/null

for test in $(printf '%s\n' "${tests[@]}" | sort -u); do
  passes "$test" || stop "test_$test fails without a bug"
done

missed=0
for bug in "${bugs[@]}"; do
  split "$bug"
  header=$tree/include/omnibal/${fields[0]}
  old=${fields[1]}
  good=$(cat "$header")
  without=${good//"$old"/}
  [[ $((${#good} - ${#without})) == "${#old}" ]] || stop "the old text must occur once: $bug"

  printf '%s\n' "${good/"$old"/"${fields[2]}"}" >"$header"
  if passes "${fields[3]}"; then
    printf 'MISSED  %s\n' "$bug"
    missed=$((missed + 1))
  else
    printf 'caught  %s\n' "$bug"
  fi
  printf '%s\n' "$good" >"$header"
done

printf '%d of %d planted bugs caught\n' "$((${#bugs[@]} - missed))" "${#bugs[@]}"
[[ $missed == 0 ]]
