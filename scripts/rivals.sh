#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the library, from C++ and from Python, with other systems in one process and prints the
# tables of docs/evidence/comparison.md, offload.md and experts.md. What the package index gives of them is installed into an environment of
# its own under build/; the rest is left out and named.
# usage: rivals.sh [--quick]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
environment=$root/build/rivals

"$root/scripts/python_wheel.sh" >&2
cd "$root"
cmake --build --preset examples --target omnibal_rivals >&2
python=$(sed -n 's/^OMNIBAL_PYTHON:FILEPATH=//p' build/examples/CMakeCache.txt)
[[ -e $environment ]] || "$python" -m venv --system-site-packages "$environment" >&2
# Of three only files are used, which need nothing else; another is built from source.
for package in binpacking prtpy highspy pyarrow pybind11 numba scipy '--no-deps trl' '--no-deps verl' \
  '--no-deps --only-binary=:all: vllm-ascend' '--no-deps --no-build-isolation lightbinpack'; do
  # shellcheck disable=SC2086
  timeout 600 "$environment/bin/pip" install -q $package >&2 ||
    printf 'rivals: without %s\n' "${package##* }" >&2
done
# The wheel of seqpacker is named after a Python that it does not run on; its module is for all from 3.9 on.
timeout 600 "$environment/bin/pip" download -q --no-deps --only-binary=:all: --ignore-requires-python \
  --python-version 3.8 --implementation cp --abi cp38 --platform manylinux2014_x86_64 \
  -d "$environment/wheels" seqpacker >&2 &&
  "$python" -m zipfile -e "$environment"/wheels/seqpacker-*.whl "$environment/seqpacker" &&
  mv "$environment"/seqpacker/seqpacker/_core{.cpython-38-x86_64-linux-gnu,.abi3}.so ||
  printf 'rivals: without seqpacker\n' >&2
PYTHONPATH=$root/build/examples/examples/python/package:$environment/seqpacker \
  "$environment/bin/python" bench/rivals/compare.py \
  build/examples/examples/python/rivals/direct.so "$@"
"$environment/bin/python" bench/rivals/offload.py \
  build/examples/examples/python/rivals/direct.so "$@"
PYTHONPATH=$root/build/examples/examples/python/package "$environment/bin/python" bench/rivals/experts.py \
  "$@"
PYTHONPATH=$root/build/examples/examples/python/package "$environment/bin/python" bench/rivals/megatron_packs.py \
  "$@"
