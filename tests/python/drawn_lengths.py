# SPDX-License-Identifier: Apache-2.0
"""Lengths for the tests of the interfaces of other systems."""

import numpy as np


def drawn_lengths(random, count, most):
    """Equal, even and heavy-tailed lengths."""
    kind = random.randint(3)
    if kind == 0:
        return random.randint(1, most + 1, count).tolist()
    if kind == 1:
        return np.clip(random.lognormal(np.log(most) - 2, 1, count), 1, most).astype(int).tolist()
    return random.choice([most // 2, most // 2 + 1, most // 3 + 1, 1], count).tolist()


def flat(lists):
    return [i for one in lists for i in one]
