# SPDX-License-Identifier: Apache-2.0
"""The tries of AReaL's tree training, from a packing instead of first fit in the given order.

`build_tries` takes the batch of AReaL's `_greedy_build_tries` and returns what that returns: the
compressed tries of all micro-batches, and the tokens of each. To use it there, pass AReaL's own
`TrieNode` as `node`.
"""

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from .. import _core
from ._integers import named, whole_number, whole_numbers

_NONE = (1 << 32) - 1


@dataclass
class TrieNode:
    """A run of tokens that the same sequences share. The root has no tokens, and has all other
    nodes in depth-first order in `nodes`. `end_idx` is inclusive."""

    tree_id: int
    start_idx: int = -1
    end_idx: int = -1
    tokens: List[int] = field(default_factory=list)
    sequence_ids: List[int] = field(default_factory=list)
    children: Dict[int, Any] = field(default_factory=dict)
    ancestors: List[Any] = field(default_factory=list)
    nodes: List[Any] = field(default_factory=list)


def _sequences(data: Dict[str, Any]) -> List[np.ndarray]:
    """The token ids of each row where its mask is not zero."""
    for key in ("input_ids", "attention_mask"):
        if key not in data:
            raise ValueError("omnibal: data has no '%s'" % key)
    ids = whole_numbers(data["input_ids"], "input_ids")
    mask = np.asarray(data["attention_mask"])
    if mask.dtype.kind != "b":
        mask = whole_numbers(data["attention_mask"], "attention_mask")
    if ids.ndim != 2 or mask.shape != ids.shape:
        raise ValueError(
            "omnibal: the shape of attention_mask is %s, must be the shape of input_ids, %s, with "
            "two dimensions" % (mask.shape, ids.shape)
        )
    return [row[of != 0] for row, of in zip(ids, mask)]


def _trie(
    tree_id: int,
    layout: Dict[str, np.ndarray],
    sequences: List[np.ndarray],
    node: Callable[..., Any],
) -> Any:
    """The compressed trie of a group: nodes at which sequences end or part."""
    starts = layout["cu_seqlens"].tolist()
    positions, sources = layout["positions"], layout["sources"].tolist()
    parents = layout["parents"].tolist()
    through: List[List[int]] = [[] for _ in parents]
    ends = [False] * len(parents)
    for sequence, segment in zip(layout["sequences"].tolist(), layout["ends"].tolist()):
        ends[segment] = True
        while segment != _NONE:
            through[segment].append(sequence)
            segment = parents[segment]
    branches = [0] * len(parents)
    for parent in parents:
        if parent != _NONE:
            branches[parent] += 1
    root = node(tree_id=tree_id)
    made: List[Any] = []
    for segment, parent in enumerate(parents):
        above = root if parent == _NONE else made[parent]
        first, last = starts[segment], starts[segment + 1]
        if first == last:
            made.append(above)
            continue
        begin = int(positions[first])
        tokens = sequences[sources[segment]][begin : begin + last - first].tolist()
        # A chain without an end or a branch is one node.
        if above is not root and branches[parent] == 1 and not ends[parent]:
            above.tokens.extend(tokens)
            above.end_idx = last - 1
            made.append(above)
            continue
        one = node(
            tree_id=tree_id,
            start_idx=first,
            end_idx=last - 1,
            tokens=tokens,
            sequence_ids=sorted(through[segment]),
            ancestors=[] if above is root else above.ancestors + [above],
        )
        above.children[tokens[0]] = one
        root.nodes.append(one)
        made.append(one)
    return root


@named
def build_tries(
    data: Dict[str, Any],
    max_tokens_per_tree: int,
    *,
    multiple_of: int = 1,
    node: Callable[..., Any] = TrieNode,
    effort: Any = "normal",
    oversized: Any = "reject",
) -> Tuple[List[Any], List[int]]:
    """The tries of the micro-batches, each with at most `max_tokens_per_tree` tokens, and the
    tokens of each. `multiple_of` divides their number, so that ranks need no empty tries. A longer
    sequence is an error, as in AReaL, or with `oversized="own_group"` a trie of its own."""
    limit = whole_number(max_tokens_per_tree, "max_tokens_per_tree", 1)
    multiple = whole_number(multiple_of, "multiple_of", 1)
    sequences = _sequences(data)
    if oversized not in ("reject", "own_group"):
        raise ValueError(
            "omnibal: oversized is %r, must be 'reject' or 'own_group'" % (oversized,)
        )
    packed = _core.pack_prefixes(
        sequences, limit, multiple_of=multiple, oversized=oversized, effort=effort
    )
    tries = [_trie(g, packed.layout(g), sequences, node) for g in range(len(packed))]
    return tries, packed.tokens.tolist()
