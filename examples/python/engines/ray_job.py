# SPDX-License-Identifier: Apache-2.0
"""Packs shards in a data set of Ray Data.

    python ray_job.py --samples 1000000 --shards 16

On a cluster, submit the folder: `ray job submit --working-dir . -- python ray_job.py`.
"""

import pickle

import ray.data

import shards


def rows_of(dataset, text, count):
    """Returns the rows of a data set by ascending shard, and shows how many there are."""
    rows = list(shards.show(dataset.iter_rows(), text, count))
    return sorted(rows, key=lambda row: row["shard"])


def run(job):
    """Returns the plan and what was placed, shard by shard."""
    def count(row):
        return {"shard": row["id"], "histogram": pickle.dumps(job.count(row["id"]))}

    def place(row, plan):
        placed = job.place(row["shard"], pickle.loads(row["before"]), plan)
        return placed._asdict()

    numbers = ray.data.range(job.shards, override_num_blocks=job.shards)
    histograms = rows_of(numbers.map(count), "counted", job.shards)
    plan, before = job.plan(pickle.loads(row["histogram"]) for row in histograms)
    tasks = ray.data.from_items(
        [{"shard": shard, "before": pickle.dumps(one)} for shard, one in enumerate(before)],
        override_num_blocks=job.shards)
    # Ray puts the function and its arguments into the object store once.
    placed = tasks.map(place, fn_kwargs={"plan": plan})
    return plan, [shards.Placed(**row) for row in rows_of(placed, "placed", job.shards)]


if __name__ == "__main__":
    shards.report(*run(shards.read_job(__doc__)))
