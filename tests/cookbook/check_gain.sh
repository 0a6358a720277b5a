#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that the figures in README are those of docs/study.md, which are compared with what study_omnibal
# prints, and that the bars beside them are as long.
#
# usage: check_gain.sh README STUDY
set -euo pipefail

awk -F ' *[|] *' '
  FNR == NR {
    if (NF > 10 && !($2 in days)) days[$2] = $5
    next
  }
  /█/ {
    name = $0
    sub(/ *█.*$/, "", name)
    figure = $0
    sub(/^.* /, "", figure)
    bar = $0
    length_of_bar = gsub(/█/, "", bar)
    if (figure != days[name]) { print name ": " figure ", not " days[name]; failed = 1 }
    if (length_of_bar != int(figure / 3 + 0.5)) { print name ": a bar of " length_of_bar; failed = 1 }
    ++bars
  }
  END { exit failed || bars != 4 }
' "$2" "$1"
