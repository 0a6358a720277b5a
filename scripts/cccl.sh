#!/usr/bin/env bash
# Compiles every algorithm for a device, without warnings, with the CCCL of CUDA 12.8 and with the newest, taken
# from Python's package index and kept.
# usage: cccl.sh [folder]
# Returns 77 without nvcc, and where nothing can be downloaded.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-$root/build/cccl}
PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || { echo "skipped: there is no nvcc"; exit 77; }

failed=0
for package in nvidia-cuda-cccl-cu12==12.8.90 nvidia-cuda-cccl; do
  folder=$out/$package
  if [[ ! -d $folder ]]; then
    mkdir -p "$folder.part"
    python3 -m pip download -q --no-deps -d "$folder.part" "$package" ||
      { echo "skipped: $package cannot be downloaded"; exit 77; }
    python3 -m zipfile -e "$folder.part"/*.whl "$folder.part"
    mv "$folder.part" "$folder"
  fi
  # The folder that holds cuda/, cub/ and thrust/.
  headers=$(dirname "$(dirname "$(find "$folder" -path '*/cub/cub.cuh' | head -1)")")
  for source in kernels cccl; do
    echo "$package: $source.cu"
    nvcc -std=c++20 -Werror all-warnings "-I$root/include" "-I$headers" -arch=sm_90 -ptx \
      "$root/tests/cuda/kernels/$source.cu" -o "$out/$source.ptx" || failed=1
  done
done
exit "$failed"
