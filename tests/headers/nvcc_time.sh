#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What each CUDA header costs to compile alone, in seconds of processor time.
# usage: nvcc_time.sh INCLUDE_DIR HEADER... -- NVCC OPTIONS...
# Fails where a header costs more than BUDGET (default 12) seconds.
set -euo pipefail

include_dir=$1
shift
headers=()
while [[ $1 != -- ]]; do
  headers+=("$1")
  shift
done
shift
budget=${BUDGET:-12}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Seconds of processor time to compile the program on standard input.
seconds() {
  local TIMEFORMAT='%U %S'
  cat >"$work/alone.cu"
  { time "$@" -c "$work/alone.cu" -o "$work/alone.o" >&3; } 2>&1 3>&2 |
    awk 'NF == 2 { printf "%.1f\n", $1 + $2 }'
}

printf '%5s s  an empty file\n' "$(seconds "$@" </dev/null)"
status=0
for header in "${headers[@]}"; do
  cost=$(printf '#include <%s>\n' "$header" | seconds "$@")
  verdict=$(awk -v cost="$cost" -v budget="$budget" 'BEGIN { if (cost > budget) print "over budget" }')
  printf '%5s s  %s  %s\n' "$cost" "$header" "$verdict"
  [[ -z $verdict ]] || status=1
done
exit "$status"
