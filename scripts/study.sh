#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the tables and pictures of docs/evidence/study.md, or of another page. A comment on the page names the command that
# prints what follows, of the programs in examples/:
#
#   <!-- table: study_hbp models -->  TABLE  <!-- end -->
#   <!-- picture study_hbp.svg: study_hbp picture -->          into docs/pictures/
#   <!-- rows of PAGE: REGEX -->  ROWS  <!-- end -->    the lines of another page which match
#
# `slow table` and `slow picture` are left out by --quick, `measured table`, whose figures are those
# of the machine, by all but --measured.
#
# usage: study.sh [--check] [--quick] [--measured] [--programs FOLDER] [--page FILE]
#   --check            change nothing; exit status 1 where the page is not what the programs print
#   --programs FOLDER  where the programs are; without it they are built
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
page=$root/docs/evidence/study.md
programs=
checks=
skipped=(measured)

fail() {
  printf 'study.sh: %s\n' "$1" >&2
  exit 1
}

while [[ $# -gt 0 ]]; do
  case $1 in
    --check) checks=yes ;;
    --quick) skipped+=(slow) ;;
    --measured) skipped=("${skipped[@]/measured/}") ;;
    --programs | --page)
      [[ $# -gt 1 ]] || fail "$1 needs an argument"
      if [[ $1 == --page ]]; then page=$(realpath "$2"); else programs=$(realpath "$2"); fi
      shift
      ;;
    *) fail "unknown argument $1" ;;
  esac
  shift
done

if [[ -z $programs ]]; then
  "$root/scripts/setup.sh" test
  named='s/^<!-- .*(table|picture).*: ([a-z0-9_]+) .*-->$/example_\2/p'
  mapfile -t targets < <(sed -nE "$named" "$page" | sort -u)
  cd "$root"
  cmake --preset examples
  cmake --build --preset examples --target "${targets[@]}"
  programs=$root/build/examples/examples
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/pictures"
docs=$(dirname "$page")
pictures=$docs/../pictures

# run WORD... : what a program of the examples prints.
run() {
  [[ -x $programs/$1 ]] || fail "there is no program $programs/$1"
  "$programs/$1" "${@:2}" </dev/null >"$work/output" || fail "$* fails"
  [[ -s $work/output ]] || fail "$* prints nothing"
}

# is_skipped SPEED
is_skipped() { [[ -n $1 && " ${skipped[*]} " == *" $1 "* ]]; }

# copy_section: the lines up to the end of the section, kept if the first argument says so.
copy_section() {
  local line
  while IFS= read -r line; do
    [[ $line != '<!-- end -->' ]] || return 0
    [[ $line != '<!-- '* ]] || fail "a section does not end before $line"
    [[ $1 != kept ]] || printf '%s\n' "$line"
  done
  fail "the last section does not end"
}

# The page on the standard input, with new sections, on the standard output.
renew() {
  local -r call='([A-Za-z0-9_.,+ -]+)'
  local line speed kind name words
  local -a command
  while IFS= read -r line; do
    printf '%s\n' "$line"
    if [[ $line =~ ^'<!-- '((slow|measured)' ')?table': '$call' -->'$ ]]; then
      kind=table speed=${BASH_REMATCH[2]} words=${BASH_REMATCH[3]}
    elif [[ $line =~ ^'<!-- '(slow' ')?picture' '([a-z0-9_]+\.svg)': '$call' -->'$ ]]; then
      kind=picture speed=${BASH_REMATCH[1]% } name=${BASH_REMATCH[2]} words=${BASH_REMATCH[3]}
    elif [[ $line =~ ^'<!-- rows of '([a-z_/.]+\.md)': '(.+)' -->'$ ]]; then
      kind=rows speed='' name=${BASH_REMATCH[1]} words=${BASH_REMATCH[2]}
    elif [[ $line == '<!-- '* ]]; then
      fail "what does this ask for? $line"
    else
      continue
    fi
    if is_skipped "$speed"; then
      [[ $kind == picture ]] || { copy_section kept && echo '<!-- end -->'; }
      continue
    fi
    read -ra command <<<"$words"
    case $kind in
      table)
        run "${command[@]}"
        copy_section dropped
        printf '\n%s\n\n<!-- end -->\n' "$(<"$work/output")"
        ;;
      picture)
        run "${command[@]}"
        mv "$work/output" "$work/pictures/$name"
        ;;
      rows)
        grep -E -- "$words" "$docs/$name" >"$work/output" || fail "$name has no lines $words"
        copy_section dropped
        printf '\n```text\n%s\n```\n\n<!-- end -->\n' "$(<"$work/output")"
        ;;
    esac
  done
}

renew <"$page" >"$work/page.md"

shopt -s nullglob
if [[ -z $checks ]]; then
  cp "$work/page.md" "$page"
  for picture in "$work"/pictures/*; do cp "$picture" "$pictures/"; done
  exit 0
fi
differs=
diff -u "$page" "$work/page.md" || differs=yes
for picture in "$work"/pictures/*; do
  cmp "$picture" "$pictures/${picture##*/}" || differs=yes
done
[[ -z $differs ]] || fail "$page is not what the programs print; ./scripts/study.sh writes it"
echo "$(grep -cE '^<!-- .*(table|picture|rows)' "$page") sections are what the programs print"
