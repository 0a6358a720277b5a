# SPDX-License-Identifier: Apache-2.0
"""Moves samples between ranks with `omnibal.make_plan` and `all_to_all_single` of PyTorch.

Each rank reads its own samples. The ranks gather the lengths, compute the same plan, and send each
sample to the rank that the plan names. The inverse of the plan returns one result for each sample.
Run it on the CPU with the backend Gloo:

    torchrun --nproc-per-node 4 examples/programs/exchange_samples.py

`exchange` needs no PyTorch: it takes the collective as a function of NumPy arrays.
"""

import numpy as np
import omnibal


def exchange(all_to_all, plan, rank, values, sizes):
    """Returns the values that a rank has after the exchange, in the order of `plan.arrivals[rank]`.

    `values` are the elements of the samples of this rank, one sample after the other, and `sizes` is
    the number of elements of each sample of all ranks before the exchange.
    `all_to_all(sent, send_sizes, receive_sizes)` returns the received elements by ascending rank.
    """
    sizes = np.asarray(sizes)
    homes = plan.home_offsets.astype(np.int64)
    own = sizes[homes[rank]:homes[rank + 1]]
    begins = np.concatenate([[0], np.cumsum(own)])
    sends = plan.sends(rank)
    sent = [values[begins[place]:begins[place + 1]] for place in sends.items]
    send_sizes = [int(own[places].sum()) for places in sends]
    arrivals = plan.arrivals[rank].astype(np.int64)
    senders = np.searchsorted(homes, arrivals, side="right") - 1
    receive_sizes = np.bincount(senders, weights=sizes[arrivals], minlength=plan.ranks)
    received = all_to_all(np.concatenate([values[:0], *sent]), send_sizes,
                          receive_sizes.astype(np.int64).tolist())
    # Samples arrive by sender, and those of a sender in the order of the plan.
    by_sender = np.argsort(senders, kind="stable")
    ends = np.cumsum(sizes[arrivals[by_sender]])
    pieces = np.split(received, ends[:-1]) if len(ends) else []
    result = [received[:0]] * len(arrivals)
    for place, piece in zip(by_sender, pieces):
        result[place] = piece
    return np.concatenate([received[:0], *result])


def run(rank, ranks, gather, all_to_all):
    """A step: exchange, work on the samples, and return one result for each sample to its home."""
    random = np.random.RandomState(rank)
    lengths = random.randint(1, 1 + 40 * (rank + 1), 6)  # later ranks have longer samples
    tokens = np.concatenate([np.full(n, 10 * rank + i) for i, n in enumerate(lengths)])
    gathered = gather(lengths)
    home_offsets = np.concatenate([[0], np.cumsum([len(part) for part in gathered])])
    sizes = np.concatenate(gathered)
    costs = sizes * sizes  # attention; any cost that all ranks compute alike
    plan = omnibal.make_plan(home_offsets, costs, sizes * tokens.itemsize)

    received = exchange(all_to_all, plan, rank, tokens, sizes)
    own = sizes[plan.arrivals[rank]]
    results = np.add.reduceat(received, np.cumsum(own) - own) if len(own) else received
    back = plan.inverse()
    returned = exchange(all_to_all, back, rank, results, np.ones(len(sizes), dtype=int))

    expected = [length * (10 * rank + i) for i, length in enumerate(lengths)]
    assert returned.tolist() == expected, (returned, expected)
    before = [int(part @ part) for part in gathered]
    after = [int(costs[part].sum()) for part in plan.arrivals]
    return plan, before, after


def main():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def gather(values):
        result = [None] * ranks
        dist.all_gather_object(result, values)
        return result

    def all_to_all(sent, send_sizes, receive_sizes):
        received = torch.empty(sum(receive_sizes), dtype=torch.int64)
        dist.all_to_all_single(received, torch.from_numpy(sent), receive_sizes, send_sizes)
        return received.numpy()

    plan, before, after = run(rank, ranks, gather, all_to_all)
    if rank == 0:
        print("largest load over mean load: %.2f before, %.2f after, %d of %d bytes moved" % (
            omnibal.imbalance(before), omnibal.imbalance(after), plan.moved_bytes, plan.bytes.sum()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
