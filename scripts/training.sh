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

# measure NAME SAMPLES RUNS ARGUMENT... : writes FOLDER/NAME.txt, beginning with the command.
measure() {
  local name=$1 samples=$2 runs=$3
  [[ -z $quick ]] || samples=96 runs=1
  local -a words=(--synthetic "$samples" --runs "$runs" --oversized own-group "${@:4}")
  printf '\n== train_vlm %s\n' "${words[*]}"
  { printf 'train_vlm %s\n\n' "${words[*]}" && "$program" "${words[@]}"; } | tee "$folder/$name.txt"
}

measure gradients 512 1 --task gradients --batch 8
measure curves 512 1 --task curves --batch 2
measure compare 1024 5 --task compare
measure compare_larger_model 256 1 --task compare --vision-layers 6 --layers 4 --width 192
measure replay 2048 3 --task replay
measure learning 512 5 --task learning --svg "$folder/learning.svg"
measure pipeline 1024 9 --task pipeline --vision-layers 6 --layers 4 --width 192
measure long 2048 3 --task long --shrink 4 --replay 8,32
measure memory 256 1 --task memory --layers 4 --vision-layers 3
measure memory_of_fewer_layers 256 1 --task memory --layers 3 --vision-layers 2
