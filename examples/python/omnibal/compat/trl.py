"""The strategies `bfd` and `bfd_split` of TRL's `pack_dataset`.

`pack_examples` is what it maps over a data set:
`dataset.map(pack_examples, batched=True, remove_columns=..., fn_kwargs={"seq_length": 4096})`.
There are as many packed sequences as TRL makes.
"""

from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from .. import _core

Piece = Tuple[int, int, int]
"""The tokens of an example from the second number to the third."""


def _bins(lengths: np.ndarray, seq_length: int) -> List[List[int]]:
    """Best-fit decreasing; sequences in the order in which they were opened."""
    return _core.best_fit_decreasing(lengths, seq_length).groups.tolist()


def _checked(lengths: Sequence[int], seq_length: int) -> np.ndarray:
    if seq_length < 1:
        raise ValueError("omnibal.compat.trl: seq_length is %d, must be positive" % seq_length)
    result = np.asarray(lengths)
    if result.size == 0:
        return np.zeros(0, dtype=np.int64)
    if result.dtype.kind not in "iu":
        raise ValueError(
            "omnibal.compat.trl: lengths are of type %s, must be integers" % result.dtype
        )
    if result.min() < 0:
        raise ValueError("omnibal.compat.trl: a length is %d, must not be negative" % result.min())
    return result.astype(np.int64, copy=False)


def bfd(lengths: Sequence[int], seq_length: int) -> List[List[int]]:
    """The examples of each packed sequence. Longer ones count as cut to `seq_length`, empty ones
    are left out, as in TRL."""
    cut = np.minimum(_checked(lengths, seq_length), seq_length)
    kept = np.flatnonzero(cut)
    return [kept[group].tolist() for group in _bins(cut[kept], seq_length)]


def bfd_split(lengths: Sequence[int], seq_length: int) -> List[List[Piece]]:
    """The pieces of each packed sequence: longer examples are cut into pieces of `seq_length`, and
    no token is lost."""
    given = _checked(lengths, seq_length)
    counts = -(-given // seq_length)
    example = np.repeat(np.arange(given.size), counts)
    begin = (np.arange(example.size) - np.repeat(np.cumsum(counts) - counts, counts)) * seq_length
    end = np.minimum(begin + seq_length, given[example])
    pieces = list(zip(example.tolist(), begin.tolist(), end.tolist()))
    return [[pieces[p] for p in group] for group in _bins(end - begin, seq_length)]


def pack_examples(
    examples: Dict[str, Sequence[Sequence[Any]]], seq_length: int, strategy: str = "bfd"
) -> Dict[str, List[List[Any]]]:
    """Columns of lists as columns of packed lists, and `seq_lengths`, the lengths of what each
    packed sequence is made of."""
    if strategy not in ("bfd", "bfd_split"):
        raise ValueError(
            "omnibal.compat.trl: strategy is '%s', must be bfd or bfd_split" % strategy
        )
    if not examples:
        raise ValueError("omnibal.compat.trl: there are no columns")
    columns = list(examples)
    lengths = [len(row) for row in examples[columns[0]]]
    for column in columns:
        if [len(row) for row in examples[column]] != lengths:
            raise ValueError("omnibal.compat.trl: the rows of '%s' have other lengths" % column)
    if strategy == "bfd":
        groups = [
            [(i, 0, min(lengths[i], seq_length)) for i in group]
            for group in bfd(lengths, seq_length)
        ]
    else:
        groups = bfd_split(lengths, seq_length)
    result: Dict[str, List[List[Any]]] = {}
    for column in columns:
        rows = examples[column]
        result[column] = [
            [value for i, begin, end in group for value in rows[i][begin:end]] for group in groups
        ]
    result["seq_lengths"] = [[end - begin for _, begin, end in group] for group in groups]
    return result
