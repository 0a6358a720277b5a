#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A wheel of the built package installs without a network and works from there.
# usage: wheel.sh PYTHON PACKAGE FOLDER
set -euo pipefail

python=$1 package=$2 folder=$3
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONDONTWRITEBYTECODE=1 OMNIBAL_ROOT=$tests/../..
rm -rf "$folder"
mkdir -p "$folder"

wheel=$("$python" "$OMNIBAL_ROOT/examples/python/make_wheel.py" "$package" 1.2.3 "$folder/dist")
again=$("$python" "$OMNIBAL_ROOT/examples/python/make_wheel.py" "$package" 1.2.3 "$folder/again")
cmp "$wheel" "$again"
if "$python" -m pip --version >/dev/null 2>&1; then
  HOME=$folder "$python" -m pip install --quiet --no-index --no-deps --target "$folder/site" "$wheel"
else
  "$python" -m zipfile -e "$wheel" "$folder/site"
fi
cd "$folder"
PYTHONPATH=$folder/site "$python" - "$folder/site" <<'PROGRAM'
import sys
import omnibal
from omnibal.compat import areal, energon, isf, lhotse, lightbinpack, llamafactory, llava, megatron, pytorch, slime, trl, veomni, verl
assert omnibal.__file__.startswith(sys.argv[1]), omnibal.__file__
assert omnibal.best_packing([3, 4, 1], 4).groups.tolist() == [[1], [0, 2]]
PROGRAM
echo passed
