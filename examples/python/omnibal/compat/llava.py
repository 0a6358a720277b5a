# SPDX-License-Identifier: Apache-2.0
"""The order of LLaVA's and Transformers' length-grouped samplers.

The order is random in the large and sorted in the small: samples of a megabatch are of any length,
and its chunks, one for each rank, have as many samples and even sums.
"""

from typing import Any, List, Literal, Optional, Sequence

import numpy as np

from .. import _core
from ._integers import named, numbers, whole_number, whole_numbers


def _permutation(count: int, generator: Any) -> List[int]:
    """By a seed, a generator of NumPy, or one of PyTorch, of which the seed counts."""
    if hasattr(generator, "initial_seed"):
        generator = generator.initial_seed()
    if not hasattr(generator, "permutation"):
        # Seeds of PyTorch have 64 bits.
        generator = np.random.default_rng(generator)
    result: List[int] = generator.permutation(count).tolist()
    return result


@named
def split_to_even_chunks(
    indices: Sequence[int], lengths: Sequence[float], num_chunks: int
) -> List[List[int]]:
    """Chunks of as many indices, or one more, with even sums, the longest first in each."""
    given = whole_numbers(indices, "indices", 0)
    all_costs = numbers(lengths, "lengths")
    if given.size and int(given.max()) >= all_costs.size:
        raise ValueError(
            "omnibal: an index is %d, but there are %d lengths" % (given.max(), all_costs.size)
        )
    costs = all_costs[given]
    num_chunks = whole_number(num_chunks, "num_chunks", 1)
    policy: Literal["equal", "at_most_one_apart"] = "at_most_one_apart"
    if given.size % num_chunks == 0:
        policy = "equal"
    parts = _core.lpt(costs, num_chunks, count=policy)
    return [
        given[part[np.argsort(-costs[part], kind="stable")]].tolist() for part in parts
    ]


@named
def get_length_grouped_indices(
    lengths: Sequence[float],
    batch_size: int,
    world_size: int,
    generator: Any = None,
    merge: bool = True,
) -> List[int]:
    """An order of all samples, of which each slice of `world_size * batch_size` has a chunk of
    `batch_size` for each rank. LLaVA's; `merge` changes nothing there either."""
    given = numbers(lengths, "lengths")
    world_size = whole_number(world_size, "world_size", 1)
    size = world_size * whole_number(batch_size, "batch_size", 1)
    order = _permutation(given.size, generator)
    return [
        i
        for first in range(0, len(order), size)
        for chunk in split_to_even_chunks(order[first : first + size], given, world_size)
        for i in chunk
    ]


@named
def get_length_grouped_order(
    lengths: Sequence[float],
    batch_size: int,
    mega_batch_mult: Optional[int] = None,
    generator: Any = None,
) -> List[int]:
    """Transformers' function of the same name as the one above: megabatches of `mega_batch_mult`
    batches, each sorted from the longest sample, the longest of all first."""
    given = numbers(lengths, "lengths")
    batch_size = whole_number(batch_size, "batch_size", 1)
    if mega_batch_mult is None:
        mega_batch_mult = max(1, min(given.size // (batch_size * 4), 50))
    order = np.array(_permutation(given.size, generator), dtype=np.int64)
    size = whole_number(mega_batch_mult, "mega_batch_mult", 1) * batch_size
    megabatches = [order[first : first + size] for first in range(0, order.size, size)]
    megabatches = [batch[np.argsort(-given[batch], kind="stable")] for batch in megabatches]
    if megabatches:
        longest = max(range(len(megabatches)), key=lambda m: given[megabatches[m][0]])
        first, other = megabatches[0], megabatches[longest]
        first[0], other[0] = int(other[0]), int(first[0])
    return [int(i) for batch in megabatches for i in batch]
