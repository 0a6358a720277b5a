#!/usr/bin/env bash
# Plants each bug of tests/planted/bugs.txt in a copy of the headers, one at a time, and demands that
# the test program named with it fails.
# usage: planted_bugs.sh [--check] [TEXT]    (only bugs whose line contains TEXT)
# --check: compiles nothing; says which lines of the list name a text that does not occur exactly once
# in its header, or a folder of tests that is not there.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
check_only=
if [[ ${1:-} == --check ]]; then
  check_only=yes
  shift
fi
only=${1:-}
work=$root/build/planted
tree=$work/tree
build=$work/build
log=$work/log.txt
# A program that looks for races fails with the first.
export TSAN_OPTIONS=halt_on_error=1

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

# True where the tests of the folder pass, those by brute force too. Builds them first; a failing
# static_assert counts as a red test.
passes() {
  local -a programs=("test_$1")
  ! compgen -G "$tree/tests/$1/*_certificate_test.cpp" >/dev/null || programs+=("certify_$1")
  if ! cmake --build "$build" --target "${programs[@]}" >"$log" 2>&1; then
    grep -q 'static assertion failed' "$log" && return 1
    cat "$log"
    stop "the tests of $1 do not compile"
  fi
  local program
  for program in "${programs[@]}"; do
    OMNIBAL_TEST_INSTANCES=20000 timeout 300 "$build/tests/$program" --abort >"$log" 2>&1 || return 1
  done
}

# Fails where the fields of a bug do not fit the headers and the tests, and says why.
fits() {
  local header=$root/include/omnibal/${fields[0]} text without
  [[ ${#fields[@]} == 4 ]] || { echo 'not four fields'; return 1; }
  [[ -f $header ]] || { echo 'no such header'; return 1; }
  text=$(<"$header")
  without=${text//"${fields[1]}"/}
  [[ $((${#text} - ${#without})) == "${#fields[1]}" ]] || {
    echo 'the old text must occur once'
    return 1
  }
  # Programs beside that of a folder are named after it: cuda_stand_in is one of tests/cuda.
  [[ -d $root/tests/${fields[3]} || -d $root/tests/${fields[3]%%_*} ]] || {
    echo 'no such folder of tests'
    return 1
  }
}

bugs=()
tests=()
misfits=0
while IFS= read -r line; do
  [[ -n $line && $line != '#'* && $line == *"$only"* ]] || continue
  split "$line"
  if ! why=$(fits); then
    printf 'planted_bugs: %s: %s\n' "$why" "$line" >&2
    misfits=$((misfits + 1))
    continue
  fi
  bugs+=("$line")
  tests+=("${fields[3]}")
done <"$root/tests/planted/bugs.txt"
[[ $misfits == 0 ]] || stop "lines that do not fit: $misfits"
[[ ${#bugs[@]} -gt 0 ]] || stop 'no bug to plant'
if [[ -n $check_only ]]; then
  printf 'each of %d bugs can be planted\n' "${#bugs[@]}"
  exit 0
fi

rm -rf "$tree"
mkdir -p "$tree"
cp -r "$root"/{CMakeLists.txt,cmake,include,tests,bench} "$tree"
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
  good=$(<"$header")
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
