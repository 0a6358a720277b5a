#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles every algorithm for a device, without warnings, with the CCCL of CUDA 12.8 and with the newest, and
# calls with memory resources of the newest CCCL and RMM; all taken from Python's package index and kept.
# usage: cccl.sh [folder]
# Returns 77 without nvcc, and where nothing can be downloaded.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-$root/build/cccl}
PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || { echo "skipped: there is no nvcc"; exit 77; }

# The folder of a package and of what it needs, in the variable `folder`.
fetch() {
  folder=$out/$1
  [[ ! -d $folder ]] || return 0
  mkdir -p "$folder.part"
  python3 -m pip download -q -d "$folder.part" "$1" ||
    { echo "skipped: $1 cannot be downloaded"; exit 77; }
  local wheel
  for wheel in "$folder.part"/*.whl; do python3 -m zipfile -e "$wheel" "$folder.part"; done
  mv "$folder.part" "$folder"
}
# include FILE: the folder in `folder` below which it lies.
include() {
  local found
  found=$(find "$folder" -path "*/$1" | head -1)
  echo "-I${found%/"$1"}"
}
failed=0
compile() {
  local source=$1
  shift
  nvcc -std=c++20 -Werror all-warnings "-I$root/include" "$@" -arch=sm_90 -ptx \
    "$root/tests/cuda/kernels/$source.cu" -o "$out/$source.ptx" || failed=1
}

for package in nvidia-cuda-cccl-cu12==12.8.90 nvidia-cuda-cccl; do
  fetch "$package"
  headers=$(include cub/cub.cuh)
  for source in kernels cccl; do
    echo "$package: $source.cu"
    compile "$source" "$headers"
  done
done

fetch librmm-cu13
echo "librmm-cu13: resources.cu"
# What is not the library's own may warn.
compile resources "$headers" -isystem "$(include rmm/resource_ref.hpp | cut -c3-)" \
  -isystem "$(include rapids_logger/logger.hpp | cut -c3-)"
exit "$failed"
