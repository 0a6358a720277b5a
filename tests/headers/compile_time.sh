#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What headers and programs cost to compile with -O2: user time, and its ratio to a program that uses
# the standard library alone.
# usage: compile_time.sh [--table] COMPILER INCLUDE_DIR [NAME[=BUDGET]...]
# A NAME that ends in .cpp is a program, any other a header that is compiled alone; without names all
# public headers that need no other library. Fails where one costs more than BUDGET (default 1.5) times
# the yardstick in three rounds, of which the least times count. --table prints a table in markdown.
set -euo pipefail

table=
[[ $1 != --table ]] || { table=yes; shift; }
compiler=$1
include_dir=$2
shift 2
yardstick=$(dirname "${BASH_SOURCE[0]}")/programs/yardstick.cpp
if [[ $# == 0 ]]; then
  mapfile -t public < <(cd "$include_dir" && find omnibal -maxdepth 2 -name '*.hpp' -printf '%d %p\n' |
    grep -Ev '/(detail|cuda)/|comm/(mpi|c10d)' | LC_ALL=C sort | cut -d' ' -f2)
  set -- "${public[@]}"
fi

declare -A least
# Compiles once and keeps the least time of each name, in milliseconds.
measure() {
  local TIMEFORMAT=%3U milliseconds
  local source=("$1")
  [[ $1 == *.cpp ]] || source=(-include "$1" /dev/null)
  milliseconds=$({ time "$compiler" -std=c++20 -O2 -I "$include_dir" -x c++ -c "${source[@]}" \
    -o /dev/null 2>&3; } 2>&1) || exit 1
  milliseconds=$((10#${milliseconds/./}))
  [[ ${least[$1]:-$milliseconds} -lt $milliseconds ]] || least[$1]=$milliseconds
} 3>&2

ratio() { awk -v cost="${least[$1]}" -v base="${least[$yardstick]}" 'BEGIN { printf "%.2f", cost / base }'; }
budget() { [[ $1 == *=* ]] && echo "${1#*=}" || echo 1.5; }
is_over() { awk -v ratio="$(ratio "${1%=*}")" -v budget="$(budget "$1")" 'BEGIN { exit !(ratio > budget) }'; }

left=("$@")
for _ in 1 2 3; do
  measure "$yardstick"
  over=()
  for name in "${left[@]}"; do
    measure "${name%=*}"
    ! is_over "$name" || over+=("$name")
  done
  left=("${over[@]}")
  [[ ${#left[@]} != 0 ]] || break
done

if [[ -n $table ]]; then
  printf '| folder | seconds of each header |\n|---|---|\n'
  for name; do
    printf '%s %d\n' "${name%=*}" "${least[${name%=*}]}"
  done | awk '{
    count = split($1, parts, "/")
    folder = count == 2 ? parts[1] : parts[2]
    cell = sprintf("%s %.1f", substr(parts[count], 1, length(parts[count]) - 4), $2 / 1000)
    printf "%s%s", folder == last ? ", " : (NR == 1 ? "" : " |\n") "| " folder " | ", cell
    last = folder
  }
  END { print " |" }'
else
  printf 'yardstick: %d ms\n' "${least[$yardstick]}"
  for name; do
    printf '%6d ms  %s of %s  %s\n' "${least[${name%=*}]}" "$(ratio "${name%=*}")" \
      "$(budget "$name")" "${name%=*}"
  done
fi
[[ ${#left[@]} == 0 ]] || { printf 'over budget: %s\n' "${left[@]}" >&2; exit 1; }
