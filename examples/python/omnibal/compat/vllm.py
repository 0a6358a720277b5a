# SPDX-License-Identifier: Apache-2.0
"""The policy of vLLM's expert-parallel load balancer (EPLB), with few moved experts.

`EplbPolicy` has the interface of `AbstractEplbPolicy` of version 0.23, which returns the physical
map only. `rebalance_experts` returns the three maps of `DefaultEplbPolicy` of version 0.18. The
search begins at the old placement, and experts that stay on a rank keep their slots.
"""

from typing import Any, Optional, Tuple

from . import _experts
from ._integers import named, whole_number


@named
def rebalance_experts(
    weight: Any,
    num_replicas: int,
    num_groups: int,
    num_nodes: int,
    num_ranks: int,
    old_global_expert_indices: Any = None,
    *,
    max_moved_share: Optional[float] = 0.5,
    effort: Any = "normal",
) -> Tuple[Any, Any, Any]:
    """The expert of each replica (layers x replicas), the replicas of each expert (layers x experts
    x redundant replicas + 1, with -1 after the last), and their number (layers x experts).

    At most the share `max_moved_share` of the replicas moves to ranks that did not have their
    expert; None is no limit. If `num_nodes` does not divide `num_groups`, groups and nodes are
    ignored, as in vLLM. An old placement is ignored if it has another number of replicas, or a
    group on several nodes.
    """
    replicas = _experts.physical_to_logical(
        weight, num_replicas, num_groups, num_nodes, num_ranks, old_global_expert_indices,
        max_moved_share, effort,
    )
    experts = weight.shape[1] if hasattr(weight, "shape") else len(weight[0])
    width = whole_number(num_replicas, "num_replicas") - experts + 1
    of_experts, counts = _experts.logical_to_physical(replicas, experts, width)
    return tuple(_experts.like(weight, of) for of in (replicas, of_experts, counts))


class EplbPolicy:
    """A policy for `EPLB_POLICIES`. A derived class may have another share of moved replicas."""

    max_moved_share: Optional[float] = 0.5
    effort: str = "normal"

    @classmethod
    @named
    def rebalance_experts(
        cls,
        weight: Any,
        num_replicas: int,
        num_groups: int,
        num_nodes: int,
        num_ranks: int,
        old_global_expert_indices: Any = None,
    ) -> Any:
        """The expert of each replica (layers x replicas); see `rebalance_experts`."""
        replicas = _experts.physical_to_logical(
            weight, num_replicas, num_groups, num_nodes, num_ranks, old_global_expert_indices,
            cls.max_moved_share, cls.effort,
        )
        return _experts.like(weight, replicas)
