#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wraps the paragraphs of comments that have a line of more than 100 columns.

usage: wrap_comments.py FILE...

clang-format leaves comments as they are. This script moves words to the next line and changes no
other paragraph. A comment behind code that is too long is printed, because it needs another text.
"""

import re
import sys

WIDTH = 100
COMMENT = re.compile(r"^(\s*)(///?)( ?)(.*)$")


def wrapped(prefix, text, hanging):
    lines, line = [], prefix
    for word in text.split():
        if len(line) + 1 + len(word) > WIDTH and line.strip(" /"):
            lines.append(line)
            line = prefix + hanging
        line += ("" if line.endswith(" ") else " ") + word
    return lines + [line]


def wrap(lines):
    result, place = [], 0
    while place < len(lines):
        match = COMMENT.match(lines[place])
        if not match or not match.group(4).strip():
            result.append(lines[place])
            place += 1
            continue
        prefix = match.group(1) + match.group(2) + " "
        end = place + 1
        is_command = match.group(4).startswith("\\")
        while end < len(lines) and not is_command:
            other = COMMENT.match(lines[end])
            is_same = other and other.group(1) + other.group(2) + " " == prefix
            if not is_same or not other.group(4).strip() or re.match(r"[-*|`\\] |\\", other.group(4)):
                break
            end += 1
        paragraph = lines[place:end]
        if max(map(len, paragraph)) > WIDTH:
            text = " ".join(COMMENT.match(line).group(4).strip() for line in paragraph)
            paragraph = wrapped(prefix, text, "  " if text.startswith("- ") else "")
        result += paragraph
        place = end
    return result


def main():
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            text = file.read()
        lines = wrap(text.split("\n"))
        for number, line in enumerate(lines, 1):
            if len(line) > WIDTH and "// " in line.partition('"')[0]:
                print("%s:%d: %s" % (name, number, line.strip()))
        if "\n".join(lines) != text:
            with open(name, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))


if __name__ == "__main__":
    main()
