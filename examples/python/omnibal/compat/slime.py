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
    An assertion of slime is a ValueError here. `global_batch_tokens` and `multimodal_aware_packing` are
    not supported and are errors if set.
    """
    if getattr(args, "global_batch_tokens", None) is not None:
        raise ValueError("omnibal: global_batch_tokens is not supported")
    kind = getattr(args, "multimodal_aware_packing", "off")
    if kind != "off" and sample_is_multimodal is not None and any(sample_is_multimodal):
        raise ValueError("omnibal: multimodal_aware_packing is %r, must be 'off'" % (kind,))
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
    linear = getattr(args, "hidden_size", 4096) * 6 if linear_cost is None else linear_cost
    work = workload(lengths, whole_number(linear, "linear_cost", 0), "total_lengths")
    samples_of: Dict[Any, List[int]] = {}
    for sample, rollout in enumerate(rollout_indices):
        samples_of.setdefault(rollout, []).append(sample)
    rollouts = list(samples_of)
    size = whole_number(global_batch_size, "global_batch_size", 1)
    if len(rollouts) < size:
        raise ValueError(
            "omnibal: num_rollouts is %d, must be at least global_batch_size, %d"
            % (len(rollouts), size)
        )
    partitions: List[List[int]] = [[] for _ in range(ranks)]
    places: List[List[List[int]]] = [[] for _ in range(ranks)]
    counts = []
    for first in range(0, len(rollouts) - size + 1, size):
        own = np.array([i for r in rollouts[first : first + size] for i in samples_of[r]])
        if args.use_dynamic_batch_size:
            margin = getattr(args, "packing_safety_margin", 1.0)
            cap = whole_number(args.max_tokens_per_gpu, "max_tokens_per_gpu", 1)
            cap = max(1, int(cap * train_parallel_config["cp_size"] * margin))
            rows = _dynamic(work[own], lengths[own], ranks, cap, multiple)
        else:
            batch = whole_number(args.micro_batch_size, "micro_batch_size", 1)
            rows = _static(work[own], batch, ranks, multiple)
        if len(rows) > own.size:
            raise ValueError(
                "omnibal: step %d has %d samples for %d micro-batches, must have one for each"
                % (first // size, own.size, len(rows))
            )
        counts.append(len(rows) // ranks)
        for row, samples in enumerate(fill_rows(rows, work[own])):
            rank = row % ranks
            begin = len(partitions[rank])
            partitions[rank] += own[samples].tolist()
            places[rank].append(list(range(begin, len(partitions[rank]))))
    return partitions, places, counts, [size] * len(counts)
