# SPDX-License-Identifier: Apache-2.0
"""The strategies `bfd` and `bfd_split` of TRL's `pack_dataset`, and rows of rollouts that share
prompts.

`pack_examples` is what it maps over a data set:
`dataset.map(pack_examples, batched=True, remove_columns=..., fn_kwargs={"seq_length": 4096})`.
There are as many packed sequences as TRL makes.

`pack_rollouts` gives the micro-batches of `AsyncGRPOTrainer`'s batchers: a row of samples for each
rank. `pack_generations` gives them for the rows of `GRPOTrainer`, where `num_generations`
completions of a prompt follow each other.
"""

from typing import Any, Dict, Hashable, List, Sequence, Tuple

import numpy as np

from .. import _core
from ._integers import named, whole_number, whole_numbers

Piece = Tuple[int, int, int]
"""The tokens of an example from the second number to the third."""

MicroBatches = List[List[List[int]]]
"""The samples of each row of each micro-batch."""


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


def _own_prefixes(sequences: List[np.ndarray], keys: List[Hashable]) -> List[np.ndarray]:
    """The sequences with first tokens that differ between keys, so that no key shares tokens."""
    numbers: Dict[Tuple[Hashable, int], int] = {}
    result = []
    for sequence, key in zip(sequences, keys):
        one = sequence.copy()
        one[0] = numbers.setdefault((key, int(sequence[0])), len(numbers))
        result.append(one)
    return result


def _micro_batches(
    sequences: List[np.ndarray], keys: List[Hashable], budget: int, ranks: int, effort: Any
) -> Tuple[MicroBatches, List[int]]:
    """Rows under the budget, of which those of one micro-batch have similar work, and the samples
    for which there is no full micro-batch."""
    packed = _core.pack_prefixes(
        _own_prefixes(sequences, keys),
        budget,
        multiple_of=ranks,
        oversized="reject",
        effort=effort,
    )
    # A token attends to the tokens before it.
    work = [int(packed.layout(g)["positions"].sum()) for g in range(len(packed))]
    order = sorted(range(len(packed)), key=lambda g: (packed[g].size == 0, -work[g], g))
    rows = [packed[g].tolist() for g in order]
    # Rows are empty only if no row has two samples; then the last micro-batch is not full.
    full = sum(1 for row in rows if row) // ranks * ranks
    result = [rows[k : k + ranks] for k in range(0, full, ranks)]
    return result, sorted(i for row in rows[full:] for i in row)


@named
def pack_rollouts(
    samples: Sequence[Dict[str, Any]],
    token_budget: int,
    num_processes: int = 1,
    effort: Any = "normal",
) -> Tuple[MicroBatches, List[int]]:
    """Micro-batches of rollouts, as numbers of samples: a row for each process, none of them empty,
    with at most `token_budget` tokens if each shared token counts once. Samples share tokens only
    with samples of the same `group_id`. The second list has samples that fill no micro-batch: fewer
    than `num_processes`, for the next call. A sample above the budget is an error."""
    budget = whole_number(token_budget, "token_budget", 1)
    ranks = whole_number(num_processes, "num_processes", 1)
    sequences, keys = [], []
    for place, sample in enumerate(samples):
        for key in ("input_ids", "group_id"):
            if key not in sample:
                raise ValueError("omnibal: samples[%d] has no '%s'" % (place, key))
        ids = whole_numbers(sample["input_ids"], "input_ids of samples[%d]" % place)
        if ids.ndim != 1 or ids.size == 0:
            raise ValueError("omnibal: input_ids of samples[%d] is no list with tokens" % place)
        sequences.append(ids)
        keys.append(sample["group_id"])
    return _micro_batches(sequences, keys, budget, ranks, effort)


@named
def pack_generations(
    prompt_ids: Sequence[Sequence[int]],
    completion_ids: Sequence[Sequence[int]],
    num_generations: int,
    token_budget: int,
    num_processes: int = 1,
    effort: Any = "normal",
) -> Tuple[MicroBatches, List[int]]:
    """The same for rows in which each prompt stands `num_generations` times in a row, once for each
    of its completions. Other prompts there are an error."""
    generations = whole_number(num_generations, "num_generations", 1)
    if len(prompt_ids) != len(completion_ids) or len(prompt_ids) % generations != 0:
        raise ValueError(
            "omnibal: there are %d prompts and %d completions, must be the same multiple of "
            "num_generations, %d" % (len(prompt_ids), len(completion_ids), generations)
        )
    samples = []
    for i in range(len(prompt_ids)):
        prompt = list(prompt_ids[i])
        first = i - i % generations
        if prompt != list(prompt_ids[first]):
            raise ValueError(
                "omnibal: prompt_ids[%d] differs from prompt_ids[%d], must be the same prompt"
                % (i, first)
            )
        samples.append({"input_ids": prompt + list(completion_ids[i]), "group_id": first})
    return pack_rollouts(samples, token_budget, num_processes, effort)
