#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pack_prefixes prints trie, groups and bounds of JSON lines in all forms, and says what it cannot
# read.
#
# usage: pack_prefixes.sh PROGRAM
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

cat >lines.jsonl <<'JSON'
[7, 7, 1]
{"input_ids": [7, 7, 2, 3]}

{"tokens": [9], "reward": 0.5}
{"prompt_ids": [7, 7], "completion_ids": [4]}
JSON
"$program" lines.jsonl --capacity 6 --print-groups >output 2>message || complain "it fails"
cat >expected <<'TEXT'
Sequences: 4 with 11 tokens
Trie: 5 nodes with 7 tokens; all tokens are 1.571 times as many
Computed: 7 tokens, 1.000 times the trie; at least 7
Groups: 2; at least 2
TEXT
head -4 output | cmp - expected || complain "other numbers"
[ "$(tail -n +5 output | wc -l)" -eq 2 ] || complain "other groups"
"$program" - --capacity 3 --multiple-of 2 <lines.jsonl >output 2>message || complain "no input"
grep -q '^Oversized: 1$' output || complain "no oversized sequence"
grep -q '^Groups: 4;' output || grep -q '^Groups: 2;' output || complain "no multiple of two"

# refuse LINE TEXT: the line is an error with the text, after the name of file and line.
refuse() {
  echo "$1" >bad.jsonl
  ! "$program" bad.jsonl >output 2>message || complain "accepts $1"
  grep -qF "$2" message || complain "$1: $(cat message)"
}
refuse '[1, 2.5]' 'the line has 2.5, must have integers only'
refuse '{"tokens": 4}' 'field "tokens" is no list of token ids'
refuse '{"text": "a"}' 'has none of the fields "input_ids", "tokens" and "prompt_ids"'
refuse '[1, 2' 'is no JSON, or is cut off'

[ "$failures" -eq 0 ] && echo "all right"
exit "$((failures != 0))"
