#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The policies of a file decide which operations PyTorch computes a second time, eagerly and compiled.
# Exit status 77: no python3 has PyTorch.
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

# All choices for three modules: the products that run in the backward pass again are those of the
# recomputed modules. Compiled, this is so in the graph of the backward pass, also with offloading.
PYTHONPATH="$folder" PYTHONDONTWRITEBYTECODE=1 "$python" - <<'PYTHON'
import collections
import itertools
import json

import torch
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import CheckpointPolicy, checkpoint

import checkpoint_policy

names = ["first", "second", "third"]
calls = [("aten::mm", name) for name in names]
kinds = ["MUST_SAVE", "MUST_RECOMPUTE"]
if "MUST_CPU_OFFLOAD" in CheckpointPolicy.__members__:
    kinds.append("MUST_CPU_OFFLOAD")
plan = [dict(zip(names, row)) for row in itertools.product(kinds, repeat=len(names))]
with open("plan.json", "w", encoding="utf-8") as file:
    json.dump({"layers": plan}, file)

torch.manual_seed(1)
widths = [5, 11, 7, 13]
x = torch.randn(3, widths[0], requires_grad=True)
weights = [torch.randn(a, b, requires_grad=True) for a, b in zip(widths, widths[1:])]


def block(given, *factors):
    for factor in factors:
        given = torch.tanh(given @ factor)
    return given


class Products(TorchDispatchMode):
    """Counts matrix products by the shapes of their arguments."""

    def __init__(self):
        super().__init__()
        self.counts = collections.Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.mm.default:
            self.counts[tuple(args[0].shape), tuple(args[1].shape)] += 1
        return function(*args, **(kwargs or {}))


def eager(context_fn):
    with Products() as products:
        result = checkpoint(block, x, *weights, use_reentrant=False, context_fn=context_fn)
        gradients = torch.autograd.grad(result.sum(), [x, *weights])
    return products.counts, gradients


def compiled(context_fn):
    counts = collections.Counter()

    def count(graph, _):
        for node in graph.graph.nodes:
            if node.target is torch.ops.aten.mm.default:
                counts[tuple(tuple(one.meta["val"].shape) for one in node.args)] += 1
        return make_boxed_func(graph.forward)

    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=count, bw_compiler=count,
                           partition_fn=min_cut_rematerialization_partition)

    def call(given, *factors):
        return checkpoint(block, given, *factors, use_reentrant=False, context_fn=context_fn)

    result = torch.compile(call, backend=backend, fullgraph=True)(x, *weights)
    gradients = torch.autograd.grad(result.sum(), [x, *weights])
    return counts, gradients


for run, offload in ((eager, "refused"), (compiled, "compiled")):
    saved, expected = run(checkpoint_policy.contexts(plan[0], calls, offload=offload))
    tried = 0
    for policies in checkpoint_policy.read_policies("plan.json"):
        if run is eager and "MUST_CPU_OFFLOAD" in policies.values():
            continue
        counts, gradients = run(checkpoint_policy.contexts(policies, calls, offload=offload))
        again = [name for name, weight, width in zip(names, weights, widths)
                 if counts[(3, width), tuple(weight.shape)] > saved[(3, width), tuple(weight.shape)]]
        assert again == [name for name in names if policies[name] == "MUST_RECOMPUTE"], (policies, again)
        assert sum(counts.values()) == sum(saved.values()) + len(again), counts
        assert all(torch.allclose(a, b) for a, b in zip(gradients, expected)), policies
        tried += 1
    print(f"{run.__name__}: the plans of {tried} layers recompute their operations")
PYTHON
