#!/usr/bin/env bash
# Builds the package for Python and makes a wheel of it, whose path it prints last. First installs what
# is missing, or names it. Nothing is installed into a Python.
# usage: python_wheel.sh [OPTIONS OF cmake]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/setup.sh" wheel
cd "$root"
cmake --preset examples "$@"
cmake --build --preset examples --target omnibal_python_wheel
ls build/examples/dist/*.whl
