#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# step_model predicts the runs of the tree, and the errors of the sources that are whole there are those of the
# page. usage: step_model.sh PROGRAM RUNS PAGE
set -euo pipefail

output=$("$1" "$2" 2>/dev/null)
grep -qx '19 runs are predicted\.' <<<"$output" || { echo 'not 19 runs are predicted'; exit 1; }

# errors_of TEXT ROW: the cells behind the first one of a row of a table.
errors_of() { awk -F ' *\\| *' -v row="$2" '$2 == row { print $3, $4, $5, $6, $7 }' <<<"$1"; }

page=$(<"$3")
while IFS='|' read -r row stated; do
  ours=$(errors_of "$output" "$row")
  [[ -n $ours && $ours == "$(errors_of "$page" "$stated")" ]] ||
    { printf '%s: printed %s, the page has %s\n' "$row" "$ours" "$(errors_of "$page" "$stated")"; exit 1; }
done <<'ROWS'
a100_infiniband: sc21|`a100_infiniband`: SC21 (not fitted)
a100_infiniband: seqsel|`a100_infiniband`: Korthikanti et al. (not fitted)
ROWS
echo passed
