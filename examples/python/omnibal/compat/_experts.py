# SPDX-License-Identifier: Apache-2.0
"""Placements of experts in the form of EPLB, for arrays of NumPy and tensors of PyTorch."""

import math
from typing import Any, Optional, Tuple

import numpy as np

from .. import _core
from ._integers import numbers, whole_number, whole_numbers


def from_tensor(values: Any) -> Any:
    """An array of a tensor, also from a device; what is no tensor stays itself."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    # NumPy has no type for bfloat16.
    return (values.float() if values.is_floating_point() else values).numpy()


def like(given: Any, result: np.ndarray) -> Any:
    """The result as a tensor on the host if `given` is a tensor."""
    if not hasattr(given, "detach"):
        return result
    import torch

    return torch.from_numpy(result)


def _keep_slots(experts: np.ndarray, old: np.ndarray) -> None:
    """Reorders the slots of each rank so that an expert that stays on a rank keeps its slot."""
    for new_row, old_row in zip(experts.reshape(-1, experts.shape[-1]),
                                old.reshape(-1, old.shape[-1])):
        kept = np.isin(new_row, old_row)
        slots = {int(expert): slot for slot, expert in enumerate(old_row)}
        places = [slots[int(expert)] for expert in new_row[kept]]
        free = sorted(set(range(len(new_row))) - set(places))
        new_row[places + free] = np.concatenate([new_row[kept], new_row[~kept]])


def _has_groups_on_nodes(old: np.ndarray, experts: int, groups: int, nodes: int) -> bool:
    """Whether each group has all of its copies on one node, and all nodes as many groups."""
    layers = old.shape[0]
    used = np.zeros((layers, groups, nodes), dtype=bool)
    group = (old // (experts // groups)).reshape(layers, nodes, -1)
    layer, node, _ = np.indices(group.shape, sparse=True)
    used[layer, group, node] = True
    return bool((used.sum(axis=2) == 1).all() and (used.sum(axis=1) == groups // nodes).all())


def physical_to_logical(
    weight: Any,
    replicas: Any,
    groups: Any,
    nodes: Any,
    ranks: Any,
    old: Any,
    max_moved_share: Optional[float],
    effort: Any,
) -> np.ndarray:
    """The expert of each replica, int64 of shape (layers, replicas)."""
    loads = numbers(from_tensor(weight), "weight")
    if loads.ndim != 2 or loads.size == 0:
        raise ValueError("omnibal: weight has the shape %s, must be (layers, experts)"
                         % (loads.shape,))
    layers, experts = loads.shape
    replicas = whole_number(replicas, "num_replicas", 1)
    ranks = whole_number(ranks, "num_ranks", 1)
    groups = whole_number(groups, "num_groups", 1)
    nodes = whole_number(nodes, "num_nodes", 1)
    if replicas % ranks:
        raise ValueError("omnibal: num_replicas is %d, must be a multiple of %d ranks"
                         % (replicas, ranks))
    if groups % nodes:
        groups = nodes = 1
    slots = replicas // ranks
    before = None
    if old is not None:
        before = whole_numbers(from_tensor(old), "the old placement", 0)
        if before.ndim != 2 or before.shape[0] != layers:
            raise ValueError("omnibal: the old placement has the shape %s, must be (%d, replicas)"
                             % (before.shape, layers))
        if before.size and int(before.max()) >= experts:
            raise ValueError("omnibal: an element of the old placement is %d, must be below the "
                             "%d experts" % (before.max(), experts))
        fits = before.shape[1] == replicas and experts % groups == 0 and ranks % nodes == 0
        if fits and _has_groups_on_nodes(before, experts, groups, nodes):
            before = before.reshape(layers, ranks, slots)
        else:
            before = None
    most = None
    if max_moved_share is not None:
        if not 0 <= max_moved_share <= 1:
            raise ValueError("omnibal: max_moved_share is %s, must be from 0 to 1"
                             % max_moved_share)
        if before is not None:
            most = math.floor(max_moved_share * before.size)
    placed = _core.place_experts(loads, slots, ranks, old=before, max_moved=most, groups=groups,
                                 nodes=nodes, effort=effort)
    result = placed.experts.astype(np.int64)
    if before is not None:
        _keep_slots(result, before)
    return result.reshape(layers, replicas)


def logical_to_physical(
    replicas: np.ndarray, experts: int, width: Optional[int] = None
) -> Tuple[np.ndarray, np.ndarray]:
    """The replicas of each expert, -1 after the last, and their number. The width is that of the
    expert with the most replicas if none is given."""
    layers, count = replicas.shape
    offsets = np.arange(layers)[:, None] * experts
    keys = (replicas + offsets).ravel()
    counts = np.bincount(keys, minlength=layers * experts)
    order = np.argsort(keys, kind="stable")
    starts = np.cumsum(counts) - counts
    ordinals = np.arange(keys.size) - np.repeat(starts, counts)
    result = np.full((layers * experts, width or int(counts.max())), -1, dtype=np.int64)
    result[keys[order], ordinals] = order % count
    return result.reshape(layers, experts, -1), counts.reshape(layers, experts)
