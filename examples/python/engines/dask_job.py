# SPDX-License-Identifier: Apache-2.0
"""Packs shards in tasks of Dask.

    python dask_job.py --samples 1000000 --shards 16

Without a scheduler, Dask starts one process for each core. For the scheduler of a cluster, set
DASK_SCHEDULER_ADDRESS, and let its workers find `shards.py`: `client.upload_file("shards.py")`.
"""

import dask.distributed

import shards


def gathered(client, futures, text):
    """Returns the results of futures in their order, and shows how many have ended."""
    for _ in shards.show(dask.distributed.as_completed(futures), text, len(futures)):
        pass
    return client.gather(futures)


def run(job, client):
    """Returns the plan and what was placed, shard by shard."""
    numbers = range(job.shards)
    histograms = gathered(client, client.map(job.count, numbers, pure=False), "counted")
    plan, before = job.plan(histograms)
    sent = client.scatter(plan, broadcast=True, hash=False)
    earlier = client.scatter(before, hash=False)
    tasks = [client.submit(job.place, k, earlier[k], sent, pure=False) for k in numbers]
    return plan, gathered(client, tasks, "placed")


if __name__ == "__main__":
    with dask.distributed.Client() as client:
        shards.report(*run(shards.read_job(__doc__), client))
