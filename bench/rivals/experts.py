# SPDX-License-Identifier: Apache-2.0
"""Plans experts by other systems and by omnibal for the same loads, and prints two tables for each
family of loads and number of ranks: experts.py [--quick] [--recorded FILE].

Each row has the heaviest rank over the mean, on average over the layers and in the worst layer, the
copies that must be sent, and processor time for all layers. The first table is for placements that
last, from the same old placement; the copies to send are the share of the copies whose rank did not
have their expert. The second table is for the tokens of one batch; experts start in equal numbers on
ranks, and the copies to send are the foreign copies of a layer.

SwiftBalancer and FlashLB are the policies of the package vllm-ascend, run from its files without
its device; EPLB and LLEP are written anew in rivals.py. Policies that are not installed are left out
and named.

FILE has recorded counts: an array of NumPy (.npy), or JSON with `logical_count` as SGLang records
it, of shape (steps, layers, experts). The first half of the steps is the load before, the second
half the load after.
"""

import gc
import importlib
import importlib.util
import json
import pathlib
import sys
import time
import types
from unittest import mock

import numpy as np

import omnibal
import rivals
from omnibal.compat import llep

QUICK = "--quick" in sys.argv[1:]
LAYERS = 2 if QUICK else 58
EXPERTS = 256
SIZES = ((32, 9),) if QUICK else ((32, 9), (64, 5))
FACTORS = (1.1, 1.02)
missing = []


def drifting(family):
    """The loads of two steps, whose logarithms have a correlation of 0.9, except for bursts."""
    random = np.random.RandomState(1)
    first, noise = random.normal(size=(2, LAYERS, EXPERTS))
    second = 0.9 * first + np.sqrt(0.19) * noise
    if family == "Zipf":
        # The place of an expert in its layer is the rank of its number.
        place = [np.argsort(np.argsort(-of, axis=1), axis=1) for of in (first, second)]
        return [np.floor(1e4 / (1 + of)) for of in place]
    before, after = np.floor(1000 * np.exp(0.7 * np.stack([first, second])))
    if family == "bursts":
        after = np.where(random.randint(0, 50, before.shape) == 0, 8 * before, before)
    return [before, after]


def recorded(file):
    """The loads of both halves of recorded steps."""
    path = pathlib.Path(file)
    if path.suffix == ".npy":
        counts = np.load(path)
    else:
        counts = np.array(json.loads(path.read_text())["logical_count"])
    if counts.ndim != 3 or len(counts) < 2:
        raise ValueError("%s has the shape %s, must be (two or more steps, layers, experts)"
                         % (file, counts.shape))
    half = len(counts) // 2
    return [of.sum(axis=0).astype(float) for of in (counts[:half], counts[half:])]


def ascend_policy(module, name, *needed):
    """A policy of vllm-ascend, from its file alone, or nothing if it is not installed."""
    spec = importlib.util.find_spec("vllm_ascend")
    folder = spec and pathlib.Path(spec.submodule_search_locations[0]) / "eplb/core/policy"
    if not folder or not folder.exists() or any(
            importlib.util.find_spec(of.split(".")[0]) is None for of in needed):
        missing.append(name)
        return None
    # They look for PyTorch themselves when they are loaded.
    for of in needed:
        importlib.import_module(of)
    package = types.ModuleType("ascend_policies")
    package.__path__ = [str(folder)]
    torch_npu = mock.MagicMock()
    torch_npu.npu.device_count.return_value = 8
    stubs = {"torch": torch_npu, "torch_npu": torch_npu, "ascend_policies": package}
    for stub in ("vllm", "vllm.logger", "vllm_ascend", "vllm_ascend.distributed",
                 "vllm_ascend.distributed.parallel_state"):
        stubs[stub] = mock.MagicMock(__spec__=None)
    with mock.patch.dict(sys.modules, stubs):
        policies = importlib.import_module("ascend_policies." + module)
    # Numba looks for the module of what it has compiled.
    sys.modules[policies.__name__] = policies
    return getattr(policies, name)


def as_array(values):
    """An array that a policy may ask for its array, as of a tensor."""
    return np.ascontiguousarray(values).view(Tensor)


class Tensor(np.ndarray):
    def numpy(self):
        return np.asarray(self)


def by_policy(policy):
    """The slots by a policy of vllm-ascend, which reads the load of each slot."""
    def place(loads, old):
        copies = np.stack([np.bincount(of.ravel(), minlength=loads.shape[1]) for of in old])
        layer = np.arange(len(old))[:, None, None]
        work = np.rint(loads[layer, old] / copies[layer, old]).astype(np.int64)
        _, _, slots = policy().rebalance_experts(as_array(old), as_array(work))
        return np.asarray(slots)
    return place


def by_eplb(loads, old):
    _, ranks, slots = old.shape
    return np.stack([rivals.eplb_greedy(of, ranks * slots, 1, 1, ranks) for of in loads])


def by_omnibal(share, effort="normal"):
    def place(loads, old):
        _, ranks, slots = old.shape
        moves = {} if share is None else {"old": old, "max_moved": int(share * old.size)}
        placed = omnibal.place_experts(loads, slots, ranks, effort=effort, **moves)
        return placed.experts.reshape(old.shape)
    return place


def by_llep(tokens, ranks, factor):
    plans = [rivals.llep_greedy(of, ranks, factor) for of in tokens.tolist()]
    return [copies for copies, _ in plans], [loads for _, loads in plans]


def by_spill(effort):
    def plan(tokens, ranks, factor):
        plans = [llep.compute_llep_lpt_plan(of, ranks, 0, len(of) // ranks, factor, effort=effort)
                 for of in tokens]
        return [len(of.weight_transfers) for of in plans], [of.gpu_loads for of in plans]
    return plan


def row(name, loads_of_ranks, sent, seconds):
    """A row of a table; the loads are an array of layers and ranks."""
    over_mean = loads_of_ranks.max(axis=1) / loads_of_ranks.mean(axis=1)
    return "| %s | %.4f | %.4f | %s | %.4f |" % (
        name, over_mean.mean(), over_mean.max(), sent, seconds)


def placement_row(name, slots, loads, old, seconds):
    ranks, moved = [], 0
    for found, before, of in zip(slots, old, loads):
        copies = np.bincount(found.ravel(), minlength=len(of))
        if not copies.all():
            raise ValueError("%s left an expert without a copy" % name)
        ranks.append((of / copies)[found].sum(axis=1))
        moved += sum(len(set(a.tolist()) - set(b.tolist())) for a, b in zip(found, before))
    return row(name, np.array(ranks), "%.1f %%" % (100 * moved / slots.size), seconds)


def timed(call, *arguments):
    """The result of a call, and its processor time without collections of garbage."""
    gc.collect()
    gc.disable()
    begin = time.process_time()
    result = call(*arguments)
    seconds = time.process_time() - begin
    gc.enable()
    return result, seconds


def print_head(family, problem, sent):
    print("\n%s, %s\n" % (family, problem))
    print("| method | heaviest rank over mean | worst layer | %s | seconds |" % sent)
    print("|---|---|---|---|---|")


def print_placements(family, before, after, ranks, slots, methods):
    old = by_eplb(before, np.zeros((len(before), ranks, slots), dtype=np.int64))
    print_head(family, "%d layers, %d ranks x %d slots" % (len(old), ranks, slots), "moved")
    for name, place in methods:
        if name == "FlashLB":
            # The first call compiles.
            place(after[:1], old[:1])
        found, seconds = timed(place, after, old.copy())
        print(placement_row(name, found, after, old, seconds), flush=True)


def print_spills(family, loads, ranks, factor):
    tokens = loads.astype(np.int64)
    layers, experts = tokens.shape
    if experts % ranks:
        return
    home = tokens.reshape(layers, ranks, -1).sum(axis=2)
    print_head(family, "%d layers, a batch on %d ranks, at most %g of the mean"
               % (layers, ranks, factor), "foreign copies of a layer")
    print(row("without copies", home, "0", 0))
    for name, plan in (("LLEP", by_llep), ("omnibal, fast", by_spill("fast")),
                       ("omnibal", by_spill("normal"))):
        (copies, loads_of_ranks), seconds = timed(plan, tokens, ranks, factor)
        print(row(name, np.array(loads_of_ranks), "%.1f" % np.mean(copies), seconds), flush=True)


def main():
    swift = ascend_policy("policy_swift_balancer", "SwiftBalanceEplb")
    flash = ascend_policy("policy_flashlb", "FlashLB", "numba", "scipy.stats",
                          "scipy.optimize")
    methods = [("EPLB", by_eplb)]
    methods += [(name, by_policy(of)) for name, of in (("SwiftBalancer", swift), ("FlashLB", flash))
                if of]
    methods += [("omnibal, fresh", by_omnibal(None))]
    methods += [("omnibal, %d %% may move" % round(100 * share), by_omnibal(share))
                for share in (0.05, 0.2, 0.45)]
    families = {name: drifting(name) for name in ("log-normal", "Zipf", "bursts")}
    if "--recorded" in sys.argv:
        families["recorded"] = recorded(sys.argv[sys.argv.index("--recorded") + 1])
    for family, (before, after) in families.items():
        for ranks, slots in SIZES:
            print_placements(family, before, after, ranks, slots, methods)
            for factor in FACTORS:
                print_spills(family, after, ranks, factor)
    if missing:
        print("\nNot installed: %s" % ", ".join(missing))


main()
