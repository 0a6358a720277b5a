# SPDX-License-Identifier: Apache-2.0
"""The order of tokens for PyTorch's context parallelism, with even attention on all ranks.

`LoadBalancer` has the method of `_LoadBalancer` in
`torch/distributed/tensor/experimental/_context_parallel/_load_balancer.py` of PyTorch 2.10. Pass
it to `_context_parallel_shard`, or derive a class from both where a trainer checks the type:
`class Balancer(LoadBalancer, _LoadBalancer): ...`. The module imports torch only to make the tensor.
"""

from typing import Any, Optional, Sequence

import numpy as np

from .. import _core
from ._integers import named, whole_number, whole_numbers


class LoadBalancer:
    """Rearranges the tokens of packed documents so that all ranks have even causal attention.

    Rank r gets the r-th of `world_size` equal chunks of the rearranged sequence, as by `torch.chunk`.
    The sequence is cut into blocks, and `omnibal.lpt` with equal counts and `omnibal.refine_parts`
    assign the blocks to ranks by their pairs of tokens. The documents may have any lengths, whereas
    `_PerDocumentHeadTailLoadBalancer` requires multiples of twice the ranks. The ranks are at least
    as even as with the order of `_PTRRLoadBalancer` over the same blocks. Use it with
    `flex_attention`, because PyTorch's ring attention expects its own order of head and tail.

    Args:
        seq_length_per_doc: the lengths of the documents of each sequence of the batch, or of one
            sequence if all are alike. The sequences have the same total length.
        world_size: the number of ranks. It divides the length of a sequence.
        device: the device of the tensor.
        block_size: the number of neighboring tokens that stay together, such as the block of a
            `BlockMask`. Smaller blocks make ranks more even. Default: the largest power of two up to
            128 that divides the tokens of a rank into 16 blocks or more, else 1.

    Attributes:
        pairs: the pairs of tokens of each rank, one row for each sequence.
    """

    @named
    def __init__(
        self,
        seq_length_per_doc: Sequence[Sequence[int]],
        world_size: int,
        device: Any = "cpu",
        *,
        block_size: Optional[int] = None,
    ) -> None:
        self.world_size = whole_number(world_size, "world_size", 1)
        self.device = device
        if any(np.ndim(row) == 0 for row in seq_length_per_doc):
            raise ValueError(
                "omnibal: seq_length_per_doc is a list of numbers, must have a list of lengths for "
                "each sequence"
            )
        rows = [whole_numbers(row, "seq_length_per_doc", 1) for row in seq_length_per_doc]
        tokens = {int(row.sum()) for row in rows}
        if len(tokens) != 1 or any(row.ndim != 1 for row in rows):
            raise ValueError(
                "omnibal: the sums of seq_length_per_doc are %s, must be one number"
                % sorted(tokens)
            )
        (self.seq_length,) = tokens
        own, rest = divmod(self.seq_length, self.world_size)
        if rest or not own:
            raise ValueError(
                "omnibal: the sequence has %d tokens, must be a multiple of world_size, %d"
                % (self.seq_length, self.world_size)
            )
        if block_size is None:
            powers = [1 << k for k in range(8)]
            block_size = max([b for b in powers if own % b == 0 and own >= 16 * b], default=1)
        self.block_size = whole_number(block_size, "block_size", 1)
        if own % self.block_size:
            raise ValueError(
                "omnibal: block_size is %d, must divide the %d tokens of a rank"
                % (self.block_size, own)
            )
        orders, pairs = zip(*(self._order(row) for row in rows))
        self._indices = np.stack(orders)
        self.pairs = np.stack(pairs)

    def _order(self, lengths: np.ndarray) -> Any:
        """The rearranged positions of a sequence, and the pairs of each rank."""
        ends = np.repeat(np.cumsum(lengths) - lengths, lengths)
        attended = np.arange(self.seq_length) - ends + 1
        work = attended.reshape(-1, self.block_size).sum(axis=1)

        def refined(parts: Any) -> Any:
            """The parts after exchanges of blocks."""
            return _core.refine_parts(work, parts, counts="kept")

        candidates = [
            refined(_core.lpt(work, self.world_size, count="equal")),
            refined(_core.deal(work, self.world_size)),
        ]
        best = min(candidates, key=lambda parts: int(_core.group_loads(parts, work).max()))
        blocks = np.concatenate([np.sort(part) for part in best]).astype(np.int64)
        positions = blocks[:, None] * self.block_size + np.arange(self.block_size)
        return positions.ravel(), _core.group_loads(best, work)

    def indices(self, restore: bool = False) -> np.ndarray:
        """The indices as an array of int64 with a row for each sequence."""
        return np.argsort(self._indices, axis=1, kind="stable") if restore else self._indices

    def _generate_indices(self, restore: bool = False) -> Any:
        """The tensor with which PyTorch rearranges a sequence, or with `restore` its inverse."""
        import torch

        return torch.from_numpy(self.indices(restore)).to(self.device)
