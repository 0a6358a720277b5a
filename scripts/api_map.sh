#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes docs/reference/api.md, the public names by group with their headers, from the headers.
# usage: api_map.sh [--check]    with --check it fails where the page is another one
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C
page=$(mktemp)
trap 'rm -f "$page"' EXIT

group_title() { sed -n "s/^.*defgroup $1 \(.*\) \*\/$/\1/p" docs/groups.dox; }

find include/omnibal \( -name '*.hpp' -o -name '*.cuh' \) -not -path '*/detail/*' | sort |
  xargs awk -f scripts/api_map.awk | sort -t $'\t' -k 1,1 -k 2,2 -u >"$page.names"
{
  cat <<'TEXT'
# Names and headers

This page lists every public name, what it is and its header below `omnibal/`. Read it to find a header or an option;
`<omnibal/omnibal.hpp>` has all that needs the standard library alone. Options and results stand with the function that
takes and gives them. `scripts/api_map.sh` writes this page from the headers.
TEXT
  while read -r group; do
    title=$(group_title "$group")
    [[ -n $title ]] || { printf 'docs/groups.dox has no group %s\n' "$group" >&2; exit 1; }
    printf '\n## %s\n\n<!-- group %s -->\n\n| name | what it is | header |\n|---|---|---|\n' "$title" "$group"
    awk -F '\t' -v group="$group" \
      '$1 == group { printf "| `%s` | %s | `%s` |\n", $2, $5 == "" ? $3 : $5, $4 }' "$page.names"
  done < <(sed -n 's/^.*defgroup \([a-z]*\) .*$/\1/p' docs/groups.dox)
  missing=$(cut -f 1 "$page.names" | sort -u | while read -r group; do
    [[ -n $(group_title "$group") ]] || printf '%s ' "$group"
  done)
  [[ -z $missing ]] || { printf 'docs/groups.dox lacks groups: %s\n' "$missing" >&2; exit 1; }
} >"$page"
rm -f "$page.names"

if [[ ${1:-} == --check ]]; then
  diff -u docs/reference/api.md "$page" || { printf 'run scripts/api_map.sh\n' >&2; exit 1; }
else
  cp "$page" docs/reference/api.md
fi
