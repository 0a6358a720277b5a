# SPDX-License-Identifier: Apache-2.0
"""The strategies `bfd` and `bfd_split` of TRL's `pack_dataset`.

`pack_examples` is what it maps over a data set:
`dataset.map(pack_examples, batched=True, remove_columns=..., fn_kwargs={"seq_length": 4096})`.
There are as many packed sequences as TRL makes.
"""

from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from .. import _core
from ._integers import named, whole_number, whole_numbers

Piece = Tuple[int, int, int]
"""The tokens of an example from the second number to the third."""


def _bins(lengths: np.ndarray, seq_length: int) -> List[List[int]]:
    """Best-fit decreasing; sequences in the order in which they were opened."""
    return _core.best_fit_decreasing(lengths, seq_length).groups.tolist()


def _rows(column: str, rows: Any) -> List[int]:
    """The lengths of the rows of a column."""
    if isinstance(rows, (str, bytes, dict)) or not hasattr(rows, "__len__"):
        raise ValueError("omnibal: the column '%s' is no list of lists" % column)
    result = []
    for place in range(len(rows)):
        row = rows[place]
        if isinstance(row, (str, bytes, dict)) or not hasattr(row, "__len__"):
            raise ValueError("omnibal: row %d of '%s' is %r, must be a list" % (place, column, row))
        result.append(len(row))
    return result


@named
def bfd(lengths: Sequence[int], seq_length: int) -> List[List[int]]:
    """The examples of each packed sequence. Longer ones count as cut to `seq_length`, empty ones
    are left out, as in TRL."""
    seq_length = whole_number(seq_length, "seq_length", 1)
    cut = np.minimum(whole_numbers(lengths, "lengths", 0), seq_length)
    kept = np.flatnonzero(cut)
    return [kept[group].tolist() for group in _bins(cut[kept], seq_length)]


@named
def bfd_split(lengths: Sequence[int], seq_length: int) -> List[List[Piece]]:
    """The pieces of each packed sequence: longer examples are cut into pieces of `seq_length`, and
    no token is lost."""
    seq_length = whole_number(seq_length, "seq_length", 1)
    given = whole_numbers(lengths, "lengths", 0)
    counts = -(-given // seq_length)
    example = np.repeat(np.arange(given.size), counts)
    begin = (np.arange(example.size) - np.repeat(np.cumsum(counts) - counts, counts)) * seq_length
    end = np.minimum(begin + seq_length, given[example])
    pieces = list(zip(example.tolist(), begin.tolist(), end.tolist()))
    return [[pieces[p] for p in group] for group in _bins(end - begin, seq_length)]


@named
def pack_examples(
    examples: Dict[str, Sequence[Sequence[Any]]], seq_length: int, strategy: str = "bfd"
) -> Dict[str, List[List[Any]]]:
    """Columns of lists as columns of packed lists, and `seq_lengths`, the lengths of what each
    packed sequence is made of."""
    if strategy not in ("bfd", "bfd_split"):
        raise ValueError(
            "omnibal: strategy is '%s', must be bfd or bfd_split" % strategy
        )
    if not examples:
        raise ValueError("omnibal: there are no columns")
    columns = list(examples)
    seq_length = whole_number(seq_length, "seq_length", 1)
    lengths = _rows(columns[0], examples[columns[0]])
    for column in columns:
        if _rows(column, examples[column]) != lengths:
            raise ValueError("omnibal: the rows of '%s' have other lengths" % column)
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
