#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The picture of pack_dataset appears together with the plan or not at all, and other programs read
# it as XML where there are any.
#
# usage: pictures.sh PROGRAM
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

check_xml() {
  if command -v xmllint >/dev/null; then
    xmllint --noout "$1" || complain "$1: xmllint refuses it"
  fi
  if python3 -c 'import xml.etree.ElementTree' 2>/dev/null; then
    python3 -c 'import sys, xml.etree.ElementTree as tree
assert tree.parse(sys.argv[1]).getroot().tag.endswith("}svg")' "$1" || complain "$1: Python refuses it"
  fi
}

draws() {
  local name=$1
  shift
  rm -rf plan pictures
  "$program" "$@" --output plan --svg pictures/new/balance.svg >output || complain "$name: it fails"
  [ "$(ls -A pictures/new)" = balance.svg ] || complain "$name: $(ls -A pictures/new) is left"
  [ -e plan/plan.json ] || complain "$name: there is no plan"
  [ "$(stat -c %s pictures/new/balance.svg)" -lt 200000 ] || complain "$name: the picture is large"
  check_xml pictures/new/balance.svg
}

draws "default" --synthetic 3000
grep -q '^Picture: pictures/new/balance.svg$' output || complain "the output names no picture"
cp pictures/new/balance.svg first.svg
draws "quiet" --synthetic 3000 --quiet
[ ! -s output ] || complain "quiet: there is output"
cmp first.svg pictures/new/balance.svg || complain "equal input gives another picture"
draws "many samples" --synthetic 1200000 --ranks 1 --quiet
printf 'vit_num,token_num\n1,2\n' >'<a> & "b".csv'
draws "name with markup" '<a> & "b".csv'
printf '300\n400\n500\n' >text.txt
draws "text" text.txt
grep -q 'images' pictures/new/balance.svg && complain "text: the picture speaks of images"

# Without a name in the plan's directory, and none where none is wanted.
rm -rf plan
"$program" --synthetic 50 --quiet --output plan || complain "it fails in the plan"
check_xml plan/balance.svg
rm -rf plan
"$program" --synthetic 50 --quiet --output plan --no-picture || complain "it fails without a picture"
[ ! -e plan/balance.svg ] || complain "there is a picture"

# Where the plan fails, an older picture stays.
echo old >kept.svg
printf 'vit_num,token_num\n1,2\n3,-4\n' >bad.csv
"$program" bad.csv --output plan --svg kept.svg 2>message && complain "bad input: exit status 0"
[ "$(cat kept.svg)" = old ] || complain "bad input: the picture changed"
mkdir -p in_the_way/plan.json/full
"$program" --synthetic 50 --output in_the_way --svg new.svg 2>message >output &&
  complain "plan that cannot be written: exit status 0"
[ ! -e new.svg ] || complain "plan that cannot be written: a picture is left"

[ "$failures" -eq 0 ] && echo "all drawn"
exit "$((failures != 0))"
