# SPDX-License-Identifier: Apache-2.0
"""The functions of verl's `seqlen_balancing` that compute with lengths.

Parts are evener than those of verl, and the cap of tokens is strict. What verl asserts is a
ValueError.
"""

import sys
from typing import Any, Callable, List, Literal, Mapping, Optional, Sequence, Tuple, Union, overload

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


def _index_lists(
    seq_len_effective: Any,
    max_token_len: int,
    num_batches_divided_by: Optional[int] = None,
    min_num_micro_batch: Optional[int] = None,
    use_dynamic_bsz_balance: bool = True,
    force_group_size: int = 1,
    *,
    oversized: Literal["own_group", "reject"] = "reject",
) -> List[List[int]]:
    """The index lists of the micro-batches of lengths."""
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


def _lengths_of(batch: Any) -> np.ndarray:
    """The number of tokens of each row: those of nested `input_ids`, or of the attention mask."""
    names = list(batch.keys())
    if "input_ids" in names and getattr(batch["input_ids"], "is_nested", False):
        lengths = batch["input_ids"].offsets().diff()
    elif "attention_mask" in names:
        lengths = batch["attention_mask"].sum(1)
    else:
        raise ValueError(
            "omnibal: the batch has the fields %s, must have attention_mask or nested input_ids"
            % names
        )
    return np.asarray(lengths.cpu() if hasattr(lengths, "cpu") else lengths)


def _rows_of(batch: Any, rows: List[int]) -> Any:
    """The micro-batch with the given rows, which verl selects in a TensorDict."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {name: np.asarray(values)[rows] for name, values in batch.items()}
    indices = torch.tensor(rows, dtype=torch.int64)
    if not hasattr(batch, "batch_size"):
        return {
            name: values[indices] if isinstance(values, torch.Tensor) else np.asarray(values)[rows]
            for name, values in batch.items()
        }
    if "verl" not in sys.modules:
        return batch[indices]
    from verl.utils.tensordict_utils import index_select_tensor_dict

    return index_select_tensor_dict(batch, indices)


def _largest_of_ranks(values: List[int], group: Any) -> List[int]:
    """The largest value of each place over the ranks of a group of torch.distributed."""
    import torch
    import torch.distributed

    backend = torch.distributed.get_backend(group)
    device = {"nccl": "cuda", "hccl": "npu"}.get(backend, "cpu")
    tensor = torch.tensor(values, dtype=torch.int64, device=device)
    torch.distributed.all_reduce(tensor, op=torch.distributed.ReduceOp.MAX, group=group)
    result: List[int] = tensor.tolist()
    return result


def _index_lists_of_ranks(lists: Callable[[int], List[List[int]]], group: Any) -> List[List[int]]:
    """The index lists in the number that the rank with the most needs. All ranks raise if one does,
    so that none waits for it."""
    found: List[List[int]] = []
    error = None
    try:
        found = lists(0)
    except ValueError as caught:
        error = caught
    count, has_failed = _largest_of_ranks([len(found), int(error is not None)], group)
    if error is not None:
        raise error
    if has_failed:
        raise ValueError("omnibal: another rank of dp_group has an error; see its text")
    return found if len(found) == count else lists(count)


def _micro_batches(
    batch: Any,
    max_token_len: int,
    dp_group: Any = None,
    num_batches_divided_by: Optional[int] = None,
    same_micro_num_in_dp: bool = True,
    min_num_micro_batch: Optional[int] = None,
    use_dynamic_bsz_balance: bool = True,
    force_group_size: int = 1,
    *,
    oversized: Literal["own_group", "reject"] = "reject",
) -> Tuple[List[Any], List[List[int]]]:
    """The micro-batches of a batch, and their index lists."""
    lengths = _lengths_of(batch)

    def lists(least: int) -> List[List[int]]:
        """The index lists, of which there are at least a number."""
        return _index_lists(
            lengths,
            max_token_len,
            num_batches_divided_by,
            max(least, min_num_micro_batch or 0),
            use_dynamic_bsz_balance,
            force_group_size,
            oversized=oversized,
        )

    distributed = sys.modules.get("torch.distributed")
    if dp_group is not None and same_micro_num_in_dp and distributed and distributed.is_initialized():
        indices = _index_lists_of_ranks(lists, dp_group)
    else:
        indices = lists(0)
    return [_rows_of(batch, rows) for rows in indices], indices


@overload
def rearrange_micro_batches(
    batch: Mapping[str, Any],
    max_token_len: int,
    dp_group: Any = None,
    num_batches_divided_by: Optional[int] = None,
    same_micro_num_in_dp: bool = True,
    min_num_micro_batch: Optional[int] = None,
    use_dynamic_bsz_balance: bool = True,
    force_group_size: int = 1,
    *,
    oversized: Literal["own_group", "reject"] = "reject",
) -> Tuple[List[Any], List[List[int]]]: ...


@overload
def rearrange_micro_batches(
    seq_len_effective: Sequence[int],
    max_token_len: int,
    num_batches_divided_by: Optional[int] = None,
    min_num_micro_batch: Optional[int] = None,
    use_dynamic_bsz_balance: bool = True,
    force_group_size: int = 1,
    *,
    oversized: Literal["own_group", "reject"] = "reject",
) -> List[List[int]]: ...


@named
def rearrange_micro_batches(*args: Any, **keywords: Any) -> Any:
    """The micro-batches of verl's `rearrange_micro_batches`, and their index lists.

    The first argument is a batch, a TensorDict or another mapping with "attention_mask" or nested
    "input_ids", and the others are those of verl. Or it is a list of lengths, and the others are
    `max_token_len`, `num_batches_divided_by`, `min_num_micro_batch`, `use_dynamic_bsz_balance` and
    `force_group_size`; then only the index lists are returned.

    The fewest micro-batches that are found, none above `max_token_len`, with even work. With
    `use_dynamic_bsz_balance` the small ones come first and last, as in verl. With `dp_group` all
    ranks have the number of the rank with the most; without a batch, ranks pass the largest number
    as `min_num_micro_batch`, or balance the global batch at once with `omnibal.micro_batches`. Where
    more are asked for than there are groups of samples, some are empty. A sample above the limit is
    an error, or with `oversized="own_group"` a micro-batch of its own.
    """
    first = args[0] if args else keywords.get("batch")
    if "batch" in keywords or hasattr(first, "keys"):
        return _micro_batches(*args, **keywords)
    return _index_lists(*args, **keywords)


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
