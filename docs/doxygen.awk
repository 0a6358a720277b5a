# SPDX-License-Identifier: Apache-2.0
# Doxygen's input filter: awk -f doxygen.awk FILE. The files of the project are written for readers of
# the files; this makes of them what Doxygen 1.9.4 and later show well.
#
# Markdown: every heading gets the anchor that GitHub gives it, links between pages become references,
# and names in api.md lead to the reference.
#
# Headers: an algorithm is a function object `isf` of a type `isf_fn`. It is shown as a function of its
# name, in the group of its folder.

function base_of(path) {
  sub(/^.*\//, "", path)
  sub(/\.md$/, "", path)
  return path
}

function slug_of(heading,  slug) {
  slug = tolower(heading)
  gsub(/[^a-z0-9 _-]/, "", slug)
  gsub(/ /, "-", slug)
  return slug
}

function with_links(line,  result, text, target, at, page, anchor) {
  result = ""
  while (match(line, /\[[^][]*\]\([^) ]*\.md(#[^)]*)?\)|\[[^][]*\]\(#[^)]*\)/)) {
    at = index(substr(line, RSTART), "](")
    # Backticks would be shown.
    text = substr(line, RSTART, at - 1)
    gsub(/`/, "", text)
    target = substr(line, RSTART + at + 1, RLENGTH - at - 2)
    result = result substr(line, 1, RSTART - 1) text
    line = substr(line, RSTART + RLENGTH)
    at = index(target, "#")
    page = at ? substr(target, 1, at - 1) : target
    anchor = at ? substr(target, at + 1) : ""
    page = page == "" ? page_name : base_of(page)
    result = result "](@ref " (anchor == "" ? "page_" page : page "_" anchor) ")"
  }
  line = result line
  result = ""
  while (match(line, /`docs\/[a-z_\/]+\.md`/)) {
    target = substr(line, RSTART + 1, RLENGTH - 2)
    result = result substr(line, 1, RSTART - 1) "[" target "](@ref page_" base_of(target) ")"
    line = substr(line, RSTART + RLENGTH)
  }
  return result line
}

# An apostrophe ends code that begins with one backtick.
function with_apostrophes(line,  result, code) {
  result = ""
  while (match(line, /`[^`]*`/)) {
    code = substr(line, RSTART, RLENGTH)
    if (code ~ /'/) code = "`" code "`"
    result = result substr(line, 1, RSTART - 1) code
    line = substr(line, RSTART + RLENGTH)
  }
  return result line
}

function markdown(line,  slug, title) {
  if (line ~ /^ *```/) in_code = !in_code
  if (in_code || line ~ /^ *```/ || line ~ /^    /) return line
  if (line ~ /^#+ /) {
    if (line ~ /^# / && !has_title) {
      has_title = 1
      if (page_name == "README") line = "# What it is and what it gains"
      return line " {#page_" page_name "}"
    }
    title = line
    sub(/^#+ /, "", title)
    slug = slug_of(title)
    # The menu has the sections of the first page.
    if (page_name == "index") return "**" title "**\n"
    return line " {#" page_name "_" slug (seen[slug]++ ? "-" seen[slug] - 1 : "") "}"
  }
  if (match(line, /^<!-- group [a-z]+ -->$/)) return "Reference: \\ref " substr(line, 12, RLENGTH - 15)
  if (page_name == "api" && match(line, /^\| `[a-z0-9_:]+` /)) {
    title = substr(line, 4, RLENGTH - 5)
    return "| [" title "](@ref omnibal::" title ") " substr(line, RLENGTH + 1)
  }
  return with_apostrophes(with_links(line))
}

# A link whose text goes on in the next line becomes one line, as a reference must be.
function page(line) {
  if (held != "") {
    if (line == "") print markdown(held)
    else {
      sub(/^ */, "", line)
      line = held " " line
    }
    held = ""
  }
  if (!in_code && line ~ /\[[^][`]*$/ && line !~ /^    /) {
    held = line
    return
  }
  print markdown(line)
}

function flush_comment() {
  printf "%s", comment
  comment = ""
}

function close_namespace() {
  flush_comment()
  if (open_namespace == "") return
  if (group != "") print "/** @} */"
  print "}"
  open_namespace = ""
}

function header(line) {
  # What Doxygen 1.9.4 cannot parse: a specialization outside of the namespace std, which is then
  # excluded by its name.
  sub(/^struct std::/, "struct std_", line)
  # Doxygen 1.9.8 loses what follows a namespace that it excludes or that is opened again, so private
  # namespaces are left out here, and public ones end once.
  if (line ~ /^namespace .*detail \{$/) {
    flush_comment()
    in_detail = 1
    has_bodies = 0
    return
  }
  if (in_detail) {
    if (line ~ /\{/) has_bodies = 1
    if (line ~ /^}  \/\/ namespace .*detail$/ || (line == "}" && !has_bodies)) in_detail = 0
    return
  }
  if (line ~ /^namespace omnibal::inline v[0-9]+/) {
    sub(/::inline v[0-9]+/, "", line)
    is_closed = 0
    if (open_namespace == line) return
    close_namespace()
    print line
    open_namespace = line
    if (group == "") return
    print "/** \\addtogroup " group
    print " *  @{ */"
    return
  }
  if (line ~ /^}  \/\/ namespace /) {
    is_closed = 1
    return
  }
  if (is_closed && line !~ /^(#.*|\/\/.*)?$/) {
    close_namespace()
    is_closed = 0
  }
  if (line ~ /^struct [a-z0-9_]+_fn;$/) return
  if (line ~ /^struct [a-z0-9_]+_fn( :.*)? \{$/) {
    flush_comment()
    functor = line
    sub(/^struct /, "", functor)
    sub(/_fn.*$/, "", functor)
    hidden = 0
    return
  }
  if (functor != "") {
    if (line ~ /^};$/) {
      functor = ""
      return
    }
    if (line ~ /^ (private|public):$/) {
      hidden = line ~ /private/
      return
    }
    if (hidden || line ~ /^  using /) return
    gsub("operator\\(\\)", functor, line)
    sub(/\) const \{/, ") {", line)
    sub(/\) const;$/, ");", line)
    sub(/\) const$/, ")", line)
    sub(/\) const requires/, ") requires", line)
    print line
    return
  }
  if (line ~ /^ *\/\/\//) {
    comment = comment line "\n"
    return
  }
  if (line ~ /^(template <.*> )?inline constexpr [a-z0-9_]+_fn [a-z0-9_]+\{\};$/) {
    comment = ""
    return
  }
  flush_comment()
  print line
}

FNR == 1 {
  is_page = FILENAME ~ /\.md$/
  page_name = base_of(FILENAME)
  group = FILENAME
  sub(/^(.*\/)?include\/omnibal\//, "", group)
  if (!sub(/\/[^\/]*$/, "", group)) group = "vocabulary"
  sub(/^.*\//, "", group)
  if (FILENAME !~ /include\/omnibal\//) group = ""
}
is_page { page($0); next }
{ header($0) }
END { if (is_page) { if (held != "") print markdown(held) } else close_namespace() }
