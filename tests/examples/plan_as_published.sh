#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# plan_as_published prints both methods, writes plans that plan_vlm simulates alike, and takes
# measured cuts from a command.
#
# usage: plan_as_published.sh PROGRAM PLAN_VLM
plan_vlm=$(realpath "$2")
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

small_set=(--synthetic 2048 --data 2)
few=("${small_set[@]}" --model 6+20B)
"$program" "${few[@]}" --output plan >output 2>message || complain "default: it fails"
for row in 'random, by parameters' 'as published + '{data,model,memory} \
  'this library + '{data,model,memory}; do
  grep -qE "^${row//+/\\+}  +[0-9]" output || complain "default: no row $row"
done
grep -q 'anchor' output || complain "default: no anchor"
grep -q 'A language layer that keeps everything takes ' output || complain "default: no readings"
"$plan_vlm" --replay plan/6+20B-published.plan.json >replayed 2>message ||
  complain "replay: other figures"
awk 'BEGIN { FS = "  +" } $1 == "as published + memory" { print $2, $4, $10 }' output >printed
awk 'BEGIN { FS = "  +" } $1 == "simulated again" { print $2, $3, $4 }' replayed >again
cmp -s printed again || complain "replay: printed $(cat printed), again $(cat again)"

# The command sees the cuts; what it says is fastest is taken.
cat >measure.sh <<'END'
echo "$*" >>asked
[ "$(wc -l <asked)" -eq 2 ] && echo 0.5 || echo 1.5
END
"$program" "${few[@]}" --top 4 --measure 'sh measure.sh' >output 2>message ||
  complain "command: it fails"
[ "$(wc -l <asked)" -eq 4 ] || complain "command: asked $(wc -l <asked) times"
awk 'BEGIN { FS = "  +" } / fastest$/ { print $1 }' output >fastest
sed -n 2p asked | cmp -s - fastest || complain "command: $(cat fastest) of $(cat asked)"

# A public configuration, text alone, measured layers, no room.
echo '{"hidden_size": 2048, "intermediate_size": 8192, "model_type": "llama", "vocab_size": 32000,
  "num_attention_heads": 16, "num_hidden_layers": 10, "rms_norm_eps": 1e-6}' >small.json
seq 1 3000 >lengths.txt
"$program" lengths.txt --text --model small.json --stages 2 --data 2 >output 2>message ||
  complain "text: it fails"
printf 'layer,forward_ms,backward_ms\n0-11,20,40\n' >times.csv
"$program" "${small_set[@]}" --model small.json --stages 2 --measured times.csv \
  --measured-batch 0 4 1024 >output 2>message || complain "measured: it fails"
"$program" "${few[@]}" --memory 20 >output 2>message || complain "no room: it fails"
grep -qE 'as published \+ memory  +stage [0-9] lacks [0-9]+ GB' output ||
  complain "no room: it does not say so"

# refuses NAME "PART|PART|..." ARGUMENT... : the program fails and its message has all parts
refuses() {
  local name=$1 parts=$2 part status
  shift 2
  "$program" "${few[@]}" --output left "$@" >output 2>message
  status=$?
  [ "$status" -eq 1 ] || complain "$name: exit status $status"
  [ ! -e left ] || complain "$name: a plan is left"
  while IFS= read -r part; do
    grep -qF -- "$part" message || complain "$name: '$part' is not in the message"
  done <<<"plan_as_published: error: ${parts:+$'\n'}${parts//|/$'\n'}"
}

refuses "a command that fails" '--measure: exit 3; true |ended with status 3' --measure 'exit 3; true'
refuses "a command that prints words" 'prints "x 3", must print seconds' --measure 'echo x 3 #'
refuses "a command that prints nothing" 'prints nothing, must print seconds' --measure true
refuses "no cuts that can run" 'none of the 10 cuts that were measured can run' --measure 'echo inf #'
refuses "no command" '--measure is empty' --measure ''
refuses "two models" '--measure measures one model' --measure true --model 6+34B
refuses "no cuts to measure" '--top|is 0' --top 0
refuses "steps of a command" '--measured-steps|--measure' --measure true --measured-steps 4
refuses "memory" 'no plan of 6+20B-published fits the memory' --memory 20

[ "$failures" -eq 0 ] && echo "all right"
exit "$((failures != 0))"
