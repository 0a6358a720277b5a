# SPDX-License-Identifier: Apache-2.0
"""LightBinPack's `pack` and the functions behind it, but for those of unlike nodes.

There are never more bins than `obfd` and `ogbfd` have there: for one length the best fit of the
largest first is the same algorithm, which `ffd` is here, too. Groups of bins for data-parallel
ranks have even sums of squares, and no sample is repeated to fill the last group.
"""

from enum import Enum
from fractions import Fraction
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from .. import _core
from ._integers import MOST, named, numbers, whole_number, whole_numbers

Number = Union[int, float]


class PackingStrategy(Enum):
    """The strategies of `pack` by their names there."""

    NF = "nf"
    FFD = "ffd"
    BFD = "bfd"
    OBFD = "obfd"
    OBFDP = "obfdp"
    OGBFD = "ogbfd"
    OGBFDP = "ogbfdp"


class PackingVariant(Enum):
    """What the work of a sample grows with: `pack` groups bins where it is the square."""

    LINEAR = "linear"
    SQUARE = "square"


def _to_integers(lengths: Sequence[Number], capacity: Number) -> Tuple[np.ndarray, int]:
    """Floating-point lengths as whole multiples of a power of two, exactly."""
    given = numbers(lengths, "lengths")
    try:
        most = Fraction(capacity)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            "omnibal: batch_max_length is %r, must be a finite number" % (capacity,)
        ) from None
    if given.dtype.kind == "i" and most.denominator == 1:
        return given, whole_number(most, "batch_max_length")
    exact = [Fraction(length) for length in given.tolist()]
    unit = max(length.denominator for length in [*exact, most])
    whole = [int(length * unit) for length in exact]
    if any(unit % number.denominator for number in [*exact, most]):
        raise ValueError("omnibal: batch_max_length is %s, must be a float or an int" % capacity)
    if max(abs(length) for length in [*whole, int(most * unit)]) >= 1 << 62:
        raise ValueError(
            "omnibal: lengths are whole multiples of 1/%d, which leaves 64 bits; round them" % unit
        )
    return np.array(whole, dtype=np.int64), int(most * unit)


def _bins(packing: _core.Packing, capacity: Number) -> List[List[int]]:
    if packing.oversized.size:
        raise ValueError(
            "omnibal: item %d exceeds batch_max_length %s"
            % (packing.oversized[0], capacity)
        )
    return packing.groups.tolist()


def _check_longest(lengths: Sequence[Number], item_max_length: int) -> None:
    given = numbers(lengths, "lengths")
    if given.size and 0 <= item_max_length < given.max():
        raise ValueError(
            "omnibal: a length is %s, must be at most item_max_length, %s"
            % (given.max(), item_max_length)
        )


@named
def nf(lengths: Sequence[Number], batch_max_length: Number) -> List[List[int]]:
    """Next fit: the order stays."""
    whole, capacity = _to_integers(lengths, batch_max_length)
    return _bins(_core.next_fit(whole, capacity), batch_max_length)


@named
def bfd(lengths: Sequence[Number], batch_max_length: Number) -> List[List[int]]:
    """Best fit of the largest first."""
    whole, capacity = _to_integers(lengths, batch_max_length)
    return _bins(_core.best_fit_decreasing(whole, capacity), batch_max_length)


@named
def ffd(lengths: Sequence[Number], batch_max_length: Number) -> List[List[int]]:
    """Best fit too, which takes no more bins in the mean and no more time."""
    return bfd(lengths, batch_max_length)


@named
def obfd(
    lengths: Sequence[Number], batch_max_length: Number, item_max_length: int = -1
) -> List[List[int]]:
    """As `bfd`; a length above an `item_max_length` that is not negative is an error."""
    _check_longest(lengths, item_max_length)
    return bfd(lengths, batch_max_length)


@named
def ogbfd(
    lengths: Sequence[Number],
    batch_max_length: Number,
    bins_per_group: int = 1,
    item_max_length: int = -1,
    strategy: int = 0,
) -> List[List[List[int]]]:
    """Groups of so many bins with even sums of squares."""
    if len(lengths) == 0:
        return []
    _check_longest(lengths, item_max_length)
    bins_per_group = whole_number(bins_per_group, "bins_per_group", 1)
    whole, capacity = _to_integers(lengths, batch_max_length)
    longest = int(whole.max())
    work = whole * whole
    if longest * longest * whole.size > MOST:
        work = numbers(lengths, "lengths").astype(np.float64) ** 2
    steps = _core.micro_batches(work, bins_per_group, whole, capacity)
    bins = steps.cells.tolist()
    return [bins[g : g + bins_per_group] for g in range(0, len(bins), bins_per_group)]


def _to_enum(kind: Any, name: str, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    text = value.value if isinstance(value, Enum) else str(value).lower()
    try:
        return kind(text)
    except ValueError:
        raise ValueError("omnibal: invalid %s: %s" % (name, value)) from None


@named
def pack(
    lengths: Sequence[Number],
    batch_max_length: Any,
    strategy: Any = None,
    variant: Any = None,
    dp_size: int = 1,
    item_max_length: int = -1,
    enable_parallel: bool = False,
    parallel_strategy: int = 0,
    weights: Optional[Sequence[int]] = None,
    random_seed: Optional[int] = None,
    add_noise: bool = False,
    noise_scale: float = 0.01,
) -> Any:
    """Bins, or groups of `dp_size` bins, as LightBinPack chooses between them.

    `enable_parallel` and `parallel_strategy` change nothing but the time there, and nothing here.
    A length above an `item_max_length` that is not negative is an error. With `add_noise`
    the samples are taken as slightly longer or shorter than they are, as there, and the capacity
    holds for what they are taken for.
    """
    if isinstance(batch_max_length, (list, tuple)):
        raise ValueError(
            "omnibal: batch_max_length is a list, must be a number: bins of "
            "unlike nodes are not offered"
        )
    if weights is not None:
        raise ValueError("omnibal: weights are given, must be None: they are not offered")
    if strategy is not None:
        kind = _to_enum(PackingStrategy, "strategy", strategy)
    elif variant is None or _to_enum(PackingVariant, "variant", variant) is PackingVariant.SQUARE:
        kind = PackingStrategy.OGBFD
    else:
        kind = PackingStrategy.OBFD
    if len(lengths) == 0:
        return []
    if random_seed is not None and not add_noise:
        raise ValueError("omnibal: random_seed is %s, must be None without add_noise" % random_seed)
    if add_noise:
        if kind in (PackingStrategy.NF, PackingStrategy.FFD, PackingStrategy.BFD):
            raise ValueError("omnibal: add_noise is not supported for NF, FFD, and BFD")
        # Noise is whole numbers, in the unit of the lengths.
        given = whole_numbers(lengths, "lengths with add_noise")
        most = max(1, int(given.max() * noise_scale))
        noise = np.random.RandomState(random_seed).randint(-most, most + 1, size=given.size)
        lengths = np.clip(given + noise, 1, batch_max_length).tolist()
    _check_longest(lengths, item_max_length)
    if kind is PackingStrategy.NF:
        return nf(lengths, batch_max_length)
    if kind in (PackingStrategy.OGBFD, PackingStrategy.OGBFDP):
        return ogbfd(lengths, batch_max_length, dp_size)
    return bfd(lengths, batch_max_length)
