#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# states.sh INCLUDE FOLDER COMPILER[=EMULATOR]...: builds states.cpp with each compiler; each program writes
# its states, and each reads the states of all.
set -euo pipefail

include=${1:?usage: states.sh INCLUDE FOLDER COMPILER[=EMULATOR]...} folder=${2:?}
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

names=()
declare -A emulators
for pair in "$@"; do
  compiler=${pair%%=*}
  name=$(basename "$compiler")
  names+=("$name")
  emulators[$name]=
  [[ $pair != *=* ]] || emulators[$name]=${pair#*=}
  rm -rf "${folder:?}/$name"
  mkdir -p "$folder/$name"
  "$compiler" -std=c++20 -static "-I$include" "$here/states.cpp" -o "$folder/$name/states"
  ${emulators[$name]} "$folder/$name/states" write "$folder/$name"
done
for reader in "${names[@]}"; do
  for writer in "${names[@]}"; do
    printf '== %s reads %s\n' "$reader" "$writer"
    ${emulators[$reader]} "$folder/$reader/states" read "$folder/$writer"
  done
done
