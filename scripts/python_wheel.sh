#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the package for Python and makes a wheel of it, whose path it prints last. First installs what
# is missing, or names it. Nothing is installed into a Python.
# It is for $PYTHON, or else for the python3 of the path, if that has its headers.
# usage: [PYTHON=...] python_wheel.sh [-DOMNIBAL_PYTHON=...] [OPTIONS OF cmake]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/setup.sh" wheel
cd "$root"
python=$(command -v "${PYTHON:-python3}") || { echo "there is no Python ${PYTHON:-python3}" >&2; exit 1; }
if "$python" examples/python/describe.py >/dev/null 2>&1; then
  set -- "-DOMNIBAL_PYTHON=$python" "$@"
elif [[ -n ${PYTHON:-} ]]; then
  echo "$PYTHON has no headers (Python.h), or is older than 3.9" >&2
  exit 1
else
  echo "$python has no headers, or is older than 3.9: the wheel is for another Python" >&2
fi
cmake --preset examples "$@"
cmake --build --preset examples --target omnibal_python_wheel
ls build/examples/dist/*.whl
