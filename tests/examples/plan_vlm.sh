#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# plan_vlm writes plans that give the printed figures again, all files or none.
#
# usage: plan_vlm.sh PROGRAM
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

"$program" --synthetic 4096 --output plan >output 2>message || complain "default: it fails"
grep -q '^Plan: plan$' output || complain "default: the output names no plan"
for model in 6+20B 6+34B; do
  for suffix in plan.json recompute.csv steps.jsonl trace.json svg layout.json; do
    [ -s "plan/$model.$suffix" ] || complain "default: no $model.$suffix"
  done
  "$program" --replay "plan/$model.plan.json" >replayed 2>message || complain "$model: other figures"
  # Seconds, waiting and memory of the last row of the table.
  awk -v model="$model" 'BEGIN { FS = "  +" } $1 == model { on = 1 }
    on && $1 == "+ memory" { print $2, $4, $9; exit }' output >printed
  awk 'BEGIN { FS = "  +" } $1 == "simulated again" { print $2, $3, $4 }' replayed >again
  cmp -s printed again || complain "$model: printed $(cat printed), again $(cat again)"
done

# A public configuration on devices of 40 GB, with two of three choices.
echo '{"hidden_size": 2048, "intermediate_size": 8192, "model_type": "llama", "vocab_size": 32000,
  "num_attention_heads": 16, "num_hidden_layers": 10, "rms_norm_eps": 1e-6}' >small.json
small=(--synthetic 4096 --model small.json --stages 2 --machine a100-40gb)
"$program" "${small[@]}" --recompute none,full --memory 7 --output small >output 2>message ||
  complain "configuration: it fails"
grep -q '^small  ' output || complain "configuration: no table"
grep -q '^The model has no vision tower: samples are planned as text' output ||
  complain "configuration: images are left out without a word"
grep -q ',full,' small/small.recompute.csv || complain "two choices: nothing is remade"
grep -q ',selective,' small/small.recompute.csv && complain "two choices: there is a third"
"$program" --replay small/small.plan.json >replayed 2>message || complain "configuration: other figures"
"$program" "${small[@]}" --capacity 9 4096 --micro-batches 4 --data 4 --tensor 1 >output \
  2>message || complain "options: it fails"
grep -q 'under 9 images and 4096 tokens' output || complain "capacity: another one"

# A tied head has its own matrix on the last of two stages, in the plan and when it is replayed.
mkdir -p tied own
sed 's/"hidden_size"/"tie_word_embeddings": true, "hidden_size"/' small.json >tied/config.json
cp small.json own/config.json
for head in tied own; do
  "$program" --synthetic 4096 --model $head/config.json --stages 2 --machine a100-40gb \
    --output "$head" >output 2>message || complain "$head head: it fails"
  grep '^+ memory' output >"$head.row"
  "$program" --replay "$head/$head.plan.json" >replayed 2>message ||
    complain "$head head: other figures"
done
[ -s tied.row ] || complain "tied head: no plan"
cmp -s tied.row own.row || complain "a tied head needs another memory than its own"
# The table rounds to gigabytes, the file of the plan does not.
for head in tied own; do
  grep '"bytes":' "$head/$head.plan.json" >"$head.bytes"
done
[ "$(wc -l <tied.bytes)" -eq 2 ] || complain "tied head: no bytes of two stages"
cmp -s tied.bytes own.bytes || complain "a tied head needs other bytes than its own"

# A resampler and cross-attention are in the plan, with what of the model is trained.
echo '{"name": "crossed", "vision": {"layers": 4, "hidden": 768, "heads": 12, "mlp": 3072,
  "image_size": 224, "training": "forward_only"}, "resampler": {"queries": 16, "layers": 2,
  "hidden": 768, "heads": 12, "mlp": 3072}, "language": {"layers": 6, "hidden": 1024, "heads": 8,
  "mlp": 4096, "vocabulary": 32000, "cross": {"every": 3}}}' >crossed.json
"$program" --synthetic 4096 --model crossed.json --stages 2 --output crossed >output 2>message ||
  complain "cross-attention: it fails: $(cat message)"
grep -q '^Megatron layout: none, .*cross-attention' output || complain "cross-attention: a layout"
[ "$(grep -c ',cross-attention layer,' crossed/crossed.recompute.csv)" -eq 2 ] ||
  complain "cross-attention: other layers"
"$program" --replay crossed/crossed.plan.json >replayed 2>message ||
  complain "cross-attention: other figures"

# Multi-token prediction is before the head, which computes all losses; stages share their layers.
echo '{"name": "predicting", "vision": {"layers": 6, "hidden": 768, "heads": 12, "mlp": 3072,
  "image_size": 224}, "language": {"layers": 6, "hidden": 1024, "heads": 8, "mlp": 4096,
  "vocabulary": 32000, "prediction": {"layers": 2}}}' >predicting.json
"$program" --synthetic 4096 --model predicting.json --stages 3 --output predicting >output \
  2>message || complain "multi-token prediction: it fails: $(cat message)"
grep -qE '^  E.*m(\*2\|?L|L)$' output || complain "multi-token prediction: no layout with m"
tail -n 1 predicting/predicting.recompute.csv | grep -q ',head,' ||
  complain "multi-token prediction: the head is not last"
tr -d ' \n' <predicting/predicting.layout.json |
  grep -q '"losses":\["main","prediction1","prediction2"\]' ||
  complain "multi-token prediction: the layout lacks a loss"
"$program" --replay predicting/predicting.plan.json >replayed 2>message ||
  complain "multi-token prediction: other figures"

# Clips: a sample has those for which its tokens have room, and the tower works for them.
echo '{"name": "hearing", "vision": {"layers": 4, "hidden": 256, "heads": 4, "mlp": 512,
  "image_size": 224}, "audio": {"layers": 8, "hidden": 256, "heads": 4, "mlp": 1024,
  "convolutions": [{"inputs": 80, "outputs": 256, "stride": 2}]},
  "audio_projectors": [{"patches_per_token": 2}], "language": {"layers": 4, "hidden": 512,
  "heads": 8, "mlp": 2048, "vocabulary": 32000}}' >hearing.json
for _ in $(seq 64); do echo '{"vit_num": 2, "token_num": 1000}'; done >heard.jsonl
hearing=(heard.jsonl --model hearing.json --stages 2 --tensor 1 --data 2 --micro-batches 2)
"$program" "${hearing[@]}" --output heard >output 2>message || complain "clips: it fails: $(cat message)"
# A clip becomes 750 tokens, and two tiles become 128 of the 1000: one clip has room, two have not.
grep -q '^The samples have 64 clips of 1500 tokens of the audio tower, at most 1 each$' output ||
  complain "clips: other samples: $(grep clips output)"
grep -q '"clips":4,"samples":\[[0-9]*,[0-9]*,[0-9]*,[0-9]*\]' heard/hearing.steps.jsonl ||
  complain "clips: the steps do not have them"
for text in '"audio": 8' '"vision": 4'; do
  grep -q "$text" heard/hearing.layout.json || complain "clips: the layout lacks $text"
done
"$program" --replay heard/hearing.plan.json >replayed 2>message ||
  complain "clips: other figures: $(cat message)"
"$program" "${hearing[@]}" --clip-length 400 --clips 9 >short 2>message || complain "short clips: it fails"
grep -q '^The samples have 256 clips of 400 ' short || complain "short clips: $(grep clips short)"
sed -i 's/"clips":4/"clips":0/g' heard/hearing.steps.jsonl
"$program" --replay heard/hearing.plan.json >replayed 2>message &&
  complain "clips: steps without them take as long"
printf 'layer,forward_ms,backward_ms\n0-20,20,40\n' >heard.csv
"$program" "${hearing[@]}" --measured heard.csv --measured-batch 2 4 1000 --output heard_measured \
  >output 2>message || complain "measured clips: it fails: $(cat message)"
"$program" --replay heard_measured/hearing.plan.json >replayed 2>message ||
  complain "measured clips: other figures: $(cat message)"

# Layers that take twice as long as modeled: all take a multiple, and the plan remembers it.
printf 'layer,forward_ms,backward_ms,kept_mb\n0-11,20,40,300\n' >times.csv
"$program" "${small[@]}" --measured times.csv --measured-batch 0 4 1024 --output measured >slow \
  2>message || complain "measured: it fails"
"$program" --replay measured/small.plan.json >replayed 2>message || complain "measured: other figures"
"$program" "${small[@]}" >fast 2>message
awk 'BEGIN { FS = "  +" } $1 == "+ memory" { print $2 }' fast slow >both
awk 'NR == 1 { fast = $1 } END { exit !($1 > 2 * fast) }' both || complain "measured: no slower"

# A link to the memory of the host: one more row that is faster and fits, and the files of its choices.
linked=(--synthetic 4096 --model 6+20B --memory 40)
"$program" "${linked[@]}" --offload 25 --output linked >output 2>message ||
  complain "offload: it fails: $(cat message)"
awk 'BEGIN { FS = "  +" } $1 == "+ memory" { memory = $2 } $1 == "+ offload" { offload = $2; bytes = $9 }
  END { count = split(bytes, each, " "); for (i = 1; i <= count; ++i) if (each[i] > 40) exit 1
        exit !(offload > 0 && offload < memory && count == 4) }' output ||
  complain "offload: no faster row: $(grep '^+ ' output)"
grep -q '^Offload plan over links of 25 GB/s, one for each device: stages begin with layers 0 ' output ||
  complain "offload: no line about the links"
grep -q '^Megatron offloading: none, as module 2 of layer [0-9]* is offloaded, and Megatron-LM has no' output ||
  complain "offload: no reason without flags: $(grep Megatron output)"
[ "$(head -n 1 linked/6+20B.offload.csv)" = \
  "layer,stage,kind,input,input_bytes,selective,selective_bytes,rest,rest_bytes" ] ||
  complain "offload: other columns"
[ "$(grep -c ',offload,' linked/6+20B.offload.csv)" -gt 0 ] || complain "offload: no layer offloads"
grep -q ',recompute,.*,recompute,' linked/6+20B.offload.csv || complain "offload: no layer recomputes"
[ "$(grep -c '"MUST_CPU_OFFLOAD"' linked/6+20B.policies.json)" = \
  "$(grep -c ',offload,' linked/6+20B.offload.csv)" ] || complain "offload: other policies"
grep -q '"offloaded_bytes":' linked/6+20B.offload.json || complain "offload: no plan as JSON"
"$program" --replay linked/6+20B.plan.json >replayed 2>message || complain "offload: other figures"
"$program" "${linked[@]}" --offload 25 --offload-sharing 4 >shared 2>message ||
  complain "a shared link: it fails"
grep -q '^Offload plan over links of 25 GB/s, each for 4 stages: ' shared || complain "a shared link: none"
awk 'BEGIN { FS = "  +" } $1 == "+ offload" { print $2 }' output shared >both
awk 'NR == 1 { own = $1 } END { exit !($1 > own) }' both || complain "a shared link: as fast as four"
"$program" "${linked[@]}" >without 2>message
grep -v '^$\|^+ offload\|^Offload plan\|^Megatron offloading\|^  layers whose\|^  GB of a micro-batch\|^  gap\|^Plan: ' \
  output >same_rows
grep -v '^$\|^  gap\|^Plan: ' without >same_rows_without
cmp -s same_rows same_rows_without || complain "offload: it changes other rows"

# refuses NAME "PART|PART|..." ARGUMENT... : the program fails and its message has all parts
refuses() {
  local name=$1 parts=$2 part status
  shift 2
  "$program" "$@" >output 2>message
  status=$?
  [ "$status" -eq 1 ] || complain "$name: exit status $status"
  while IFS= read -r part; do
    grep -qF -- "$part" message || complain "$name: '$part' is not in the message"
  done <<<"plan_vlm: error: ${parts:+$'\n'}${parts//|/$'\n'}"
}

echo '{"size": 3}' >broken.json
refuses "choices and a link" '--recompute excludes --offload' --recompute none,full --offload 25
refuses "chunks and a link" '--chunks excludes --offload' --chunks 2 --offload 25
refuses "a share of no link" '--offload-sharing requires --offload' --offload-sharing 2
refuses "a link without bytes" '--offload: ' --offload 0
refuses "a replay with a link" '--offload is not for --replay' --replay plan.json --offload 25
refuses "clips without a tower" '--clips: is 4, but no model has an audio tower' --clips 4
refuses "a length of clips without a tower" '--clip-length: is 9, but no model has an audio' \
  --clip-length 9
echo '{"name": "r", "memory_gb": 80, "peak_teraflops": 312, "ranks": 30}' >r.json
printf 'layer,forward_ms,backward_ms\n0-62,1,2\n' >bad.csv
refuses "no plan" 'absent.json' --replay absent.json
refuses "unknown model" '--model: there is no model "6+30B"; did you mean "6+20B"?' --model 6+30B
refuses "broken model" '--model: broken.json: is no model' --model broken.json
refuses "memory" 'no plan of 6+34B fits the memory' --synthetic 4096 --model 6+34B --output none \
  --machine a100-40gb
[ ! -e none ] || complain "memory: a plan is left"
refuses "ranks" '--machine: r has 30 ranks, no multiple of 4 stages of 2 ranks' --machine ./r.json
refuses "choices" '--recompute|some' --recompute some
refuses "two measured models" '--measured' --measured times.csv
refuses "times of other layers" 'bad.csv|"layer" is "0-62"' --model deepseek-v2 --measured bad.csv
refuses "a batch that a capacity sets" '--batch|--capacity' "${small[@]}" --capacity 9 4096 --batch 3
refuses "a measured batch of nothing" '--measured-batch|--measured' --measured-batch 15 4 1024
refuses "a measured batch of too many tiles" '--measured-batch: has 17 tiles, must have at most 16' \
  --model 6+20B --measured times.csv --measured-batch 17 4 1024
refuses "a seed of a replay" '--seed is not for --replay' --replay plan/6+20B.plan.json --seed 7
refuses "a capacity of a replay" '--capacity is not for --replay' --replay plan/6+20B.plan.json \
  --capacity 9 4096
refuses "files of a replay" 'files is not for --replay' times.csv --replay plan/6+20B.plan.json
sed -i '/^60,/d' plan/6+20B.recompute.csv
refuses "a layer less" '6+20B.recompute.csv|"layer" is "61", must be 60' \
  --replay plan/6+20B.plan.json
cp plan/6+34B.plan.json kept.json
sed -i 's/"waiting_share": [0-9.]*/"waiting_share": 0.25/' plan/6+34B.plan.json
refuses "another waiting time" '6+34B.plan.json: the simulation gives other figures' \
  --replay plan/6+34B.plan.json
mv kept.json plan/6+34B.plan.json
sed -i 's/"nanoseconds": /"nanoseconds": 1/' plan/6+34B.plan.json
refuses "other figures" '6+34B.plan.json: the simulation gives other figures' \
  --replay plan/6+34B.plan.json

"$program" --synthetic 4096 --output left >/dev/full 2>message &&
  complain "full output: exit status 0"
[ ! -e left ] || complain "full output: a plan is left"

[ "$failures" -eq 0 ] && echo "all right"
exit "$((failures != 0))"
