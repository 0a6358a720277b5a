#!/usr/bin/env bash
# pack_long_context on files of several formats, its picture, and input that it refuses.
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

# refuses NAME "PART|PART|..." ARGUMENT... : the program fails, its message has all parts, there is
# no output and no picture
refuses() {
  local name=$1 parts=$2 part
  shift 2
  rm -f levels.svg
  "$program" "$@" --svg levels.svg >output 2>message
  local status=$?
  [ "$status" -eq 1 ] || complain "$name: exit status $status"
  [ ! -s output ] || complain "$name: there is output"
  [ ! -e levels.svg ] || complain "$name: a picture is left"
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
refuses "unknown mix" '--mix|narrow' --mix narrow
refuses "files and a mix" '--mix' list.json --mix broad
refuses "files and synthetic" '--synthetic' list.json --synthetic 8
refuses "unknown option" '--levels' --levels 3
"$program" list.json --ranks 8 --svg list.json/levels.svg >output 2>message &&
  complain "a picture inside a file: exit status 0"
grep -qF "list.json" message || complain "the message does not name the picture"

[ "$failures" -eq 0 ] && echo "formats, picture and bad input as they should be"
exit "$((failures != 0))"
