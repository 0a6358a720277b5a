# SPDX-License-Identifier: Apache-2.0
"""Packs the published instances of pagination beside their published results, and prints a table:
pagination.py FOLDER [--every N].

FOLDER has the files of github.com/pagination-problem/pagination, folder gauss (Grange, Kacem and
Martin, arXiv:1605.00558). A tile is a set of symbols. A page has a capacity, and tiles of one page
share their symbols. The fewest pages are wanted. Each instance has the numbers of pages that the
methods of the paper found, and the optimum where CPLEX found it.

`pack_prefixes` shares only what sequences have in common from their first token on. Each tile
becomes the sequence of its symbols, from the most to the least frequent one, so that tiles share a
part of their symbols. The pages are counted by the paper's rule. With --every N, only each N-th
file is read.
"""

import collections
import json
import pathlib
import sys
import time

import omnibal

METHODS = ("FirstFit", "BestFusion", "OverloadAndRemove", "OverloadAndRemovePresort",
           "GeneticStandard", "GeneticGroup")
EFFORTS = ("fast", "normal")


def sequences(tiles):
    """The symbols of each tile, from the most to the least frequent one."""
    frequency = collections.Counter(symbol for tile in tiles for symbol in tile)
    return [sorted(tile, key=lambda symbol: (-frequency[symbol], symbol)) for tile in tiles]


def pages_of(instance, effort):
    """The number of pages by pack_prefixes. Raises an error if a page is above the capacity."""
    tiles, capacity = instance["tiles"], instance["capacity"]
    packed = omnibal.pack_prefixes(sequences(tiles), capacity, effort=effort)
    groups = packed.groups.tolist()
    if sorted(tile for group in groups for tile in group) != list(range(len(tiles))):
        raise RuntimeError("tiles are missing or twice")
    for group in groups:
        if len(set().union(*(tiles[tile] for tile in group))) > capacity:
            raise RuntimeError("a page is above the capacity")
    return len(groups)


def main():
    arguments = sys.argv[1:]
    every = 1
    if "--every" in arguments:
        at = arguments.index("--every")
        every = int(arguments[at + 1])
        del arguments[at:at + 2]
    if len(arguments) != 1:
        sys.exit("usage: pagination.py FOLDER [--every N]")
    files = sorted(pathlib.Path(arguments[0]).glob("*.json"))[::every]
    if not files:
        sys.exit("pagination.py: no .json files in " + arguments[0])
    pages = collections.Counter()
    best_ones = collections.Counter()
    seconds = collections.Counter()
    count = best_pages = 0
    for file in files:
        for instance in json.loads(file.read_text()):
            found = {method: instance["solvers"][method] for method in METHODS}
            spent = {method: instance["times"][method] for method in METHODS}
            for effort in EFFORTS:
                begin = time.process_time()
                found["pack_prefixes, " + effort] = pages_of(instance, effort)
                spent["pack_prefixes, " + effort] = time.process_time() - begin
            best = min(found.values())
            best_pages += best
            count += 1
            for method, number in found.items():
                pages[method] += number
                best_ones[method] += number == best
                seconds[method] += spent[method]
    print("%d instances, %.3f pages by the best method of each\n" % (count, best_pages / count))
    print("| method | pages over the best | best ones | milliseconds |")
    print("|---|---|---|---|")
    for method in pages:
        print("| %s | %.4f | %.1f %% | %.2f |" % (method, pages[method] / best_pages,
                                               100 * best_ones[method] / count,
                                               1e3 * seconds[method] / count))


if __name__ == "__main__":
    main()
