#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tables and pictures in docs/ have the figures that the programs print.
#
# usage: documented_figures.sh PROGRAM DOCS
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"
docs=$2

# expects PAGE COUNT : the input has so many lines, and each is in this page of docs/
expects() {
  local page=$docs/$1 row count=0
  while IFS= read -r row; do
    grep -qF -- "$row" "$page" || complain "$1 lacks: $row"
    count=$((count + 1))
  done
  [ "$count" -eq "$2" ] || complain "$1: $count lines instead of $2"
}

# Cells are two spaces apart or more.
cells='BEGIN { FS = "  +" } { sub(/^ +/, ""); sub(/ +$/, "") }'

cut_vlm() {
  "$program" >output 2>message || complain "it fails"
  awk "$cells"'
    /^6\+[0-9]*B: layers / { sub(/:.*/, ""); model = $0 ", " }
    NF == 8 && $1 ~ /^(4|8|12|13|16)$/ {
      line = "| " ($1 == 4 ? model : "") $1
      for (i = 3; i <= NF; ++i) line = line " | " ($i ~ /^!/ ? substr($i, 3) " !" : $i)
      print line " |"
    }' output >rows
  expects evidence/cutting.md 10 <rows
  awk "$cells"'
    /^6\+[0-9]*B: layers / { sub(/:.*/, ""); model = $0 ", " }
    NF == 7 && $1 ~ /^(4|8|16) stages$/ {
      sub(/ stages/, "", $1)
      printf "| %s", ($1 == 4 ? model : "") $1
      for (i = 2; i <= NF; ++i) printf " | %s", $i
      print " |"
    }' output >rows
  expects evidence/cutting.md 6 <rows
}

pack_long_context() {
  step_columns 7 "8 64 256 1024"
  step_columns 5 "64 256" --degrees 1,2,4,8
  draws levels.svg --svg
  draws step.svg --synthetic 20480 --step-samples 1024 --svg-step
}

# draws NAME ARGUMENT... : the picture in docs/ has the words and figures of the one that the program
# draws into the file that is its last argument
draws() {
  "$program" "${@:2}" drawn.svg >output 2>message || complain "it fails"
  diff <(words drawn.svg) <(words "$docs/pictures/$1") >message || complain "$1 is another picture"
}

# words FILE : the text of a picture, line by line
words() { sed -n 's/^<text[^>]*>\(.*\)<\/text>$/\1/p' "$1"; }

# step_columns COUNT RANKS ARGUMENT... : a table of so many rows, ways of running steps, with a column
# for each number of ranks and each mixture: time over the bound, sharing, waiting
step_columns() {
  local count=$1 all_ranks=$2 ranks mix
  shift 2
  : >cells
  for ranks in $all_ranks; do
    for mix in two-sources broad; do
      "$program" --synthetic 81920 --step-samples 4096 --ranks "$ranks" --mix "$mix" "$@" \
        >output 2>message || complain "it fails"
      awk "$cells"'
        function number(text) { return substr(text, 1, length(text) - 2) }
        NF == 8 && / %  / {
          sub(/^one degree, .*/, "one degree", $1)
          print $1 "|" number($3) " (" number($4) ", " number($5) ")"
        }' output >>cells
    done
  done
  awk -F "|" -v given="$#" '
    given && $1 ~ /^groups/ && $1 !~ /given/ { next }
    !($1 in row) { order[++ways] = $1 }
    { row[$1] = row[$1] " | " $2 }
    END { for (i = 1; i <= ways; ++i) print "| " order[i] row[order[i]] " |" }' cells >rows
  expects evidence/benchmarks.md "$count" <rows
}

post_balance() {
  "$program" --simulate 2560 --steps 2 >output 2>message || complain "it fails"
  # Word for word but for the time that planning takes.
  sed -n '/^phase/,/^forward pass/p' output >rows
  expects evidence/exchange_costs.md 10 <rows
}

sensitivity() {
  "$program" --sensitivity >output 2>message || complain "it fails"
  awk "$cells"'
    function times(text) { return substr(text, 1, length(text) - 1) }
    NF == 7 && $7 ~ /x$/ {
      text = $2 ", " $3 " | " times($4) ", " times($5) ", " times($6) " | " times($7) " |"
      if ($1 in first) print "| " $1 " | " first[$1] " " text
      first[$1] = text
    }' output >rows
  sed -i 's/ | *|/ |/' rows
  expects evidence/planning.md 21 <rows
}

step_gradients() {
  "$program" >output 2>message || complain "it fails"
  awk "$cells"'
    function by(i) { return $i ", " $(i + 1) " | " $(i + 2) " ± " $(i + 3) }
    NF == 16 && $1 != "groups and steps" {
      print "| " $1 " | " $2 " | " $3 " | " by(5) " | " by(9) " | " by(13) " |"
    }' output >rows
  expects evidence/even_steps.md 10 <rows
}

case $(basename "$program") in
  cut_vlm) cut_vlm ;;
  pack_long_context) pack_long_context ;;
  post_balance) post_balance ;;
  step_gradients) step_gradients ;;
  plan_vlm) sensitivity ;;
  *) complain "no tables of this program" ;;
esac

[ "$failures" -eq 0 ] && echo "the tables have the figures of the program"
exit "$((failures != 0))"
