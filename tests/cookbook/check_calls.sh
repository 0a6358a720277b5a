#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that each table of a page begins with a column of calls, and that what stands as code in it is
# compiled: it is found in the sources below the folders, whatever its spaces and without `omnibal::`.
#
# usage: check_calls.sh PAGE FOLDER...
set -euo pipefail
export LC_ALL=C

page=$1
shift
sources=$(find "$@" \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' \) -exec cat {} + |
  tr -d '[:space:]' | sed 's/omnibal:://g')

failed=0 calls=0
while IFS= read -r call; do
  calls=$((calls + 1))
  [[ $sources == *"${call//[[:space:]]/}"* ]] && continue
  printf '%s: in no source: %s\n' "$page" "$call"
  failed=1
done < <(awk '
  !/^\|/ { row = 0; next }
  ++row == 1 { if (!/^\| call \|/) print "a table without calls: " $0; next }
  row == 2 { next }
  {
    cell = substr($0, 3)
    sub(/ \| .*/, "", cell)
    if (cell !~ /`/) print "a row without a call: " $0
    while (match(cell, /`[^`]*`/)) {
      print substr(cell, RSTART + 1, RLENGTH - 2)
      cell = substr(cell, RSTART + RLENGTH)
    }
  }
' "$page")
[[ $calls != 0 && $failed == 0 ]]
