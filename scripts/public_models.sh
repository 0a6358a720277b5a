#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the table of docs/evidence/public_models.md from configurations, which the tree does not have.
# usage: public_models.sh DESCRIBE_MODEL FILE.json...
#        public_models.sh --check      fails where the table and docs/evidence/published_totals.csv differ
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
page=$root/docs/evidence/public_models.md
totals=$root/docs/evidence/published_totals.csv
export LC_ALL=C

# The rows of the table, without its head.
rows() { awk '/^<!-- models -->$/ { on = 1; next } /^<!-- end -->$/ { on = 0 } on && /^\| / && !/^\| model /' "$page"; }

# Says what does not fit: published totals by the names of models, and differences by the numbers.
check() {
  rows | awk -F ' *\\| *' -v totals="$totals" '
    BEGIN {
      while ((getline line < totals) > 0) {
        split(line, part, ",")
        if (part[1] != "model") published[part[1]] = part[2]
      }
    }
    function number(text) { gsub(/,/, "", text); return text + 0 }
    {
      name = $2; own = number($3); stated = $9 == "-" ? 0 : number($9); idle = $10
      wanted = name in published ? published[name] + 0 : 0
      if (stated != wanted) { printf "%s: published is %s\n", name, $9; failed = 1 }
      if (number($4) > own) { printf "%s: more active parameters than parameters\n", name; failed = 1 }
      if (stated == 0) next
      far = stated - own
      split(idle, word, " ")
      said = idle == "equal" ? 0 : idle ~ /^equal with / ? number(word[3]) : number(word[1])
      if (idle ~ / more$/) said = -said
      if (said != far) { printf "%s: %s fewer, not %s\n", name, far, idle; failed = 1 }
    }
    END { if (NR < 60) { printf "only %d rows\n", NR; failed = 1 }; exit failed }'
}

if [[ ${1:-} == --check ]]; then
  check || { printf 'public_models: the table is not that of the totals\n' >&2; exit 1; }
  printf '%d models have their published totals\n' "$(rows | wc -l)"
  exit 0
fi

program=$1
shift
table=$(mktemp)
trap 'rm -f "$table"' EXIT
"$program" --table --published "$totals" "$@" >"$table" || true
{
  sed '/^<!-- models -->$/q' "$page"
  printf '\n'
  head -n 2 "$table"
  tail -n +3 "$table" | sort -f -t '|' -k 2,2
  printf '\n'
  sed -n '/^<!-- end -->$/,$p' "$page"
} >"$table.page"
mv "$table.page" "$page"
check
