"""The functions of verl's `seqlen_balancing` that compute with lengths.

Parts are evener than those of verl, and the cap of tokens is strict. What verl asserts is a
ValueError.
"""

from typing import Any, List, Optional, Sequence

import numpy as np

from .. import _core

# The largest sum may exceed a lower bound by this share of it; the search for less takes long.
_OVERLOAD = 1e-6


def calculate_workload(seqlen_list: Any) -> Any:
    """verl's cost of a sequence, that of a model with 7 billion parameters."""
    lengths = np.asarray(seqlen_list, dtype=np.int64)
    return 24576 * lengths + lengths * lengths


def get_seqlen_balanced_partitions(
    seqlen_list: Sequence[int], k_partitions: int, equal_size: bool
) -> List[List[int]]:
    """Indices of `k_partitions` parts with even sums, ascending in each part; with `equal_size` as
    many in each."""
    costs = np.asarray(seqlen_list)
    if costs.size < k_partitions:
        raise ValueError(
            "omnibal.compat.verl: there are %d items for %d partitions" % (costs.size, k_partitions)
        )
    if equal_size:
        parts = _core.lpt(costs, k_partitions, count="equal")
        return _core.refine(costs, parts, counts="kept", max_overload=_OVERLOAD).tolist()
    parts = _core.karmarkar_karp(costs, k_partitions)
    return _core.refine(costs, parts, max_overload=_OVERLOAD).tolist()


def get_group_balanced_partitions(
    seqlen_list: Sequence[int], uid_list: Sequence[Any], k_partitions: int
) -> List[List[int]]:
    """The same for samples that stay together: neighbours with the same uid. As many such groups in
    each part."""
    if len(seqlen_list) != len(uid_list):
        raise ValueError(
            "omnibal.compat.verl: there are %d lengths and %d uids"
            % (len(seqlen_list), len(uid_list))
        )
    first = [i for i, uid in enumerate(uid_list) if i == 0 or uid != uid_list[i - 1]]
    ends = first[1:] + [len(uid_list)]
    work = calculate_workload(seqlen_list)
    costs = np.add.reduceat(work, first) if first else work
    parts = get_seqlen_balanced_partitions(costs, k_partitions, equal_size=True)
    return [[i for g in part for i in range(first[g], ends[g])] for part in parts]


def rearrange_micro_batches(
    seq_len_effective: Sequence[int],
    max_token_len: int,
    num_batches_divided_by: Optional[int] = None,
    min_num_micro_batch: Optional[int] = None,
    use_dynamic_bsz_balance: bool = True,
    force_group_size: int = 1,
) -> List[List[int]]:
    """The index lists of verl's `rearrange_micro_batches`, of lengths instead of a batch.

    The fewest micro-batches that are found, none empty or above `max_token_len`, with even work.
    With `use_dynamic_bsz_balance` the small ones come first and last, as in verl. Ranks that must
    have as many pass the largest number of them as `min_num_micro_batch`, or balance the global
    batch at once with `omnibal.micro_batches`.
    """
    lengths = np.asarray(seq_len_effective, dtype=np.int64)
    if force_group_size < 1 or lengths.size % force_group_size:
        raise ValueError(
            "omnibal.compat.verl: %d samples are not groups of %d"
            % (lengths.size, force_group_size)
        )
    if lengths.size == 0:
        return []
    tokens = lengths.reshape(-1, force_group_size).sum(axis=1)
    work = calculate_workload(lengths).reshape(-1, force_group_size).sum(axis=1)
    multiple = num_batches_divided_by or 1
    found = _core.micro_batches(work, 1, tokens, max_token_len, multiple_of=multiple).cells
    least = -(-(min_num_micro_batch or 1) // multiple) * multiple
    count = max(len(found), least)
    if count > tokens.size:
        raise ValueError(
            "omnibal.compat.verl: %d micro-batches are needed, but there are %d groups of samples"
            % (count, tokens.size)
        )
    if count > len(found):
        found = _core.balance_within(work, count, tokens, max_token_len).parts
    parts = found.tolist()
    if use_dynamic_bsz_balance:
        parts.sort(key=lambda part: (int(work[part].sum()), part[0]), reverse=True)
        parts = parts[::2][::-1] + parts[1::2]
    return [
        [i for g in part for i in range(g * force_group_size, (g + 1) * force_group_size)]
        for part in parts
    ]


def get_reverse_idx(idx_map: Sequence[int]) -> List[int]:
    """The inverse of a permutation."""
    result = [0] * len(idx_map)
    for place, index in enumerate(idx_map):
        result[index] = place
    return result
