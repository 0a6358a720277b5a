#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that each block of C++ on a page stands in one of the sources, whatever its indentation. Other
# tests check the recipes between `<!-- recipes -->` and `<!-- end -->`.
#
# usage: check_quotes.sh PAGE... -- SOURCE...
set -euo pipefail

pages=()
while [[ $1 != -- ]]; do
  pages+=("$1")
  shift
done
shift
awk -v sources=$# '
  function stripped(line) { sub(/^ +/, "", line); return line "\n" }
  function is_quoted(block,  f) {
    for (f = 1; f <= sources; ++f) if (index(text[f], block)) return 1
    return 0
  }
  FNR == 1 { ++file; in_block = in_recipes = 0 }
  file <= sources { text[file] = text[file] stripped($0); next }
  /^<!-- recipes -->$/ { in_recipes = ++blocks }
  /^<!-- end -->$/ { in_recipes = 0 }
  in_recipes { next }
  /^```cpp$/ { in_block = 1; block = ""; next }
  /^```$/ && in_block {
    in_block = 0
    ++blocks
    if (!is_quoted(block)) { printf "%s: in no source:\n%s", FILENAME, block; failed = 1 }
    next
  }
  in_block { block = block stripped($0) }
  END { exit failed || blocks == 0 }
' "$@" "${pages[@]}"
