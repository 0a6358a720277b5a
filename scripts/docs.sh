#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The site: pages, recipes and the reference of all names, as HTML that needs no network.
# usage: docs.sh [FOLDER], by default build/site; then open FOLDER/html/index.html
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-build/site}
./scripts/setup.sh docs

number() { sed -n "s/^#define OMNIBAL_VERSION_$1 //p" include/omnibal/version.hpp; }
mkdir -p "$folder"
rm -rf "$folder/html"
{
  cat docs/Doxyfile
  printf 'PROJECT_NUMBER = %s.%s.%s\n' "$(number MAJOR)" "$(number MINOR)" "$(number PATCH)"
  printf 'OUTPUT_DIRECTORY = "%s"\n' "$folder"
} | doxygen -
# What a page shows instead of following it.
left='@(section|subsection|ref) |&lt;t[dhr] class=|&lt;table class='
if grep -lE "$left" "$folder"/html/page_*.html "$folder/html/index.html"; then
  printf 'docs.sh: these pages show commands of Doxygen\n' >&2
  exit 1
fi
printf 'the site begins with %s\n' "$folder/html/index.html"
