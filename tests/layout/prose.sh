#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# prose.sh FOLDER: the comments of headers keep to rule 15 of CONTRIBUTING.md. Fails with the places if a
# pattern that readers stumble over occurs more often than the limit below.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
places=$(mktemp)
trap 'rm -f "$places"' EXIT
find "${1:?usage: prose.sh FOLDER}" \( -name '*.hpp' -o -name '*.cuh' \) | sort |
  xargs awk -f "$here/prose.awk" >"$places"
[[ $(find "$1" -name '*.hpp' | wc -l) -gt 100 ]] || { echo "no headers in $1" >&2; exit 1; }

failed=0
while IFS='|' read -r pattern limit meaning; do
  count=$(awk -F '\t' -v pattern="$pattern" '$1 == pattern' "$places" | wc -l)
  printf '%5d of at most %d: %s\n' "$count" "$limit" "$meaning"
  ((count <= limit)) && continue
  awk -F '\t' -v pattern="$pattern" '$1 == pattern { printf "  %s: %s\n", $2, $3 }' "$places" >&2
  failed=1
done <<'LIMITS'
where|1|"where" that may mean "if"
start|0|sentences that begin with Of, What, Where, By or For who
those of|0|"those of" and "that of"
long|0|sentences of more than 35 words
LIMITS
exit "$failed"
