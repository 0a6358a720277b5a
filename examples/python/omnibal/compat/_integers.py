# SPDX-License-Identifier: Apache-2.0
"""Numbers of callers as integers of 64 bits, and errors that name the function that was called.

A float that is a whole number is welcome. Any other fraction is a ValueError, never cut off.
"""

import functools
import re
from fractions import Fraction
from typing import Any, Callable, List, Optional, TypeVar, cast

import numpy as np

MOST = (1 << 63) - 1

LINEAR_COST = 24576
"""The cost of a token in pairs of tokens: six times a hidden size of 4,096, as in verl."""

_PREFIX = re.compile(r"omnibal(::|\.)?[\w.]*: ")

Function = TypeVar("Function", bound=Callable[..., Any])


def named(function: Function) -> Function:
    """Lets the library's errors name this function of an adapter."""
    name = function.__module__ + "." + function.__qualname__.replace(".__init__", "")

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        """The function, with its name in errors."""
        try:
            return function(*args, **keywords)
        except (ValueError, OverflowError) as error:
            text = str(error)
            match = _PREFIX.match(text)
            if match is None:
                raise
            raise ValueError("%s: %s" % (name, text[match.end() :])) from None

    return cast(Function, call)


def whole_number(value: Any, name: str, least: Optional[int] = None) -> int:
    """One integer of 64 bits."""
    try:
        exact = Fraction(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, OverflowError, AttributeError):
        raise ValueError("omnibal: %s is %r, must be an integer" % (name, value)) from None
    if exact.denominator != 1 or isinstance(value, str):
        raise ValueError("omnibal: %s is %s, must be an integer" % (name, value))
    result = int(exact)
    if abs(result) > MOST:
        raise ValueError("omnibal: %s is %d, must be at most %d" % (name, result, MOST))
    if least is not None and result < least:
        raise ValueError("omnibal: %s is %d, must be at least %d" % (name, result, least))
    return result


def as_array(values: Any, name: str) -> np.ndarray:
    """A list of numbers, or an array of them."""
    try:
        given = np.asarray(values)
    except (TypeError, ValueError):
        raise ValueError("omnibal: %s is no list of numbers" % name) from None
    if given.ndim == 0 or given.dtype.kind not in "iufO" and given.size != 0:
        raise ValueError("omnibal: %s is no list of numbers" % name)
    return given


def whole_numbers(values: Any, name: str, least: Optional[int] = None) -> np.ndarray:
    """Integers as an array of int64 of the same shape."""
    given = as_array(values, name)
    if given.size == 0:
        return np.zeros(given.shape, dtype=np.int64)
    if given.dtype.kind in "fO":
        # A list with a float loses integers above 2^53 as an array.
        flat = np.asarray(values, dtype=object).ravel().tolist()
        whole = [whole_number(value, "an element of " + name) for value in flat]
        given = np.array(whole, dtype=np.int64).reshape(given.shape)
    elif given.dtype.kind == "u" and int(given.max()) > MOST:
        whole_number(int(given.max()), "an element of " + name)
    if least is not None and int(given.min()) < least:
        raise ValueError(
            "omnibal: an element of %s is %d, must be at least %d" % (name, given.min(), least)
        )
    return given.astype(np.int64, copy=False)


def numbers(values: Any, name: str) -> np.ndarray:
    """Integers as int64, or floating-point numbers as they are."""
    given = as_array(values, name)
    if given.dtype.kind != "f":
        return whole_numbers(values, name)
    if not np.isfinite(given).all():
        raise ValueError("omnibal: an element of %s is not finite" % name)
    return given.astype(np.float64, copy=False)


def workload(lengths: np.ndarray, linear: int, name: str) -> np.ndarray:
    """The pairs of tokens of sequences, and `linear` for each token, where they stay in 64 bits."""
    longest = int(lengths.max()) if lengths.size else 0
    if longest * (linear + longest) > MOST:
        raise ValueError(
            "omnibal: an element of %s is %d, its workload leaves 64 bits" % (name, longest)
        )
    result: np.ndarray = linear * lengths + lengths * lengths
    return result


def fill_rows(rows: List[List[int]], work: Any) -> List[List[int]]:
    """The rows, of which each empty one gets the lightest sample of a row with several. No row
    becomes heavier. There must be at least as many samples as rows."""
    for row in rows:
        if not row:
            giver = max((r for r in rows if len(r) > 1), key=lambda r: sum(work[i] for i in r))
            sample = min(giver, key=lambda i: work[i])
            giver.remove(sample)
            row.append(sample)
    return rows
