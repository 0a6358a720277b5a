#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# post_balance prints the same table for threads, for processes of MPI and for simulated ranks, finds
# all gradients equal, and says what is wrong with its options.
#
# usage: post_balance.sh PROGRAM [MPIEXEC NUMPROC_FLAG]
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"
mpiexec=("${@:2}")

table() { grep -E '^(phase|vision encoder|audio encoder|  its outputs|language model|all) ' "$1"; }
equal='equal with and without the exchange in all'

"$program" >threads 2>message || complain "threads: it fails"
[ "$(table threads | wc -l)" -eq 7 ] || complain "threads: rows are missing"
grep -q "$equal 8 steps" threads || complain "threads: gradients are not compared"
tr '\n' ' ' <threads | grep -q 'planning: .* % of the forward pass' || complain "threads: no overhead"
# Balanced phases wait for less than a twentieth of their time.
awk '/^(vision|audio) encoder|^language model/ { if ($5 + 0 > 5 || $3 + 0 < $5 + 0) exit 1 }' \
  threads || complain "threads: a phase waits"

"$program" --simulate 4 --per-node 2 --samples 16 --steps 8 >simulated 2>message ||
  complain "simulated: it fails"
diff <(table threads) <(table simulated) >output || complain "simulated ranks have another table"
"$program" --threads 3 --steps 2 --balance lpt >output 2>message || complain "lpt: it fails"
grep -q "$equal 2 steps" output || complain "lpt: gradients are not compared"

"$program" --simulate 256 --steps 1 >large 2>message || complain "256 ranks: it fails"
# Fewer bytes cross nodes where the plans know them: the last column and the third from there.
awk '/^all / { found = 1; if ($5 + 0 >= $3 / 2) exit 1 } END { exit !found }' large ||
  complain "256 ranks: as many bytes cross nodes"

if [ "${#mpiexec[@]}" -ne 0 ]; then
  for ranks in 1 2 4; do
    "${mpiexec[@]}" "$ranks" "$program" --steps 8 >processes 2>message ||
      complain "$ranks processes: it fails"
    grep -q "$equal 8 steps" processes || complain "$ranks processes: no gradients"
  done
  diff <(table threads) <(table processes) >output || complain "processes have another table"
else
  "$program" --mpi >output 2>message && complain "without MPI: --mpi succeeds"
  grep -qF 'built without MPI' message || complain "without MPI: it does not say so"
fi

# Samples of a file, by names of its own, from the standard input and compressed.
for i in $(seq 1 200); do
  echo "{\"tiles\": $((i % 5)), \"length\": $((i % 5 * 256 + 40 + 7 * i))}"
done >own.jsonl
own=(--image-field tiles --token-field length)
"$program" own.jsonl "${own[@]}" --threads 3 --steps 4 >threads 2>message || complain "file: it fails"
grep -q "$equal 4 steps" threads || complain "file: gradients are not compared"
grep -qF '; 200 samples in the files' threads || complain "file: no number of samples"
gzip -c own.jsonl |
  "$program" - "${own[@]}" --simulate 3 --per-node 2 --samples 16 --steps 4 >simulated 2>message ||
  complain "standard input: it fails"
diff <(table threads) <(table simulated) >output || complain "the standard input has another table"
seq 100 300 >numbers.txt
"$program" numbers.txt --text --threads 2 --steps 2 >output 2>message || complain "text: it fails"
awk '/^vision encoder/ { if ($3 + 0 != 0 || $5 + 0 != 0) exit 1 }' output ||
  complain "text: the vision encoder works"

refuses() {
  local name=$1 part=$2
  shift 2
  "$program" "$@" >output 2>message && complain "$name: exit status 0"
  [ ! -s output ] || complain "$name: there is output"
  grep -qF -- "$part" message || complain "$name: '$part' is not in the message"
}
refuses "no threads" '--threads' --threads 0
refuses "octal steps" 'is 010' --steps 010
refuses "two engines" '--simulate' --simulate 4 --threads 4
refuses "unknown balancer" 'none' --balance none
echo '{"tiles": 2, "length": 300}' >text.jsonl
refuses "tokens of the text alone" 'sample 0 has 300 tokens, fewer than the 256 of each of its 2' \
  text.jsonl "${own[@]}"
refuses "no field of images" 'text.jsonl: record 1' text.jsonl --token-field length
refuses "a measured batch of nothing" '--measured-batch requires --measured' --measured-batch 15 4 1024
refuses "measured and given speed" '--teraflops excludes --measured' --measured times.csv --teraflops 140
refuses "tiles of no file" '--tokens-per-tile requires files' --tokens-per-tile 256
refuses "absent file" 'absent.json: cannot open' absent.json
refuses "standard input of MPI" 'need the name of a file' - --mpi
"$program" --steps 1 >/dev/full 2>message && complain "full output: exit status 0"
grep -qF 'cannot write to the standard output' message || complain "full output: no message"

[ "$failures" -eq 0 ] && echo "all right"
exit "$((failures != 0))"
