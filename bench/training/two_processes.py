# SPDX-License-Identifier: Apache-2.0
"""Two processes of the processor train as one does: the samples of a step in micro-batches of
omnibal, the gradients summed by Gloo."""

import pathlib
import tempfile

import numpy as np
import torch

import omnibal
from devices import Device
from model import attend_in_turn
from parts import print_table, relative
from trainer import Trainer

STEPS, SAMPLES = 3, 12
WEIGHTS = ("the same weight for each token", "mean of means")


def samples_of(data, step):
    return data.samples[step * SAMPLES:(step + 1) * SAMPLES]


def share_of(data, step, rank):
    """The micro-batches of a rank in a step."""
    samples = samples_of(data, step)
    demands = data.demands(samples)
    steps = omnibal.micro_batches(demands[1], 2, demands, data.capacity)
    return [[samples[i] for i in steps[m, rank]] for m in range(len(steps))
            if steps[m, rank].size]


def factor_of(data, groups, weight):
    """By what a rank multiplies the sum of its losses, before gradients are averaged."""
    own = sum(map(data.loss_tokens, groups))
    counts = [torch.zeros(1, dtype=torch.int64) for _ in range(2)]
    torch.distributed.all_gather(counts, torch.tensor([own]))
    if weight != WEIGHTS[0]:
        return 1 / own
    return omnibal.loss_normalizer([int(one) for one in counts])


def averaged(tensor):
    torch.distributed.all_reduce(tensor)
    return tensor / 2


def train_rank(rank, data, folder):
    """One process; the first writes gradients of the first step and losses of all steps."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                         world_size=2)
    result = {}
    for weight in WEIGHTS:
        trainer = Trainer(data, Device(False), attend_in_turn)
        losses = []
        for step in range(STEPS):
            groups = share_of(data, step, rank)
            factor = factor_of(data, groups, weight)
            loss = factor * sum(trainer.passes(trainer.batch(one), factor) for one in groups)
            losses.append(float(averaged(loss)))
            for one in trainer.model.parameters():
                one.grad.copy_(averaged(one.grad))
            if step == 0:
                gradient = torch.cat([one.grad.flatten() for one in trainer.model.parameters()])
            trainer.optimizer.step()
            trainer.clear()
        result[weight] = (gradient, losses)
    if rank == 0:
        torch.save(result, pathlib.Path(folder) / "result")
    torch.distributed.destroy_process_group()


def train_one(session):
    """The same steps in one process, each as one micro-batch."""
    data = session.data
    trainer = Trainer(data, session.device, session.attend)
    gradient = trainer.gradients([samples_of(data, 0)])[1]
    losses = []
    for step in range(STEPS):
        samples = samples_of(data, step)
        losses.append(float(trainer.step([trainer.batch(samples)], 1 / data.loss_tokens(samples))))
    return gradient, np.array(losses)


def two_processes(session):
    """Gradients and losses of two processes are those of one; the mean of means differs."""
    expected, losses = train_one(session)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train_rank, (session.data, folder), nprocs=2)
        found = torch.load(pathlib.Path(folder) / "result", weights_only=True)
    off = {weight: (relative(gradient, expected), abs(np.array(one) / losses - 1).max())
           for weight, (gradient, one) in found.items()}
    print_table(session.device, ("two processes", "gradients off", "losses off"),
                [(weight, *(f"{one:.1e}" for one in both)) for weight, both in off.items()])
    same, wrong = (off[weight] for weight in WEIGHTS)
    return same[0] < 1e-5 and same[1] < 1e-4 and wrong[0] > 1e-3
