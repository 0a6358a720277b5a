#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the trainer of examples/train_vlm: every table and picture of docs/evidence/training.md, each in
# a file of its own. About an hour on two idle cores; --quick tries the commands in some minutes.
# usage: training.sh [--quick] [FOLDER]    (build/training by default)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
quick=
if [[ ${1:-} == --quick ]]; then
  quick=yes
  shift
fi
folder=$(realpath -m "${1:-$root/build/training}")

"$root/scripts/setup.sh" training
cd "$root"
cmake --preset examples
cmake --build --preset examples --target example_train_vlm
program=build/examples/examples/train_vlm/train_vlm
mkdir -p "$folder"

# Pages of documents: 93 of 100 have seven tiles, and their texts are short.
awk 'BEGIN {
  print "vit_num,token_num"
  for (state = 5; rows != 1024; ++rows) {
    state = state * 16807 % 2147483647
    tiles = state % 100 < 93 ? 7 : 3 + 2 * (state % 5)
    state = state * 16807 % 2147483647
    print tiles "," tiles * 256 + 20 + state % 100
  }
}' >"$folder/documents.csv"

# measure NAME SAMPLES RUNS ARGUMENT... : writes FOLDER/NAME.txt, beginning with the command.
measure() {
  local name=$1 samples=$2 runs=$3
  local -a data=(--synthetic "$samples")
  [[ $name != *documents ]] || data=("$folder/documents.csv" --limit "$samples")
  [[ -z $quick ]] || data[-1]=96 runs=1
  local -a words=("${data[@]}" --runs "$runs" --oversized own-group "${@:4}")
  printf '\n== train_vlm %s\n' "${words[*]}"
  { printf 'train_vlm %s\n\n' "${words[*]}" && "$program" "${words[@]}"; } | tee "$folder/$name.txt"
}

usual=(--capacity-images 9 --capacity-tokens 4096)
measure gradients 512 1 "${usual[@]}" --task gradients --batch 8
measure curves 512 1 "${usual[@]}" --task curves --batch 2
measure compare 1024 5 "${usual[@]}" --task compare
measure compare_larger_model 256 1 "${usual[@]}" --task compare --vision-layers 6 --layers 4 --width 192
measure replay 2048 3 "${usual[@]}" --task replay
measure compare_documents 1024 5 --task compare
measure replay_documents 1024 3 --task replay --replay 8,64
measure learning 512 5 "${usual[@]}" --task learning --svg "$folder/learning.svg"
measure pipeline 1024 9 "${usual[@]}" --task pipeline --vision-layers 6 --layers 4 --width 192
measure long 2048 3 "${usual[@]}" --task long --shrink 4 --replay 8,32
measure memory 256 1 "${usual[@]}" --task memory --layers 4 --vision-layers 3
measure memory_of_fewer_layers 256 1 "${usual[@]}" --task memory --layers 3 --vision-layers 2
