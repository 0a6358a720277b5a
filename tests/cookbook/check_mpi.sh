#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that a block of text on a page is what a command prints.
#
# usage: check_mpi.sh PAGE COMMAND...
set -euo pipefail

page=$1
shift
output=$("$@")
awk -v output="$output" '
  /^```text$/ { in_block = 1; block = ""; next }
  /^```$/ && in_block { in_block = 0; if (block == output "\n") found = 1; next }
  in_block { block = block $0 "\n" }
  END { if (!found) print "no block is:\n" output; exit !found }
' "$page"
