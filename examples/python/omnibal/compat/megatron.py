"""The packing schedulers of Megatron-Core: `get_groups_and_subsamples` of lists of (id, length).

The result is, for each micro-batch and each rank of the data and context parallel group, the ids of
its samples; the ranks that share samples are neighbours.
"""

from typing import List, Optional, Sequence, Tuple

import numpy as np

from .. import _core

Sample = Tuple[int, int]
Assignment = List[List[List[int]]]


def _too_few(samples: int, needed: int) -> ValueError:
    return ValueError(
        "omnibal.compat.megatron: Not enough samples: there are %d, but %d micro-batches of ranks "
        "must have one each" % (samples, needed)
    )


class _Scheduler:
    def __init__(
        self,
        max_seqlen_per_dp_cp_rank: int,
        cp_size: int,
        dp_size: int,
        microbatch_group_size_per_vp_stage: Optional[int] = None,
        max_num_seqs: Optional[int] = None,
    ) -> None:
        self.max_seqlen_per_dp_cp_rank = max_seqlen_per_dp_cp_rank
        self.cp_size = cp_size
        self.dp_size = dp_size
        self.microbatch_group_size_per_vp_stage = microbatch_group_size_per_vp_stage
        self.max_num_seqs = max_num_seqs

    @property
    def _multiple(self) -> int:
        return self.microbatch_group_size_per_vp_stage or 1


class DpBalancedScheduler(_Scheduler):
    """Packs for fixed context-parallel groups. Where Megatron takes samples in their order, the
    packs here are the fewest that are found, and those of a micro-batch have even work."""

    def get_groups_and_subsamples(self, sample_id_seqlens: Sequence[Sample]) -> Assignment:
        """The ids of each rank in each micro-batch; the ranks of a context-parallel group have the
        same ones."""
        ids = [sample[0] for sample in sample_id_seqlens]
        lengths = np.array([sample[1] for sample in sample_id_seqlens], dtype=np.int64)
        if not ids:
            return []
        capacity = self.max_seqlen_per_dp_cp_rank * self.cp_size
        count = self.max_num_seqs if self.max_num_seqs is not None else len(ids)
        steps = _core.micro_batches(
            lengths * lengths,
            self.dp_size,
            (lengths, np.ones_like(lengths)),
            (capacity, count),
            multiple_of=self._multiple,
        )
        packs = steps.cells.tolist()
        if len(packs) > len(ids):
            raise _too_few(len(ids), len(packs))
        return [
            [
                [ids[i] for i in packs[step * self.dp_size + rank // self.cp_size]]
                for rank in range(self.dp_size * self.cp_size)
            ]
            for step in range(len(steps))
        ]


class DefaultDynamicCPScheduler(_Scheduler):
    """Chooses a context-parallel degree for the samples of each micro-batch: powers of two, or all
    ranks. Every rank has samples in every micro-batch, and no rank more than its tokens."""

    def __init__(
        self,
        max_seqlen_per_dp_cp_rank: int,
        cp_size: int,
        dp_size: int,
        microbatch_group_size_per_vp_stage: Optional[int] = None,
        max_num_seqs: Optional[int] = None,
        min_cp_size: int = 1,
    ) -> None:
        super().__init__(
            max_seqlen_per_dp_cp_rank,
            cp_size,
            dp_size,
            microbatch_group_size_per_vp_stage,
            max_num_seqs,
        )
        self.min_cp_size = min_cp_size

    def get_groups_and_subsamples(self, sample_id_seqlens: Sequence[Sample]) -> Assignment:
        """The ids of each rank in each micro-batch; the ranks that share a sample have the same
        ones."""
        if not sample_id_seqlens:
            return []
        ranks = self.cp_size * self.dp_size
        powers = [d for d in (1 << k for k in range(ranks.bit_length())) if d <= ranks]
        degrees = sorted({d for d in powers if d >= self.min_cp_size} | {ranks})
        plan = _core.context_groups(
            [sample[1] for sample in sample_id_seqlens],
            ranks,
            [(1e-9, 0.0, 1.0 / d) for d in range(1, ranks + 1)],
            bytes_per_token=1,
            capacity=self.max_seqlen_per_dp_cp_rank,
            degrees=degrees,
        )
        if plan.status != "solved":
            sample = sample_id_seqlens[plan.sample]
            raise ValueError(
                "omnibal.compat.megatron: sample %s of %d tokens takes %d ranks, but there are %d"
                % (sample[0], sample[1], plan.least_degree, ranks)
            )
        groups = [
            (int(degree), samples.tolist()) for degree, samples in zip(plan.degrees, plan.samples)
        ]
        ends = plan.micro_step_offsets.tolist()
        micro_steps = [groups[a:b] for a, b in zip(ends, ends[1:]) if a != b]
        self._split(micro_steps)
        return [
            self._assign(micro_step, ranks, degrees, sample_id_seqlens)
            for micro_step in micro_steps
        ]

    def _split(self, micro_steps: List[List[Tuple[int, List[int]]]]) -> None:
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

    @staticmethod
    def _assign(
        groups: List[Tuple[int, List[int]]],
        ranks: int,
        degrees: List[int],
        sample_id_seqlens: Sequence[Sample],
    ) -> List[List[int]]:
        """Spreads the groups over all ranks: those with most work for a rank first, each to the
        next degree."""
        wide = [degree for degree, _ in groups]
        work = [sum(sample_id_seqlens[i][1] ** 2 for i in samples) for _, samples in groups]
        while sum(wide) != ranks:
            idle = ranks - sum(wide)
            fitting = [
                (work[g] / degree, -g, wider)
                for g, degree in enumerate(wide)
                for wider in [d for d in degrees if d > degree][:1]
                if wider - degree <= idle
            ]
            if not fitting:
                raise ValueError(
                    "omnibal.compat.megatron: %d of %d ranks would be idle, as degrees are powers "
                    "of two" % (idle, ranks)
                )
            _, place, wider = max(fitting)
            wide[-place] = wider
        # In descending order every power of two begins at a multiple of itself.
        order = sorted(range(len(wide)), key=lambda g: -wide[g])
        return [
            [sample_id_seqlens[i][0] for i in groups[g][1]] for g in order for _ in range(wide[g])
        ]
