#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The policies of a file decide which operations PyTorch computes a second time. Exit status 77: no
# python3 has PyTorch.
#
# usage: checkpoint_policy.sh PYTHON_FOLDER PLAN_OFFLOAD
set -eu
folder=$(realpath "$1")
. "$(dirname "$0")/find_torch.sh"

echo '{"layers":[{"up":"MUST_SAVE","down":"MUST_RECOMPUTE"},{"up":"MUST_CPU_OFFLOAD","down":"MUST_SAVE"}]}' \
  >policies.json
PYTHONPATH="$folder" PYTHONDONTWRITEBYTECODE=1 "$python" - <<'PYTHON'
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import checkpoint_policy


class Counted(TorchDispatchMode):
    """Counts the matrix products by their number of columns."""

    def __init__(self):
        super().__init__()
        self.counts = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.mm.default:
            columns = args[1].size(1)
            self.counts[columns] = self.counts.get(columns, 0) + 1
        return function(*args, **(kwargs or {}))


policies = checkpoint_policy.read_policies("policies.json")
calls = [("aten::mm", "up"), ("aten::mm", "down")]
x = torch.randn(3, 5, requires_grad=True)
up, down = torch.randn(5, 11, requires_grad=True), torch.randn(11, 7, requires_grad=True)


def block(given):
    return torch.tanh(torch.tanh(given @ up) @ down)


def products(context_fn):
    """Returns how often each product of the forward pass ran, and the gradient."""
    x.grad = None
    with Counted() as counted:
        checkpoint(block, x, use_reentrant=False, context_fn=context_fn).sum().backward()
    # Each product has two more in the backward pass, with other columns.
    return counted.counts[11], counted.counts[7], x.grad.clone()


saved = products(checkpoint_policy.contexts({"up": "MUST_SAVE", "down": "MUST_SAVE"}, calls))
made = products(checkpoint_policy.contexts(policies[0], calls))
assert made[0] == saved[0], made
assert made[1] == saved[1] + 1, made
assert torch.equal(made[2], saved[2])


def refused(action, text):
    try:
        action()
    except (ValueError, KeyError) as error:
        assert text in str(error), error
        return
    raise AssertionError("accepted, expected: " + text)


refused(lambda: checkpoint_policy.contexts(policies[1], calls), "up: MUST_CPU_OFFLOAD")
refused(lambda: checkpoint_policy.contexts(policies[0], [("aten::mm", "middle")]), "middle")
checkpoint_policy.contexts(policies[1], calls, offload="compiled")
PYTHON
