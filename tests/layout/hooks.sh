#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hooks.sh ROOT: wrap_comments.py wraps long comments and leaves all else; commit-msg knows good subjects.
set -euo pipefail

root=${1:?usage: hooks.sh ROOT}
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1" >&2; exit 1; }

words=$(printf 'word%.0s ' {1..24})
printf '/// \\file\n/// %s\n/// end.\n\n/// A short one\n/// in two lines.\nint x;\n' "$words" >"$work/a.hpp"
python3 "$root/scripts/wrap_comments.py" "$work/a.hpp"
[[ $(awk 'length > 100' "$work/a.hpp") == "" ]] || fail "a long line is left"
[[ $(tr -s ' \n/' ' ' <"$work/a.hpp") == " \\file $words""end. A short one in two lines. int x; " ]] ||
  fail "other words: $(cat "$work/a.hpp")"
[[ $(head -n 1 "$work/a.hpp") == '/// \file' ]] || fail "a command is no paragraph of its own"
grep -qx '/// in two lines\.' "$work/a.hpp" || fail "a paragraph without long lines was changed"

refused() {
  echo "$1" >"$work/message"
  ! "$root/scripts/hooks/commit-msg" "$work/message" 2>"$work/reason"
}
refused "pack: stop at the bound" && fail "a good subject is refused: $(cat "$work/reason")"
refused "stop at the bound" || fail "a subject without an area is taken"
refused "pack:stop at the bound" || fail "a subject without a blank is taken"
refused "pack: $(printf 'x%.0s' {1..67})" || fail "a subject of 73 characters is taken"
refused "pack: $(printf 'x%.0s' {1..66})" && fail "a subject of 72 characters is refused"
exit 0
