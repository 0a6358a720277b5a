#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that a figure which several pages state is the same on each of them. tests/cookbook/figures.tsv
# lists the figures: what is measured, the value, and the pages, separated by tabs. A page that rounds or
# spells the value in another way follows it with ": " and its own text. Lines and runs of spaces count
# as one space, and a value is not found within a longer number.
#
# usage: check_figures.sh ROOT
set -euo pipefail

list=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/figures.tsv
cd "$1"
LC_ALL=C awk -F '\t' -v list="$list" '
  function complain(text) {
    print "figures.tsv:" FNR ": " text
    failed = 1
  }
  # The text of a page in one line; comments lose their slashes.
  function read(page,  line, is_page, text) {
    if (page in texts) return
    is_page = page ~ /[.]md$/
    while ((getline line < page) > 0) {
      if (!is_page) sub(/^ *\/\/+[!<]?/, "", line)
      text = text " " line
    }
    close(page)
    gsub(/[ \t]+/, " ", text)
    texts[page] = text
  }
  # Whether a text has a value that is no part of a longer number.
  function has(text, value,  at, before, behind) {
    while (at = index(text, value)) {
      before = substr(text, 1, at - 1)
      behind = substr(text, at + length(value))
      if (!(value ~ /^[0-9]/ && before ~ /[0-9][.,]?$/) && !(value ~ /[0-9]$/ && behind ~ /^[.,]?[0-9]/)) return 1
      text = substr(text, at + 1)
    }
    return 0
  }

  /^#/ || /^$/ { next }
  {
    ++rows
    if (NF < 4) complain("a figure needs what is measured, a value and two pages")
    if ($2 == "") complain("no value: " $1)
    if (lines[$1]++) complain("twice: " $1)
    for (i = 3; i <= NF; ++i) {
      page = $i
      value = $2
      if (at = index(page, ": ")) {
        value = substr(page, at + 2)
        page = substr(page, 1, at - 1)
      }
      if (page in seen && seen[page] == FNR) complain("the page is there twice: " page)
      seen[page] = FNR
      read(page)
      if (texts[page] == "") complain(page " is no page (" $1 ")")
      else if (!has(texts[page], value)) complain(page " lacks \"" value "\": " $1)
    }
  }
  END {
    if (rows < 50) complain("only " rows + 0 " figures")
    if (!failed) print rows " figures are the same on all of their pages"
    exit failed
  }
' "$list"
