# SPDX-License-Identifier: Apache-2.0
"""Compares the peak that omnibal predicts for offloaded activations with the peak of a training step
on a GPU: offload_peaks.py PLAN_OFFLOAD [--stand-in]

The model, the choices and the order of the moves are those of examples/python/measure_offload.py.
Offloaded tensors go to pinned memory and come back on a stream of their own. A copy begins as soon as
autograd saves the tensor. The tensor is freed when the link has sent its bytes by the prediction, and
the passes wait for a copy that takes longer: the peak is then right, and the step takes longer. Times
of passes and the rate of the link are measured first. The peak is that of the bytes that PyTorch's
allocator counts as active.

The exit status is 1 if a peak is above the prediction, if it is below it by more than 5 % and the
largest tensor, or if gradients differ, and 77 if there is no GPU. With --stand-in a small model runs on the processor, where copies
are done at once; peaks may then be any amount below the prediction.
"""

import argparse
import collections
import contextlib
import sys
import time

import torch

import measure_offload as base

class Device:
    """A GPU with a stream for copies, or the processor, whose copies are done at once."""

    def __init__(self, is_gpu):
        self.is_gpu = is_gpu
        self.name = torch.device("cuda" if is_gpu else "cpu")
        self.copies = torch.cuda.Stream() if is_gpu else None

    def allocated(self, size):
        """The bytes of a tensor; the allocator of CUDA rounds them up."""
        return -(-size // 512) * 512 if self.is_gpu else size

    def event(self):
        """A moment of the passes, in seconds on the processor."""
        if not self.is_gpu:
            return time.perf_counter()
        result = torch.cuda.Event(enable_timing=True)
        result.record()
        return result

    def seconds(self, begin, end):
        if not self.is_gpu:
            return end - begin
        end.synchronize()
        return begin.elapsed_time(end) / 1000

    def copy(self, to, of):
        """Copies behind all work of the passes so far; returns the end of the copy."""
        if not self.is_gpu:
            to.copy_(of)
            return None
        self.copies.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.copies):
            to.copy_(of, non_blocking=True)
            return self.copies.record_event()

    def wait(self, event):
        if event is not None:
            torch.cuda.current_stream().wait_event(event)

    def pinned(self, count):
        return torch.empty(count, dtype=torch.uint8, pin_memory=self.is_gpu)

    def rate(self):
        """Bytes in a second from pinned memory and to it, the slower of both."""
        here = torch.empty(1 << (28 if self.is_gpu else 20), dtype=torch.uint8, device=self.name)
        far = self.pinned(here.numel())
        rates = []
        for to, of in ((far, here), (here, far)):
            self.wait(self.copy(to, of))
            begin = self.event()
            for _ in range(4):
                self.wait(self.copy(to, of))
            rates.append(4 * here.numel() / self.seconds(begin, self.event()))
        return min(rates)


class ActiveBytes(contextlib.AbstractContextManager):
    """The bytes that the allocator of CUDA counts as active, without those at the begin."""

    def __init__(self, _):
        torch.cuda.synchronize()
        self.before = torch.cuda.memory_stats()["active_bytes.all.current"]

    def __exit__(self, *_):
        torch.cuda.synchronize()

    @property
    def live(self):
        return torch.cuda.memory_stats()["active_bytes.all.current"] - self.before

    @property
    def peak(self):
        return torch.cuda.memory_stats()["active_bytes.all.peak"] - self.before

    @peak.setter
    def peak(self, _):
        torch.cuda.reset_peak_memory_stats()


def moved_on(device, far):
    """Returns the class of storages that move on a device."""

    class Moved(base.Moved):
        def __init__(self, tensor, place):
            super().__init__(tensor, place)
            self.far = far[place:place + self.size]
            self.end = device.copy(self.far, self.bytes)

        def send(self, _):
            device.wait(self.end)
            self.bytes = None

        def fetch(self, _):
            if self.bytes is None:
                self.bytes = torch.empty(self.size, dtype=torch.uint8, device=device.name)
                self.end = device.copy(self.bytes, self.far)

        def wait(self):
            device.wait(self.end)

    return Moved


class TimedTrainer(base.Trainer):
    """A step that notes when each pass begins. Autograd holds the data, which therefore never move."""

    def __init__(self, device, *given, **named):
        super().__init__(*given, **named)
        self.device = device
        self.begins = []

    def input_of(self, data):
        self.parameters.add(data.untyped_storage().data_ptr())
        return data.detach().requires_grad_(True)

    def begin_forward(self, block):
        self.begins.append(self.device.event())
        super().begin_forward(block)

    def begin_backward(self, block):
        self.begins.append(self.device.event())
        super().begin_backward(block)


def run(device, model, choices, rate, layers, far, data):
    """Returns the peak, the seconds of each pass and the gradients of a step."""
    for one in model.parameters():
        one.grad = torch.zeros_like(one)
    trainer = TimedTrainer(device, model, choices, rate, layers, far, moved=moved_on(device, far))
    counter = (ActiveBytes if device.is_gpu else base.LiveBytes)(model)
    if not device.is_gpu:
        counter.seen.update((far.untyped_storage(), data.untyped_storage()))
    peaks, ends = trainer.step(data, counter)
    trainer.begins.append(device.event())
    seconds = [device.seconds(*pair) for pair in zip(trainer.begins, trainer.begins[1:])]
    return peaks, ends, trainer, seconds, [one.grad.clone() for one in model.parameters()]


def measured_layers(device, model, far, data):
    """The modules, the transient bytes and the times of a step that keeps everything."""
    keep = [("keep", "keep")] * len(model)
    run(device, model, keep, 0, None, far, data)
    peaks, ends, trainer, seconds, gradients = run(device, model, keep, 0, None, far, data)
    count, after, layers = len(model), 0, []
    for i, saved in enumerate(trainer.saved):
        sizes = [[device.allocated(size) for size, is_input in saved.values() if is_input == one]
                 for one in (True, False)]
        inputs, others = map(sum, sizes)
        after += inputs + others
        forward = max(0, peaks[i][0] - after)
        backward = max(forward, peaks[i][1] - after) + inputs
        need = "required" if i + 1 == count else "optional"
        layers.append(base.Layer(seconds[i], seconds[2 * count - 1 - i], forward, backward,
                                 [(inputs, 0, "required"), (others, seconds[i], need)],
                                 [max(one, default=0) for one in sizes]))
    return layers, gradients, sum(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--stand-in", action="store_true")
    given = parser.parse_args()
    if not given.stand_in and not torch.cuda.is_available():
        print("skipped: PyTorch has no CUDA device")
        return 77
    device = Device(not given.stand_in)
    torch.manual_seed(1)
    if given.stand_in:
        torch.set_num_threads(1)
    base.TOKENS, base.WIDTH, base.HEADS, base.BLOCKS = ((64, 32, 2, 12) if given.stand_in else
                                                       (8192, 2048, 16, 48))
    model = torch.nn.ModuleList([base.Attention() if i % 2 == 0 else base.Mlp()
                                 for i in range(base.BLOCKS)])
    model.append(base.Loss())
    model.to(device.name)
    data = torch.randn(base.TOKENS, base.WIDTH, device=device.name)
    layers, gradients, seconds = measured_layers(device, model, device.pinned(0), data)
    saved = sum(size for layer in layers for size, _, _ in layer.modules)
    far = device.pinned(saved)
    passes = sum(layer.forward for layer in layers)
    # On the processor the link is slow enough for tensors to wait.
    rate = 0.9 * device.rate() if device.is_gpu else saved / passes / 3
    print(f"link {rate / 1e9:.3g} GB/s, {saved / 1e6:.0f} MB saved, {seconds * 1e3:.1f} ms with all kept")
    optional = [layer.modules[1][2] == "optional" for layer in layers]
    every = {
        "keep": [("keep", "keep")] * len(layers),
        "recompute": [("keep", "recompute" if one else "keep") for one in optional],
        "offload": [("offload", "offload")] * len(layers),
        "recompute, inputs offloaded": [("offload", "recompute" if one else "offload")
                                        for one in optional],
    }
    predicted = [base.plan(given.program, rate, layers, choices=one)[0] for one in every.values()]
    least, most = min(predicted), max(predicted)
    for share in (75, 50, 25):
        budget = least + (most - least) * share // 100
        every[f"mixed, budget at {share} %"] = base.plan(given.program, rate, layers, budget)[1]
    is_wrong = False
    print(f"{'choices':28} {'predicted':>12} {'measured':>12} {'below':>7} {'ms':>8}  "
          "kept/recomputed/offloaded")
    for name, choices in every.items():
        predicted, _ = base.plan(given.program, rate, layers, choices=choices)
        peaks, _, _, seconds, found = run(device, model, choices, rate, layers, far, data)
        measured = max(max(one) for one in peaks)
        below = 1 - measured / predicted
        # Attention on a GPU adds gradients in any order.
        is_equal = all(torch.allclose(a, b, rtol=1e-3, atol=1e-5) if device.is_gpu
                       else torch.equal(a, b) for a, b in zip(gradients, found))
        largest = max(size for layer in layers for size in layer.largest)
        is_near = measured + largest >= 0.95 * predicted or not device.is_gpu
        is_wrong |= below < 0 or not is_equal or not is_near
        counts = collections.Counter(one[1] for one in choices)
        print(f"{name:28} {predicted:12} {measured:12} {below:7.2%} {sum(seconds) * 1e3:8.1f}  "
              f"{counts['keep']}/{counts['recompute']}/{counts['offload']}"
              f"{'' if is_equal else '  other gradients'}")
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
