#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the project needs and this machine lacks: Debian 12 and 13, Ubuntu 24.04 or later.
# usage: setup.sh main_job | docs | wheel | training | test | ci | nightly
# Without root and sudo it names the missing packages instead. It does nothing where nothing is missing.
set -euo pipefail

purpose=${1:-test}

has_tool() { command -v "$1" >/dev/null; }

# has_version TOOL VERSION: the tool is there and not older.
has_version() {
  has_tool "$1" || return 1
  local found
  found=$("$1" --version | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1)
  [[ $(printf '%s\n' "$2" "$found" | sort -V | head -n 1) == "$2" ]]
}

has_header() {
  local -a prefixes folders
  IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  IFS=: read -ra folders <<<"${CPATH:-}"
  folders+=("${prefixes[@]/%//include}" /usr/local/include /usr/include)
  local folder
  for folder in "${folders[@]}"; do
    [[ ! -e $folder/$1 ]] || return 0
  done
  return 1
}

has_library() { [[ $(PATH+=:/usr/sbin:/sbin ldconfig -p) == *"$1 "* ]]; }

# has_python MODULE|Python.h: the system's Python has it.
has_python() {
  local python
  for python in $(type -ap python3); do
    if [[ $1 == Python.h ]]; then
      [[ ! -e $("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/$1 ]] || return 0
    elif "$python" -c "import $1" 2>/dev/null; then
      return 0
    fi
  done
  return 1
}

has_fuzzer() {
  has_tool clang++ && compgen -G "$(clang++ -print-resource-dir)/lib/*/libclang_rt.fuzzer*.a" >/dev/null
}

# needs PACKAGE CHECK...: nothing works without it. wants PACKAGE CHECK...: some tests are skipped.
needs() { "${@:2}" || required+=("$1"); }
wants() { "${@:2}" || optional+=("$1"); }

# look_for_torch needs|wants
look_for_torch() {
  "$1" libtorch-dev has_header torch/csrc/distributed/c10d/ProcessGroup.hpp
  "$1" libgloo-dev has_header gloo/context.h
  # The reference BLAS is twenty times slower.
  "$1" libopenblas0-pthread has_library libopenblas.so.0
}

# Lists the packages of what is missing in `required` and `optional`.
look() {
  required=()
  optional=()
  if [[ $purpose == docs ]]; then
    needs doxygen has_version doxygen 1.9.4
    return 0
  fi
  needs g++ has_version g++ 12
  needs cmake has_version cmake 3.25
  needs ninja-build has_tool ninja
  needs libcli11-dev has_header CLI/CLI.hpp
  needs libsimdjson-dev has_header simdjson.h
  needs nlohmann-json3-dev has_header nlohmann/json.hpp
  needs zlib1g-dev has_header zlib.h
  if [[ $purpose == wheel ]]; then
    needs pybind11-dev has_header pybind11/pybind11.h
    needs python3-dev has_python Python.h
    needs python3-numpy has_python numpy
  fi
  [[ $purpose != training ]] || look_for_torch needs
  [[ $purpose != main_job && $purpose != wheel && $purpose != training ]] || return 0

  needs catch2 has_header catch2
  wants libzstd-dev has_header zstd.h
  wants libopenmpi-dev has_tool mpicxx
  wants openmpi-bin has_tool mpirun
  [[ $purpose == test && -n ${CXX:-} ]] || needs clang has_tool clang++
  [[ $purpose != test ]] || return 0

  wants pybind11-dev has_header pybind11/pybind11.h
  wants python3-dev has_python Python.h
  wants python3-numpy has_python numpy
  look_for_torch wants
  needs libbenchmark-dev has_header benchmark/benchmark.h
  wants doxygen has_tool doxygen
  local architecture
  for architecture in aarch64 s390x; do
    wants "g++-$architecture-linux-gnu" has_tool "$architecture-linux-gnu-g++"
    wants qemu-user has_tool "qemu-$architecture"
  done
  if [[ $purpose == nightly ]]; then
    needs clang-tidy has_tool clang-tidy
    needs libclang-rt-dev has_fuzzer
  fi
}

install() {
  printf 'setup: installing %s\n' "$*"
  "${as_root[@]}" apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends "$@"
}

look
[[ ${#required[@]} -gt 0 || ${#optional[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
  # Asks for a password only where somebody can type it.
  as_root=(sudo)
  [[ -t 0 ]] || as_root+=(-n)
fi

if has_tool apt-get && "${as_root[@]}" true 2>/dev/null; then
  install "${required[@]}" "${optional[@]}" || printf 'setup: apt-get failed\n' >&2
  look
fi

if [[ ${#optional[@]} -gt 0 ]]; then
  printf 'setup: without these packages some tests are skipped: %s\n' "${optional[*]}" >&2
fi
if [[ ${#required[@]} -gt 0 ]]; then
  printf 'setup: missing packages, or too old: %s\n' "${required[*]}" >&2
  printf 'setup: install them with: apt-get install %s\n' "${required[*]}" >&2
  exit 1
fi
