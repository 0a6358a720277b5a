#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pack_dataset chooses a capacity for a wanted mean batch, packs under it, and warns of a hopeless one.
# usage: target_batch.sh PROGRAM
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

# prints NAME PATTERN ARGUMENT... : the program succeeds, and a line of its output has the pattern
prints() {
  local name=$1 pattern=$2
  shift 2
  "$program" "$@" --details --output plan >output 2>&1 || complain "$name: exit status"
  grep -qE -- "$pattern" output || complain "$name: '$pattern' is not in the output"
}

# Samples of 5 images and 1300 tokens, and one of 3 images in four.
for ((i = 0; i < 2000; ++i)); do
  ((i % 4 == 0)) && echo "3,$((800 + i % 50))" || echo "5,$((1300 + i % 50))"
done | cat <(echo 'vit_num,token_num') - >mostly_fives.csv

for packer in best bfd isf next-fit; do
  prints "$packer" 'tokens, with 4\.[0-9]+ samples per group' \
    mostly_fives.csv --packer "$packer" --target-batch 4
  chosen=$(grep -oE '[0-9]+ images and [0-9]+ tokens, with' output | grep -oE '[0-9]+')
  planned=$(grep -A3 '"capacity"' plan/plan.json | grep -oE '[0-9]+')
  [ "$chosen" = "$planned" ] || complain "$packer: the plan has the capacity $planned"
  grep -q 'Warning' output && complain "$packer: a warning"
done
prints "aligned" 'Chosen for a mean of 4.00 samples' mostly_fives.csv --align 128 --target-batch 4
tokens=$(grep -oE '[0-9]+ tokens, with' output | grep -oE '[0-9]+')
((tokens % 128 == 0)) || complain "aligned: $tokens tokens"
prints "hopeless" 'have 5 images, and a capacity of 9 images holds no two of them; 10 would' \
  mostly_fives.csv --capacity 9 4096
prints "outside" 'No capacity suits a mean of 5000.00' mostly_fives.csv --target-batch 5000

# Of few samples none may be left out by the chosen capacity of text.
echo '[1341, 77]' >few.json
"$program" few.json --quiet --no-picture --output few >output 2>message || complain "few: it fails"
[ ! -s message ] || complain "few: $(cat message)"
grep -A2 '"capacity"' few/plan.json | grep -q '"tokens": 2048' ||
  complain "few: another capacity than 2048"

[ "$failures" -eq 0 ] && echo "all as promised"
exit "$((failures != 0))"
