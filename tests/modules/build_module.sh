#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build_module.sh INCLUDE FOLDER: compiles omnibal.cppm with the newest clang++ from 16 on, or else with a
# g++ from 15 on, and a program that imports it, and runs the program. Exit status 77 if there is no such
# compiler: g++ 12 and clang++ 14 cannot read the module that they write.
set -euo pipefail

include=${1:?usage: build_module.sh INCLUDE FOLDER} folder=${2:?}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# newest NAME OLDEST: the command of that name, with or without a number, with the largest version.
newest() {
  local best='' command version
  for command in "$1" "$1"-{15..30}; do
    version=$("$command" -dumpversion 2>/dev/null) || continue
    version=${version%%.*}
    ((version >= $2)) || continue
    [[ -n $best ]] && ((version <= ${best%% *})) || best="$version $command"
  done
  printf '%s\n' "${best#* }"
}

mkdir -p "$folder"
cd "$folder"
clang=$(newest clang++ 16)
gcc=$(newest g++ 15)
if [[ -n $clang ]]; then
  flags=(-std=c++20 -O1 -isystem "$include")
  "$clang" "${flags[@]}" -x c++-module -fmodule-output=omnibal.pcm -c "$include/omnibal/omnibal.cppm" -o omnibal.o
  "$clang" "${flags[@]}" -fmodule-file=omnibal=omnibal.pcm "$here/import_omnibal.cpp" omnibal.o -o program
elif [[ -n $gcc ]]; then
  flags=(-std=c++20 -fmodules -O1 -isystem "$include")
  "$gcc" "${flags[@]}" -x c++ -c "$include/omnibal/omnibal.cppm" -o omnibal.o
  "$gcc" "${flags[@]}" "$here/import_omnibal.cpp" omnibal.o -o program
else
  printf 'skipped: there is no clang++ from 16 on and no g++ from 15 on\n'
  exit 77
fi
./program
