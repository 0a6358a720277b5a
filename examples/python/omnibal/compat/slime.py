# SPDX-License-Identifier: Apache-2.0
"""slime's `build_dp_schedule`: the micro-batches of each training step and their ranks.

The arguments and the result are those of `slime/utils/dp_schedule.py` of August 2026. To use it
there: `slime.ray.rollout.build_dp_schedule = omnibal.compat.slime.build_dp_schedule`.
"""

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from .. import _core
from ._integers import fill_rows, named, whole_number, whole_numbers, workload

Schedule = Tuple[List[List[int]], List[List[List[int]]], List[int], List[int]]


def _dynamic(
    work: np.ndarray, lengths: np.ndarray, ranks: int, cap: int, multiple: int
) -> List[List[int]]:
    """Micro-batches of at most `cap` tokens, of which each run of `ranks` has even work. A longer
    sample fills its own micro-batch."""
    steps = _core.micro_batches(
        work, ranks, lengths, cap, multiple_of=multiple, oversized="own_group"
    )
    return steps.cells.tolist()


def _static(work: np.ndarray, size: int, ranks: int, multiple: int) -> List[List[int]]:
    """Micro-batches of `size` samples, the heaviest first, so that neighbors have similar work."""
    count = -(-work.size // size)
    if count % (ranks * multiple):
        raise ValueError(
            "omnibal: %d samples are %d micro-batches of %d, must be a multiple of %d micro-batches"
            % (work.size, count, size, ranks * multiple)
        )
    parts = _core.lpt(work, count, count="at_most_one_apart")
    rows = _core.refine_parts(work, parts, counts="kept").tolist()
    return sorted(rows, key=lambda row: (-int(work[row].sum()), row))


def _split_rows(
    rows: List[List[int]], work: np.ndarray, ranks: int, multiple: int
) -> List[List[int]]:
    """The rows, of which the heaviest with several samples are split in two until their number is a
    multiple. Each run of `ranks` has similar work, and the ranks have even sums."""
    target = -(-len(rows) // (ranks * multiple)) * ranks * multiple
    cost = [int(work[row].sum()) for row in rows]
    while len(rows) < target:
        several = [r for r, row in enumerate(rows) if len(row) > 1]
        if not several:
            break
        heaviest = max(several, key=lambda r: cost[r])
        row = rows[heaviest]
        one, other = _core.lpt(work[row], 2).tolist()
        if not one or not other:
            # All samples have no work.
            one, other = list(range(1)), list(range(1, len(row)))
        rows[heaviest] = [row[i] for i in one]
        rows.append([row[i] for i in other])
        cost[heaviest] = int(work[rows[heaviest]].sum())
        cost.append(int(work[rows[-1]].sum()))
    order = sorted(range(len(rows)), key=lambda r: (-cost[r], rows[r]))
    sums = [0] * ranks
    result: List[List[int]] = []
    for first in range(0, len(order), ranks):
        run = order[first : first + ranks]
        places = sorted(range(len(run)), key=lambda rank: (sums[rank], rank))
        own: List[List[int]] = [[] for _ in run]
        for r, rank in zip(run, places):
            own[rank] = rows[r]
            sums[rank] += cost[r]
        result += own
    return result


def _separate(
    work: np.ndarray,
    lengths: np.ndarray,
    is_multimodal: np.ndarray,
    is_padded: bool,
    ranks: int,
    cap: int,
    multiple: int,
) -> List[List[int]]:
    """As `_dynamic`, where no micro-batch has both multimodal samples and others. If `is_padded`,
    the cap limits the number of multimodal samples times their largest length."""
    rows: List[List[int]] = []
    for kind in (False, True):
        own = np.flatnonzero(is_multimodal == kind)
        if own.size == 0:
            continue
        if kind and is_padded:
            packed = _core.pack_padded(lengths[own], cap)
            parts = packed.groups.tolist() + [[i] for i in packed.oversized.tolist()]
        else:
            parts = _dynamic(work[own], lengths[own], 1, cap, 1)
        rows += [own[part].tolist() for part in parts]
    return _split_rows(rows, work, ranks, multiple)


def _token_steps(
    counts: List[int], tokens: List[int], target: int, ranks: int
) -> List[Tuple[int, int]]:
    """The first and the last rollout of each step, whose tokens are as close to `target` as slime
    makes them: the samples of a step are a multiple of the ranks, and the step ends with the first
    rollout that reaches the target, or with the last one below it if that is closer."""
    steps = []
    first = 0
    while first < len(counts):
        last, samples, total = len(counts), 0, 0
        below: Optional[Tuple[int, int]] = None
        for rollout in range(first, len(counts)):
            samples += counts[rollout]
            total += tokens[rollout]
            if samples % ranks:
                continue
            if total >= target:
                is_closer = below is not None and target - below[1] < total - target
                last = below[0] if below is not None and is_closer else rollout + 1
                break
            below = (rollout + 1, total)
        if sum(counts[first:last]) % ranks:
            break
        steps.append((first, last))
        first = last
    return steps


@named
def build_dp_schedule(
    args: Any,
    train_parallel_config: Mapping[str, int],
    total_lengths: Sequence[int],
    *,
    global_batch_size: int,
    rollout_indices: Sequence[Any],
    sample_is_multimodal: Optional[Sequence[bool]] = None,
    linear_cost: Optional[int] = None,
) -> Schedule:
    """The samples of each rank, its micro-batches as places in these samples, the micro-batches of
    a rank in each step, and the rollouts of each step.

    `omnibal.micro_batches` packs each step. All ranks have the same number of micro-batches in a
    step, a multiple of `microbatch_group_size_per_vp_stage` with virtual stages, and no
    micro-batch is empty. With `use_dynamic_batch_size` a micro-batch has at most
    `max_tokens_per_gpu * cp_size` tokens, times `packing_safety_margin`; a longer sample is alone in
    its micro-batch. Otherwise a micro-batch has at most `micro_batch_size` samples. The samples of a
    rollout stay in one step; the rollouts that do not fill a step are left out, as in slime.

    The ranks are always balanced, as with `balance_data`: a sample costs
    `length**2 + linear_cost * length`. The default of `linear_cost` is 6 * `args.hidden_size`.
    An assertion of slime is a ValueError here.

    With `args.global_batch_tokens` a step ends where its tokens are closest to this number and its
    samples are a multiple of the ranks, as in slime; `global_batch_size` then has no effect. With
    `args.multimodal_aware_packing` "separate" or "separate_raw" and dynamic sizes, no micro-batch has
    both samples of `sample_is_multimodal` and others. With "separate" the cap then limits the padded
    size of multimodal micro-batches: their samples times the largest length.
    """
    kind = getattr(args, "multimodal_aware_packing", "off")
    if kind not in ("off", "separate", "separate_raw"):
        raise ValueError(
            "omnibal: multimodal_aware_packing is %r, must be 'off', 'separate' or 'separate_raw'"
            % (kind,)
        )
    ranks = whole_number(train_parallel_config["dp_size"], "dp_size", 1)
    multiple = 1
    if train_parallel_config["vpp_size"] > 1:
        multiple = whole_number(
            train_parallel_config["microbatch_group_size_per_vp_stage"],
            "microbatch_group_size_per_vp_stage", 1,
        )
    lengths = whole_numbers(total_lengths, "total_lengths", 0)
    if len(rollout_indices) != lengths.size:
        raise ValueError(
            "omnibal: there are %d rollout_indices for %d samples"
            % (len(rollout_indices), lengths.size)
        )
    is_multimodal = np.zeros(lengths.size, dtype=bool)
    if sample_is_multimodal is not None:
        is_multimodal = np.asarray(sample_is_multimodal, dtype=bool)
        if is_multimodal.shape != lengths.shape:
            raise ValueError(
                "omnibal: there are %d elements of sample_is_multimodal for %d samples"
                % (is_multimodal.size, lengths.size)
            )
    linear = getattr(args, "hidden_size", 4096) * 6 if linear_cost is None else linear_cost
    work = workload(lengths, whole_number(linear, "linear_cost", 0), "total_lengths")
    samples_of: Dict[Any, List[int]] = {}
    for sample, rollout in enumerate(rollout_indices):
        samples_of.setdefault(rollout, []).append(sample)
    rollouts = list(samples_of)
    target = getattr(args, "global_batch_tokens", None)
    if target is None:
        size = whole_number(global_batch_size, "global_batch_size", 1)
        if len(rollouts) < size:
            raise ValueError(
                "omnibal: num_rollouts is %d, must be at least global_batch_size, %d"
                % (len(rollouts), size)
            )
        ends = range(size, len(rollouts) + 1, size)
        steps = [(end - size, end) for end in ends]
    else:
        steps = _token_steps(
            [len(samples_of[r]) for r in rollouts],
            [int(lengths[samples_of[r]].sum()) for r in rollouts],
            whole_number(target, "global_batch_tokens", 1),
            ranks,
        )
        if not steps:
            raise ValueError(
                "omnibal: %d rollouts have %d samples, of which no step is a multiple of dp_size, %d"
                % (len(rollouts), lengths.size, ranks)
            )
    partitions: List[List[int]] = [[] for _ in range(ranks)]
    places: List[List[List[int]]] = [[] for _ in range(ranks)]
    counts = []
    for step, (first, last) in enumerate(steps):
        own = np.array([i for r in rollouts[first:last] for i in samples_of[r]])
        if args.use_dynamic_batch_size:
            margin = getattr(args, "packing_safety_margin", 1.0)
            cap = whole_number(args.max_tokens_per_gpu, "max_tokens_per_gpu", 1)
            cap = max(1, int(cap * train_parallel_config["cp_size"] * margin))
            if kind != "off" and is_multimodal[own].any():
                rows = _separate(
                    work[own], lengths[own], is_multimodal[own], kind == "separate", ranks, cap,
                    multiple,
                )
            else:
                rows = _dynamic(work[own], lengths[own], ranks, cap, multiple)
        else:
            batch = whole_number(args.micro_batch_size, "micro_batch_size", 1)
            rows = _static(work[own], batch, ranks, multiple)
        if len(rows) > own.size or len(rows) % (ranks * multiple):
            wanted = -(-len(rows) // (ranks * multiple)) * ranks * multiple
            raise ValueError(
                "omnibal: step %d has %d samples for %d micro-batches, must have one for each"
                % (step, own.size, wanted)
            )
        counts.append(len(rows) // ranks)
        for row, samples in enumerate(fill_rows(rows, work[own])):
            rank = row % ranks
            begin = len(partitions[rank])
            partitions[rank] += own[samples].tolist()
            places[rank].append(list(range(begin, len(partitions[rank]))))
    return partitions, places, counts, [last - first for first, last in steps]
