#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that a page of docs/guides shows the recipes of a program and what they print, between its lines
# `<!-- recipes -->` and `<!-- end -->`: behind each heading the code of the function of that name, what
# stands before it in the source, and its output.
#
# usage: check_page.sh PROGRAM SOURCE PAGE [write]
# With `write` the blocks of the page are replaced.
set -euo pipefail

program=$1 source=$2 page=$3 mode=${4:-check}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$program" >"$work/output"

# The blocks of the page as they must be: the begin of the source, then the recipes.
awk '
  function flush_block(  first) {
    first = 1
    while (first <= count && lines[first] == "") ++first
    while (count >= first && lines[count] == "") --count
    if (first <= count || begun) {
      print "```cpp"
      for (k = first; k <= count; ++k) {
        if (lines[k] != "" || lines[k - 1] != "") print lines[k]
      }
      print "```"
    }
    count = 0
  }
  FNR == NR {
    if (/^== /) name = $2
    else output[name] = output[name] $0 "\n"
    next
  }
  /^\/\/ SPDX-/ || /^#include "recipes.hpp"$/ || /^namespace cookbook \{$/ || /^}  \/\/ namespace cookbook$/ { next }
  /^int main\(/ { exit }
  /^void [a-z_0-9]+\(\) \{$/ {
    name = $2
    sub(/\(.*/, "", name)
    if (!begun) flush_block()
    else if (count > 0) {
      while (count > 0 && lines[count] == "") --count
      if (count > 0) lines[++count] = ""
    }
    begun = 1
    print "## " name
    in_recipe = 1
    next
  }
  in_recipe && /^}$/ {
    flush_block()
    printf "```text\n%s```\n", output[name]
    in_recipe = 0
    next
  }
  in_recipe { sub(/^  /, "") }
  { lines[++count] = $0 }
' "$work/output" "$source" >"$work/expected"

if [[ $mode == write ]]; then
  awk '
    FNR == NR {
      if (/^## /) next
      blocks[block + 1] = blocks[block + 1] $0 "\n"
      if (/^```$/) ++block
      next
    }
    /^<!-- recipes -->$/ { in_recipes = 1 }
    /^<!-- end -->$/ { in_recipes = 0 }
    in_block { if (/^```$/) in_block = 0; next }
    in_recipes && /^```/ { in_block = 1; printf "%s", blocks[++used]; next }
    { print }
  ' "$work/expected" "$page" >"$work/page"
  cp "$work/page" "$page"
fi

awk '
  /^<!-- recipes -->$/ { in_recipes = 1; next }
  /^<!-- end -->$/ { in_recipes = 0 }
  !in_recipes { next }
  /^```/ { in_block = !in_block; print; next }
  in_block { print; next }
  /^## / { slug = tolower(substr($0, 4)); gsub(/[^a-z0-9 _-]/, "", slug); gsub(/[ -]/, "_", slug); print "## " slug }
' "$page" >"$work/found"
diff -u "$work/expected" "$work/found"
