# SPDX-License-Identifier: Apache-2.0
"""The strategies `bfd`, `bfd_split` and `wrapped` of TRL's `pack_dataset`, and rows of rollouts
that share prompts.

`pack_examples` is what it maps over a data set:
`dataset.map(pack_examples, batched=True, remove_columns=..., fn_kwargs={"seq_length": 4096})`.
There are as many packed sequences as TRL makes.

`pack_rollouts` gives the micro-batches of `AsyncGRPOTrainer`'s batchers: a row of samples for each
rank. `pack_generations` gives them for the rows of `GRPOTrainer`, where `num_generations`
completions of a prompt follow each other.

`FixedCountBatcher` and `TokenBudgetBatcher` have the interface of the classes of these names in
`trl/experimental/async_grpo/async_grpo_trainer.py`. `register` puts them there, with rows of TRL's
`TreeRow`, which computes shared tokens once, if the module has this class, as in TRL 1.16.
"""

import importlib
import warnings
from typing import Any, Dict, Hashable, Iterable, Iterator, List, Sequence, Tuple

import numpy as np

from .. import _core
from ._integers import LINEAR_COST, fill_rows, named, whole_number, whole_numbers, workload

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
def wrapped(lengths: Sequence[int], seq_length: int) -> List[List[Piece]]:
    """The pieces of each packed sequence: the examples in their order, cut wherever a sequence has
    `seq_length` tokens. Only the last sequence may have fewer."""
    seq_length = whole_number(seq_length, "seq_length", 1)
    given = whole_numbers(lengths, "lengths", 0).tolist()
    result: List[List[Piece]] = []
    room = 0
    for example, length in enumerate(given):
        begin = 0
        while begin < length:
            if room == 0:
                result.append([])
                room = seq_length
            end = min(length, begin + room)
            result[-1].append((example, begin, end))
            room -= end - begin
            begin = end
    return result


@named
def pack_examples(
    examples: Dict[str, Sequence[Sequence[Any]]], seq_length: int, strategy: str = "bfd"
) -> Dict[str, List[List[Any]]]:
    """Columns of lists as columns of packed lists, and `seq_lengths`, the lengths of what each
    packed sequence is made of; without `seq_lengths` if `strategy` is "wrapped", as in TRL. The
    columns may also be a table of Arrow, which a data set with the
    format `arrow` passes to a mapped function."""
    if hasattr(examples, "to_pydict"):
        examples = examples.to_pydict()
    if strategy not in ("bfd", "bfd_split", "wrapped"):
        raise ValueError(
            "omnibal: strategy is '%s', must be bfd, bfd_split or wrapped" % strategy
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
        groups = (bfd_split if strategy == "bfd_split" else wrapped)(lengths, seq_length)
    result: Dict[str, List[List[Any]]] = {}
    for column in columns:
        rows = examples[column]
        result[column] = [
            [value for i, begin, end in group for value in rows[i][begin:end]] for group in groups
        ]
    if strategy != "wrapped":
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
    sequences: List[np.ndarray],
    keys: List[Hashable],
    budget: int,
    ranks: int,
    effort: Any,
    oversized: Any,
) -> Tuple[MicroBatches, List[int]]:
    """Rows under the budget, of which those of one micro-batch have similar work, and the samples
    for which there is no full micro-batch."""
    if oversized not in ("reject", "own_group"):
        raise ValueError(
            "omnibal: oversized is %r, must be 'reject' or 'own_group'" % (oversized,)
        )
    packed = _core.pack_prefixes(
        _own_prefixes(sequences, keys),
        budget,
        multiple_of=ranks,
        oversized=oversized,
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
    *,
    oversized: Any = "reject",
) -> Tuple[MicroBatches, List[int]]:
    """Micro-batches of rollouts, as numbers of samples: a row for each process, none of them empty,
    with at most `token_budget` tokens if each shared token counts once. Samples share tokens only
    with samples of the same `group_id`. The second list has samples that fill no micro-batch: fewer
    than `num_processes`, for the next call. A sample above the budget is an error, or with
    `oversized="own_group"` the only sample of its row."""
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
    return _micro_batches(sequences, keys, budget, ranks, effort, oversized)


@named
def pack_generations(
    prompt_ids: Sequence[Sequence[int]],
    completion_ids: Sequence[Sequence[int]],
    num_generations: int,
    token_budget: int,
    num_processes: int = 1,
    effort: Any = "normal",
    *,
    oversized: Any = "reject",
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
    return pack_rollouts(samples, token_budget, num_processes, effort, oversized=oversized)


Rows = List[List[Any]]
"""The samples of each process; TRL calls them groups."""


class FixedCountBatcher:
    """Yields micro-batches of `microbatch_size` samples in rows with even work, one per process.

    `omnibal.lpt` and `omnibal.refine_parts` balance the rows. No row is empty. As in TRL, the last
    samples of the data are left out if they are fewer than `microbatch_size`.

    Args:
        dataset: an iterable of samples with `input_ids`.
        num_processes: the number of rows.
        microbatch_size: the number of samples of a micro-batch, at least `num_processes`.
        count: "any"; "at_most_one_apart" or "equal" limit how the numbers of samples of rows differ.
        linear_cost: a sample costs `length**2 + linear_cost * length`. TRL's batchers have 0.
    """

    @named
    def __init__(
        self,
        dataset: Iterable[Dict[str, Any]],
        num_processes: int,
        microbatch_size: int,
        *,
        count: Any = "any",
        linear_cost: int = LINEAR_COST,
    ) -> None:
        self.dataset = dataset
        self.num_processes = whole_number(num_processes, "num_processes", 1)
        self.microbatch_size = whole_number(microbatch_size, "microbatch_size", self.num_processes)
        self.count = count
        self.linear_cost = whole_number(linear_cost, "linear_cost", 0)

    @named
    def _rows(self, batch: List[Dict[str, Any]]) -> Rows:
        lengths = np.array([len(sample["input_ids"]) for sample in batch], dtype=np.int64)
        work = workload(lengths, self.linear_cost, "the lengths of input_ids")
        parts = _core.lpt(work, self.num_processes, count=self.count)
        kept: Any = "free" if self.count == "any" else "kept"
        parts = _core.refine_parts(work, parts, counts=kept)
        return [[batch[i] for i in row] for row in fill_rows(parts.tolist(), work)]

    def __iter__(self) -> Iterator[Rows]:
        """Yields the rows of each micro-batch."""
        batch: List[Dict[str, Any]] = []
        for sample in self.dataset:
            batch.append(sample)
            if len(batch) == self.microbatch_size:
                yield self._rows(batch)
                batch = []


class TokenBudgetBatcher:
    """Yields micro-batches of rows with at most `token_budget` tokens, one row per process.

    A micro-batch takes samples in their order until the next one fits in no row. Here
    `omnibal.balance_under_capacity` then searches for other rows, and the micro-batch ends only if
    none are found. The function also makes the rows of a micro-batch even. No sample waits longer than
    in TRL, and no row is empty.

    As in TRL, a sample above the budget is left out with a warning. The last samples of the data are
    a micro-batch if there is one for each process; TRL leaves them out.

    Args:
        dataset: an iterable of samples with `input_ids`.
        num_processes: the number of rows.
        token_budget: the limit of a row in tokens.
        metrics: lists by name; "batch/dropped_oversize_total" gets 1.0 for a sample above the budget.
        linear_cost: a sample costs `length**2 + linear_cost * length`. TRL's batchers have 0.
    """

    @named
    def __init__(
        self,
        dataset: Iterable[Dict[str, Any]],
        num_processes: int,
        token_budget: int,
        metrics: Any = None,
        *,
        linear_cost: int = LINEAR_COST,
    ) -> None:
        self.dataset = dataset
        self.metrics = metrics
        self.num_processes = whole_number(num_processes, "num_processes", 1)
        self.token_budget = whole_number(token_budget, "token_budget", 1)
        self.linear_cost = whole_number(linear_cost, "linear_cost", 0)

    def _work(self, lengths: List[int]) -> np.ndarray:
        array = np.array(lengths, dtype=np.int64)
        return workload(array, self.linear_cost, "the lengths of input_ids")

    @named
    def _repacked(self, lengths: List[int]) -> List[List[int]]:
        """Rows under the budget, or none if none are found."""
        if sum(lengths) > self.num_processes * self.token_budget:
            return []
        work = self._work(lengths)
        found = _core.balance_under_capacity(work, self.num_processes, lengths, self.token_budget)
        return found.parts.tolist() if found.status == "solved" else []

    def _full(self, batch: List[Any], lengths: List[int], rows: List[List[int]]) -> Rows:
        """The samples of the rows with the least work of the heaviest row, none of them empty."""
        work = self._work(lengths)

        def heaviest(of: List[List[int]]) -> int:
            """The work of the heaviest row."""
            return max(int(work[row].sum()) for row in of if row)

        candidates = [rows] + [of for of in [self._repacked(lengths)] if of]
        best = fill_rows(min(candidates, key=heaviest), work)
        return [[batch[i] for i in sorted(row)] for row in best]

    def _short(self) -> Iterator[Dict[str, Any]]:
        """The samples that do not exceed the budget alone."""
        for sample in self.dataset:
            length = len(sample["input_ids"])
            if length <= self.token_budget:
                yield sample
                continue
            warnings.warn(
                "omnibal.compat.trl.TokenBudgetBatcher: a sample has %d tokens, above "
                "token_budget, %d; it is left out" % (length, self.token_budget)
            )
            if self.metrics is not None:
                self.metrics["batch/dropped_oversize_total"].append(1.0)

    def __iter__(self) -> Iterator[Rows]:
        """Yields the rows of each micro-batch."""
        batch: List[Dict[str, Any]] = []
        lengths: List[int] = []
        rows: List[List[int]] = [[] for _ in range(self.num_processes)]
        for sample in self._short():
            length = len(sample["input_ids"])
            loads = [sum(lengths[i] for i in row) for row in rows]
            lightest = min(range(len(rows)), key=lambda row: loads[row])
            if loads[lightest] + length <= self.token_budget:
                rows[lightest].append(len(batch))
            else:
                other = self._repacked(lengths + [length])
                if not other:
                    yield self._full(batch, lengths, rows)
                    batch, lengths = [], []
                    other = [[] for _ in range(self.num_processes)]
                    other[0].append(0)
                rows = other
            batch.append(sample)
            lengths.append(length)
        if len(batch) >= self.num_processes:
            yield self._full(batch, lengths, rows)


class _TreeFixedCount(FixedCountBatcher):
    """Rows of TRL's `TreeRow`: the samples of a prompt stay in one row, as far as rows are then
    left for all processes."""

    tree_row: Any = None

    @named
    def _rows(self, batch: List[Dict[str, Any]]) -> Rows:
        groups: Dict[Hashable, List[Dict[str, Any]]] = {}
        for sample in batch:
            groups.setdefault(sample["group_id"], []).append(sample)
        parts = list(groups.values())
        while len(parts) < self.num_processes:
            largest = parts.pop(max(range(len(parts)), key=lambda k: len(parts[k])))
            middle = len(largest) // 2
            parts += [largest[:middle], largest[middle:]]
        trees = [_tree(self.tree_row, part) for part in parts]
        work = np.array([_tree_work(tree, self.linear_cost) for tree in trees], dtype=np.int64)
        found = _core.refine_parts(work, _core.lpt(work, self.num_processes))
        return [
            _tree(self.tree_row, [sample for k in sorted(row) for sample in parts[k]])
            for row in fill_rows(found.tolist(), work)
        ]


class _TreeTokenBudget(TokenBudgetBatcher):
    """Rows of TRL's `TreeRow`, with at most `token_budget` unique tokens, and at most as many trained
    tokens. `omnibal.pack_prefixes` packs anew if a sample does not fit, a few times for each
    micro-batch, because the rows are then built again in Python."""

    tree_row: Any = None
    _SEARCHES = 2

    def _trees(self, batch: List[Dict[str, Any]], multiple_of: int) -> List[Any]:
        """Rows of all samples, or none if more rows than processes are found."""
        packed = _core.pack_prefixes(
            [_tree_keys(sample["input_ids"]) for sample in batch],
            self.token_budget,
            multiple_of=multiple_of,
            effort="fast",
        )
        if len(packed) > self.num_processes or len(packed.oversized):
            return []
        groups = packed.groups.tolist()
        groups += [[] for _ in range(self.num_processes - len(groups))]
        if len(batch) >= self.num_processes:
            fill_rows(groups, [len(sample["input_ids"]) for sample in batch])
        for group in groups:
            if sum(int(batch[i]["completion_mask"].sum()) for i in group) > self.token_budget:
                return []
        return [_tree(self.tree_row, [batch[i] for i in sorted(group)]) for group in groups]

    def _evenest(self, batch: List[Dict[str, Any]], trees: List[Any]) -> List[Any]:
        """The rows with the least work of the heaviest row, none of them empty."""
        if not all(tree.samples for tree in trees):
            places = {id(sample): i for i, sample in enumerate(batch)}
            rows = [[places[id(sample)] for sample in tree.samples] for tree in trees]
            rows = fill_rows(rows, [len(sample["input_ids"]) for sample in batch])
            trees = [_tree(self.tree_row, [batch[i] for i in sorted(row)]) for row in rows]
        candidates = [trees] + [of for of in [self._trees(batch, self.num_processes)] if of]
        return min(
            candidates, key=lambda of: max(_tree_work(tree, self.linear_cost) for tree in of)
        )

    def __iter__(self) -> Iterator[Rows]:
        """Yields the rows of each micro-batch."""
        batch: List[Dict[str, Any]] = []
        trees = [self.tree_row() for _ in range(self.num_processes)]
        searches = 0
        for sample in self._short():
            home = [tree for tree in trees if sample["group_id"] in tree.groups]
            fitting = [tree for tree in home if tree.fits(sample, self.token_budget)]
            if not fitting and not (home and all(tree.samples for tree in trees)):
                fitting = [tree for tree in trees if tree.fits(sample, self.token_budget)]
            if fitting:
                min(fitting, key=lambda tree: int(tree.load)).add(sample)
            else:
                # TRL ends the micro-batch here.
                searches += 1
                other = self._trees(batch + [sample], 1) if searches <= self._SEARCHES else []
                if other:
                    trees = other
                else:
                    yield self._evenest(batch, trees)
                    batch, searches = [], 0
                    trees = [self.tree_row() for _ in range(self.num_processes)]
                    trees[0].add(sample)
            batch.append(sample)
        if len(batch) >= self.num_processes:
            yield self._evenest(batch, trees)


def _tree(tree_row: Any, samples: List[Dict[str, Any]]) -> Any:
    """A row of samples."""
    tree = tree_row()
    for sample in samples:
        tree.add(sample)
    return tree


def _tree_work(tree: Any, linear_cost: int) -> int:
    """The work of a row, whose load is the sum of the positions of its unique tokens."""
    return 2 * int(tree.load) + linear_cost * len(tree.tokens)


def _tree_keys(input_ids: Any) -> np.ndarray:
    """A number for each token and the next one: samples of a `TreeRow` share a token only if they
    agree on the next one."""
    ids = whole_numbers(input_ids.tolist(), "input_ids", 0)
    result: np.ndarray = (ids << 32) + np.append(ids[1:] + 1, 0)
    return result


@named
def register(async_grpo_trainer: Any = None, *, linear_cost: int = LINEAR_COST) -> None:
    """Replaces the batchers of `AsyncGRPOTrainer`. Its option `token_budget` selects one of them.

    Call it before the trainer makes its data loader. The classes derive from TRL's classes, so that
    a loader of PyTorch recognizes them as iterable data sets. A further call has no other effect than
    another `linear_cost`.

    Args:
        async_grpo_trainer: the module `trl.experimental.async_grpo.async_grpo_trainer`, imported by
            default.
        linear_cost: a sample costs `length**2 + linear_cost * length`. The default is 6 * 4096, for a
            hidden size of 4,096.

    Raises:
        ImportError: if there is no TRL.
        ValueError: if the module has no such classes.
    """
    linear_cost = whole_number(linear_cost, "linear_cost", 0)
    if async_grpo_trainer is None:
        async_grpo_trainer = importlib.import_module("trl.experimental.async_grpo.async_grpo_trainer")
    tree_row = getattr(async_grpo_trainer, "TreeRow", None)
    for plain, trees in ((FixedCountBatcher, _TreeFixedCount), (TokenBudgetBatcher, _TreeTokenBudget)):
        ours = plain if tree_row is None else trees
        name = plain.__name__
        theirs = getattr(async_grpo_trainer, name, None)
        if theirs is None:
            raise ValueError("omnibal: async_grpo_trainer has no %s" % name)
        theirs = getattr(theirs, "omnibal_base", theirs)

        def __init__(self: Any, *args: Any, _ours: Any = ours, **keywords: Any) -> None:
            _ours.__init__(self, *args, **{"linear_cost": linear_cost, **keywords})

        members = {"__init__": __init__, "__doc__": plain.__doc__, "omnibal_base": theirs}
        if tree_row is not None:
            members["tree_row"] = tree_row
        setattr(async_grpo_trainer, name, type(name, (ours, theirs), members))
