#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes include/omnibal/omnibal.cppm, the module with the public names of omnibal.hpp, from the headers.
# usage: module_names.sh [--check]    with --check it fails where the file is another one
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C
module=$(mktemp)
trap 'rm -f "$module" "$module.names"' EXIT

# The namespace and the name, separated by a tab, of every public name that needs the standard library alone.
sed -n 's/^#include <\(omnibal\/.*\)>$/include\/\1/p' include/omnibal/omnibal.hpp |
  xargs awk -f scripts/api_map.awk | cut -f 2 |
  awk '{ space = "omnibal"; name = $0
         if (match(name, /^.*::/)) { space = space "::" substr(name, 1, RLENGTH - 2); name = substr(name, RLENGTH + 1) }
         print space "\t" name }' | sort -u >"$module.names"
{
  cat <<'TEXT'
// SPDX-License-Identifier: Apache-2.0

/// \file
/// The module `omnibal`: the public names of omnibal.hpp. A module exports no macros; version.hpp
/// has the macros of the version. scripts/module_names.sh writes this file.

module;

#include <omnibal/omnibal.hpp>

export module omnibal;
TEXT
  while read -r space; do
    printf '\nexport namespace %s {\n\n' "$space"
    awk -F '\t' -v space="$space" '$1 == space { print "using " space "::" $2 ";" }' "$module.names"
    printf '\n}  // namespace %s\n' "$space"
  done < <(cut -f 1 "$module.names" | sort -u)
} >"$module"

if [[ ${1:-} == --check ]]; then
  diff -u include/omnibal/omnibal.cppm "$module" || { printf 'run scripts/module_names.sh\n' >&2; exit 1; }
else
  cat "$module" >include/omnibal/omnibal.cppm
fi
