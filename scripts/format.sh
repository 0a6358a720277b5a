#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats sources: clang-format for code, wrap_comments.py for comments.
#
# usage: format.sh [--check] [FILE...]
# Without files: the sources that differ from the last commit. With --check nothing is written, and the
# exit status is 1 if a file would change.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
check=false
if [[ ${1-} == --check ]]; then
  check=true
  shift
fi
files=("$@")
if ((${#files[@]} == 0)); then
  mapfile -t files < <(cd "$root" && git diff --name-only --diff-filter=d HEAD -- '*.hpp' '*.cpp' \
    '*.cuh' '*.cu' '*.h')
  cd "$root"
fi
failed=0
for file in "${files[@]}"; do
  new=$(mktemp --suffix=".${file##*.}")
  clang-format --style=file:"$root/.clang-format" --assume-filename="$file" <"$file" >"$new"
  long=$("$here/wrap_comments.py" "$new")
  if [[ -n $long ]]; then
    printf '%s has lines that are too long:\n%s\n' "$file" "${long//$new/$file}" >&2
    failed=1
  fi
  if ! cmp -s "$file" "$new"; then
    if $check; then
      printf 'format.sh would change %s\n' "$file" >&2
      failed=1
    else
      cat "$new" >"$file"
    fi
  fi
  rm -f "$new"
done
exit "$failed"
