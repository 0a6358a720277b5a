# SPDX-License-Identifier: Apache-2.0
"""Packed and balanced micro-batches for a data loader, such as torch.utils.data.DataLoader.

The module does not import torch. `PackedBatchSampler` is a `batch_sampler`, `collate_packed` is a
`collate_fn` for variable-length attention, `StatefulLoader` counts the batches of a loader for a
checkpoint, `column_lengths` reads lengths from a data set of Hugging Face, and `read_lengths` from a
file.
"""

import sys
import zlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

import numpy as np

from . import Groups, best_packing, group_loads, loss_normalizer, lpt, schedule_steps
from .lengths import read_lengths

__all__ = [
    "PackedBatchSampler",
    "StatefulLoader",
    "collate_packed",
    "column_lengths",
    "read_lengths",
]


def _columns(samples: Any, what: str) -> np.ndarray:
    """Returns a number or a row of numbers for each sample as an array of int64."""
    columns = np.stack([np.asarray(c) for c in samples], 1) if isinstance(samples, tuple) else samples
    array = np.ascontiguousarray(columns)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError("PackedBatchSampler: %s must be integers, not %s" % (what, array.dtype))
    return array.astype(np.int64)


def _with_own_groups(groups: Groups, samples: np.ndarray) -> Groups:
    """Returns the groups, and one more for each of the samples."""
    offsets = np.append(groups.offsets, groups.offsets[-1] + 1 + np.arange(len(samples)))
    return Groups(offsets, np.append(groups.items, samples))


def _with_equal_counts(step: List[List[int]], loads: np.ndarray) -> List[List[int]]:
    """Returns the groups of a step with equal numbers for all ranks; the smallest groups repeat."""
    if len({len(cell) for cell in step}) == 1:
        return step
    groups = [g for cell in step for g in cell]
    table = loads.reshape(len(loads), -1)[groups]
    # The resource that counts for a group is the one of which the group has the largest share.
    work = (table / np.maximum(table.mean(axis=0), 1)).max(axis=1)
    smallest = np.argsort(work, kind="stable")
    filled = np.append(np.arange(len(groups)), np.resize(smallest, -len(groups) % len(step)))
    parts = lpt(work[filled], len(step), count="equal")
    return [[groups[filled[at]] for at in part] for part in parts.tolist()]


class PackedBatchSampler:
    """Yields the micro-batches of one rank as lists of sample indices, in balanced steps.

    All samples are packed once into micro-batches of at most `capacity`. In each epoch every
    micro-batch runs once, and the ranks of a step have similar work.

    Args:
        lengths: integers, one per sample; or a tuple of arrays, one per resource, such as images
            and tokens.
        capacity: the limit of a micro-batch; a tuple for several resources.
        ranks: the number of data-parallel ranks.
        rank: this rank.
        seed: another seed gives another order. All ranks must use the same seed.
        cost: integers, one per sample: the work to balance. Default: `lengths`.
        groups_per_rank: micro-batches of a rank in one step, for gradient accumulation. From 4 on,
            steps are balanced and remain random samples of the data.
        max_dist_ratio: the largest average idle share of a step; 0 gives the most balanced steps,
            1 gives random ones.
        remainder: "repeat" fills the last step with repeated micro-batches, so that all ranks yield
            the same number; "short_step" repeats nothing, and ranks may yield fewer in the last step.
        oversized: what happens to samples that exceed the capacity alone: "error"; "own_group" makes
            each of them a micro-batch above the capacity; "skip" leaves them out.

    Attributes:
        oversized: the indices of the samples that exceed the capacity alone.

    Raises:
        ValueError: if a sample exceeds the capacity alone and `oversized` is "error", or if an
            argument is invalid.

    Example:
        >>> lengths = [5, 3, 4, 6, 2, 4, 8]
        >>> ranks = [PackedBatchSampler(lengths, 8, ranks=2, rank=rank) for rank in range(2)]
        >>> [len(sampler) for sampler in ranks]
        [2, 2]
        >>> sorted(sample for sampler in ranks for batch in sampler for sample in batch)
        [0, 1, 2, 3, 4, 5, 6]
    """

    def __init__(
        self,
        lengths: Any,
        capacity: Any,
        *,
        ranks: int = 1,
        rank: int = 0,
        seed: int = 0,
        cost: Any = None,
        groups_per_rank: int = 1,
        max_dist_ratio: float = 0.005,
        remainder: str = "repeat",
        oversized: str = "error",
    ) -> None:
        if remainder not in ("repeat", "short_step"):
            raise ValueError(
                "PackedBatchSampler: remainder is %r, must be 'repeat' or 'short_step'" % (remainder,)
            )
        if oversized not in ("error", "own_group", "skip"):
            raise ValueError(
                "PackedBatchSampler: oversized is %r, must be 'error', 'own_group' or 'skip'"
                % (oversized,)
            )
        if not 0 <= rank < ranks:
            raise ValueError(
                "PackedBatchSampler: rank is %r, must be from 0 to %r" % (rank, ranks - 1)
            )
        samples = _columns(lengths, "lengths")
        packing = best_packing(samples, capacity)
        self.oversized = np.array(packing.oversized)
        if len(self.oversized) and oversized == "error":
            first = int(self.oversized[0])
            raise ValueError(
                "PackedBatchSampler: lengths[%d] is %s, above the capacity %s; the number of such "
                "samples is %d; oversized='own_group' or 'skip' accepts them"
                % (first, samples[first].tolist(), capacity, len(self.oversized))
            )
        self.ranks = ranks
        self.rank = rank
        self._groups = packing.groups
        if oversized == "own_group":
            self._groups = _with_own_groups(packing.groups, self.oversized)
        work = samples if cost is None else _columns(cost, "cost")
        self._loads = group_loads(self._groups, work)
        self._groups_per_rank = groups_per_rank
        self._options: Dict[str, Any] = {
            "capacity": np.asarray(capacity).tolist(),
            "seed": seed,
            "max_dist_ratio": max_dist_ratio,
            "remainder": remainder,
            "oversized": oversized,
        }
        self._digest = zlib.crc32(work.tobytes(), zlib.crc32(samples.tobytes()))
        self._start_epoch(0, [], 0)

    def _schedule(self, groups: np.ndarray, ranks: int, groups_per_rank: int, epoch: int) -> Any:
        """Returns the groups of each step and rank."""
        loads = np.ascontiguousarray(self._loads[groups])
        repeats = self._options["remainder"] == "repeat"
        steps = schedule_steps(
            loads,
            ranks,
            epoch=epoch,
            seed=self._options["seed"],
            max_dist_ratio=self._options["max_dist_ratio"],
            groups_per_rank=groups_per_rank,
            remainder="repeat" if repeats and groups_per_rank == 1 else "short_step",
        )
        cells = [[steps[s, r].tolist() for r in range(ranks)] for s in range(len(steps))]
        if repeats and cells:
            cells[-1] = _with_equal_counts(cells[-1], loads)
        return [[groups[cell].tolist() for cell in step] for step in cells]

    def _groups_left(self, epoch: int, history: List[List[int]]) -> np.ndarray:
        """Returns the groups that have not run after steps with other numbers of ranks."""
        left = np.arange(len(self._groups))
        for ranks, groups_per_rank, steps_done in history:
            steps = self._schedule(left, ranks, groups_per_rank, epoch)
            done = [g for step in steps[:steps_done] for cell in step for g in cell]
            left = np.setdiff1d(left, np.array(done, dtype=np.int64))
        return left

    def _steps_of(self, epoch: int, history: List[List[int]]) -> Any:
        left = self._groups_left(epoch, history)
        return self._schedule(left, self.ranks, self._groups_per_rank, epoch)

    def _order_of(self, steps: Any) -> List[int]:
        return [g for step in steps for g in step[self.rank]]

    def _start_epoch(self, epoch: int, history: List[List[int]], start: int) -> None:
        self._steps = self._steps_of(epoch, history)
        self._order = self._order_of(self._steps)
        self.epoch = epoch
        self._history = history
        self._start = self._next = start
        self._is_finished = False

    def __repr__(self) -> str:
        return "PackedBatchSampler(%d micro-batches, rank %d of %d, epoch %d, %d of %d yielded)" % (
            len(self._groups),
            self.rank,
            self.ranks,
            self.epoch,
            self._next,
            len(self._order),
        )

    def __len__(self) -> int:
        """The number of micro-batches that the next iteration yields."""
        if self._is_finished:
            return len(self._order_of(self._steps_of(self.epoch, [])))
        return len(self._order) - self._start

    def __iter__(self) -> Iterator[List[int]]:
        """Yields the rest of the epoch, or the same epoch again if it has ended."""
        if self._is_finished:
            self._start_epoch(self.epoch, [], 0)
        self._next = self._start
        for group in self._order[self._start :]:
            self._next += 1
            yield self._groups[group].tolist()
        self._is_finished = True

    @property
    def begun(self) -> int:
        """The number of micro-batches of the epoch before the next iteration, in all runs."""
        if self._is_finished:
            return 0
        return self._start + sum(groups * steps for _, groups, steps in self._history)

    def set_epoch(self, epoch: int) -> None:
        """Starts an epoch; each epoch has another order. Has no effect in the same epoch."""
        if epoch != self.epoch:
            self._start_epoch(epoch, [], 0)

    def loss_factor(self, loss_tokens: Any) -> float:
        """Returns the factor of the loss that gives every token of the epoch the same weight.

        Multiply the sum of the losses of each micro-batch by the factor, accumulate the gradients of
        the micro-batches of a step, and average the gradients over the ranks. The factor is
        1 / the average number of tokens with a loss of a rank in a step: see
        `omnibal.loss_normalizer`.

        Args:
            loss_tokens: integers, one per sample: the number of labels that are not ignored.
        """
        tokens = group_loads(self._groups, _columns(loss_tokens, "loss_tokens"))
        sums = [int(sum(tokens[cell])) for step in self._steps for cell in step]
        return loss_normalizer(sums) if sums else 0.0

    def state_dict(self, consumed: Optional[int] = None) -> Dict[str, Any]:
        """Returns the position as numbers that JSON can hold; one rank's state serves all ranks.

        A data loader with workers asks for micro-batches ahead of the training loop. Then pass
        `consumed`: the number of micro-batches that a rank has trained on since the epoch began, in
        all runs of the epoch. Default: all that were yielded.
        """
        before = sum(groups * steps for _, groups, steps in self._history)
        position = self._next if consumed is None else consumed - before
        if not 0 <= position <= len(self._order):
            raise ValueError(
                "PackedBatchSampler.state_dict: consumed is %r, must be from %d to %d, counted from "
                "the beginning of the epoch" % (consumed, before, before + len(self._order))
            )
        return {
            "epoch": self.epoch,
            "history": [list(part) for part in self._history],
            "ranks": self.ranks,
            "groups_per_rank": self._groups_per_rank,
            "position": position,
            "options": dict(self._options),
            "digest": self._digest,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state, also with another number of ranks or groups per rank.

        Raises:
            ValueError: if the state is of other data or options, or if the number of ranks or of
                groups per rank changed within a step.
        """
        for name, value in self._options.items():
            if state["options"][name] != value:
                raise ValueError(
                    "PackedBatchSampler.load_state_dict: %s is %r, and %r in the state"
                    % (name, value, state["options"][name])
                )
        if state["digest"] != self._digest:
            raise ValueError(
                "PackedBatchSampler.load_state_dict: the state is of other lengths or costs"
            )
        history = [list(part) for part in state["history"]]
        start = int(state["position"])
        ranks, groups_per_rank = int(state["ranks"]), int(state["groups_per_rank"])
        if (ranks, groups_per_rank) != (self.ranks, self._groups_per_rank):
            epoch = int(state["epoch"])
            left = self._groups_left(epoch, history)
            steps = self._schedule(left, ranks, groups_per_rank, epoch)
            ends = np.cumsum([[0] * ranks] + [[len(cell) for cell in step] for step in steps], axis=0)
            done = np.flatnonzero((ends == start).any(axis=1))
            if not len(done):
                raise ValueError(
                    "PackedBatchSampler.load_state_dict: position is %d, within a step of %d "
                    "micro-batches; the number of ranks can change between steps only"
                    % (start, groups_per_rank)
                )
            history.append([ranks, groups_per_rank, int(done[0])])
            start = 0
        self._start_epoch(int(state["epoch"]), history, start)


class StatefulLoader:
    """Yields the batches of a loader and counts them, so that its state is exact with any workers.

    The workers of a loader ask the sampler for micro-batches ahead of the training loop. The state
    of this class counts the batches that the loop received. It has the methods `state_dict` and
    `load_state_dict` of `torchdata.stateful_dataloader.StatefulDataLoader` and of
    `torch.distributed.checkpoint.stateful.Stateful`.

    Args:
        loader: an iterable with one batch per micro-batch, such as a DataLoader with a
            `PackedBatchSampler` as `batch_sampler`.
        sampler: the `PackedBatchSampler`. Default: `loader.batch_sampler`, or else the loader itself.

    Example:
        >>> sampler = PackedBatchSampler([5, 3, 4, 6, 2, 4, 8], 8)
        >>> loader = StatefulLoader(sampler)
        >>> first = next(iter(loader))
        >>> state = loader.state_dict()
        >>> loader.load_state_dict(state)
        >>> rest = list(loader)
        >>> sorted(sample for batch in [first] + rest for sample in batch)
        [0, 1, 2, 3, 4, 5, 6]
    """

    def __init__(self, loader: Any, sampler: Optional[PackedBatchSampler] = None) -> None:
        self.loader = loader
        self.sampler = getattr(loader, "batch_sampler", loader) if sampler is None else sampler
        if not hasattr(self.sampler, "begun"):
            raise ValueError(
                "StatefulLoader: the sampler is %r, must be a PackedBatchSampler" % (self.sampler,)
            )
        self._consumed = self.sampler.begun

    def __len__(self) -> int:
        """The number of batches that the next iteration yields."""
        return len(self.sampler)

    def __iter__(self) -> Iterator[Any]:
        """Yields the rest of the epoch, or the same epoch again if it has ended."""
        self._consumed = self.sampler.begun
        for batch in self.loader:
            self._consumed += 1
            yield batch

    def set_epoch(self, epoch: int) -> None:
        """Starts an epoch; see `PackedBatchSampler.set_epoch`."""
        if epoch != self.sampler.epoch:
            self.sampler.set_epoch(epoch)
            self._consumed = 0

    def state_dict(self) -> Dict[str, Any]:
        """Returns the position after the last batch that was yielded; JSON can hold it. Batches that
        workers have prepared are not part of it."""
        return self.sampler.state_dict(self._consumed)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state, also with another number of ranks; see
        `PackedBatchSampler.load_state_dict`. Iterate over the loader anew after it."""
        self.sampler.load_state_dict(state)
        self._consumed = self.sampler.begun


def column_lengths(dataset: Any, column: str) -> np.ndarray:
    """Returns the length of each row of a column of a data set, for `PackedBatchSampler`.

    The lengths of the lists of an Arrow column are read from its offsets, so that no token is
    converted to Python. A column of integers, such as one that `map` has made, is returned as it is.

    Args:
        dataset: a `datasets.Dataset` of Hugging Face, also a shuffled or filtered one, or a mapping
            from names to sequences.
        column: the name of the column: lists with one element per token, or the lengths.

    Returns:
        An array of int64 with a length per row, in the order of the data set.

    Raises:
        ValueError: if there is no such column, or if it has neither lists nor integers.

    Example:
        >>> column_lengths({"input_ids": [[7, 8, 9], [5, 6]]}, "input_ids").tolist()
        [3, 2]
        >>> column_lengths({"tokens": [3, 2]}, "tokens").tolist()
        [3, 2]
    """
    names = getattr(dataset, "column_names", None) or list(dataset)
    if column not in names:
        raise ValueError("column_lengths: there is no column %r among %s" % (column, list(names)))
    if hasattr(dataset, "with_format"):
        import pyarrow
        import pyarrow.compute

        rows = dataset.with_format("arrow")[column][:]
        if pyarrow.types.is_list(rows.type) or pyarrow.types.is_large_list(rows.type):
            rows = pyarrow.compute.list_value_length(rows)
        if pyarrow.types.is_integer(rows.type) and not rows.null_count:
            return np.asarray(rows.to_numpy()).astype(np.int64)
        raise ValueError(
            "column_lengths: column %r has the type %s with %d nulls, must be lists or integers"
            % (column, rows.type, rows.null_count)
        )
    values = dataset[column]
    lengths = [len(row) if hasattr(row, "__len__") else row for row in values]
    array = np.asarray(lengths)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError("column_lengths: column %r has neither lists nor integers" % column)
    return array.astype(np.int64)


def collate_packed(
    samples: Sequence[Mapping[str, Any]], ignore_index: Optional[int] = -100
) -> Dict[str, Any]:
    """Concatenates samples into one packed sequence for variable-length attention.

    Args:
        samples: mappings from names, such as "input_ids" and "labels", to sequences with one element
            per token of the sample: lists, NumPy arrays or tensors of torch. The first field has one
            dimension. Images need a collate function of your own.
        ignore_index: replaces the first label of each sample, so that no sample predicts the first
            token of the next one. None keeps the labels, for data whose label of a token is the
            next token already.

    Returns:
        The concatenated fields, and `position_ids`, `cu_seqlens` (int32), `max_seqlen`. The arrays
        are tensors of torch if the fields are.

    Raises:
        ValueError: if there are no samples, if a sample lacks a field of the first one, if the first
            field has not one dimension, or if the fields of a sample differ in length.

    Example:
        >>> batch = collate_packed([{"input_ids": [7, 8, 9]}, {"input_ids": [5, 6]}])
        >>> batch["input_ids"].tolist(), batch["position_ids"].tolist(), batch["cu_seqlens"].tolist()
        ([7, 8, 9, 5, 6], [0, 1, 2, 0, 1], [0, 3, 5])
    """
    if not samples:
        raise ValueError("collate_packed: there are no samples")
    fields: Dict[str, List[Any]] = {name: [] for name in samples[0].keys()}
    for i, sample in enumerate(samples):
        for name, values in fields.items():
            if name not in sample:
                raise ValueError("collate_packed: sample %d has no field %s" % (i, name))
            values.append(np.asarray(sample[name]))
            if values[-1].ndim == 0:
                raise ValueError(
                    "collate_packed: %s of sample %d is one value, must have one element per token"
                    % (name, i)
                )
    first = next(iter(fields))
    for i, values in enumerate(fields[first]):
        if values.ndim != 1:
            raise ValueError(
                "collate_packed: %s of sample %d has shape %s, must have one dimension"
                % (first, i, values.shape)
            )
    lengths = [len(values) for values in next(iter(fields.values()))]
    for name, values in fields.items():
        for i, value in enumerate(values):
            if len(value) != lengths[i]:
                raise ValueError(
                    "collate_packed: %s of sample %d has %d elements, must have %d"
                    % (name, i, len(value), lengths[i])
                )
    batch: Dict[str, Any] = {name: np.concatenate(values) for name, values in fields.items()}
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    if "labels" in batch and ignore_index is not None:
        starts = offsets[:-1][np.asarray(lengths) > 0]
        batch["labels"][starts] = ignore_index
    batch["position_ids"] = np.concatenate([np.arange(n) for n in lengths])
    batch["cu_seqlens"] = offsets
    torch = sys.modules.get("torch")
    if torch is not None and any(isinstance(v, torch.Tensor) for v in samples[0].values()):
        batch = {name: torch.from_numpy(values) for name, values in batch.items()}
    batch["max_seqlen"] = max(lengths)
    return batch
