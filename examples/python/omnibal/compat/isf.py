# SPDX-License-Identifier: Apache-2.0
"""OmniBal's iterative sampling and filtering, as its `dataset` and `fast_isf` have it.

Token lengths are items `[index, images, tokens]`, as there. The groups and their order are the
reference's, bit for bit, where no sample exceeds a capacity and `vit_min` is `vit_max`. Samples
that exceed one, which the reference leaves out without a word, and the open group that it loses
with one in the last place, are here in groups of their own at the end. Of a smaller `vit_min` the
reference keeps groups of exactly as many images; here those of more are kept, too.
"""

from typing import Any, List, Optional, Sequence

from .. import _core
from ._integers import named, whole_number, whole_numbers

Item = Sequence[Any]


@named
def fast_process_random_groups(
    patch_set: Sequence[Item],
    seed: int,
    vit_min: int,
    vit_max: int,
    llm_min: int,
    llm_max: int,
    iter_time: int = 3,
) -> List[List[Item]]:
    """The groups of items of `iter_time` rounds: of at most `vit_max` images and `llm_max` tokens,
    kept from `vit_min` images or `llm_min` tokens on."""
    if len(patch_set) == 0:
        return []
    demands = (
        whole_numbers([item[1] for item in patch_set], "images"),
        whole_numbers([item[2] for item in patch_set], "tokens"),
    )
    packed = _core.isf(
        demands,
        (whole_number(vit_max, "vit_max"), whole_number(llm_max, "llm_max")),
        rounds=whole_number(iter_time, "iter_time"),
        threshold=(whole_number(vit_min, "vit_min"), whole_number(llm_min, "llm_min")),
        seed=whole_number(seed, "seed", 0),
        shuffle="numpy",
    )
    groups = packed.groups.tolist() + [[i] for i in packed.oversized.tolist()]
    return [[patch_set[i] for i in group] for group in groups]


@named
def iter_random_groups(
    groups: Sequence[Item],
    seed: int = 1024,
    vit_thresh: Optional[int] = None,
    vit_max: int = 9,
    llm_thresh: int = 4050,
    llm_max: int = 4096,
    iter_time: int = 300,
) -> List[List[Item]]:
    """The method of `BalancedDataset`; what is left out is what its constructor takes then."""
    return fast_process_random_groups(
        groups,
        seed,
        vit_max if vit_thresh is None else vit_thresh,
        vit_max,
        llm_thresh,
        llm_max,
        iter_time,
    )
