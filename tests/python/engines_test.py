# SPDX-License-Identifier: Apache-2.0
"""Packing jobs on Ray Data, Spark and Dask: the same plan and the same groups as in one process."""

import importlib.util
import os
import pathlib
import pickle
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
import omnibal

ENGINES = pathlib.Path(os.environ["OMNIBAL_ROOT"]) / "examples/python/engines"
sys.path.insert(0, str(ENGINES))

import local_job
import shards

JOB = shards.Job(capacity=4096, shards=5, samples=10**5)


def in_one_process(job):
    plan, before = job.plan(job.count(shard) for shard in range(job.shards))
    return plan, [job.place(shard, before[shard], plan) for shard in range(job.shards)]


def needs(module):
    return unittest.skipUnless(importlib.util.find_spec(module), f"{module} is not installed")


def check(test, found):
    plan, placed = in_one_process(JOB)
    test.assertEqual(found[0], plan)
    test.assertEqual(found[1], placed)
    test.assertEqual(sum(one.in_groups for one in placed), JOB.samples)


class Jobs(unittest.TestCase):
    def test_processes(self):
        check(self, local_job.run(JOB))

    def test_groups_contain_each_sample_once_whatever_the_shards(self):
        lengths = np.random.default_rng(3).integers(1, 1100, 20_000)
        found = []
        for count in (1, 3, 7):
            with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as output:
                for k, part in enumerate(np.array_split(lengths, count)):
                    np.save(pathlib.Path(folder) / f"part-{k}.npy", part.astype(np.int32))
                job = shards.Job(capacity=1000, shards=count, folder=folder, output=output)
                plan, placed = in_one_process(job)
                files = sorted(pathlib.Path(output).glob("*.npy"))
                found.append(np.concatenate([np.load(file) for file in files]))
            self.assertEqual([one.shard for one in placed], list(range(count)))
            self.assertEqual(sum(one.in_groups for one in placed), (lengths <= 1000).sum())
        for groups in found[1:]:
            np.testing.assert_array_equal(groups, found[0])
        inside = found[0] != omnibal.NO_GROUP
        np.testing.assert_array_equal(inside, lengths <= 1000)
        loads = np.bincount(found[0][inside].astype(np.int64), weights=lengths[inside])
        self.assertEqual(loads.size, plan.group_count)
        self.assertLessEqual(loads.max(), 1000)
        self.assertGreater(loads.min(), 0)

    def test_data_between_tasks_are_histograms(self):
        plan, _ = in_one_process(JOB)
        self.assertLess(len(pickle.dumps(plan)), 16 * len(plan.histogram) + 1000)


class Engines(unittest.TestCase):
    @needs("distributed")
    def test_dask(self):
        import dask.distributed
        import dask_job
        cluster = dask.distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None)
        with cluster, dask.distributed.Client(cluster) as client:
            check(self, dask_job.run(JOB, client))

    @needs("pyspark")
    def test_spark(self):
        import pyspark
        import spark_job
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        with pyspark.SparkContext("local[2]") as context:
            check(self, spark_job.run(JOB, context))

    @needs("ray")
    @needs("pyarrow")
    def test_ray(self):
        import ray
        import ray_job
        # Workers import shards.py from the folder of the program, which is another folder here.
        path = os.pathsep.join([str(ENGINES), os.environ.get("PYTHONPATH", "")])
        with unittest.mock.patch.dict(os.environ, PYTHONPATH=path):
            ray.init(num_cpus=2, include_dashboard=False)
        try:
            check(self, ray_job.run(JOB))
        finally:
            ray.shutdown()


if __name__ == "__main__":
    unittest.main()
