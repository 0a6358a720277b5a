#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that every link between pages leads to a page and a heading that there are, that choosing.md leads
# to every recipe and names nothing that no guide has, and that index.md leads to every page.
#
# usage: check_links.sh ROOT
set -euo pipefail

cd "$1"
awk '
  function slug_of(heading) {
    heading = tolower(heading)
    gsub(/[^a-z0-9 _-]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
  }
  # The path of a target of a page, without "..".
  function resolved(page, target) {
    if (target == "") return page
    if (page ~ /\//) {
      sub(/[^\/]*$/, "", page)
      target = page target
    }
    while (sub(/[^\/.]+\/\.\.\//, "", target)) continue
    return target
  }
  function complain(text) {
    print text
    failed = 1
  }
  function exists(path,  line, result) {
    result = (getline line < path) >= 0
    close(path)
    return result
  }

  FNR == 1 {
    in_code = in_tasks = in_recipes = 0
    pages[FILENAME] = 1
  }
  /^<!-- recipes -->$/ { in_recipes = 1 }
  /^<!-- end -->$/ { in_recipes = 0 }
  /^ *```/ { in_code = !in_code; next }
  in_code {
    if (FILENAME ~ /guides\//) words = words " " $0
    next
  }
  /^#+ / {
    heading = $0
    sub(/^#+ /, "", heading)
    in_tasks = FILENAME == "docs/choosing.md" && (heading == "Functions by task" || (in_tasks && /^###/))
    key = FILENAME "#" slug_of(heading)
    anchors[key (count[key]++ ? "-" count[key] - 1 : "")] = 1
    if (in_recipes && /^## /) recipes[key] = 1
  }
  FILENAME ~ /guides\// { words = words " " $0 }
  {
    line = $0
    while (in_tasks && match(line, /`[a-z_:0-9]+`/)) {
      named[substr(line, RSTART + 1, RLENGTH - 2)] = 1
      line = substr(line, RSTART + RLENGTH)
    }
    line = $0
    gsub(/`[^`]*`/, "", line)
    while (match(line, /\]\([^) ]*\)/)) {
      target = substr(line, RSTART + 2, RLENGTH - 3)
      line = substr(line, RSTART + RLENGTH)
      if (target ~ /^(https?|mailto):/) continue
      at = index(target, "#")
      anchor = at ? substr(target, at) : ""
      links[FILENAME " " resolved(FILENAME, at ? substr(target, 1, at - 1) : target) anchor] = 1
    }
  }

  END {
    for (link in links) {
      split(link, part, " ")
      path = part[2]
      sub(/#.*$/, "", path)
      if (path ~ /\.md$/ ? !(path in pages) : !exists(path)) complain(part[1] ": there is no " path)
      else if (part[2] ~ /#/ && !(part[2] in anchors)) complain(part[1] ": no heading for " part[2])
    }
    for (page in pages) {
      if (page == "docs/index.md" || ("docs/index.md " page) in links) continue
      complain("docs/index.md does not lead to " page)
    }
    for (recipe in recipes) {
      if (!(("docs/choosing.md " recipe) in links)) complain("docs/choosing.md does not lead to " recipe)
    }
    gsub(/[^a-z_:0-9]/, " ", words)
    words = words " "
    for (name in named) {
      if (!index(words, name)) complain("no guide has " name)
    }
    exit failed
  }
' README.md CHANGELOG.md CONTRIBUTING.md docs/*.md docs/*/*.md
