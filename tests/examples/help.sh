#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every program with options explains them alike: what it does, groups, what an option takes and what
# it is where it is left out, the exit status; and length files are read by the same options.
#
# usage: help.sh PROGRAM...
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

# Options of a program, each on one line with its description.
options_of() {
  awk '/^ +--?[a-z]/ { if (line != "") print line; line = $0; next }
    /^ *$|^[^ ]|^ +(Options|OPTIONS|Positionals|POSITIONALS):/ {
      if (line != "") print line
      line = ""
      next
    }
    { sub(/^ +/, " "); if (line != "") line = line $0 }
    END { if (line != "") print line }' "$1"
}

# It is its own default, or there is none: another output, another input than that of the program.
has_default='=|\[|default|instead of|Needs one|^ *--(output|svg|svg-step|log|measured|measure|replay|'
has_default+='checkpoint|image-size-fields) '

for name in "$@"; do
  short=$(basename "$name")
  "$name" --help >output 2>message || complain "$short: exit status $?"
  [ ! -s message ] || complain "$short: there are errors"
  grep -q "Usage: $short" output || complain "$short: no usage"
  grep -q '^Exit status: 0 where .* 1' <(tr '\n' ' ' <output | sed 's/Exit status/\nExit status/') ||
    complain "$short: no exit status"
  awk 'length($0) > 104 { exit 1 }' output || complain "$short: a line is too long"
  # These take the name of a section, and have no options.
  if [[ $short == study_* ]]; then
    grep -q '^  [a-z]' output || complain "$short: no sections"
    continue
  fi
  # These take a number or length files alone.
  case $short in
    step_gradients | gather_lengths_nccl)
      grep -q 'samples COUNT=' output || complain "$short: no default"
      continue
      ;;
    pack_on_gpu)
      for option in format token-field image-field text tokens-per-tile synthetic; do
        grep -qE -- "^ +--$option( |$)" output || complain "$short: no --$option"
      done
      continue
      ;;
  esac
  [ "$(grep -c 'Option Group: ' output)" -ge 2 ] || complain "$short: no groups"
  options_of output >options
  [ "$(wc -l <options)" -ge 8 ] || complain "$short: few options"
  grep -E '^ +--[a-z-]+ (TEXT|INT|UINT|FLOAT)' options >message && complain "$short: no unit"
  # Flags have no word in capitals behind their names.
  grep -E '^ +--[a-z-]+,? +(\[?[A-Z]+|GB|TFLOP)' options | grep -vE '^ +--[a-z-]+ +[A-Z][a-z]' |
    grep -vE -- "$has_default" >message && complain "$short: no default"
  case $short in cut_vlm) continue ;; esac
  for text in "compressed by gzip" "standard input"; do
    grep -qF -- "$text" output || complain "$short: length files without '$text'"
  done
  shared=(format token-field)
  [ "$short" = pack_long_context ] ||
    shared+=(image-field text image-size-fields tile-size max-tiles tokens-per-tile)
  for option in seed "${shared[@]}"; do
    grep -qE -- "^ +--$option( |$)" options || complain "$short: no --$option"
  done
done

[ "$failures" -eq 0 ] && echo "all right"
exit "$((failures != 0))"
