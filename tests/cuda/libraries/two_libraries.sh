#!/usr/bin/env bash
# Links two shared libraries that contain the same kernels into one program and runs it. No kernel may
# be a symbol that the loader could take from the other library, nor what launches kernels or asks how
# much scratch they take: that library may be compiled for another device.
# usage: two_libraries.sh WORK_DIR NVCC OPTIONS...
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1
shift
mkdir -p "$work"

for name in first second; do
  # The shared runtime, so that the program and both libraries have the same one.
  "$@" -shared -cudart shared -Xcompiler -fPIC "-DLIBRARY_FUNCTION=${name}_library" \
    "$here/library.cu" -o "$work/lib$name.so"
  nm -C "$work/lib$name.so" >"$work/symbols.txt"
  nm -DC --defined-only "$work/lib$name.so" >"$work/shown.txt"
  if ! grep -q 'for_each_kernel' "$work/symbols.txt"; then
    echo "lib$name.so has no kernel of the library"
    exit 1
  fi
  if grep -E 'kernel|device_(backend|meter|block|sort|scan)|launch|run_on_device|_fn::' \
    "$work/shown.txt"; then
    echo "lib$name.so shows its kernels, or what runs them, to other libraries"
    exit 1
  fi
done

"$@" -cudart shared "$here/program.cpp" -o "$work/program" -L"$work" -lfirst -lsecond \
  -Xlinker -rpath -Xlinker "$work"
exec "$work/program"
