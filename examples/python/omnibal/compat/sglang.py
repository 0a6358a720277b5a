# SPDX-License-Identifier: Apache-2.0
"""The function of SGLang's `eplb_algorithms` that places experts, with few of them moved."""

from typing import Any, Optional, Tuple

import numpy as np

from . import _experts
from ._integers import named, numbers, whole_number

_ALGORITHMS = ("auto", "deepseek", "deepseek_hierarchical", "deepseek_vec",
               "deepseek_vec_hierarchical")


@named
def rebalance_experts(
    tokens_per_expert: Any,
    num_physical_experts: int,
    num_local_physical_experts: int,
    num_groups: Optional[int],
    num_nodes: int,
    algorithm: Any = "auto",
    *,
    old_physical_to_logical_map: Any = None,
    max_moved_share: Optional[float] = 0.5,
    effort: Any = "normal",
) -> Tuple[Any, Any, Any]:
    """The expert of each replica (layers x replicas), the replicas of each expert (layers x experts
    x the most replicas of an expert, with -1 after the last), and their number (layers x experts).

    `tokens_per_expert` has the shape (steps, layers, experts). `algorithm` is a name or a member of
    `EplbAlgorithm` and only says whether groups are kept on nodes. At most the share
    `max_moved_share` of the replicas goes to ranks that did not have their expert in the old map;
    None is no limit.
    """
    name = getattr(algorithm, "name", algorithm)
    if name not in _ALGORITHMS:
        raise ValueError("omnibal: algorithm is %r, must be one of %s"
                         % (name, ", ".join(_ALGORITHMS)))
    tokens = numbers(_experts.from_tensor(tokens_per_expert), "tokens_per_expert")
    if tokens.ndim != 3:
        raise ValueError("omnibal: tokens_per_expert has the shape %s, must be (steps, layers, "
                         "experts)" % (tokens.shape,))
    local = whole_number(num_local_physical_experts, "num_local_physical_experts", 1)
    physical = whole_number(num_physical_experts, "num_physical_experts", 1)
    if physical % local:
        raise ValueError("omnibal: num_physical_experts is %d, must be a multiple of %d"
                         % (physical, local))
    is_grouped = num_groups is not None and (name == "auto" or name.endswith("_hierarchical"))
    replicas = _experts.physical_to_logical(
        np.sum(tokens, axis=0), physical, num_groups if is_grouped else 1,
        num_nodes if is_grouped else 1, physical // local, old_physical_to_logical_map,
        max_moved_share, effort,
    )
    of_experts, counts = _experts.logical_to_physical(replicas, tokens.shape[2])
    return tuple(_experts.like(tokens_per_expert, of) for of in (replicas, of_experts, counts))
