# SPDX-License-Identifier: Apache-2.0
"""Writes the docstrings of the package as constants of C++: docstrings.py INCLUDE STUBS OUTPUT.

The docstring of a function has the text of the stubs, then its contract: the first block of `///`
in `struct name_fn` of its header. The docstring of a class has the text of the stubs, then, for a
class of the library, the block before that class. The docstring of a method is the text of the stubs.
Docstrings of functions and methods begin with the signature, in the form that CPython takes out of a
docstring for inspect.signature.
"""

import ast
import pathlib
import re
import sys

ALGORITHMS = {
    "next_fit": "pack/next_fit",
    "isf": "pack/isf",
    "best_fit_decreasing": "pack/best_fit_decreasing",
    "pack_padded": "pack/pack_padded",
    "count_samples": "pack/sample_histogram",
    "pack_histogram": "pack/pack_histogram",
    "best_patterns": "pack/best_patterns",
    "share_of_shard": "pack/share_of_shard",
    "place_samples": "pack/place_samples",
    "best_packing": "pack/best_packing",
    "improve_packing": "pack/improve_packing",
    "packing_bound": "pack/packing_bound",
    "tune_capacity": "pack/tune_capacity",
    "place_oversized": "pack/place_oversized",
    "split_long": "pack/split_long",
    "pack_levels": "hierarchy/pack_levels",
    "cu_seqlens": "pack/cu_seqlens",
    "pack_prefixes": "prefix/pack_prefixes",
    "build_prefix_forest": "prefix/build_prefix_forest",
    "prefix_bound": "prefix/prefix_bound",
    "balance_prefixes": "prefix/balance_prefixes",
    "prefix_work_of": "prefix/prefix_work",
    "prefix_exchange": "prefix/prefix_exchange",
    "layout_prefixes": "prefix/prefix_layout",
    "prefix_loss_weights": "prefix/prefix_layout",
    "slice_prefixes": "prefix/prefix_masks",
    "block_prefixes": "prefix/prefix_masks",
    "slice_sequence": "pipeline/slice_sequences",
    "slice_sequences": "pipeline/slice_sequences",
    "place_experts": "experts/place_experts",
    "split_experts": "experts/split_experts",
    "spill_experts": "experts/spill_experts",
    "group_loads": "group_loads",
    "lpt": "balance/lpt",
    "karmarkar_karp": "balance/karmarkar_karp",
    "deal": "balance/deal",
    "refine_parts": "balance/refine_parts",
    "rebalance": "balance/rebalance",
    "balance_optimally": "balance/balance_optimally",
    "balance_set_cost": "balance/balance_set_cost",
    "bundle_by": "sample/bundles",
    "bundle_loads": "sample/bundles",
    "unbundle": "sample/bundles",
    "balance_under_capacity": "balance/balance_under_capacity",
    "micro_batches": "balance/micro_batches",
    "optimizer_steps": "balance/optimizer_steps",
    "schedule_steps": "balance/schedule_steps",
    "loss_normalizer": "sample/loss_normalizer",
    "unscheduled_groups": "balance/schedule_steps",
    "step_overlap": "metrics",
    "step_spread": "step_spread",
    "attention_balance": "metrics",
    "communication_ratio": "metrics",
    "level_steps": "hierarchy/level_steps",
    "pad_ratio": "metrics",
    "dist_ratio": "metrics",
    "imbalance": "metrics",
    "utilization": "metrics",
    "affine_fit": "cost/affine_fit",
    "partition_minimax": "partition/partition_minimax",
    "partition_layers": "partition/partition_layers",
    "partition_throughput": "partition/partition_throughput",
    "select_recompute": "recompute/select_recompute",
    "plan_pipeline": "plan/plan_pipeline",
    "context_groups": "context/context_groups",
    "context_pieces": "context/context_pieces",
    "padded_piece_tokens": "context/context_pieces",
    "context_exchange": "context/context_exchange",
    "make_plan": "exchange/make_plan",
    "compose": "exchange/compose",
    "placement": "exchange/placement",
    "make_orchestration": "exchange/make_orchestration",
    "simulate_pipeline": "pipeline/simulate_pipeline",
    "order_micro_batches": "pipeline/order_micro_batches",
    "largest_in_middle": "pipeline/order_micro_batches",
    "list_schedule": "pipeline/list_schedule",
    "fit_machine": "cost/fit_machine",
    "predict_step": "plan/predict_step",
    "plan_configuration": "plan/plan_configuration",
    "peak_in_flight": "pipeline/schedule",
    "chunks_in_flight": "pipeline/chunks_in_flight",
    "estimate_makespan": "pipeline/estimate_makespan",
    "write_trace": "pipeline/write_trace",
    "place_encoder": "pipeline/place_encoder",
    "simulate_encoder": "pipeline/simulate_encoder",
    "select_activations": "recompute/select_activations",
    "activation_frontier": "recompute/activation_frontier",
    "measure_activations": "recompute/measure_activations",
    "capacity_warnings": "pack/capacity_warnings",
    "level_metrics": "hierarchy/level_metrics",
    "two_point_probe": "cost/two_point_probe",
    "measured_table": "cost/measured_table",
    "tabulate_context_cost": "context/context_cost",
}
CLASSES = {
    "online_packer": "pack/online_packer",
    "online_padded_packer": "pack/online_padded_packer",
    "epoch_sampler": "sample/epoch_sampler",
    "step_sampler": "sample/step_sampler",
    "level_sampler": "sample/level_sampler",
    "deferral_queue": "context/deferral_queue",
    "mixture": "sample/mixture",
    "batch_mixture": "sample/batch_mixture",
    "sample_histogram": "pack/sample_histogram",
    "prefix_forest": "prefix/prefix_forest",
    "checkpoint_line": "cost/two_point_probe",
    "measured_cost": "cost/measured_table",
}

DETAILS = "Details, with the names of C++, where `options.x` is the argument `x`:"


def block_at(lines, first):
    """The text of the `///` lines from `first` on."""
    block = []
    for line in lines[first:]:
        match = re.match(r"\s*///( ?)(.*)", line)
        if not match:
            break
        block.append(match.group(2))
    return "\n".join(block)


def docstring(include, name, header):
    """The comment of an algorithm or a class."""
    lines = (include / "omnibal" / (header + ".hpp")).read_text().splitlines()
    if name in ALGORITHMS:
        start = lines.index("struct %s_fn {" % name) + 1
        while not lines[start].lstrip().startswith("///"):
            start += 1
        text = block_at(lines, start)
    else:
        place = next(i for i, line in enumerate(lines)
                     if re.match(r"class %s\b[^;]*$" % name, line))
        while not lines[place - 1].startswith("///"):
            place -= 1
        first = place
        while lines[first - 1].startswith("///"):
            first -= 1
        text = block_at(lines, first)
    if not text:
        raise SystemExit("docstrings.py: %s has no comment" % name)
    return text


def signed(name, arguments, text):
    """A docstring that begins with a signature, without annotations."""
    for argument in [*arguments.args, *arguments.kwonlyargs, arguments.kwarg]:
        if argument:
            argument.annotation = None
    return "%s(%s)\n--\n\n%s" % (name, ast.unparse(arguments), text)


def with_contract(node, contract):
    """The text of the stubs and a comment of a header."""
    return ast.get_docstring(node) + "\n\n" + DETAILS + "\n\n" + contract


def class_name(name):
    """The name in Python of a class of the library."""
    return "".join(word.title() for word in name.split("_"))


def methods_of(node):
    """The methods of a class of the stubs, without properties."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef):
            if not any(getattr(d, "id", "") == "property" for d in method.decorator_list):
                yield method


def all_docstrings(include, stubs):
    """The docstring of each function, Class and Class_method; Class_init has only a signature."""
    of_library = {class_name(name): name for name in CLASSES}
    result = {}
    for node in ast.parse(stubs.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            text = with_contract(node, docstring(include, node.name, ALGORITHMS[node.name]))
            result[node.name] = signed(node.name, node.args, text)
        elif isinstance(node, ast.ClassDef):
            result[node.name] = ast.get_docstring(node)
            if node.name in of_library:
                name = of_library[node.name]
                contract = docstring(include, name, CLASSES[name])
                result[node.name] = with_contract(node, contract)
        for method in methods_of(node) if isinstance(node, ast.ClassDef) else ():
            text = ast.get_docstring(method) or ""
            if text or method.name == "__init__":
                name = node.name + "_" + method.name.strip("_")
                result[name] = signed(method.name, method.args, text)
    return result


def main():
    include, stubs, output = map(pathlib.Path, sys.argv[1:4])
    parts = ["#pragma once\n\n/// The docstrings of the package; written by docstrings.py.\n\n"
             "namespace docstrings {\n"]
    for name, text in all_docstrings(include, stubs).items():
        parts.append('\ninline constexpr char %s[] = R"doc(%s)doc";\n' % (name, text))
    parts.append("\n}  // namespace docstrings\n")
    text = "".join(parts)
    if not output.exists() or output.read_text() != text:
        output.write_text(text)


if __name__ == "__main__":
    main()
