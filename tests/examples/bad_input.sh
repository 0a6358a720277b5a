#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bad input to pack_dataset: a message that names file, record, field and value, an exit status that
# is not zero, and no plan.
#
# usage: bad_input.sh PROGRAM
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

# refuses NAME "PART|PART|..." ARGUMENT... : the program fails, its message has all parts, and no plan
# is left
refuses() {
  local name=$1 parts=$2 part
  shift 2
  rm -rf plan
  "$program" "$@" --output plan >output 2>message
  local status=$?
  [ "$status" -eq 1 ] || complain "$name: exit status $status"
  [ ! -s output ] || complain "$name: there is output"
  [ ! -e plan ] || complain "$name: a plan is left: $(ls -A plan)"
  while IFS= read -r part; do
    grep -qF -- "$part" message || complain "$name: '$part' is not in the message"
  done <<<"pack_dataset: error: ${parts:+$'\n'}${parts//|/$'\n'}"
}

good='{"vit_num": 1, "token_num": 300, "image_flags": 1}'
# refuses_record NAME PARTS RECORD : as the second record of a file
refuses_record() {
  echo "[$good, $3]" >bad.json
  refuses "$1" "bad.json: record 2|$2" bad.json
}

refuses_record "missing field" 'no field "token_num"' '{"vit_num": 1}'
refuses_record "misspelt field" 'no field "vit_num"|did you mean "vit_nmu"' \
  '{"vit_nmu": 1, "token_num": 2}'
refuses_record "negative" '"token_num" is -5|negative' '{"vit_num": 1, "token_num": -5}'
refuses_record "fractional" '"token_num" is 3.5|not an integer' '{"vit_num": 1, "token_num": 3.5}'
refuses_record "huge" '"token_num" is 9223372036854775808|64-bit' \
  '{"vit_num": 1, "token_num": 9223372036854775808}'
refuses_record "not a number" '"vit_num" is NaN' '{"vit_num": NaN, "token_num": 2}'
refuses_record "string" '"vit_num" is "1"|string' '{"vit_num": "1", "token_num": 2}'
refuses_record "null" '"vit_num" is null' '{"vit_num": null, "token_num": 2}'
refuses_record "boolean" '"vit_num" is true' '{"vit_num": true, "token_num": 2}'

echo "[$good, {\"vit_num\": 1, \"tok" >cut.json
refuses "truncated list" 'cut.json: record 2|truncated' cut.json
printf '%s\n{"vit_num": 1, "tok' "$good" >cut.jsonl
refuses "truncated lines" 'cut.jsonl: record 2 (line 2)|truncated' cut.jsonl
printf 'vit_num,token_num\n1,2\n3' >cut.csv
refuses "truncated table" 'cut.csv: record 2 (line 3)' cut.csv
printf 'vit_num,token_num\n1,2\n3,-4\n' >bad.csv
refuses "bad table" 'bad.csv: record 2 (line 3)|"token_num" is -4' bad.csv
: >empty.json
refuses "empty file" 'empty.json: the file is empty' empty.json
echo '[]' >none.json
refuses "empty list" 'none.json: has no records' none.json
echo '17' >number.json
refuses "no list" 'number.json|17' number.json
echo "[$good] [1]" >two.json
refuses "list behind a list" 'two.json: text follows the end of the JSON' two.json
echo "[$good] x" >behind.json
refuses "text behind a list" 'behind.json: text follows the end of the JSON list: `x`' behind.json
echo '[7, {"token_num": 1}]' >mixed.json
refuses "record among numbers" 'mixed.json: record 2|{' mixed.json
echo '{"token_num": [1, 2], "vit_num": [1]}' >columns.json
refuses "columns of two lengths" 'columns.json|"vit_num" has 1 values and field "token_num" 2' columns.json
printf '12\n-3\n' >numbers.txt
refuses "negative number" 'numbers.txt: record 2 (line 2): is -3|negative' numbers.txt
printf 'PAR1\0\0' >table.parquet
refuses "Parquet" 'table.parquet: is a Parquet file' table.parquet
echo "[$good]" | gzip | head -c 30 >cut.json.gz
refuses "truncated gzip" 'cut.json.gz: cannot read|unexpected end' cut.json.gz
{ echo "[$good]" | gzip && echo "[$good]"; } >tail.json.gz
refuses "text behind gzip" 'tail.json.gz: cannot read|not compressed by gzip' tail.json.gz
echo '[{"length": 7}]' >other.json
refuses "other field of tokens" 'no field "token_num"|--token-field' other.json --text
refuses "no field of images" 'no field "vit_num"|--image-field|--text' other.json
refuses "absent file" 'absent.json: cannot open' absent.json

echo "[$good]" >good.json
echo '[300, 400]' >text.json
refuses "images of text" '--capacity|are text' text.json --capacity 9 4096
refuses "no images for images" '--capacity is 4096|--text' good.json --capacity 4096
refuses "all samples oversized" '2 of 2 samples|100 tokens|at most 400 tokens' text.json --capacity 100
printf '5\n7\n' >text.txt
for shape in '(1, 2)' '(2,)' '(-2,)'; do
  npy_header "$shape" >"$shape.npy"
  printf '\x01\x02' >>"$shape.npy"
done
mv '(1, 2).npy' pair.npy
mv '(2,).npy' list.npy
mv '(-2,).npy' minus.npy
echo '{"a": {"token_lengths": "pair.npy"}}' >of_npy.json
for nameless in pair.npy list.npy of_npy.json text.json text.txt; do
  refuses "names for $nameless" '--token-field|"n"|without names' $nameless --token-field n
  refuses "images for $nameless" '--image-field|"n"|without names' $nameless --image-field n
  refuses "sizes for $nameless" '--image-size-fields|"w"|without names' $nameless \
    --image-size-fields w h --tile-size 28
done
for imageless in list.npy text.json text.txt; do
  refuses "tiles for $imageless" '--tokens-per-tile is 256|no file has image tiles' $imageless \
    --tokens-per-tile 256
done
refuses "negative shape" 'minus.npy: is a NumPy array of shape (-2,)' minus.npy
for option in "--text" "--image-field n" "--token-field n" "--tokens-per-tile 9" "--format csv" \
  "--image-size-fields w h"; do
  # shellcheck disable=SC2086
  refuses "$option of no file" "${option%% *}|files" --synthetic 50 $option
done
for option in "--packer bfd" --improve "--align 16" "--ranks 4" "--max-dist-ratio 0" "--rank-ms 1 2" \
  "--epoch 1" "--remainder carry" --no-picture --quiet; do
  # shellcheck disable=SC2086
  refuses "$option of no plan" "${option%% *}|--describe" good.json --describe $option
done
refuses "output of no plan" '--output|--describe' good.json --describe

printf '{"m": {"a": 1}, "n": 5}' >record.json
refuses "record that is no manifest" 'record.json: entry "m"|--format jsonl' record.json --text
printf '[{"x": 01, "vit_num": 1, "token_num": 2}]' >octal.json
refuses "no number in an ignored field" 'octal.json: record 1|`01`' octal.json
{
  printf '[{"x":'
  printf '[%.0s' {1..100000}
  printf ']%.0s' {1..100000}
  printf ',"vit_num":1,"token_num":2}]'
} >deep.json
refuses "deep nesting" 'deep.json: record 1|1000 others' deep.json
printf 't,n\n"a,5\n' >open.csv
refuses "open quote" 'open.csv: record 1 (line 2)|not closed' open.csv --text --token-field n

refuses "one field twice" '--token-field is vit_num' good.json --token-field vit_num
refuses "sizes of one field" '--image-size-fields|both w' good.json --image-size-fields w w
refuses "no tile" '--tile-size|is 0' good.json --image-size-fields w h --tile-size 0
refuses "tiles without sizes" '--max-tiles|--image-size-fields' good.json --max-tiles 6
refuses "second file bad" 'bad.csv: record 2' good.json bad.csv
echo '{"a": {"token_lengths": "good.json"}, "b": {"root": "x"}}' >meta.json
refuses "manifest entry" 'meta.json: entry "b"|token_lengths' meta.json
echo '{"a": {"token_lengths": "good.json", "repeat_time": 2}}' >repeated.json
refuses "repeated entry" 'repeated.json: entry "a"|"repeat_time" 2|must be 1' repeated.json

refuses "capacity of zero images" '--capacity|is 0' good.json --capacity 0 4096
refuses "capacity of zero tokens" '--capacity|is 0' good.json --capacity 9 0
refuses "negative capacity" '--capacity|is -9' good.json --capacity -9 4096
refuses "huge capacity" '--capacity|9223372036854775808' good.json --capacity 9 9223372036854775808
refuses "threshold above capacity" '--threshold|tokens is 5000|4096' \
  good.json --packer isf --capacity 9 4096 --threshold 9 5000
refuses "threshold without isf" '--threshold|isf' good.json --threshold 9 4000
refuses "target of no samples" '--target-batch|is 0' good.json --target-batch 0
refuses "target that is no number" '--target-batch|is nan' good.json --target-batch nan
refuses "spare groups alone" '--spare-groups|--improve' good.json --spare-groups 0.01
refuses "too many spare groups" '--spare-groups|is 2' good.json --improve --spare-groups 2
refuses "target and capacity" '--target-batch|--capacity' good.json --target-batch 4 --capacity 9 9
refuses "target and threshold" '--threshold|--capacity' \
  good.json --packer isf --target-batch 4 --threshold 9 4000
refuses "target of no packing" '--target-batch|--describe' good.json --target-batch 4 --describe
refuses "no ranks" '--ranks|is 0' good.json --ranks 0
refuses "negative tolerance" '--max-dist-ratio|is -0.1|[0, 1]' good.json --max-dist-ratio -0.1
refuses "tolerance above a step" '--max-dist-ratio|is 2|[0, 1]' good.json --max-dist-ratio 2
refuses "negative times" '--rank-ms|is -1' good.json --rank-ms -1 2
refuses "tolerance that is no number" '--max-dist-ratio|is nan' good.json --max-dist-ratio nan
refuses "negative epoch" '--epoch|is -1' good.json --epoch -1
refuses "unknown remainder" '--remainder|drop' good.json --remainder drop
refuses "no rounds" '--rounds|is 0' good.json --packer isf --rounds 0
refuses "unknown packer" '--packer|fullest' good.json --packer fullest
refuses "seed that numpy has not" 'numpy|4294967296' \
  good.json --packer isf --reference-rule --seed 4294967296

mkdir -p folder.svg
refuses "picture in place of a directory" '--svg: folder.svg|not a regular file' \
  good.json --svg folder.svg
refuses "picture in place of an input" '--svg: ./good.json|is an input' good.json --svg ./good.json
refuses "picture below a file" 'cannot write good.json/below' good.json --svg good.json/below/x.svg
refuses "picture in place of the plan" 'cannot write plan/items.npy|another output' \
  good.json --svg ./plan/items.npy
refuses "picture without a name" '--svg|empty' good.json --svg ''
refuses "picture of no packing" '--svg|--describe' good.json --svg x.svg --describe

big=9000000000000000000
echo "[{\"vit_num\": 1, \"token_num\": $big}, {\"vit_num\": 1, \"token_num\": $big}]" >sum.json
refuses "overflow of a sum" "sum.json: record 2|\"token_num\" is $big" sum.json --capacity 9 $big

# A capacity between two multiples of the alignment: samples that fit it would be set aside.
refuses "unreachable capacity" \
  '--capacity is 100 tokens|multiple of the 16 of --align|the nearest: 96 and 112' \
  text.json --capacity 100 --align 16
refuses "capacity below the alignment" '--capacity is 9 tokens|the nearest: 16' \
  good.json --capacity 9 9 --align 16
refuses "largest capacity" '5000000000000000000 of --align|the nearest: 5000000000000000000' \
  sum.json --capacity 9 9223372036854775807 --align 5000000000000000000

# A directory of the name of a file stays.
for name in plan.json items.npy; do
  mkdir -p "taken/$name"
  "$program" good.json --output taken >output 2>message && complain "directory $name: exit status 0"
  grep -qF "cannot write taken/$name: it is a directory" message || complain "directory $name: message"
  [ "$(ls -A taken)" = "$name" ] || complain "directory $name: $(ls -A taken)"
  rm -r taken
done

# The disk is full: as a limit on the size of files, which the program sees as a failed write.
refuses_write() (
  trap '' XFSZ
  ulimit -f 16
  refuses "full disk" 'cannot write plan/' --synthetic 20000
  exit "$failures"
)
refuses_write
failures=$?

# An older plan stays whole where a new one fails.
"$program" --synthetic 50 --quiet --output plan && cp -r plan kept
"$program" bad.csv --output plan 2>message && complain "older plan: exit status 0"
diff -r plan kept >message || complain "older plan: it changed"

[ "$failures" -eq 0 ] && echo "all refused"
exit "$((failures != 0))"
