#!/usr/bin/env bash
# Demands that the figures in README are those of docs/planning.md, which are compared with what plan_vlm
# prints, and that the bars beside them are as long.
#
# usage: check_gain.sh README PLANNING
set -euo pipefail

awk -F ' *[|] *' '
  FNR == NR {
    if (NF > 4 && !($2 in seconds)) seconds[$2] = $3
    next
  }
  /█/ {
    name = $0
    sub(/ *█.*$/, "", name)
    figure = $0
    sub(/^.* /, "", figure)
    bar = $0
    length_of_bar = gsub(/█/, "", bar)
    if (figure != seconds[name]) { print name ": " figure ", not " seconds[name]; failed = 1 }
    if (length_of_bar != int(5 * figure + 0.5)) { print name ": a bar of " length_of_bar; failed = 1 }
    ++bars
  }
  END { exit failed || bars != 4 }
' "$2" "$1"
