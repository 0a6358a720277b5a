#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# describe_model prints the layers and the totals of models, one row for each model in a table, and
# says what it cannot read; the other programs print the same layers with --describe-model.
#
# usage: describe_model.sh PROGRAM CUT_VLM
cut_vlm=$(realpath "$2")
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

"$program" llama3-8b >output 2>message || complain "llama3-8b: it fails"
grep -qE '^1 +32 +language layer +attention; MLP 14,336 +218,112,000 +1409.3 +139,264$' output ||
  complain "llama3-8b: no row of its layers"
grep -q '^Parameters: 8,030,261,248$' output || complain "llama3-8b: wrong total"
"$cut_vlm" --model llama3-8b --describe-model >again 2>message || complain "cut_vlm: it fails"
cmp output again || complain "cut_vlm: other layers"

"$program" deepseek-v2 >output 2>message || complain "deepseek-v2: it fails"
grep -q 'latent attention; 6 of 160 experts + 2 shared' output || complain "deepseek-v2: no experts"
grep -q '^Parameters: 235,741,434,880, active 21,375,800,320$' output ||
  complain "deepseek-v2: wrong totals"

# Five windows and a layer that sees everything, twice: two rows.
cat >windows.json <<'JSON'
{"name": "windows", "language": {"vocabulary": 1000, "hidden": 256, "heads": 4, "mlp": 512,
 "layer_kinds": {"near": {"window": 128}, "far": {}},
 "pattern": [{"repeat": 2, "pattern": [{"repeat": 5, "pattern": ["near"]}, "far"]}]}}
JSON
if "$program" windows.json >output 2>message; then
  grep -qE '^1 +10 +language layer +attention, window 128; MLP 512 ' output ||
    complain "windows: no row of the windows"
  grep -qE '^6 +2 +language layer +attention; MLP 512 ' output || complain "windows: no row of the others"
else
  complain "windows: it fails"
fi

echo '{"model_type": "zaya", "hidden_size": 8}' >other.json
"$program" --table llama3-8b other.json deepseek-v2 >output 2>message &&
  complain "a family that is not read: exit status 0"
[ "$(grep -c '^| ' output)" -eq 3 ] || complain "table: not a header and two rows"
grep -q 'zaya' message || complain "a family that is not read: the message does not name it"

"$program" --help >output 2>message || complain "--help: it fails"
awk 'length($0) > 80 { exit 1 }' output || complain "--help: a line is too long"
sh -c "cd '$(dirname "$program")' && ./$(sed -n '/^Example:$/{n;s/^  //p}' output)" >again 2>message ||
  complain "--help: the example fails"

[ "$failures" -eq 0 ] && echo "all right"
exit "$((failures != 0))"
