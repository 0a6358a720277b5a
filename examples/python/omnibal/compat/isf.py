"""OmniBal's iterative sampling and filtering, as its `balanced_dynamic_batch` has it.

Token lengths are items `[index, images, tokens]`, as there. The groups and their order are the
reference's, bit for bit, where no sample exceeds a capacity. Such samples, which the reference
leaves out without a word, and the open group that it loses with one in the last place, are here in
groups of their own at the end.
"""

from typing import Any, List, Sequence

import numpy as np

from .. import _core

Item = Sequence[Any]


def fast_process_random_groups(
    token_lengths: Sequence[Item],
    seed: int,
    vit_packed_thresh: int,
    vit_packed_length: int,
    llm_thresh: int,
    llm_packed_length: int,
    iter_time: int = 10,
) -> List[List[Item]]:
    """The groups of items of `iter_time` rounds."""
    if len(token_lengths) == 0:
        return []
    demands = np.array([(item[1], item[2]) for item in token_lengths], dtype=np.int64)
    packed = _core.isf(
        demands,
        (vit_packed_length, llm_packed_length),
        rounds=iter_time,
        threshold=(vit_packed_thresh, llm_thresh),
        seed=seed,
        shuffle="numpy",
    )
    groups = packed.groups.tolist() + [[i] for i in packed.oversized.tolist()]
    return [[token_lengths[i] for i in group] for group in groups]


def iter_random_groups(
    groups: Sequence[Item],
    llm_thresh: int,
    seed: int = 1024,
    iter_time: int = 300,
    *,
    vit_packed_length: int = 9,
    llm_packed_length: int = 4096,
) -> List[List[Item]]:
    """The method of `BalancedDataset`, whose attributes are arguments here."""
    return fast_process_random_groups(
        groups, seed, vit_packed_length, vit_packed_length, llm_thresh, llm_packed_length, iter_time
    )
