#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# count_lines.sh [--check FILE] [-I FOLDER] [COMPILER...]: compiles each mistake of mistakes.cpp alone and
# prints a row for each: compiler, number, lines of the message, the line at which one of the expected words
# stands ("-" where none does), and the mistake. With --check the numbers are limits, in a file of such rows, and
# a mistake that compiles, lacks its word or has it below the limit is an error.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
include=$here/../../include
limits=
compilers=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --check) limits=$2; shift 2;;
    -I) include=$2; shift 2;;
    *) compilers+=("$1"); shift;;
  esac
done
[[ ${#compilers[@]} -eq 0 ]] && compilers=(g++ clang++)

failures=0
for compiler in "${compilers[@]}"; do
  kind=$([[ $("$compiler" --version) == *clang* ]] && echo clang || echo gcc)
  while IFS='|' read -r _ number word mistake; do
    number=${number// /} mistake=${mistake# }
    word=$(sed 's/^ *//; s/ *$//; s/,/|/g' <<< "$word")
    if message=$("$compiler" -std=c++20 -fsyntax-only "-DMISTAKE=$number" -I "$include" \
                 "$here/mistakes.cpp" 2>&1); then
      at=
      row="$kind | $number | compiles | - | $mistake"
    else
      lines=$(wc -l <<< "$message")
      # Not in the user's own line, nor in the head of a candidate.
      at=$(grep -vnE "mistakes.cpp:.*(error:|In )|candidate: |In substitution of|^ *[0-9]* [|] " <<< "$message" |
           grep -E -- "$word" | head -n 1 | cut -d : -f 1)
      row="$kind | $number | $lines | ${at:--} | $mistake"
    fi
    echo "$row"
    [[ -z $limits ]] && continue
    most=$(awk -F ' [|] ' -v kind="$kind" -v number="$number" '$1 == kind && $2 == number { print $4 }' \
           "$limits")
    # Compilers of other versions say a little more or less.
    if [[ $row == *" | compiles | "* || -z $most ||
          ( $most != - && ( -z $at || $at -gt $((most + 10)) ) ) ]]; then
      echo "  expected \"$word\" by line ${most:-(no row)}" >&2
      failures=$((failures + 1))
    fi
  done < <(grep '^//|' "$here/mistakes.cpp")
done
[[ $failures -eq 0 ]]
