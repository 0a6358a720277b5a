# SPDX-License-Identifier: Apache-2.0
"""Draws docs/pictures/prefixes.svg: answers to six prompts, packed so that each group has a prompt once.

usage: prefixes.py PACK_PREFIXES OUTPUT

PACK_PREFIXES is the built program `pack_prefixes`, whose groups the picture shows. The script needs
the standard library alone.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

CAPACITY = 4096
COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"]
WIDTH = 960
LEFT = 70
RIGHT = 20
ROW = 26


def make_sequences():
    """Returns prompts, and for each of their answers the prompt and the token ids."""
    source = random.Random(7)
    token = iter(range(1 << 30))
    prompts, answers = [], []
    for prompt in range(len(COLORS)):
        prompts.append([next(token) for _ in range(source.randrange(300, 900))])
        for _ in range(4):
            ids = [next(token) for _ in range(source.randrange(200, 700))]
            answers.append((prompt, prompts[-1] + ids))
    return prompts, answers


def pack(program, answers):
    """Returns the answers of each group."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokens.jsonl"
        path.write_text("".join(json.dumps(ids) + "\n" for _, ids in answers))
        command = [program, str(path), "--capacity", str(CAPACITY), "--print-groups"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in lines.splitlines() if line.startswith("[")]


def box(x, y, width, color, opacity):
    return (
        '<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" fill-opacity="%s" '
        'stroke="white" stroke-width="0.8"/>' % (x, y, width, ROW - 8, color, opacity)
    )


def text(x, y, words, anchor="start"):
    return '<text x="%d" y="%d" text-anchor="%s">%s</text>' % (x, y, anchor, words)


def draw(prompts, answers, groups):
    scale = (WIDTH - LEFT - RIGHT) / CAPACITY
    height = 62 + ROW * len(groups)
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" '
        'font-size="13" fill="#222222">' % (WIDTH, height),
        '<rect width="%d" height="%d" fill="white"/>' % (WIDTH, height),
        text(LEFT, 20, "dark: a prompt, once in each group; light: its answers; one color for each prompt"),
    ]
    for row, group in enumerate(groups):
        y = 34 + ROW * row
        lines.append(text(LEFT - 8, y + 14, "group %d" % row, "end"))
        x = float(LEFT)
        before = None
        for answer in group:
            prompt, ids = answers[answer]
            if prompt != before:
                width = len(prompts[prompt]) * scale
                lines.append(box(x, y, width, COLORS[prompt], "1"))
                x += width
            before = prompt
            width = (len(ids) - len(prompts[prompt])) * scale
            lines.append(box(x, y, width, COLORS[prompt], "0.45"))
            x += width
    bottom = 34 + ROW * len(groups)
    edge = WIDTH - RIGHT
    lines.append(
        '<line x1="%d" y1="28" x2="%d" y2="%d" stroke="#222222" stroke-dasharray="4 3"/>'
        % (edge, edge, bottom)
    )
    lines.append(text(edge, bottom + 16, "capacity: %s tokens" % format(CAPACITY, ","), "end"))
    return "\n".join(lines + ["</svg>", ""])


def main():
    program, output = sys.argv[1:]
    prompts, answers = make_sequences()
    groups = pack(program, answers)
    pathlib.Path(output).write_text(draw(prompts, answers, groups))


if __name__ == "__main__":
    main()
