#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The site: pages, recipes and the reference of all names, as HTML that needs no network.
# usage: docs.sh [FOLDER], by default build/site; then open FOLDER/html/index.html
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-build/site}
./scripts/setup.sh docs

# The menu: a section of index.md is an entry, its pages are below it, and all names below the reference.
menu() {
  doxygen -l /dev/stdout | awk '
    FNR == NR {
      if (/^## /) {
        if (section == "Reference") menu = menu "<tab type=\"modules\" title=\"All names\"/>\n"
        if (section != "") menu = menu "</tab>\n"
        section = substr($0, 4)
        menu = menu "<tab type=\"usergroup\" title=\"" section "\">\n"
      }
      line = $0
      while (menu != "" && match(line, /\[[^]]*\]\([^)]*\.md\)/)) {
        link = substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
        split(link, part, /\]\(/)
        sub(/^.*\//, "", part[2])
        sub(/\.md$/, "", part[2])
        menu = menu "<tab type=\"user\" url=\"@ref page_" part[2] "\" title=\"" part[1] "\"/>\n"
      }
      next
    }
    /<navindex>/ { print; printf "%s</tab>\n", menu; in_menu = 1; next }
    /<\/navindex>/ { in_menu = 0 }
    !in_menu { print }
  ' docs/index.md -
}
number() { sed -n "s/^#define OMNIBAL_VERSION_$1 //p" include/omnibal/version.hpp; }
mkdir -p "$folder"
rm -rf "$folder/html"
menu >"$folder/menu.xml"
{
  cat docs/Doxyfile
  printf 'PROJECT_NUMBER = %s.%s.%s\n' "$(number MAJOR)" "$(number MINOR)" "$(number PATCH)"
  printf 'OUTPUT_DIRECTORY = "%s"\nLAYOUT_FILE = "%s"\n' "$folder" "$folder/menu.xml"
} | doxygen -
# What a page shows instead of following it.
left='@(section|subsection|ref) |&lt;t[dhr] class=|&lt;table class='
if grep -lE "$left" "$folder"/html/page_*.html "$folder/html/index.html"; then
  printf 'docs.sh: these pages show commands of Doxygen\n' >&2
  exit 1
fi
printf 'the site begins with %s\n' "$folder/html/index.html"
