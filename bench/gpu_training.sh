#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains the model of examples/train_vlm on one GPU, by bench/training/gpu_trainer.py: tokens per second of
# padded, unpadded and packed batches, the replay of 8, 32 and 64 ranks, predicted and measured times
# and peaks, loss curves, and the peaks of offloaded activations (bench/recompute/offload_peaks.py).
# usage: gpu_training.sh [--stand-in] [--seconds N] [--parts NAME,...] [PLAN_OFFLOAD]
# PLAN_OFFLOAD is the built program examples/plan_offload.cpp; without it, c++ compiles the program.
# --stand-in runs a small model on the processor. The script ends after N seconds (default: 520), and names
# the parts that are left. OMNIBAL_TORCH_PYTHON is a python3 with PyTorch. PYTHONPATH is the folder with
# the package `omnibal`, such as build/release/examples/python/package, if it is not installed.
# Returns 1 if a part misses its goal, and 77 if no python3 has PyTorch, if PyTorch has no GPU, or if
# there is no package.
set -euo pipefail

SECONDS=0
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
options=()
limit=520
program=
while (($#)); do
  case $1 in
    --stand-in) options+=("$1") ;;
    --seconds) limit=$2 && shift ;;
    --parts) options+=("$1" "$2") && shift ;;
    *) program=$(realpath "$1") ;;
  esac
  shift
done
found=${PYTHONPATH:-}
packages=
for folder in ${found//:/ }; do packages+=:$(realpath -m "$folder"); done
# Goes to a folder that is removed at the end.
. "$root/tests/examples/find_torch.sh"
if [[ -z $program ]]; then
  program=$PWD/plan_offload
  "${CXX:-c++}" -std=c++20 -O2 "-I$root/include" "$root/examples/plan_offload.cpp" -o "$program"
fi
# shellcheck disable=SC2154
PYTHONPATH=${packages#:} PYTHONDONTWRITEBYTECODE=1 "$python" \
  "$root/bench/training/gpu_trainer.py" --seconds $((limit - SECONDS)) "${options[@]}" "$program"
