# SPDX-License-Identifier: Apache-2.0
"""A model with AdamW on one device: passes of micro-batches, steps, and their gradients."""

import contextlib

import torch

from batches import make_batch
from devices import offloading
from model import Vlm


class Trainer:
    def __init__(self, data, device, attend, seed=1):
        torch.manual_seed(seed)
        self.data = data
        self.device = device
        with device.place:
            self.model = Vlm(data.size, attend).to(device.dtype)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=2e-4 if device.is_gpu else 5e-3, fused=device.is_gpu)
        self.is_offloaded = False
        for one in self.model.parameters():
            one.grad = torch.zeros_like(one)

    def batch(self, samples, is_padded=False):
        return make_batch(self.data, samples, is_padded, self.device.place, self.device.dtype)

    def passes(self, batch, factor=1.0):
        """Adds the gradients of the sum of losses times the factor; returns the sum of losses."""
        with offloading(self.model) if self.is_offloaded else contextlib.nullcontext():
            loss = self.model.loss_sum(batch)
        (loss * factor).backward()
        return loss.detach()

    def clear(self):
        self.optimizer.zero_grad(set_to_none=False)

    def step(self, batches, factor):
        """Trains on micro-batches; returns the mean loss of a token if the factor is 1 / tokens."""
        loss = sum(self.passes(one, factor) for one in batches)
        self.optimizer.step()
        self.clear()
        return loss * factor

    def states(self):
        """Parameters, gradients and moments in bytes. The moments exist after a step."""
        tensors = list(self.model.parameters())
        tensors += [one.grad for one in tensors]
        tensors += [value for state in self.optimizer.state.values() for value in state.values()
                    if isinstance(value, torch.Tensor) and value.device.type == self.device.place.type]
        return self.device.allocated(tensors)

    def gradients(self, groups, is_padded=False):
        """The mean loss and the gradients of micro-batches, 32 bits each, on the host."""
        factor = 1 / sum(map(self.data.loss_tokens, groups))
        loss = factor * sum(float(self.passes(self.batch(one, is_padded), factor))
                            for one in groups)
        result = torch.cat([one.grad.float().flatten().cpu() for one in self.model.parameters()])
        self.clear()
        return loss, result
