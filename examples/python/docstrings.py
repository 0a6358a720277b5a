# SPDX-License-Identifier: Apache-2.0
"""Writes the comments of the library's headers as docstrings of C++: docstrings.py INCLUDE OUTPUT.

The contract of an algorithm `name` is the first block of `///` in `struct name_fn`, that of a class
the block before it.
"""

import pathlib
import re
import sys

ALGORITHMS = {
    "next_fit": "pack/next_fit",
    "isf": "pack/isf",
    "best_fit_decreasing": "pack/best_fit_decreasing",
    "best_packing": "pack/best_packing",
    "improve_packing": "pack/improve_packing",
    "packing_bound": "pack/packing_bound",
    "tune_capacity": "pack/tune_capacity",
    "group_loads": "group_loads",
    "lpt": "balance/lpt",
    "karmarkar_karp": "balance/karmarkar_karp",
    "deal": "balance/deal",
    "refine_parts": "balance/refine_parts",
    "balance_under_capacity": "balance/balance_under_capacity",
    "micro_batches": "balance/micro_batches",
    "schedule_steps": "balance/schedule_steps",
    "pad_ratio": "metrics",
    "dist_ratio": "metrics",
    "imbalance": "metrics",
    "utilization": "metrics",
    "partition_minimax": "partition/partition_minimax",
    "partition_layers": "partition/partition_layers",
    "partition_throughput": "partition/partition_throughput",
    "select_recompute": "recompute/select_recompute",
    "context_groups": "context/context_groups",
}
CLASSES = {
    "online_packer": "pack/online_packer",
    "epoch_sampler": "sample/epoch_sampler",
    "mixture": "sample/mixture",
}


def block_at(lines, first):
    """The text of the `///` lines from `first` on."""
    block = []
    for line in lines[first:]:
        match = re.match(r"\s*///( ?)(.*)", line)
        if not match:
            break
        block.append(match.group(2))
    return "\n".join(block)


def docstring(include, name, header):
    """The comment of an algorithm or a class."""
    lines = (include / "omnibal" / (header + ".hpp")).read_text().splitlines()
    if name in ALGORITHMS:
        start = lines.index("struct %s_fn {" % name) + 1
        text = block_at(lines, start)
    else:
        place = next(i for i, line in enumerate(lines)
                     if re.match(r"class %s\b[^;]*$" % name, line))
        while not lines[place - 1].startswith("///"):
            place -= 1
        first = place
        while lines[first - 1].startswith("///"):
            first -= 1
        text = block_at(lines, first)
    if not text:
        raise SystemExit("docstrings.py: %s has no comment" % name)
    return text


def main():
    include, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    parts = ["#pragma once\n\n/// The comments of the headers; written by docstrings.py.\n\n"
             "namespace docstrings {\n"]
    for name, header in {**ALGORITHMS, **CLASSES}.items():
        parts.append('\ninline constexpr char %s[] = R"doc(%s)doc";\n'
                     % (name, docstring(include, name, header)))
    parts.append("\n}  // namespace docstrings\n")
    text = "".join(parts)
    if not output.exists() or output.read_text() != text:
        output.write_text(text)


if __name__ == "__main__":
    main()
