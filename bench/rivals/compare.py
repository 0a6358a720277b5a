"""Times other systems beside omnibal in one process and prints tables: compare.py [--quick].

Packages that are not installed are left out and named; rivals.py has their algorithms. Times are
processor time; every call of a row comes once in each round, and a ratio is the median over rounds
of those to the first row. `faults` counts samples that are lost or come twice, and groups above the
capacity or of unequal counts.
"""

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
missing = []


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
            times[k].append(max(time.process_time() - begin, 1e-9))
    ratios = [statistics.median(a / b for a, b in zip(of, times[0])) for of in times]
    return results, ratios, statistics.median(times[0])


def table(title, header, rows):
    print("\n%s\n\n| %s |\n|%s" % (title, " | ".join(header), "---|" * len(header)))
    for row in rows:
        print("| %s |" % " | ".join(row))


def index_faults(groups, count):
    seen = np.bincount([i for group in groups for i in group], minlength=count)
    return int((seen != 1).sum())


def lengths_of(count):
    """Log-normal lengths below 4096."""
    drawn = np.random.RandomState(1).lognormal(6, 1, count).astype(np.int64) + 16
    return np.minimum(drawn, 4096)


def packing(count, own_bfd):
    lengths, capacity = lengths_of(count), 4096
    as_list = lengths.tolist()
    named = [
        ("`omnibal.best_fit_decreasing`",
         lambda: omnibal.best_fit_decreasing(lengths, capacity).groups),
        ("`omnibal.compat.trl.bfd`, lists", lambda: trl.bfd(as_list, capacity)),
        ("best fit of TRL and LightBinPack, written anew in Python",
         lambda: rivals.best_fit_decreasing(as_list, capacity)),
    ]
    if own_bfd:
        named.append(("TRL's `_pack_bfd`, which also moves tokens",
                      lambda: own_bfd(lengths, capacity)))
    lightbinpack = find("lightbinpack")
    if lightbinpack:
        named.append(("LightBinPack's `obfd`", lambda: lightbinpack.obfd(as_list, capacity)))
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
        groups = found.tolist() if isinstance(found, omnibal.Groups) else found
        if name.startswith("TRL"):
            faults = abs(sum(map(len, groups)) - count) + sum(sum(of) > capacity for of in groups)
        else:
            faults = index_faults(groups, count) + sum(
                sum(as_list[i] for i in of) > capacity for of in groups)
        rows.append([name, str(len(groups)), "%.1f" % ratio, str(faults)])
    table("%d lengths into groups of 4096 tokens, none can have fewer than %d; the first row takes "
          "%.2f ms" % (count, omnibal.packing_bound(lengths, capacity), first * 1e3),
          ["call", "groups", "time", "faults"], rows)


def balancing(count, parts, equal_size, own_partitions):
    costs = lengths_of(count) ** 2
    as_list = costs.tolist()
    policy = "equal" if equal_size else "any"
    named = [
        ("`omnibal.lpt`", lambda: omnibal.lpt(costs, parts, count=policy).tolist()),
        ("`omnibal.compat.verl`, lists",
         lambda: verl.get_seqlen_balanced_partitions(as_list, parts, equal_size)),
        ("verl's differencing, written anew",
         lambda: rivals.differencing(as_list, parts, equal_size)),
    ]
    if own_partitions:
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
        largest = max(sum(as_list[i] for i in of) for of in found)
        faults = index_faults(found, count)
        faults += sum(len(of) * parts != count for of in found) if equal_size else 0
        rows.append([name, "%.5f" % (largest * parts / costs.sum()), "%.1f" % ratio, str(faults)])
    table("%d squares of lengths on %d ranks%s; the first row takes %.2f ms"
          % (count, parts, ", as many on each" if equal_size else "", first * 1e3),
          ["call", "largest load over the mean", "time", "faults"], rows)


def sampling(count):
    random = np.random.RandomState(2)
    items = [[i, int(a), int(b)] for i, (a, b) in enumerate(
        zip(random.randint(1, 6, count), 256 * random.randint(1, 6, count)))]
    demands = np.array([item[1:] for item in items])
    limits, keep, turns = (18, 6016), 5888, 10
    named = [
        ("`omnibal.isf`", lambda: omnibal.isf(
            demands, limits, rounds=turns, threshold=(limits[0], keep), seed=3, shuffle="numpy")),
        ("`omnibal.compat.isf`, lists of items", lambda: isf.fast_process_random_groups(
            items, 3, limits[0], limits[0], keep, limits[1], turns)),
        ("OmniBal's Python, written anew",
         lambda: rivals.iterative_sampling(items, 3, limits[0], limits, keep, turns)),
    ]
    results, ratios, first = rounds([call for _, call in named])
    own = results[0].groups.tolist()
    rows = []
    for (name, _), found, ratio in zip(named, results, ratios):
        groups = own if found is results[0] else [[item[0] for item in of] for of in found]
        rows.append([name, str(len(groups)), "%.1f" % ratio, "yes" if groups == own else "no"])
    table("%d samples, %d rounds of iterative sampling and filtering at 18 images and 6016 tokens; "
          "the first row takes %.2f ms" % (count, turns, first * 1e3),
          ["call", "groups", "time", "the same groups"], rows)


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
        ("`omnibal.select_recompute`", lambda: omnibal.select_recompute(times, size, budget)),
        ("HiGHS, to the optimum, the model ready", solve),
    ]
    results, ratios, first = rounds([call for _, call in named])
    rows = [
        [named[0][0], str(results[0].time), "%.1f" % ratios[0],
         "yes" if results[0].proven else "at least %d" % results[0].lower_bound],
        [named[1][0], "%.0f" % results[1], "%.1f" % ratios[1], "yes"],
    ]
    table("Three choices for each of %d layers; the first row takes %.2f ms"
          % (layers, first * 1e3), ["call", "time of the layers", "time", "proven"], rows)


def main():
    own_bfd, own_partitions = trl_bfd(), verl_partitions()
    for count in (1000,) if QUICK else (10_000, 100_000):
        packing(count, own_bfd)
    for count, parts in ((64, 8),) if QUICK else ((512, 8), (4096, 64)):
        for equal_size in (False, True):
            balancing(count, parts, equal_size, own_partitions)
    for count in (500,) if QUICK else (10_000, 100_000):
        sampling(count)
    recomputation(12 if QUICK else 48)
    absent = sorted(set(missing))
    print("\nNot installed: %s." % (", ".join(absent) if absent else "none"))


if __name__ == "__main__":
    main()
