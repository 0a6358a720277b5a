#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Demands that a page shows what a command prints.
#
# usage: check_mpi.sh PAGE COMMAND...
set -euo pipefail

page=$1
shift
output=$("$@")
shown=$(awk '/^```text$/ { on = 1; next } /^```$/ { on = 0 } on' "$page")
diff <(printf '%s\n' "$output") <(printf '%s\n' "$shown")
