"""LLaMA-Factory's `greedy_knapsack`, by which it packs the lengths of a data set."""

from typing import List, Sequence

import numpy as np

from .. import _core


def greedy_knapsack(numbers: Sequence[int], capacity: int) -> List[List[int]]:
    """The lengths of each packed sequence, descending. `numbers` stays as it is, where LLaMA-Factory
    empties it, and one above the capacity is an error, where LLaMA-Factory does not end."""
    if capacity < 1:
        raise ValueError(
            "omnibal.compat.llamafactory: capacity is %d, must be positive" % capacity
        )
    lengths = np.asarray(numbers)
    if lengths.size == 0:
        return []
    if lengths.dtype.kind not in "iu":
        raise ValueError(
            "omnibal.compat.llamafactory: numbers are of type %s, must be integers" % lengths.dtype
        )
    if lengths.min() < 0 or lengths.max() > capacity:
        raise ValueError(
            "omnibal.compat.llamafactory: a number is %d, must be from 0 to the capacity, %d"
            % (lengths.min() if lengths.min() < 0 else lengths.max(), capacity)
        )
    lengths = lengths.astype(np.int64, copy=False)
    groups = _core.best_packing(lengths, capacity).groups
    return [sorted(lengths[group].tolist(), reverse=True) for group in groups.tolist()]
