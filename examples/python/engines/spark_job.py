# SPDX-License-Identifier: Apache-2.0
"""Packs shards in tasks of Spark, which shows a bar for each pass.

    spark-submit --py-files shards.py spark_job.py --samples 1000000 --shards 16

`python spark_job.py` runs all tasks on this machine.
"""

import os
import sys

import pyspark

import shards


def run(job, context):
    """Returns the plan and what was placed, shard by shard."""
    context.addPyFile(shards.__file__)  # for the workers
    numbers = range(job.shards)
    context.setJobDescription("counted")
    histograms = context.parallelize(numbers, job.shards).map(job.count).collect()
    plan, before = job.plan(histograms)
    sent = context.broadcast(plan)
    tasks = context.parallelize(list(zip(numbers, before)), job.shards)
    context.setJobDescription("placed")
    return plan, tasks.map(lambda task: job.place(*task, sent.value)).collect()


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = pyspark.SparkConf().set("spark.ui.showConsoleProgress", "true")
    with pyspark.SparkContext.getOrCreate(settings) as context:
        shards.report(*run(shards.read_job(__doc__), context))
