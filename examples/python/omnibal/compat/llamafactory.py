# SPDX-License-Identifier: Apache-2.0
"""LLaMA-Factory's `greedy_knapsack`, by which it packs the lengths of a data set."""

from typing import List, Sequence

from .. import _core
from ._integers import named, whole_number, whole_numbers


@named
def greedy_knapsack(numbers: Sequence[int], capacity: int) -> List[List[int]]:
    """The lengths of each packed sequence, descending. `numbers` stays as it is, where
    LLaMA-Factory empties it, and one above the capacity is an error, where it does not end."""
    whole = whole_numbers(numbers, "numbers")
    packing = _core.best_packing(whole, whole_number(capacity, "capacity"))
    if packing.oversized.size:
        raise ValueError(
            "omnibal: a number is %d, must be at most the capacity, %d"
            % (whole[packing.oversized[0]], capacity)
        )
    groups = packing.groups.tolist()
    return [sorted((numbers[i] for i in group), reverse=True) for group in groups]
