# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of this folder: sets `python` to the first python3 that has PyTorch, and goes to
# a folder `work` that is removed at the end. Exit status 77: no python3 has it. OMNIBAL_TORCH_PYTHON
# is tried first, then OMNIBAL_PYTHON.

python=
for candidate in "${OMNIBAL_TORCH_PYTHON:-}" "${OMNIBAL_PYTHON:-}" $(type -ap python3); do
  [ -n "$candidate" ] && "$candidate" -c 'import torch' 2>/dev/null || continue
  python=$candidate
  break
done
[ -n "$python" ] || { echo "skipped: no python3 has PyTorch" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
