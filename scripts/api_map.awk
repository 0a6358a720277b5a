# SPDX-License-Identifier: Apache-2.0
# Lists the public names of headers: awk -f api_map.awk HEADER... gives lines of
# group, name, kind, header, first sentence, separated by tabs. See api_map.sh.

function summary(text) {
  gsub(/ *\/\/\/<? ?/, " ", text)
  sub(/^ +/, "", text)
  gsub(/ +/, " ", text)
  if (match(text, /[^.]\.( |$)/)) text = substr(text, 1, RSTART)
  if (match(text, /: | Determinism| Complexity/)) text = substr(text, 1, RSTART - 1)
  sub(/ \([^()]*$/, "", text)
  sub(/; see `[a-z_]+`$/, "", text)
  gsub(/\|/, "\\|", text)
  return text
}

function report(name, kind) {
  print group "\t" qualifier name "\t" kind "\t" header "\t" summary(comment)
}

FNR == 1 {
  header = FILENAME
  sub(/^include\/omnibal\//, "", header)
  group = header
  if (!sub(/\/[^\/]*$/, "", group)) group = "vocabulary"
  sub(/^.*\//, "", group)
  is_public = 0
  comment = ""
}
/^namespace omnibal/ {
  is_public = $0 !~ /detail/
  qualifier = $0
  sub(/^namespace omnibal::inline v[0-9]+/, "", qualifier)
  sub(/^::/, "", qualifier)
  sub(/ *\{.*$/, "", qualifier)
  if (qualifier != "") qualifier = qualifier "::"
  comment = ""
  next
}
/^namespace detail/ { is_hidden = 1; has_bodies = 0; next }
is_hidden && /\{/ { has_bodies = 1 }
# Where nothing but declarations is in it, it ends without a comment.
/^}  \/\/ namespace detail/ || (is_hidden && !has_bodies && $0 == "}") {
  is_hidden = 0
  comment = ""
  next
}
/^}  \/\/ namespace/ { is_public = 0 }
!is_public || is_hidden { next }
/^\/\/\// { comment = comment $0; next }
# The comment of a function object is inside of it, at its first call operator.
/^struct [a-z0-9_]+_fn/ && /\{$/ { of_call = ""; in_call = 1 }
in_call && /^  \/\/\// { of_call = of_call $0; next }
in_call && of_call != "" { in_call = 0 }
/^(template|  requires| )/ && !/^template.*inline constexpr/ { next }
/inline constexpr [a-z0-9_]+_fn [a-z0-9_]+\{\};/ {
  name = $0
  sub(/\{\};.*$/, "", name)
  sub(/^.* /, "", name)
  if (comment == "") comment = of_call
  report(name, "function")
}
/^(class|struct|enum class) [a-z0-9_]+( |$)/ && !/_fn/ && (/\{/ || !/;$/) {
  name = $0
  sub(/^(enum class|class|struct) /, "", name)
  sub(/[^a-z0-9_].*$/, "", name)
  of = name
  is_options = sub(/_options$/, "", of)
  report(name, /^enum/ ? "enumeration" : is_options ? "the options of `" of "`" : "type")
}
/^concept [a-z0-9_]+/ { report($2, "concept") }
/^using [a-z0-9_]+ =/ { report($2, "type") }
/^inline constexpr .*[a-z0-9_]+( =|\{)/ && !/_fn / {
  name = $0
  sub(/( =|\{).*$/, "", name)
  sub(/^.* /, "", name)
  report(name, "constant")
}
/^(\[\[nodiscard\]\][^(]*|(inline )?void) [a-z0-9_]+\(/ && !/ decltype\(/ {
  name = $0
  sub(/\(.*$/, "", name)
  sub(/^.* /, "", name)
  report(name, "function")
}
{ comment = "" }
