#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The trainer of examples/train_vlm as processes: equal gradients and losses, stopping, being killed
# and going on with another number of processes, and bad input.
#
# usage: train_vlm.sh PROGRAM
root=$(realpath "$(dirname "$0")/../..")
# shellcheck source=../examples/support.sh
. "$(dirname "$0")/../examples/support.sh"

tiny=(--synthetic 96 --vision-layers 1 --layers 1 --vision-width 16 --width 16 --heads 2
  --capacity-images 13 --timeout 60)
# Where an epoch need not be long: most of the time of a run is that of measuring its packs.
few=(--limit 24)

# runs NAME ARGUMENT... : the program ends well
runs() {
  "$program" "${tiny[@]}" "${@:2}" >output 2>message || complain "$1: exit status $?"
}

# refuses NAME RANKS TEXT ARGUMENT... : every rank says so and the program ends with status 1
refuses() {
  timeout -k 1 120 "$program" "${tiny[@]}" "${@:4}" >output 2>message
  local status=$?
  [ "$status" -eq 1 ] || complain "$1: exit status $status"
  local rank
  for ((rank = 0; rank != $2; ++rank)); do
    grep -F "train_vlm: rank $rank: error: " message | grep -qF -- "$3" ||
      complain "$1: rank $rank does not say '$3'"
  done
}

# once NAME : the first 96 numbers are each once in the file `ids`
once() {
  sort -n ids | cmp -s - <(seq 0 95) || complain "$1: not every sample once"
}

# ids_of FOLDER FIRST END : the samples of the steps [FIRST, END) of epoch 0
ids_of() {
  awk -v first="$2" -v end="$3" '$1 == 0 && $2 >= first && $2 < end {
    for (i = 3; i <= NF; ++i) print $i }' "$1"/rank_*
}

# lines FILE : how many, 0 where it is not there
lines() { if [ -e "$1" ]; then wc -l <"$1"; else echo 0; fi; }

# min_seconds RANKS PROCESS : the least processor time of the ranks that a child of it has started
min_seconds() {
  ps -o cputimes= --ppid "$(pgrep -P "$2" || echo "$2")" |
    awk -v ranks="$1" '!rows++ || $1 < least { least = $1 } END { print rows == ranks ? least : 0 }'
}

runs gradients "${few[@]}" --task gradients --batch 8
runs curves "${few[@]}" --task curves --batch 4 --steps 6
runs compare "${few[@]}" --task compare --runs 1 --steps 3
grep -q '^post_balanced ' output || complain "compare: no row of post_balanced"
runs replay "${few[@]}" --task replay --replay 4
# Fails unless the epochs of all forms have the same gradient.
runs "long contexts" --task long --oversized own-group --runs 1 --replay 4
[ "$(grep -cE '^(one|two) lengths?, ' output)" -eq 4 ] || complain "long contexts: not four rows"
# Fails where a peak exceeds its budget.
"$program" --synthetic 32 --oversized own-group --task memory >output 2>message ||
  complain "memory: exit status $?"
awk -F '  +' '/ vision, / { if ($5 + 0 > 5 || $5 + 0 < -5) bad += 1; rows += 1 }
  END { exit !(rows >= 8 && bad == 0) }' output || complain "memory: a peak is 5 % off"

# Fails where a peak is above its prediction or 5 % below it, or gradients differ.
for layers in 8 3; do
  "$program" --synthetic 256 --oversized own-group --layers "$layers" --vision-layers $((layers * 3 / 4)) \
    --task memory --offload >output 2>message || complain "offload of $layers layers: exit status $?"
  [ "$(grep -c ' equal  ' output)" -eq 8 ] || complain "offload of $layers layers: not eight rows"
done

# A pipeline of three stages, on packs without images too: fails unless gradients are those of the
# whole model. The cuts of omnibal are among the candidates, and search_cuts names the fastest.
pipeline=(--task pipeline --capacity-tokens 512 --oversized own-group --micro-batches 8)
runs pipeline "${pipeline[@]}" --ranks 3 --runs 1
grep -qE 'nan|inf' output && complain "pipeline: no number"
awk -F '  +' '/^[0-9]/ { if (!rows++ || $6 + 0 < best) best = $6 + 0 }
  /partition_layers/ { found += 1 } /search_cuts/ { chosen = $6 + 0 }
  END { exit !(rows == 6 && found == 1 && chosen == best) }' output ||
  complain "pipeline: search_cuts has not found the fastest cuts"
# Lengths as all programs read them; what comes by the standard input comes to all ranks.
for i in $(seq 1 24); do echo "{\"tiles\": $((i % 3)), \"length\": $((i % 3 * 256 + 9 * i))}"; done >own
# The steps of this form do not depend on measured times, and their losses on the lengths.
own=("${tiny[@]:2}" --image-field tiles --token-field length --form unpadded)
"$program" "${own[@]}" own --format jsonl --log named >losses 2>message || complain "own lengths"
gzip -c own | "$program" "${own[@]}" - --log piped >output 2>message || complain "standard input"
cmp -s <(grep '^epoch' losses) <(grep '^epoch' output) || complain "the standard input gives other losses"
[ "$(grep -c '^epoch' losses)" -ge 2 ] || complain "own lengths: fewer than two steps"
diff -r named piped >output || complain "the standard input gives other steps"
echo '{"tiles": 1, "length": -5}' >>own
"$program" "${own[@]}" - <own >output 2>message && complain "negative length: exit status 0"
for rank in 0 1; do
  grep -F "train_vlm: rank $rank: error: standard input: " message | grep -qF '"length" is -5' ||
    complain "negative length: rank $rank does not say so"
done

refuses "more stages than layers" 6 "has 5 layers for the stages" --task pipeline --ranks 6
dying=("${tiny[@]/#60/10}" "${few[@]}" "${pipeline[@]}" --ranks 3 --runs 1000)
timeout -k 1 120 "$program" "${dying[@]}" >output 2>message &
running=$!
until [ "$(min_seconds 3 "$running")" -ge 1 ] || ! kill -0 "$running" 2>/dev/null; do sleep 0.1; done
kill -KILL "$(pgrep -P "$(pgrep -P "$running")" | tail -n 1)"
wait "$running" && complain "a dead stage is not noticed"
grep -q '^train_vlm: rank 0: error: ' message || complain "rank 0 does not notice a dead stage"

# Stops after its step where it is asked to, and where it has run enough.
for form in even_packs post_balanced; do
  rm -rf first second state
  "$program" "${tiny[@]}" --form "$form" --checkpoint state --log first >output 2>message &
  running=$!
  until [ "$(lines first/rank_1)" -ge 2 ] || ! kill -0 "$running" 2>/dev/null; do sleep 0.02; done
  kill -TERM "$running" 2>/dev/null
  wait "$running" || complain "$form: stopping fails"
  runs "$form goes on" --form "$form" --checkpoint state --resume --ranks 3 --log second
  { ids_of first 0 1000; ids_of second 0 1000; } >ids
  once "$form, stopped"
done

# Is killed at any step: what ran after the last checkpoint is not in it, and runs again.
rm -rf first second state
"$program" "${tiny[@]}" --checkpoint state --checkpoint-every 2 --log first >output 2>message &
running=$!
until [ -e state ] && [ "$(lines first/rank_0)" -ge 5 ] || ! kill -0 "$running" 2>/dev/null; do
  sleep 0.02
done
# What has a checkpoint is in the log of rank 0, but may not yet be in that of rank 1.
kill -STOP "$(pgrep -P "$running" | head -n 1)" 2>/dev/null
for ((i = 0; i != 500 && $(lines first/rank_1) < $(lines first/rank_0); ++i)); do sleep 0.02; done
kill -KILL "$running" 2>/dev/null
wait "$running" 2>/dev/null
sleep 0.2
runs "goes on after a kill" --checkpoint state --resume --ranks 1 --log second
at=$(sed -n 's/^goes on at epoch 0 step //p' output)
[ "${at:-0}" -ge 2 ] || complain "it goes on at step '$at'"
{ ids_of first 0 "${at:-0}"; ids_of second 0 1000; } >ids
once "killed"

refuses "other options" 2 "is of other options" --checkpoint state --resume --form random_packs
refuses "other data" 2 "state.digest" --checkpoint state --resume --limit 95
refuses "checkpoints nowhere" 0 "" --checkpoint-every 2
refuses "a picture of no curves" 0 "" --svg curves.svg
refuses "ranks of no replay" 0 "" --replay 4
echo nothing >nothing
refuses "no checkpoint" 2 "is no checkpoint" --checkpoint nothing --resume
refuses "oversized sample" 2 "take --oversized own-group" --capacity-tokens 2048

# A rank that dies is an error on the others, not a hang.
rm -rf first
timeout -k 1 120 "$program" "${tiny[@]}" "${few[@]}" --ranks 3 --epochs 1000 --log first >output 2>message &
running=$!
until [ "$(lines first/rank_2)" -ge 1 ] || ! kill -0 "$running" 2>/dev/null; do sleep 0.02; done
launcher=$(pgrep -P "$running" || true)
victim=$(pgrep -P "${launcher:-$running}" | tail -n 1)
kill -KILL "$victim" 2>/dev/null
wait "$running" && complain "a dead rank is not noticed"
grep -q 'ended by signal 9' message || complain "nothing says that a rank was killed"
[ "$(grep -c '^train_vlm: rank [0-9]*: error: ' message)" -eq 2 ] ||
  complain "not both other ranks have an error"

# One that hangs is one too, and is killed.
rm -rf first
timeout -k 1 120 "$program" "${tiny[@]/#60/4}" "${few[@]}" --epochs 1000 --log first >output 2>message &
running=$!
until [ "$(lines first/rank_1)" -ge 1 ] || ! kill -0 "$running" 2>/dev/null; do sleep 0.02; done
kill -STOP "$(pgrep -P "$(pgrep -P "$running")" | tail -n 1)"
wait "$running" && complain "a hanging rank is not noticed"
grep -q '^train_vlm: rank 0: error: ' message || complain "rank 0 does not notice a hanging rank"

# docs/guides/trainer.md shows lines of the trainer, and says how many it has.
[ "$(cat "$root"/examples/train_vlm/*.?pp | wc -l)" -le 1320 ] || complain "more than 1,320 lines"
cat "$root"/examples/train_vlm/{,*/}*.?pp | tr -s ' \n' ' ' >sources
awk '/^```/ { is_code = $0 == "```cpp"; next } is_code' "$root/docs/guides/trainer.md" | sed 's/^ *//' >shown
[ "$(wc -l <shown)" -ge 10 ] || complain "docs/guides/trainer.md has fewer than ten lines of the trainer"
while IFS= read -r line; do
  grep -qF -- "$line" sources || complain "no line of the trainer: $line"
done <shown

[ "$failures" -eq 0 ] && echo "the trainer does what it should"
exit "$((failures != 0))"
