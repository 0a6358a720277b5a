# SPDX-License-Identifier: Apache-2.0
"""The calls of the package and the calls of the library: what Python lacks has a reason."""

import os
import pathlib
import re
import unittest

import omnibal
import stays_out

ROOT = pathlib.Path(os.environ["OMNIBAL_ROOT"])
INCLUDE = ROOT / "include" / "omnibal"
# Python has no streams of CUDA and no communicators of NCCL.
WITHOUT = ("cuda", "nccl")


def listed_names():
    """The public names with their headers, from docs/reference/api.md, without those of devices."""
    group = ""
    for line in (ROOT / "docs/reference/api.md").read_text().splitlines():
        group = (re.match(r"<!-- group (\w+) -->", line) or [group, group])[1]
        row = re.match(r"\| `([\w:]+)` \| .* \| `([\w/.]+)` \|$", line)
        if row and group not in WITHOUT:
            yield row.groups()


def is_call(name, text):
    """Whether a name is a function object, a function, or a class that is no workspace or view."""
    name = name.split("::")[-1]
    if re.search(r"inline constexpr %s_fn %s\b" % (name, name), text):
        return True
    if re.search(r"^class %s\b[^;]*\{" % name, text, re.M):
        return not name.endswith(("_workspace", "_error", "error"))
    return bool(re.search(r"^(?:\[\[nodiscard\]\] |inline |constexpr )+[\w:<>, ]+ %s\(" % name, text, re.M))


def calls():
    """The calls of the library."""
    return {name for name, header in listed_names() if is_call(name, (INCLUDE / header).read_text())}


def in_python(name):
    """The object of Python for a call of the library, or None."""
    python = stays_out.OTHER_NAMES.get(name, name)
    if name not in stays_out.OTHER_NAMES and not hasattr(omnibal, name):
        python = "".join(word.title() for word in name.split("_"))
    found = omnibal
    for part in python.split("."):
        found = getattr(found, part, None)
    return found


class Parity(unittest.TestCase):
    def test_what_python_lacks_has_a_reason(self):
        lacking = {name for name in calls() if in_python(name) is None}
        named = [name for names in stays_out.REASONS.values() for name in names]
        self.assertEqual(len(named), len(set(named)), "a name has two reasons")
        self.assertEqual(lacking - set(named), set(), "bind these, or give a reason in stays_out.py")
        self.assertEqual(set(named) - lacking, set(), "Python has these, or they are no calls")
        self.assertEqual(set(stays_out.OTHER_NAMES) - calls(), set())

    def test_what_python_has_is_a_call_of_the_library(self):
        has = {name: getattr(omnibal, name) for name in omnibal.__all__}
        functions = {name for name, it in has.items() if callable(it) and not isinstance(it, type)}
        self.assertEqual(functions - calls(), set())
        self.assertGreater(len(functions), 50)

    def test_the_list_is_not_empty(self):
        self.assertGreater(len(calls()), 150)
        self.assertLessEqual({"lpt", "rebalance", "epoch_sampler", "make_plan", "divisors"}, calls())


if __name__ == "__main__":
    unittest.main()
