# SPDX-License-Identifier: Apache-2.0
"""Compares `select_activations` with HiGHS and with torchtitan's method, written anew, in one
process and prints tables: offload.py LIBRARY [--quick] [--limit SECONDS]. Without the package
highspy only the first columns are printed.

LIBRARY is bench/rivals/direct.cpp. The layers are those of a mixture-of-experts transformer with 61
layers of six modules, from public dimensions; nothing is fitted. Added times are in milliseconds.
HiGHS solves the integer program of all three choices on one thread within the limit; `s` is its
processor time. Its added time is bold if it is less than that of `select_activations` with
thorough effort.
`measure_activations` computes the peaks of all choices.
"""

import argparse
import ctypes
import time

import numpy as np

try:
    import highspy
except ImportError:
    highspy = None

KEEP, RECOMPUTE, OFFLOAD = range(3)
INFINITY = float("inf") if highspy is None else highspy.kHighsInf


class GivenLayers(ctypes.Structure):
    """The layers in memory of numpy."""

    _fields_ = [("bytes", ctypes.c_void_p), ("times", ctypes.c_void_p),
                ("passes", ctypes.c_void_p), ("transient", ctypes.c_void_p),
                ("traffic", ctypes.c_void_p), ("count", ctypes.c_size_t),
                ("modules", ctypes.c_size_t), ("forward_traffic", ctypes.c_int64),
                ("backward_traffic", ctypes.c_int64), ("in_flight", ctypes.c_int64)]


class TimedActivations(ctypes.Structure):
    """The memory and the time of choices, and the seconds of the call."""

    _fields_ = [("seconds", ctypes.c_double), ("added_time", ctypes.c_int64),
                ("lower_bound", ctypes.c_int64), ("peak_bytes", ctypes.c_int64),
                ("offloaded_bytes", ctypes.c_int64)]


# Bytes and nanoseconds of the modules of a layer: 4,096 tokens in BF16, hidden size 7168, 128
# heads, latent attention, 8 routed experts and a shared one of width 2048 for each token. Matrix
# products run at 400 TFLOP/s and the others at 2.5 TB/s.
MODULES = [
    ("attn_norm", 58_720_256, 60_000),
    ("qkv_linear", 469_762_048, 1_130_000),
    ("core_attn", 134_217_728, 1_720_000),
    ("attn_proj", 58_720_256, 2_400_000),
    ("expert_fc1", 301_989_888, 5_410_000),
    ("moe_act", 150_994_944, 210_000),
]
FORWARD, BACKWARD = 12_000_000, 24_000_000
BYTES_PER_NANOSECOND = 25.0


class Model:
    """Layers that differ by up to a share, and a link. Other traffic is a share of the bytes of the
    link: half of it is even, and half of it belongs to the layers."""

    def __init__(self, layers, share, first=0, traffic=0.0, in_flight=1):
        random = np.random.default_rng(1)

        def noisy(values):
            factors = 1 + share * random.uniform(-1, 1, values.shape)
            return np.ascontiguousarray(np.floor(values * factors).astype(np.int64))

        self.bytes = noisy(np.tile([row[1] for row in MODULES], (layers, 1)))
        self.times = noisy(np.tile([row[2] for row in MODULES], (layers, 1)))
        self.passes = noisy(np.tile([FORWARD, BACKWARD], (layers, 1)))
        # The first layers have three times the bytes and half of the times.
        self.bytes[:first] *= 3
        self.times[:first] //= 2
        self.passes[:first] //= 2
        self.transient = np.zeros((layers, 2), dtype=np.int64)
        moved = BYTES_PER_NANOSECOND * self.passes
        self.traffic = np.ascontiguousarray(np.floor(traffic / 2 * moved).astype(np.int64))
        self.even = np.floor(traffic / 2 * moved.sum(axis=0)).astype(np.int64)
        self.in_flight = in_flight
        self.given = GivenLayers(*(one.ctypes.data for one in
                                   (self.bytes, self.times, self.passes, self.transient,
                                    self.traffic)),
                                 *self.bytes.shape, *(int(one) for one in self.even), in_flight)

    def link_bytes(self):
        """The bytes of activations that the link transfers in the passes of each layer."""
        rate = BYTES_PER_NANOSECOND - self.even / self.passes.sum(axis=0)
        every = np.floor(rate * self.passes).astype(np.int64)
        result = every.copy()
        for way, order in ((0, range(len(every))), (1, reversed(range(len(every))))):
            waiting = 0
            for i in order:
                waiting += self.traffic[i, way]
                others = min(waiting, every[i, way])
                waiting -= others
                result[i, way] -= others
        return result


NORMAL, THOROUGH = 1, 2


def select(library, model, budget, rate=BYTES_PER_NANOSECOND, effort=NORMAL):
    found = TimedActivations()
    choices = np.zeros(model.bytes.shape, dtype=np.uint8)
    library.rivals_select_activations(
        ctypes.byref(model.given), ctypes.c_int64(budget),
        ctypes.c_double(rate), effort, 5 if effort == NORMAL else 1, ctypes.byref(found),
        ctypes.c_void_p(choices.ctypes.data))
    return found, choices


def measure(library, model, choices):
    found = TimedActivations()
    choices = np.ascontiguousarray(choices, dtype=np.uint8)
    library.rivals_measure_activations(
        ctypes.byref(model.given), ctypes.c_double(BYTES_PER_NANOSECOND),
        ctypes.c_void_p(choices.ctypes.data), ctypes.byref(found))
    return found


class Program:
    """A linear or integer program in megabytes and milliseconds."""

    def __init__(self):
        self.costs, self.lower, self.upper, self.whole = [], [], [], []
        self.rows = []

    def variable(self, cost=0.0, upper=INFINITY, whole=False):
        self.costs.append(cost)
        self.lower.append(0.0)
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.costs) - 1

    def at_most(self, terms, limit):
        """The sum of the terms, pairs of variables and factors, is at most the limit."""
        self.rows.append((terms, limit))

    def solve(self, limit):
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("time_limit", float(limit))
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.setOptionValue("mip_abs_gap", 1e-9)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.costs), len(self.rows)
        lp.col_cost_ = np.array(self.costs)
        lp.col_lower_, lp.col_upper_ = np.array(self.lower), np.array(self.upper)
        lp.row_lower_ = np.full(len(self.rows), -INFINITY)
        lp.row_upper_ = np.array([limit for _, limit in self.rows], dtype=float)
        starts, index, value = [0], [], []
        for terms, _ in self.rows:
            for variable, factor in terms:
                index.append(variable)
                value.append(factor)
            starts.append(len(index))
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = np.array(starts), np.array(index)
        lp.a_matrix_.value_ = np.array(value, dtype=float)
        if any(self.whole):
            kinds = highspy.HighsVarType
            lp.integrality_ = [kinds.kInteger if one else kinds.kContinuous for one in self.whole]
        solver.passModel(lp)
        begin = time.process_time()
        solver.run()
        seconds = time.process_time() - begin
        info = solver.getInfo()
        return (np.array(solver.getSolution().col_value), info.objective_function_value,
                info.mip_dual_bound if any(self.whole) else info.objective_function_value, seconds)


def add_peak(program, model, budget, kept, offloaded, recomputed):
    """Adds the statement of `measure_activations`. The arguments have the terms of each layer, in
    megabytes."""
    layers = len(kept)
    link = model.link_bytes() / 1e6
    transient = model.transient / 1e6
    queue = [program.variable() for _ in range(layers)]
    fetch = [program.variable() for _ in range(layers)]
    forward = [program.variable() for _ in range(layers)]
    backward = [program.variable() for _ in range(layers)]
    # Each other micro-batch holds the kept bytes and the larger queue.
    every = sum(kept, [])
    others = []
    if model.in_flight > 1:
        held = program.variable()
        others = [(held, float(model.in_flight - 1))]
        program.at_most(every + [(queue[-1], 1.0), (held, -1.0)], 0.0)
        program.at_most(every + [(fetch[-1], 1.0), (held, -1.0)], 0.0)
    before = []
    for i in range(layers):
        previous = [(queue[i - 1], 1.0)] if i else []
        program.at_most(previous + offloaded[i] + [(queue[i], -1.0)], link[i, 0])
        program.at_most(offloaded[i] + [(fetch[i], -1.0)], 0.0)
        if i:
            program.at_most(offloaded[i] + [(fetch[i - 1], 1.0), (fetch[i], -1.0)], link[i, 1])
        sent, fetched = link[i + 1:].sum(axis=0)
        program.at_most([(queue[i], 1.0), (forward[i], -1.0)], 0.0)
        program.at_most([(fetch[i], 1.0), (forward[i], -1.0)], fetched)
        program.at_most([(fetch[i], 1.0), (backward[i], -1.0)], 0.0)
        program.at_most([(queue[i], 1.0), (backward[i], -1.0)], sent + fetched)
        before = before + kept[i]
        top = budget / 1e6
        in_forward = before + [(forward[i], 1.0)] + others
        in_backward = before + [(backward[i], 1.0)] + others
        program.at_most(in_forward, top - transient[i, 0])
        program.at_most(in_backward + recomputed[i], top - transient[i, 1])
        if i + 1 < layers:
            program.at_most(in_forward, top - transient[i + 1, 0])
            program.at_most(in_backward, top - transient[i + 1, 1])


def integer_program(model, budget, limit, whole=True):
    """The three choices of each module: choices, added time, bound, seconds."""
    program = Program()
    layers, modules = model.bytes.shape
    ways = np.zeros((layers, modules, 3), dtype=int)
    kept, offloaded, recomputed = [], [], []
    for i in range(layers):
        for terms in (kept, offloaded, recomputed):
            terms.append([])
        for j in range(modules):
            size = model.bytes[i, j] / 1e6
            for way, terms in ((KEEP, kept), (RECOMPUTE, recomputed), (OFFLOAD, offloaded)):
                cost = model.times[i, j] / 1e6 if way == RECOMPUTE else 0.0
                ways[i, j, way] = program.variable(cost, 1.0, whole)
                terms[i].append((ways[i, j, way], size))
            every = [(variable, 1.0) for variable in ways[i, j]]
            program.at_most(every, 1.0)
            program.at_most([(variable, -1.0) for variable, _ in every], -1.0)
    add_peak(program, model, budget, kept, offloaded, recomputed)
    values, found, bound, seconds = program.solve(limit)
    return values[ways].argmax(axis=2), found, bound, seconds


def fractions_then_greedy(model, budget):
    """torchtitan's method from its description: the linear program chooses the shares of the bytes
    of each layer that are kept, offloaded and recomputed; then each layer saves its modules with
    the largest time for a byte within these shares."""
    program = Program()
    layers = len(model.bytes)
    all_bytes, all_times = model.bytes.sum(axis=1), model.times.sum(axis=1)
    shares = np.zeros((layers, 3), dtype=int)
    terms = [[], [], []]
    for i in range(layers):
        for way in range(3):
            cost = all_times[i] / 1e6 if way == RECOMPUTE else 0.0
            shares[i, way] = program.variable(cost, 1.0)
            terms[way].append([(shares[i, way], all_bytes[i] / 1e6)])
        program.at_most([(variable, 1.0) for variable in shares[i]], 1.0)
        program.at_most([(variable, -1.0) for variable in shares[i]], -1.0)
    add_peak(program, model, budget, terms[KEEP], terms[OFFLOAD], terms[RECOMPUTE])
    values, _, _, seconds = program.solve(60)
    choices = np.full(model.bytes.shape, RECOMPUTE)
    for i in range(layers):
        rooms = {way: values[shares[i, way]] * all_bytes[i] + 0.5 for way in (KEEP, OFFLOAD)}
        for j in np.argsort(-model.times[i] / model.bytes[i], kind="stable"):
            for way, room in rooms.items():
                if model.bytes[i, j] <= room:
                    choices[i, j] = way
                    rooms[way] -= model.bytes[i, j]
                    break
    return choices, seconds


def compare(library, title, model, limit):
    names = [f"{title}: peak", "added", "bound", "us", "thorough", "its bound", "ms", "no link",
             "all recomputed"]
    if highspy is None:
        names[0] += " (highspy is not installed)"
    else:
        names += ["relaxed", "HiGHS", "its bound", "s", "shares"]
    print("\n| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
    for percent in (30, 50, 70):
        budget = int(model.bytes.sum()) * model.in_flight * percent // 100
        own, choices = select(library, model, budget)
        best, more = select(library, model, budget, effort=THOROUGH)
        for one, chosen in ((own, choices), (best, more)):
            checked = measure(library, model, chosen)
            assert checked.peak_bytes == one.peak_bytes <= budget
            assert checked.added_time == one.added_time
        alone, _ = select(library, model, budget, rate=0.0)
        row = [f"{percent} %", f"{own.added_time / 1e6:.3f}", f"{own.lower_bound / 1e6:.3f}",
               f"{own.seconds * 1e6:.0f}", f"{best.added_time / 1e6:.3f}",
               f"{best.lower_bound / 1e6:.3f}", f"{best.seconds * 1e3:.0f}", f"{alone.added_time / 1e6:.2f}",
               f"{model.times.sum() / 1e6:.1f}"]
        if highspy is not None:
            row += rival_cells(library, model, budget, limit, best)
        print("| " + " | ".join(row) + " |", flush=True)


def rival_cells(library, model, budget, limit, best):
    """The relaxation, HiGHS and the shares. Choices of HiGHS may exceed the peak by its tolerances;
    they then say "above"."""
    relaxed = integer_program(model, budget, 60, whole=False)[1]
    exact, _, bound, seconds = integer_program(model, budget, limit)
    rival = measure(library, model, exact)
    is_within = rival.peak_bytes <= budget
    greedy = measure(library, model, fractions_then_greedy(model, budget)[0])
    assert greedy.peak_bytes <= budget + 1000
    is_better = is_within and rival.added_time < best.added_time
    if is_better and rival.added_time < best.added_time * 0.999:
        print("WORSE than HiGHS by more than 0.1 %:")
    found = f"{rival.added_time / 1e6:.3f}{'' if is_within else ' above'}"
    return [f"{relaxed:.3f}", f"**{found}**" if is_better else found,
            f"{bound:.3f}", f"{seconds:.1f}", f"{greedy.added_time / 1e6:.2f}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--limit", type=float, default=20.0)
    options = parser.parse_args()
    library = ctypes.CDLL(options.library)
    layers = 16 if options.quick else 61
    kinds = (("all equal", 0.0), ("differ by 1 %", 0.01), ("differ by 10 %", 0.1))
    for name, share in kinds:
        compare(library, f"{layers} layers, {name}", Model(layers, share), options.limit)
    if not options.quick:
        compare(library, "16 layers, all equal", Model(16, 0.0), options.limit)
    compare(library, f"{layers} layers, large ones first", Model(layers, 0.01, first=layers // 3),
            options.limit)
    for name, share in kinds:
        compare(library, f"{layers} layers, {name}, half of the link for other traffic",
                Model(layers, share, traffic=0.5), options.limit)
    for name, share in kinds:
        compare(library, f"{layers} layers, {name}, 4 micro-batches in flight",
                Model(layers, share, in_flight=4), options.limit)


if __name__ == "__main__":
    main()
