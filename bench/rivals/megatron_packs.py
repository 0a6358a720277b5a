# SPDX-License-Identifier: Apache-2.0
"""Packs the same batches by Megatron-Core's DpBalancedScheduler and by omnibal, and prints a table:
megatron_packs.py [--quick].

A row has the packs of a batch, and the share of the work of the ranks that they wait in the
micro-batches of the batch, both on average over the batches. The work of a sample is
length**2 + 24576 * length. If Megatron-Core is installed, its class runs; else its algorithm,
written anew in rivals.py.
"""

import importlib
import sys

import numpy as np

import rivals
from omnibal.compat import megatron

QUICK = "--quick" in sys.argv[1:]
BATCHES = 2 if QUICK else 20
SAMPLES = 1024
CAPACITY = 32768


def theirs(samples, ranks, multiple):
    """The packs of Megatron-Core in its order."""
    packs = rivals.in_order(samples, CAPACITY, ranks * multiple)
    try:
        module = importlib.import_module("megatron.core.datasets.data_schedule")
    except ImportError:
        return packs
    scheduler = module.DpBalancedScheduler(CAPACITY, 1, ranks, multiple)
    found = [pack for packs in scheduler.get_groups_and_subsamples(samples) for pack in packs]
    assert found == packs
    return found


def ours(samples, ranks, multiple):
    """The packs of omnibal."""
    scheduler = megatron.DpBalancedScheduler(CAPACITY, 1, ranks, multiple)
    return [pack for packs in scheduler.get_groups_and_subsamples(samples) for pack in packs]


def waiting(packs, lengths, ranks):
    """The share of the ranks' time in which they wait for the slowest rank of a micro-batch."""
    work = np.array([sum(lengths[i] ** 2 + 24576 * lengths[i] for i in pack) for pack in packs])
    return 1 - work.sum() / (ranks * work.reshape(-1, ranks).max(axis=1).sum())


def main():
    """Prints the table."""
    print("| lengths | ranks, multiple | least packs | Megatron-Core: packs | waiting "
          "| omnibal: packs | waiting |")
    print("|---|---|---|---|---|---|---|")
    for name, median, sigma in (("1,500", 1500, 1.0), ("2,500", 2500, 1.6)):
        for ranks, multiple in ((8, 1), (32, 1), (8, 8)):
            random = np.random.RandomState(3)
            rows = []
            for _ in range(BATCHES):
                lengths = np.exp(random.normal(np.log(median), sigma, SAMPLES))
                lengths = np.clip(lengths, 16, CAPACITY).astype(int).tolist()
                samples = list(enumerate(lengths))
                step = ranks * multiple
                row = [-(-sum(lengths) // (CAPACITY * step)) * step]
                for packs in (theirs(samples, ranks, multiple), ours(samples, ranks, multiple)):
                    assert sorted(i for pack in packs for i in pack) == list(range(SAMPLES))
                    row += [len(packs), 100 * waiting(packs, lengths, ranks)]
                assert row[0] <= row[3] <= row[1]
                rows.append(row)
            print("| median %s, sigma %.1f | %d, %d | %.1f | %.1f | %.1f %% | %.1f | %.1f %% |"
                  % ((name, sigma, ranks, multiple) + tuple(np.mean(rows, axis=0))))


if __name__ == "__main__":
    main()
