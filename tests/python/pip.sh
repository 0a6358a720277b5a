#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `pip install` of the source works without a network, for the Python that runs pip.
# usage: pip.sh PYTHON FOLDER
set -euo pipefail

python=$1 folder=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export PYTHONDONTWRITEBYTECODE=1
"$python" -m pip --version >/dev/null 2>&1 || { echo "$python has no pip"; exit 77; }
"$python" -c 'import venv, ensurepip' 2>/dev/null || { echo "$python makes no environments"; exit 77; }
# A shim of pyenv needs a path, so the interpreter itself is called.
python=$("$python" -c 'import sys; print(sys.executable)')
rm -rf "$folder"
mkdir -p "$folder/temporary"
# ccache knows the files again although each build has a folder of its own.
export TMPDIR=$folder/temporary CCACHE_BASEDIR=$folder/temporary

# What the build lacks is named. An environment without a path has neither CMake nor a compiler.
cd "$root/examples/python"
message=$(CXX='' PATH='' "$python" -c 'import build_backend; build_backend.check_tools()' 2>&1) && exit 1
grep -q 'CMake 3.25 or later: pip install cmake' <<<"$message"
grep -q 'a C++20 compiler' <<<"$message"

# The speed of the code does not matter here.
export CMAKE_ARGS=-DCMAKE_CXX_FLAGS_RELEASE=-O0
"$python" -m venv --system-site-packages "$folder/env"
"$folder/env/bin/python" -m pip --isolated --no-cache-dir install --quiet --no-index "$root"
cd "$folder"
env/bin/python - "$folder" <<'PROGRAM'
import importlib.metadata
import sys
import omnibal
assert omnibal.__file__.startswith(sys.argv[1] + "/env/"), omnibal.__file__
assert importlib.metadata.version("omnibal") == omnibal.__version__
assert omnibal.best_packing([3, 4, 1], 4).groups.tolist() == [[1], [0, 2]]
PROGRAM
echo passed
