# SPDX-License-Identifier: Apache-2.0
"""The functions of verl's `seqlen_balancing` that compute with lengths.

Parts are evener than those of verl, and the cap of tokens is strict. What verl asserts is a
ValueError.
"""

from typing import Any, List, Literal, Optional, Sequence, Union

import numpy as np

from .. import _core
from ._integers import (
    LINEAR_COST, MOST, fill_rows, named, numbers, whole_number, whole_numbers, workload,
)

# The largest sum may exceed a lower bound by this share of it; the search for less takes long.
_OVERLOAD = 1e-6


@named
def calculate_workload(seqlen_list: Any) -> Any:
    """verl's cost of a sequence, that of a model with 7 billion parameters."""
    return workload(whole_numbers(seqlen_list, "seqlen_list", 0), LINEAR_COST, "seqlen_list")


def _check_sum(values: np.ndarray) -> None:
    total = sum(values.tolist())
    if total > MOST:
        raise ValueError("omnibal: the sum is %d, must be at most %d" % (total, MOST))


@named
def get_seqlen_balanced_partitions(
    seqlen_list: Sequence[float],
    k_partitions: int,
    equal_size: Union[bool, Literal["at_most_one_apart"]],
) -> List[List[int]]:
    """Indices of `k_partitions` parts with even sums, ascending in each part; with `equal_size` as
    many in each, which requires a multiple of `k_partitions`. "at_most_one_apart" requires none: the
    numbers of items of two parts then differ by one at most."""
    costs = numbers(seqlen_list, "seqlen_list")
    k_partitions = whole_number(k_partitions, "k_partitions", 1)
    if costs.size < k_partitions:
        raise ValueError(
            "omnibal: there are %d items for %d partitions" % (costs.size, k_partitions)
        )
    if equal_size is True and costs.size % k_partitions:
        raise ValueError(
            "omnibal: there are %d items for %d partitions, must be a multiple; "
            "equal_size='at_most_one_apart' accepts any number" % (costs.size, k_partitions)
        )
    if equal_size:
        count = equal_size if isinstance(equal_size, str) else "equal"
        parts = _core.lpt(costs, k_partitions, count=count)
        return _core.refine_parts(costs, parts, counts="kept", max_overload=_OVERLOAD).tolist()
    parts = _core.karmarkar_karp(costs, k_partitions)
    return _core.refine_parts(costs, parts, max_overload=_OVERLOAD).tolist()


@named
def get_group_balanced_partitions(
    seqlen_list: Sequence[int],
    uid_list: Sequence[Any],
    k_partitions: int,
    *,
    equal_size: Union[bool, Literal["at_most_one_apart"]] = True,
) -> List[List[int]]:
    """The same for samples that stay together, neighbors with the same uid such as the answers to a
    prompt: as many such groups in each part, or by `equal_size` at most one apart, or any number. A
    uid whose samples are not neighbors is an error, as they would be split."""
    if len(seqlen_list) != len(uid_list):
        raise ValueError(
            "omnibal: there are %d lengths and %d uids"
            % (len(seqlen_list), len(uid_list))
        )
    first = [i for i, uid in enumerate(uid_list) if i == 0 or uid != uid_list[i - 1]]
    seen = set()
    for i in first:
        if uid_list[i] in seen:
            raise ValueError(
                "omnibal: uid %r of sample %d is apart from its other samples, "
                "samples of one uid must be neighbors" % (uid_list[i], i)
            )
        seen.add(uid_list[i])
    ends = first[1:] + [len(uid_list)]
    work = calculate_workload(seqlen_list)
    _check_sum(work)
    costs = np.add.reduceat(work, first) if first else work
    k_partitions = whole_number(k_partitions, "k_partitions", 1)
    if equal_size and equal_size != "at_most_one_apart" and costs.size % k_partitions:
        raise ValueError(
            "omnibal: there are %d groups of one uid for %d partitions, must be a multiple; "
            "equal_size='at_most_one_apart' accepts any number" % (costs.size, k_partitions)
        )
    parts = get_seqlen_balanced_partitions(costs, k_partitions, equal_size)
    return [[i for g in part for i in range(first[g], ends[g])] for part in parts]


@named
def rearrange_micro_batches(
    seq_len_effective: Sequence[int],
    max_token_len: int,
    num_batches_divided_by: Optional[int] = None,
    min_num_micro_batch: Optional[int] = None,
    use_dynamic_bsz_balance: bool = True,
    force_group_size: int = 1,
    *,
    oversized: Literal["own_group", "reject"] = "reject",
) -> List[List[int]]:
    """The index lists of verl's `rearrange_micro_batches`, of lengths instead of a batch.

    The fewest micro-batches that are found, none above `max_token_len`, with even work. With
    `use_dynamic_bsz_balance` the small ones come first and last, as in verl. Ranks that must have
    as many pass the largest number of them as `min_num_micro_batch`, or balance the global batch
    at once with `omnibal.micro_batches`. Where more are asked for than there are groups of samples,
    by it or by `num_batches_divided_by`, some are empty. A sample above the limit is an error, or
    with `oversized="own_group"` a micro-batch of its own.
    """
    lengths = whole_numbers(seq_len_effective, "seq_len_effective", 0)
    max_token_len = whole_number(max_token_len, "max_token_len")
    force_group_size = whole_number(force_group_size, "force_group_size", 1)
    multiple, least = 1, 0
    if num_batches_divided_by is not None:
        multiple = whole_number(num_batches_divided_by, "num_batches_divided_by", 1)
    if min_num_micro_batch is not None:
        least = whole_number(min_num_micro_batch, "min_num_micro_batch", 0)
    least = -(-least // multiple) * multiple
    if lengths.size % force_group_size:
        raise ValueError(
            "omnibal: %d samples are not groups of %d" % (lengths.size, force_group_size)
        )
    if lengths.size == 0:
        return [[] for _ in range(least)]
    _check_sum(lengths)
    tokens = lengths.reshape(-1, force_group_size).sum(axis=1)
    if oversized == "reject" and int(tokens.max()) > max_token_len:
        long = int(tokens.argmax())
        raise ValueError(
            "omnibal: %s %d has %d tokens, must be at most max_token_len, %d; oversized='own_group' "
            "accepts it"
            % ("sample" if force_group_size == 1 else "group", long, tokens[long], max_token_len)
        )
    work = calculate_workload(lengths)
    _check_sum(work)
    work = work.reshape(-1, force_group_size).sum(axis=1)
    parts = _core.micro_batches(
        work, 1, tokens, max_token_len, multiple_of=multiple, oversized=oversized
    ).cells.tolist()
    if least > len(parts):
        within = _core.balance_under_capacity(
            work, least, tokens, max_token_len, oversized=oversized
        )
        if within.status == "solved":
            parts = within.parts.tolist()
        parts += [[] for _ in range(least - len(parts))]
    cost = work.tolist()
    if len(parts) <= len(cost):
        parts = fill_rows(parts, cost)
    if use_dynamic_bsz_balance:
        parts.sort(key=lambda part: (sum(cost[g] for g in part), part[:1]), reverse=True)
        parts = parts[::2][::-1] + parts[1::2]
    return [
        [i for g in part for i in range(g * force_group_size, (g + 1) * force_group_size)]
        for part in parts
    ]


@named
def get_reverse_idx(idx_map: Sequence[int]) -> List[int]:
    """The inverse of a permutation."""
    given = whole_numbers(idx_map, "idx_map", 0)
    result = [-1] * given.size
    for place, index in enumerate(given.tolist()):
        if index >= len(result) or result[index] != -1:
            raise ValueError("omnibal: idx_map is no permutation: see its element %d" % place)
        result[index] = place
    return result
