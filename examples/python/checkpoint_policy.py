# SPDX-License-Identifier: Apache-2.0
"""Policies of selective activation checkpointing in PyTorch from a file of omnibal, which
`write_checkpoint_policies` and `plan_vlm --offload --output` write:

    layers = read_policies("plan/6+20B.policies.json")
    calls = [("aten::mm", "up"), ("aten::mm", "down")]
    y = checkpoint(block, x, use_reentrant=False, context_fn=contexts(layers[3], calls))

PyTorch decides for each operation. `calls` therefore lists the operations of the forward pass of a
layer in order, each with its module of the file. Operations that are not listed are recomputed.
"""

import collections
import json


def read_policies(path):
    """Returns for each layer the policy of each module."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)["layers"]


def contexts(policies, calls, offload="refused"):
    """Returns the argument `context_fn` of `torch.utils.checkpoint.checkpoint` for a layer.

    Eager PyTorch recomputes an operation with the policy MUST_CPU_OFFLOAD, and older versions
    do not know it. The policy is therefore refused unless `offload` is "compiled", for layers that
    `torch.compile` compiles. In eager mode use saved-tensor hooks, as measure_offload.py does.
    """
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    by_operation = collections.defaultdict(list)
    for operation, module in calls:
        if module not in policies:
            raise KeyError(f"the file has no module {module}, only {', '.join(policies)}")
        name = policies[module]
        if name == "MUST_CPU_OFFLOAD" and offload != "compiled":
            raise ValueError(f"{module}: MUST_CPU_OFFLOAD is not executed by eager PyTorch")
        if name not in CheckpointPolicy.__members__:
            raise ValueError(f"{module}: this version of PyTorch has no policy {name}")
        by_operation[operation].append(CheckpointPolicy[name])

    def make():
        # The forward pass and its repetition each count the calls of an operation.
        counts = collections.Counter()

        def policy(context, operation, *_, **__):
            name = operation.name().split(".")[0]
            known = by_operation.get(name, [])
            number = counts[context.is_recompute, name]
            counts[context.is_recompute, name] += 1
            return known[number] if number < len(known) else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(policy)

    return make
