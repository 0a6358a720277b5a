# SPDX-License-Identifier: Apache-2.0
"""Draws docs/pictures/offload.svg: the memory of a device over the forward and backward passes of
layers, with all activations kept, recomputed, offloaded, and with the plan for half of the memory.

usage: offload.py PLAN_OFFLOAD OUTPUT

PLAN_OFFLOAD is the built program examples/plan_offload.cpp. The layers have six modules with the
bytes and times of docs/evidence/offload.md. The script needs the standard library alone.
"""

import pathlib
import subprocess
import sys

LAYERS = 24
RATE = 25.0
FORWARD, BACKWARD = 12_000_000, 24_000_000
MODULES = [(58_720_256, 60_000), (469_762_048, 1_130_000), (134_217_728, 1_720_000),
           (58_720_256, 2_400_000), (301_989_888, 5_410_000), (150_994_944, 210_000)]
TOTAL = LAYERS * sum(size for size, _ in MODULES)

WIDTH, HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 60, 60
COLORS = {"all kept": "#000000", "all recomputed": "#e69f00", "all offloaded": "#56b4e9",
          "planned for half of the memory": "#0072b2"}


def run(program, choice=None, budget=None):
    """Returns the added milliseconds and the bytes during the passes, in the order of time."""
    lines = []
    for _ in range(LAYERS):
        lines.append(f"layer {FORWARD} {BACKWARD} 0 0")
        lines += [f"module {size} {time} optional" + (f" {choice}" if choice else "")
                  for size, time in MODULES]
    words = [program, str(RATE)] + ([str(budget)] if budget else [])
    done = subprocess.run(words, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    forward = [int(row[0]) for row in rows[1:]]
    backward = [int(row[1]) for row in rows[1:]]
    return float(rows[0][0]) / 1e6, forward + backward[::-1]


def steps_of(values):
    """The points of a curve with a level for each pass; a backward pass is twice as wide."""
    scale = (WIDTH - LEFT - RIGHT) / (3 * LAYERS)
    points, at = [], 0
    for i, value in enumerate(values):
        end = at + (1 if i < LAYERS else 2)
        y = HEIGHT - BOTTOM - value / TOTAL * (HEIGHT - TOP - BOTTOM)
        points += [f"{LEFT + at * scale:.1f},{y:.1f}", f"{LEFT + end * scale:.1f},{y:.1f}"]
        at = end
    return " ".join(points)


def text(x, y, words, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def main():
    program, output = sys.argv[1:]
    curves = {"all kept": run(program, "keep"), "all recomputed": run(program, "recompute"),
              "all offloaded": run(program, "offload"),
              "planned for half of the memory": run(program, budget=TOTAL // 2)}
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
             f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
             '<rect width="100%" height="100%" fill="#ffffff"/>']
    for share in (0, 25, 50, 75, 100):
        y = HEIGHT - BOTTOM - share / 100 * (HEIGHT - TOP - BOTTOM)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#d0d0d0"/>')
        parts.append(text(LEFT - 8, y + 4, f"{share} %", "end"))
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 3
    parts.append(f'<line x1="{middle:.1f}" y1="{TOP}" x2="{middle:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#808080"/>')
    parts.append(text((LEFT + middle) / 2, HEIGHT - BOTTOM + 20, f"forward passes of {LAYERS} layers", "middle"))
    parts.append(text((middle + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 20, "backward passes", "middle"))
    parts.append(text(LEFT, HEIGHT - 12, "Memory of activations on the device, in percent of all activations. "
                      f"Link: {RATE:.0f} GB/s."))
    for i, (name, (added, values)) in enumerate(curves.items()):
        x, y = LEFT + i % 2 * 400, 20 + i // 2 * 20
        parts.append(f'<rect x="{x}" y="{y - 6}" width="14" height="4" fill="{COLORS[name]}"/>')
        parts.append(text(x + 20, y, f"{name}: {added:.1f} ms of recomputation"))
        parts.append(f'<polyline points="{steps_of(values)}" fill="none" stroke="{COLORS[name]}" stroke-width="2"/>')
    pathlib.Path(output).write_text("\n".join(parts + ["</svg>"]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
