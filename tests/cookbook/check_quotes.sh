#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that each block of C++ on a page stands in one of the sources, whatever its indentation. Others
# check the recipes between `<!-- recipes -->` and `<!-- end -->`.
#
# usage: check_quotes.sh PAGE SOURCE...
set -euo pipefail

page=$1
shift
awk -v page="$page" '
  function stripped(line) { sub(/^ +/, "", line); return line "\n" }
  FILENAME != page { text = text stripped($0); next }
  /^<!-- recipes -->$/ { in_recipes = ++blocks }
  /^<!-- end -->$/ { in_recipes = 0 }
  in_recipes { next }
  /^```cpp$/ { in_block = 1; block = ""; next }
  /^```$/ && in_block {
    in_block = 0
    ++blocks
    if (index(text, block) == 0) { printf "%s: in no source:\n%s", page, block; failed = 1 }
    next
  }
  in_block { block = block stripped($0) }
  END { exit failed || blocks == 0 }
' "$@" "$page"
