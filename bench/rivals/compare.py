# SPDX-License-Identifier: Apache-2.0
"""Times other systems beside omnibal, from C++ and from Python, in one process and prints tables:
compare.py LIBRARY [--quick].

LIBRARY is bench/rivals/direct.cpp, which also makes the data: those of
`pack_dataset --synthetic N --seed 0`.
Packages that are not installed are left out and named; rivals.py has their algorithms. Times are
processor time; every call of a row comes once in each round, and a ratio is the median over rounds
of those to the first row. `faults` counts samples that are lost or come twice, and groups above the
capacity or of unequal counts.
"""

import ctypes
import importlib
import importlib.util
import pathlib
import statistics
import sys
import time
import types
from unittest import mock

import numpy as np

import omnibal
import rivals
from omnibal.compat import isf, trl, verl

QUICK = "--quick" in sys.argv[1:]
library = ctypes.CDLL(next(word for word in sys.argv[1:] if word != "--quick"))
missing = []


class TimedGroups(ctypes.Structure):
    """What a call from C++ took, and its groups."""

    _fields_ = [("seconds", ctypes.c_double), ("count", ctypes.c_uint32),
                ("offsets", ctypes.c_void_p), ("items", ctypes.c_void_p)]

    def __init__(self, name, most, *arguments):
        self.own = np.zeros(most + 1, dtype=np.uint32), np.zeros(most, dtype=np.uint32)
        super().__init__(offsets=self.own[0].ctypes.data, items=self.own[1].ctypes.data)
        given = [ctypes.c_void_p(one.ctypes.data) if isinstance(one, np.ndarray)
                 else ctypes.c_int64(one) for one in arguments]
        call = getattr(library, name)
        call.restype = None
        call(*given, ctypes.byref(self))

    def tolist(self):
        offsets, items = self.own
        places = offsets[: self.count + 1].tolist()
        items = items.tolist()
        return [items[a:b] for a, b in zip(places, places[1:])]


def synthetic(count, capacity=(1 << 30, 4096)):
    """The first samples of the synthetic data set that do not exceed the capacity: images and
    tokens of each."""
    demands = np.zeros((2 * count, 2), dtype=np.int64)
    library.rivals_synthetic(ctypes.c_size_t(len(demands)), ctypes.c_uint64(0),
                             ctypes.c_void_p(demands.ctypes.data))
    return np.ascontiguousarray(demands[(demands <= capacity).all(axis=1)][:count])


def lengths_of(count):
    return np.ascontiguousarray(synthetic(count)[:, 1])


def find(name):
    """A package, or nothing where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing.append(name)
        return None


def load_alone(package, path, stubs):
    """One file of an installed package without what the package imports for other purposes."""
    spec = importlib.util.find_spec(package)
    file = spec and pathlib.Path(spec.submodule_search_locations[0]) / path
    if not file or not file.exists():
        missing.append(package)
        return None
    modules = {name: mock.MagicMock(name=name, __spec__=None) for name in stubs}
    of = types.ModuleType(package + "_alone")
    with mock.patch.dict(sys.modules, modules):
        exec(compile(file.read_text(), str(file), "exec"), of.__dict__)
    return of


def trl_bfd():
    """TRL's own function, of a table with a column of bytes; gives the lengths of what it packs."""
    arrow = find("pyarrow")
    own = arrow and load_alone(
        "trl", "data_utils.py",
        ["datasets", "datasets.fingerprint", "transformers", "transformers.utils", "torch", "PIL"])
    if not own:
        return None

    def call(lengths, capacity):
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        column = arrow.ListArray.from_arrays(offsets, np.zeros(offsets[-1], dtype=np.int8))
        return own._pack_bfd(arrow.table({"ids": column}), capacity)["seq_lengths"].to_pylist()

    return call


def verl_partitions():
    own = load_alone(
        "verl", "utils/seqlen_balancing.py",
        ["torch", "verl", "verl.protocol", "verl.utils", "verl.utils.tensordict_utils",
         "verl.utils.device"])
    return own and own.get_seqlen_balanced_partitions


def rounds(calls, count=3):
    """The result of each call and its time over that of the first, and the time of the first."""
    times = [[] for _ in calls]
    results = [None] * len(calls)
    for _ in range(count):
        for k, call in enumerate(calls):
            begin = time.process_time()
            results[k] = call()
            own = time.process_time() - begin
            own = results[k].seconds if isinstance(results[k], TimedGroups) else own
            times[k].append(max(own, 1e-9))
    ratios = [statistics.median(a / b for a, b in zip(of, times[0])) for of in times]
    return results, ratios, statistics.median(times[0])


def table(title, header, rows):
    print("\n%s\n\n| %s |\n|%s" % (title, " | ".join(header), "---|" * len(header)))
    for row in rows:
        print("| %s |" % " | ".join(row))


def lists_of(found):
    """Groups as lists of indices."""
    if isinstance(found, omnibal.Steps):
        found = found.cells
    if isinstance(found, tuple):
        items, ends = found
        found = [of.tolist() for of in np.split(items, ends)]
    return found if isinstance(found, list) else found.tolist()


def index_faults(groups, count):
    seen = np.bincount([i for group in groups for i in group], minlength=count)
    return int((seen != 1).sum())


def sums(groups, amounts):
    return np.array([sum(amounts[i] for i in of) for of in groups])


def packing(count, own_bfd):
    lengths, capacity = lengths_of(count), 4096
    as_list = lengths.tolist()
    named = [
        ("`omnibal::best_fit_decreasing`, C++",
         lambda: TimedGroups("rivals_best_fit_decreasing", count, lengths, count, capacity)),
        ("`omnibal.best_fit_decreasing`, Python",
         lambda: omnibal.best_fit_decreasing(lengths, capacity).groups),
        ("`omnibal.compat.trl.bfd`, lists", lambda: trl.bfd(as_list, capacity)),
        ("best fit of TRL and LightBinPack, written anew in Python",
         lambda: rivals.best_fit_decreasing(as_list, capacity)),
    ]
    # It would move a gigabyte for more.
    if own_bfd and count <= 100_000:
        named.append(("TRL's `_pack_bfd`, which also moves tokens",
                      lambda: own_bfd(lengths, capacity)))
    lightbinpack = find("lightbinpack")
    if lightbinpack:
        named.append(("LightBinPack's `obfd`, C++ called from Python",
                      lambda: lightbinpack.obfd(as_list, capacity)))
    seqpacker = find("seqpacker")
    if seqpacker:
        named.append(("seqpacker's `obfd` on arrays, Rust called from Python",
                      lambda: seqpacker.Packer(capacity, "obfd").pack_flat(lengths)))
    binpacking, prtpy = find("binpacking"), find("prtpy")
    if binpacking and count <= 10_000:
        named.append(("`binpacking.to_constant_volume`", lambda: [
            list(of) for of in binpacking.to_constant_volume(
                dict(enumerate(as_list)), capacity)]))
    if prtpy and count <= 10_000:
        named.append(("`prtpy` first fit decreasing", lambda: prtpy.pack(
            algorithm=prtpy.packing.first_fit_decreasing, binsize=capacity,
            items=dict(enumerate(as_list)))))
    results, ratios, first = rounds([call for _, call in named])
    rows = []
    for (name, _), found, ratio in zip(named, results, ratios):
        groups = lists_of(found)
        if name.startswith("TRL"):
            loads = np.array([sum(of) for of in groups])
            faults = abs(sum(map(len, groups)) - count)
        else:
            loads = sums(groups, as_list)
            faults = index_faults(groups, count)
        faults += int((loads > capacity).sum())
        rows.append([name, str(len(groups)), "%.2f %%" % (100 * loads.mean() / capacity),
                     "%.1f" % ratio, str(faults)])
    table("%d lengths into groups of 4096 tokens, none can have fewer than %d; the first row takes "
          "%.2f ms" % (count, omnibal.packing_bound(lengths, capacity), first * 1e3),
          ["call", "groups", "load, mean over capacity", "time", "faults"], rows)


def balancing(count, parts, equal_size, own_partitions):
    costs = lengths_of(count) ** 2
    as_list = costs.tolist()
    policy = "equal" if equal_size else "any"
    named = [
        ("`omnibal::lpt`, C++",
         lambda: TimedGroups("rivals_lpt", max(count, parts), costs, count, parts, equal_size)),
        ("`omnibal.lpt`, Python", lambda: omnibal.lpt(costs, parts, count=policy)),
        ("`omnibal.compat.verl`, lists",
         lambda: verl.get_seqlen_balanced_partitions(as_list, parts, equal_size)),
    ]
    if count <= 10_000:
        named.append(("verl's differencing, written anew",
                      lambda: rivals.differencing(as_list, parts, equal_size)))
    if own_partitions and count <= 10_000:
        named.append(("verl's `get_seqlen_balanced_partitions`",
                      lambda: own_partitions(as_list, parts, equal_size)))
    binpacking = find("binpacking")
    if binpacking and not equal_size:
        named.append(("`binpacking.to_constant_bin_number`", lambda: [
            list(of) for of in binpacking.to_constant_bin_number(
                dict(enumerate(as_list)), parts)]))
    results, ratios, first = rounds([call for _, call in named])
    rows = []
    for (name, _), found, ratio in zip(named, results, ratios):
        groups = lists_of(found)
        largest = int(sums(groups, as_list).max())
        faults = index_faults(groups, count)
        faults += sum(len(of) * parts != count for of in groups) if equal_size else 0
        rows.append([name, str(len(groups)), "%.6f" % (largest * parts / costs.sum()),
                     "%.1f" % ratio, str(faults)])
    table("%d squares of lengths on %d ranks%s; the first row takes %.2f ms"
          % (count, parts, ", the same number on each" if equal_size else "", first * 1e3),
          ["call", "groups", "load, largest over mean", "time", "faults"], rows)


def micro_batching(count, ranks, capacity, own_partitions):
    """On one rank, or on several that all must have as many micro-batches."""
    lengths = lengths_of(count)
    as_list = lengths.tolist()
    work = verl.calculate_workload(lengths)
    both = np.ascontiguousarray(np.stack([work, lengths], axis=1))
    work_list = work.tolist()

    def of_ranks(partitions, batches_of):
        """verl's way: as many samples to each rank; what the largest number of micro-batches is,
        which it finds by a collective, is asked of all."""
        of_rank = partitions(work_list, ranks, True) if ranks > 1 else [list(range(count))]
        found = [batches_of(own, 1) for own in of_rank]
        most = max(map(len, found))
        found = [one if len(one) == most else batches_of(own, most)
                 for own, one in zip(of_rank, found)]
        return [[own[i] for i in batch] for own, of in zip(of_rank, found) for batch in of]

    def by_tokens(partitions):
        def batches_of(own, least):
            needed = -(-sum(as_list[i] for i in own) // capacity)
            return partitions([work_list[i] for i in own], max(needed, least), False)

        return lambda: of_ranks(partitions, batches_of)

    def by_compat():
        return of_ranks(verl.get_seqlen_balanced_partitions,
                        lambda own, least: verl.rearrange_micro_batches(
                            [as_list[i] for i in own], capacity, min_num_micro_batch=least))

    named = [
        ("`omnibal::micro_batches`, C++", lambda: TimedGroups(
            "rivals_micro_batches", count + ranks, both, count, ranks, capacity)),
        ("`omnibal.micro_batches`, Python",
         lambda: omnibal.micro_batches(work, ranks, lengths, capacity)),
        ("`omnibal.compat.verl.rearrange_micro_batches`, lists", by_compat),
        ("verl's way, its differencing written anew", by_tokens(rivals.differencing)),
    ]
    if own_partitions:
        named.append(("verl's way, its `get_seqlen_balanced_partitions`",
                      by_tokens(own_partitions)))
    results, ratios, first = rounds([call for _, call in named])
    rows = []
    for (name, _), found, ratio in zip(named, results, ratios):
        groups = lists_of(found)
        largest = int(sums(groups, work_list).max())
        above = int((sums(groups, as_list) > capacity).sum())
        faults = index_faults(groups, count) + (len(groups) % ranks != 0)
        rows.append([name, str(len(groups)), "%.4f" % (largest * len(groups) / work.sum()),
                     "%.1f" % ratio, str(faults), str(above)])
    table("%d samples on %s into micro-batches of at most %d tokens, none can have fewer than %d; "
          "the first row takes %.2f ms"
          % (count, "%d ranks" % ranks if ranks > 1 else "one rank", capacity,
             omnibal.packing_bound(lengths, capacity), first * 1e3),
          ["call", "groups", "load, largest over mean", "time", "faults", "above the capacity"],
          rows)


def sampling(count):
    limits, keep, turns = (18, 6016), 5888, 10
    demands = synthetic(count, limits)
    items = [[i, *of] for i, of in enumerate(demands.tolist())]
    threshold = np.array([limits[0], keep])
    named = [
        ("`omnibal::isf`, C++", lambda: TimedGroups(
            "rivals_isf", count, demands, count, np.array(limits), threshold, turns, 3)),
        ("`omnibal.isf`, Python", lambda: omnibal.isf(
            demands, limits, rounds=turns, threshold=tuple(threshold), seed=3,
            shuffle="numpy").groups),
        ("`omnibal.compat.isf`, lists of items", lambda: isf.fast_process_random_groups(
            items, 3, limits[0], limits[0], keep, limits[1], turns)),
        ("OmniBal's Python, written anew",
         lambda: rivals.iterative_sampling(items, 3, limits[0], limits, keep, turns)),
    ]
    results, ratios, first = rounds([call for _, call in named])
    own = lists_of(results[0])
    rows = []
    for (name, _), found, ratio in zip(named, results, ratios):
        groups = lists_of(found)
        if groups and isinstance(groups[0][0], list):
            groups = [[item[0] for item in of] for of in groups]
        loads = sums(groups, demands[:, 1].tolist())
        rows.append([name, str(len(groups)), "%.2f %%" % (100 * loads.mean() / limits[1]),
                     "%.1f" % ratio, "the same groups" if groups == own else "other groups"])
    table("%d samples, %d rounds of iterative sampling and filtering at 18 images and 6016 tokens; "
          "the first row takes %.2f ms" % (count, turns, first * 1e3),
          ["call", "groups", "load, mean tokens over capacity", "time", "result"], rows)


def recomputation(layers):
    highspy = find("highspy")
    if not highspy:
        return
    random = np.random.RandomState(4)
    times = np.array([100, 110, 133]) + random.randint(0, 4, (layers, 3))
    size = np.array([1000, 600, 60]) + random.randint(0, 20, (layers, 3))
    budget = int(size.sum(axis=0)[0] * 2 // 3)

    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("log_to_console", False)
    model.setOptionValue("mip_rel_gap", 0.0)
    x = [[model.addBinary(obj=float(times[i][c])) for c in range(3)] for i in range(layers)]
    for row in x:
        model.addConstr(sum(row) == 1)
    model.addConstr(
        sum(int(size[i][c]) * x[i][c] for i in range(layers) for c in range(3)) <= budget)

    def solve():
        model.clearSolver()
        model.run()
        return model.getInfo().objective_function_value

    named = [
        ("`omnibal::select_recompute`, C++", lambda: TimedGroups(
            "rivals_select_recompute", layers, times, size, layers, budget)),
        ("`omnibal.select_recompute`, Python",
         lambda: omnibal.select_recompute(times, size, budget)),
        ("HiGHS, to the optimum, the model ready", solve),
    ]
    results, ratios, first = rounds([call for _, call in named])
    chosen = results[0].tolist()[0]
    proven = "yes" if results[1].proven else "at least %d" % results[1].lower_bound
    rows = [
        [named[0][0], str(sum(int(times[i][c]) for i, c in enumerate(chosen))),
         "%.1f" % ratios[0], proven],
        [named[1][0], str(results[1].time), "%.1f" % ratios[1], proven],
        [named[2][0], "%.0f" % results[2], "%.1f" % ratios[2], "yes"],
    ]
    table("Three choices for each of %d layers; the first row takes %.2f ms"
          % (layers, first * 1e3), ["call", "time of the layers", "time", "proven"], rows)


def main():
    own_bfd, own_partitions = trl_bfd(), verl_partitions()
    for count in (1000,) if QUICK else (10_000, 100_000, 1_000_000):
        packing(count, own_bfd)
    for count, parts in ((64, 8),) if QUICK else ((512, 8), (4096, 64), (1_000_000, 512)):
        for equal_size in (False, True):
            if count % parts == 0 or not equal_size:
                balancing(count, parts, equal_size, own_partitions)
    for count, ranks in ((64, 1), (64, 2)) if QUICK else ((512, 1), (4096, 8)):
        micro_batching(count, ranks, 8192, own_partitions)
    for count in (500,) if QUICK else (10_000, 100_000, 1_000_000):
        sampling(count)
    recomputation(12 if QUICK else 48)
    absent = sorted(set(missing))
    print("\nNot installed: %s." % (", ".join(absent) if absent else "none"))


if __name__ == "__main__":
    main()
