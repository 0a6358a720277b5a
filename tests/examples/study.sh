#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/study.sh writes what commands print into a page, and tells where a page differs.
#
# usage: study.sh SCRIPT
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

mkdir -p programs docs/pictures docs/evidence
cat >programs/say <<'END'
#!/bin/sh
case $1 in
  fail) exit 1 ;;
  silent) ;;
  eat) cat; echo eaten ;;
  *) printf '| %s |\n|---|\n' "$@" ;;
esac
END
chmod +x programs/say
printf 'row 1: 2\nother\nrow 2: 3\n' >docs/evidence/other.md

page() { printf '%s\n' "$@" >docs/evidence/page.md; }
study() { "$program" --page docs/evidence/page.md --programs programs "$@" >output 2>message; }

section=('<!-- table: say 1.5 a -->' old '<!-- end -->')
slow=('<!-- slow table: say b -->' old '<!-- end -->')
measured=('<!-- measured table: say c -->' old '<!-- end -->')
page '# Title' "${section[@]}" words "${slow[@]}" "${measured[@]}" \
  '<!-- picture p.svg: say p -->' '<!-- rows of other.md: ^row [0-9] -->' '<!-- end -->' last

study --check && complain "an old page is not told"
grep -qx -- '-old' output || complain "the difference is not shown"
cmp -s <(grep -c old docs/evidence/page.md) <(echo 3) || complain "the check changes the page"
study --quick || complain "it fails"
cmp -s <(grep -c old docs/evidence/page.md) <(echo 2) || complain "quick: not the slow ones alone are old"
study || complain "it fails"
cmp -s <(grep -c old docs/evidence/page.md) <(echo 1) || complain "all but measured figures are new"
study --measured || complain "it fails"
study --check || complain "a new page is not what it should be"
study --check --measured || complain "measured: the same"
cat >expected.md <<'END'
# Title
<!-- table: say 1.5 a -->

| 1.5 |
|---|
| a |
|---|

<!-- end -->
words
<!-- slow table: say b -->

| b |
|---|

<!-- end -->
<!-- measured table: say c -->

| c |
|---|

<!-- end -->
<!-- picture p.svg: say p -->
<!-- rows of other.md: ^row [0-9] -->

```text
row 1: 2
row 2: 3
```

<!-- end -->
last
END
diff docs/evidence/page.md expected.md >output || complain "the page is another one"
echo drift >docs/pictures/p.svg
study --check && complain "another picture is not told"
study
sed -i 's/row 2: 3/row 2: 4/' docs/evidence/other.md
study --check && complain "another row is not told"

# What the programs cannot print is an error, and the page stays.
refuses() {
  local words=$1
  shift
  page "$@"
  cp docs/evidence/page.md before.md
  study && complain "no error: $words"
  grep -q -- "$words" message || complain "the message lacks: $words"
  cmp -s docs/evidence/page.md before.md || complain "the page changed: $words"
}
refuses 'say fail fails' '<!-- table: say fail -->' '<!-- end -->'
refuses 'say silent prints nothing' '<!-- table: say silent -->' '<!-- end -->'
refuses 'there is no program' '<!-- table: sing -->' '<!-- end -->'
refuses 'does not end' '<!-- table: say a -->' old
refuses 'does not end before' '<!-- table: say a -->' "${section[@]}"
refuses 'what does this ask for' '<!-- tables: say a -->' '<!-- end -->'
refuses 'has no lines' '<!-- rows of other.md: nothing -->' '<!-- end -->'
page '<!-- table: say eat -->' '<!-- end -->' last
study && [ "$(tail -n 1 docs/evidence/page.md)" = last ] || complain "a program reads the page"
"$program" --unknown 2>message && complain "an unknown argument is taken"

[ "$failures" -eq 0 ] && echo "pages are written and checked"
exit "$((failures != 0))"
