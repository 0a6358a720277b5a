# SPDX-License-Identifier: Apache-2.0
"""Compares the peak that omnibal predicts for kept, recomputed and offloaded activations with the
peak of a training step in PyTorch: measure_offload.py PLAN_OFFLOAD [--memory FILE]

PLAN_OFFLOAD is the built program examples/plan_offload.cpp. The model is a chain of attention and
MLP blocks on the processor; a block is a layer with two modules, its input (required) and all other
tensors that autograd saves. A first step that keeps everything measures the bytes of the modules
and the transient bytes of the passes. Then the same step runs with other choices, and the program
counts the bytes of all tensors that are alive after each operation.

Offloaded tensors are written to the file of --memory, read back before the backward pass of their
block, and in between they are not alive. The link has no thread: it moves the bytes of a pass, which
are its rate times the time of the pass, as soon as the pass begins or the tensors appear. A tensor
is alive until its last byte is sent, and from the first byte that is fetched; transient bytes
therefore include the largest tensor of a block. The exit status is 1 if a peak is above the
prediction or more than 5 % below it, or if gradients differ.
"""

import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

TOKENS, WIDTH, HEADS, BLOCKS = 256, 128, 4, 48
Layer = collections.namedtuple("Layer",
                               "forward backward forward_transient backward_transient modules largest")


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.into = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        parts = self.into(self.norm(x)).view(TOKENS, 3, HEADS, WIDTH // HEADS).permute(1, 2, 0, 3)
        mixed = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        return x + self.out(mixed.transpose(0, 1).reshape(TOKENS, WIDTH))


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.up = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.down = torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Loss(torch.nn.Module):
    def forward(self, x):
        return x.square().mean()


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of all storages that operations made and that are alive, except those of
    parameters and gradients, which are always there."""

    def __init__(self, model):
        super().__init__()
        self.live = 0
        self.peak = 0
        self.state = [tensor.untyped_storage() for one in model.parameters()
                      for tensor in (one, one.grad)]
        self.seen = weakref.WeakSet(self.state)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.add(leaf.untyped_storage())
        return result

    def add(self, storage):
        if storage in self.seen:
            return
        self.seen.add(storage)
        self.live += storage.nbytes()
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self.remove, storage.nbytes())

    def remove(self, count):
        self.live -= count


class Moved:
    """The bytes of a storage, on the device or in the far memory."""

    def __init__(self, tensor, place):
        storage = tensor.untyped_storage()
        self.bytes = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
        self.size = storage.nbytes()
        self.left = self.size
        self.place = place

    def send(self, far):
        far[self.place:self.place + self.size] = self.bytes.numpy()
        self.bytes = None

    def fetch(self, far):
        if self.bytes is None:
            self.bytes = torch.empty(self.size, dtype=torch.uint8)
            self.bytes.numpy()[:] = far[self.place:self.place + self.size]

    def wait(self):
        """Waits for the bytes; here they are moved at once."""


class View:
    """A saved tensor: a part of moved bytes."""

    def __init__(self, moved, tensor):
        self.moved = moved
        self.form = (tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset())

    def tensor(self):
        dtype, size, stride, offset = self.form
        self.moved.wait()
        whole = torch.empty(0, dtype=dtype, device=self.moved.bytes.device)
        whole.set_(self.moved.bytes.untyped_storage())
        return whole.as_strided(size, stride, offset)


class Trainer:
    """A step of training with a choice for the input and for the other tensors of each block."""

    def __init__(self, model, choices, link, layers, far, moved=Moved):
        self.model = model
        self.make_moved = moved
        self.choices = choices
        self.rate = link
        self.layers = layers
        self.far = far
        self.parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
        self.saved = [{} for _ in model]
        self.moved = [[] for _ in model]
        self.queue = collections.deque()
        self.credit = 0
        self.place = 0

    def pack(self, block, input_key, tensor):
        key = tensor.untyped_storage().data_ptr()
        if key in self.parameters:
            return tensor
        is_input = key == input_key
        self.saved[block][key] = (tensor.untyped_storage().nbytes(), is_input)
        if self.choices[block][0 if is_input else 1] != "offload":
            return tensor
        moved = next((one() for one in self.moved[block]
                      if one() is not None and one().bytes is not None
                      and one().bytes.untyped_storage().data_ptr() == key), None)
        if moved is None:
            moved = self.make_moved(tensor, self.place)
            self.place += moved.size
            self.moved[block].append(weakref.ref(moved))
            self.queue.append(weakref.ref(moved))
        return View(moved, tensor)

    def send(self):
        """Sends queued tensors within the credit of the pass."""
        while self.queue and self.credit > 0:
            moved = self.queue[0]()
            part = min(self.credit, moved.left)
            moved.left -= part
            self.credit -= part
            if moved.left == 0:
                moved.send(self.far)
                self.queue.popleft()

    def begin_forward(self, block):
        self.credit = int(self.rate * self.layers[block].forward) if self.layers else 0
        self.send()

    def begin_backward(self, block):
        """Fetches the bytes of this and earlier blocks that later passes cannot fetch in time, and
        sends others, as the link does during the pass that has just ended."""
        needed = 0
        for i in range(block + 1):
            left = int(self.rate * self.layers[i].backward) if self.layers else 0
            mine = sum(one().size for one in self.moved[i] if one() is not None)
            needed = mine + max(0, needed - left)
        fetched = set()
        for i in range(block, -1, -1):
            for one in reversed(self.moved[i]):
                if needed > 0 and one() is not None:
                    one().fetch(self.far)
                    needed -= one().size
                    fetched.add(one)
        self.queue = collections.deque(one for one in self.queue
                                       if one() is not None and one not in fetched)
        if self.layers and block + 1 != len(self.layers):
            self.credit = int(self.rate * self.layers[block + 1].backward)
            self.send()

    def input_of(self, data):
        return data.clone().requires_grad_(True)

    def step(self, data, counter):
        """Returns the peak of each pass."""
        peaks = [[0, 0] for _ in self.model]
        ends = []

        def mark(block, kind):
            counter.peak = counter.live
            return (block, kind)

        with counter:
            x = self.input_of(data)
            for i, block in enumerate(self.model):
                counter.peak = counter.live
                self.begin_forward(i)
                given = x

                # Saved tensors hold their hooks, which must not hold a tensor.
                def pack(tensor, i=i, input_key=given.untyped_storage().data_ptr()):
                    return self.pack(i, input_key, tensor)

                def unpack(saved):
                    return saved.tensor() if isinstance(saved, View) else saved

                with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                    if self.choices[i][1] == "recompute":
                        x = checkpoint(block, given, use_reentrant=True)
                    else:
                        x = block(given)
                del given
                self.send()
                peaks[i][0] = counter.peak
                ends.append(counter.live)

                def begin(_, i=i):
                    if i + 1 != len(self.model):
                        peaks[i + 1][1] = counter.peak
                    self.begin_backward(i)
                    counter.peak = counter.live

                x.register_hook(begin)
            x.backward()
            peaks[0][1] = counter.peak
        return peaks, ends


def run(model, choices, link, layers, far, data):
    """Returns the peaks of all passes, the live bytes between them, the trainer and the gradients."""
    for one in model.parameters():
        one.grad = torch.zeros_like(one)
    trainer = Trainer(model, choices, link, layers, far)
    peaks, ends = trainer.step(data, LiveBytes(model))
    return peaks, ends, trainer, [one.grad.clone() for one in model.parameters()]


def calibrate(model, far, data):
    """Measures the modules and the transient bytes of a step that keeps everything."""
    keep = [("keep", "keep")] * len(model)
    peaks, ends, trainer, gradients = run(model, keep, 0, None, far, data)
    layers = []
    after = 0
    for i, saved in enumerate(trainer.saved):
        inputs = sum(size for size, is_input in saved.values() if is_input)
        others = sum(size for size, is_input in saved.values() if not is_input)
        after += inputs + others
        forward = max(0, peaks[i][0] - after)
        # A recomputed block runs its forward pass again, and its output is as large as its input.
        backward = max(forward, peaks[i][1] - after) + inputs
        is_last = i + 1 == len(model)
        layers.append(Layer(1.0 + i % 2, 2.0 + i % 2, forward, backward,
                            [(inputs, 0, "required"),
                             (others, 1.0 + i % 2, "required" if is_last else "optional")],
                            [max((size for size, one in saved.values() if one == is_input), default=0)
                             for is_input in (True, False)]))
    return layers, gradients


def with_offloading(layers, choices):
    """Adds the bytes that a trainer needs to offload: the input of the block that runs, and the
    largest tensor that is partly sent or fetched. Without choices, any tensor may be."""
    largest = max((size for i, layer in enumerate(layers) for j, size in enumerate(layer.largest)
                   if choices is None or choices[i][j] == "offload"), default=0)
    if largest == 0:
        return layers
    return [layer._replace(forward_transient=layer.forward_transient + layer.modules[0][0] + largest,
                           backward_transient=layer.backward_transient + largest)
            for layer in layers]


def plan(program, link, layers, budget=None, choices=None):
    """Returns the predicted peak and the choices, those given or those for a budget."""
    lines = []
    for i, layer in enumerate(with_offloading(layers, choices)):
        lines.append(f"layer {layer.forward} {layer.backward} {layer.forward_transient} "
                     f"{layer.backward_transient}")
        for j, module in enumerate(layer.modules):
            lines.append("module {} {} {}".format(*module) + (f" {choices[i][j]}" if choices else ""))
    words = [program, repr(link)] + ([] if budget is None else [str(budget)])
    done = subprocess.run(words, input="\n".join(lines) + "\n", capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    rows = [line.split() for line in done.stdout.splitlines()]
    return int(rows[0][2]), [tuple(row[2:]) for row in rows[1:]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--memory", type=pathlib.Path)
    given = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = torch.nn.ModuleList([Attention() if i % 2 == 0 else Mlp() for i in range(BLOCKS)])
    model.append(Loss())
    data = torch.randn(TOKENS, WIDTH)
    with tempfile.TemporaryDirectory() as folder:
        path = given.memory or pathlib.Path(folder, "far_memory")
        path.write_bytes(bytes(1 << 28))
        far = torch.from_file(str(path), shared=True, size=1 << 28, dtype=torch.uint8).numpy()
        layers, gradients = calibrate(model, far, data)
        saved = sum(size for layer in layers for size, _, _ in layer.modules)
        fast, slow = saved / 100, saved / 160
        optional = ["optional" in layer.modules[1] for layer in layers]
        every = {
            "keep": (0, [("keep", "keep")] * len(layers)),
            "recompute": (0, [("keep", "recompute" if one else "keep") for one in optional]),
            "offload, fast link": (fast, [("offload", "offload")] * len(layers)),
            "offload, slow link": (slow, [("offload", "offload")] * len(layers)),
            "recompute, inputs offloaded": (slow, [("offload", "recompute" if one else "offload")
                                                   for one in optional]),
        }
        predicted = [plan(given.program, link, layers, choices=choices)[0]
                     for link, choices in every.values()]
        least, most = min(predicted), max(predicted)
        for share in (75, 50, 25):
            budget = least + (most - least) * share // 100
            every[f"mixed, budget at {share} %"] = (slow, plan(given.program, slow, layers, budget)[1])
        is_wrong = False
        print(f"{'choices':32} {'predicted':>10} {'measured':>10} {'below':>7}  kept/recomputed/offloaded")
        for name, (link, choices) in every.items():
            predicted, _ = plan(given.program, link, layers, choices=choices)
            peaks, _, _, found = run(model, choices, link, layers, far, data)
            measured = max(max(one) for one in peaks)
            below = 1 - measured / predicted
            counts = collections.Counter(one[1] for one in choices)
            is_equal = all(torch.equal(a, b) for a, b in zip(gradients, found))
            is_wrong |= not 0 <= below <= 0.05 or not is_equal
            print(f"{name:32} {predicted:10} {measured:10} {below:7.2%}  {counts['keep']}/"
                  f"{counts['recompute']}/{counts['offload']}{'' if is_equal else '  other gradients'}")
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
