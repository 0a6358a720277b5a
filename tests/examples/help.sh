#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every program with options explains them in the same form: what it does, groups, the value and the
# default of each option, an example that runs, the exit status; in lines of at most 80 characters.
# Length files are read by the same options.
#
# usage: help.sh PROGRAM...
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

# Options of a program, each on one line with its description.
options_of() {
  awk '/^  --?[a-z]/ { if (line != "") print line; line = $0; next }
    /^ *$|^[^ ]/ {
      if (line != "") print line
      line = ""
      next
    }
    { sub(/^ +/, " "); if (line != "") line = line $0 }
    END { if (line != "") print line }' "$1"
}

# The examples read these.
for length in 300 41 2050 77 512; do echo "{\"length\": $length}"; done >lengths.jsonl
for answer in 4 5 6; do echo "[1, 2, 3, $answer]"; done >tokens.jsonl

for name in "$@"; do
  short=$(basename "$name")
  "$name" --help >output 2>message || complain "$short: exit status $?"
  [ ! -s message ] || complain "$short: there are errors"
  grep -q "^Usage: $short" output || complain "$short: no usage"
  grep -q '^Exit status: 0 if .* 1' <(tr '\n' ' ' <output | sed 's/Exit status/\nExit status/') ||
    complain "$short: no exit status"
  awk 'length($0) > 80 { exit 1 }' output || complain "$short: a line is too long"
  # NCCL needs a launcher, and a trainer and a study cost seconds.
  example=$(sed -n '/^Example:$/{n;s/^  //p}' output)
  [[ " $example" == *" $short"* ]] || complain "$short: no example"
  case $short in
    gather_lengths_nccl | train_vlm | study_*) ;;
    *)
      status=0
      (PATH="$(dirname "$name"):$PATH" && eval "$example") >message 2>&1 || status=$?
      [[ $status == 0 || ($short == pack_on_gpu && $status == 77) ]] ||
        complain "$short: the example has exit status $status"
      ;;
  esac
  # These take the name of a section, and have no options.
  if [[ $short == study_* || $short == compare_schedules ]]; then
    grep -q '^  [a-z]' output || complain "$short: no sections"
    continue
  fi
  # These take a number, token ids or length files alone.
  case $short in
    step_gradients | gather_lengths_nccl)
      grep -A2 '^  samples COUNT ' output | grep -q 'Default: [1-9]' || complain "$short: no default"
      continue
      ;;
    pack_prefixes)
      for option in capacity multiple-of group-price seed print-groups; do
        grep -qE -- "^ +--$option( |$)" output || complain "$short: no --$option"
      done
      continue
      ;;
    pack_on_gpu)
      for option in format token-field image-field text tokens-per-tile synthetic; do
        grep -qE -- "^ +--$option( |$)" output || complain "$short: no --$option"
      done
      continue
      ;;
  esac
  [ "$(grep -c '^[A-Z].*:$' output)" -ge 4 ] || complain "$short: no groups"
  options_of output >options
  [ "$(wc -l <options)" -ge 8 ] || complain "$short: few options"
  grep -E '^  --[a-z-]+ (TEXT|INT|UINT|FLOAT)' options >message && complain "$short: no unit"
  # A flag has two spaces and its text behind its name, other options have a value.
  grep -E '^  --[a-z-]+ [^ ]' options | grep -v ' Default: ' >message && complain "$short: no default"
  case $short in cut_vlm) continue ;; esac
  for text in "compressed by gzip" "standard input"; do
    tr -s '\n ' ' ' <output | grep -qF -- "$text" || complain "$short: length files without '$text'"
  done
  shared=(format token-field)
  [ "$short" = pack_long_context ] ||
    shared+=(image-field text image-size-fields tile-size max-tiles tokens-per-tile)
  # The search has no random choices.
  [ "$short" = configure ] || shared+=(seed)
  for option in "${shared[@]}"; do
    grep -qE -- "^ +--$option( |$)" options || complain "$short: no --$option"
  done
done

[ "$failures" -eq 0 ] && echo "all right"
exit "$((failures != 0))"
