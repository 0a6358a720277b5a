#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that what stands as code in the first column of a table of pages, if that column is headed `call`, is
# compiled: it is found in the sources below the folders, whatever its spaces and without `omnibal::`.
#
# usage: check_calls.sh FOLDER... -- PAGE...
set -euo pipefail
export LC_ALL=C

folders=()
while [[ $1 != -- ]]; do
  folders+=("$1")
  shift
done
shift
sources=$(find "${folders[@]}" \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' \) -exec cat {} + |
  tr -d '[:space:]' | sed 's/omnibal:://g')

failed=0 calls=0
while IFS= read -r call; do
  calls=$((calls + 1))
  [[ $sources == *"${call//[[:space:]]/}"* ]] && continue
  printf 'in no source: %s\n' "$call"
  failed=1
done < <(awk '
  !/^\|/ { row = 0; next }
  ++row == 1 { has_calls = /^\| call \|/; next }
  row == 2 || !has_calls { next }
  {
    cell = substr($0, 3)
    sub(/ \| .*/, "", cell)
    if (cell !~ /`/) print "a row without a call: " $0
    while (match(cell, /`[^`]*`/)) {
      print substr(cell, RSTART + 1, RLENGTH - 2)
      cell = substr(cell, RSTART + RLENGTH)
    }
  }
' "$@")
[[ $calls != 0 && $failed == 0 ]]
