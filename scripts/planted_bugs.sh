#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plants each bug of tests/planted/bugs.txt in a copy of the sources, one at a time, and demands that a
# test of the folder named with it fails. Compiles one file of tests after the other until one does, and
# demands of each that it passes without a bug.
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

# The file of a bug: a header below include/omnibal, or a source of the programs.
path_of() {
  case $1 in
    examples/*) printf '%s' "$1" ;;
    *) printf 'include/omnibal/%s' "$1" ;;
  esac
}

stop() {
  printf 'planted_bugs: %s\n' "$1" >&2
  exit 2
}

# Sets `readers` to the files of tests of a folder that include the header, by way of others too, each
# behind the word quick or, for its tests with the tag [slow], certificates and races, slow. First come those
# that are named after the header or after the folder that it is private to, then those that include it
# themselves, then the others. Among these what is slow is behind what is quick, certificates come last,
# and first what caught most bugs of headers without a file of their own, then what has the fewest headers
# in between. cuda_stand_in is the folder cuda/stand_in.
find_readers() {
  local header=$1 folder=tests/${2/_//} distance=0 user stem far named few
  local -a level=("$(path_of "$header")") users found=()
  local -A seen=() stems
  local -A own_stems=(["$(basename "${header%.*}")"]=1 ["$(basename "$(dirname "$header")")"]=1)
  # The programs are libraries, so that each of their sources may be part of any test of models.
  if [[ $header == examples/* ]]; then
    mapfile -t readers < <(cd "$tree" && grep -lE '"(model_file|counted_family|heard_profile)\.hpp"' "$folder"/*_test.cpp |
      awk -v part="$(sed -E 's/.*_//; s/\..*//; s/s$//' <<<"$header")" '{ print index($0, part) ? 0 : 1, "quick", $0 }' | sort)
    return
  fi
  while [[ ${#level[@]} -gt 0 ]]; do
    mapfile -t users < <(cd "$tree" && includes "${level[@]}" | grep -rlFf - include tests bench | sort)
    stems=()
    for user in "${level[@]}"; do
      stems[$(basename "${user%.*}")]=1
    done
    level=()
    for user in "${users[@]}"; do
      [[ -z ${seen[$user]:-} ]] || continue
      seen[$user]=1
      level+=("$user")
      [[ $user == "$folder"/*_test.c* && ${user#"$folder"/} != */* ]] || continue
      stem=$(basename "${user%_test.*}")
      far=$((distance == 0 ? 1 : 2))
      [[ -z ${own_stems[$stem]:-} ]] || far=0
      named=$((${stems[$stem]:-0} == 0))
      few=$((1000 - ${catches[$user]:-0}))
      if is_slow "$2" "$user"; then
        found+=("$far 2 $few $distance $named slow $user")
        continue
      fi
      found+=("$far 0 $few $distance $named quick $user")
      ! grep -q '"\[slow\]"' "$tree/$user" || found+=("$far 1 $few $distance $named slow $user")
    done
    distance=$((distance + 1))
  done
  readers=()
  [[ ${#found[@]} == 0 ]] ||
    mapfile -t readers < <(printf '%s\n' "${found[@]}" | sort | cut -d ' ' -f 1,6-)
}

# The texts by which a file includes any of the headers.
includes() {
  local file
  for file in "$@"; do
    case $file in
      include/*) printf '<%s>\n' "${file#include/}" ;;
      *) printf '"%s"\n/%s"\n' "${file##*/}" "${file##*/}" ;;
    esac
  done
}

# build_alone(quick or slow, folder, file): a program of the file of tests without the others of its
# folder, from the objects that the build links it with, so that all are of the same headers.
build_alone() {
  local file=$3 link word
  local -a words=() objects=()
  link=$(ninja -C "$work/$1" -t commands "$(program_of "$@")" | tail -n 1)
  link=${link#: && }
  link=${link%% && *}
  for word in $link; do
    [[ $word != *_test.c*.o || $word == */"${file##*/}".o ]] || continue
    words+=("$word")
    [[ $word == /* || $word != *.[oa] ]] || objects+=("$word")
  done
  ninja -C "$work/$1" "${objects[@]}" >"$log" 2>&1 || return 1
  (cd "$work/$1" && eval "${words[*]}") >"$log" 2>&1
}

# True for a file of a folder all tests of which are slow. Races are among them since clang++ without
# optimization does not show one that g++ shows.
is_slow() {
  [[ $1 == cuda_races || $2 == *_certificate_test.* ]]
}

program_of() {
  local name=test
  [[ $3 != *_certificate_test.* ]] || name=certify
  printf 'tests/%s_%s' "$name" "$2"
}

# passes(limit, quick or slow, folder, file): true where the tests of the file pass within so many seconds.
passes() {
  local limit=$1 tests='~[slow]'
  shift
  [[ $1 == quick ]] || tests='[slow]'
  ! is_slow "$2" "$3" || tests='*'
  # The shell says nothing where the program crashes.
  {
    OMNIBAL_TEST_INSTANCES=20000 timeout "$limit" "$work/$1/$(program_of "$@")" --abort "$tests" \
      >"$log" 2>&1
  } 2>/dev/null
}

# Fails where the fields of a bug do not fit the headers and the tests, and says why.
fits() {
  local header text without
  header=$root/$(path_of "${fields[0]}")
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
done <"$root/tests/planted/bugs.txt"
[[ $misfits == 0 ]] || stop "lines that do not fit: $misfits"
[[ ${#bugs[@]} -gt 0 ]] || stop 'no bug to plant'
if [[ -n $check_only ]]; then
  printf 'each of %d bugs can be planted\n' "${#bugs[@]}"
  exit 0
fi

rm -rf "$tree"
mkdir -p "$tree"
cp -r "$root"/{CMakeLists.txt,cmake,include,tests,bench,examples,docs,scripts} "$tree"
# The programs are built only for their own bugs, because they take minutes.
has_programs=OFF
for bug in "${bugs[@]}"; do
  [[ $bug != examples/* ]] || has_programs=ON
done
# configure(quick or slow, options of CMake...)
configure() {
  cmake -S "$tree" -B "$work/$1" -G Ninja -DOMNIBAL_BUILD_BENCH=OFF -DOMNIBAL_BUILD_EXAMPLES=$has_programs \
    -DOMNIBAL_BUILD_DOCS=OFF "${@:2}" >/dev/null
}
# clang++ without optimization is what compiles soonest; what is slow would run too long.
configure quick -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_CXX_COMPILER="$(command -v clang++ || command -v c++)"
configure slow -DCMAKE_CXX_FLAGS=-O1

# What a reader may take with a bug, in seconds: much longer than without one.
declare -A limits

# Demands, once, that the tests of a reader pass without a bug.
expect_green() {
  [[ -z ${limits[$*]:-} ]] || return 0
  build_alone "$@" || { cat "$log"; stop "$3 does not compile without a bug"; }
  local begin=$SECONDS
  passes 900 "$@" || { cat "$log"; stop "$3 fails without a bug"; }
  limits[$*]=$((30 + 3 * (SECONDS - begin)))
}

# True where a reader is red, which it is with a failing static_assert too. Counts what does not compile
# for another reason.
is_red() {
  build_alone "$@" || {
    grep -q 'error:.*static[_ ]assert' "$log" || { cat "$log"; broken=$((broken + 1)); }
    return 0
  }
  ! passes "${limits[$*]}" "$@"
}

programs=$(ninja -C "$work/quick" -t targets all)
declare -A catches
caught=0
skipped=0
broken=0
for bug in "${bugs[@]}"; do
  split "$bug"
  if [[ $programs != *"tests/test_${fields[3]}: "* ]]; then
    printf 'skipped  %s: there is no test_%s here\n' "$bug" "${fields[3]}"
    skipped=$((skipped + 1))
    continue
  fi
  header=$tree/$(path_of "${fields[0]}")
  good=$(<"$header")
  bad=${good/"${fields[1]}"/"${fields[2]}"}
  begin=$SECONDS
  by=
  find_readers "${fields[0]}" "${fields[3]}"
  for reader in "${readers[@]}"; do
    read -r far kind file <<<"$reader"
    expect_green "$kind" "${fields[3]}" "$file"
    printf '%s\n' "$bad" >"$header"
    if is_red "$kind" "${fields[3]}" "$file"; then
      by=$file
      catches[$file]=$((${catches[$file]:-0} + (far != 0)))
    fi
    printf '%s\n' "$good" >"$header"
    [[ -z $by ]] || break
  done
  if [[ -n $by ]]; then
    printf 'caught %3d s by %s:  %s\n' "$((SECONDS - begin))" "${by##*/}" "$bug"
    caught=$((caught + 1))
  else
    printf 'MISSED %3d s:  %s\n' "$((SECONDS - begin))" "$bug"
  fi
done

printf '%d of %d planted bugs caught in %d s' "$caught" "$((${#bugs[@]} - skipped))" "$SECONDS"
[[ $skipped == 0 ]] || printf ', %d not planted' "$skipped"
printf '\n'
[[ $broken == 0 ]] || stop "bugs that do not compile: $broken"
[[ $((caught + skipped)) == "${#bugs[@]}" ]]
