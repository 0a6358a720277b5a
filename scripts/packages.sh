#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the package for Python with the real packages whose interfaces and files it meets: trainers, loaders,
# writers of data sets, engines. What the package index has of them is installed into an environment of its own
# under build/; the rest is left out, and its tests are named as skipped.
# usage: packages.sh [FOLDER OF THE BUILT PACKAGE]
# Returns 77 where nothing can be downloaded.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
environment=$root/build/packages

if [[ -n ${1:-} ]]; then
  package=$(cd "$1" && pwd)
else
  "$root/scripts/python_wheel.sh" >&2
  package=$root/build/examples/examples/python/package
fi
python=python3
if [[ -e $root/build/examples/CMakeCache.txt ]]; then
  python=$(sed -n 's/^OMNIBAL_PYTHON:FILEPATH=//p' "$root/build/examples/CMakeCache.txt")
fi
[[ -e $environment ]] || "$python" -m venv "$environment" >&2
found=0
install() {
  if timeout 900 "$environment/bin/pip" install -q "$@" >&2; then
    found=$((found + 1))
  else
    printf 'packages: without %s\n' "${*: -1}" >&2
  fi
}
for package_name in numpy torch torchdata pyarrow zstandard datasets lhotse litdata mosaicml-streaming \
  webdataset trl megatron-core megatron-energon distributed ray pyspark tensordict omegaconf codetiming; do
  install "$package_name"
done
# The test needs only verl's functions of lengths; its dependencies are trainers and engines.
install --no-deps verl
((found > 0)) || { echo "skipped: nothing can be downloaded"; exit 77; }

cd "$root/tests/python"
export OMNIBAL_ROOT=$root PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$package:$root/bench/rivals
"$environment/bin/python" -m unittest -v compat_test data_test engines_test exchange_test lengths_test \
  sockets_test 2>&1 | grep -v ' ok$'
