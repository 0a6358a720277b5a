# SPDX-License-Identifier: Apache-2.0
"""The calls of the library that the package for Python does not have by their names.

parity_test.py compares this table with docs/reference/api.md: a new call of the library needs a
function of Python or a line here.
"""

# A call of the library, and what has its work in Python.
OTHER_NAMES = {
    "attention_spans": "LanguageModel.layer_costs",
    "count_parameters": "LanguageModel.parameters",
    "document_cost": "LanguageModel.document_cost",
    "dual_pipe_v": "simulate_pipeline",
    "grouping": "Groups",
    "layer_costs": "LanguageModel.layer_costs",
    "micro_batch_steps": "Steps",
    "orchestrate": "make_orchestration",
    "padded_attention": "balance_set_cost",
    "padded_batch": "balance_set_cost",
    "plan_exchange": "make_plan",
    "recompute_lists": "PipelinePlan.recompute_lists",
    "sequences_of": "LanguageModel.layer_costs",
    "step_cells": "Steps",
    "timed_layers": "LanguageModel.layer_costs",
    "unmasked_pack": "balance_set_cost",
    "v_half": "simulate_pipeline",
    "v_min": "simulate_pipeline",
    "write_megatron_layout": "PipelinePlan.megatron_layout",
    "write_plan": "PipelinePlan.to_json",
    "write_schedule": "ListedSchedule.to_csv",
    "zb_v": "simulate_pipeline",
}

# A reason, and the calls that stay out for it.
REASONS = {
    "Python has the collectives of its trainer: gather lengths with them and call make_plan or"
    " make_orchestration; exchange_samples.py shows the exchange with all_to_all_single": [
        "agreed",
        "all_equal",
        "all_gather",
        "c10d::communicator_ref",
        "exchange_samples",
        "gather_lengths",
        "mpi::communicator",
        "mpi::communicator_ref",
        "mpi::environment",
        "plan_dispatcher",
        "ragged",
        "self_communicator",
        "thread_communicator",
        "two_level_communicator",
    ],
    "a view or a functor of C++, where Python has arrays or an argument": [
        "aligned",
        "cut_pieces",
        "demand_of",
        "get",
        "grouping_view",
        "groups_argument",
        "join_pieces",
        "make_steps",
        "min_slack",
        "reaches_most",
        "sample_batch",
        "virtual_stage_of",
        "weight_list",
    ],
    "NumPy has it in a line: sums, ranges, means, or its own generators": [
        "divisors",
        "epoch_seed",
        "even_boundaries",
        "flops_utilization",
        "gpu_days",
        "powers_of_two",
        "repack",
        "rng::below",
        "rng::engine",
        "rng::mix",
        "rng::permutation",
    ],
    "other costs of models take nested structures of C++; the program plan_vlm reads a config.json": [
        "clip_cost",
        "equal_sequences",
        "stage_sum",
        "stage_sums",
        "tile_cost",
    ],
    "plans for several shapes of micro-batches take lists of their layers and functors of C++; Python has the"
    " layers of one shape (LanguageModel.layer_costs) for plan_pipeline": [
        "combine_shapes",
        "plan_by_parameters",
        "plan_training",
        "shape_costs",
        "simulate_training",
    ],
    "plans of offloading take layers of modules, which are nested structures of C++": [
        "activation_lists",
        "megatron_offload_flags",
        "offload_layers",
        "offload_shape_costs",
        "simulate_offload",
        "write_checkpoint_policies",
        "write_offload_plan",
    ],
    "the search calls a functor for each candidate, which is too slow from Python": [
        "cut_score",
        "neighborhood",
        "neighbors",
        "search_cuts",
    ],
    "its functor runs a trainer for each level: two_point_probe takes what such runs print": [
        "select_levels",
    ],
}
