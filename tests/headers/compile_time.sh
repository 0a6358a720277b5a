#!/usr/bin/env bash
# What each header costs to compile alone, as a ratio to a handful of standard headers.
# usage: compile_time.sh COMPILER INCLUDE_DIR HEADER...
# Fails where a header costs more than BUDGET (default 3) times the yardstick.
set -euo pipefail

compiler=$1
include_dir=$2
shift 2
budget=${BUDGET:-3}
yardstick=(algorithm functional ranges span string vector)

# Milliseconds of processor time, median of three, to compile the program on standard input.
milliseconds() {
  local source
  source=$(cat)
  local TIMEFORMAT='%U %S'
  for _ in 1 2 3; do
    { time "$compiler" -std=c++20 -fsyntax-only -I "$include_dir" -x c++ - <<<"$source"; } 2>&1
  done | awk '{ printf "%d\n", 1000 * ($1 + $2) }' | sort -n | sed -n 2p
}

base=$(printf '#include <%s>\n' "${yardstick[@]}" | milliseconds)
printf 'yardstick: %d ms, budget %s times that\n' "$base" "$budget"

status=0
for header; do
  cost=$(printf '#include <%s>\n' "$header" | milliseconds)
  verdict=$(awk -v cost="$cost" -v base="$base" -v budget="$budget" \
    'BEGIN { printf "%.2f%s", cost / base, (cost > budget * base ? " over budget" : "") }')
  printf '%6d ms  %s  %s\n' "$cost" "$header" "$verdict"
  [[ $verdict != *over* ]] || status=1
done
exit "$status"
