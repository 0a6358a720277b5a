# SPDX-License-Identifier: Apache-2.0
# Counts what makes comments hard to read, in files of C++: awk -f prose.awk FILE...
# Prints one line for each place: pattern, file, line of the comment, the sentence.

function finish(   count, i, sentences, words) {
  gsub(/`[^`]*`/, "code", text)
  gsub(/[.!?:;] +/, "&\n", text)
  count = split(text, sentences, "\n")
  for (i = 1; i <= count; ++i) {
    sub(/ +$/, "", sentences[i])
    words = split(sentences[i], unused, " ")
    if (words >= 5 && sentences[i] ~ /^(Of|What|Where|By|For who) / && sentences[i] !~ /\?$/) {
      report("start", sentences[i])
    }
    if (words > 35 && sentences[i] ~ /^[A-Z]/) report("long", sentences[i])
    if (tolower(" " sentences[i] " ") ~ /[^a-z]where[^a-z]/) report("where", sentences[i])
    if (tolower(" " sentences[i] " ") ~ /[^a-z](those|that) of[^a-z]/) report("those of", sentences[i])
  }
  text = ""
}

function report(pattern, sentence) {
  printf "%s\t%s:%d\t%s\n", pattern, file, first, substr(sentence, 1, 120)
}

FNR == 1 && NR != 1 { finish() }
{
  if (match($0, /^[ \t]*\/\/[\/!]?<? ?/)) {
    line = substr($0, RSTART + RLENGTH)
  } else if (match($0, /\/\/\/< ?/)) {
    finish()
    file = FILENAME; first = FNR
    text = substr($0, RSTART + RLENGTH) " "
    next
  } else {
    line = ""
  }
  if (line == "" || line ~ /^\\/) { finish(); next }
  if (text == "") { file = FILENAME; first = FNR }
  text = text line " "
}
END { finish() }
