#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Predicted peaks are at most 5 % above the peaks of training steps in PyTorch and never below them.
# Exit status 77: no python3 has PyTorch.
#
# usage: measure_offload.sh PYTHON_FOLDER PLAN_OFFLOAD
set -eu
folder=$(realpath "$1")
program=$(realpath "$2")

# The program refuses what it cannot read, also without PyTorch.
if printf 'layer 1 2 3 4\nmodule 5 x optional\n' | "$program" 1 10 2>/dev/null; then
  echo "plan_offload: accepts a time that is no number"
  exit 1
fi
. "$(dirname "$0")/find_torch.sh"

"$python" "$folder/measure_offload.py" "$program"
