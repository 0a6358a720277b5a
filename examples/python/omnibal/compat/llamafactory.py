"""LLaMA-Factory's `greedy_knapsack`, by which it packs the lengths of a data set."""

from typing import List, Sequence

from .. import _core


def greedy_knapsack(numbers: Sequence[int], capacity: int) -> List[List[int]]:
    """The lengths of each packed sequence, descending. `numbers` stays as it is, where
    LLaMA-Factory empties it, and one above the capacity is an error, where it does not end."""
    packing = _core.best_packing(numbers, capacity)
    if packing.oversized.size:
        raise ValueError(
            "omnibal.compat.llamafactory: a number is %d, must be at most the capacity, %d"
            % (numbers[packing.oversized[0]], capacity)
        )
    groups = packing.groups.tolist()
    return [sorted((numbers[i] for i in group), reverse=True) for group in groups]
