# SPDX-License-Identifier: Apache-2.0
import os
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
    overload,
)

import numpy as np
import numpy.typing as npt

Integers = npt.ArrayLike
"""A list of integers, or an array of them."""
Demands = Union[npt.ArrayLike, Tuple[npt.ArrayLike, ...]]
"""A number or a row of numbers for each sample, or a tuple with an array for each resource."""
Sizes = Union[npt.ArrayLike, Tuple[npt.ArrayLike, ...]]
"""A number or a row of up to three numbers for each point, or a tuple with an array for each kind."""
Costs = npt.ArrayLike
"""An integer or a floating-point number for each sample."""
Limits = Union[int, Sequence[int], npt.NDArray[np.integer[Any]]]
"""A number, or one for each resource."""
Effort = Literal["fast", "normal", "thorough"]
Times = npt.ArrayLike
"""A number, one for each virtual stage, or an array of shape (virtual stages, micro-batches)."""
Placement = Literal["looped", "v_shape", "bidirectional"]
Remainder = Literal["short_step", "repeat", "carry"]
Status = Literal["solved", "not_found", "infeasible"]
Oversized = Literal["list", "own_group", "reject"]
LengthPacker = Literal["best_fit_decreasing", "best_packing", "next_fit"]
ContextPadding = Literal["to_multiple", "to_equal_pieces"]
__version__: str

Indices = npt.NDArray[np.uint32]
Timeline = npt.NDArray[np.void]
"""Operations: an array with the fields kind, stage, chunk, micro_batch, begin and end."""
Ratio = Union[float, npt.NDArray[np.float64]]

class Groups(Sequence[Indices]):
    """Groups of indices: a sequence of arrays, which are views of `items`.

    Group g is items[offsets[g]:offsets[g + 1]].

    Args:
        offsets: where each group begins in `items`, and the end; the first offset is 0.
        items: the indices of all groups.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> groups = omnibal.Groups([0, 2, 3], [4, 7, 5])
        >>> groups
        Groups(2 groups of 3 indices)
        >>> [group.tolist() for group in groups]
        [[4, 7], [5]]
    """

    def __init__(self, offsets: Integers, items: Integers) -> None: ...
    @property
    def offsets(self) -> Indices: ...
    @property
    def items(self) -> Indices: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, group: int) -> Indices: ...
    @overload
    def __getitem__(self, group: slice) -> List[Indices]: ...
    def __iter__(self) -> Iterator[Indices]: ...
    def tolist(self) -> List[List[int]]:
        """Returns the groups as lists of integers."""

class Packing:
    """Groups under a capacity: a sequence of its groups. Each sample is in one group or oversized.

    Example:
        >>> packed = omnibal.next_fit([5, 3, 4, 9], 8)
        >>> packed
        Packing(2 groups, at least 2, 1 oversized sample)
        >>> [group.tolist() for group in packed], packed.oversized.tolist()
        ([[0, 1], [2]], [3])
    """

    @property
    def groups(self) -> Groups: ...
    @property
    def oversized(self) -> Indices: ...
    @property
    def lower_bound(self) -> int: ...
    @property
    def rounds(self) -> int: ...
    @property
    def below_keep(self) -> int: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, group: int) -> Indices: ...
    @overload
    def __getitem__(self, group: slice) -> List[Indices]: ...
    def __iter__(self) -> Iterator[Indices]: ...
    def plot(self, demands: Demands, capacity: Limits, axes: Any = None) -> Any:
        """Draws the used share of the capacity of each group with matplotlib.

        Args:
            demands: the demands of the samples, as for the packer.
            capacity: the capacity, as for the packer.
            axes: the axes of matplotlib to draw on. Default: those of a new figure.

        Returns:
            The axes, on which there is one line per resource, the fullest group first.

        Raises:
            ImportError: if there are no axes and matplotlib is not installed.

        Example:
            packed.plot(lengths, 8192).figure.savefig("fill.png")
        """

class SplitPacking:
    """Groups of pieces of samples, from `split_long`. The number of a piece is its place in the arrays.

    Example:
        >>> packed = omnibal.split_long([5, 2, 3], 4)
        >>> packed
        SplitPacking(3 groups, 4 pieces, at least 3)
        >>> packed.samples.tolist(), packed.firsts.tolist(), packed.lengths.tolist()
        ([0, 0, 1, 2], [0, 2, 0, 0], [2, 3, 2, 3])
        >>> packed.groups.tolist()
        [[1], [3], [0, 2]]
    """

    @property
    def samples(self) -> Indices: ...
    @property
    def parts(self) -> Indices: ...
    @property
    def firsts(self) -> npt.NDArray[np.int64]: ...
    @property
    def lengths(self) -> npt.NDArray[np.int64]: ...
    @property
    def groups(self) -> Groups: ...
    @property
    def first_long_group(self) -> int: ...
    @property
    def oversized(self) -> Indices: ...
    @property
    def lower_bound(self) -> int: ...
    def __len__(self) -> int: ...

class SequenceOffsets(Sequence[npt.NDArray[np.int32]]):
    """The `cu_seqlens` of each group: a sequence of arrays, which are views of `offsets`.

    Example:
        >>> found = omnibal.cu_seqlens(omnibal.Groups([0, 2, 3], [0, 2, 1]), [3, 4, 2])
        >>> [group.tolist() for group in found], found.longest.tolist()
        ([[0, 3, 5], [0, 4]], [3, 4])
    """

    @property
    def offsets(self) -> npt.NDArray[np.int32]: ...
    @property
    def begins(self) -> npt.NDArray[np.int64]: ...
    @property
    def longest(self) -> npt.NDArray[np.int32]: ...
    def position_ids(self, group: int) -> npt.NDArray[np.int32]:
        """Returns the position of each token of a group in its sequence: 0, 1, ... for each sample."""
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, group: int) -> npt.NDArray[np.int32]: ...
    @overload
    def __getitem__(self, group: slice) -> List[npt.NDArray[np.int32]]: ...
    def __iter__(self) -> Iterator[npt.NDArray[np.int32]]: ...

class LevelPacking:
    """Packs of several lengths, from `pack_levels`.

    The packs of level l are groups first_groups[l] to first_groups[l + 1].

    Example:
        >>> packed = omnibal.pack_levels([3, 4, 9, 2, 6, 1], [4, 10])
        >>> packed
        LevelPacking(4 packs in 2 levels, 0 oversized samples)
        >>> packed.groups.tolist(), packed.first_groups.tolist()
        ([[0], [3], [2, 5], [4, 1]], [0, 2, 4])
    """

    @property
    def levels(self) -> npt.NDArray[np.int64]: ...
    @property
    def groups(self) -> Groups: ...
    @property
    def first_groups(self) -> Indices: ...
    @property
    def filled_in(self) -> Indices: ...
    @property
    def oversized(self) -> Indices: ...
    def __len__(self) -> int: ...

Bundled = TypeVar("Bundled", Groups, Packing)

class SampleHistogram:
    """How often each demand occurs: what a machine needs to know of samples that it does not have.

    Args:
        demands: the demands, as for the packers, in any order.
        counts: the number of samples of each demand.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.
        OverflowError: if there are more than 2**63 - 1 samples.

    Example:
        >>> shards = [omnibal.count_samples([6, 4, 6]), omnibal.count_samples([4, 12, 3])]
        >>> shards[0].merge(shards[1])
        >>> shards[0]
        SampleHistogram(6 samples, 4 demands)
        >>> shards[0].demands.tolist(), shards[0].counts.tolist()
        ([3, 4, 6, 12], [1, 2, 2, 1])
    """

    def __init__(self, demands: Demands, counts: Integers) -> None: ...
    @property
    def demands(self) -> npt.NDArray[np.int64]: ...
    @property
    def counts(self) -> npt.NDArray[np.int64]: ...
    @property
    def sample_count(self) -> int: ...
    def merge(self, other: "SampleHistogram") -> None:
        """Adds the samples of another histogram, such as that of another shard, in any order.

        Raises:
            ValueError: if the other histogram has another number of resources.
            OverflowError: if there are more than 2**63 - 1 samples.
        """
    def __len__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]

class PatternPlan:
    """Groups without names of samples: which demands a group of a pattern has, and how many groups.

    Example:
        >>> samples = omnibal.SampleHistogram([3, 4, 6], [2, 2, 2])
        >>> plan = omnibal.pack_histogram(samples, 10)
        >>> plan
        PatternPlan(3 groups, 2 patterns, at least 3)
        >>> plan.multiplicities.tolist()
        [2, 1]
    """

    @property
    def histogram(self) -> SampleHistogram: ...
    @property
    def offsets(self) -> npt.NDArray[np.int64]: ...
    @property
    def entries(self) -> Indices: ...
    @property
    def counts(self) -> npt.NDArray[np.uint64]: ...
    @property
    def multiplicities(self) -> npt.NDArray[np.uint64]: ...
    @property
    def oversized(self) -> Indices: ...
    @property
    def group_count(self) -> int: ...
    @property
    def lower_bound(self) -> int: ...
    @property
    def proven(self) -> bool: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]

class PrefixForest:
    """The prefixes that sequences share, from `build_prefix_forest`, or from nodes that you have.

    A sequence is the path from a root to the node at which it ends. All arrays are read-only views.

    Args:
        parents: the parent of each node, -1 or 2**32 - 1 for a root, in any order.
        lengths: the number of tokens of each node, without the tokens of its ancestors.
        ends: the node at which each sequence ends.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> forest = omnibal.PrefixForest(parents=[-1, 0, 0], lengths=[2, 1, 2], ends=[1, 2, 0])
        >>> forest
        PrefixForest(3 nodes, 3 sequences, 5 of 9 tokens)
        >>> forest == omnibal.build_prefix_forest([[7, 7, 1], [7, 7, 2, 3], [7, 7]])
        True
        >>> forest.depths.tolist(), forest.sequence_tokens.tolist()
        ([2, 3, 4], [3, 4, 2])
    """

    def __init__(self, parents: Integers, lengths: Integers, ends: Integers) -> None: ...
    @property
    def parents(self) -> Indices: ...
    @property
    def lengths(self) -> npt.NDArray[np.uint64]: ...
    @property
    def depths(self) -> npt.NDArray[np.uint64]: ...
    @property
    def subtree_ends(self) -> Indices: ...
    @property
    def first_sequences(self) -> Indices: ...
    @property
    def ends(self) -> Indices: ...
    @property
    def sequence_tokens(self) -> npt.NDArray[np.uint64]: ...
    @property
    def sequence_count(self) -> int: ...
    @property
    def trie_tokens(self) -> int: ...
    @property
    def all_tokens(self) -> int: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]

Prefixes = Union[PrefixForest, Sequence[Integers]]
"""A `PrefixForest`, or the token ids of each sequence: a list of lists, of arrays, or an array of rows."""

class PrefixWork:
    """The work of tokens with causal attention, for `balance_prefixes` and `prefix_work_of`.

    The default is the work of Megatron-Core for a hidden size of 4,096, for which attention equals all
    other work at 24,576 tokens.

    Args:
        token: the work of a token without attention.
        pair: the work of a token for each token that it attends to, including itself.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> work = omnibal.PrefixWork(token=1, pair=0.5)
        >>> work
        PrefixWork(token 1, pair 0.5)
        >>> work(0, 4), work([0, 2], 4).tolist()
        (9.0, [9.0, 5.5])
    """

    def __init__(self, token: float = 1.0, pair: float = 8.138020833333333e-05) -> None: ...
    @property
    def token(self) -> float: ...
    @property
    def pair(self) -> float: ...
    def __call__(self, begin: Integers, end: Integers) -> Any:
        """Returns the work of the tokens from position `begin` to `end`, or works for arrays."""
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]

class PrefixBounds:
    """The lower bounds of `prefix_bound` on the tokens and on the groups of every packing.

    Example:
        >>> bounds = omnibal.prefix_bound([[7, 7, 1], [7, 7, 2, 3], [9]], 4)
        >>> bounds
        PrefixBounds(at least 8 tokens, at least 2 groups)
        >>> bounds.tokens, bounds.groups
        (8, 2)
    """

    @property
    def tokens(self) -> int: ...
    @property
    def groups(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]

class PrefixPacking:
    """Groups of sequences that share prefixes: a sequence of its groups.

    Each sequence is in one group or oversized. A group counts each shared token once.

    Example:
        >>> packed = omnibal.pack_prefixes([[7, 7, 1], [7, 7, 2, 3], [9]], 6)
        >>> packed
        PrefixPacking(1 group, at least 1, 6 tokens, at least 6, 0 oversized sequences)
        >>> packed.all_tokens, packed.trie_tokens, packed.tokens.tolist()
        (8, 6, [6])
    """

    @property
    def groups(self) -> Groups: ...
    @property
    def oversized(self) -> Indices: ...
    @property
    def tokens(self) -> npt.NDArray[np.uint64]: ...
    @property
    def computed_tokens(self) -> int: ...
    @property
    def forest(self) -> PrefixForest: ...
    @property
    def trie_tokens(self) -> int: ...
    @property
    def all_tokens(self) -> int: ...
    @property
    def bound_tokens(self) -> int: ...
    @property
    def bound_groups(self) -> int: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, group: int) -> Indices: ...
    @overload
    def __getitem__(self, group: slice) -> List[Indices]: ...
    def __iter__(self) -> Iterator[Indices]: ...
    def layout(self, group: int) -> Dict[str, Indices]:
        """Returns the layout of a group as `layout_prefixes` does.

        Args:
            group: the number of the group.

        Returns:
            The arrays of `layout_prefixes` by name.

        Raises:
            IndexError: if there is no such group.

        Example:
            >>> layout = omnibal.pack_prefixes([[7, 7, 1], [7, 7, 2, 3]], 6).layout(0)
            >>> layout["cu_seqlens"].tolist(), layout["positions"].tolist()
            ([0, 2, 3, 5], [0, 1, 2, 2, 3])
        """

class ExpertPlacement:
    """The experts in the slots of all ranks, for each layer, with the loads of the heaviest ranks.

    Example:
        >>> placed = omnibal.place_experts([600, 560, 120, 120, 20, 10, 10, 10], slots=2, ranks=8)
        >>> placed
        ExpertPlacement(1 layer, 8 ranks of 2 slots, 0 moved)
        >>> placed.experts.shape
        (1, 8, 2)
    """

    @property
    def experts(self) -> Indices: ...
    @property
    def largest_loads(self) -> npt.NDArray[np.float64]: ...
    @property
    def lower_bounds(self) -> npt.NDArray[np.float64]: ...
    @property
    def moved(self) -> npt.NDArray[np.int64]: ...

class ExpertSplit:
    """The tokens of one batch on the copies of their experts.

    Example:
        >>> omnibal.split_experts([8, 2, 2], [[0, 1], [0, 2]])
        ExpertSplit(2 ranks, largest 6)
    """

    @property
    def tokens(self) -> npt.NDArray[np.int64]: ...
    @property
    def rank_tokens(self) -> npt.NDArray[np.int64]: ...
    @property
    def largest(self) -> int: ...
    @property
    def full_ranks(self) -> Indices: ...

class SpillPlan:
    """Copies of experts on foreign ranks for one batch, by expert, then by rank, and their tokens.

    Example:
        >>> plan = omnibal.spill_experts([9, 1, 1, 1], home=[0, 0, 1, 1], ranks=2, max_overload=0)
        >>> plan
        SpillPlan(solved, 1 copy, at least 1, largest 6)
        >>> len(plan), plan.home_tokens.tolist()
        (1, [5, 1, 1, 1])
    """

    @property
    def experts(self) -> Indices: ...
    @property
    def ranks(self) -> Indices: ...
    @property
    def tokens(self) -> npt.NDArray[np.int64]: ...
    @property
    def home_tokens(self) -> npt.NDArray[np.int64]: ...
    @property
    def rank_tokens(self) -> npt.NDArray[np.int64]: ...
    @property
    def largest(self) -> int: ...
    @property
    def cap(self) -> int: ...
    @property
    def fewest_copies(self) -> int: ...
    @property
    def status(self) -> Status: ...
    @property
    def proven(self) -> bool: ...
    def __len__(self) -> int: ...

class Steps:
    """What each rank runs in each step: a sequence of steps, which are lists of arrays.

    steps[s, r] has the indices of rank r in step s, and steps[s] those of all ranks.

    Example:
        >>> steps = omnibal.schedule_steps([5, 5, 5, 5], ranks=2)
        >>> len(steps), steps.ranks
        (2, 2)
        >>> sorted(int(group) for step in steps for rank in step for group in rank)
        [0, 1, 2, 3]
        >>> steps[1, 0].size
        1
    """

    @property
    def ranks(self) -> int: ...
    @property
    def cells(self) -> Groups: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, place: int) -> List[Indices]: ...
    @overload
    def __getitem__(self, place: Tuple[int, int]) -> Indices: ...
    @overload
    def __getitem__(self, place: slice) -> List[List[Indices]]: ...
    def __iter__(self) -> Iterator[List[Indices]]: ...
    def is_repeat(self, step: int, rank: int) -> bool:
        """Returns True if the groups of this cell fill the step and ran in another cell."""

class PrefixSteps(Steps):
    """Micro-batches of sequences that share prefixes, from `balance_prefixes`.

    These are `Steps` of sequences: steps[m, r] has the sequences of micro-batch m of rank r. Each
    sequence is in one micro-batch or oversized. A micro-batch counts each shared token once.

    Example:
        >>> steps = omnibal.balance_prefixes([[7, 7, 7, 1], [7, 7, 7, 2], [8, 4, 3, 5]], 2, 6)
        >>> steps
        PrefixSteps(1 step of 2 ranks, 9 tokens, 0 oversized sequences)
        >>> steps[0, 0].tolist(), steps.tokens.tolist()
        ([0, 1], [[5, 4]])
    """

    @property
    def oversized(self) -> Indices: ...
    @property
    def tokens(self) -> npt.NDArray[np.uint64]: ...
    @property
    def work(self) -> npt.NDArray[np.float64]: ...
    @property
    def computed_tokens(self) -> int: ...
    @property
    def forest(self) -> PrefixForest: ...
    def layout(self, step: int, rank: int) -> Dict[str, Indices]:
        """Returns the layout of a micro-batch as `layout_prefixes` does.

        Args:
            step: the number of the micro-batch on its rank.
            rank: the rank.

        Returns:
            The arrays of `layout_prefixes` by name.

        Raises:
            IndexError: if there is no such step or rank.
        """

class TunedCapacity:
    """A capacity that `tune_capacity` tried, and the packing under this capacity.

    Example:
        >>> best = omnibal.tune_capacity([5, 3, 4, 6, 2, 4, 8, 1] * 50, 3.0).best
        >>> type(best).__name__, best.oversized
        ('TunedCapacity', 0)
    """

    @property
    def capacity(self) -> npt.NDArray[np.int64]: ...
    @property
    def groups(self) -> int: ...
    @property
    def oversized(self) -> int: ...
    @property
    def mean_group_size(self) -> float: ...
    @property
    def fill(self) -> npt.NDArray[np.float64]: ...
    @property
    def objective(self) -> float: ...

class Tuned:
    """The result of `tune_capacity`.

    Example:
        >>> tuned = omnibal.tune_capacity([5, 3, 4, 6, 2, 4, 8, 1] * 50, 3.0)
        >>> tuned.best.objective == min(one.objective for one in tuned.finalists)
        True
    """

    @property
    def status(self) -> Status: ...
    @property
    def best(self) -> TunedCapacity: ...
    @property
    def finalists(self) -> List[TunedCapacity]: ...
    @property
    def warnings(self) -> List[str]: ...

class Within:
    """The result of `balance_under_capacity`: parts, or the reason why there are none.

    Example:
        >>> omnibal.balance_under_capacity([1, 1], 2, [9, 3], 8).reason
        'sample_above_capacity'
    """

    @property
    def status(self) -> Status: ...
    @property
    def reason(self) -> str: ...
    @property
    def parts(self) -> Groups: ...
    @property
    def largest_load(self) -> Union[int, float]: ...
    @property
    def lower_bound(self) -> Union[int, float]: ...
    @property
    def proven(self) -> bool: ...
    @property
    def parts_needed(self) -> int: ...
    @property
    def sample(self) -> int: ...

class Partition:
    """Stages of a chain: stage s runs the layers boundaries[s] to boundaries[s + 1].

    Example:
        >>> omnibal.partition_minimax([4, 2, 3, 6, 1], 2).boundaries.tolist()
        [0, 3, 5]
    """

    @property
    def status(self) -> Status: ...
    @property
    def boundaries(self) -> Indices: ...
    @property
    def bottleneck(self) -> Union[int, float]: ...
    @property
    def objective(self) -> Union[int, float]: ...
    @property
    def lower_bound(self) -> Union[int, float]: ...
    @property
    def proven(self) -> bool: ...
    @property
    def stage(self) -> int: ...
    @property
    def missing_bytes(self) -> int: ...

class Recompute:
    """A choice for each layer, from `select_recompute`.

    Example:
        >>> plan = omnibal.select_recompute([[0, 3], [0, 5]], [[8, 1], [8, 1]], 9)
        >>> plan.choices.tolist(), plan.time, plan.bytes
        ([1, 0], 3, 9)
    """

    @property
    def status(self) -> Status: ...
    @property
    def choices(self) -> Indices: ...
    @property
    def time(self) -> Union[int, float]: ...
    @property
    def lower_bound(self) -> Union[int, float]: ...
    @property
    def proven(self) -> bool: ...
    @property
    def bytes(self) -> int: ...
    @property
    def missing_bytes(self) -> int: ...

class ContextPlan:
    """Micro-steps of groups of ranks, from `context_groups`.

    The groups of micro-step k are micro_step_offsets[k] to micro_step_offsets[k + 1].

    Example:
        >>> plan = omnibal.context_groups([400, 400], 2, [[1.0, 0.01, 0.0], [1.0, 0.006, 0.0]])
        >>> plan.first_ranks.tolist(), plan.samples.tolist()
        ([0, 1], [[0], [1]])
    """

    @property
    def status(self) -> Status: ...
    @property
    def micro_step_offsets(self) -> Indices: ...
    @property
    def first_ranks(self) -> Indices: ...
    @property
    def degrees(self) -> Indices: ...
    @property
    def times(self) -> npt.NDArray[np.float64]: ...
    @property
    def samples(self) -> Groups: ...
    @property
    def makespan(self) -> float: ...
    @property
    def lower_bound(self) -> float: ...
    @property
    def proven(self) -> bool: ...
    @property
    def idle_ranks(self) -> int: ...
    @property
    def sample(self) -> int: ...
    @property
    def min_degree(self) -> int: ...
    @property
    def digest(self) -> int: ...

class BalanceResult:
    """The result of `balance_optimally`.

    Example:
        >>> omnibal.balance_optimally([7, 6, 5, 4, 3], 2)
        BalanceResult(solved, 2 parts, largest load 13, at least 13, proven)
    """

    @property
    def status(self) -> Status: ...
    @property
    def parts(self) -> Groups: ...
    @property
    def largest_load(self) -> Union[int, float]: ...
    @property
    def lower_bound(self) -> Union[int, float]: ...
    @property
    def proven(self) -> bool: ...

class ContextLayout:
    """The pieces of the samples of a step and their ranks, from `context_pieces`.

    Example:
        >>> plan = omnibal.context_groups([8], 2, [[1.0, 1.0, 1.0], [1.0, 0.5, 0.5]])
        >>> layout = omnibal.context_pieces(plan, [8], 2)
        >>> layout
        ContextLayout(3 pieces of 1 sample, 2 ranks, 1 micro-step)
        >>> layout.firsts.tolist(), layout.tokens.tolist(), layout.cells.tolist()
        ([0, 2, 6], [2, 4, 2], [[0, 2], [1]])
        >>> layout.position_ids(0, 0).tolist()
        [0, 1, 6, 7]
    """

    @property
    def ranks(self) -> int: ...
    @property
    def micro_steps(self) -> int: ...
    @property
    def samples(self) -> Indices: ...
    @property
    def firsts(self) -> npt.NDArray[np.int32]: ...
    @property
    def tokens(self) -> npt.NDArray[np.int32]: ...
    @property
    def padded_tokens(self) -> npt.NDArray[np.int32]: ...
    @property
    def piece_offsets(self) -> Indices: ...
    @property
    def cells(self) -> Groups: ...
    def cu_seqlens(self, micro_step: int, rank: int) -> npt.NDArray[np.int32]:
        """Returns the cumulative padded tokens of a rank: one sequence for each sample of its group."""
    def position_ids(self, micro_step: int, rank: int) -> npt.NDArray[np.int32]:
        """Returns the position in its sample of each token of a rank, through the padding."""
    def __len__(self) -> int: ...

class ExchangePlan:
    """The ranks of all samples of a global batch before and after an exchange, from `make_plan`.

    The samples of rank 0 come first, then the samples of rank 1 and so on. All ranks compute the
    same plan. Rank r sends `sends(r)[t]`, places among its samples, to rank t.

    Example:
        >>> plan = omnibal.make_plan([0, 3, 4], [5, 4, 3, 2], [1, 1, 1, 1])
        >>> plan
        ExchangePlan(4 samples, 2 ranks, 1 bytes moved)
        >>> plan.arrivals.tolist(), plan.sends(0).tolist()
        ([[1, 2], [0, 3]], [[1, 2], [0]])
        >>> plan.permuted(["a", "b", "c", "d"])
        ['b', 'c', 'a', 'd']
        >>> plan.inverse().permuted(plan.permuted(["a", "b", "c", "d"]))
        ['a', 'b', 'c', 'd']
    """

    @property
    def ranks(self) -> int: ...
    @property
    def home_offsets(self) -> Indices: ...
    @property
    def arrivals(self) -> Groups: ...
    @property
    def departures(self) -> Groups: ...
    @property
    def bytes(self) -> npt.NDArray[np.int64]: ...
    @property
    def moved_bytes(self) -> int: ...
    @property
    def moved_bytes_across_nodes(self) -> int: ...
    @property
    def digest(self) -> int: ...
    def sends(self, rank: int) -> Groups:
        """Returns the samples that a rank sends to each rank: places among its own samples."""
    def send_counts(self, rank: int) -> npt.NDArray[np.int64]:
        """Returns the number of samples that a rank sends to each rank, itself included."""
    def receive_counts(self, rank: int) -> npt.NDArray[np.int64]:
        """Returns the number of samples that a rank receives from each rank, itself included."""
    def permuted(self, values: Any) -> Any:
        """Returns the values of all samples in the order after the exchange: an array or a list."""
    def inverse(self) -> "ExchangePlan":
        """Returns the plan that sends all samples back to their places before the exchange."""
    def __len__(self) -> int: ...

class PrefixExchangePlan:
    """An exchange that moves a shared prefix once to each rank, from `prefix_exchange`.

    Sample k of `plan` is the tokens of node nodes[k] of the forest, for one rank.

    Example:
        >>> forest = omnibal.build_prefix_forest([[7, 7, 1], [7, 7, 2], [9]])
        >>> moved = omnibal.prefix_exchange(forest, [0, 1, 3], omnibal.Groups([0, 2, 3], [0, 1, 2]), 4)
        >>> moved
        PrefixExchangePlan(4 copies of nodes, 2 ranks, 4 bytes moved)
        >>> moved.nodes.tolist(), moved.plan.arrivals.tolist()
        ([0, 1, 2, 3], [[0, 1, 2], [3]])
    """

    @property
    def plan(self) -> ExchangePlan: ...
    @property
    def nodes(self) -> Indices: ...

class Placement:
    """The rank of each part, from `placement`.

    Example:
        >>> home, parts = omnibal.Groups([0, 1, 2], [0, 1]), omnibal.Groups([0, 1, 2], [1, 0])
        >>> omnibal.placement(home, parts, [5, 5])
        Placement(2 parts, 0 bytes moved, proven)
    """

    @property
    def rank_of_part(self) -> Indices: ...
    @property
    def moved_bytes(self) -> int: ...
    @property
    def moved_bytes_across_nodes(self) -> int: ...
    @property
    def min_across_nodes(self) -> int: ...
    @property
    def proven(self) -> bool: ...

class Orchestration:
    """The exchanges of a step of a multimodal model, from `make_orchestration`.

    Example:
        >>> images = ([2, 0], [5, 5], [1, 1], [1, 1])
        >>> plans = omnibal.make_orchestration([0, 1, 2], [9, 9], [4, 4], [images])
        >>> plans
        Orchestration(2 samples, 2 ranks, 1 encoder)
        >>> plans.inputs[0].arrivals.tolist(), plans.outputs[0].arrivals.tolist()
        ([[1], [0]], [[1, 0], []])
        >>> plans.pieces_of_samples(0, 0).tolist()
        [0, 2]
    """

    @property
    def samples(self) -> ExchangePlan: ...
    @property
    def inputs(self) -> List[ExchangePlan]: ...
    @property
    def outputs(self) -> List[ExchangePlan]: ...
    @property
    def digest(self) -> int: ...
    def pieces_of_samples(self, encoder: int, rank: int) -> Indices:
        """Returns where the outputs of each sample of a rank begin among those it receives, and the end."""

class AffineCost:
    """The cost offset + slope * size of each kind, from `affine_fit`; never negative.

    Example:
        >>> cost = omnibal.affine_fit([1, 2, 3], [13, 23, 33])
        >>> cost
        AffineCost(offset 3, slopes [10], exact)
        >>> cost([4, 5]).tolist()
        [43.0, 53.0]
    """

    @property
    def offset(self) -> float: ...
    @property
    def slopes(self) -> npt.NDArray[np.float64]: ...
    @property
    def root_mean_square_residual(self) -> float: ...
    @property
    def largest_residual(self) -> float: ...
    @property
    def largest_residual_index(self) -> int: ...
    @property
    def exact(self) -> bool: ...
    @property
    def variance_inflation(self) -> npt.NDArray[np.float64]: ...
    def __call__(self, sizes: Sizes) -> Any:
        """Returns the cost of one size, or the costs of an array of sizes."""
    def collinear_kinds(self, most: float = 100.0) -> List[int]:
        """Returns the kinds whose inflation exceeds `most`, which the points hardly distinguish."""

class PipelinePlan:
    """The stages of a model and the choice of each layer, from `plan_pipeline`.

    Example:
        >>> plan = omnibal.plan_pipeline([[4, 5]] * 4, [[10, 1]] * 4, 2, 4, memory=30)
        >>> plan
        PipelinePlan(solved, 2 stages, step time 44, at least 44, proven)
        >>> plan.boundaries.tolist(), plan.choices.tolist(), plan.recompute_lists(1).tolist()
        ([0, 2, 4], [0, 1, 0, 0], [[1], []])
    """

    @property
    def status(self) -> Status: ...
    @property
    def boundaries(self) -> Indices: ...
    @property
    def choices(self) -> Indices: ...
    @property
    def stage_times(self) -> Union[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
    @property
    def stage_bytes(self) -> npt.NDArray[np.int64]: ...
    @property
    def in_flight(self) -> npt.NDArray[np.int64]: ...
    @property
    def step_time(self) -> Union[int, float]: ...
    @property
    def lower_bound(self) -> Union[int, float]: ...
    @property
    def proven(self) -> bool: ...
    @property
    def stage(self) -> int: ...
    @property
    def missing_bytes(self) -> int: ...
    def recompute_lists(self, choice: int) -> Groups:
        """Returns for each stage the layers that run with this choice, numbered over the model."""
    def to_json(self) -> str:
        """Returns the plan as JSON, in the form that docs/reference/files.md describes."""
    def megatron_layout(self, letters: str) -> str:
        """Returns the argument of `--pipeline-model-parallel-layout` of Megatron-LM.

        `letters` has a letter for each layer: E for the embedding, t for a transformer layer, m for a
        layer of multi-token prediction, L for the head with the losses.
        """

class LanguageModel:
    """A decoder by the numbers of its configuration: costs of samples and layers, and parameters.

    Each layer has causal attention with rotary positions, RMS norms and no biases.

    Args:
        layers: the number of layers.
        hidden: the width of the model.
        heads: the number of attention heads.
        mlp: the width of the feed-forward part, of the dense layers if there are experts.
        vocabulary: the number of tokens of the vocabulary.
        kv_heads: the number of key-value heads. Default: 0, as many as heads.
        head_size: the width of a head. Default: 0, hidden over heads.
        gated: True if the feed-forward part has a gate, so that it has three matrices.
        tied: True if the head has the matrix of the embedding.
        window: the tokens of a sliding window. Default: the whole document.
        experts: the routed, active and shared experts of a layer, and the width of an expert.
        dense_layers: how many first layers have no experts.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> llama = omnibal.LanguageModel(32, 4096, 32, 14336, 128256, kv_heads=8)
        >>> llama
        LanguageModel(32 layers, 8030261248 parameters)
        >>> costs = llama.layer_costs([8192], flops_per_second=400 * 10**12)
        >>> plan = omnibal.plan_pipeline(
        ...     costs["times"], costs["bytes"], stages=4, micro_batches=16, memory=80 * 10**9,
        ...     state_bytes=costs["state_bytes"], transient_bytes=costs["transient_bytes"])
        >>> plan.boundaries.tolist()
        [0, 9, 18, 27, 34]
    """

    def __init__(
        self,
        layers: int,
        hidden: int,
        heads: int,
        mlp: int,
        vocabulary: int,
        *,
        kv_heads: int = 0,
        head_size: int = 0,
        gated: bool = True,
        tied: bool = False,
        window: Optional[int] = None,
        experts: Optional[Tuple[int, int, int, int]] = None,
        dense_layers: int = 0,
    ) -> None: ...
    @property
    def parameters(self) -> int: ...
    @property
    def active_parameters(self) -> int: ...
    def document_cost(self, lengths: Integers) -> npt.NDArray[np.int64]:
        """Returns the FLOPs, forward and backward, of documents of these lengths, int64."""
    def layer_costs(
        self,
        lengths: Integers,
        flops_per_second: int,
        bytes_per_second: Optional[int] = None,
        *,
        tensor: int = 1,
        sequence: int = 1,
        data: int = 1,
        expert: int = 1,
        pipeline: int = 1,
    ) -> Dict[str, npt.NDArray[np.int64]]:
        """Returns the costs on one rank of the embedding, all layers and the head, for a micro-batch.

        The columns of `times` in nanoseconds, `bytes` and `transient_bytes` are the choices of
        `plan_pipeline`: to keep all activations, to recompute those that are cheapest to recompute, or
        to recompute the layer. There are also `state_bytes`, `flops` and `cut_bytes` of each layer. The
        device has `flops_per_second` and, if given, `bytes_per_second` of memory. `tensor`, `sequence`,
        `data`, `expert` and `pipeline` are parallel degrees.
        """

MachineName = Literal[
    "a100_start", "h100_start", "b200_start", "gb200_start", "a100_infiniband", "a100_omnipath",
    "a100_roce", "a100_fsdp", "h100", "h100_fsdp", "h100_500w", "b200", "b300", "gb200", "gb300",
]
"""The machines of the library; the suffix `_start` marks starts of fits."""
MachineConstant = Literal[
    "matmul_flops_per_second", "fp8_gain", "operand_bytes_per_second", "memory_bytes_per_second",
    "attention_flops_per_second", "node_bytes_per_second", "network_bytes_per_second",
    "exchange_bytes_per_second", "hop_seconds", "launch_seconds",
]
RecomputeWord = Literal["none", "selective", "full"]
Sharding = Literal["nothing", "optimizer", "gradients", "parameters"]
Norms = Literal["replicated", "split"]
Cuts = Literal["even", "balanced"]
Precision = Literal["bf16", "fp8"]
ByteSizes = Union[Literal["bf16", "fp8", "mxfp8"], Mapping[str, int]]
"""A preset, or the bytes that differ from those of bf16, by the names of `byte_sizes` in C++."""
Communication = Literal["blocking", "overlapped"]
Choices = Union[int, Sequence[int], npt.NDArray[np.integer[Any]]]
"""The values that a search tries: a number, or a list of them."""

class Machine:
    """Devices, their links and their software, described by ten constants.

    The constants are achieved values, not the values of a data sheet. A rate may be infinite; the work
    then takes no time.

    Args:
        matmul_flops_per_second: the FLOPs per second that the largest matrix products in bf16 approach.
        operand_bytes_per_second: the rate at which a product reads and writes its three matrices.
        memory_bytes_per_second: the rate of all operations other than products: norms, activations,
            sums, casts, the optimizer.
        attention_flops_per_second: the FLOPs per second of fused attention; half of the FLOPs are
            counted with a causal mask.
        node_bytes_per_second: the rate of one device in collectives within a node.
        network_bytes_per_second: the rate of one device between nodes.
        exchange_bytes_per_second: the rate at which one device sends tokens to experts within a node.
        fp8_gain: the rate of products in FP8 divided by the rate in bf16.
        hop_seconds: the seconds of one step of a ring or a tree, independent of its bytes.
        launch_seconds: the minimum seconds of one pass of one layer.
        devices_per_node: the number of devices that fast links connect.

    Raises:
        TypeError: if a rate is missing, or an argument is no number.
        ValueError: if a rate is not positive or a duration is negative; the text names the argument
            and its value.

    Example:
        >>> h100 = omnibal.Machine.named("h100")
        >>> h100.matmul_flops_per_second, h100.devices_per_node
        (689000000000000.0, 8)
        >>> h100.replace(network_bytes_per_second=80e9) == h100
        False
    """

    def __init__(
        self,
        *,
        matmul_flops_per_second: float,
        operand_bytes_per_second: float,
        memory_bytes_per_second: float,
        attention_flops_per_second: float,
        node_bytes_per_second: float,
        network_bytes_per_second: float,
        exchange_bytes_per_second: float,
        fp8_gain: float = 2.0,
        hop_seconds: float = 0.0,
        launch_seconds: float = 0.0,
        devices_per_node: int = 8,
    ) -> None: ...
    @property
    def matmul_flops_per_second(self) -> float: ...
    @property
    def fp8_gain(self) -> float: ...
    @property
    def operand_bytes_per_second(self) -> float: ...
    @property
    def memory_bytes_per_second(self) -> float: ...
    @property
    def attention_flops_per_second(self) -> float: ...
    @property
    def node_bytes_per_second(self) -> float: ...
    @property
    def network_bytes_per_second(self) -> float: ...
    @property
    def exchange_bytes_per_second(self) -> float: ...
    @property
    def hop_seconds(self) -> float: ...
    @property
    def launch_seconds(self) -> float: ...
    @property
    def devices_per_node(self) -> int: ...
    @staticmethod
    def named(name: MachineName) -> Machine:
        """Returns a machine of the library, whose constants were fitted to published runs.

        docs/evidence/step_model.md has the runs and the errors. Machines whose names end in `_start`
        have rough rates; they are starts for `fit_machine`.
        """
    @staticmethod
    def names() -> List[MachineName]:
        """Returns the names that `named` accepts."""
    def replace(self, **changes: Any) -> Machine:
        """Returns the machine with other values of the given members."""
    def to_dict(self) -> Dict[str, Any]:
        """Returns all members by their names; `Machine(**machine.to_dict())` is the same machine."""

class TrainingStep:
    """The configuration of a training step: its micro-batch, degrees, schedule and recomputation.

    A micro-batch has `sequences` of `tokens`, or documents of the given `lengths`, or `documents`.

    Args:
        tokens: the tokens of a sequence.
        sequences: the number of sequences of a micro-batch.
        document_tokens: the tokens of a packed document; 0 means that a sequence is one document.
        lengths: the tokens of each document of a micro-batch, instead of `tokens`.
        documents: the number, the tokens and the sum of the squares of the lengths of the documents of
            a micro-batch, instead of `tokens`. For a model with a window, also the tokens of the window
            and the sum of the squares within it.
        micro_batches: the number of micro-batches of a data-parallel rank.
        tensor: the degree of tensor parallelism.
        pipeline: the number of stages.
        context: the degree of context parallelism, which `LanguageModel.layer_costs` calls `sequence`.
        expert: the number of ranks that share the routed experts; they are ranks of data and context.
        data: the degree of data parallelism.
        expert_tensor: the ranks that share the matrices of one expert; 0 means `tensor`.
        chunks: the chunks of the model on a stage; above 1, the schedule is interleaved.
        boundaries: the boundaries of virtual stages over embedding, layers and head, one more than
            `pipeline * chunks`. Default: equal numbers of layers.
        recompute: the activations that are recomputed: none, those that are cheapest to recompute, or
            all activations of a layer except its input.
        offload_share: the share of the kept bytes of each layer that a device offloads to its host.
        offload_bytes_per_second: the bytes per second of one device to its host and back.
        sharding: the state that data-parallel ranks share; each choice includes the choices before it.
        norms: 'split' if tensor-parallel ranks share the activations between their products.
        precision: the number format of matrix products.
        bytes: the bytes of activations, parameters, gradients and optimizer state: 'bf16', 'fp8',
            'mxfp8', or a dict with any of activation, parameter, gradient, optimizer, matrix_input,
            matrix_copy and scale_block.
        reduced_bytes: the bytes of a gradient in a reduction.
        gathered_bytes: the bytes of a parameter in a gather.
        state_ranks: the data-parallel ranks that share the state; 0 means all of them.
        bucket_bytes: the bytes that one call of a reduction sends.
        layer_communication: 'overlapped' if collectives of tensor parallelism overlap the gradients of
            weights, and transfers of an interleaved pipeline overlap passes.
        gradient_communication: 'overlapped' if the reduction of gradients overlaps computation.

    Raises:
        TypeError: if an argument is unknown or has another type.
        ValueError: if a word is unknown, or not exactly one of `tokens`, `lengths` and `documents` is
            given. `predict_step` checks the numbers.

    Example:
        >>> step = omnibal.TrainingStep(tokens=8192, micro_batches=8, tensor=2, data=32)
        >>> step
        TrainingStep(tokens=8192, micro_batches=8, tensor=2, data=32)
        >>> step.replace(lengths=[5000, 3000], recompute="full")
        TrainingStep(lengths=[5000, 3000], micro_batches=8, tensor=2, data=32, recompute='full')
    """

    def __init__(
        self,
        *,
        tokens: int = 0,
        sequences: int = 1,
        document_tokens: int = 0,
        lengths: Optional[Integers] = None,
        documents: Optional[Sequence[int]] = None,
        micro_batches: int = 1,
        tensor: int = 1,
        pipeline: int = 1,
        context: int = 1,
        expert: int = 1,
        data: int = 1,
        expert_tensor: int = 0,
        chunks: int = 1,
        boundaries: Optional[Integers] = None,
        recompute: RecomputeWord = "none",
        offload_share: float = 0.0,
        offload_bytes_per_second: float = 0.0,
        sharding: Sharding = "optimizer",
        norms: Norms = "replicated",
        precision: Precision = "bf16",
        bytes: ByteSizes = "bf16",
        reduced_bytes: int = 2,
        gathered_bytes: int = 2,
        state_ranks: int = 0,
        bucket_bytes: int = 500000000,
        layer_communication: Communication = "blocking",
        gradient_communication: Communication = "overlapped",
    ) -> None: ...
    @property
    def tokens(self) -> int: ...
    @property
    def sequences(self) -> int: ...
    @property
    def document_tokens(self) -> int: ...
    @property
    def lengths(self) -> Optional[npt.NDArray[np.int64]]: ...
    @property
    def documents(self) -> Optional[List[int]]: ...
    @property
    def micro_batches(self) -> int: ...
    @property
    def tensor(self) -> int: ...
    @property
    def pipeline(self) -> int: ...
    @property
    def context(self) -> int: ...
    @property
    def expert(self) -> int: ...
    @property
    def data(self) -> int: ...
    @property
    def expert_tensor(self) -> int: ...
    @property
    def chunks(self) -> int: ...
    @property
    def boundaries(self) -> Optional[npt.NDArray[np.int64]]: ...
    @property
    def recompute(self) -> RecomputeWord: ...
    @property
    def offload_share(self) -> float: ...
    @property
    def offload_bytes_per_second(self) -> float: ...
    @property
    def sharding(self) -> Sharding: ...
    @property
    def norms(self) -> Norms: ...
    @property
    def precision(self) -> Precision: ...
    @property
    def bytes(self) -> Dict[str, int]: ...
    @property
    def reduced_bytes(self) -> int: ...
    @property
    def gathered_bytes(self) -> int: ...
    @property
    def state_ranks(self) -> int: ...
    @property
    def bucket_bytes(self) -> int: ...
    @property
    def layer_communication(self) -> Communication: ...
    @property
    def gradient_communication(self) -> Communication: ...
    def replace(self, **changes: Any) -> TrainingStep:
        """Returns the step with other values of the given members.

        `lengths` or `documents` replace the whole micro-batch. `tokens` replaces `lengths` and
        `documents`. A step of a plan has boundaries: give `boundaries=None` with another `pipeline` or
        `chunks`.
        """
    def to_dict(self) -> Dict[str, Any]:
        """Returns all members by their names; `TrainingStep(**step.to_dict())` is the same step."""

class StepPrediction:
    """The predicted seconds and bytes of a training step, from `predict_step`.

    `parts` has the seconds of matmul, attention, memory, tensor, context, expert, transfer, offload,
    launch, bubble, gradients and optimizer on the slowest stage.

    Example:
        >>> model = omnibal.LanguageModel(32, 4096, 32, 14336, 128256, kv_heads=8)
        >>> step = omnibal.TrainingStep(tokens=8192, micro_batches=8, pipeline=4, data=8)
        >>> found = omnibal.predict_step(model, step, omnibal.Machine.named("h100"))
        >>> round(found.seconds, 3), round(found.parts["bubble"], 3), len(found.peak_bytes)
        (2.406, 0.555, 4)
    """

    @property
    def seconds(self) -> float: ...
    @property
    def parts(self) -> Dict[str, float]: ...
    @property
    def forward_seconds(self) -> npt.NDArray[np.float64]: ...
    @property
    def backward_seconds(self) -> npt.NDArray[np.float64]: ...
    @property
    def peak_bytes(self) -> npt.NDArray[np.int64]: ...
    @property
    def host_bytes(self) -> npt.NDArray[np.int64]: ...
    def to_dict(self) -> Dict[str, Any]:
        """Returns all members by their names, with lists instead of arrays."""

class PlannedConfiguration:
    """A configuration of a training step with its prediction, from `plan_configuration`.

    `step` is the whole configuration, which `predict_step` accepts.

    Example:
        >>> model = omnibal.LanguageModel(16, 1024, 16, 2816, 32000, kv_heads=8)
        >>> h100 = omnibal.Machine.named("h100")
        >>> best = omnibal.plan_configuration(
        ...     model, h100, sequences=32, tokens=2048, devices=8, memory_bytes=40 * 10**9).best
        >>> best
        PlannedConfiguration(data 8, micro-batch 4, recompute none, sharding optimizer, 0.0309731 s)
        >>> omnibal.predict_step(model, best.step, h100) == best.prediction
        True
    """

    @property
    def tensor(self) -> int: ...
    @property
    def pipeline(self) -> int: ...
    @property
    def context(self) -> int: ...
    @property
    def expert(self) -> int: ...
    @property
    def expert_tensor(self) -> int: ...
    @property
    def data(self) -> int: ...
    @property
    def micro_batch(self) -> int: ...
    @property
    def micro_batches(self) -> int: ...
    @property
    def token_capacity(self) -> int: ...
    @property
    def padding(self) -> float: ...
    @property
    def largest(self) -> Optional[List[int]]: ...
    @property
    def chunks(self) -> int: ...
    @property
    def boundaries(self) -> npt.NDArray[np.int64]: ...
    @property
    def recompute(self) -> RecomputeWord: ...
    @property
    def offload_percent(self) -> int: ...
    @property
    def sharding(self) -> Sharding: ...
    @property
    def norms(self) -> Norms: ...
    @property
    def seconds(self) -> float: ...
    @property
    def peak_bytes(self) -> npt.NDArray[np.int64]: ...
    @property
    def host_bytes(self) -> npt.NDArray[np.int64]: ...
    @property
    def step(self) -> TrainingStep: ...
    @property
    def prediction(self) -> StepPrediction: ...
    def to_dict(self) -> Dict[str, Any]:
        """Returns the choices, the seconds and their parts, and the bytes of each stage."""

class ConfigurationFamily:
    """All configurations with one value of a choice, if the best configuration has another value.

    `choice` is tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, schedule,
    micro_batch, recompute, sharding or offload. `reason` says why the family loses: no member fits into the
    memory, or computation, bubble, links or padding exceed the same part of the best configuration by
    the most seconds.

    Example:
        >>> plan = omnibal.plan_configuration(
        ...     omnibal.LanguageModel(16, 1024, 16, 2816, 32000, kv_heads=8),
        ...     omnibal.Machine.named("h100"),
        ...     sequences=32, tokens=2048, devices=8, memory_bytes=40 * 10**9)
        >>> [(family.value, family.reason) for family in plan.families
        ...  if family.choice == "tensor_parallel"]
        [(2, 'links'), (4, 'links'), (8, 'links')]
    """

    @property
    def choice(self) -> str: ...
    @property
    def value(self) -> Union[int, str]: ...
    @property
    def reason(self) -> Literal["memory", "computation", "bubble", "links", "padding"]: ...
    @property
    def best(self) -> Optional[PlannedConfiguration]: ...
    @property
    def min_bytes(self) -> int: ...
    def to_dict(self) -> Dict[str, Any]:
        """Returns all members by their names."""

class ConfigurationPlan:
    """The fastest configuration of a training step and its rivals, from `plan_configuration`.

    Example:
        >>> plan = omnibal.plan_configuration(
        ...     omnibal.LanguageModel(16, 1024, 16, 2816, 32000, kv_heads=8),
        ...     omnibal.Machine.named("h100"),
        ...     sequences=32, tokens=2048, devices=8, memory_bytes=40 * 10**9)
        >>> plan
        ConfigurationPlan(solved, data 8, micro-batch 4, recompute none, sharding optimizer, 0.0309731 s, proven)
        >>> round(plan.flops_utilization(989e12), 3), len(plan.runners_up)
        (0.409, 4)
    """

    @property
    def status(self) -> Status: ...
    @property
    def best(self) -> Optional[PlannedConfiguration]: ...
    @property
    def runners_up(self) -> List[PlannedConfiguration]: ...
    @property
    def families(self) -> List[ConfigurationFamily]: ...
    @property
    def lower_bound(self) -> float: ...
    @property
    def proven(self) -> bool: ...
    @property
    def min_bytes(self) -> int: ...
    @property
    def configurations(self) -> int: ...
    @property
    def predictions(self) -> int: ...
    @property
    def flops(self) -> float: ...
    @property
    def devices(self) -> int: ...
    def flops_utilization(self, peak_flops_per_gpu_second: float) -> float:
        """Returns the model FLOPs utilization (MFU) of the best configuration.

        This is the FLOPs of the model, without recomputation and padding, as a share of the peak FLOPs
        of all devices. ValueError if the plan has no configuration, or the peak is not positive.
        """
    def to_dict(self) -> Dict[str, Any]:
        """Returns all members by their names, with the configurations and families as dicts."""

class FittedConstant:
    """A constant of a `Machine` that `fit_machine` fitted.

    The runs are compatible with values within about two standard errors. Do not fit a constant with an
    inflation above 10 from these runs. A constant at its bound probably compensates for an effect that
    the model does not have.

    Example:
        >>> h100 = omnibal.Machine.named("h100")
        >>> found = omnibal.fit_machine(
        ...     [1.0, 2.0], [0.011, 0.022], lambda work, on: 1e9 * work / on.network_bytes_per_second,
        ...     h100, ["network_bytes_per_second"])
        >>> constant = found.constants[0]
        >>> constant.name, round(constant.value / 1e9), constant.is_at_bound
        ('network_bytes_per_second', 91, False)
    """

    @property
    def name(self) -> MachineConstant: ...
    @property
    def value(self) -> float: ...
    @property
    def relative_error(self) -> float: ...
    @property
    def inflation(self) -> float: ...
    @property
    def is_at_bound(self) -> bool: ...

class MachineFit:
    """A machine that was fitted to runs, from `fit_machine`.

    Example:
        >>> h100 = omnibal.Machine.named("h100")
        >>> found = omnibal.fit_machine(
        ...     [1.0, 2.0], [0.0125, 0.025], lambda work, on: 1e9 * work / on.network_bytes_per_second,
        ...     h100, ["network_bytes_per_second"])
        >>> round(found.fitted.network_bytes_per_second / 1e9), round(found.mean_error, 2)
        (80, 0.0)
    """

    @property
    def fitted(self) -> Machine: ...
    @property
    def constants(self) -> List[FittedConstant]: ...
    @property
    def mean_error(self) -> float: ...
    @property
    def largest_error(self) -> float: ...

def fit_machine(
    runs: Sequence[Any],
    seconds: npt.ArrayLike,
    predict: Callable[[Any, Machine], float],
    start: Machine,
    constants: Sequence[MachineConstant],
    *,
    prior: float = 0.02,
    outlier_share: float = 0.05,
    bound_factor: float = 30.0,
    rounds: int = 60,
) -> MachineFit:
    """Fits constants of a machine to measured runs.

    Args:
        runs: the runs: steps, dicts, or anything that `predict` accepts.
        seconds: the measured seconds of each run.
        predict: a function of a run and a `Machine` that returns the predicted seconds, usually by
            `predict_step`. It is called about rounds * (constants + 1) * runs times.
        start: a similar machine. Constants that are not fitted keep its values.
        constants: the names of the constants to fit: few constants from few runs.
        prior: the weight of the start values.
        outlier_share: the relative error above which the loss of a run grows linearly.
        bound_factor: a constant stays between its start over this factor and its start times it.
        rounds: the largest number of rounds.

    Returns:
        A `MachineFit` with the machine, and the certainty of each constant.

    Raises:
        TypeError: if `predict` is no function, or returns no number.
        ValueError: if an argument is wrong, or a prediction is not positive; the text names the argument
            and its value.

    Example:
        >>> model = omnibal.LanguageModel(32, 4096, 32, 14336, 128256, kv_heads=8)
        >>> step = omnibal.TrainingStep(
        ...     tokens=8192, context=2, data=32, recompute="selective",
        ...     layer_communication="overlapped")
        >>> runs = [step.replace(micro_batches=count) for count in (8, 16, 32)]
        >>> found = omnibal.fit_machine(
        ...     runs, [3.7, 7.2, 14.0],
        ...     lambda run, machine: omnibal.predict_step(model, run, machine).seconds,
        ...     omnibal.Machine.named("h100"), ["matmul_flops_per_second"])
        >>> round(found.fitted.matmul_flops_per_second / 1e12), round(found.mean_error, 3)
        (585, 0.016)
    """

def predict_step(model: LanguageModel, step: TrainingStep, machine: Machine) -> StepPrediction:
    """Predicts the seconds and bytes of a training step.

    Args:
        model: the model.
        step: the configuration of the step.
        machine: the constants of the devices and links.

    Returns:
        A `StepPrediction`: the seconds by parts, and the most bytes of each stage.

    Raises:
        ValueError: if a number of the step is wrong, does not fit the model, or would have no effect; the
            text names it and its value.

    Example:
        >>> model = omnibal.LanguageModel(32, 4096, 32, 14336, 128256, kv_heads=8)
        >>> step = omnibal.TrainingStep(
        ...     tokens=8192, micro_batches=8, context=2, data=32, recompute="selective")
        >>> found = omnibal.predict_step(model, step, omnibal.Machine.named("h100"))
        >>> found
        StepPrediction(3.23354 s, 1 stage, at most 67355779840 bytes)
        >>> slow = omnibal.Machine.named("h100").replace(network_bytes_per_second=10e9)
        >>> round(omnibal.predict_step(model, step, slow).seconds - found.seconds, 3)
        0.102
    """

def plan_configuration(
    model: LanguageModel,
    machine: Machine,
    *,
    sequences: int,
    tokens: int = 0,
    document_tokens: int = 0,
    lengths: Optional[Integers] = None,
    devices: int,
    memory_bytes: int,
    reserve_bytes: int = 0,
    tensor_parallel: Optional[Choices] = None,
    pipeline_parallel: Optional[Choices] = None,
    virtual_pipeline: Optional[Choices] = None,
    context_parallel: Optional[Choices] = None,
    expert_parallel: Optional[Choices] = None,
    micro_batch_sizes: Optional[Choices] = None,
    token_capacities: Optional[Choices] = None,
    recompute: Optional[Union[RecomputeWord, Sequence[RecomputeWord]]] = None,
    offload_bytes_per_second: float = 0.0,
    host_memory_bytes: Optional[int] = None,
    offload_percent: Optional[Choices] = None,
    sharding: Optional[Union[Sharding, Sequence[Sharding]]] = None,
    norms: Optional[Union[Norms, Sequence[Norms]]] = None,
    cuts: Optional[Union[Cuts, Sequence[Cuts]]] = None,
    precision: Precision = "bf16",
    bytes: ByteSizes = "bf16",
    reduced_bytes: int = 2,
    gathered_bytes: int = 2,
    bucket_bytes: int = 500000000,
    layer_communication: Communication = "blocking",
    gradient_communication: Communication = "overlapped",
    runners_up: int = 4,
    predictions: int = 1000000,
) -> ConfigurationPlan:
    """Searches the configuration of a training step with the fewest predicted seconds.

    Of the arguments that list values, `None` means that the search chooses among all values that the
    devices and the model allow.

    Args:
        model: the model.
        machine: the constants of the devices and links.
        sequences: the sequences of a step over all ranks; the samples of a step if there are `lengths`.
        tokens: the tokens of a sequence; not with `lengths`.
        document_tokens: the tokens of a packed document; 0 means that a sequence is one document.
        lengths: the tokens of each sample of the data set, which is packed into micro-batches; not for
            models with a window, because a mean micro-batch has no lengths.
        devices: the number of devices; all of them are used.
        memory_bytes: the bytes of the memory of a device.
        reserve_bytes: the part of these bytes that is reserved for other uses: the context of the
            device, buffers of communication, the allocator.
        tensor_parallel: the degrees of tensor parallelism. Default: up to the devices of a node.
        pipeline_parallel: the numbers of stages.
        virtual_pipeline: the chunks of the model on a stage; 1 is 1F1B, more are interleaved.
        context_parallel: the degrees of context parallelism.
        expert_parallel: the degrees of expert parallelism.
        micro_batch_sizes: the sequences of a micro-batch; not with `lengths`.
        token_capacities: the tokens of a packed micro-batch; only with `lengths`. Default: the longest
            sample, rounded up to a multiple of 256, times 1, 1.5, 2, 3, 4, 6 up to 64.
        recompute: the choices of recomputation.
        offload_bytes_per_second: the bytes per second of one device to the memory of its host and
            back; 0 if nothing is offloaded.
        host_memory_bytes: the bytes of the memory of the host for one device. Default: no limit.
        offload_percent: the offloaded shares of the kept activations, in percent. Default: 0, 25, 50,
            75 and 100 if there is a rate.
        sharding: the state that data-parallel ranks share. Default: all choices except 'gradients'.
        norms: the distribution of activations between tensor-parallel products. Default: 'split'.
        cuts: the rules for the boundaries of stages.
        precision: the number format of matrix products.
        bytes: the bytes of activations, parameters, gradients and optimizer state, as in
            `TrainingStep`.
        reduced_bytes: the bytes of a gradient in a reduction.
        gathered_bytes: the bytes of a parameter in a gather.
        bucket_bytes: the bytes that one call of a reduction sends.
        layer_communication: 'overlapped' if collectives of tensor parallelism overlap the gradients of
            weights, and transfers of an interleaved pipeline overlap passes.
        gradient_communication: 'overlapped' if the reduction of gradients overlaps computation.
        runners_up: how many configurations with other degrees are returned in addition to the best.
        predictions: the largest number of simulated steps; a search that needs more is not proven.

    Returns:
        A `ConfigurationPlan`: the best configuration, the runners-up, and why other values lose.

    Raises:
        ValueError: if an argument is wrong, or allows no configuration; the text names the argument and
            its value. A memory that is too small is no error, but the status 'infeasible'.

    Example:
        >>> llama = omnibal.LanguageModel(32, 4096, 32, 14336, 128256, kv_heads=8)
        >>> plan = omnibal.plan_configuration(
        ...     llama, omnibal.Machine.named("h100"), sequences=256, tokens=8192, devices=64,
        ...     memory_bytes=80 * 10**9, reserve_bytes=8 * 10**9,
        ...     layer_communication="overlapped", tensor_parallel=[1, 2], pipeline_parallel=1)
        >>> plan.best.context, plan.best.data, plan.best.recompute, round(plan.best.seconds, 3)
        (2, 32, 'selective', 3.234)
        >>> lengths = [900, 4000, 300, 7000, 2500, 1200] * 50
        >>> packed = omnibal.plan_configuration(
        ...     llama, omnibal.Machine.named("h100"), sequences=256, lengths=lengths, devices=8,
        ...     memory_bytes=80 * 10**9, tensor_parallel=[2, 4], context_parallel=1)
        >>> packed.best.token_capacity, packed.proven
        (14336, True)
    """

class ListedSchedule:
    """A schedule as a list of operations for each stage, from `list_schedule`.

    Example:
        >>> found = omnibal.list_schedule([1, 1], [2, 2], stages=2, micro_batches=2)
        >>> found
        ListedSchedule(2 stages, 2 micro-batches, makespan 9, at least 9, proven)
        >>> found.operations[1]
        [('forward', 0, 0), ('forward', 0, 1), ('backward', 0, 0), ('backward', 0, 1)]
        >>> print(found.to_csv(), end="")
        0F0,0F1,0B0,0B1
        1F0,1F1,1B0,1B1
    """

    @property
    def stages(self) -> int: ...
    @property
    def micro_batches(self) -> int: ...
    @property
    def chunks(self) -> int: ...
    @property
    def placement(self) -> Placement: ...
    @property
    def splits_backward(self) -> bool: ...
    @property
    def operations(self) -> List[List[Tuple[Literal["forward", "backward", "weight"], int, int]]]: ...
    @property
    def objective(self) -> Literal["makespan", "longest_stage"]: ...
    @property
    def makespan(self) -> Union[int, float]: ...
    @property
    def longest_stage(self) -> Union[int, float]: ...
    @property
    def lower_bound(self) -> Union[int, float]: ...
    def to_csv(self) -> str:
        """Returns the schedule as CSV that PyTorch reads (`_load_csv`, format `compute_only`).

        A row has the operations of a stage, which PyTorch calls a rank. `2F7` is the forward pass of
        micro-batch 7 in the virtual stage 2, which PyTorch calls a stage. `B` is a whole backward pass,
        `I` the gradients of the inputs and `W` the gradients of the weights.

        Returns:
            The text.

        Raises:
            ValueError: if the schedule is bidirectional, because PyTorch has one rank for each virtual
                stage.
        """
    def write_csv(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the text of `to_csv` to a file.

        Args:
            path: the path of the file, which is replaced if it exists.

        Raises:
            OSError: if the file cannot be written.
            ValueError: if the schedule is bidirectional.
        """

Schedule = Union[
    Literal[
        "gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_v", "v_half", "v_min", "dual_pipe_v"
    ],
    ListedSchedule,
]

class SequenceSlices:
    """The slices of a step, from `slice_sequences`: a sequence of lists of (sequence, first, last).

    The tokens of a part are sequence[first:last].

    Example:
        >>> slices = omnibal.slice_sequences([512, 100, 28], 256, lambda tokens: tokens)
        >>> slices
        SequenceSlices(3 slices, 4 parts, largest 256)
        >>> slices[1], slices[2]
        ([(0, 256, 512)], [(1, 0, 100), (2, 0, 28)])
        >>> slices.slice_counts.tolist()
        [2, 1]
    """

    @property
    def offsets(self) -> Indices: ...
    @property
    def sequences(self) -> Indices: ...
    @property
    def firsts(self) -> npt.NDArray[np.int64]: ...
    @property
    def lasts(self) -> npt.NDArray[np.int64]: ...
    @property
    def slice_counts(self) -> Indices: ...
    @property
    def largest(self) -> Union[int, float]: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, slice: int) -> List[Tuple[int, int, int]]: ...
    @overload
    def __getitem__(self, slice: slice) -> List[List[Tuple[int, int, int]]]: ...
    def __iter__(self) -> Iterator[List[Tuple[int, int, int]]]: ...

class MicroBatchOrder:
    """An order of the micro-batches of a step, from `order_micro_batches`.

    Example:
        >>> found = omnibal.order_micro_batches([[1, 5, 1], [1, 5, 1]], [[2, 9, 2], [2, 9, 2]], 2)
        >>> type(found).__name__, found.lower_bound <= found.makespan <= found.given_makespan
        ('MicroBatchOrder', True)
    """

    @property
    def order(self) -> Indices: ...
    @property
    def makespan(self) -> Union[int, float]: ...
    @property
    def given_makespan(self) -> Union[int, float]: ...
    @property
    def lower_bound(self) -> Union[int, float]: ...

class Simulation:
    """The time and memory of a step, from `simulate_pipeline`.

    Example:
        >>> omnibal.simulate_pipeline([1, 1], [2, 2], stages=2, micro_batches=4).busy.tolist()
        [12, 12]
    """

    @property
    def makespan(self) -> Union[int, float]: ...
    @property
    def bubble_share(self) -> float: ...
    @property
    def busy(self) -> Union[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
    @property
    def peak_bytes(self) -> npt.NDArray[np.int64]: ...
    @property
    def timeline(self) -> Optional[Timeline]: ...

class OnlineResult:
    """What an `OnlinePacker` returns: true if a group leaves.

    Example:
        >>> bool(omnibal.OnlinePacker(8).push(0, 5))
        False
    """

    @property
    def ids(self) -> npt.NDArray[np.int64]: ...
    @property
    def load(self) -> Union[int, npt.NDArray[np.int64]]: ...
    @property
    def oversized(self) -> bool: ...
    def __bool__(self) -> bool: ...

class OnlinePacker:
    """Packs a stream of samples; each call returns at most one group.

    Args:
        capacity: the limit of a group: a number, or one for each resource.
        buffer: the largest number of samples that wait.
        longest_wait: a sample leaves at the latest with this number of further pushes. Default: no
            limit.
        candidates: the largest number of fillings that are compared for each group.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> packer = omnibal.OnlinePacker(8, buffer=3)
        >>> for sample, length in enumerate([5, 3, 4, 6, 2]):
        ...     group = packer.push(sample, length)
        ...     if group:
        ...         print(group.ids.tolist(), group.load)
        [0, 1] 8
        >>> packer
        OnlinePacker(capacity 8, waiting 3 samples)
        >>> omnibal.OnlinePacker.restore(packer.state()).flush().ids.tolist()
        [2, 4]
    """

    def __init__(
        self,
        capacity: Union[Limits, npt.ArrayLike],
        *,
        buffer: int = 256,
        longest_wait: Optional[int] = None,
        candidates: int = 6,
    ) -> None: ...
    def push(self, id: int, demand: Limits) -> OnlineResult:
        """Adds a sample and returns at most one group.

        Args:
            id: a number that names the sample, at least 0.
            demand: a number, or one for each resource.

        Returns:
            An `OnlineResult`: the group that leaves, or no samples.

        Raises:
            ValueError: if an argument is wrong; the text names the argument and its value.
        """
    def flush(self) -> OnlineResult:
        """Returns a group of the samples that wait, or none if no sample waits."""
    @property
    def waiting(self) -> npt.NDArray[np.int64]: ...
    def __len__(self) -> int: ...
    def state(self) -> bytes:
        """Returns the state for a checkpoint as bytes."""
    @staticmethod
    def restore(state: bytes) -> OnlinePacker:
        """Returns the packer that has this state."""
    def state_dict(self) -> Dict[str, str]:
        """Returns the state for a checkpoint as text that JSON can hold."""
    def load_state_dict(self, state: Mapping[str, str]) -> None:
        """Continues from a state of a packer with the same capacity and options."""

class OnlinePaddedPacker:
    """Packs a stream into padded batches: count times longest is within the capacity.

    Args:
        capacity: the limit of the padded amount of a group: a number, or one for each resource.
        buffer: the largest number of samples that wait.
        longest_wait: a sample leaves at the latest with this number of further pushes. Default: no
            limit.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> packer = omnibal.OnlinePaddedPacker(150, buffer=4)
        >>> for sample, length in enumerate([100, 10, 10, 10, 100]):
        ...     group = packer.push(sample, length)
        >>> print(group.ids.tolist(), group.load)
        [0] 100
        >>> packer
        OnlinePaddedPacker(capacity 150, waiting 4 samples)
        >>> omnibal.OnlinePaddedPacker.restore(packer.state()).flush().ids.tolist()
        [1, 2, 3]
    """

    def __init__(
        self,
        capacity: Limits,
        *,
        buffer: int = 256,
        longest_wait: Optional[int] = None,
    ) -> None: ...
    def push(self, id: int, demand: Limits) -> OnlineResult:
        """Adds a sample and returns at most one group.

        Args:
            id: a number that names the sample, at least 0.
            demand: a number, or one for each resource.

        Returns:
            An `OnlineResult`: the group that leaves, or no samples. Its load is the padded amount.

        Raises:
            ValueError: if an argument is wrong; the text names the argument and its value.
        """
    def flush(self) -> OnlineResult:
        """Returns a group of the samples that wait, or none if no sample waits."""
    @property
    def waiting(self) -> npt.NDArray[np.int64]: ...
    def __len__(self) -> int: ...
    def state(self) -> bytes:
        """Returns the state for a checkpoint as bytes."""
    @staticmethod
    def restore(state: bytes) -> OnlinePaddedPacker:
        """Returns the packer that has this state."""
    def state_dict(self) -> Dict[str, str]:
        """Returns the state for a checkpoint as text that JSON can hold."""
    def load_state_dict(self, state: Mapping[str, str]) -> None:
        """Continues from a state of a packer with the same capacity and options."""

class EpochSampler:
    """Yields the samples of one rank in the steps of an epoch; resumes from a state.

    Args:
        samples: the number of samples of the data set.
        ranks: the number of data-parallel ranks.
        rank: this rank.
        batch: the number of samples of a rank in a step.
        seed: another seed gives another order. All ranks must use the same seed.
        epoch: the epoch to begin with; each epoch has another order.
        shuffle: False if the samples are in their order.
        remainder: the samples that do not fill a step make a 'short_step', are filled up by a
            'repeat', or are left over to the next epoch by 'carry'.
        contents: a number that identifies the data. A state of other data is refused.
        state: continues from `state()` of a sampler of the same data, also with other ranks.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> ranks = [omnibal.EpochSampler(6, ranks=2, rank=rank, batch=2) for rank in range(2)]
        >>> ranks[0]
        EpochSampler(6 samples, rank 0 of 2, batch 2, epoch 0, step 0 of 2)
        >>> sorted(int(sample) for sampler in ranks for step in sampler for sample in step)
        [0, 1, 2, 3, 4, 5]
    """

    def __init__(
        self,
        samples: int,
        *,
        ranks: int = 1,
        rank: int = 0,
        batch: int = 1,
        seed: int = 0,
        epoch: int = 0,
        shuffle: bool = True,
        remainder: Remainder = "short_step",
        contents: int = 0,
        state: Optional[bytes] = None,
    ) -> None: ...
    def next(self) -> npt.NDArray[np.int64]:
        """Returns the samples of this rank in the next step, int64. After the last step of an epoch, the
        next step is the first step of the next epoch.
        """
    def __call__(self, step: int) -> npt.NDArray[np.int64]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[npt.NDArray[np.int64]]: ...
    def seek(self, step: int) -> None:
        """Moves to a step of the epoch, which the next call of `next` returns."""
    @property
    def done(self) -> bool: ...
    @property
    def epoch(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def step_count(self) -> int: ...
    @property
    def left_over(self) -> int: ...
    def state(self) -> bytes:
        """Returns the state for a checkpoint as bytes, the same on all ranks."""
    def state_dict(self, consumed: Optional[int] = None) -> Dict[str, str]:
        """Returns the state for a checkpoint, the same on all ranks, as text that JSON can hold.

        A data loader with workers asks for batches ahead of the training loop. Then pass `consumed`: the
        steps of this epoch that have been trained on, those before a resume included. Default: all that
        were returned.
        """
    def load_state_dict(self, state: Mapping[str, str]) -> None:
        """Continues from a state of the same data, also of another number of ranks or another batch."""

class StepSampler:
    """Yields the groups of one rank in the steps of an epoch; resumes from a state.

    Args:
        loads: a number or a row of numbers for each group, as for `schedule_steps`.
        ranks: the number of data-parallel ranks.
        rank: this rank.
        seed: another seed gives another schedule. All ranks must use the same seed.
        epoch: the epoch to begin with; each epoch has another schedule.
        max_dist_ratio: as in `schedule_steps`.
        remainder: the groups that do not fill a step make a 'short_step', are filled up by a
            'repeat', or are left over to the next epoch by 'carry'.
        groups_per_rank: the groups of a rank in a step.
        even_positions: as in `schedule_steps`.
        state: continues from `state()` of a sampler of the same groups, also with other ranks.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> ranks = [omnibal.StepSampler([5, 5, 9, 9], ranks=2, rank=rank) for rank in range(2)]
        >>> ranks[0]
        StepSampler(4 groups, rank 0 of 2, epoch 0, step 0 of 2)
        >>> steps = [sampler.epoch_steps() for sampler in ranks]
        >>> sorted(int(group) for rank in steps for step in rank for group in step)
        [0, 1, 2, 3]
    """

    def __init__(
        self,
        loads: Demands,
        *,
        ranks: int = 1,
        rank: int = 0,
        seed: int = 0,
        epoch: int = 0,
        max_dist_ratio: float = 0.005,
        remainder: Remainder = "short_step",
        groups_per_rank: int = 1,
        even_positions: bool = False,
        state: Optional[bytes] = None,
    ) -> None: ...
    def next(self) -> Indices:
        """Returns the groups of this rank in the next step, uint32. After the last step of an epoch, the
        next step is the first step of the next epoch.
        """
    def epoch_steps(self) -> List[Indices]:
        """Returns the rest of the epoch as a list of steps, or the next epoch if this one is done."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Indices]: ...
    @property
    def done(self) -> bool: ...
    @property
    def epoch(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def step_count(self) -> int: ...
    @property
    def left_over(self) -> int: ...
    @property
    def rank_changes_left(self) -> int: ...
    def state(self) -> bytes:
        """Returns the state for a checkpoint as bytes, the same on all ranks."""
    def state_dict(self) -> Dict[str, str]:
        """Returns the state for a checkpoint, the same on all ranks, as text that JSON can hold."""
    def load_state_dict(self, state: Mapping[str, str]) -> None:
        """Continues from a state of the same groups, also of another number of ranks."""

class LevelSampler:
    """Yields the packs of one rank in the steps of an epoch, each step of one level.

    In a step of a level, ranks k * degree to (k + 1) * degree share a pack, with the
    sequence-parallel degree of the level.

    Args:
        packed: the result of `pack_levels`.
        loads: a number or a row of numbers for each pack, such as the sum of its squared lengths.
        ranks: the number of ranks, which the degrees must divide.
        rank: this rank.
        seed: another seed gives another schedule. All ranks must use the same seed.
        epoch: the epoch to begin with; each epoch has another schedule.
        max_dist_ratio: as in `schedule_steps`.
        remainder: as in `StepSampler`.
        groups_per_rank: the packs of a rank in a step.
        short_first_steps: how many steps at the beginning of epoch 0 have packs of the first level.
        state: continues from `state()` of a sampler of the same packs, also with other ranks.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> packed = omnibal.pack_levels([4, 4, 8, 3], [[4, 1, 0], [8, 2, 0]], fill="none")
        >>> packed.groups.tolist()
        [[0], [1], [3], [2]]
        >>> sampler = omnibal.LevelSampler(packed, [16, 16, 9, 64], ranks=2, rank=1)
        >>> sampler
        LevelSampler(4 groups, rank 1 of 2, epoch 0, step 0 of 3)
        >>> sorted(level for level, packs in sampler.epoch_steps())
        [0, 0, 1]
    """

    def __init__(
        self,
        packed: LevelPacking,
        loads: Demands,
        *,
        ranks: int = 1,
        rank: int = 0,
        seed: int = 0,
        epoch: int = 0,
        max_dist_ratio: float = 0.005,
        remainder: Remainder = "short_step",
        groups_per_rank: int = 1,
        short_first_steps: int = 0,
        state: Optional[bytes] = None,
    ) -> None: ...
    def next(self) -> Tuple[int, Indices]:
        """Returns the level of the next step and the packs of this rank, uint32. After the last step of an
        epoch, the next step is the first step of the next epoch.
        """
    def epoch_steps(self) -> List[Tuple[int, Indices]]:
        """Returns the rest of the epoch as a list of steps, or the next epoch if this one is done."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Tuple[int, Indices]]: ...
    @property
    def done(self) -> bool: ...
    @property
    def epoch(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def step_count(self) -> int: ...
    @property
    def left_over(self) -> int: ...
    @property
    def rank_changes_left(self) -> int: ...
    def state(self) -> bytes:
        """Returns the state for a checkpoint as bytes, the same on all ranks."""
    def state_dict(self) -> Dict[str, str]:
        """Returns the state for a checkpoint, the same on all ranks, as text that JSON can hold."""
    def load_state_dict(self, state: Mapping[str, str]) -> None:
        """Continues from a state of the same groups, also of another number of ranks."""

class DeferralStep:
    """The samples that run in a step, from `DeferralQueue`: those that waited, then new ones.

    Example:
        >>> omnibal.DeferralQueue().push([7], [100], lambda lengths: lengths).ids.tolist()
        [7]
    """

    @property
    def ids(self) -> npt.NDArray[np.int64]: ...
    @property
    def lengths(self) -> npt.NDArray[np.int64]: ...
    @property
    def delays(self) -> Indices: ...
    def __len__(self) -> int: ...

class DeferralQueue:
    """Delays rare long samples until enough of them make an even step.

    Args:
        group_size: how many samples run at the same time: the ranks over the ranks of the widest
            group. With 1 no sample waits.
        max_delay: the most steps for which a sample waits.
        threshold: the length below which a sample never waits.
        contents: a number that identifies the data. A state of other data is refused.
        state: continues from `state()` of a queue with the same options, also with another group size.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> queue = omnibal.DeferralQueue(group_size=2)
        >>> queue.push([0, 1, 2], [10, 10, 90], lambda lengths: lengths).ids.tolist()
        [0, 1]
        >>> queue
        DeferralQueue(group size 2, waiting 1 sample)
        >>> queue.push([3, 4], [90, 10], lambda lengths: lengths).ids.tolist()
        [2, 3, 4]
    """

    def __init__(
        self,
        *,
        group_size: int = 1,
        max_delay: int = 8,
        threshold: int = 0,
        contents: int = 0,
        state: Optional[bytes] = None,
    ) -> None: ...
    def push(
        self,
        ids: Integers,
        lengths: Integers,
        cost: Callable[[npt.NDArray[np.int64]], Costs],
    ) -> DeferralStep:
        """Adds the new samples of a step, the same on all ranks, and returns the samples that run.

        `cost` is called once with an array of lengths and returns the cost of a sample of each
        length on the widest group of ranks that it may have.
        """
    def flush(self) -> DeferralStep:
        """Returns all waiting samples as one more step, for the end of the data."""
    def state(self) -> bytes:
        """Returns the state for a checkpoint as bytes, the same on all ranks."""
    def state_dict(self) -> Dict[str, str]:
        """Returns the state for a checkpoint, the same on all ranks, as text that JSON can hold."""
    def load_state_dict(self, state: Mapping[str, str]) -> None:
        """Continues from a state of a queue with the same options, also with another group size."""
    @property
    def step(self) -> int: ...
    def __len__(self) -> int: ...

class Mixture:
    """Mixes data sets by weights; any position of the stream is computed directly.

    An iteration yields a tuple (source, epoch, sample) for each draw. It advances `position`, which
    `state_dict` saves.

    Args:
        sizes: the number of samples of each source.
        weights: the weight of each source: integers or floating-point numbers.
        seed: another seed gives another order.
        end: 'restart' if a source without samples left begins again, so that the mixture is endless;
            'stop' if the mixture then ends; 'stop_after_all' if sources begin again until each has
            given all its samples; 'drop_out' if the others go on without it.
        window: the number of consecutive draws that come in random order, such as the draws of a
            step. With 1 the sources alternate as evenly as possible.
        drawn: how many draws each source gave before position 0. Default: none.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> mixture = omnibal.Mixture([100, 50], [3, 1])
        >>> mixture
        Mixture(2 sources, endless)
        >>> sources, epochs, samples = mixture.draws(0, 8)
        >>> sources.tolist().count(0)
        6
        >>> mixture = mixture.reweighted(8, [1, 1])
        >>> mixture.drawn(16).tolist()
        [10, 6]
        >>> mixture.seek([10, 6])
        16
    """

    def __init__(
        self,
        sizes: Integers,
        weights: Costs,
        *,
        seed: int = 0,
        end: Literal["restart", "stop", "stop_after_all", "drop_out"] = "restart",
        window: int = 1,
        drawn: Optional[Integers] = None,
    ) -> None: ...
    def draws(
        self, first: int, count: int
    ) -> Tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Returns the draws at `count` positions from `first` on: sources, epochs and samples, int64."""
    def reweighted(self, position: int, weights: Costs) -> Mixture:
        """Returns a mixture with the same draws before `position`, and other weights from it on.

        The sources continue with the samples that they have not given: none is lost or repeated.

        Args:
            position: the first position with other weights, such as the number of draws so far.
            weights: the weight of each source: integers or floating-point numbers.

        Raises:
            ValueError: if an argument is wrong; the text names the argument and its value.
        """
    def drawn(self, position: int) -> npt.NDArray[np.int64]:
        """Returns how many draws each source gave before a position."""
    def seek(self, drawn: Integers) -> int:
        """Returns the position before which each source gave these draws: the inverse of `drawn`.

        Args:
            drawn: the number of draws of each source.

        Raises:
            ValueError: if there is no such position; the text names a source.
        """
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Tuple[int, int, int]]: ...
    def state_dict(self, consumed: Optional[int] = None) -> Dict[str, Any]:
        """Returns the position for a checkpoint, as numbers that JSON can hold.

        A data loader with workers asks for draws ahead of the training loop. Then pass `consumed`: the
        position behind the last one that was trained on. Default: all that were yielded.
        """
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of a mixture with the same sizes, weights and options. A state
        of a mixture with other weights from a position on restores these weights."""
    @property
    def position(self) -> int: ...
    @position.setter
    def position(self, position: int) -> None: ...
    @property
    def period(self) -> int: ...
    @property
    def digest(self) -> int: ...

class BatchMixture:
    """Mixes data sets by weights in batches of one data set; small data sets are skipped.

    An iteration yields a tuple (source, epoch, samples) for each batch. It advances `position`,
    which `state_dict` saves.

    Args:
        sizes: the number of samples of each source.
        weights: the weight of each source, as shares of the batches.
        batch: the number of samples of a batch.
        seed: another seed gives another order.
        end: as for `Mixture`.
        window: the number of consecutive batches that come in random order.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> mixture = omnibal.BatchMixture([100, 3, 50], [3, 1, 1], 8)
        >>> mixture
        BatchMixture(3 sources, batch 8, endless)
        >>> mixture.skipped.tolist()
        [1]
        >>> source, epoch, samples = mixture.draw(0)
        >>> source, epoch, len(samples)
        (0, 0, 8)
    """

    def __init__(
        self,
        sizes: Integers,
        weights: Costs,
        batch: int,
        *,
        seed: int = 0,
        end: Literal["restart", "stop", "stop_after_all", "drop_out"] = "restart",
        window: int = 1,
    ) -> None: ...
    def draw(self, position: int) -> Tuple[int, int, npt.NDArray[np.int64]]:
        """Returns the source, the epoch and the samples of the batch at a position."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Tuple[int, int, npt.NDArray[np.int64]]]: ...
    def state_dict(self, consumed: Optional[int] = None) -> Dict[str, Any]:
        """Returns the position for a checkpoint, as numbers that JSON can hold.

        A data loader with workers asks for batches ahead of the training loop. Then pass `consumed`: the
        position behind the last one that was trained on. Default: all that were yielded.
        """
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of a mixture with the same sizes, weights and options."""
    @property
    def position(self) -> int: ...
    @position.setter
    def position(self, position: int) -> None: ...
    @property
    def skipped(self) -> npt.NDArray[np.int64]: ...
    @property
    def digest(self) -> int: ...

def next_fit(demands: Demands, capacity: Limits) -> Packing:
    """Packs samples in their order: a sample that does not fit the open group opens another one.

    Args:
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.
        capacity: the limit of a group: a number, or one for each resource.

    Returns:
        A `Packing`: its groups, the oversized samples and a lower bound.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.next_fit([5, 3, 4, 6, 2], 8).groups.tolist()
        [[0, 1], [2], [3, 4]]
    """

def isf(
    demands: Demands,
    capacity: Limits,
    *,
    rounds: int = 50,
    min_gain: float = 0.0,
    threshold: Optional[Limits] = None,
    seed: int = 0,
    shuffle: Literal["fisher_yates", "numpy"] = "fisher_yates",
) -> Packing:
    """Packs samples by OmniBal's iterative sampling and filtering, in random order.

    Args:
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.
        capacity: the limit of a group: a number, or one for each resource.
        rounds: the largest number of rounds.
        min_gain: the rounds end if a round gains less than this share; 0 for all rounds.
        threshold: a number for each resource; a group that reaches one of them is kept. Default:
            31/32 of the capacity.
        seed: another seed gives another order.
        shuffle: 'fisher_yates', or 'numpy' for the order of the reference implementation.

    Returns:
        A `Packing`; `below_keep` counts the groups of the last round that do not reach the threshold.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> packed = omnibal.isf([5, 3, 4, 6, 2, 4], 8, seed=1)
        >>> sorted(int(sample) for group in packed for sample in group)
        [0, 1, 2, 3, 4, 5]
    """

def best_fit_decreasing(demands: Demands, capacity: Limits) -> Packing:
    """Packs samples from the largest to the smallest, each where it fits best.

    Args:
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.
        capacity: the limit of a group: a number, or one for each resource.

    Returns:
        A `Packing`: its groups, the oversized samples and a lower bound.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.best_fit_decreasing([5, 3, 4, 9], 8).groups.tolist()
        [[0, 1], [2]]
    """

def pack_padded(demands: Demands, capacity: Limits) -> Packing:
    """Packs samples into the fewest padded batches: count times longest sample within a capacity.

    Args:
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.
        capacity: the limit of the number of samples times the largest demand: a number, or one for
            each resource.

    Returns:
        A `Packing`: its batches, the oversized samples and the number of batches as the lower bound.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.pack_padded([100, 10, 10, 10, 100], 150).groups.tolist()
        [[0], [4], [1, 2, 3]]
    """

NO_GROUP: int

def count_samples(demands: Demands, *, threads: int = 1) -> SampleHistogram:
    """Returns the histogram of samples, such as those of a shard.

    Args:
        demands: what each sample takes, as for the packers.
        threads: the number of threads, at least 1. The result does not depend on it.

    Returns:
        The different demands, ascending, with the number of samples of each.

    Raises:
        ValueError: if a demand is negative, or `threads` is below 1.

    Example:
        >>> omnibal.count_samples([6, 4, 6])
        SampleHistogram(3 samples, 2 demands)
    """

def pack_histogram(histogram: SampleHistogram, capacity: Limits) -> PatternPlan:
    """Packs counted samples by best-fit decreasing, in a time that does not depend on their number.

    Args:
        histogram: the samples of all shards, from `count_samples` and `merge`.
        capacity: what a group holds, one number for each resource.

    Returns:
        Patterns of groups with their multiplicities.

    Raises:
        ValueError: if the capacity is not positive.

    Example:
        >>> samples = omnibal.SampleHistogram([4096, 1024], [10**9, 10**9])
        >>> plan = omnibal.pack_histogram(samples, 4096)
        >>> plan.group_count, plan.proven
        (1250000000, True)
    """

def best_patterns(
    histogram: SampleHistogram, capacity: Limits, pattern_steps: int = 268435456
) -> PatternPlan:
    """Packs counted samples into the fewest groups that are found by patterns and their prices.

    Args:
        histogram: the samples of all shards, from `count_samples` and `merge`.
        capacity: what a group holds, one number for each resource.
        pattern_steps: the maximum number of steps of each linear program. There may be as many
            different demands as the cube root of 4 * pattern_steps, at most 4,096.

    Returns:
        Patterns of groups with their multiplicities, with at most the groups of `pack_histogram`.
        A copy by `pickle` repeats the search where it arrives.

    Raises:
        ValueError: if the capacity is not positive.

    Example:
        >>> samples = omnibal.SampleHistogram([3, 4], [1200, 600])
        >>> omnibal.pack_histogram(samples, 10).group_count
        700
        >>> omnibal.best_patterns(samples, 10).group_count
        600
    """

def share_of_shard(plan: PatternPlan, shard: int, shards: int) -> npt.NDArray[np.uint64]:
    """Returns how many groups of each pattern a shard gets: group g is of shard g % shards.

    Args:
        plan: from `pack_histogram`.
        shard: the number of the shard.
        shards: the number of shards.

    Returns:
        A number for each pattern. The shares of all shards add up to the multiplicities.

    Raises:
        ValueError: if `shard` is not below `shards`.

    Example:
        >>> plan = omnibal.pack_histogram(omnibal.SampleHistogram([3, 2], [4, 3]), 6)
        >>> plan.multiplicities.tolist()
        [2, 1]
        >>> [omnibal.share_of_shard(plan, shard, 2).tolist() for shard in range(2)]
        [[1, 1], [1, 0]]
    """

def place_samples(
    plan: PatternPlan, before: Optional[SampleHistogram], demands: Demands
) -> npt.NDArray[np.uint64]:
    """Returns the group of each sample of a shard.

    Args:
        plan: from `pack_histogram`.
        before: the samples of the shards before this one. None: this is the first one.
        demands: what each sample of this shard takes, as for `count_samples`.

    Returns:
        The number of the group of each sample, or `NO_GROUP` if the sample exceeds the capacity.

    Raises:
        ValueError: if the plan has fewer samples with a demand.

    Example:
        >>> shards = [[3, 2, 3], [3, 2, 2, 3]]
        >>> first = omnibal.count_samples(shards[0])
        >>> both = omnibal.count_samples(shards[0] + shards[1])
        >>> plan = omnibal.pack_histogram(both, 6)
        >>> omnibal.place_samples(plan, None, shards[0]).tolist()
        [0, 2, 0]
        >>> omnibal.place_samples(plan, first, shards[1]).tolist()
        [1, 2, 2, 1]
    """

def best_packing(demands: Demands, capacity: Limits, *, effort: Effort = "normal") -> Packing:
    """Packs samples into the fewest groups that several packers find at once.

    Args:
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.
        capacity: the limit of a group: a number, or one for each resource.
        effort: 'fast', 'normal' or 'thorough'; more effort takes more time.

    Returns:
        A `Packing`: its groups, the oversized samples and a lower bound.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> packed = omnibal.best_packing([5, 3, 4, 6, 2, 4], 8)
        >>> packed
        Packing(3 groups, at least 3, 0 oversized samples)
        >>> [group.tolist() for group in packed]
        [[3, 4], [0, 1], [2, 5]]
    """

def improve_packing(
    demands: Demands,
    capacity: Limits,
    start: Packing,
    *,
    passes: int = 64,
    even_passes: int = 16,
    spare_groups: float = 0.0,
    seed: int = 0,
    progress: Optional[Callable[[int, int, int], Optional[bool]]] = None,
    threads: int = 1,
) -> Packing:
    """Improves a packing: fewer groups, or groups with more equal loads.

    Args:
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.
        capacity: the limit of a group: a number, or one for each resource.
        start: a `Packing` of the same samples with the same capacity.
        passes: the largest number of passes; more passes take more time and never give a worse result.
        even_passes: the largest number of passes that make loads more equal.
        spare_groups: the share of groups that may be added to make loads more equal.
        seed: another seed gives another search.
        progress: called after each pass with the numbers of passes and of groups so far and the
            lower bound. The passes end if it returns False. Ctrl-C raises KeyboardInterrupt.
        threads: the number of threads of the `even_passes`, at least 1. The result does not depend
            on it. The other passes and `progress` run on the calling thread.

    Returns:
        A `Packing` with at most as many groups as `start`, unless there are spare groups.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> demands = [6, 5, 5, 4, 4, 4, 3, 3, 2]
        >>> start = omnibal.best_fit_decreasing(demands, 12)
        >>> omnibal.improve_packing(demands, 12, start)
        Packing(3 groups, at least 3, 0 oversized samples)
    """

def packing_bound(
    demands: Demands, capacity: Limits, *, effort: Effort = "normal", threads: int = 1
) -> int:
    """Returns a lower bound on the number of groups of all packings.

    Args:
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.
        capacity: the limit of a group: a number, or one for each resource.
        effort: 'fast', 'normal' or 'thorough'; more effort takes more time.
        threads: the number of threads, at least 1, which 'thorough' uses. The result does not depend
            on it.

    Returns:
        A number of groups that no packing is below. Oversized samples do not count.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.packing_bound([5, 5, 5, 2], 8)
        3
    """

def tune_capacity(
    demands: Demands,
    target: float,
    *,
    width: float = 1.0,
    granularity: Optional[Limits] = None,
    max_oversized: float = 0.01,
    seed: int = 0,
    packer: Literal["isf", "best_fit_decreasing"] = "best_fit_decreasing",
    progress: Optional[Callable[[int], Any]] = None,
    threads: int = 1,
) -> Tuned:
    """Finds the capacity at which groups have a number of samples on average and ranks idle least.

    Args:
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.
        target: the smallest average number of samples of a group.
        width: the average number of samples is below `target + width`.
        granularity: a number for each resource, of which capacities are multiples. Default: 1.
        max_oversized: the largest share of samples that may exceed the capacity.
        seed: another seed gives other random steps.
        packer: 'best_fit_decreasing' or 'isf'.
        progress: called before each packing with the number of packings so far. Its result is not
            used; an exception that it raises ends the search. Ctrl-C raises KeyboardInterrupt.
        threads: the number of threads that pack, at least 1. The result does not depend on it. Each
            of them calls `progress`, but never two at once.

    Returns:
        A `Tuned`. Its `best` is the capacity with the smallest idle share of random steps of 8 ranks,
        as OmniBal chooses. Its status is 'not_found' if no capacity has such groups.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> tuned = omnibal.tune_capacity([5, 3, 4, 6, 2, 4, 8, 1] * 50, 3.0)
        >>> tuned.status
        'solved'
        >>> 3 <= tuned.best.mean_group_size < 4
        True
    """

def pack_prefixes(
    sequences: Prefixes,
    capacity: int,
    *,
    group_price: Optional[int] = None,
    multiple_of: int = 1,
    oversized: Literal["list", "own_group", "reject"] = "list",
    effort: Effort = "normal",
    seed: int = 0,
) -> PrefixPacking:
    """Packs sequences that share prefixes, such as the answers to one prompt, under a capacity.

    Args:
        sequences: the token ids of each sequence: a list of lists, of arrays, or an array of rows.
            Arrays of int64 are read without a copy. Or a `PrefixForest`.
        capacity: the maximum number of tokens of a group, with each shared token once.
        group_price: the number of computed tokens that one group less is worth. Default: the
            capacity.
        multiple_of: the divisor of the number of groups, such as the number of ranks.
        oversized: where sequences go that exceed the capacity alone: into a list, each into its own
            group, or an error.
        effort: "fast", "normal" or "thorough".
        seed: other seeds find other groups.

    Returns:
        The groups, their tokens, and bounds on both.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> prompts = [[1, 2, 3, 4], [5, 6, 7, 8]]
        >>> answers = [prompt + [answer] for prompt in prompts for answer in (10, 11, 12)]
        >>> packed = omnibal.pack_prefixes(answers, 8)
        >>> packed.groups.tolist(), packed.computed_tokens
        ([[0, 1, 2], [3, 4, 5]], 14)
    """

def build_prefix_forest(
    sequences: Sequence[Integers],
    *,
    block_tokens: Optional[int] = None,
    lengths: Optional[Integers] = None,
) -> PrefixForest:
    """Builds the forest of the prefixes that sequences share.

    Functions that accept sequences also accept the forest, which they then do not build anew.

    Args:
        sequences: the token ids of each sequence: a list of lists, of arrays, or an array of rows.
            Arrays of int64 are read without a copy. With `block_tokens`, the hashes of the blocks of
            each sequence, such as the blocks of a cache of keys and values.
        block_tokens: the number of tokens of a block; the last block of a sequence may have fewer.
            Default: the sequences are token ids.
        lengths: the number of tokens of each sequence, only with `block_tokens`.

    Returns:
        A `PrefixForest`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> forest = omnibal.build_prefix_forest([[7, 7, 1], [7, 7, 2, 3], [9]])
        >>> forest
        PrefixForest(4 nodes, 3 sequences, 6 of 8 tokens)
        >>> forest.lengths.tolist(), forest.ends.tolist()
        ([2, 1, 2, 1], [1, 2, 3])
        >>> hashes = [[12, 34], [12, 56]]
        >>> omnibal.build_prefix_forest(hashes, block_tokens=16, lengths=[32, 20]).lengths.tolist()
        [16, 16, 4]
    """

def prefix_bound(
    sequences: Prefixes, capacity: int, *, effort: Effort = "normal"
) -> PrefixBounds:
    """Returns lower bounds on the tokens and on the groups of every packing under the capacity.

    Args:
        sequences: the token ids of each sequence, or a `PrefixForest`.
        capacity: the maximum number of tokens of a group, with each shared token once.
        effort: "fast" uses numbers of tokens; "normal" and "thorough" also use linear programs.

    Returns:
        `PrefixBounds`. Sequences above the capacity do not count.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> sequences = [[1, 2, 3, answer] for answer in range(6)]
        >>> omnibal.prefix_bound(sequences, 5)
        PrefixBounds(at least 15 tokens, at least 3 groups)
    """

def balance_prefixes(
    sequences: Prefixes,
    ranks: int,
    capacity: int,
    *,
    cost: Union[PrefixWork, npt.ArrayLike, None] = None,
    keys: Optional[npt.ArrayLike] = None,
    max_overload: float = 0.001,
    exchanges: int = 10000,
    group_price: Optional[int] = None,
    multiple_of: int = 1,
    oversized: Oversized = "list",
    effort: Effort = "normal",
    seed: int = 0,
) -> PrefixSteps:
    """Packs sequences that share prefixes into micro-batches, the same number on every rank.

    Args:
        sequences: the token ids of each sequence, or a `PrefixForest`.
        ranks: the number of data-parallel ranks.
        capacity: the maximum number of tokens of a micro-batch, with each shared token once.
        cost: a `PrefixWork`, or an array whose element n is the work of the first n tokens of a path,
            up to the longest path. Default: `PrefixWork()`.
        keys: an integer or a text for each sequence, such as its prompt. Sequences with equal keys are
            on one rank. Default: a sequence may be on any rank.
        max_overload: the search ends if the largest work of a rank exceeds the mean by at most this
            share.
        exchanges: the maximum number of exchanges of sequences between two ranks.
        group_price: the number of computed tokens that one micro-batch less is worth. Default: the
            capacity.
        multiple_of: the number of micro-batches of a rank is a multiple of this number.
        oversized: where sequences go that exceed the capacity alone: into a list, each into its own
            micro-batch, or an error.
        effort: "fast", "normal" or "thorough".
        seed: other seeds find other micro-batches.

    Returns:
        `PrefixSteps`: step m has micro-batch m of each rank, and step 0 the most work.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> prompts = [[1, 2, 3, 4], [5, 6, 7, 8]]
        >>> answers = [prompt + [answer] for prompt in prompts for answer in (10, 11, 12)]
        >>> steps = omnibal.balance_prefixes(answers, 2, 8, keys=[0, 0, 0, 1, 1, 1])
        >>> [group.tolist() for group in steps[0]]
        [[0, 1, 2], [3, 4, 5]]
        >>> steps.work.round(3).tolist()
        [7.002, 7.002]
    """

def prefix_work_of(
    forest: Prefixes, sequences: Integers, *, cost: Union[PrefixWork, npt.ArrayLike, None] = None
) -> float:
    """Returns the work of a group of sequences, with each shared token once.

    Args:
        forest: a `PrefixForest`, or the token ids of each sequence.
        sequences: the sequences of the group, as indices.
        cost: a `PrefixWork`, or an array whose element n is the work of the first n tokens of a path,
            up to the longest path. Default: `PrefixWork()`.

    Returns:
        The work, in the unit of `cost`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> forest = omnibal.build_prefix_forest([[7, 7, 1], [7, 7, 2, 3], [9]])
        >>> omnibal.prefix_work_of(forest, [0, 1], cost=omnibal.PrefixWork(token=1, pair=0))
        5.0
        >>> omnibal.prefix_work_of(forest, [0, 1], cost=[0, 10, 12, 13, 14])
        15.0
    """

def prefix_exchange(
    forest: Prefixes,
    home_offsets: Integers,
    cells: Union[Steps, Groups],
    token_bytes: int,
    *,
    ranks_per_node: int = 1,
    node_of: Optional[Integers] = None,
) -> PrefixExchangePlan:
    """Plans the exchange that brings each rank the nodes of its sequences, each node once.

    Args:
        forest: a `PrefixForest`, or the token ids of each sequence.
        home_offsets: before the exchange, rank r has the sequences home_offsets[r] to
            home_offsets[r + 1].
        cells: the result of `balance_prefixes`, or `Groups` of which rank r has the groups r,
            r + ranks, and so on.
        token_bytes: the bytes of a token.
        ranks_per_node: the ranks of a node of the cluster.
        node_of: the node of the cluster of each rank, if nodes differ in size.

    Returns:
        A `PrefixExchangePlan`: an `ExchangePlan` whose samples are copies of nodes of the forest.

    Raises:
        TypeError: if `cells` are neither `Steps` nor `Groups`.
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> forest = omnibal.build_prefix_forest([[7, 7, 1], [7, 7, 2, 3], [9], [8, 4]])
        >>> steps = omnibal.balance_prefixes(forest, ranks=2, capacity=6)
        >>> moved = omnibal.prefix_exchange(forest, [0, 1, 4], steps, token_bytes=4)
        >>> moved.plan.moved_bytes, moved.plan.send_counts(1).tolist()
        (16, [2, 2])
    """

def layout_prefixes(forest: Prefixes, group: Integers) -> Dict[str, Indices]:
    """Returns the tokens of a group in depth-first order, as attention kernels need them.

    Token q may attend to token k if k <= q < token_ends[k]. The tokens of segment s are
    sequences[sources[s]][positions[a] : positions[b - 1] + 1], where a and b are cu_seqlens[s]
    and cu_seqlens[s + 1].

    Args:
        forest: a `PrefixForest`, or the token ids of each sequence.
        group: the sequences of the group, as indices, such as steps[m, r] of `balance_prefixes`.

    Returns:
        Arrays of uint32 by name: `sequences` of the group and the segment at which each one
        `ends`; for each segment its node of the forest in `nodes`, `sources`, `parents` and
        `subtree_ends`; `cu_seqlens` of the segments; for each token `positions`, `token_ends` and
        `predictors`, the token whose output predicts it. 2**32 - 1 stands for no segment and no token.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> layout = omnibal.layout_prefixes([[7, 7, 1], [7, 7, 2, 3]], [0, 1])
        >>> layout["cu_seqlens"].tolist(), layout["positions"].tolist()
        ([0, 2, 3, 5], [0, 1, 2, 2, 3])
        >>> layout["token_ends"].tolist()
        [5, 5, 3, 5, 5]
    """

def prefix_loss_weights(
    layout: Mapping[str, Integers], weights: npt.ArrayLike, begins: Integers
) -> npt.NDArray[np.float64]:
    """Returns the weight of each token of a layout in the loss: the sum over its sequences.

    The loss of token k is the loss of the output at predictors[k]. The sum of weight times loss is
    the sum of the losses of the sequences without shared prefixes.

    Args:
        layout: the arrays of `layout_prefixes`.
        weights: the factor of the loss of each sequence, in the order of layout["sequences"], such as
            advantages[layout["sequences"]].
        begins: the position at which the loss of each sequence begins, such as the length of its
            prompt, in the same order.

    Returns:
        A number for each token, float64.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> layout = omnibal.layout_prefixes([[7, 7, 1], [7, 7, 2, 3]], [0, 1])
        >>> omnibal.prefix_loss_weights(layout, [0.5, 2.0], begins=[1, 2]).tolist()
        [0.0, 0.5, 0.5, 2.0, 2.0]
    """

def slice_prefixes(layout: Mapping[str, Integers]) -> Dict[str, npt.NDArray[np.int32]]:
    """Returns the mask of a layout as slices, for `flex_flash_attn_func` of MagiAttention.

    Args:
        layout: the arrays of `layout_prefixes`.

    Returns:
        Arrays of int32 by name: the ranges `q_ranges` and `k_ranges` of each slice, of shape
        (slices, 2), and `attn_type_map`, 1 for causal and 0 for full attention.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> layout = omnibal.layout_prefixes([[7, 7, 1], [7, 7, 2, 3]], [0, 1])
        >>> slices = omnibal.slice_prefixes(layout)
        >>> slices["q_ranges"].tolist(), slices["k_ranges"].tolist()
        ([[0, 2], [2, 3], [2, 3], [3, 5], [3, 5]], [[0, 2], [2, 3], [0, 2], [3, 5], [0, 2]])
        >>> slices["attn_type_map"].tolist()
        [1, 1, 0, 1, 0]
    """

def block_prefixes(
    layout: Mapping[str, Integers], *, queries: int = 128, keys: int = 128
) -> Dict[str, npt.NDArray[np.int32]]:
    """Returns the blocks of the mask of a layout, for `BlockMask.from_kv_blocks` of FlexAttention.

    The `mask_mod` is (k <= q) & (q < token_ends[k]).

    Args:
        layout: the arrays of `layout_prefixes`.
        queries: the number of tokens of a block of queries.
        keys: the number of tokens of a block of keys.

    Returns:
        Arrays of int32 by name: `kv_num_blocks` of each row and `kv_indices` of shape (rows, columns)
        for blocks that are partly masked, `full_kv_num_blocks` and `full_kv_indices` for the others.
        FlexAttention needs two dimensions before these, for batch and head.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> layout = omnibal.layout_prefixes([[7, 7, 1], [7, 7, 2, 3]], [0, 1])
        >>> blocks = omnibal.block_prefixes(layout, queries=2, keys=2)
        >>> blocks["kv_num_blocks"].tolist(), blocks["kv_indices"].tolist()
        ([1, 1, 3], [[0, 0, 0], [1, 0, 0], [0, 1, 2]])
        >>> blocks["full_kv_num_blocks"].tolist(), blocks["full_kv_indices"].tolist()
        ([0, 1, 0], [[0, 0, 0], [0, 0, 0], [0, 0, 0]])
    """

def place_experts(
    loads: Costs,
    slots: int,
    ranks: int,
    *,
    old: Optional[Integers] = None,
    max_moved: Optional[int] = None,
    groups: int = 1,
    nodes: int = 1,
    max_gap: float = 0.001,
    effort: Effort = "normal",
    seed: int = 0,
    threads: int = 1,
) -> ExpertPlacement:
    """Places copies of experts into the slots of ranks so that the heaviest rank is light.

    Args:
        loads: the load of each expert, such as its tokens in the last steps: an array of experts,
            or of shape (layers, experts). All layers share `max_moved`.
        slots: the number of slots of a rank. All slots are used.
        ranks: the number of ranks.
        old: the experts of an earlier placement, of shape (layers, ranks, slots). The search begins
            there. Default: none.
        max_moved: the most copies of all layers on ranks that did not have them. Default: no limit.
        groups: the number of groups of consecutive experts. All copies of a group are on one node.
        nodes: the number of nodes of consecutive ranks.
        max_gap: a layer is good enough if its heaviest rank exceeds the bound by at most this share.
        effort: "fast", "normal" or "thorough".
        seed: the seed of random changes, which follow the search unless `max_moved` is given.
        threads: the number of threads, at least 1, that search layers. The result does not depend on
            it.

    Returns:
        The experts of each slot, and for each layer the largest load, its bound and the moved copies.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> first = omnibal.place_experts([600, 560, 120, 120, 20, 10, 10, 10], slots=2, ranks=8)
        >>> round(float(first.largest_loads[0]), 2), first.lower_bounds.tolist()
        (196.67, [181.25])
        >>> later = [560, 600, 110, 130, 20, 10, 10, 10]
        >>> after = omnibal.place_experts(later, 2, 8, old=first.experts, max_moved=2)
        >>> bool(after.moved.sum() <= 2)
        True
    """

def split_experts(
    tokens: Integers, slots: Integers, *, first_tokens: Optional[Integers] = None
) -> ExpertSplit:
    """Splits the tokens of a batch over copies of experts so that the largest rank has the fewest.

    Args:
        tokens: the number of tokens of each expert in the batch.
        slots: the expert of each slot, of shape (ranks, slots), such as `experts[layer]` of a
            placement.
        first_tokens: the tokens that each rank has in any case. Default: none.

    Returns:
        The tokens of each slot and rank, and the ranks that prove that no split is better.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> split = omnibal.split_experts([8, 2, 2], [[0, 1], [0, 2]])
        >>> split.tokens.tolist(), split.rank_tokens.tolist(), split.largest
        ([[4, 2], [4, 2]], [6, 6], 6)
    """

def spill_experts(
    tokens: Integers,
    home: Integers,
    ranks: int,
    *,
    slots: Optional[int] = None,
    max_overload: float = 0.1,
    effort: Effort = "normal",
    seed: int = 0,
) -> SpillPlan:
    """Plans few copies of experts on foreign ranks with which no rank exceeds a cap, for one batch.

    Args:
        tokens: the number of tokens of each expert in the batch.
        home: the rank that keeps the weights of each expert.
        ranks: the number of ranks.
        slots: the most foreign experts of a rank. Default: no limit.
        max_overload: the largest rank may exceed the mean, rounded up, by this share.
        effort: "fast", "normal" or "thorough".
        seed: the seed of the orders that the search tries.

    Returns:
        The foreign copies with their tokens, and a lower bound of their number.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> plan = omnibal.spill_experts([9, 1, 1, 1], home=[0, 0, 1, 1], ranks=2, max_overload=0)
        >>> plan.experts.tolist(), plan.ranks.tolist(), plan.tokens.tolist(), plan.proven
        ([0], [1], [4], True)
    """

def place_oversized(packed: Packing, policy: Oversized) -> Packing:
    """Applies a policy to the oversized samples of a packing.

    Args:
        packed: a `Packing` of any packer.
        policy: 'own_group' puts each oversized sample into its own group, 'list' changes nothing, and
            'reject' raises an error if there are oversized samples.

    Returns:
        A `Packing`.

    Raises:
        ValueError: if an argument is wrong, or if samples are rejected.

    Example:
        >>> omnibal.place_oversized(omnibal.next_fit([5, 3, 9], 8), "own_group").groups.tolist()
        [[0, 1], [2]]
    """

def split_long(
    lengths: Integers,
    capacity: int,
    *,
    policy: Literal["reject", "own_group", "split"] = "split",
    sizes: Literal["even", "full"] = "even",
    multiple: int = 1,
    packer: LengthPacker = "best_fit_decreasing",
) -> SplitPacking:
    """Packs texts and cuts those that are longer than the capacity.

    Args:
        lengths: the length of each sample in tokens.
        capacity: the tokens of a group.
        policy: a sample above the capacity is cut by 'split', gets its 'own_group', or is listed as
            oversized by 'reject'.
        sizes: the pieces of a sample are 'even', or 'full' except for the last piece.
        multiple: each piece begins at a multiple of this number of tokens.
        packer: the packer of the pieces.

    Returns:
        A `SplitPacking`: the pieces as arrays, and groups of pieces.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> packed = omnibal.split_long([10, 3], 4, sizes="full")
        >>> packed.lengths.tolist(), packed.groups.tolist()
        ([4, 4, 2, 3], [[0], [1], [3], [2]])
    """

def pack_levels(
    lengths: Integers,
    levels: Integers,
    *,
    fill: Literal["greedy", "none"] = "greedy",
    order: Literal["by_attention", "as_packed"] = "by_attention",
    oversized: Oversized = "list",
    packer: LengthPacker = "best_fit_decreasing",
) -> LevelPacking:
    """Packs samples into packs of several lengths: hierarchical balance packing.

    Args:
        lengths: the length of each sample in tokens.
        levels: the length of the packs of each level, ascending; or a row (length, sequence-parallel
            degree, checkpointed layers) for each level.
        fill: 'greedy' if samples of shorter levels fill the packs of longer ones, or 'none'.
        order: the packs of a level in descending order of their attention, or 'as_packed'.
        oversized: samples above the last level are in no pack and listed by 'list', get their
            'own_group' in the last level, or raise an error by 'reject'.
        packer: the packer of each level.

    Returns:
        A `LevelPacking`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> packed = omnibal.pack_levels([3, 4, 9, 2], [[4, 1, 0], [16, 2, 8]], fill="none")
        >>> packed.groups.tolist(), packed.levels.tolist()
        ([[1], [0], [3], [2]], [[4, 1, 0], [16, 2, 8]])
    """

def cu_seqlens(groups: Groups, lengths: Integers) -> SequenceOffsets:
    """Returns the cumulative sequence lengths of groups for attention kernels of variable lengths.

    Args:
        groups: the samples of each group.
        lengths: the length of each sample in tokens.

    Returns:
        The `SequenceOffsets`: an int32 array 0, l0, l0 + l1, ... for each group.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.cu_seqlens(omnibal.Groups([0, 3], [2, 0, 1]), [5, 1, 4])[0].tolist()
        [0, 4, 9, 10]
    """

def group_loads(groups: Groups, demands: Demands) -> npt.NDArray[np.int64]:
    """Sums the demands of the samples of each group.

    Args:
        groups: the groups of a packing, or the parts of a balancer.
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.

    Returns:
        An array with a number for each group, or with a row for each group if there are several
        resources.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> packed = omnibal.best_packing(([1, 2, 1], [30, 10, 40]), (3, 60))
        >>> omnibal.group_loads(packed.groups, ([1, 2, 1], [30, 10, 40])).tolist()
        [[3, 50], [1, 30]]
    """

def lpt(
    costs: Costs,
    parts: int,
    *,
    count: Literal["any", "equal", "at_most_one_apart"] = "any",
    speeds: Optional[npt.ArrayLike] = None,
) -> Groups:
    """Balances samples over parts: the largest first, each to the part with the least cost.

    Args:
        costs: an integer or a floating-point number for each sample.
        parts: the number of parts, such as the number of ranks.
        count: 'any', 'equal' or 'at_most_one_apart': how the numbers of samples of parts may differ.
        speeds: the speed of each part; the largest cost over speed is then small. None for equal speeds.

    Returns:
        The samples of each part, as `Groups`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.lpt([7, 5, 4, 3, 1], 2).tolist()
        [[0, 3], [1, 2, 4]]
    """

def karmarkar_karp(costs: Costs, parts: int, *, speeds: Optional[npt.ArrayLike] = None) -> Groups:
    """Balances samples over parts by differencing: the largest sums go to different parts.

    Args:
        costs: an integer or a floating-point number for each sample.
        parts: the number of parts, such as the number of ranks.
        speeds: the speed of each part; the largest cost over speed is then small. None for equal speeds.

    Returns:
        The samples of each part, as `Groups`. Often more equal costs than from `lpt`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.karmarkar_karp([8, 7, 6, 5, 4], 2).tolist()
        [[0, 2], [1, 3, 4]]
    """

def deal(costs: Costs, parts: int, *, speeds: Optional[npt.ArrayLike] = None) -> Groups:
    """Balances samples over parts with the same number of samples, in snake order of the costs.

    Args:
        costs: an integer or a floating-point number for each sample.
        parts: the number of parts, such as the number of ranks.
        speeds: the speed of each part; the largest cost over speed is then small. None for equal speeds.

    Returns:
        The samples of each part, as `Groups`. The numbers of samples differ by one at most, or are in
        proportion to the speeds.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.deal([8, 7, 6, 5, 4, 3], 2).tolist()
        [[0, 3, 4], [1, 2, 5]]
    """

def refine_parts(
    costs: Costs,
    parts: Groups,
    *,
    max_overload: float = 0.0,
    counts: Literal["free", "kept"] = "free",
    exchanges: int = 1000000,
    splits: int = 2048,
    seed: int = 0,
    speeds: Optional[npt.ArrayLike] = None,
) -> Groups:
    """Improves given parts by moves and exchanges of samples: more equal costs.

    Args:
        costs: an integer or a floating-point number for each sample.
        parts: the samples of each part, such as from `lpt` or `deal`.
        max_overload: how far the largest cost may be above the lower bound before the search ends.
        counts: 'free', or 'kept' if each part keeps its number of samples.
        exchanges: the largest number of moves, exchanges and splits.
        splits: the largest number of splits without success, in which two parts are divided again.
        seed: another seed gives another search.
        speeds: the speed of each part; the largest cost over speed is then small. None for equal speeds.

    Returns:
        `Groups` whose largest cost is at most the largest cost of the given parts.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> costs = [8, 7, 6, 5, 4]
        >>> parts = omnibal.refine_parts(costs, omnibal.deal(costs, 2))
        >>> omnibal.group_loads(parts, costs).tolist()
        [15, 15]
    """

def rebalance(
    home: Groups,
    costs: Demands,
    bytes: Integers,
    *,
    max_overload: float = 0.01,
    ranks_per_node: int = 1,
    node_of: Optional[Integers] = None,
    counts: Literal["any", "kept", "equal", "at_most_one_apart"] = "any",
    max_moved_bytes: Optional[int] = None,
    speeds: Optional[npt.ArrayLike] = None,
) -> Groups:
    """Balances loads over ranks and moves few bytes.

    Args:
        home: the present samples of each rank; each sample once.
        costs: the cost of each sample, or a row of integers for several kinds of cost.
        bytes: the bytes of each sample.
        max_overload: the share by which the largest load may exceed its lower bound.
        ranks_per_node: the ranks of a node; samples that move stay on their node if they fit.
        node_of: the node of each rank, if nodes differ in size.
        counts: the rule for the number of samples on each rank.
        max_moved_bytes: the limit of the bytes that move. Default: none.
        speeds: the speed of each rank. None for equal speeds.

    Returns:
        The samples of each rank as `Groups`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> home = omnibal.Groups([0, 3, 4], [0, 1, 2, 3])
        >>> omnibal.rebalance(home, [5, 4, 3, 2], [1, 1, 1, 1]).tolist()
        [[1, 2], [0, 3]]
    """

def balance_optimally(
    costs: Demands,
    parts: int,
    *,
    count: Literal["any", "equal", "at_most_one_apart"] = "any",
    nodes: int = 10000000,
    speeds: Optional[npt.ArrayLike] = None,
) -> BalanceResult:
    """Finds the parts with the smallest largest load, for about 20 samples.

    Args:
        costs: the cost of each sample, or a row of integers for several kinds of cost.
        parts: the number of parts.
        count: the rule for the number of samples in each part.
        nodes: the largest number of placements of samples; after them the best parts are returned
            without a proof.
        speeds: the speed of each part. None for equal speeds.

    Returns:
        A `BalanceResult`. With several kinds of cost, loads are shares of the sums of all samples.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.balance_optimally([8, 7, 6, 5, 4], 2).largest_load
        15
    """

def balance_set_cost(
    lengths: Costs,
    parts: int,
    *,
    cost: Literal["padded_batch", "padded_attention", "unmasked_pack"] = "padded_batch",
    linear: float = 0,
    quadratic: float = 1,
    order: Literal["largest_first", "given"] = "largest_first",
) -> Groups:
    """Balances parts whose costs are not sums, such as the tokens of a padded batch.

    Args:
        lengths: the length of each sample.
        parts: the number of parts.
        cost: the cost of n samples of at most l and together s tokens: n * l for a 'padded_batch',
            n * (linear * l + quadratic * l**2) for 'padded_attention', linear * s + quadratic * s**2
            for an 'unmasked_pack'.
        linear: the weight of tokens.
        quadratic: the weight of squares.
        order: the order of the samples that is cut into parts: the 'largest_first', or as 'given'.

    Returns:
        The samples of each part as `Groups`, with the smallest largest cost among all cuts.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.balance_set_cost([10, 90, 100, 20, 30, 10], 2).tolist()
        [[2, 1], [4, 3, 0, 5]]
    """

def bundle_by(keys: npt.ArrayLike) -> Groups:
    """Bundles the samples with equal keys, such as the turns of a conversation.

    Args:
        keys: an integer or a text for each sample.

    Returns:
        The samples of each bundle as `Groups`, in the order of their first samples.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.bundle_by(["b", "a", "b", "c"]).tolist()
        [[0, 2], [1], [3]]
    """

def bundle_loads(bundles: Groups, demands: Demands) -> npt.NDArray[np.int64]:
    """Returns the demand of each bundle, for a packer or a balancer that keeps bundles whole.

    Args:
        bundles: the samples of each bundle; each sample is in one bundle.
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.

    Returns:
        An int64 array with the sum of each bundle: a number or a row.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.bundle_loads(omnibal.bundle_by([1, 2, 1]), [5, 6, 7]).tolist()
        [12, 6]
    """

def unbundle(groups: Bundled, bundles: Groups) -> Bundled:
    """Converts groups of bundles to groups of samples.

    Args:
        groups: `Groups` of bundles, or a `Packing` of bundles.
        bundles: the samples of each bundle.

    Returns:
        `Groups` of samples, or a `Packing` of samples.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> bundles = omnibal.bundle_by([1, 2, 1])
        >>> packed = omnibal.next_fit(omnibal.bundle_loads(bundles, [5, 6, 7]), 20)
        >>> omnibal.unbundle(packed, bundles).groups.tolist()
        [[0, 2, 1]]
    """

def balance_under_capacity(
    costs: Costs,
    parts: int,
    demands: Demands,
    capacity: Union[Limits, npt.ArrayLike],
    *,
    max_overload: float = 0.01,
    effort: Effort = "normal",
    seed: int = 0,
    progress: Optional[Callable[[int, int, int], Optional[bool]]] = None,
    speeds: Optional[npt.ArrayLike] = None,
    oversized: Literal["own_group", "reject"] = "reject",
) -> Within:
    """Balances costs over parts, none of which exceeds a capacity.

    Args:
        costs: an integer or a floating-point number for each sample.
        parts: the number of parts, such as the number of ranks.
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.
        capacity: the limit of a part: a number, or one for each resource. For different limits, a
            row for each part; with one resource, a number for each part.
        max_overload: how far the largest cost may be above the lower bound before the search ends.
        effort: 'fast', 'normal' or 'thorough'; more effort takes more time.
        seed: another seed gives another search.
        progress: called after each pass of the search for fewer groups with the numbers of passes and
            of groups so far and the lower bound. That search ends if it returns False. Ctrl-C raises
            KeyboardInterrupt.
        speeds: the speed of each part; the largest cost over speed is then small. None for equal speeds.
        oversized: 'own_group' gives each sample above the capacity a part of its own. With 'reject'
            such a sample makes the status 'infeasible'.

    Returns:
        A `Within`. Its status is 'infeasible' if it is proven that there are no such parts, with the
        `reason`, and 'not_found' if the search finds none.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> found = omnibal.balance_under_capacity([9, 4, 4, 1], 2, [30, 40, 10, 20], 60)
        >>> found
        Within(solved, 2 parts, largest load 10, at least 9)
        >>> found.parts.tolist()
        [[0, 3], [1, 2]]
    """

def micro_batches(
    costs: Costs,
    ranks: int,
    demands: Demands,
    capacity: Limits,
    *,
    multiple_of: int = 1,
    max_overload: float = 0.01,
    effort: Effort = "normal",
    seed: int = 0,
    progress: Optional[Callable[[int, int, int], Optional[bool]]] = None,
    speeds: Optional[npt.ArrayLike] = None,
    oversized: Literal["own_group", "reject"] = "reject",
) -> Steps:
    """Packs samples into micro-batches, the same number on each rank and with even costs.

    Args:
        costs: an integer or a floating-point number for each sample.
        ranks: the number of data-parallel ranks.
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.
        capacity: the limit of a micro-batch: a number, or one for each resource. For different limits, a
            row for each rank; with one resource, a number for each rank.
        multiple_of: the number of micro-batches of a rank is a multiple of this number.
        max_overload: how far the largest cost may be above the lower bound before the search ends.
        effort: 'fast', 'normal' or 'thorough'; more effort takes more time.
        seed: another seed gives another search.
        progress: called after each pass of the search for fewer groups with the numbers of passes and
            of groups so far and the lower bound. That search ends if it returns False. Ctrl-C raises
            KeyboardInterrupt.
        speeds: the speed of each rank; the largest cost over speed is then small. None for equal speeds.
        oversized: 'own_group' gives each sample above the capacity a micro-batch of its own. With
            'reject' such a sample is an error.

    Returns:
        `Steps`: step m has micro-batch m of each rank.

    Raises:
        ValueError: if an argument is wrong, or with 'reject' if a sample exceeds the capacity; the text names the
            argument and its value.

    Example:
        >>> lengths = [5, 3, 4, 6, 2, 4, 8]
        >>> steps = omnibal.micro_batches(lengths, 2, lengths, 8)
        >>> steps
        Steps(2 steps of 2 ranks)
        >>> sorted(int(sample) for step in steps for rank in step for sample in rank)
        [0, 1, 2, 3, 4, 5, 6]
        >>> omnibal.micro_batches([9, 2, 3], 2, [9, 2, 3], 8, oversized="own_group").cells.tolist()
        [[0], [1, 2]]
    """

def optimizer_steps(
    costs: Costs,
    steps: int,
    ranks: int,
    demands: Demands,
    capacity: Limits,
    *,
    multiple_of: int = 1,
    max_overload: float = 0.01,
    effort: Effort = "normal",
    seed: int = 0,
    oversized: Literal["own_group", "reject"] = "reject",
) -> List[Steps]:
    """Divides a batch into optimizer steps with even costs and mixed lengths, and into micro-batches.

    Args:
        costs: an integer or a floating-point number for each sample.
        steps: the number of optimizer steps.
        ranks: the number of data-parallel ranks.
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.
        capacity: the limit of a micro-batch: a number, or one for each resource.
        multiple_of: the number of micro-batches of a rank in a step is a multiple of this number.
        max_overload: how far the largest cost may be above the lower bound before a search ends.
        effort: 'fast', 'normal' or 'thorough'; more effort takes more time.
        seed: another seed gives another search.
        oversized: 'own_group' gives each sample above the capacity a micro-batch of its own. With
            'reject' such a sample is an error.

    Returns:
        `Steps` for each optimizer step: step m has micro-batch m of each rank.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> import numpy as np
        >>> lengths = np.array([1500, 1000, 2800, 3000, 1500, 2000, 2100, 1000, 800])
        >>> steps = omnibal.optimizer_steps(lengths, 2, 2, lengths, 3072)
        >>> steps
        [Steps(2 steps of 2 ranks), Steps(2 steps of 2 ranks)]
        >>> max(sum(int(lengths[step[m, r]].sum()) for m in range(2)) for step in steps for r in (0, 1))
        4100
    """

def schedule_steps(
    loads: Demands,
    ranks: int,
    *,
    seed: int = 0,
    epoch: int = 0,
    max_dist_ratio: float = 0.005,
    remainder: Remainder = "short_step",
    groups_per_rank: int = 1,
    even_positions: bool = False,
    carried: Optional[Integers] = None,
    speeds: Optional[npt.ArrayLike] = None,
) -> Steps:
    """Assigns groups to steps and ranks such that the ranks of a step have even loads.

    Args:
        loads: a number or a row of numbers for each group, such as from `group_loads`.
        ranks: the number of data-parallel ranks.
        seed: another seed gives another order. All ranks must use the same seed.
        epoch: each epoch has another order.
        max_dist_ratio: the largest average idle share of a step.
        remainder: the groups that do not fill a step make a 'short_step', which some ranks do not
            take part in, are filled up by a 'repeat', or are left over to the next epoch by 'carry'.
        groups_per_rank: the number of groups of a rank in a step, for gradient accumulation.
        even_positions: True if the n-th groups of all ranks must have even loads as well.
        carried: the groups that the previous epoch left over; they run once more.
        speeds: the speed of each rank; loads over speeds are then even. None for equal speeds.

    Returns:
        `Steps`: `steps[s, r]` has the groups of rank r in step s.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> steps = omnibal.schedule_steps([9, 1, 8, 2, 9, 1], ranks=2, max_dist_ratio=0.0)
        >>> sorted(sorted(int(rank[0]) for rank in step) for step in steps)
        [[0, 4], [1, 5], [2, 3]]
    """

def unscheduled_groups(
    schedule: Steps, groups: int, carried: Optional[Integers] = None
) -> Indices:
    """Returns the groups that an epoch leaves to the next epoch.

    Args:
        schedule: the schedule of the epoch, from `schedule_steps` with the remainder 'carry'.
        groups: the number of groups.
        carried: the groups that the epoch before left, as given to `schedule_steps`.

    Returns:
        A uint32 array of groups, ascending: the argument `carried` of the next epoch.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> steps = omnibal.schedule_steps([4, 4, 4], ranks=2, remainder="carry")
        >>> len(omnibal.unscheduled_groups(steps, 3))
        1
    """

def step_overlap(first: Steps, second: Steps) -> float:
    """Returns how many pairs of groups share a step in both schedules, over what random order has.

    Args:
        first: the schedule of an epoch.
        second: the schedule of another epoch.

    Returns:
        About 1 for independent schedules, 0 if no pair shares a step twice.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> steps = omnibal.schedule_steps([4, 4, 4, 4], ranks=2)
        >>> omnibal.step_overlap(steps, steps)
        3.0
    """

def step_spread(schedule: Steps, loads: Demands) -> Dict[str, Ratio]:
    """Returns how much steps vary, and how similar the groups of a step are.

    Args:
        schedule: a schedule of groups.
        loads: a number or a row of numbers for each group.

    Returns:
        By name: 'totals', the standard deviation of the totals of steps over that of random order;
        'within', the variance in a step over that of random order; 'variation', the standard deviation
        of the totals over their mean. Each is a number, or one for each resource.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> steps = omnibal.schedule_steps([1, 1, 3, 3], ranks=2, max_dist_ratio=0)
        >>> omnibal.step_spread(steps, [1, 1, 3, 3])["within"]
        0.0
    """

def attention_balance(schedule: Steps, groups: Groups, lengths: Integers) -> float:
    """Returns the share of the attention time of a step for which ranks are idle, on average.

    Args:
        schedule: a schedule of the groups.
        groups: the samples of each group.
        lengths: the length of each sample in tokens.

    Returns:
        The mean over all steps of 1 - mean / largest of the sums of squared lengths.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> groups = omnibal.Groups([0, 1, 2], [0, 1])
        >>> omnibal.attention_balance(omnibal.schedule_steps([1, 1], ranks=2), groups, [2, 1])
        0.375
    """

def communication_ratio(groups: Groups, lengths: Integers, degrees: Integers) -> float:
    """Returns the share of the tokens in groups that several ranks share.

    Args:
        groups: the samples of each group.
        lengths: the length of each sample in tokens.
        degrees: the number of ranks of each group.

    Returns:
        A share; 0 if there are no tokens.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.communication_ratio(omnibal.Groups([0, 1, 2], [0, 1]), [30, 10], [2, 1])
        0.75
    """

def level_steps(
    packed: LevelPacking,
    loads: Demands,
    ranks: int,
    *,
    seed: int = 0,
    epoch: int = 0,
    max_dist_ratio: float = 0.005,
    remainder: Literal["short_step", "repeat"] = "short_step",
) -> List[Steps]:
    """Schedules the packs of each level into steps.

    Args:
        packed: the result of `pack_levels`.
        loads: a number or a row of numbers for each pack, such as the sum of its squared lengths.
        ranks: the number of ranks; a step of a level has ranks over degree cells, one for each pack.
        seed: another seed gives another schedule.
        epoch: each epoch has another schedule.
        max_dist_ratio: as in `schedule_steps`.
        remainder: the packs that do not fill a step make a 'short_step', or are filled up by a
            'repeat'.

    Returns:
        The `Steps` of each level, with the numbers of packs.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> packed = omnibal.pack_levels([4, 4, 8, 3], [[4, 1, 0], [8, 2, 0]], fill="none")
        >>> [len(steps) for steps in omnibal.level_steps(packed, [16, 16, 9, 64], ranks=2)]
        [2, 1]
    """

def pad_ratio(groups: Groups, lengths: Integers) -> float:
    """Returns the average share of padding, if each group is padded to its longest sample.

    Args:
        groups: the groups of a packing, or the parts of a balancer.
        lengths: the length of each sample.

    Returns:
        The average over the groups: 0 if all samples of a group are equally long.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.pad_ratio(omnibal.Groups([0, 2, 4], [0, 1, 2, 3]), [4, 2, 5, 5])
        0.125
    """

def dist_ratio(loads: Demands, schedule: Optional[Steps] = None) -> Ratio:
    """Returns the idle share of a step, 1 - mean / max of the loads: OmniBal's dist ratio.

    Args:
        loads: a number or a row of numbers for each rank of one step, or for each group of a
            schedule.
        schedule: `Steps` of groups that have these loads. Default: the loads are those of one step.

    Returns:
        The idle share of the step, or the average over the steps of the schedule: a number, or an
        array with one for each resource.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.dist_ratio([4, 2, 3, 3])
        0.25
        >>> steps = omnibal.schedule_steps([4, 2, 4, 2], ranks=2, max_dist_ratio=0.0)
        >>> omnibal.dist_ratio([4, 2, 4, 2], steps)
        0.0
    """

def imbalance(loads: Demands) -> Ratio:
    """Returns the imbalance of loads: the largest load divided by the average load.

    Args:
        loads: a number or a row of numbers for each rank or part.

    Returns:
        At least 1, which means balanced: a number, or an array with one for each resource.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.imbalance([4, 2, 3, 3])
        1.3333333333333333
    """

def utilization(loads: Demands, capacity: Limits) -> Ratio:
    """Returns the used share of the capacity, averaged over groups.

    Args:
        loads: a number or a row of numbers for each group, such as from `group_loads`.
        capacity: the limit of a group: a number, or one for each resource.

    Returns:
        A number, or an array with one for each resource; 1 if all groups are full.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.utilization([[4, 90], [2, 80]], (4, 100)).tolist()
        [0.75, 0.85]
    """

def loss_normalizer(loss_tokens: npt.ArrayLike) -> float:
    """Returns the factor that gives every token the same weight in the loss.

    Each rank multiplies the sum of the losses of its tokens by the factor, and the gradients are
    averaged over the ranks.

    Args:
        loss_tokens: the number of tokens with a loss of each rank, or an array with the numbers of
            all steps and ranks of an epoch. Micro-batches of the same step count together.

    Returns:
        1 / the average number of tokens; 0 if no rank has tokens.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.loss_normalizer([30, 10])
        0.05
    """

def affine_fit(
    sizes: Sizes,
    values: Costs,
    *,
    offset: Literal["free", "zero"] = "free",
    signs: Literal["any", "not_negative"] = "any",
    loss: Literal["squares", "huber"] = "squares",
) -> AffineCost:
    """Fits the affine cost that is nearest to measurements.

    Args:
        sizes: a number for each point, or up to three numbers: rows of an array, or a tuple of arrays.
        values: the measured value of each point, such as seconds.
        offset: 'zero' if a size of zero costs nothing.
        signs: 'not_negative' if no coefficient may be negative.
        loss: 'huber' if a few wrong measurements shall have little influence.

    Returns:
        An `AffineCost`, which can be called with sizes.

    Raises:
        ValueError: if an argument is wrong, or if the points do not determine the coefficients.

    Example:
        >>> tokens = [1024, 2048, 4096, 3000]
        >>> squares = [number**2 for number in tokens]
        >>> times = [7 + 2 * t + 3 * s for t, s in zip(tokens, squares)]
        >>> cost = omnibal.affine_fit((tokens, squares), times)
        >>> cost.offset, cost.slopes.tolist(), cost.exact
        (7.0, [2.0, 3.0], True)
    """

def partition_minimax(costs: Costs, stages: int, *, allow_empty: bool = False) -> Partition:
    """Partitions a chain of layers into stages with the smallest possible largest cost.

    Args:
        costs: an integer or a floating-point number for each layer.
        stages: the number of stages.
        allow_empty: True if stages without layers are allowed.

    Returns:
        A `Partition`: stage s runs the layers boundaries[s] to boundaries[s + 1].

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> stages = omnibal.partition_minimax([4, 2, 3, 6, 1], 2)
        >>> stages
        Partition(solved, 2 stages, objective 9, at least 9, proven)
        >>> stages.boundaries.tolist()
        [0, 3, 5]
    """

def partition_layers(
    costs: Costs,
    stages: int,
    *,
    cut_costs: Optional[Costs] = None,
    bytes: Optional[Integers] = None,
    capacity: Optional[Limits] = None,
    min_layers: Optional[Limits] = None,
    max_layers: Optional[Limits] = None,
    forbidden_cuts: Optional[Integers] = None,
    allow_empty: bool = False,
) -> Partition:
    """Partitions layers into stages with the smallest possible largest cost, under limits.

    Args:
        costs: an integer or a floating-point number for each layer; the costs of a stage add up.
        stages: the number of stages.
        cut_costs: entry l is what a cut before layer l adds to the costs of the stages on both of its
            sides. Default: cuts are free.
        bytes: the bytes of each layer.
        capacity: the limit of the bytes of a stage: a number, or one for each stage.
        min_layers: the smallest number of layers of a stage: a number, or one for each stage.
        max_layers: the largest number of layers of a stage: a number, or one for each stage.
        forbidden_cuts: the layers before which there is no cut.
        allow_empty: True if stages without layers are allowed.

    Returns:
        A `Partition`: stage s runs the layers boundaries[s] to boundaries[s + 1]. Its status is
        'infeasible' if no stages satisfy the limits; then it names the stage and the missing bytes.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> stages = omnibal.partition_layers(
        ...     [4, 2, 3, 6, 1], 2, bytes=[5, 5, 5, 5, 5], capacity=[10, 20])
        >>> stages
        Partition(solved, 2 stages, objective 10, at least 10, proven)
        >>> stages.boundaries.tolist()
        [0, 2, 5]
    """

def partition_throughput(
    costs: Costs,
    stages: int,
    micro_batches: int,
    *,
    cut_costs: Optional[Costs] = None,
    bytes: Optional[Integers] = None,
    capacity: Optional[Limits] = None,
    min_layers: Optional[Limits] = None,
    max_layers: Optional[Limits] = None,
    forbidden_cuts: Optional[Integers] = None,
    allow_empty: bool = False,
) -> Partition:
    """Partitions layers into the stages with the shortest step of a number of micro-batches.

    Args:
        costs: an integer or a floating-point number for each layer; the costs of a stage add up.
        stages: the number of stages.
        micro_batches: the number of micro-batches of a step.
        cut_costs: entry l is what a cut before layer l adds to the costs of the stages on both of its
            sides. Default: cuts are free.
        bytes: the bytes of each layer.
        capacity: the limit of the bytes of a stage: a number, or one for each stage.
        min_layers: the smallest number of layers of a stage: a number, or one for each stage.
        max_layers: the largest number of layers of a stage: a number, or one for each stage.
        forbidden_cuts: the layers before which there is no cut.
        allow_empty: True if stages without layers are allowed.

    Returns:
        A `Partition` whose objective is the time of the step: stage s runs the layers boundaries[s] to boundaries[s + 1]. Its status is
        'infeasible' if no stages satisfy the limits; then it names the stage and the missing bytes.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> stages = omnibal.partition_throughput([4, 2, 3, 6, 1], 2, 8)
        >>> stages
        Partition(solved, 2 stages, objective 79, at least 79, proven)
        >>> stages.bottleneck
        9
    """

def select_recompute(
    times: npt.ArrayLike,
    bytes: npt.ArrayLike,
    budget: int,
    *,
    offsets: Optional[Integers] = None,
    transient_bytes: Optional[npt.ArrayLike] = None,
    in_flight: int = 1,
    reserve_bytes: int = 0,
    effort: Effort = "normal",
) -> Recompute:
    """Selects a choice for each layer so that the total time is the least within a budget of bytes.

    Args:
        times: row l has the time of each choice of layer l, such as to keep or to recompute its
            activations. If layers differ in the number of choices, a list of all choices.
        bytes: the bytes of each choice, in the same form.
        budget: the limit of the bytes.
        offsets: where the choices of each layer begin in the lists, and their end.
        transient_bytes: what each choice takes only while its layer runs, in the same form.
        in_flight: the number of micro-batches whose bytes are kept at the same time.
        reserve_bytes: a part of the budget for other purposes.
        effort: 'fast', 'normal' or 'thorough'; more effort takes more time.

    Returns:
        A `Recompute`; its status is 'infeasible' if no choices are within the budget.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> times = [[0, 3], [0, 5], [0, 4]]
        >>> memory = [[8, 1], [8, 1], [8, 1]]
        >>> plan = omnibal.select_recompute(times, memory, 18)
        >>> plan
        Recompute(solved, 3 layers, time 3, at least 3, proven, 17 bytes)
        >>> plan.choices.tolist()
        [1, 0, 0]
    """

def plan_pipeline(
    times: npt.ArrayLike,
    bytes: npt.ArrayLike,
    stages: int,
    micro_batches: int,
    memory: Limits,
    *,
    offsets: Optional[Integers] = None,
    transient_bytes: Optional[npt.ArrayLike] = None,
    state_bytes: Optional[Integers] = None,
    reserve_bytes: Limits = 0,
    in_flight: Optional[Limits] = None,
    min_layers: Optional[Limits] = None,
    max_layers: Optional[Limits] = None,
    forbidden_cuts: Optional[Integers] = None,
    allow_empty: bool = False,
    max_gap: float = 0.0001,
    effort: Effort = "normal",
) -> PipelinePlan:
    """Plans the stages of a model and what each layer recomputes together, within the memory.

    Args:
        times: for each layer a row with the time of each choice, forward and backward; or a list of the
            times of all choices, with `offsets`.
        bytes: the bytes of activations that a micro-batch keeps with each choice, in the same form.
        stages: the number of stages.
        micro_batches: the number of micro-batches of a step.
        memory: the bytes of each stage: a number, or one for each stage.
        offsets: where the choices of each layer begin, and the end, if layers differ in their number.
        transient_bytes: the bytes that each choice needs only while its backward pass runs. Default: 0.
        state_bytes: the bytes of parameters, gradients and optimizer of each layer. Default: 0.
        reserve_bytes: the bytes of each stage that are not available.
        in_flight: the micro-batches that each stage keeps at once. Default: those of 1F1B.
        min_layers: the least layers of a stage: a number, or one for each stage.
        max_layers: the most layers of a stage: a number, or one for each stage.
        forbidden_cuts: layers before which no stage may begin.
        allow_empty: True if stages may be empty.
        max_gap: the search ends within this share of the best step.
        effort: 'fast', 'normal' or 'thorough'; more effort takes more time.

    Returns:
        A `PipelinePlan`. Its status is 'infeasible' if the memory does not suffice.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> plan = omnibal.plan_pipeline([[4, 5]] * 4, [[10, 1]] * 4, 2, 4, memory=1)
        >>> plan.status, plan.missing_bytes
        ('infeasible', 2)
    """

def context_groups(
    lengths: Integers,
    ranks: int,
    cost: npt.ArrayLike,
    *,
    micro_step: float = 0.0,
    bytes_per_token: int = 0,
    capacity: Optional[Limits] = None,
    degrees: Optional[Integers] = None,
    ranks_per_node: int = 0,
    placement: Literal["anywhere", "blocks"] = "anywhere",
    speeds: Optional[npt.ArrayLike] = None,
    multiple: int = 1,
    effort: Effort = "normal",
) -> ContextPlan:
    """Assigns the samples of a step to groups of ranks: dynamic context parallelism.

    Args:
        lengths: the length of each sample in tokens.
        ranks: the number of ranks.
        cost: row d - 1 is (fixed, linear, quadratic) for groups of d ranks: a group takes
            fixed + linear * tokens + quadratic * squares, the sums of the lengths of its samples and of
            their squares.
        micro_step: the time that each micro-step adds.
        bytes_per_token: the bytes of a token; the ranks of a group share the tokens of a sample.
        capacity: the limit of the bytes of a rank: a number, or one for each rank. Default: none.
        degrees: the numbers of ranks that groups may have. Default: all.
        ranks_per_node: the ranks of a node, which groups do not leave if they fit. Default: 0, one
            node.
        placement: 'anywhere', or 'blocks' if the ranks of a group are neighbors that begin at a
            multiple of their number.
        speeds: the speed of each rank; the terms of tokens and squares of a group grow by the speed of
            the fastest rank over that of the slowest rank of the group. None for equal speeds.
        multiple: the number of micro-steps is a multiple of this number.
        effort: 'fast', 'normal' or 'thorough'; more effort takes more time.

    Returns:
        A `ContextPlan`. Its status is 'infeasible' if a sample fits no group; then it names the sample
        and the degree that it needs.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> cost = [[1.0, 0.01, 1e-5 / d] for d in range(1, 5)]
        >>> plan = omnibal.context_groups([4000, 500, 400, 300], 4, cost)
        >>> plan.status, plan.degrees.tolist(), plan.samples.tolist()
        ('solved', [4, 2, 1, 1], [[0], [1], [2], [3]])
    """

def context_pieces(
    plan: ContextPlan,
    lengths: Integers,
    ranks: int,
    *,
    multiple: int = 1,
    padding: ContextPadding = "to_multiple",
) -> ContextLayout:
    """Cuts each sample among the ranks of its group with the same causal attention for each rank.

    Args:
        plan: the result of `context_groups`.
        lengths: the length of each sample, as for the plan.
        ranks: the number of ranks, as for the plan.
        multiple: the tokens of a piece, with padding, are a multiple of this number.
        padding: 'to_equal_pieces' pads so that all pieces of a sample are equal, as ring attention
            of Megatron-Core requires; 'to_multiple' pads only to the multiple.

    Returns:
        A `ContextLayout`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> plan = omnibal.context_groups([6], 2, [[1.0, 1.0, 1.0], [1.0, 0.5, 0.5]])
        >>> layout = omnibal.context_pieces(plan, [6], 2, padding="to_equal_pieces")
        >>> layout.tokens.tolist(), layout.padded_tokens.tolist()
        ([2, 4, 0], [2, 4, 2])
    """

def padded_piece_tokens(
    length: int, degree: int, *, multiple: int = 1, padding: ContextPadding = "to_multiple"
) -> int:
    """Returns the most tokens, with padding, that a rank has of a sample that `degree` ranks share.

    Args:
        length: the length of the sample.
        degree: the number of ranks of its group.
        multiple: as in `context_pieces`.
        padding: as in `context_pieces`.

    Returns:
        A number of tokens.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.padded_piece_tokens(100, 4, padding="to_equal_pieces")
        26
    """

def context_exchange(
    layout: ContextLayout,
    home_offsets: Integers,
    token_bytes: int,
    *,
    ranks_per_node: int = 1,
    node_of: Optional[Integers] = None,
) -> ExchangePlan:
    """Plans the exchange that brings each rank its pieces.

    Args:
        layout: the result of `context_pieces`.
        home_offsets: before the exchange, rank r has the samples home_offsets[r] to
            home_offsets[r + 1].
        token_bytes: the bytes of a token.
        ranks_per_node: the ranks of a node.
        node_of: the node of each rank, if nodes differ in size.

    Returns:
        An `ExchangePlan` whose samples are the pieces. Padding is not exchanged.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> plan = omnibal.context_groups([8], 2, [[1.0, 1.0, 1.0], [1.0, 0.5, 0.5]])
        >>> moved = omnibal.context_exchange(omnibal.context_pieces(plan, [8], 2), [0, 1, 1], 4)
        >>> moved.arrivals.tolist(), moved.moved_bytes
        ([[0, 2], [1]], 16)
    """

def make_plan(
    home_offsets: Integers,
    costs: Union[Demands, Groups],
    bytes: Integers,
    *,
    balance: Union[Literal["rebalance"], Callable[[Any, int], Groups]] = "rebalance",
    max_overload: float = 0.01,
    ranks_per_node: int = 1,
    node_of: Optional[Integers] = None,
    speeds: Optional[npt.ArrayLike] = None,
) -> ExchangePlan:
    """Plans an exchange of samples that gives all ranks even loads.

    Args:
        home_offsets: rank r has the samples home_offsets[r] to home_offsets[r + 1] of the global batch.
        costs: the cost of each sample, or a row of integers for several phases; or the parts as
            `Groups`, of which part r goes to rank r.
        bytes: the bytes of each sample.
        balance: 'rebalance', which moves few bytes, or a function that is called with `costs` and the
            number of ranks and returns `Groups`, such as `omnibal.lpt`. The parts of a function go to
            the ranks with most of their bytes.
        max_overload: the share by which the largest load may exceed its lower bound.
        ranks_per_node: the ranks of a node; samples stay on their node if they fit.
        node_of: the node of each rank, if nodes differ in size.
        speeds: the speed of each rank, only for 'rebalance'. None for equal speeds.

    Returns:
        An `ExchangePlan`, the same on all ranks if their arguments are.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> plan = omnibal.make_plan([0, 3, 4], [5, 4, 3, 2], [1, 1, 1, 1], balance=omnibal.lpt)
        >>> plan.arrivals.tolist(), plan.send_counts(0).tolist()
        ([[1, 2], [0, 3]], [2, 1])
    """

def compose(first: ExchangePlan, second: ExchangePlan, bytes: Integers) -> ExchangePlan:
    """Composes two exchanges into one that sends samples directly to their places after both.

    Args:
        first: the first exchange.
        second: the second exchange, which begins with the samples of each rank after the first one.
        bytes: the bytes of each sample before the first exchange.

    Returns:
        An `ExchangePlan`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> plan = omnibal.make_plan([0, 3, 4], [5, 4, 3, 2], [1, 1, 1, 1])
        >>> omnibal.compose(plan, plan.inverse(), [1, 1, 1, 1]).moved_bytes
        0
    """

def placement(
    home: Groups,
    parts: Groups,
    bytes: Integers,
    *,
    ranks_per_node: int = 1,
    node_of: Optional[Integers] = None,
) -> Placement:
    """Assigns parts to ranks so that few bytes leave their node and, after that, their rank.

    Args:
        home: the present samples of each rank.
        parts: as many parts as ranks, with the same samples.
        bytes: the bytes of each sample.
        ranks_per_node: the ranks of a node.
        node_of: the node of each rank, if nodes differ in size.

    Returns:
        A `Placement`: the rank of each part, and the bytes that move.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> home = omnibal.Groups([0, 2, 4], [0, 1, 2, 3])
        >>> parts = omnibal.Groups([0, 2, 4], [2, 1, 0, 3])
        >>> omnibal.placement(home, parts, [5, 1, 5, 1]).rank_of_part.tolist()
        [1, 0]
    """

def make_orchestration(
    home_offsets: Integers,
    costs: Integers,
    bytes: Integers,
    encoders: Optional[Sequence[Tuple[Integers, Integers, Integers, Integers]]] = None,
    *,
    max_overload: float = 0.01,
    ranks_per_node: int = 1,
    node_of: Optional[Integers] = None,
    speeds: Optional[npt.ArrayLike] = None,
) -> Orchestration:
    """Plans the exchanges of a multimodal step: each encoder and the language model are balanced.

    Args:
        home_offsets: rank r has the samples home_offsets[r] to home_offsets[r + 1] of the global batch.
        costs: the cost of each sample in the language model.
        bytes: the bytes of the text of each sample.
        encoders: for each encoder the number of pieces of each sample, such as images, and for each
            piece its cost, its bytes and the bytes of its output. Default: no encoders.
        max_overload: the share by which the largest load may exceed its lower bound.
        ranks_per_node: the ranks of a node.
        node_of: the node of each rank, if nodes differ in size.
        speeds: the speed of each rank. None for equal speeds.

    Returns:
        An `Orchestration`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> images = ([4, 0], [1, 1, 1, 1], [8, 8, 8, 8], [2, 2, 2, 2])
        >>> plans = omnibal.make_orchestration([0, 1, 2], [5, 5], [1, 1], [images])
        >>> plans.samples.moved_bytes, plans.inputs[0].arrivals.tolist()
        (0, [[2, 3], [0, 1]])
    """

def simulate_pipeline(
    forward: Times,
    backward: Times,
    stages: int,
    micro_batches: Optional[int] = None,
    *,
    weight: Optional[Times] = None,
    transfer: Times = 0,
    bytes: Optional[Times] = None,
    schedule: Union[Schedule, Literal["sliced_1f1b"]] = "1f1b",
    chunks: Optional[int] = None,
    slices: Optional[Integers] = None,
    timeline: Literal["none", "recorded"] = "none",
) -> Simulation:
    """Simulates a step of a pipeline: its time, its idle time and its memory.

    Args:
        forward: the time of the forward pass of a micro-batch: a number, one for each virtual stage, or
            an array of shape (virtual stages, micro-batches). A stage, which PyTorch calls a rank, has
            `chunks` virtual stages. All times have the same unit, such as nanoseconds.
        backward: the time of the backward pass without `weight`, in one of these forms.
        stages: the number of stages.
        micro_batches: the number of micro-batches. Default: the number in the shape of the arrays.
        weight: the time of the gradients of the weights, in one of these forms. Schedules that do
            not split the backward pass add it to `backward`; the others require it.
        transfer: the time to send a micro-batch to the next virtual stage, or its gradients back: a
            number, one for each cut between virtual stages, or an array of shape (cuts,
            micro-batches).
        bytes: the activation bytes of a micro-batch in a virtual stage: integers in the form of
            `forward`. Default: 0.
        schedule: 'gpipe', '1f1b', 'interleaved_1f1b', 'zb_h1', 'zb_v', 'v_half', 'v_min',
            'dual_pipe_v', 'sliced_1f1b', or a `ListedSchedule`. In 'sliced_1f1b' the micro-batches
            are the `slices` of sequences, whose backward passes run in reverse order.
        chunks: the number of virtual stages of a stage. Default: as the schedule has; 2 for
            'interleaved_1f1b'.
        slices: the number of slices of each sequence, such as `SequenceSlices.slice_counts`; only
            with 'sliced_1f1b', which requires it. Their sum is the number of micro-batches.
        timeline: 'recorded' if the result shall have the times of all operations.

    Returns:
        A `Simulation`: makespan, bubble share, and the busy time and peak bytes of each stage.

    Raises:
        TypeError: if `schedule` is neither a str nor a `ListedSchedule`.
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.simulate_pipeline(1, 2, stages=4, micro_batches=8, schedule="gpipe")
        Simulation(makespan 33, bubble share 0.272727)
        >>> step = omnibal.simulate_pipeline(
        ...     1, 1, stages=4, micro_batches=8, weight=1, bytes=10, schedule="zb_h1")
        >>> step.makespan, step.peak_bytes.tolist()
        (27, [40, 40, 40, 40])
        >>> omnibal.simulate_pipeline(1, 2, stages=2, schedule="sliced_1f1b", slices=[2, 1]).makespan
        12
        >>> step = omnibal.simulate_pipeline(
        ...     1, 2, stages=2, micro_batches=1, transfer=5, timeline="recorded")
        >>> step.timeline[["kind", "stage", "begin", "end"]].tolist()
        [('forward', 0, 0, 1), ('backward', 0, 14, 16), ('forward', 1, 6, 7), ('backward', 1, 7, 9)]
    """

def order_micro_batches(
    forward: Times,
    backward: Times,
    stages: int,
    micro_batches: Optional[int] = None,
    *,
    weight: Optional[Times] = None,
    transfer: Times = 0,
    schedule: Schedule = "1f1b",
    chunks: Optional[int] = None,
    simulations: int = 1000,
) -> MicroBatchOrder:
    """Orders the micro-batches of a step such that a pipeline needs less time.

    Args:
        forward: the time of the forward pass of a micro-batch: a number, one for each virtual stage, or
            an array of shape (virtual stages, micro-batches). A stage, which PyTorch calls a rank, has
            `chunks` virtual stages. All times have the same unit, such as nanoseconds.
        backward: the time of the backward pass without `weight`, in one of these forms.
        stages: the number of stages.
        micro_batches: the number of micro-batches. Default: the number in the shape of the arrays.
        weight: the time of the gradients of the weights, in one of these forms. Schedules that do
            not split the backward pass add it to `backward`; the others require it.
        transfer: the time to send a micro-batch to the next virtual stage, or its gradients back: a
            number, one for each cut between virtual stages, or an array of shape (cuts,
            micro-batches).
        schedule: 'gpipe', '1f1b', 'interleaved_1f1b', 'zb_h1', 'zb_v', 'v_half', 'v_min',
            'dual_pipe_v', or a `ListedSchedule`.
        chunks: the number of virtual stages of a stage. Default: as the schedule has; 2 for
            'interleaved_1f1b'.
        simulations: the number of orders that the search simulates.

    Returns:
        A `MicroBatchOrder`: `order` has the micro-batch for each place of the schedule. It is never
        slower than the given order or the order of `largest_in_middle`.

    Raises:
        TypeError: if `schedule` is neither a str nor a `ListedSchedule`.
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> forward = [[9, 1, 5, 2], [9, 1, 5, 2]]
        >>> backward = [[18, 2, 10, 4], [18, 2, 10, 4]]
        >>> found = omnibal.order_micro_batches(forward, backward, stages=2)
        >>> found
        MicroBatchOrder(makespan 69 instead of 88, at least 55)
        >>> found.order.tolist()
        [3, 0, 2, 1]
    """

def largest_in_middle(costs: Costs) -> Indices:
    """Orders costs with the largest in the middle, so that a pipeline fills and drains with small ones.

    Args:
        costs: an integer or a floating-point number for each micro-batch.

    Returns:
        The indices of the costs in this order, uint32.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.largest_in_middle([9, 1, 5, 2]).tolist()
        [1, 2, 0, 3]
    """

def list_schedule(
    forward: Times,
    backward: Times,
    stages: int,
    micro_batches: Optional[int] = None,
    *,
    weight: Optional[Times] = None,
    transfer: Times = 0,
    bytes: Optional[Times] = None,
    memory: Optional[Limits] = None,
    chunks: int = 1,
    placement: Placement = "looped",
    objective: Literal["makespan", "longest_stage"] = "makespan",
) -> ListedSchedule:
    """Computes a pipeline schedule for given times of stages and micro-batches, within their memory.

    Args:
        forward: the time of the forward pass of a micro-batch: a number, one for each virtual stage, or
            an array of shape (virtual stages, micro-batches). A stage, which PyTorch calls a rank, has
            `chunks` virtual stages. All times have the same unit, such as nanoseconds.
        backward: the time of the backward pass without `weight`, in one of these forms.
        stages: the number of stages.
        micro_batches: the number of micro-batches. Default: the number in the shape of the arrays.
        weight: the time of the gradients of the weights, in one of these forms. If it is
            given, the schedule splits the backward pass.
        transfer: the time to send a micro-batch to the next virtual stage, or its gradients back: a
            number, one for each cut between virtual stages, or an array of shape (cuts,
            micro-batches).
        bytes: the activation bytes of a micro-batch in a virtual stage: integers in the form of
            `forward`. Default: 0.
        memory: the most activation bytes that a stage may keep: a number, or one for each stage.
            Default: no limit.
        chunks: the number of virtual stages of a stage.
        placement: 'looped' as in interleaved 1F1B, 'v_shape' as in ZB-V, or 'bidirectional' as in
            Chimera and DualPipe.
        objective: 'makespan', or 'longest_stage', the time between steps if a stage begins the next
            step as soon as its own operations have ended.

    Returns:
        A `ListedSchedule` with the operations of each stage and a lower bound on the objective;
        `write_csv` writes it for PyTorch.

    Raises:
        ValueError: if an argument is wrong or a micro-batch alone exceeds the memory; the text names
            the argument and its value.

    Example:
        >>> found = omnibal.list_schedule([3, 1], [2, 1], stages=2, micro_batches=3, weight=[2, 1])
        >>> found
        ListedSchedule(2 stages, 3 micro-batches, makespan 21, at least 21, proven)
        >>> print(found.to_csv(), end="")
        0F0,0F1,0F2,0I0,0I1,0I2,0W0,0W1,0W2
        1F0,1I0,1W0,1F1,1I1,1W1,1F2,1I2,1W2
    """

def slice_sequence(
    length: int,
    slices: int,
    cost: Callable[[npt.NDArray[np.int64]], npt.ArrayLike],
    *,
    block: int = 128,
) -> npt.NDArray[np.int64]:
    """Cuts a sequence into slices so that the largest cost of a slice is smallest.

    Args:
        length: the number of tokens of the sequence.
        slices: the number of slices; a sequence of fewer blocks has fewer slices.
        cost: a function that is called once with an array of numbers of tokens, and returns the cost of
            the first n tokens for each number n. `LanguageModel.document_cost` is one.
        block: slices end at multiples of this number of tokens, or at the end of the sequence.

    Returns:
        The places of the cuts in tokens, from 0 to `length`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> attention = lambda tokens: tokens * (tokens + 1) // 2
        >>> omnibal.slice_sequence(4096, 4, attention).tolist()
        [0, 2048, 2944, 3584, 4096]
    """

def slice_sequences(
    lengths: Integers,
    limit: float,
    cost: Callable[[npt.NDArray[np.int64]], npt.ArrayLike],
    *,
    block: int = 128,
) -> SequenceSlices:
    """Cuts long sequences and packs short ones into slices whose cost is at most the limit.

    Args:
        lengths: the number of tokens of each sequence.
        limit: the maximum cost of a slice, in the unit of `cost`.
        cost: a function that is called once with an array of numbers of tokens, and returns the cost of
            the first n tokens for each number n. `LanguageModel.document_cost` is one.
        block: slices end at multiples of this number of tokens, or at the end of their sequence.

    Returns:
        `SequenceSlices`: first the slices of the long sequences, in their order.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> slices = omnibal.slice_sequences([1000, 300, 200], 520, lambda tokens: tokens)
        >>> slices[:]
        [[(0, 0, 512)], [(0, 512, 1000)], [(1, 0, 300), (2, 0, 200)]]
    """

class CapacityWarning:
    """A capacity that does not fit two samples with the commonest demand, from `capacity_warnings`.

    Example:
        >>> omnibal.capacity_warnings([5, 5, 5, 2], 9)[0].enough
        10
    """

    @property
    def kind(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def commonest(self) -> int: ...
    @property
    def samples(self) -> int: ...
    @property
    def enough(self) -> int: ...

class LevelFigures:
    """The metrics of packs in levels, from `level_metrics`: shares between 0 and 1, better if smaller.

    Example:
        >>> packed = omnibal.pack_levels([3, 5, 2, 8], [4, 8])
        >>> steps = omnibal.level_steps(packed, omnibal.group_loads(packed.groups, [3, 5, 2, 8]), 2)
        >>> omnibal.level_metrics(packed, steps, [3, 5, 2, 8]).communication_ratio
        0.0
    """

    @property
    def data_balance(self) -> float: ...
    @property
    def attention_balance(self) -> float: ...
    @property
    def communication_ratio(self) -> float: ...
    @property
    def pad_ratio(self) -> float: ...

class EncoderWork:
    """The work of a vision or audio tower whose features a language model in a pipeline reads.

    Each time and each number of bytes is a number for all micro-batches, or one for each.

    Args:
        forward: the time of the forward pass of the whole encoder for a micro-batch.
        backward: the time of its whole backward pass; 0 if the encoder is frozen.
        transfer: the time to send the features to the language model, or their gradients back, if
            encoder and reader run on different devices.
        activation_bytes: the bytes that a device keeps from the forward pass to the end of the
            backward pass.
        output_bytes: the bytes of the features, and of their gradients.
        pieces: the parts of equal size, such as images, in which a micro-batch is encoded.
        devices: the devices that run the encoder. Numbers below the number of stages are stages;
            higher numbers are devices that run nothing else. Default: all stages.
        readers: the virtual stages of the language model that read the features. Default: the first.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.EncoderWork([2, 4, 2, 6], 0, pieces=2)
        EncoderWork(2 pieces, all stages, 1 reader)
    """

    def __init__(
        self,
        forward: npt.ArrayLike,
        backward: npt.ArrayLike,
        *,
        transfer: npt.ArrayLike = 0,
        activation_bytes: Integers = 0,
        output_bytes: Integers = 0,
        pieces: int = 1,
        devices: Optional[Integers] = None,
        readers: Optional[Integers] = None,
    ) -> None: ...
    @property
    def forward(self) -> npt.NDArray[Any]: ...
    @property
    def backward(self) -> npt.NDArray[Any]: ...
    @property
    def transfer(self) -> npt.NDArray[Any]: ...
    @property
    def activation_bytes(self) -> npt.NDArray[np.int64]: ...
    @property
    def output_bytes(self) -> npt.NDArray[np.int64]: ...
    @property
    def pieces(self) -> int: ...
    @property
    def devices(self) -> List[int]: ...
    @property
    def readers(self) -> List[int]: ...

PlacedLists = Sequence[
    Sequence[
        Tuple[Literal["language", "encoder"], Literal["forward", "backward", "weight"], int, int]
    ]
]
"""For each device its operations in order: (part, kind, chunk or piece, micro_batch)."""

class EncoderSimulation:
    """The time and memory of a step with an encoder, from `simulate_encoder`.

    Example:
        >>> work = omnibal.EncoderWork(2, 2)
        >>> omnibal.place_encoder(1, 1, 2, work, 4).step.busy.tolist()
        [16, 16]
    """

    @property
    def makespan(self) -> Union[int, float]: ...
    @property
    def bubble_share(self) -> float: ...
    @property
    def busy(self) -> Union[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
    @property
    def peak_bytes(self) -> npt.NDArray[np.int64]: ...
    @property
    def language(self) -> Timeline: ...
    @property
    def encoder(self) -> Timeline: ...

class EncoderPlacement:
    """The operations of a language model and an encoder on their devices, from `place_encoder`.

    Example:
        >>> omnibal.place_encoder(1, 1, 1, omnibal.EncoderWork(2, 0), 1).lists[0][0]
        ('encoder', 'forward', 0, 0)
    """

    @property
    def lists(
        self,
    ) -> List[
        List[
            Tuple[
                Literal["language", "encoder"], Literal["forward", "backward", "weight"], int, int
            ]
        ]
    ]: ...
    @property
    def step(self) -> EncoderSimulation: ...
    @property
    def language_makespan(self) -> Union[int, float]: ...
    @property
    def before_makespan(self) -> Union[int, float]: ...
    @property
    def lower_bound(self) -> Union[int, float]: ...

class ActivationLayer:
    """A layer, and the parts of it whose activations are kept, recomputed or offloaded.

    Args:
        bytes: the bytes of activations of one micro-batch, for each module in the order of the
            forward pass.
        recompute_time: the time to recompute each module. All times have the same unit.
        forward_time: the time of the forward pass of one micro-batch.
        backward_time: the time of its backward pass, without recomputation.
        required: True for each module that is kept or offloaded, because recomputation starts from
            it. Default: none.
        forward_transient_bytes: additional bytes on the device while the forward pass runs.
        backward_transient_bytes: additional bytes on the device while the backward pass runs.
        forward_traffic_bytes: other bytes, such as states of the optimizer, that the link starts to
            send when the forward pass begins.
        backward_traffic_bytes: other bytes that the link starts to fetch when the backward pass
            begins.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.ActivationLayer([10, 40, 20], [0, 3, 1], 8, 16, required=[True, False, False])
        ActivationLayer(3 modules, 70 bytes)
    """

    def __init__(
        self,
        bytes: Integers,
        recompute_time: npt.ArrayLike,
        forward_time: float,
        backward_time: float,
        *,
        required: Optional[npt.ArrayLike] = None,
        forward_transient_bytes: int = 0,
        backward_transient_bytes: int = 0,
        forward_traffic_bytes: int = 0,
        backward_traffic_bytes: int = 0,
    ) -> None: ...
    @property
    def bytes(self) -> npt.NDArray[np.int64]: ...
    @property
    def recompute_time(self) -> Union[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
    @property
    def required(self) -> npt.NDArray[np.bool_]: ...
    @property
    def forward_time(self) -> Union[int, float]: ...
    @property
    def backward_time(self) -> Union[int, float]: ...
    @property
    def forward_transient_bytes(self) -> int: ...
    @property
    def backward_transient_bytes(self) -> int: ...
    @property
    def forward_traffic_bytes(self) -> int: ...
    @property
    def backward_traffic_bytes(self) -> int: ...

ActivationChoice = Literal["keep", "recompute", "offload"]

class ActivationsResult:
    """A choice for each module of each layer, from `select_activations`.

    Example:
        >>> layer = omnibal.ActivationLayer([10, 40], [1, 9], 8, 16)
        >>> omnibal.select_activations([layer], 30, 0.0).missing_bytes
        20
    """

    @property
    def status(self) -> Literal["solved", "infeasible"]: ...
    @property
    def choices(self) -> List[List[ActivationChoice]]: ...
    @property
    def added_time(self) -> Union[int, float]: ...
    @property
    def lower_bound(self) -> Union[int, float]: ...
    @property
    def proven(self) -> bool: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def offloaded_bytes(self) -> int: ...
    @property
    def missing_bytes(self) -> int: ...

class ActivationUsage:
    """The memory and the added time of given choices, from `measure_activations`.

    Example:
        >>> layer = omnibal.ActivationLayer([10, 40], [1, 9], 8, 16)
        >>> omnibal.measure_activations([layer], [["keep", "keep"]], 0.0).forward_bytes.tolist()
        [50]
    """

    @property
    def added_time(self) -> Union[int, float]: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def kept_bytes(self) -> int: ...
    @property
    def offloaded_bytes(self) -> int: ...
    @property
    def held_bytes(self) -> int: ...
    @property
    def forward_bytes(self) -> npt.NDArray[np.int64]: ...
    @property
    def backward_bytes(self) -> npt.NDArray[np.int64]: ...

class CheckpointCount:
    """The number of layers that must be checkpointed, from `CheckpointLine.checkpointed_for`.

    Example:
        >>> line = omnibal.two_point_probe((0, -300), (4, 100))
        >>> line.checkpointed_for(8)
        CheckpointCount(solved, 3 layers)
        >>> line.checkpointed_for(8, target_bytes=1000).missing_bytes
        500
    """

    @property
    def status(self) -> Literal["solved", "infeasible"]: ...
    @property
    def layers(self) -> int: ...
    @property
    def missing_bytes(self) -> int: ...

class CheckpointLine:
    """The line through two readings of free memory, from `two_point_probe`.

    Example:
        >>> line = omnibal.two_point_probe((0, -300), (4, 100))
        >>> line
        CheckpointLine(100 bytes per layer)
        >>> line.free_bytes(6)
        300
    """

    @property
    def bytes_per_layer(self) -> float: ...
    def free_bytes(self, checkpointed_layers: int) -> int:
        """Returns the free memory with this number of layers checkpointed, rounded down."""
    def checkpointed_for(self, layers: int, target_bytes: int = 0) -> CheckpointCount:
        """Returns the smallest number of `layers` to checkpoint so that `target_bytes` stay free."""

class MeasuredCost:
    """A cost from a table of measurements, from `measured_table`; never negative.

    Example:
        >>> cost = omnibal.measured_table([10, 20], [3, 7])
        >>> cost(15), cost([10, 30]).tolist()
        (5, [3, 11])
    """

    @property
    def sizes(self) -> npt.NDArray[np.int64]: ...
    @property
    def values(self) -> Union[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
    def __call__(self, sizes: Integers) -> Any:
        """Returns the value of one size, or an array of the values of an array of sizes."""

def capacity_warnings(
    demands: Demands, capacity: Limits, *, common_share: float = 0.1
) -> List[CapacityWarning]:
    """Warns of capacities with which no group can have two samples of the commonest demand.

    Args:
        demands: a number or a row of numbers for each sample, or a tuple with an array for each
            resource.
        capacity: the limit of a group: a number, or one for each resource.
        common_share: a demand is common if at least this share of the samples have it.

    Returns:
        A `CapacityWarning` for each resource with such a capacity, in the order of the resources.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.capacity_warnings([5, 5, 5, 2], 9)
        [CapacityWarning(resource 0, capacity 9, 3 samples of 5, 10 fits two)]
        >>> omnibal.capacity_warnings([5, 5, 5, 2], 10)
        []
    """

def level_metrics(
    packed: LevelPacking, schedules: Sequence[Steps], lengths: Integers
) -> LevelFigures:
    """Returns the idle time, the shared tokens and the padding of packs in levels.

    Args:
        packed: the result of `pack_levels`.
        schedules: a schedule for each level, as `level_steps` returns them.
        lengths: the length of each sample in tokens.

    Returns:
        A `LevelFigures`: means over the steps of all levels together.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> lengths = [3, 5, 2, 8, 4, 6]
        >>> packed = omnibal.pack_levels(lengths, [4, 8])
        >>> steps = omnibal.level_steps(packed, omnibal.group_loads(packed.groups, lengths), ranks=1)
        >>> omnibal.level_metrics(packed, steps, lengths).data_balance
        0.0
    """

def two_point_probe(few: Tuple[int, int], many: Tuple[int, int]) -> CheckpointLine:
    """Computes the bytes that a checkpointed layer frees, from two readings of free memory.

    Args:
        few: a pair (checkpointed_layers, free_bytes): the free memory of a device at its peak with
            few checkpointed layers; negative for a number of missing bytes.
        many: the same pair with more checkpointed layers.

    Returns:
        A `CheckpointLine`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> line = omnibal.two_point_probe((0, -300), (4, 100))
        >>> line.checkpointed_for(8).layers
        3
    """

def measured_table(sizes: Integers, values: Costs) -> MeasuredCost:
    """Makes a cost from measured points, linear between them.

    Args:
        sizes: the measured sizes, ascending integers, such as tokens.
        values: the value of each size, such as nanoseconds: integers or floats.

    Returns:
        A `MeasuredCost`, which can be called with sizes.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> cost = omnibal.measured_table([1024, 4096], [2.0, 14.0])
        >>> cost(2048)
        6.0
    """

def tabulate_context_cost(
    time: Callable[[int, int], float], degrees: int, *, lengths: Optional[Integers] = None
) -> npt.NDArray[np.float64]:
    """Tabulates the times of groups of ranks by degree, for the argument `cost` of `context_groups`.

    Args:
        time: a function that returns the time of a group that has only one sample, from the length
            of the sample and the number of ranks: a model, a fit or a table of measurements. The
            fixed time of a micro-step is the argument `micro_step` of `context_groups`.
        degrees: the largest number of ranks of a group.
        lengths: the lengths for which `time` is called, at least three. Default: the eight powers of
            two from 1,024 to 131,072.

    Returns:
        An array with a row (fixed, linear, quadratic) for each degree from 1 on, float64.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value. Exceptions of
            `time` are passed on.

    Example:
        >>> table = omnibal.tabulate_context_cost(lambda length, degree: 8 + length / degree, 2)
        >>> table.round(6).tolist()
        [[8.0, 1.0, 0.0], [8.0, 0.5, 0.0]]
    """

def peak_in_flight(
    schedule: Schedule,
    stages: Optional[int] = None,
    micro_batches: Optional[int] = None,
    *,
    chunks: Optional[int] = None,
) -> npt.NDArray[np.int64]:
    """Returns the most micro-batches, in one chunk each, whose activations each stage keeps at once.

    Args:
        schedule: 'gpipe', '1f1b', 'interleaved_1f1b', 'zb_h1', 'zb_v', 'v_half', 'v_min',
            'dual_pipe_v', or a `ListedSchedule`.
        stages: the number of stages. Default: as the `ListedSchedule` has.
        micro_batches: the number of micro-batches. Default: as the `ListedSchedule` has.
        chunks: the number of virtual stages of a stage. Default: as the schedule has; 2 for
            'interleaved_1f1b'.

    Returns:
        A number for each stage, int64. With one chunk it is the argument `in_flight` of
        `plan_pipeline`.

    Raises:
        TypeError: if `schedule` is neither a str nor a `ListedSchedule`.
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.peak_in_flight("1f1b", stages=4, micro_batches=8).tolist()
        [4, 3, 2, 1]
    """

def chunks_in_flight(
    schedule: Schedule,
    stages: Optional[int] = None,
    micro_batches: Optional[int] = None,
    *,
    chunks: Optional[int] = None,
) -> List[npt.NDArray[np.int64]]:
    """Returns the micro-batches of each chunk that each stage keeps when its memory can be largest.

    Args:
        schedule: 'gpipe', '1f1b', 'interleaved_1f1b', 'zb_h1', 'zb_v', 'v_half', 'v_min',
            'dual_pipe_v', or a `ListedSchedule`.
        stages: the number of stages. Default: as the `ListedSchedule` has.
        micro_batches: the number of micro-batches. Default: as the `ListedSchedule` has.
        chunks: the number of virtual stages of a stage. Default: as the schedule has; 2 for
            'interleaved_1f1b'.

    Returns:
        For each stage an array of shape (moments, chunks), int64. The peak of a stage is
        `(counts @ bytes).max()`, if `bytes` has the bytes of each of its chunks.

    Raises:
        TypeError: if `schedule` is neither a str nor a `ListedSchedule`.
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> counts = omnibal.chunks_in_flight("interleaved_1f1b", stages=2, micro_batches=4)
        >>> counts[0].tolist()
        [[3, 2], [4, 1]]
    """

def estimate_makespan(
    times: Costs,
    micro_batches: int,
    *,
    chunks: int = 1,
    placement: Literal["looped", "v_shape"] = "looped",
) -> Union[int, float]:
    """Estimates the time of a step of a pipeline, without a simulation.

    Args:
        times: the time of each virtual stage for one micro-batch, forward and backward together.
        micro_batches: the number of micro-batches.
        chunks: the number of virtual stages of a stage.
        placement: 'looped' as in interleaved 1F1B, or 'v_shape' as in ZB-V.

    Returns:
        The time: an integer if the times are integers.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> omnibal.estimate_makespan([3, 3, 3, 3], micro_batches=8)
        33
    """

def write_trace(
    timeline: Timeline,
    *,
    unit: Literal["nanoseconds", "microseconds", "milliseconds", "seconds"] = "nanoseconds",
    process: str = "pipeline",
    process_id: int = 0,
    stage_names: Optional[Sequence[str]] = None,
) -> str:
    """Writes the operations of a step as JSON for Perfetto and chrome://tracing.

    Args:
        timeline: the `timeline` of a `Simulation`, the `language` or `encoder` of an
            `EncoderSimulation`, or an array with the same fields.
        unit: the unit of the times.
        process: the name of the pipeline in the viewer.
        process_id: distinguishes pipelines that are shown together.
        stage_names: the names of at least the stages of the timeline. Default: 'stage 0' and so on.

    Returns:
        The text of the file.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> step = omnibal.simulate_pipeline(1, 2, stages=2, micro_batches=4, timeline="recorded")
        >>> text = omnibal.write_trace(step.timeline, unit="milliseconds")
        >>> text.count('"ph":"X"')
        16
    """

def place_encoder(
    forward: Times,
    backward: Times,
    stages: int,
    encoder: EncoderWork,
    micro_batches: Optional[int] = None,
    *,
    weight: Optional[Times] = None,
    transfer: Times = 0,
    bytes: Optional[Times] = None,
    schedule: Schedule = "1f1b",
    chunks: Optional[int] = None,
    memory: Optional[Limits] = None,
    simulations: int = 2000,
) -> EncoderPlacement:
    """Places a vision or audio tower in the idle time of a language model in a pipeline.

    Args:
        forward: the time of the forward pass of a micro-batch in the language model, in the forms of
            `simulate_pipeline`.
        backward: the time of the backward pass without `weight`, in one of these forms.
        stages: the number of stages.
        encoder: the work of the tower.
        micro_batches: the number of micro-batches. Default: the number in the shape of the arrays.
        weight: the time of the gradients of the weights, as for `simulate_pipeline`.
        transfer: the time to send a micro-batch to the next virtual stage, as for
            `simulate_pipeline`.
        bytes: the activation bytes of a micro-batch in a virtual stage. Default: 0.
        schedule: 'gpipe', '1f1b', 'interleaved_1f1b', 'zb_h1', 'zb_v', 'v_half', 'v_min',
            'dual_pipe_v', or a `ListedSchedule`.
        chunks: the number of virtual stages of a stage. Default: as the schedule has; 2 for
            'interleaved_1f1b'.
        memory: the most bytes that a device may keep: a number, or one for each device. Default: no
            limit.
        simulations: the number of moves that the local search simulates.

    Returns:
        An `EncoderPlacement`: the operations of each device, their times, and a lower bound.

    Raises:
        TypeError: if `schedule` is neither a str nor a `ListedSchedule`.
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> work = omnibal.EncoderWork(4, 4, pieces=4)
        >>> omnibal.place_encoder(4, 8, 2, work, 4)
        EncoderPlacement(2 devices, makespan 67 instead of 76, at least 64)
    """

def simulate_encoder(
    forward: Times,
    backward: Times,
    stages: int,
    encoder: EncoderWork,
    lists: PlacedLists,
    micro_batches: Optional[int] = None,
    *,
    weight: Optional[Times] = None,
    transfer: Times = 0,
    bytes: Optional[Times] = None,
    schedule: Schedule = "1f1b",
    chunks: Optional[int] = None,
) -> EncoderSimulation:
    """Simulates a step of a language model in a pipeline whose devices also run an encoder.

    Args:
        forward: the time of the forward pass of a micro-batch in the language model, in the forms of
            `simulate_pipeline`.
        backward: the time of the backward pass without `weight`, in one of these forms.
        stages: the number of stages.
        encoder: the work of the tower.
        lists: for each device the list of its operations (part, kind, chunk, micro_batch), as
            `EncoderPlacement.lists`; the chunk of the encoder is its piece.
        micro_batches: the number of micro-batches. Default: the number in the shape of the arrays.
        weight: the time of the gradients of the weights, as for `simulate_pipeline`.
        transfer: the time to send a micro-batch to the next virtual stage, as for
            `simulate_pipeline`.
        bytes: the activation bytes of a micro-batch in a virtual stage. Default: 0.
        schedule: the order of the operations of the language model, as for `simulate_pipeline`.
        chunks: the number of virtual stages of a stage. Default: as the schedule has; 2 for
            'interleaved_1f1b'.

    Returns:
        An `EncoderSimulation`.

    Raises:
        TypeError: if `schedule` is neither a str nor a `ListedSchedule`.
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> work = omnibal.EncoderWork(4, 0)
        >>> lists = [[("encoder", "forward", 0, 0), ("language", "forward", 0, 0),
        ...           ("language", "backward", 0, 0), ("encoder", "backward", 0, 0)]]
        >>> omnibal.simulate_encoder(1, 2, 1, work, lists, 1).makespan
        7
    """

def select_activations(
    layers: Sequence[ActivationLayer],
    budget: int,
    bytes_per_time: float,
    *,
    forward_traffic_bytes: int = 0,
    backward_traffic_bytes: int = 0,
    in_flight: int = 1,
    effort: Effort = "normal",
    labels: Optional[int] = None,
) -> ActivationsResult:
    """Selects for each module to keep, recompute or offload its activations, within a budget of bytes.

    Args:
        layers: the layers in the order of the forward pass.
        budget: the most bytes on the device.
        bytes_per_time: the bytes that the link to the host transfers in one unit of time in each
            direction; 0 if nothing can be offloaded.
        forward_traffic_bytes: other bytes that the link sends during the forward passes of all
            layers, spread evenly.
        backward_traffic_bytes: other bytes that the link fetches during their backward passes.
        in_flight: the number of micro-batches whose activations are kept at the same time.
        effort: 'fast', 'normal' or 'thorough'; more effort takes more time.
        labels: the most partial solutions after each module. Default: 32, 128 or 2048 by effort.

    Returns:
        An `ActivationsResult`; its status is 'infeasible' if no choices are within the budget.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> layer = omnibal.ActivationLayer([10, 40], [1, 9], 8, 16)
        >>> found = omnibal.select_activations([layer] * 4, 160, bytes_per_time=1.0)
        >>> found
        ActivationsResult(solved, added time 1, at least 1, proven, peak 158 bytes)
        >>> found.choices[0]
        ['recompute', 'offload']
    """

def activation_frontier(
    layers: Sequence[ActivationLayer],
    budgets: Integers,
    bytes_per_time: float,
    *,
    forward_traffic_bytes: int = 0,
    backward_traffic_bytes: int = 0,
    in_flight: int = 1,
    effort: Effort = "normal",
    labels: Optional[int] = None,
) -> List[ActivationsResult]:
    """Selects activations for several budgets; a larger budget never adds more time.

    Args:
        layers: the layers in the order of the forward pass.
        budgets: the most bytes on the device, one number for each result.
        bytes_per_time: the bytes that the link to the host transfers in one unit of time in each
            direction; 0 if nothing can be offloaded.
        forward_traffic_bytes: other bytes that the link sends during the forward passes of all
            layers, spread evenly.
        backward_traffic_bytes: other bytes that the link fetches during their backward passes.
        in_flight: the number of micro-batches whose activations are kept at the same time.
        effort: 'fast', 'normal' or 'thorough'; more effort takes more time.
        labels: the most partial solutions after each module. Default: 32, 128 or 2048 by effort.

    Returns:
        An `ActivationsResult` for each budget, in the order of `budgets`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> layer = omnibal.ActivationLayer([10, 40], [1, 9], 8, 16)
        >>> found = omnibal.activation_frontier([layer] * 4, [60, 160, 200], 0.0)
        >>> [one.added_time for one in found]
        [29, 9, 0]
    """

def measure_activations(
    layers: Sequence[ActivationLayer],
    choices: Sequence[Sequence[ActivationChoice]],
    bytes_per_time: float,
    *,
    forward_traffic_bytes: int = 0,
    backward_traffic_bytes: int = 0,
    in_flight: int = 1,
) -> ActivationUsage:
    """Computes the bytes on the device and the added time of given choices for activations.

    Args:
        layers: the layers in the order of the forward pass.
        choices: for each layer a list with 'keep', 'recompute' or 'offload' for each module.
        bytes_per_time: the bytes that the link to the host transfers in one unit of time in each
            direction; 0 if there is no link.
        forward_traffic_bytes: other bytes that the link sends during the forward passes of all
            layers, spread evenly.
        backward_traffic_bytes: other bytes that the link fetches during their backward passes.
        in_flight: the number of micro-batches whose activations are kept at the same time.

    Returns:
        An `ActivationUsage`.

    Raises:
        ValueError: if an argument is wrong; the text names the argument and its value.

    Example:
        >>> layer = omnibal.ActivationLayer([10, 40], [1, 9], 8, 16)
        >>> omnibal.measure_activations([layer] * 2, [["keep", "recompute"], ["keep", "keep"]], 0.0)
        ActivationUsage(added time 9, peak 60 bytes)
    """
