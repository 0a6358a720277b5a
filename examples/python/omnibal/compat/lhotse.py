# SPDX-License-Identifier: Apache-2.0
"""Batches of Lhotse's cuts under a limit that counts padding.

`Constraint` has the methods of `lhotse.dataset.sampling.base.SamplingConstraint` of version 1.33.
Derive your constraint from both, and pass it to Lhotse's samplers:
`class Limit(Constraint, SamplingConstraint): ...`. `BucketingSampler` takes the place of
`lhotse.dataset.BucketingSampler`. The module imports Lhotse only to make a `CutSet`.
"""

import copy
import math
import warnings
from bisect import bisect_left
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

import numpy as np

from .. import _core
from ._integers import named, whole_number


class Constraint:
    """A limit of a batch: its number of examples times its longest example, or their sum.

    A sampler of Lhotse closes a batch if `close_to_exceeding` says so, that is before the next
    example is known. In a bucketing sampler the next example is at most as long as its bucket, and
    `longest` limits the last bucket. Therefore no batch of several examples exceeds the capacity if
    `longest` is given, whereas Lhotse's own constraints expect an example like the longest before.

    Args:
        capacity: the limit in the unit of `measure_length`: seconds for cuts, tokens for texts.
        max_examples: the limit of the number of examples.
        quadratic: an example of this length counts twice, as with Lhotse's `quadratic_duration`: its
            size is `length + length**2 / quadratic`.
        longest: the largest length of an example in the data. A longer example is a warning,
            because its batch may exceed the capacity.
        padded: False if examples are concatenated, so that their sizes add up.
    """

    @named
    def __init__(
        self,
        capacity: float,
        *,
        max_examples: Optional[int] = None,
        quadratic: Optional[float] = None,
        longest: Optional[float] = None,
        padded: bool = True,
    ) -> None:
        for name, value in (("capacity", capacity), ("quadratic", quadratic), ("longest", longest)):
            if value is not None and not value > 0:
                raise ValueError("omnibal: %s is %s, must be positive" % (name, value))
        if max_examples is not None:
            max_examples = whole_number(max_examples, "max_examples", 1)
        self.capacity = capacity
        self.max_examples = max_examples
        self.quadratic = quadratic
        self.longest = longest
        self.padded = padded
        self._buckets: Sequence[float] = ()
        self.examples = 0
        self.current = 0.0
        self.longest_seen = 0.0

    def size(self, length: float) -> float:
        """The size of an example of a length, in the unit of the capacity."""
        return length if self.quadratic is None else length + length * length / self.quadratic

    def measure_length(self, example: Any) -> float:
        """The duration of a cut, or the tokens of a text."""
        length = getattr(example, "duration", None)
        result: float = example.num_tokens if length is None else length
        return result

    def add(self, example: Any) -> None:
        """Counts an example of the batch."""
        length = self.measure_length(example)
        if self.longest is not None and length > self.longest:
            warnings.warn(
                "omnibal.compat.lhotse.Constraint: an example of length %s exceeds longest, %s; its "
                "batch may exceed the capacity" % (length, self.longest)
            )
        self.examples += 1
        self.current += self.size(length)
        self.longest_seen = max(self.longest_seen, length)

    def _used(self, examples: int, longest: float) -> float:
        """The size of a batch with its longest example, and of the examples added to this one."""
        if self.padded:
            return examples * self.size(longest)
        return self.current + (examples - self.examples) * self.size(longest)

    def exceeded(self) -> bool:
        """Whether the batch exceeds a limit."""
        if self.max_examples is not None and self.examples > self.max_examples:
            return True
        return self.examples > 0 and self._used(self.examples, self.longest_seen) > self.capacity

    def close_to_exceeding(self) -> bool:
        """Whether one more example could exceed a limit."""
        if self.max_examples is not None and self.examples >= self.max_examples:
            return True
        place = bisect_left(self._buckets, self.longest_seen)
        bound = self._buckets[place] if place < len(self._buckets) else self.longest
        next_longest = self.longest_seen if bound is None else max(bound, self.longest_seen)
        return self._used(self.examples + 1, next_longest) > self.capacity

    def reset(self) -> None:
        """Begins another batch."""
        self.examples = 0
        self.current = 0.0
        self.longest_seen = 0.0

    def select_bucket(self, buckets: Any, example: Any = None, example_len: Any = None) -> int:
        """The first bucket whose largest length is at least the length of the example."""
        if (example is None) == (example_len is None):
            raise ValueError("omnibal: select_bucket requires either example or example_len")
        self._buckets = buckets
        length = self.measure_length(example) if example_len is None else example_len
        return bisect_left(buckets, length)

    def copy(self) -> "Constraint":
        """A shallow copy."""
        return copy.copy(self)


def _cut_set(cuts: List[Any]) -> Any:
    from lhotse import CutSet

    return CutSet.from_cuts(cuts)


class BucketingSampler:
    """Yields batches of cuts of similar length, the same number on each rank, in even steps.

    Each epoch has another order, of which `omnibal.pack_padded` packs every `buffer_size` cuts into
    the fewest batches under the constraint. `omnibal.schedule_steps` gives the ranks of a step
    batches of similar size. In an epoch each cut is in one batch. If the batches do not fill the
    last step, fewer of them than ranks run twice, or with `drop_last` not at all. A cut that exceeds
    the capacity alone is a batch alone, with a warning, as in Lhotse.

    Use it as a `sampler` of a PyTorch loader with `batch_size=None`.

    Args:
        cuts: a set of cuts, which is listed at once.
        constraint: the limit of a batch.
        buffer_size: the number of cuts that are packed together. More cuts need fewer batches.
        shuffle: False for the order of the cuts in each epoch.
        drop_last: True leaves out the batches of the last step that does not fill all ranks.
        world_size: the number of ranks.
        rank: this rank.
        seed: another seed gives another order. All ranks must use the same seed.
        make_batch: makes a batch of a list of cuts. Default: `lhotse.CutSet.from_cuts`.
    """

    # Lengths count in thousandths of their unit, rounded up, and the capacity rounded down.
    _RESOLUTION = 1000

    @named
    def __init__(
        self,
        cuts: Iterable[Any],
        constraint: Constraint,
        *,
        buffer_size: int = 20000,
        shuffle: bool = True,
        drop_last: bool = False,
        world_size: int = 1,
        rank: int = 0,
        seed: int = 0,
        make_batch: Callable[[List[Any]], Any] = _cut_set,
    ) -> None:
        self.world_size = whole_number(world_size, "world_size", 1)
        self.rank = whole_number(rank, "rank", 0)
        if self.rank >= self.world_size:
            raise ValueError(
                "omnibal: rank is %d, must be from 0 to %d" % (self.rank, self.world_size - 1)
            )
        self.constraint = constraint
        self.buffer_size = whole_number(buffer_size, "buffer_size", 1)
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.seed = whole_number(seed, "seed", 0)
        self.epoch = 0
        self._make_batch = make_batch
        self._items = list(cuts)
        sizes = [constraint.size(constraint.measure_length(cut)) for cut in self._items]
        self._sizes = np.ceil(np.round(np.array(sizes) * self._RESOLUTION, 6)).astype(np.int64)
        self._next = 0
        self._batches = self._plan()

    def _plan(self) -> List[List[int]]:
        """The batches of this rank in the epoch."""
        count = len(self._items)
        order = np.arange(count)
        if self.shuffle and count:
            order = _core.EpochSampler(
                count, batch=count, seed=self.seed, epoch=self.epoch
            ).next()
        capacity = math.floor(round(self.constraint.capacity * self._RESOLUTION, 6))
        most = self.constraint.max_examples or max(count, 1)
        batches: List[List[int]] = []
        for first in range(0, count, self.buffer_size):
            window = order[first : first + self.buffer_size]
            demands = (self._sizes[window], np.ones_like(window))
            pack = _core.pack_padded if self.constraint.padded else _core.best_packing
            packed = pack(demands, (capacity, most))
            batches += [window[group].tolist() for group in packed.groups]
            batches += [[int(window[i])] for i in packed.oversized]
        if not batches:
            return []
        if self.constraint.padded:
            loads = [len(batch) * int(self._sizes[batch].max()) for batch in batches]
        else:
            loads = [int(self._sizes[batch].sum()) for batch in batches]
        steps = _core.schedule_steps(
            loads,
            self.world_size,
            seed=self.seed,
            epoch=self.epoch,
            remainder="short_step" if self.drop_last else "repeat",
        )
        full = [s for s in range(len(steps)) if all(cell.size for cell in steps[s])]
        return [batches[int(b)] for s in full for b in steps[s, self.rank]]

    def __len__(self) -> int:
        """The number of batches of this rank that the next iteration yields."""
        return len(self._batches) - self._next

    def __iter__(self) -> Iterator[Any]:
        """Yields the rest of the epoch, or the epoch again if it has ended."""
        if self._next == len(self._batches):
            self._next = 0
        for batch in self._batches[self._next :]:
            self._next += 1
            cuts = [self._items[i] for i in batch]
            if len(cuts) == 1 and self._sizes[batch[0]] > self.constraint.capacity * self._RESOLUTION:
                warnings.warn(
                    "omnibal.compat.lhotse.BucketingSampler: a cut of size %s exceeds the capacity %s"
                    % (self._sizes[batch[0]] / self._RESOLUTION, self.constraint.capacity)
                )
            yield self._make_batch(cuts)

    def set_epoch(self, epoch: int) -> None:
        """Starts an epoch. Has no effect in the same epoch."""
        if epoch != self.epoch:
            self.epoch = whole_number(epoch, "epoch", 0)
            self._next = 0
            self._batches = self._plan()

    def _options(self) -> Dict[str, Any]:
        return {
            "world_size": self.world_size,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "drop_last": self.drop_last,
            "buffer_size": self.buffer_size,
            "cuts": len(self._items),
            "capacity": self.constraint.capacity,
            "max_examples": self.constraint.max_examples,
        }

    def state_dict(self) -> Dict[str, Any]:
        """The position as numbers that JSON can hold; one rank's state serves all ranks."""
        return {"epoch": self.epoch, "position": self._next, "options": self._options()}

    @named
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues from a state of the same cuts and options."""
        for name, value in self._options().items():
            if state_dict["options"][name] != value:
                raise ValueError(
                    "omnibal: %s is %r, and %r in the state"
                    % (name, value, state_dict["options"][name])
                )
        self.epoch = whole_number(state_dict["epoch"], "epoch", 0)
        self._batches = self._plan()
        self._next = whole_number(state_dict["position"], "position", 0)
