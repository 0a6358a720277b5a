#!/usr/bin/env bash
# plan_vlm writes plans that give the printed figures again, all files or none.
#
# usage: plan_vlm.sh PROGRAM
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

"$program" --synthetic 4096 --output plan >output 2>message || complain "default: it fails"
grep -q '^Plan: plan$' output || complain "default: the output names no plan"
for model in 6+20B 6+34B; do
  for suffix in plan.json recompute.csv steps.jsonl trace.json svg; do
    [ -s "plan/$model.$suffix" ] || complain "default: no $model.$suffix"
  done
  "$program" --replay "plan/$model.plan.json" >replayed 2>message || complain "$model: other figures"
  # Seconds, waiting and memory of the last row of the table.
  awk -v model="$model" 'BEGIN { FS = "  +" } $1 == model { on = 1 }
    on && $1 == "+ memory" { print $2, $4, $9; exit }' output >printed
  awk 'BEGIN { FS = "  +" } $1 == "simulated again" { print $2, $3, $4 }' replayed >again
  cmp -s printed again || complain "$model: printed $(cat printed), again $(cat again)"
done

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

refuses "no plan" 'absent.json' --replay absent.json
sed -i '/^60,/d' plan/6+20B.recompute.csv
refuses "a layer less" '6+20B.recompute.csv|"layer" is "61", must be 60' \
  --replay plan/6+20B.plan.json
sed -i 's/"nanoseconds": /"nanoseconds": 1/' plan/6+34B.plan.json
refuses "other figures" '6+34B.plan.json: the simulation gives other figures' \
  --replay plan/6+34B.plan.json

"$program" --synthetic 4096 --output left >/dev/full 2>message &&
  complain "full output: exit status 0"
[ ! -e left ] || complain "full output: a plan is left"

[ "$failures" -eq 0 ] && echo "all right"
exit "$((failures != 0))"
