# SPDX-License-Identifier: Apache-2.0
"""omnibal: balanced mini-batches, micro-batches, steps, stages and recomputation for training.

Samples are given as NumPy arrays, or what becomes one: a number for each sample, a row of numbers
for several resources, or a tuple with an array for each resource. What is a contiguous array of
int64 is read where it lies; other integers and strided arrays are copied once. Results own their
arrays: groups are `offsets` and `items`. While an algorithm runs, other threads of Python do too.

A wrong argument is a ValueError that names function, argument and value; no solution is a status.
The same arguments give the same result on every machine.
"""

import warnings
from typing import Any

from ._core import (
    ContextPlan,
    EpochSampler,
    ExpertPlacement,
    ExpertSplit,
    Groups,
    ListedSchedule,
    MicroBatchOrder,
    Mixture,
    OnlinePacker,
    OnlineResult,
    Packing,
    Partition,
    PrefixPacking,
    Recompute,
    Simulation,
    SpillPlan,
    Steps,
    Tuned,
    TunedCapacity,
    Within,
    balance_under_capacity,
    best_fit_decreasing,
    best_packing,
    context_groups,
    deal,
    dist_ratio,
    group_loads,
    imbalance,
    improve_packing,
    isf,
    karmarkar_karp,
    largest_in_middle,
    list_schedule,
    loss_normalizer,
    lpt,
    micro_batches,
    next_fit,
    order_micro_batches,
    pack_padded,
    pack_prefixes,
    packing_bound,
    pad_ratio,
    partition_layers,
    partition_minimax,
    partition_throughput,
    place_experts,
    refine_parts,
    schedule_steps,
    select_recompute,
    simulate_pipeline,
    spill_experts,
    split_experts,
    tune_capacity,
    utilization,
)
from ._core import __version__ as __version__

__all__ = [
    "ContextPlan",
    "EpochSampler",
    "ExpertPlacement",
    "ExpertSplit",
    "Groups",
    "ListedSchedule",
    "MicroBatchOrder",
    "Mixture",
    "OnlinePacker",
    "OnlineResult",
    "Packing",
    "Partition",
    "PrefixPacking",
    "Recompute",
    "Simulation",
    "SpillPlan",
    "Steps",
    "Tuned",
    "TunedCapacity",
    "Within",
    "balance_under_capacity",
    "best_fit_decreasing",
    "best_packing",
    "context_groups",
    "deal",
    "dist_ratio",
    "group_loads",
    "imbalance",
    "improve_packing",
    "isf",
    "karmarkar_karp",
    "largest_in_middle",
    "list_schedule",
    "loss_normalizer",
    "lpt",
    "micro_batches",
    "next_fit",
    "order_micro_batches",
    "pack_padded",
    "pack_prefixes",
    "packing_bound",
    "pad_ratio",
    "partition_layers",
    "partition_minimax",
    "partition_throughput",
    "place_experts",
    "refine_parts",
    "schedule_steps",
    "select_recompute",
    "simulate_pipeline",
    "spill_experts",
    "split_experts",
    "tune_capacity",
    "utilization",
]

_RENAMED = {
    "balance_within": "balance_under_capacity",
    "improve": "improve_packing",
    "minimax": "partition_minimax",
    "refine": "refine_parts",
    "utilisation": "utilization",
}


def __getattr__(name: str) -> Any:
    """The function that has an old name, with a warning. Version 0.10 drops the old names."""
    if name not in _RENAMED:
        raise AttributeError("module 'omnibal' has no attribute %r" % name)
    new = _RENAMED[name]
    warnings.warn(
        "omnibal.%s is now omnibal.%s" % (name, new), DeprecationWarning, stacklevel=2
    )
    return globals()[new]
