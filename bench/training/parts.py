# SPDX-License-Identifier: Apache-2.0
"""The parts of the measurement. Each one prints a table, and returns False if it misses its goal."""

import statistics

import numpy as np
import torch

import omnibal
from trainer import Trainer

FORMS = ("padded", "unpadded", "packed")


def print_table(device, head, rows):
    """A table of Markdown with the device in every row."""
    print("| device | " + " | ".join(head) + " |")
    print("|---|" + "---|" * len(head))
    for row in rows:
        print(f"| {device.name} | " + " | ".join(map(str, row)) + " |", flush=True)


class Session:
    """What the parts share: the device, the data, a trainer, the clock and the fitted cost."""

    def __init__(self, device, data, attend, clock):
        self.device = device
        self.data = data
        self.attend = attend
        self.clock = clock
        self.cost = None
        self.trainer = Trainer(data, device, attend)

    def groups(self, form):
        return self.data.packs if form == "packed" else self.data.random

    def seconds(self, samples, is_padded=False, runs=1):
        """The shortest time of the passes of a micro-batch, whose tensors are there already."""
        self.clock.check()
        batch = self.trainer.batch(samples, is_padded)
        factor = 1 / max(1, self.data.loss_tokens(samples))
        return min(self.device.seconds(lambda: self.trainer.passes(batch, factor))
                   for _ in range(runs))

    def warm_up(self):
        """Two steps: kernels are loaded, and the optimizer has its moments."""
        for _ in range(2):
            self.trainer.step([self.trainer.batch(self.data.packs[0])], 1e-6)


def relative(one, other):
    return float((one - other).norm() / other.norm())


def gradients(session):
    """The three forms of the same samples have the same loss and gradients."""
    trainer, data = session.trainer, session.data
    samples = data.samples[:12]
    packs = [[samples[i] for i in group] for group in data.pack(samples)]
    alone = trainer.gradients([[one] for one in samples])
    halves = [samples[:6], samples[6:]]
    found = {
        "padded": trainer.gradients(halves, is_padded=True),
        "unpadded": trainer.gradients(halves),
        "packed": trainer.gradients(packs),
    }
    limit = 0.05 if session.device.is_gpu else 1e-5
    rows = [(name, f"{loss:.5f}", f"{abs(loss / alone[0] - 1):.1e}",
             f"{relative(gradient, alone[1]):.1e}") for name, (loss, gradient) in found.items()]
    rows.insert(0, ("each sample alone", f"{alone[0]:.5f}", "0", "0"))
    print_table(session.device, ("form", "loss", "loss off", f"gradients off, limit {limit}"), rows)
    return all(abs(loss / alone[0] - 1) < limit and relative(gradient, alone[1]) < limit
               for loss, gradient in found.values())


def throughput(session, steps=5, batches=4):
    """Tokens without padding per second of whole steps, whose tensors are there already."""
    rates = {form: [] for form in FORMS}
    for step in range(steps + 1):
        for form in FORMS:
            session.clock.check()
            groups = session.groups(form)[step * batches:(step + 1) * batches]
            made = [session.trainer.batch(one, form == "padded") for one in groups]
            factor = 1 / sum(map(session.data.loss_tokens, groups))
            seconds = session.device.seconds(lambda: session.trainer.step(made, factor))
            if step != 0:
                rates[form].append(sum(map(session.data.tokens, groups)) / seconds)
    first = statistics.median(rates["padded"])
    print_table(session.device, ("form", "tokens/s", "least", "most", "of padded"),
                [(form, f"{statistics.median(one):,.0f}", f"{min(one):,.0f}", f"{max(one):,.0f}",
                  f"{statistics.median(one) / first:.2f}") for form, one in rates.items()])
    return True


def prediction(session):
    """Fits the cost to every second batch, and predicts the times of the others."""
    count = 24 if session.device.is_gpu else 8
    every = [(one, form == "padded") for i in range(count)
             for form in FORMS for one in [session.groups(form)[-1 - i]]]
    sizes = np.array([session.data.features(*one) for one in every])
    seconds = np.array([session.seconds(*one, runs=3) for one in every])
    is_fitted = np.arange(len(every)) // len(FORMS) % 2 == 0
    session.cost = omnibal.affine_fit(sizes[is_fitted], seconds[is_fitted], signs="not_negative")
    off = abs(session.cost(sizes) / seconds - 1)
    rows = [("fitted", is_fitted.sum(), off[is_fitted]), ("predicted", (~is_fitted).sum(),
                                                          off[~is_fitted])]
    print_table(session.device, ("batches", "number", "mean error", "median", "largest"),
                [(name, number, f"{one.mean():.2%}", f"{np.median(one):.2%}", f"{one.max():.2%}")
                 for name, number, one in rows])
    slopes = session.cost.slopes
    print(f"cost: {session.cost.offset * 1e3:.3g} ms, {slopes[0] * 1e9:.3g} ns for a token, "
          f"{slopes[1] * 1e12:.3g} ps for a square, {slopes[2] * 1e6:.3g} us for a tile")
    return not session.device.is_gpu or off[~is_fitted].mean() <= 0.05


def in_steps(count, ranks):
    """The numbers of batches in full steps, in their order."""
    return [range(begin, begin + ranks) for begin in range(0, count - ranks + 1, ranks)]


def even_steps(session, ranks):
    """The packs in steps of even predicted times."""
    nanoseconds = [int(1e9 * one) for one in
                   session.cost([session.data.features(pack, False) for pack in session.data.packs])]
    steps = omnibal.schedule_steps(nanoseconds, ranks, seed=1)
    return [[int(pack) for rank in range(ranks) for pack in steps[s, rank]]
            for s in range(len(steps))]


def post_balanced(session, ranks):
    """The random batches of each step, whose samples move between the ranks."""
    data, result = session.data, []
    for step in in_steps(len(data.random), ranks):
        samples = [one for batch in step for one in data.random[batch]]
        offsets = np.cumsum([0] + [len(data.random[batch]) for batch in step])
        home = omnibal.Groups(offsets, np.arange(len(samples)))
        sizes = np.array([data.features([one], False) for one in samples])
        nanoseconds = (1e9 * sizes @ session.cost.slopes).astype(np.int64)
        moved = omnibal.rebalance(home, nanoseconds, sizes[:, 0])
        result += [[samples[i] for i in part] for part in moved]
    return result


def replay(session):
    """Steps of more ranks: all batches one after the other, a step lasts as long as its slowest."""
    data = session.data
    every = [ranks for ranks in (8, 32, 64) if ranks <= len(data.packs)]
    if session.cost is None:
        prediction(session)
    # The first run of a size on a GPU may allocate.
    runs = 2 if session.device.is_gpu else 1
    padded = [session.seconds(one, True, runs) for one in data.random]
    unpadded = [session.seconds(one, False, runs) for one in data.random]
    packs = [session.seconds(one, False, runs) for one in data.packs]
    rows = []
    for ranks in every:
        in_turn = in_steps(len(packs), ranks)
        moved = [session.seconds(one, False, runs) if one else 0.0
                 for one in post_balanced(session, ranks)]
        forms = {"padded": (padded, in_turn), "unpadded": (unpadded, in_turn),
                 "random packs": (packs, in_turn), "even packs": (packs, even_steps(session, ranks)),
                 "post-balanced": (moved, in_turn)}
        for name, (seconds, steps) in forms.items():
            slowest = sum(max(seconds[i] for i in step) for step in steps)
            used = sum(seconds[i] for step in steps for i in step)
            rows.append((ranks, name, len(steps), f"{slowest / len(steps) * 1e3:.1f}",
                         f"{1 - used / ranks / slowest:.1%}",
                         f"{data.tokens(data.samples) / slowest:,.0f}"))
    print_table(session.device, ("ranks", "form", "steps", "ms of a step", "idle", "tokens/s"), rows)
    return True


def corners(data):
    """Batches at the ends of what a pack may have: few or all tokens, without and with tiles."""
    tiles, tokens = data.capacity
    per_tile = data.size.tile_tokens

    def split(text, with_tiles):
        """Eight samples, or fewer if there are no eight pieces of text."""
        count = max(1, min(8, text // 2))
        return [type(data.samples[0])(i, with_tiles // count + (i < with_tiles % count),
                                      text // count + (i < text % count)) for i in range(count)]

    return [split(16, 0), split(tokens, 0), split(16, tiles),
            split(tokens - tiles * per_tile, tiles)]


def bytes_of_step(session, samples):
    trainer = session.trainer
    batch = trainer.batch(samples)
    factor = 1 / session.data.loss_tokens(samples)
    seconds = []
    peak = session.device.peak_bytes(
        lambda: seconds.append(session.device.seconds(lambda: trainer.step([batch], factor))),
        trainer.model, trainer.states())
    return peak, seconds[0]


def peak_predictor(session, states):
    """Returns a function that predicts the peak of a step.

    Peaks are the largest of several linear functions of tokens and tiles. A plane that is above
    the peaks at the corners of all batches is therefore above the others too. One percent is added
    for bytes that depend on the number of samples.
    """
    data, probes = session.data, corners(session.data)
    peaks = np.array([bytes_of_step(session, one)[0] - states for one in probes])
    sizes = np.array([data.features(one, False) for one in probes])[:, [0, 2]]
    plane = omnibal.affine_fit(sizes, peaks)
    above = max(0, (peaks - plane(sizes)).max())

    def predict(samples):
        tokens, _, tiles = data.features(samples, False)
        return states + 1.01 * (plane([[tokens, tiles]])[0] + above)

    return predict


def compare_peaks(session, states, packs):
    """For each pack how far the prediction is above the peak, both of them, and the seconds."""
    bytes_of_step(session, packs[0])
    predict = peak_predictor(session, states)
    result = []
    for pack in packs:
        session.clock.check()
        measured, seconds = bytes_of_step(session, pack)
        result.append((predict(pack) / measured - 1, predict(pack), measured, seconds))
    return result


def memory(session, count=6):
    """Predicted and measured peaks of steps that keep, recompute and offload activations."""
    data, trainer = session.data, session.trainer
    states = trainer.states()
    largest = sorted(data.packs, key=data.tokens)[-count:]
    rows, is_near = [], True
    for name in ("keep", "recompute", "offload"):
        trainer.model.is_recomputed = name == "recompute"
        trainer.is_offloaded = name == "offload"
        found = compare_peaks(session, states, largest)
        is_near &= all(0 <= one[0] <= 0.05 for one in found)
        (least, *_), (most, predicted, measured, _) = min(found), max(found)
        rows.append((name, f"{predicted / 1e6:,.2f}", f"{measured / 1e6:,.2f}",
                     f"{least:.2%} to {most:.2%}",
                     f"{1e3 * statistics.median(one[3] for one in found):.1f}"))
    trainer.model.is_recomputed = trainer.is_offloaded = False
    print(f"states of the model and of AdamW: {states / 1e6:,.2f} MB")
    print_table(session.device, ("activations", "predicted MB", "measured MB", "predicted above",
                                 "ms of a step"), rows)
    return is_near


def curve(session, form, seed, steps, count):
    """The loss of each step on the same samples in one form."""
    data = session.data
    trainer = Trainer(data, session.device, session.attend, seed)
    result = []
    for step in range(steps):
        session.clock.check()
        samples = [data.samples[i % len(data.samples)]
                   for i in range(step * count, (step + 1) * count)]
        groups = [samples[i:i + 4] for i in range(0, count, 4)]
        if form == "packed":
            groups = [[samples[i] for i in group] for group in data.pack(samples)]
        factor = 1 / data.loss_tokens(samples)
        batches = [trainer.batch(one, form == "padded") for one in groups]
        result.append(float(trainer.step(batches, factor)))
    return np.array(result)


def curves(session):
    """Losses of the three forms differ by less than those of another initialization."""
    steps, count = (24, 16) if session.device.is_gpu else (8, 8)
    session.trainer = None
    found = {form: curve(session, form, 1, steps, count) for form in FORMS}
    found["packed, another seed"] = curve(session, "packed", 2, steps, count)
    base = found["unpadded"]
    off = {form: abs(one / base - 1).max() for form, one in found.items()}
    at = [0, steps // 4, steps // 2, 3 * steps // 4, steps - 1]
    print_table(session.device, ("form", *(f"step {i + 1}" for i in at), "largest difference"),
                [(form, *(f"{one[i]:.4f}" for i in at), f"{off[form]:.1e}")
                 for form, one in found.items()])
    noise = off["packed, another seed"]
    limit = noise if session.device.is_gpu else min(noise, 1e-4)
    return base[-1] < base[0] and max(off["padded"], off["packed"]) < limit
