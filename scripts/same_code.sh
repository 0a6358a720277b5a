#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that two commits differ in comments only: compares the tokens of all headers without
# comments.
# usage: same_code.sh OLD [NEW]    NEW is the working tree if it is left out
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
old=${1:?usage: same_code.sh OLD [NEW]}
new=${2:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Prints the tokens of standard input, one for each word, without comments.
tokens() { g++ -x c++ -std=c++20 -fpreprocessed -dD -E -P - 2>/dev/null | tr -s '[:space:]' '\n'; }

list() {
  if [[ -n $1 ]]; then
    git ls-tree -r --name-only "$1" include
  else
    git ls-files --cached --others --exclude-standard include
  fi | sort
}
text() { if [[ -n $1 ]]; then git show "$1:$2"; else cat "$2"; fi; }

if ! diff <(list "$old") <(list "$new"); then
  echo "same_code: the commits have different headers" >&2
  exit 1
fi
changed=0
while read -r header; do
  text "$old" "$header" | tokens >"$scratch/old"
  text "$new" "$header" | tokens >"$scratch/new"
  if ! diff "$scratch/old" "$scratch/new" >"$scratch/diff"; then
    printf 'same_code: %s has other tokens\n' "$header" >&2
    head -n 6 "$scratch/diff" >&2
    changed=1
  fi
done < <(list "$new")
exit "$changed"
