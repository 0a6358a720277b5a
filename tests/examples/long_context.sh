#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pack_long_context on files of several formats, its pictures and plans, and input that it refuses.
#
# usage: long_context.sh PROGRAM
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

# Many short samples and a few long ones; no field for images.
for i in $(seq 1 300); do
  echo "{\"token_num\": $((i % 60 == 0 ? 20000 + 100 * i : 200 + 7 * i)), \"id\": \"$i\"}"
done >lines.jsonl
paste -sd, lines.jsonl | sed 's/.*/[&]/' >list.json
{
  echo "id,token_num"
  sed 's/.*: \([0-9]*\), "id": "\([0-9]*\)".*/\2,\1/' lines.jsonl
} >table.csv
echo '{"all": {"token_lengths": "list.json"}}' >manifest.json
sed 's/token_num/length/' lines.jsonl >renamed.jsonl

# packs ARGUMENT... : the tables without the last column, which is a time
packs() {
  "$program" "$@" --ranks 8 2>message | sed 's/ *[0-9.]*$//' >output
  [ "${PIPESTATUS[0]}" -eq 0 ] || complain "fails: $*"
}

packs lines.jsonl
mv output expected
grep -qF "300 samples, 8 ranks, 0 samples above 128K tokens" expected || complain "no first line"
for row in "plain packing" "+ hierarchy" "+ balance" "published rule:" "least epoch time:"; do
  grep -qF -- "$row" expected || complain "no row: $row"
done
for file in list.json table.csv manifest.json "renamed.jsonl --token-field length"; do
  # shellcheck disable=SC2086
  packs $file
  cmp -s output expected || complain "$file gives other packs"
done
packs list.json table.csv
grep -qF "600 samples" output || complain "two files are not both packed"
echo '[{"token_num": 5}, {"token_num": 131073}]' >long.json
packs long.json
grep -qF "2 samples, 8 ranks, 1 samples above" output || complain "a sample too long is not reported"

packs lines.jsonl --svg levels.svg
grep -q '^<svg' levels.svg || complain "no picture"
for text in "2 packs of 131,072 tokens on 8 ranks" "Waiting for attention" "300 samples in"; do
  grep -qF "$text" levels.svg || complain "the picture lacks: $text"
done

# The plan of the levels, which are those of the first ones here.
packs lines.jsonl --output plan --short-first 1
grep -qF "Plan: plan" output || complain "the output names no plan"
grep -q 'The plan is that of ".*"' output || complain "the output does not say whose plan it is"
grep -q '"weights": "epoch"' plan/plan.json || complain "the losses are divided by something else"
packs lines.jsonl --output by_step --weights step
grep -q '"weights": "step"' by_step/plan.json || complain "--weights step: not in the plan"
head -n 1 plan/steps.jsonl | grep -q '^{"level":0,' || complain "the first step is not of the first level"
[ "$(ls plan)" = "plan.json"$'\n'"steps.jsonl" ] || complain "other files: $(ls plan)"

# steps ARGUMENT... : the table of steps without the last column, which is a time
steps() {
  "$program" "$@" 2>message | sed 's/ *[0-9.]*$//' >output
  [ "${PIPESTATUS[0]}" -eq 0 ] || complain "fails: $*"
}

steps lines.jsonl --ranks 12 --ranks-per-node 4 --step-samples 100 --svg-step step.svg --output plan
for text in "300 samples in 3 steps of 100 samples, 12 ranks in nodes of 4, llama3-8b" \
  "one degree, " "best degree of each step" "levels" "groups, powers of two" \
  "groups in nodes of 4" "groups, any degree" "like lengths, best degree" "Plan: plan" \
  "Picture: step.svg"; do
  grep -qF -- "$text" output || complain "steps: no $text"
done
for text in "100 samples in one step on 12 ranks" "waiting"; do
  grep -qF "$text" step.svg || complain "the picture of a step lacks: $text"
done
for file in one_degree best_degree levels groups_powers_of_two groups_in_nodes groups like_lengths; do
  [ "$(wc -l <plan/$file.jsonl)" -eq 3 ] || complain "$file.jsonl has not the three steps"
done
if python3 -c 'import json' 2>/dev/null; then
  python3 - <<'PYTHON' >message || complain "the plan has other figures than the table"
import json, re

printed = {}
for line in open("output"):
    cells = re.split(r"  +", line.strip())
    if len(cells) == 7:
        printed[cells[0]] = cells[1:]
head = json.load(open("plan/plan.json"))
for plan in head["plans"]:
    steps = [json.loads(line) for line in open("plan/" + plan["file"])]
    groups = [group for step in steps for part in step["micro_steps"] for group in part]
    samples = sorted(sample for group in groups for sample in group["samples"])
    assert samples == list(range(300)), plan["name"]
    seconds = sum(head["cost"]["micro_step"] + max(group["seconds"] for group in part)
                  for step in steps for part in step["micro_steps"])
    busy = sum(group["seconds"] * group["degree"] for group in groups)
    micro_steps = sum(len(step["micro_steps"]) for step in steps)
    idle = seconds - micro_steps * head["cost"]["micro_step"] - busy / head["ranks"]
    found = [f"{seconds:.3f}", f"{100 * (seconds / head['lower_bound'] - 1):.1f} %",
             f"{100 * plan['sharing']:.1f} %", f"{100 * abs(idle) / seconds:.1f} %",
             f"{micro_steps / len(steps):.2f}", f"{plan['max_tokens']:,}"]
    assert found == printed[plan["name"]], (plan["name"], found, printed[plan["name"]])
assert len(printed) == 8, printed
PYTHON
fi

steps lines.jsonl --ranks 8 --step-tokens 100000
grep -qF "steps of 100,000 tokens, 8 ranks in nodes of 8" output || complain "no steps of tokens"
steps lines.jsonl --ranks 24 --step-samples 50 --degrees 2,1 --rank-tokens 20000
grep -qF "groups, all degrees given" output || complain "the degrees are not those given"
grep -qF "left out, as they fit on no group: 2 samples" output || complain "no samples left out"
echo '[{"token_num": 5}, {"token_num": 300000}]' >long.json
steps long.json --ranks 24 --step-samples 2
grep -q "^groups, powers of two  .* -$" output || complain "a way without a plan has figures"
grep -qF "groups, powers of two: a sample of 300,000 tokens needs 19 ranks" output ||
  complain "it does not say why there is no plan"

# Clips: the tower works in every pack and in every group, and its state takes memory.
echo '{"name": "hearing", "audio": {"layers": 8, "hidden": 1280, "heads": 20, "mlp": 5120,
  "convolutions": [{"inputs": 80, "outputs": 1280, "stride": 2}]},
  "audio_projectors": [{"patches_per_token": 2}], "language": {"layers": 4, "hidden": 512,
  "heads": 8, "mlp": 2048, "vocabulary": 32000}}' >hearing.json
hearing=(lines.jsonl --model hearing.json)
step_seconds() { awk 'BEGIN { FS = "  +" } $1 == "plain packing" { print $9 }' output; }
packs "${hearing[@]}"
grep -q '^Every 4,096 tokens have 4 clips of 1500 tokens of the audio tower$' output ||
  complain "clips: $(grep clips output)"
four=$(step_seconds)
packs "${hearing[@]}" --clips 1 --output heard
grep -q '"clips": {"count": 1, "length": 1500, "in_tokens": 4096}' <(tr -d '\n' <heard/plan.json | tr -s ' ' |
  sed 's/{ /{/g; s/ }/}/g') || complain "clips: the plan does not say them"
awk -v one="$(step_seconds)" -v four="$four" 'BEGIN { exit !(one > 0 && four > 1.2 * one) }' ||
  complain "clips: a step with four takes $four, with one $(step_seconds)"
epoch_seconds() { awk 'BEGIN { FS = "  +" } /^best degree/ { print $2 }' output; }
steps "${hearing[@]}" --ranks 8 --step-samples 100
four=$(epoch_seconds)
steps "${hearing[@]}" --ranks 8 --step-samples 100 --clips 0
awk -v none="$(epoch_seconds)" -v four="$four" 'BEGIN { exit !(none > 0 && four > 1.2 * none) }' ||
  complain "clips: steps with four take $four, without $(epoch_seconds)"
echo '{"model_type": "whisper", "d_model": 64, "encoder_attention_heads": 4,
  "decoder_attention_heads": 4}' >speech.json

picture=(--svg levels.svg)
# refuses NAME "PART|PART|..." ARGUMENT... : the program fails, its message has all parts, there is
# no output, no picture and no plan
refuses() {
  local name=$1 parts=$2 part
  shift 2
  rm -rf levels.svg new
  "$program" "$@" "${picture[@]}" --output new >output 2>message
  local status=$?
  [ "$status" -eq 1 ] || complain "$name: exit status $status"
  [ ! -s output ] || complain "$name: there is output"
  [ ! -e levels.svg ] || complain "$name: a picture is left"
  [ ! -e new ] || complain "$name: a plan is left"
  while IFS= read -r part; do
    grep -qF -- "$part" message || complain "$name: '$part' is not in the message"
  done <<<"pack_long_context: error: "$'\n'"${parts//|/$'\n'}"
}

echo '[{"token_num": 5}, {"token_num": -6}]' >bad.json
refuses "negative" 'bad.json: record 2|"token_num" is -6' bad.json
echo '[{"token_num": 5}, {"token_num": NaN}]' >bad.json
refuses "not a number" 'bad.json: record 2|"token_num" is NaN' bad.json
echo '[{"tokens": 5}]' >bad.json
refuses "missing field" 'bad.json: record 1|no field "token_num"|"tokens"' bad.json
printf 'token_num\n1\n2,3\n' >bad.csv
refuses "bad table" 'bad.csv: record 2 (line 3)' bad.csv
printf 'tokens\n1\n' >bad.csv
refuses "missing column" 'bad.csv|"token_num"' bad.csv
: >empty.jsonl
refuses "empty file" 'empty.jsonl: the file is empty' empty.jsonl
refuses "absent file" 'absent.json: cannot open' absent.json
echo '[{"token_num": 131073}]' >bad.json
refuses "nothing fits" 'no sample fits the longest level' bad.json
refuses "ranks" '--ranks|is 12|multiple of 8' --ranks 12
refuses "too few ranks" '--ranks|is 4' --ranks 4
refuses "ranks that are no number" '--ranks|is 8.5' --ranks 8.5
refuses "no samples" '--synthetic|is 0' --synthetic 0
refuses "negative seed" '--seed|is -1' --seed -1
refuses "unknown weights" '--weights|means' --weights means
printf 'layer,forward_ms,backward_ms\n0-33,1,2\n' >measured.csv
refuses "a measured batch of nothing" '--measured-batch|--measured' --measured-batch 1 4096
refuses "measured and given speed" '--measured|--teraflops' --measured measured.csv --teraflops 140
refuses "unknown mix" '--mix|narrow' --mix narrow
refuses "files and a mix" '--mix' list.json --mix broad
refuses "files and synthetic" '--synthetic' list.json --synthetic 8
refuses "unknown option" '--levels' --levels 3
refuses "steps without steps" '--degrees|--step-samples' list.json --degrees 1,2
refuses "clips without a tower" '--clips: is 4, but no model has an audio tower' list.json --clips 4
refuses "clips of more tokens than there are" \
  '--clips: is 6, must be at most 5, because a clip becomes 750 tokens of hearing' \
  list.json --model hearing.json --clips 6
refuses "a decoder of speech" '--model: speech attends to clips, and samples have tokens' list.json \
  --model speech.json
refuses "unknown model" '--model|there is no model "llama3-7b"; did you mean "llama3-8b"?' --model llama3-7b
refuses "a tower" '--model|internvit-6b+llama3-8b' --model internvit-6b
refuses "unknown machine" '--machine|"a100-80"; did you mean "a100-80gb"?' --machine a100-80
refuses "too little memory" 'deepseek-v2|does not fit on 8 devices a100-40gb' --ranks 8 \
  --model deepseek-v2 --machine a100-40gb
printf 'layer,forward_ms,backward_ms\n0,1,1\n' >other.csv
refuses "times of no layer that works" 'other.csv|language model, which are 0 to 33' \
  --measured other.csv
refuses "a step without steps" '--svg-step|--step-samples' list.json --svg-step step.svg
refuses "steps and levels" '--svg|is for levels' list.json --step-samples 8

picture=(--svg new/plan.json)
refuses "a picture in place of the plan" 'new/plan.json|another output' list.json --ranks 8
picture=(--svg-step levels.svg)
refuses "memory of steps" '--memory: is for levels' list.json --step-samples 8 --memory 80
refuses "steps of nothing" '--step-samples|is 0' list.json --step-samples 0
refuses "steps of no tokens" '--step-tokens|is -8' list.json --step-tokens -8
refuses "two sizes of steps" '--step-tokens|--step-samples' \
  list.json --step-samples 8 --step-tokens 8
refuses "a curriculum of steps" '--short-first|is for levels' list.json --step-samples 8 --short-first 2
refuses "ranks and nodes" '--ranks|is 12|multiple of 8' list.json --step-samples 8 --ranks 12
refuses "too many ranks" '--ranks|is 131072|at most 65536' list.json --step-samples 8 --ranks 131072
refuses "too many ranks to draw" '--svg-step|4096|--ranks is 8192' \
  list.json --step-samples 8 --ranks 8192
refuses "no degree" '--degrees|is 0' list.json --step-samples 8 --degrees 1,0
refuses "a degree that is no number" '--degrees|is two' list.json --step-samples 8 --degrees 1,two
refuses "a degree above the ranks" '--degrees|has 64|at most 32' \
  list.json --step-samples 8 --degrees 1,64
refuses "no memory" '--rank-tokens|is 0' list.json --step-samples 8 --rank-tokens 0
refuses "unknown model" '--model|gpt' list.json --step-samples 8 --model gpt
refuses "no sample fits a group" 'no sample fits on any group of ranks' \
  long.json --step-samples 8 --rank-tokens 4 --degrees 1
echo '[{"token_num": 5}, {"token_num": -6}]' >bad.json
refuses "negative in steps" 'bad.json: record 2|"token_num" is -6' bad.json --step-samples 8

"$program" list.json --ranks 8 --svg list.json/levels.svg >output 2>message &&
  complain "a picture inside a file: exit status 0"
grep -qF "list.json" message || complain "the message does not name the picture"

# What only a written plan has.
for option in "--weights step" "--short-first 2"; do
  # shellcheck disable=SC2086
  "$program" list.json --ranks 8 $option >output 2>message && complain "$option of no plan: exit status 0"
  grep -qF -- "${option% *} requires --output" message || complain "$option of no plan: message"
done

[ "$failures" -eq 0 ] && echo "formats, picture and bad input as they should be"
exit "$((failures != 0))"
