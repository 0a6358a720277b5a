#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Follows the first lines of docs/start.md in an empty folder, as a newcomer would, and compares what the
# programs print with the page. The copy of the repository is a link, nothing is optimized, and the wheel and
# the main job are left to other tests.
#
# usage: check_start.sh ROOT CXX
set -euo pipefail

root=$1 compiler=$(command -v "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Blocks by kind and number: sh.1, cpp.1, text.1 ...
awk '
  /^```[a-z]+$/ { kind = substr($0, 4); file = kind "." ++count[kind]; printf "" > file; next }
  /^```$/ { close(file); file = ""; next }
  file != "" { print > file }
' "$root/docs/start.md"

mkdir bin
printf '#!/bin/sh\nexec "%s" "$@" -O0\n' "$compiler" >bin/g++
printf '#!/bin/sh\nln -s "%s" omnibal\n' "$root" >bin/git
chmod +x bin/*
PATH=$work/bin:$PATH
export OMNIBAL=$root
cp cpp.2 second.cpp
bash -e sh.1 >output
diff output text.1
bash -e sh.2 >output
diff output text.2
grep -q '^omnibal/scripts/main_job.sh lengths.txt ' sh.4
