#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same numbers give the same plan in every format and with every option, and a sample that is in
# no group is never a secret.
#
# usage: lengths.sh PROGRAM
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

# Images and tokens of four samples. In the array they are bytes.
printf 'vit_num,token_num\n4,100\n0,30\n9,200\n1,50\n' >a.csv
printf 'vit_num\ttoken_num\n4\t100\n0\t30\n9\t200\n1\t50\n' >a.tsv
printf 'vit_num,token_num\r4,100\r0,30\r9,200\r1,50\r' >return.csv
printf '{"vit_num":%d,"token_num":%d,"x":NaN,"y":"\\ud83d"}\n' 4 100 0 30 9 200 1 50 >a.JSONL
printf '{"x":{},"vit_num":%d,"token_num":%d}\n' 4 100 0 30 9 200 1 50 >part-00000
echo '[{"vit_num":4,"token_num":100},{"vit_num":0,"token_num":30},
  {"vit_num":9,"token_num":200},{"vit_num":1,"token_num":50}]' >a.json
echo '{"vit_num":[4,0,9,1],"token_num":[100,30,200,50]}' >columns.json
npy_header '(4, 2)' >a.npy
printf '\x04\x64\x00\x1e\x09\xc8\x01\x32' >>a.npy
echo '{"a": {"token_lengths": "a.npy"}}' >manifest.json

# same NAME ARGUMENT... : all files give the same groups
same() {
  local name=$1 file
  shift
  for file in a.csv a.tsv return.csv a.JSONL part-00000 a.json columns.json a.npy manifest.json; do
    rm -rf plan
    "$program" $file "$@" --no-picture --quiet --output plan >output 2>message ||
      complain "$name: $file"
    for array in offsets items loads oversized; do
      [ $file != a.csv ] || cp plan/$array.npy "first_$array"
      cmp -s plan/$array.npy "first_$array" || complain "$name: $file has other $array"
    done
  done
}
same "images and tokens" --capacity 9 300
same "text" --text --capacity 300
same "text without a capacity" --text
same "tokens of tiles" --tokens-per-tile 256 --capacity 16 4096
same "a capacity that is chosen" --tokens-per-tile 16
# 14 tiles and 380 tokens of text are 3,964 tokens: one group; with 257 of a tile one too many.
"$program" a.npy --tokens-per-tile 256 --capacity 14 3964 --quiet --no-picture --output tiles
"$program" a.npy --tokens-per-tile 257 --capacity 14 3964 --quiet --no-picture --output more
cmp -s tiles/loads.npy more/loads.npy && complain "a token more for each tile changes nothing"

# says TEXT ARGUMENT... : on the standard error, and nothing else
says() {
  local text=$1
  shift
  "$program" a.csv "$@" --quiet --no-picture --output plan >output 2>message || complain "$text: failed"
  [ ! -s output ] || complain "$text: there is output"
  [ "$(cat message)" = "${text:+pack_dataset: warning: $text}" ] || complain "'$text' is not what it says"
}
says "" --text --capacity 300
says "" --text --capacity 320 --align 32
says "1 of 4 samples exceeds the capacity of 100 tokens and is in no group; the largest has 200 tokens" \
  --text --capacity 100
says "2 of 4 samples exceed the capacity of 3 images or 200 tokens and are in no group; the largest has 9 images or 200 tokens" \
  --capacity 3 200

# A capacity that is chosen is a multiple of the alignment, so that no sample that fits is set aside.
says "" --text --align 48

[ "$failures" -eq 0 ] && echo "all alike"
exit "$((failures != 0))"
