# SPDX-License-Identifier: Apache-2.0
"""What a packing job does with each shard, whichever engine runs it.

1. map: `Job.count` returns the histogram of the lengths of a shard.
2. reduce: `Job.plan` merges the histograms in the order of the shards and packs the sum. It also
   returns the histogram of the shards before each shard.
3. map: `Job.place` finds the group of each sample of a shard, writes the groups to a file if there
   is a folder for them, and returns a digest of them.

No task sees the samples of another shard. The data between tasks are histograms: 16 bytes for each
different length, from and to each shard. A plan is sent as its histogram, and packed again where it
arrives.
"""

import argparse
import collections
import copy
import dataclasses
import hashlib
import pathlib
import sys
import time
from typing import Optional

import numpy as np
import omnibal

# The number of a shard, its samples, the samples in groups, and a digest of their groups.
Placed = collections.namedtuple("Placed", "shard samples in_groups digest")


@dataclasses.dataclass(frozen=True)
class Job:
    """Files `*.npy` of lengths in a folder, a shard each, or lengths that each shard draws."""

    capacity: int = 4096
    shards: int = 16
    samples: int = 10**6  # of all shards, if they are drawn
    folder: Optional[str] = None
    output: Optional[str] = None  # a folder for the files `*.npy` of groups

    def lengths(self, shard):
        """Returns the lengths of a shard, int64."""
        if self.folder is not None:
            return np.load(self._files()[shard]).astype(np.int64, copy=False)
        first, last = (self.samples * k // self.shards for k in (shard, shard + 1))
        random = np.random.default_rng([7, shard])
        drawn = random.standard_normal(last - first, dtype=np.float32)
        # Log-normal with a median of 700 tokens.
        return np.minimum(1 + np.exp(1.2 * drawn + np.log(700)), self.capacity).astype(np.int64)

    def count(self, shard):
        return omnibal.count_samples(self.lengths(shard))

    def plan(self, histograms):
        """Returns the plan, and a list of the samples before each shard."""
        before = omnibal.SampleHistogram([], [])
        earlier = []
        for histogram in histograms:
            earlier.append(copy.copy(before))
            before.merge(histogram)
        return omnibal.pack_histogram(before, self.capacity), earlier

    def place(self, shard, before, plan):
        groups = omnibal.place_samples(plan, before, self.lengths(shard))
        if self.output is not None:
            np.save(pathlib.Path(self.output) / f"groups-{shard:05d}.npy", groups)
        digest = hashlib.blake2b(groups.tobytes(), digest_size=16).hexdigest()
        return Placed(shard, groups.size, int((groups != omnibal.NO_GROUP).sum()), digest)

    def _files(self):
        return sorted(pathlib.Path(self.folder).glob("*.npy"))


def show(results, text, count):
    """Yields the results as they come, and prints how many there are of `count`."""
    start = time.monotonic()
    for done, result in enumerate(results, 1):
        end = "\n" if done == count else ""
        print(f"\r{text}: {done} of {count} shards, {time.monotonic() - start:.1f} s", end=end,
              file=sys.stderr, flush=True)
        yield result


def read_job(doc):
    """Returns the job of the command line."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--capacity", type=int, default=Job.capacity)
    parser.add_argument("--shards", type=int, default=Job.shards)
    parser.add_argument("--samples", type=int, default=Job.samples, help="drawn, without a folder")
    parser.add_argument("--folder", help="files *.npy of lengths, a shard each")
    parser.add_argument("--output", help="a folder for the groups of each shard")
    job = Job(**vars(parser.parse_args()))
    if job.folder is not None:
        job = dataclasses.replace(job, shards=len(job._files()))
    return job


def report(plan, placed):
    """Prints the plan, and one digest of the groups of all shards."""
    digest = hashlib.blake2b("".join(one.digest for one in placed).encode(), digest_size=16)
    in_groups = sum(one.in_groups for one in placed)
    print(f"{plan}: {in_groups} of {sum(one.samples for one in placed)} samples")
    print(f"digest of all groups: {digest.hexdigest()}")
