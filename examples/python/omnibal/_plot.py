# SPDX-License-Identifier: Apache-2.0
"""The chart of Packing.plot. matplotlib is imported only if a chart is drawn."""

from typing import Any

import numpy as np

from ._core import Packing, group_loads


def plot_fill(packing: Packing, demands: Any, capacity: Any, axes: Any) -> Any:
    """Draws the used share of the capacity of each group, the fullest group first."""
    if axes is None:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError("omnibal.Packing.plot needs matplotlib: pip install matplotlib") from error
        axes = pyplot.subplots()[1]
    loads = group_loads(packing.groups, demands).reshape(len(packing), np.size(capacity))
    shares = loads / np.asarray(capacity, dtype=np.float64)
    places = np.arange(1, len(packing) + 1)
    for resource, column in enumerate(shares.T):
        label = "resource %d, mean %.1f %%" % (resource, 100 * column.mean() if len(column) else 0)
        axes.step(places, -np.sort(-column), where="mid", label=label)
    axes.axhline(1, color="gray", linestyle="--", label="capacity")
    axes.set_xlabel("groups, the fullest first")
    axes.set_ylabel("used share of the capacity")
    axes.set_ylim(bottom=0)
    axes.set_title(repr(packing))
    axes.legend()
    return axes
