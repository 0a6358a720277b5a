#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares predicted peaks of training steps that keep, recompute and offload activations with measured
# ones on one GPU, with pinned memory and a stream for copies, by bench/recompute/offload_peaks.py.
# usage: gpu_training.sh [--stand-in] [PLAN_OFFLOAD]
# PLAN_OFFLOAD is the built program examples/plan_offload.cpp; without it, c++ compiles the program.
# --stand-in runs a small model on the processor. OMNIBAL_TORCH_PYTHON is a python3 with PyTorch.
# Returns 77 if no python3 has PyTorch or if PyTorch has no GPU, and 1 if a peak is wrong.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
options=()
if [[ ${1:-} == --stand-in ]]; then
  options=(--stand-in)
  shift
fi
program=${1:+$(realpath "$1")}
# Goes to a folder that is removed at the end.
. "$root/tests/examples/find_torch.sh"
if [[ -z $program ]]; then
  program=$PWD/plan_offload
  "${CXX:-c++}" -std=c++20 -O2 "-I$root/include" "$root/examples/plan_offload.cpp" -o "$program"
fi
# shellcheck disable=SC2154
PYTHONPATH=$root/examples/python PYTHONDONTWRITEBYTECODE=1 "$python" \
  "$root/bench/recompute/offload_peaks.py" "$program" "${options[@]}"
