# SPDX-License-Identifier: Apache-2.0
"""Draws docs/pictures/hero.svg: the same sequences on four ranks, formed into micro-batches in three ways.

usage: hero.py PACK_DATASET OUTPUT

PACK_DATASET is the built program `pack_dataset`, whose plan is the third part of the picture. The
time of a micro-batch is its number of token slots, padding included. All three ways have the same
limit of token slots for a micro-batch. The script needs the standard library alone.
"""

import ast
import math
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile

CAPACITY = 4096
RANKS = 4
SEQUENCES = 120

WIDTH = 960
LEFT = 70
RIGHT = 175
ROW = 20
BLUE, ORANGE = "#0072b2", "#e69f00"


def lengths():
    """Returns the quantiles of a log-normal distribution in random order: a heavy tail."""
    normal = statistics.NormalDist()
    quantiles = [normal.inv_cdf((i + 0.5) / SEQUENCES) for i in range(SEQUENCES)]
    tokens = [min(CAPACITY, round(500 * math.exp(0.95 * q))) for q in quantiles]
    random.Random(2026).shuffle(tokens)
    return tokens


def read_npy(path):
    """Returns the numbers of a NumPy file of 32-bit or 64-bit integers."""
    data = path.read_bytes()
    header_size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10 : 10 + header_size].decode())
    values = data[10 + header_size :]
    code = {"<u4": "I", "<i8": "q"}[header["descr"]]
    return list(struct.unpack(f"<{len(values) // struct.calcsize(code)}{code}", values))


def fill_in_order(tokens, slots):
    """Returns micro-batches of as many samples in the given order as `slots` allows."""
    batches = [[]]
    for sample in tokens:
        if batches[-1] and slots(batches[-1] + [sample]) > CAPACITY:
            batches.append([])
        batches[-1].append(sample)
    return [batches[i : i + RANKS] for i in range(0, len(batches), RANKS)]


def plan(program, tokens):
    """Returns the micro-batches of each rank in each step as `pack_dataset` plans them."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "lengths.txt").write_text("".join(f"{t}\n" for t in tokens))
        subprocess.run(
            [program, "lengths.txt", "--format", "numbers", "--capacity", str(CAPACITY)]
            + ["--ranks", str(RANKS), "--output", "plan", "--quiet", "--no-picture"],
            cwd=folder,
            check=True,
        )
        offsets, items, order = (
            read_npy(folder / "plan" / f"{part}.npy") for part in ("offsets", "items", "order")
        )
    groups = [[tokens[i] for i in items[a:b]] for a, b in zip(offsets, offsets[1:])]
    dealt = [groups[g] for g in order]
    return [dealt[i : i + RANKS] for i in range(0, len(dealt), RANKS)]


def padded(batch):
    return len(batch) * max(batch)


def main():
    tokens = lengths()
    ways = [
        ("Padded: sequences in arrival order", fill_in_order(tokens, padded), padded),
        ("Concatenated: sequences in arrival order", fill_in_order(tokens, sum), sum),
        ("omnibal: best_packing, then schedule_steps", plan(sys.argv[1], tokens), sum),
    ]
    totals = [sum(max(map(slots, step)) for step in steps) for _, steps, slots in ways]
    scale = (WIDTH - LEFT - RIGHT) / totals[0]
    parts = []

    def text(x, y, words, size=13, anchor="start", color="#222", weight="normal"):
        parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{color}" font-weight="{weight}">{words}</text>'
        )

    def bar(x, y, width, fill, height=ROW - 3):
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.1):.1f}" height="{height}" '
            f'fill="{fill}" stroke="#fff" stroke-width=".8"/>'
        )

    text(
        20, 28, f"{SEQUENCES} sequences of {min(tokens)} to {max(tokens):,} tokens on {RANKS} "
        f"data-parallel ranks, at most {CAPACITY:,} tokens per micro-batch", 15, weight="bold",
    )  # fmt: skip
    for i, (fill, words) in enumerate(
        ((BLUE, "sequence"), ("url(#padding)", "padding"), (ORANGE, "idle: the rank waits"))
    ):
        bar(20 + i * 120, 42, 14, fill, 14)
        text(40 + i * 120, 54, words)
    y = 84
    for (title, steps, slots), total in zip(ways, totals):
        text(20, y, title, 14, weight="bold")
        start = LEFT
        for step in steps:
            end = start + max(map(slots, step)) * scale
            for rank in range(RANKS):
                x, row = start, y + 10 + rank * ROW
                batch = step[rank] if rank < len(step) else []
                for sample in batch:
                    bar(x, row, sample * scale, BLUE)
                    x += sample * scale
                    room = (max(batch) - sample) * scale if slots is padded else 0
                    if room:
                        bar(x, row, room, "url(#padding)")
                    x += room
                if end - x > 0.3:
                    bar(x, row, end - x, ORANGE)
            start = end
            parts.append(
                f'<line x1="{end:.1f}" x2="{end:.1f}" y1="{y + 7}" y2="{y + 12 + RANKS * ROW}" '
                'stroke="#222" stroke-dasharray="3 3"/>'
            )
        for rank in range(RANKS):
            text(LEFT - 8, y + 23 + rank * ROW, f"rank {rank}", 11, "end", "#555")
        useful = sum(tokens) / (total * RANKS)
        text(start + 12, y + 38, f"{len(steps)} steps, {useful:.0%} useful", weight="bold")
        if total != totals[0]:
            text(start + 12, y + 58, f"{totals[0] / total:.1f} times as fast")
        y += 46 + RANKS * ROW
    height = y - 24
    pathlib.Path(sys.argv[2]).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="sans-serif"><defs><pattern id="padding" width="6" '
        'height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" '
        'height="6" fill="#e8eef3"/><line x1="0" y1="0" x2="0" y2="6" stroke="#9fb8c9" '
        f'stroke-width="2"/></pattern></defs><rect width="{WIDTH}" height="{height}" fill="#fff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    main()
