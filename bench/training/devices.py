# SPDX-License-Identifier: Apache-2.0
"""One GPU or the processor: its name, times and bytes, and the time that is left."""

import contextlib
import time

import torch

import measure_offload


class OutOfTime(Exception):
    """No time is left for the rest of the parts."""


class Clock:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()

    def check(self):
        if self.left() <= 0:
            raise OutOfTime


class Device:
    """A GPU with bf16, or one thread of the processor with 32 bits."""

    def __init__(self, is_gpu):
        self.is_gpu = is_gpu
        self.place = torch.device("cuda" if is_gpu else "cpu")
        self.dtype = torch.bfloat16 if is_gpu else torch.float32
        self.name = torch.cuda.get_device_name() if is_gpu else "processor"

    def now(self):
        """Seconds by the clock after all work of a GPU, or of the processor's own time."""
        if not self.is_gpu:
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    def seconds(self, function):
        begin = self.now()
        function()
        return self.now() - begin

    def memory(self):
        return torch.cuda.get_device_properties(0).total_memory if self.is_gpu else 0

    def allocated(self, tensors):
        """The bytes of tensors; the allocator of CUDA rounds them up to 512."""
        sizes = (one.numel() * one.element_size() for one in tensors)
        return sum(-(-size // 512) * 512 if self.is_gpu else size for size in sizes)

    def peak_bytes(self, function, model, states):
        """The largest number of bytes during a function: those that PyTorch's allocator counts on
        a GPU, or on the processor `states` and the tensors that operations made."""
        if not self.is_gpu:
            with measure_offload.LiveBytes(model) as counter:
                function()
            return states + counter.peak
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        function()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()


@contextlib.contextmanager
def offloading(model):
    """Copies each tensor that autograd saves, except parameters, to memory of the host and back.
    Copies do not overlap with the passes."""
    own = {one.untyped_storage().data_ptr() for one in model.parameters()}

    def pack(tensor):
        is_plain = type(tensor) is torch.Tensor
        if not is_plain or tensor.untyped_storage().data_ptr() in own:
            return tensor
        if not tensor.is_cuda:
            return tensor.detach().numpy().copy()
        copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return copy.copy_(tensor), tensor.device

    def unpack(saved):
        if isinstance(saved, torch.Tensor):
            return saved
        if isinstance(saved, tuple):
            return saved[0].to(saved[1])
        return torch.from_numpy(saved).clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield
