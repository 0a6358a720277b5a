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

# The published total beside ours: of a model file, and of an index of weights.
mkdir -p small
echo '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "vocab_size": 1000,
  "num_attention_heads": 4, "num_hidden_layers": 2, "torch_dtype": "bfloat16"}' >small/config.json
"$program" small/config.json >output 2>message || complain "small: it fails"
grep -q 'Published' output && complain "small: an index is read that was not given"
total=$(sed -n 's/^Parameters: //p' output | tr -d ,)
# published NAME METADATA EXPECTED : what is printed of the index with this metadata
published() {
  echo "{\"metadata\": $2, \"weight_map\": {}}" >small/model.safetensors.index.json
  for given in small small/ small/model.safetensors.index.json; do
    "$program" $given >output 2>message || complain "$1: it fails: $(cat message)"
    [ "$(head -n 1 output)" = small ] || complain "$1: another name: $(head -n 1 output)"
    grep -qF -- "$3" output || complain "$1, $given: $(grep Published output)"
  done
}
index=model.safetensors.index.json
published "parameters" "{\"total_parameters\": $total, \"total_size\": 7}" ', the same number'
published "bytes" "{\"total_size\": $((2 * total))}" "metadata.total_size of $index). The layers have"
grep -q ', the same number$' output || complain "bytes: another number"
published "fewer" "{\"total_parameters\": $((total + 1000))}" ', 1,000 fewer ('
published "more" "{\"total_parameters\": $((total - 1))}" ', 1 more ('
published "odd bytes" '{"total_size": 7}' '7 bytes (metadata.total_size'
sed -i 's/"torch_dtype": "bfloat16"/"quantization_config": {}/' small/config.json
published "quantized" "{\"total_size\": $total}" 'because the weights are quantized'
echo '{"weight_map": {}}' >small/model.safetensors.index.json
"$program" small >output 2>message && complain "an index without metadata: exit status 0"
grep -q 'no field "metadata"' message || complain "an index without metadata: $(cat message)"
sed 's/{"name"/{"published_parameters": 9000000, "name"/' windows.json >stated.json
"$program" stated.json >output 2>message || complain "stated: it fails"
grep -qE '^Published: 9,000,000 \(published_parameters\)\. The layers have [0-9,]+, [0-9,]+ (fewer|more) ' \
  output || complain "stated: $(grep Published output)"
echo '{"name": "predicting", "published_parameters": TOTAL, "language": {"layers": 2, "hidden": 64,
  "heads": 4, "mlp": 128, "vocabulary": 1000, "prediction": {"layers": 1}}}' >predicting.json
sed 's/TOTAL/1/' predicting.json >first.json
without=$("$program" first.json | sed -n 's/.*; without multi-token prediction \([0-9,]*\)$/\1/p')
sed "s/TOTAL/$(tr -d , <<<"$without")/" predicting.json >second.json
"$program" second.json >output 2>message || complain "without prediction: it fails"
grep -qF "The layers without multi-token prediction have $without, the same number" output ||
  complain "without prediction: $(grep Published output)"

# The published column of a table: of a file of totals, of the models themselves, or none.
printf 'model,parameters\nllama3-8b,8030261248\ndeepseek-v2,235741434881\n' >totals.csv
"$program" --table --published totals.csv llama3-8b deepseek-v2 windows.json 6+20B >output 2>message ||
  complain "published column: it fails: $(cat message)"
for row in '| llama3-8b |.*| 8,030,261,248 | equal |' \
  '| deepseek-v2 |.*| 235,741,434,881 | 1 fewer |' '| windows |.*| - | - |' \
  '| 6+20B |.*| - | - |'; do
  grep -q "^$row\$" output || complain "published column: no row $row: $(cat output)"
done
echo '{"model_type": "vit"}' >vit.json
echo "model,parameters
vit,86389248" >totals.csv
"$program" --table --published totals.csv vit.json >output 2>message || complain "vit: it fails"
grep -q '| 86,389,248 | equal with 590,592 that never run |$' output ||
  complain "vit: the pooling is not named: $(tail -n 1 output)"
"$program" --published totals.csv vit.json >output 2>message && complain "totals without a table"
echo "vit,3" >>totals.csv
"$program" --table --published totals.csv vit.json >output 2>message && complain "two totals of one model"
grep -qF 'totals.csv: record 2 (line 3): model "vit" occurs twice' message ||
  complain "two totals of one model: $(cat message)"

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
