#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Links two shared libraries that contain the same kernels, compiled for two architectures, into one
# program and runs it. Neither may take from the other what has kernels or calls those that have: they
# have no code for its own device, and CUB takes other temporary memory there.
# usage: two_libraries.sh WORK_DIR NVCC OPTIONS...
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1
shift
mkdir -p "$work"
# What differs with the architecture. Errors, owners of arrays and checks of arguments are host code and
# may be shared.
device_code='gpu::detail|_fn::|kernel'

build() {
  local name=$1 architecture=$2
  shift 2
  # The shared runtime, so that the program and both libraries have the same one.
  "$@" "-arch=sm_$architecture" -shared -cudart shared -Xcompiler -fPIC \
    "-DLIBRARY_FUNCTION=${name}_library" "$here/library.cu" -o "$work/lib$name.so"
  nm -C "$work/lib$name.so" >"$work/symbols.txt"
  nm -DC --defined-only "$work/lib$name.so" >"$work/shown.txt"
  if ! grep -q 'for_each_kernel' "$work/symbols.txt"; then
    echo "lib$name.so has no kernel of the library"
    exit 1
  fi
  # The names of CUB have the architecture in them.
  if grep -v 'cub::CUB_[0-9]*_SM_' "$work/shown.txt" | grep -E "$device_code"; then
    echo "lib$name.so shows its kernels, or what runs them, to other libraries"
    exit 1
  fi
}

build first 80 "$@"
build second 90 "$@"
"$@" -cudart shared "$here/program.cpp" -o "$work/program" -L"$work" -lfirst -lsecond \
  -Xlinker -rpath -Xlinker "$work"

# All symbols at once, also those of functions that are never called.
LD_DEBUG=bindings LD_BIND_NOW=1 "$work/program" 2>"$work/bindings.txt" || [[ $? -eq 77 ]] || {
  tail -n 1 "$work/bindings.txt"
  exit 1
}
if ! grep -q 'binding file .*libsecond\.so .* to .*libcudart' "$work/bindings.txt"; then
  echo "the loader does not say what it binds"
  exit 1
fi
between='first\.so .* to .*libsecond|second\.so .* to .*libfirst'
if grep -E "binding file .*lib($between)\.so" "$work/bindings.txt" | grep -o "\`.*'" | tr -d "\`'" |
  c++filt | grep -E "$device_code|cub::"; then
  echo "one library runs what was compiled for the other"
  exit 1
fi
exec "$work/program"
