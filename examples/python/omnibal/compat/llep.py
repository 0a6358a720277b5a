# SPDX-License-Identifier: Apache-2.0
"""The plan of Least-Loaded Expert Parallelism (LLEP) for a batch, with fewer copies of experts."""

from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

import numpy as np

from .. import _core
from . import _experts
from ._integers import named, whole_number, whole_numbers


@dataclass
class WeightTransferPlan:
    """A copy of an expert on a rank that is not its home, and its range of tokens."""

    expert_id: int
    src_rank: int
    dst_rank: int
    token_start: int
    token_end: int


@dataclass
class LLEPLptPlan:
    """The ranks and ranges of tokens of each expert with tokens, its home first. All ranks compute
    the same plan, except for the (expert, rank) pairs that this rank sends and receives."""

    lpt_plan: Dict[int, List[Tuple[int, int, int]]]
    weight_transfers: List[WeightTransferPlan]
    gpu_loads: Any
    weights_to_send: List[Tuple[int, int]]
    weights_to_receive: List[Tuple[int, int]]


def _overload(total: int, ranks: int, factor: float) -> float:
    """The share above the mean, rounded up, at which the cap is that of LLEP, but at least 0."""
    mean = -(-total // ranks)
    cap = int(factor * (total // ranks))
    return max(0.0, (cap + 0.5) / mean - 1) if mean else 0.0


@named
def compute_llep_lpt_plan(
    global_expert_counts: Any,
    ep_size: int,
    ep_rank: int,
    num_local_experts: int,
    max_tokens_factor: float = 1.1,
    min_tokens_per_gemm: int = 1024,
    *,
    effort: Any = "normal",
) -> LLEPLptPlan:
    """The plan of LLEP: expert e has its home on rank e // num_local_experts, and no rank has more
    than `max_tokens_factor` times the mean tokens.

    `min_tokens_per_gemm` has no effect. A cap below the mean becomes the mean, rounded up.
    """
    counts = whole_numbers(_experts.from_tensor(global_expert_counts), "global_expert_counts", 0)
    ranks = whole_number(ep_size, "ep_size", 1)
    rank = whole_number(ep_rank, "ep_rank", 0)
    local = whole_number(num_local_experts, "num_local_experts", 1)
    whole_number(min_tokens_per_gemm, "min_tokens_per_gemm", 0)
    if counts.ndim != 1 or counts.size != ranks * local:
        raise ValueError("omnibal: global_expert_counts has the shape %s, must be (%d,)"
                         % (counts.shape, ranks * local))
    if rank >= ranks:
        raise ValueError("omnibal: ep_rank is %d, must be below the %d ranks" % (rank, ranks))
    if not 0 <= max_tokens_factor < float("inf"):
        raise ValueError("omnibal: max_tokens_factor is %s, must be finite and not negative"
                         % max_tokens_factor)
    home = np.arange(counts.size) // local
    overload = _overload(sum(counts.tolist()), ranks, max_tokens_factor)
    spill = _core.spill_experts(counts, home, ranks, max_overload=overload, effort=effort)
    stays = spill.home_tokens.tolist()
    parts: Dict[int, List[Tuple[int, int, int]]] = {
        e: [(e // local, 0, stays[e])] if stays[e] else [] for e in np.flatnonzero(counts).tolist()
    }
    ends = list(stays)
    transfers = []
    for e, to, tokens in zip(spill.experts.tolist(), spill.ranks.tolist(), spill.tokens.tolist()):
        transfers.append(WeightTransferPlan(e, e // local, to, ends[e], ends[e] + tokens))
        parts[e].append((to, ends[e], ends[e] + tokens))
        ends[e] += tokens
    return LLEPLptPlan(
        lpt_plan=parts,
        weight_transfers=transfers,
        gpu_loads=_experts.like(global_expert_counts, spill.rank_tokens),
        weights_to_send=[(t.expert_id, t.dst_rank) for t in transfers if t.src_rank == rank],
        weights_to_receive=[(t.expert_id, t.src_rank) for t in transfers if t.dst_rank == rank],
    )
