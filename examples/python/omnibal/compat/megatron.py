# SPDX-License-Identifier: Apache-2.0
"""The packing schedulers of Megatron-Core: `get_groups_and_subsamples` of lists of (id, length).

The result is, for each micro-batch and each rank of the data and context parallel group, the ids of
its samples; the ranks that share samples are neighbors.

`register` puts the schedulers into Megatron's `scheduler_map`, so that its flag
`--sequence-packing-scheduler` selects them. They derive from Megatron's own classes and inherit
`run` and `get_required_sample_keys`. The interface is that of `BasePackingScheduler` in
`megatron/core/datasets/data_schedule.py` of July 2026, whose map has names or members of an enum.
"""

import importlib
from typing import Any, Dict, List, Literal, Optional, Sequence, Tuple

import numpy as np

from .. import _core
from ._integers import LINEAR_COST, fill_rows, named, whole_number, whole_numbers, workload

Sample = Tuple[int, int]
Assignment = List[List[List[int]]]
# A degree, and the places of the samples in the list that is given.
Group = Tuple[int, List[int]]


def _too_few(samples: int, needed: int) -> ValueError:
    return ValueError(
        "omnibal: Not enough samples: there are %d, but %d micro-batches of ranks "
        "must have one each" % (samples, needed)
    )


def _optional(value: Optional[int], name: str) -> Optional[int]:
    return None if value is None else whole_number(value, name, 1)


def _lengths(samples: Sequence[Sample]) -> np.ndarray:
    return whole_numbers([sample[1] for sample in samples], "sample_id_seqlens", 0)


class _Scheduler:
    @named
    def __init__(
        self,
        max_seqlen_per_dp_cp_rank: int,
        cp_size: int,
        dp_size: int,
        microbatch_group_size_per_vp_stage: Optional[int] = None,
        max_num_seqs: Optional[int] = None,
        *,
        linear_cost: int = LINEAR_COST,
    ) -> None:
        self.max_seqlen_per_dp_cp_rank = whole_number(
            max_seqlen_per_dp_cp_rank, "max_seqlen_per_dp_cp_rank", 1
        )
        self.cp_size = whole_number(cp_size, "cp_size", 1)
        self.dp_size = whole_number(dp_size, "dp_size", 1)
        self.microbatch_group_size_per_vp_stage = _optional(
            microbatch_group_size_per_vp_stage, "microbatch_group_size_per_vp_stage"
        )
        self.max_num_seqs = _optional(max_num_seqs, "max_num_seqs")
        self.linear_cost = whole_number(linear_cost, "linear_cost", 0)

    @property
    def _multiple(self) -> int:
        return self.microbatch_group_size_per_vp_stage or 1


class DpBalancedScheduler(_Scheduler):
    """Packs for fixed context-parallel groups with `omnibal.micro_batches`. Megatron packs samples
    in their order; here the packs are the fewest that are found, and the packs of a micro-batch have
    even work: `length**2 + linear_cost * length` for each sample. A sample above the tokens of a
    group is an error, or with `oversized="own_group"` a pack of its own."""

    @named
    def __init__(
        self,
        max_seqlen_per_dp_cp_rank: int,
        cp_size: int,
        dp_size: int,
        microbatch_group_size_per_vp_stage: Optional[int] = None,
        max_num_seqs: Optional[int] = None,
        *,
        linear_cost: int = LINEAR_COST,
        oversized: Literal["own_group", "reject"] = "reject",
    ) -> None:
        super().__init__(
            max_seqlen_per_dp_cp_rank,
            cp_size,
            dp_size,
            microbatch_group_size_per_vp_stage,
            max_num_seqs,
            linear_cost=linear_cost,
        )
        self.oversized = oversized

    @named
    def get_groups_and_subsamples(self, sample_id_seqlens: Sequence[Sample]) -> Assignment:
        """The ids of each rank in each micro-batch; the ranks of a context-parallel group have the
        same ones."""
        ids = [sample[0] for sample in sample_id_seqlens]
        lengths = _lengths(sample_id_seqlens)
        if not ids:
            return []
        capacity = self.max_seqlen_per_dp_cp_rank * self.cp_size
        count = self.max_num_seqs if self.max_num_seqs is not None else len(ids)
        work = workload(lengths, self.linear_cost, "sample_id_seqlens")
        steps = _core.micro_batches(
            work,
            self.dp_size,
            (lengths, np.ones_like(lengths)),
            (capacity, count),
            multiple_of=self._multiple,
            oversized=self.oversized,
        )
        packs = steps.cells.tolist()
        if len(packs) > len(ids):
            raise _too_few(len(ids), len(packs))
        packs = fill_rows(packs, work)
        return [
            [
                [ids[i] for i in packs[step * self.dp_size + rank // self.cp_size]]
                for rank in range(self.dp_size * self.cp_size)
            ]
            for step in range(len(steps))
        ]


class DefaultDynamicCPScheduler(_Scheduler):
    """Chooses a context-parallel degree for the samples of each micro-batch: powers of two, or all
    ranks, with `omnibal.context_groups`. Every rank has samples in every micro-batch, and no rank
    has more than its tokens or more than `max_num_seqs` samples."""

    @named
    def __init__(
        self,
        max_seqlen_per_dp_cp_rank: int,
        cp_size: int,
        dp_size: int,
        microbatch_group_size_per_vp_stage: Optional[int] = None,
        max_num_seqs: Optional[int] = None,
        min_cp_size: int = 1,
        *,
        linear_cost: int = LINEAR_COST,
    ) -> None:
        super().__init__(
            max_seqlen_per_dp_cp_rank,
            cp_size,
            dp_size,
            microbatch_group_size_per_vp_stage,
            max_num_seqs,
            linear_cost=linear_cost,
        )
        self.min_cp_size = whole_number(min_cp_size, "min_cp_size", 1)
        ranks = self.cp_size * self.dp_size
        if self.min_cp_size > ranks:
            raise ValueError(
                "omnibal: min_cp_size is %d, must be at most the ranks, which are %d"
                % (self.min_cp_size, ranks)
            )

    @named
    def get_groups_and_subsamples(self, sample_id_seqlens: Sequence[Sample]) -> Assignment:
        """The ids of each rank in each micro-batch; the ranks that share a sample have the same
        ones."""
        if not sample_id_seqlens:
            return []
        lengths = _lengths(sample_id_seqlens).tolist()
        sample_id_seqlens = [(s[0], n) for s, n in zip(sample_id_seqlens, lengths)]
        ranks = self.cp_size * self.dp_size
        powers = [d for d in (1 << k for k in range(ranks.bit_length())) if d <= ranks]
        degrees = sorted({d for d in powers if d >= self.min_cp_size} | {ranks})
        plan = _core.context_groups(
            lengths,
            ranks,
            [(1e-9, self.linear_cost / d, 1.0 / d) for d in range(1, ranks + 1)],
            bytes_per_token=1,
            capacity=self.max_seqlen_per_dp_cp_rank,
            degrees=degrees,
        )
        if plan.status != "solved":
            sample = sample_id_seqlens[plan.sample]
            raise ValueError(
                "omnibal: sample %s of %d tokens takes %d ranks, but there are %d"
                % (sample[0], sample[1], plan.min_degree, ranks)
            )
        groups: List[Group] = [
            (int(degree), samples.tolist()) for degree, samples in zip(plan.degrees, plan.samples)
        ]
        ends = plan.micro_step_offsets.tolist()
        micro_steps = [
            step
            for a, b in zip(ends, ends[1:])
            for step in self._limit(groups[a:b], ranks, lengths)
        ]
        while True:
            self._split(micro_steps)
            micro_steps = [
                full
                for groups in micro_steps
                for full in self._fill(groups, ranks, degrees, lengths)
            ]
            if len(micro_steps) % self._multiple == 0:
                break
        return [
            [
                [sample_id_seqlens[i][0] for i in samples]
                # In descending order every power of two begins at a multiple of itself.
                for degree, samples in sorted(groups, key=lambda group: -group[0])
                for _ in range(degree)
            ]
            for groups in micro_steps
        ]

    def _limit(self, groups: List[Group], ranks: int, lengths: List[int]) -> List[List[Group]]:
        """Micro-steps whose groups have at most `max_num_seqs` samples: a larger group is dealt
        into groups of its degree, which fill idle ranks and then further micro-steps."""
        most = self.max_num_seqs
        small: List[Group] = []
        for degree, samples in groups:
            parts = 1 if most is None else -(-len(samples) // most)
            longest_first = sorted(samples, key=lambda i: -lengths[i])
            small += [(degree, longest_first[k::parts]) for k in range(parts)]
        micro_steps: List[List[Group]] = []
        if len(small) == len(groups):
            return [groups] if groups else []
        for group in sorted(small, key=lambda group: -group[0]):
            for step in micro_steps:
                if sum(degree for degree, _ in step) + group[0] <= ranks:
                    step.append(group)
                    break
            else:
                micro_steps.append([group])
        return micro_steps

    def _split(self, micro_steps: List[List[Group]]) -> None:
        """Cuts micro-steps in two until their number is a multiple."""
        while len(micro_steps) % self._multiple:
            sizes = [sum(len(samples) for _, samples in groups) for groups in micro_steps]
            widest = sizes.index(max(sizes))
            groups = micro_steps[widest]
            if sizes[widest] < 2:
                raise _too_few(sum(sizes), -(-len(sizes) // self._multiple) * self._multiple)
            if len(groups) > 1:
                halves = groups[: len(groups) // 2], groups[len(groups) // 2 :]
            else:
                degree, samples = groups[0]
                middle = len(samples) // 2
                halves = [(degree, samples[:middle])], [(degree, samples[middle:])]
            micro_steps[widest : widest + 1] = halves

    def _fill(
        self, groups: List[Group], ranks: int, degrees: List[int], lengths: List[int]
    ) -> List[List[Group]]:
        """The groups spread over all ranks, in one micro-step if one is found, else in several. A
        group alone can have all ranks, so that there are always some."""
        full = self._spread(groups, ranks, degrees, lengths)
        if full is not None:
            return [full]
        samples = [i for _, own in groups for i in own]
        is_few = self.max_num_seqs is None or len(samples) <= self.max_num_seqs
        if is_few and self._fits(samples, ranks, lengths):
            return [[(ranks, samples)]]
        middle = len(groups) // 2
        return [
            step
            for half in (groups[:middle], groups[middle:])
            for step in self._fill(half, ranks, degrees, lengths)
        ]

    def _fits(self, samples: List[int], degree: int, lengths: List[int]) -> bool:
        return sum(-(-lengths[i] // degree) for i in samples) <= self.max_seqlen_per_dp_cp_rank

    def _spread(
        self, groups: List[Group], ranks: int, degrees: List[int], lengths: List[int]
    ) -> Optional[List[Group]]:
        """Widens groups, those with most work for a rank first, each to the next degree. If no
        group can be widened, idle ranks get a sample of a group of several. None if that fails."""
        wide = list(groups)

        def work(samples: List[int]) -> int:
            """The sum of the costs of samples."""
            return sum(lengths[i] * (lengths[i] + self.linear_cost) for i in samples)

        while True:
            idle = ranks - sum(degree for degree, _ in wide)
            if idle == 0:
                return wide
            fitting = [
                (work(samples) / degree, -g, wider)
                for g, (degree, samples) in enumerate(wide)
                for wider in [d for d in degrees if d > degree][:1]
                if wider - degree <= idle
            ]
            if fitting:
                _, place, wider = max(fitting)
                wide[-place] = (wider, wide[-place][1])
                continue
            # The least work for a rank of the two groups that a sample leaves and makes.
            leaving = [
                (max((work(samples) - work([i])) / degree, work([i]) / own), g, i, own)
                for g, (degree, samples) in enumerate(wide)
                if len(samples) > 1
                for i in samples
                for own in [d for d in degrees if d <= idle and self._fits([i], d, lengths)][:1]
            ]
            if not leaving:
                return None
            _, g, sample, own = min(leaving)
            wide[g] = (wide[g][0], [i for i in wide[g][1] if i != sample])
            wide.append((own, [sample]))


def scheduler_class(base: type, *, linear_cost: int = LINEAR_COST) -> type:
    """A class derived from one of Megatron's schedulers, which it replaces.

    `base` is `DpBalancedScheduler` or `DefaultDynamicCPScheduler` of Megatron, which has a
    `min_cp_size`. Only `get_groups_and_subsamples` differs from `base`.
    """

    class Scheduler(base):  # type: ignore[misc]
        """A scheduler of Megatron that packs with omnibal."""

        omnibal_base = base

        @named
        def get_groups_and_subsamples(self, sample_id_seqlens: Sequence[Sample]) -> Assignment:
            """The ids of each rank in each micro-batch."""
            arguments = (
                self.max_seqlen_per_dp_cp_rank,
                self.cp_size,
                self.dp_size,
                self.microbatch_group_size_per_vp_stage,
                getattr(self, "max_num_seqs", None),
            )
            scheduler: Any
            if hasattr(self, "min_cp_size"):
                scheduler = DefaultDynamicCPScheduler(
                    *arguments, self.min_cp_size, linear_cost=linear_cost
                )
            else:
                scheduler = DpBalancedScheduler(*arguments, linear_cost=linear_cost)
            result: Assignment = scheduler.get_groups_and_subsamples(sample_id_seqlens)
            return result

    Scheduler.__name__ = Scheduler.__qualname__ = base.__name__
    return Scheduler


@named
def register(data_schedule: Any = None, *, linear_cost: int = LINEAR_COST) -> Dict[str, type]:
    """Replaces the schedulers in Megatron's `scheduler_map` and returns the replaced classes by name.

    Call it on every rank before the training starts. The names stay: "dp_balanced" and
    "default_dynamic_cp". A further call replaces Megatron's classes again, such as with another
    `linear_cost`. Other schedulers in the map stay as they are.

    Args:
        data_schedule: the module `megatron.core.datasets.data_schedule`, imported by default.
        linear_cost: the cost of a token in pairs of tokens. The default is 6 * 4096, for a hidden
            size of 4,096.

    Raises:
        ImportError: if there is no Megatron-Core.
        ValueError: if the module has none of the two schedulers.
    """
    linear_cost = whole_number(linear_cost, "linear_cost", 0)
    if data_schedule is None:
        data_schedule = importlib.import_module("megatron.core.datasets.data_schedule")
    if not hasattr(data_schedule, "scheduler_map"):
        raise ValueError(
            "omnibal: this version of Megatron-Core has no scheduler_map, which newer versions have; "
            "call DpBalancedScheduler or DefaultDynamicCPScheduler yourself"
        )
    schedulers = data_schedule.scheduler_map
    replaced: Dict[str, type] = {}
    for key, scheduler in list(schedulers.items()):
        name = getattr(key, "value", key)
        if name in ("dp_balanced", "default_dynamic_cp"):
            replaced[name] = getattr(scheduler, "omnibal_base", scheduler)
            schedulers[key] = scheduler_class(replaced[name], linear_cost=linear_cost)
    if not replaced:
        raise ValueError("omnibal: the scheduler_map of data_schedule has no 'dp_balanced'")
    return replaced
