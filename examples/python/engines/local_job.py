# SPDX-License-Identifier: Apache-2.0
"""Packs shards in processes of one machine, without an engine.

    python local_job.py --samples 1000000 --shards 16 --processes 2
"""

import concurrent.futures
import itertools

import shards


def run(job, processes=2):
    """Returns the plan and what was placed, shard by shard."""
    with concurrent.futures.ProcessPoolExecutor(processes) as pool:
        numbers = range(job.shards)
        histograms = list(shards.show(pool.map(job.count, numbers), "counted", job.shards))
        plan, before = job.plan(histograms)
        placed = pool.map(job.place, numbers, before, itertools.repeat(plan))
        return plan, list(shards.show(placed, "placed", job.shards))


if __name__ == "__main__":
    shards.report(*run(shards.read_job(__doc__)))
