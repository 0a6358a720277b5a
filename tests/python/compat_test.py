# SPDX-License-Identifier: Apache-2.0
"""Functions with other systems' names: the cases that those systems publish for theirs, written
anew, and properties on random lengths, beside their algorithms written anew."""

import importlib.util
import json
import os
import sys
import types
import unittest
import unittest.mock

import numpy as np
import omnibal
import rivals
from drawn_lengths import drawn_lengths, flat
from omnibal.compat import (
    areal, isf, lightbinpack, llamafactory, llava, llep, megatron, sglang, trl, veomni, verl, vllm,
)

RANDOM = np.random.RandomState(11)
ROLLOUTS = np.random.RandomState(12)


def random_lengths(count, most):
    return drawn_lengths(RANDOM, count, most)


class Trl(unittest.TestCase):
    def test_published_cases_of_bfd(self):
        self.assertEqual(
            trl.pack_examples({"input_ids": [[1, 2, 3], [4, 5, 6, 7], [8]]}, 4),
            {"input_ids": [[4, 5, 6, 7], [1, 2, 3, 8]], "seq_lengths": [[4], [3, 1]]},
        )
        self.assertEqual(
            trl.pack_examples({"input_ids": [[1, 2, 3, 4, 5], [6, 7], [8, 9, 10, 11], [12]]}, 4),
            {
                "input_ids": [[1, 2, 3, 4], [8, 9, 10, 11], [6, 7, 12]],
                "seq_lengths": [[4], [4], [2, 1]],
            },
        )

    def test_published_cases_of_bfd_split(self):
        self.assertEqual(
            trl.pack_examples(
                {"input_ids": [[1, 2, 3, 4, 5], [6, 7], [8, 9, 10], [11]]}, 4, "bfd_split"
            ),
            {
                "input_ids": [[1, 2, 3, 4], [8, 9, 10, 5], [6, 7, 11]],
                "seq_lengths": [[4], [3, 1], [2, 1]],
            },
        )
        self.assertEqual(
            trl.pack_examples(
                {"input_ids": [[1, 2, 3, 4, 5], [6, 7], [8, 9, 10, 11], [12]]}, 4, "bfd_split"
            ),
            {
                "input_ids": [[1, 2, 3, 4], [8, 9, 10, 11], [6, 7, 5, 12]],
                "seq_lengths": [[4], [4], [2, 1, 1]],
            },
        )
        one = [[1, -2, 3, -4, 5, -6], [7, -8, 9], [-10, 11, -12], [13, -14, 15, -16]]
        two = [[-value for value in row] for row in one]
        packed = trl.pack_examples({"col1": one, "col2": two}, 4, "bfd_split")
        self.assertEqual(
            packed["col1"], [[1, -2, 3, -4], [13, -14, 15, -16], [7, -8, 9], [-10, 11, -12],
                             [5, -6]])
        self.assertEqual(packed["col2"], [[-value for value in row] for row in packed["col1"]])
        self.assertEqual(packed["seq_lengths"], [[4], [4], [3], [3], [2]])
        self.assertEqual(
            trl.pack_examples(
                {"input_ids": [[1, 2, 3, 4, 5], [6], [7, 8, 9, 10], [11, 12, 13]]}, 5, "bfd_split"
            ),
            {
                "input_ids": [[1, 2, 3, 4, 5], [7, 8, 9, 10, 6], [11, 12, 13]],
                "seq_lengths": [[5], [4, 1], [3]],
            },
        )

    def test_published_cases_of_wrapped(self):
        columns = {"input_ids": [[1, 2, 3, 4, 5], [], [6, 7], [8, 9, 10, 11], [12]]}
        self.assertEqual(trl.pack_examples(columns, 3, "wrapped"),
                         {"input_ids": [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]})
        self.assertEqual(trl.wrapped([5, 0, 2], 4), [[(0, 0, 4)], [(0, 4, 5), (2, 0, 2)]])
        self.assertEqual(trl.wrapped([], 4), [])
        self.assertEqual(trl.pack_examples({"a": [[], []]}, 4, "wrapped"), {"a": []})

    @unittest.skipIf(importlib.util.find_spec("trl") is None
                     or importlib.util.find_spec("datasets") is None,
                     "TRL and datasets are not installed")
    def test_the_package(self):
        import datasets
        import trl as installed
        for _ in range(10):
            most = int(RANDOM.randint(2, 40))
            lengths = random_lengths(int(RANDOM.randint(1, 60)), 2 * most)
            rows = [np.arange(100 * i, 100 * i + n).tolist() for i, n in enumerate(lengths)]
            columns = {"input_ids": rows, "labels": [[-t for t in row] for row in rows]}
            for strategy in ("bfd", "bfd_split", "wrapped"):
                theirs = installed.pack_dataset(
                    datasets.Dataset.from_dict(columns), most, strategy)[:]
                ours = trl.pack_examples(columns, most, strategy)
                self.assertEqual(set(ours), set(theirs))
                self.assertEqual(len(ours["labels"]), len(theirs["labels"]))
                if strategy == "wrapped":
                    self.assertEqual(ours, theirs)

    def test_as_many_bins_as_trl_and_nothing_lost(self):
        for _ in range(60):
            most = int(RANDOM.randint(2, 300))
            lengths = random_lengths(int(RANDOM.randint(0, 200)), 2 * most)
            cut = [min(length, most) for length in lengths]
            bins = trl.bfd(lengths, most)
            self.assertEqual(sorted(flat(bins)), list(range(len(lengths))))
            self.assertTrue(all(sum(cut[i] for i in of) <= most for of in bins))
            self.assertEqual(len(bins), len(rivals.best_fit_decreasing(cut, most)))
            pieces = trl.bfd_split(lengths, most)
            tokens = sorted((i, t) for of in pieces for i, a, b in of for t in range(a, b))
            self.assertEqual(tokens, [(i, t) for i, n in enumerate(lengths) for t in range(n)])
            self.assertTrue(all(sum(b - a for _, a, b in of) <= most for of in pieces))
            sizes = [b - a for of in pieces for _, a, b in of]
            self.assertEqual(len(pieces), len(rivals.best_fit_decreasing(sizes, most)))

    def test_empty_examples_and_errors(self):
        self.assertEqual(trl.bfd([0, 2, 0], 4), [[1]])
        self.assertEqual(trl.bfd_split([0, 2, 0], 4), [[(1, 0, 2)]])
        self.assertEqual(trl.bfd([], 4), [])
        self.assertRaises(ValueError, trl.bfd, [1], 0)
        self.assertRaises(ValueError, trl.bfd, [-1], 4)
        self.assertRaises(ValueError, trl.bfd, [1.5], 4)
        self.assertRaises(ValueError, trl.pack_examples, {"a": [[1]]}, 4, "wrap")
        self.assertRaises(ValueError, trl.pack_examples, {"a": [[1]], "b": [[1, 2]]}, 4)

    @unittest.skipIf(importlib.util.find_spec("pyarrow") is None, "there is no pyarrow")
    def test_tables_of_arrow(self):
        import pyarrow

        columns = {"a": [[1, 2, 3], [4, 5], [6]], "b": [[7, 8, 9], [10, 11], [12]]}
        table = pyarrow.table(columns)
        self.assertEqual(trl.pack_examples(table, 4), trl.pack_examples(columns, 4))
        with self.assertRaisesRegex(ValueError, "row 1 of 'a' is None"):
            trl.pack_examples(pyarrow.table({"a": [[1], None]}), 4)


def random_rollouts(prompts, answers):
    """Token ids of answers that fork from a prompt or from an earlier answer."""
    rows, groups = [], []
    for p in range(prompts):
        made = [ROLLOUTS.randint(0, 3, ROLLOUTS.randint(1, 6)).tolist()]
        for _ in range(answers):
            base = made[ROLLOUTS.randint(len(made))]
            cut = ROLLOUTS.randint(1, len(base) + 1)
            made.append(base[:cut] + ROLLOUTS.randint(0, 3, ROLLOUTS.randint(1, 5)).tolist())
        rows += made[1:]
        groups += [p] * answers
    return rows, groups


def union_tokens(rows):
    """The tokens of a trie, as all prefixes."""
    return len({tuple(row[: k + 1]) for row in rows for k in range(len(row))})


def first_fit_tries(rows, most):
    """First fit in the given order, as AReaL's documentation describes it."""
    tries = []
    for row in rows:
        for one in tries:
            if union_tokens(one + [row]) <= most:
                one.append(row)
                break
        else:
            tries.append([row])
    return tries


class PrefixRows(unittest.TestCase):
    """TRL's rows of rollouts."""

    def test_prompts_are_counted_once_and_rows_fit(self):
        # Each process gets a row, because an empty one would not take part in collectives.
        for _ in range(40):
            rows, groups = random_rollouts(int(ROLLOUTS.randint(1, 6)), int(ROLLOUTS.randint(1, 7)))
            samples = [{"input_ids": row, "group_id": g} for row, g in zip(rows, groups)]
            budget = max(map(len, rows)) + int(ROLLOUTS.randint(0, 12))
            ranks = int(ROLLOUTS.randint(1, 4))
            batches, rest = trl.pack_rollouts(samples, budget, ranks)
            self.assertLess(len(rest), ranks)
            self.assertEqual(sorted(flat(flat(batches)) + rest), list(range(len(rows))))
            for batch in batches:
                self.assertEqual(len(batch), ranks)
                for row in batch:
                    self.assertGreater(len(row), 0)
                    # The same tokens in two groups count twice, because groups share nothing.
                    used = sum(
                        union_tokens([rows[i] for i in row if groups[i] == g])
                        for g in {groups[i] for i in row}
                    )
                    self.assertLessEqual(used, budget)

    def test_generations_are_the_same_as_rollouts(self):
        prompts = [[1, 2, 3]] * 3 + [[1, 2, 4]] * 3
        answers = [[5], [6, 7], [8], [5], [6], [7]]
        batches, rest = trl.pack_generations(prompts, answers, 3, 7, 2)
        self.assertEqual((batches, rest), ([[[0, 1, 2], [3, 4, 5]]], []))
        samples = [
            {"input_ids": p + a, "group_id": i // 3} for i, (p, a) in enumerate(zip(prompts, answers))
        ]
        self.assertEqual(trl.pack_rollouts(samples, 7, 2), (batches, rest))
        # Equal groups would be one sequence if they shared tokens.
        twice = [dict(sample, group_id=7 * k) for k in range(2) for sample in samples[:3]]
        self.assertEqual(trl.pack_rollouts(twice, 7), ([[[0, 1, 2]], [[3, 4, 5]]], []))

    def test_samples_without_a_full_micro_batch_wait(self):
        samples = [{"input_ids": [k, k], "group_id": k} for k in range(5)]
        batches, rest = trl.pack_rollouts(samples, 2, 2)
        self.assertEqual((len(batches), len(rest)), (2, 1))
        self.assertEqual(trl.pack_rollouts(samples[:1], 2, 2), ([], [0]))
        self.assertEqual(trl.pack_rollouts([], 2, 2), ([], []))

    def test_errors_name_the_sample(self):
        for text, call in (
            ("samples\\[0\\] has no 'group_id'",
             lambda: trl.pack_rollouts([{"input_ids": [1]}], 3)),
            ("sequence 0 has 2 tokens",
             lambda: trl.pack_rollouts([{"input_ids": [1, 2], "group_id": 0}], 1)),
            ("no list with tokens",
             lambda: trl.pack_rollouts([{"input_ids": [], "group_id": 0}], 1)),
            ("prompt_ids\\[1\\] differs from prompt_ids\\[0\\]",
             lambda: trl.pack_generations([[1], [2]], [[3], [4]], 2, 9)),
            ("multiple of num_generations, 2",
             lambda: trl.pack_generations([[1]], [[3]], 2, 9)),
        ):
            with self.assertRaisesRegex(ValueError, "omnibal.compat.trl.pack_.*" + text):
                call()


class Areal(unittest.TestCase):
    def batch(self, rows):
        """Rows with their tokens at the end or the beginning, as masks allow both."""
        width = max(map(len, rows)) + 1
        ids = np.full((len(rows), width), 9)
        mask = np.zeros((len(rows), width), dtype=bool)
        for i, row in enumerate(rows):
            begin = 0 if i % 2 else width - len(row)
            ids[i, begin : begin + len(row)] = row
            mask[i, begin : begin + len(row)] = True
        return {"input_ids": ids, "attention_mask": mask}

    def check(self, rows, most, **arguments):
        """The fields of AReaL's nodes, as its documentation defines them."""
        tries, tokens = areal.build_tries(self.batch(rows), most, **arguments)
        self.assertEqual(len(tries), len(tokens))
        found = {}
        for number, (root, count) in enumerate(zip(tries, tokens)):
            self.assertEqual((root.tree_id, root.start_idx, root.end_idx), (number, -1, -1))
            self.assertEqual((root.tokens, root.ancestors), ([], []))
            self.assertLessEqual(count, most)
            self.assertEqual(sum(len(one.tokens) for one in root.nodes), count)
            place = 0
            for one in root.nodes:
                self.assertEqual((one.tree_id, one.start_idx), (number, place))
                place += len(one.tokens)
                self.assertEqual(one.end_idx, place - 1)
                above = one.ancestors[-1] if one.ancestors else root
                self.assertIs(above.children[one.tokens[0]], one)
                if one.ancestors:
                    self.assertEqual(one.ancestors[:-1], above.ancestors)
                    self.assertLessEqual(set(one.sequence_ids), set(above.sequence_ids))
                    # Otherwise both would be one run of tokens.
                    self.assertNotEqual(one.sequence_ids, above.sequence_ids)
                for i in one.sequence_ids:
                    found.setdefault(i, []).append((number, one.tokens))
            walk = [root]
            listed = []
            while walk:
                one = walk.pop()
                listed += [] if one is root else [one]
                walk += reversed(list(one.children.values()))
            self.assertEqual([id(one) for one in listed], [id(one) for one in root.nodes])
        for i, row in enumerate(rows):
            self.assertEqual(flat(tokens for _, tokens in found.get(i, [])), row)
            self.assertLessEqual(len({number for number, _ in found.get(i, [])}), 1)
        return tries, tokens

    def test_the_documented_tree(self):
        tries, tokens = self.check([[1, 2, 3, 4], [1, 2, 5, 6], [1, 7, 8]], 128)
        self.assertEqual(tokens, [8])
        self.assertEqual([one.tokens for one in tries[0].nodes], [[1], [2], [3, 4], [5, 6], [7, 8]])
        self.assertEqual([one.sequence_ids for one in tries[0].nodes],
                         [[0, 1, 2], [0, 1], [0], [1], [2]])

    def test_no_more_tokens_than_first_fit(self):
        for _ in range(40):
            rows, _ = random_rollouts(int(ROLLOUTS.randint(1, 5)), int(ROLLOUTS.randint(1, 7)))
            most = max(map(len, rows)) + int(ROLLOUTS.randint(0, 12))
            _, tokens = self.check(rows, most)
            rival = first_fit_tries(rows, most)
            value = sum(map(union_tokens, rival)) + most * len(rival)
            self.assertLessEqual(sum(tokens) + most * len(tokens), value)

    def test_numbers_of_tries_and_other_nodes(self):
        rows = [[1, 2, 3], [1, 2, 4], [1, 5], []]
        _, tokens = self.check(rows, 128, multiple_of=2)
        self.assertEqual(len(tokens) % 2, 0)

        class Node(areal.TrieNode):
            pass

        tries, _ = areal.build_tries(self.batch(rows), 128, node=Node)
        self.assertTrue(all(type(one) is Node for one in tries + tries[0].nodes))

    def test_errors_name_the_argument(self):
        for text, call in (
            ("sequence 0 has 2 tokens", lambda: areal.build_tries(self.batch([[1, 2]]), 1)),
            ("data has no 'attention_mask'", lambda: areal.build_tries({"input_ids": [[1]]}, 1)),
            ("the shape of attention_mask",
             lambda: areal.build_tries({"input_ids": [[1]], "attention_mask": [1]}, 1)),
        ):
            with self.assertRaisesRegex(ValueError, "omnibal.compat.areal.build_tries: .*" + text):
                call()


def largest_load(weights, slots):
    """The load of the heaviest rank."""
    copies = np.bincount(slots.ravel(), minlength=len(weights))
    return (weights / copies)[slots].sum(axis=1).max()


def moved_copies(new, old):
    """The copies on ranks that did not have their expert."""
    return sum(len(set(a.tolist()) - set(b.tolist())) for a, b in zip(new, old))


class ExpertPolicies(unittest.TestCase):
    LOADS = np.random.RandomState(21).lognormal(5, 0.8, (3, 64)).astype(np.float32)
    LATER = (LOADS * np.random.RandomState(22).lognormal(0, 0.3, (3, 64))).astype(np.float32)
    SHAPES = ((80, 1, 1, 16), (96, 8, 2, 8), (80, 8, 3, 16))

    def check_maps(self, maps, experts, width):
        # The three maps describe one placement, in the form that the systems document.
        physical, logical, counts = maps
        layers, replicas = physical.shape
        self.assertEqual(logical.shape, (layers, experts, width))
        self.assertEqual(counts.shape, (layers, experts))
        self.assertTrue(all(of.dtype == np.int64 for of in maps))
        for layer in range(layers):
            for expert in range(experts):
                of = np.flatnonzero(physical[layer] == expert).tolist()
                self.assertTrue(of)
                self.assertEqual(counts[layer, expert], len(of))
                self.assertEqual(logical[layer, expert].tolist(),
                                 of + [-1] * (width - len(of)))

    def test_never_heavier_than_eplb_and_fewer_moves(self):
        for replicas, groups, nodes, ranks in self.SHAPES:
            old = vllm.rebalance_experts(self.LOADS, replicas, groups, nodes, ranks)
            new = vllm.rebalance_experts(self.LATER, replicas, groups, nodes, ranks, old[0])
            few = vllm.rebalance_experts(self.LATER, replicas, groups, nodes, ranks, old[0],
                                         max_moved_share=0.1)
            if groups % nodes:
                groups = nodes = 1
            ours, theirs, limited = 0, 0, 0
            for maps, loads in ((old, self.LOADS), (new, self.LATER), (few, self.LATER)):
                self.check_maps(maps, 64, replicas - 64 + 1)
                for layer, weights in enumerate(loads.astype(float)):
                    found = maps[0][layer].reshape(ranks, -1)
                    greedy = rivals.eplb_greedy(weights, replicas, groups, nodes, ranks)
                    self.assertEqual(greedy.shape, found.shape)
                    if maps is few:
                        limited += moved_copies(found, old[0][layer].reshape(ranks, -1))
                        continue
                    # A search ends within 0.1 % of its bound. With old groups on their nodes, the
                    # nodes themselves limit the loads.
                    size = 64 // groups
                    node_of = {int(e) // size: rank * nodes // ranks
                               for rank, row in enumerate(found) for e in row}
                    node_loads = np.zeros(nodes)
                    for group, node in node_of.items():
                        node_loads[node] += weights[group * size:(group + 1) * size].sum()
                    self.assertEqual(len(node_of), groups)
                    for rank, row in enumerate(found):
                        self.assertTrue(all(node_of[int(e) // size] == rank * nodes // ranks
                                            for e in row))
                        self.assertEqual(len(set(row.tolist())), len(row))
                    bound = node_loads.max() * nodes / ranks
                    self.assertLessEqual(
                        largest_load(weights, found),
                        max(largest_load(weights, greedy), bound) * 1.0011)
                    if maps is new:
                        before = rivals.eplb_greedy(self.LOADS[layer].astype(float), replicas,
                                                    groups, nodes, ranks)
                        ours += moved_copies(found, old[0][layer].reshape(ranks, -1))
                        theirs += moved_copies(greedy, before)
            self.assertLess(ours, 0.6 * theirs)
            self.assertLessEqual(limited, 0.1 * replicas * 3)

    def test_experts_that_stay_keep_their_slots(self):
        old = vllm.EplbPolicy.rebalance_experts(self.LOADS, 80, 1, 1, 16)
        # Another order of the slots of a rank must not move an expert to another slot.
        old = old.reshape(3, 16, 5)[:, :, ::-1].reshape(3, 80).copy()
        new = vllm.EplbPolicy.rebalance_experts(self.LATER, 80, 1, 1, 16, old)
        self.assertEqual(new.shape, (3, 80))
        moved = sum(moved_copies(a.reshape(16, 5), b.reshape(16, 5)) for a, b in zip(new, old))
        self.assertEqual((new != old).sum(), moved)

    def test_old_placements_without_use_are_ignored(self):
        fresh = vllm.rebalance_experts(self.LOADS, 96, 8, 2, 8)[0]
        round_robin = np.tile(np.arange(96) % 64, (3, 1))
        other = np.tile(np.arange(64), (3, 1))
        for old in (round_robin, other):
            found = vllm.rebalance_experts(self.LOADS, 96, 8, 2, 8, old, max_moved_share=0.1)[0]
            np.testing.assert_array_equal(found, fresh)

    def test_sglang_sums_steps_and_has_the_narrowest_map(self):
        steps = np.stack([self.LOADS, self.LATER])
        total = steps.sum(axis=0)
        maps = sglang.rebalance_experts(steps, 96, 12, 8, 2, "deepseek_hierarchical")
        self.check_maps(maps, 64, maps[2].max())
        np.testing.assert_array_equal(maps[0], vllm.rebalance_experts(total, 96, 8, 2, 8)[0])
        for groups, algorithm in ((8, "deepseek"), (None, "auto")):
            flat_maps = sglang.rebalance_experts(steps, 96, 12, groups, 2, algorithm)
            np.testing.assert_array_equal(flat_maps[0],
                                          vllm.rebalance_experts(total, 96, 1, 1, 8)[0])
        again = sglang.rebalance_experts(steps, 96, 12, 8, 2, max_moved_share=0,
                                         old_physical_to_logical_map=maps[0])
        np.testing.assert_array_equal(again[0], maps[0])

    def test_tensors_come_from_devices_and_go_back(self):
        # A stand-in of torch, because the tests run without it.
        class Tensor:
            def __init__(self, values, is_on_host=False):
                self.values, self.shape, self.is_on_host = values, values.shape, is_on_host

            def detach(self):
                return Tensor(self.values, self.is_on_host)

            def cpu(self):
                return Tensor(self.values, True)

            def is_floating_point(self):
                return self.values.dtype.kind == "f"

            def float(self):
                return Tensor(self.values.astype(np.float32), self.is_on_host)

            def numpy(self):
                if not self.is_on_host:
                    raise TypeError("the tensor is on a device")
                return self.values

        torch = types.SimpleNamespace(from_numpy=lambda values: Tensor(values, True))
        old = vllm.EplbPolicy.rebalance_experts(self.LOADS, 80, 1, 1, 16)
        expected = vllm.EplbPolicy.rebalance_experts(self.LATER, 80, 1, 1, 16, old)
        loads = Tensor(self.LATER.astype(np.float64))
        with unittest.mock.patch.dict(sys.modules, torch=torch):
            found = vllm.EplbPolicy.rebalance_experts(loads, 80, 1, 1, 16, Tensor(old))
            maps = sglang.rebalance_experts(Tensor(self.LATER[None]), 80, 5, None, 1)
            plan = llep.compute_llep_lpt_plan(Tensor(np.array([9, 1])), 2, 0, 1)
        self.assertIsInstance(found, Tensor)
        np.testing.assert_array_equal(found.values, expected)
        self.assertTrue(all(isinstance(of, Tensor) for of in maps))
        self.assertEqual(plan.gpu_loads.values.sum(), 10)

    def test_errors_name_the_function(self):
        for text, call in (
            (r"vllm.rebalance_experts: num_replicas is 81, must be a multiple of 16",
             lambda: vllm.rebalance_experts(self.LOADS, 81, 1, 1, 16)),
            (r"vllm.EplbPolicy.rebalance_experts: weight has the shape \(64,\)",
             lambda: vllm.EplbPolicy.rebalance_experts(self.LOADS[0], 80, 1, 1, 16)),
            (r"an element of the old placement is -1",
             lambda: vllm.rebalance_experts(self.LOADS, 80, 1, 1, 16, np.full((3, 80), -1))),
            (r"an element of the old placement is 64",
             lambda: vllm.rebalance_experts(self.LOADS, 80, 1, 1, 16, np.full((3, 80), 64))),
            (r"max_moved_share is 2",
             lambda: vllm.rebalance_experts(self.LOADS, 80, 1, 1, 16, max_moved_share=2)),
            (r"sglang.rebalance_experts: algorithm is 'elasticity_aware'",
             lambda: sglang.rebalance_experts(self.LOADS[None], 80, 5, 1, 1, "elasticity_aware")),
            (r"tokens_per_expert has the shape \(3, 64\)",
             lambda: sglang.rebalance_experts(self.LOADS, 80, 5, 1, 1)),
            (r"num_physical_experts is 80, must be a multiple of 7",
             lambda: sglang.rebalance_experts(self.LOADS[None], 80, 7, 1, 1)),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()


class Llep(unittest.TestCase):
    def test_fewer_copies_than_llep_under_its_cap(self):
        # The last number is the most copies over those of LLEP, for all 24 batches together.
        for family, ranks, local, factor, most in (
            ("sigma 0.5", 8, 4, 1.1, 0.975),
            ("sigma 1.5", 8, 4, 1.1, 0.915),
            ("sigma 1", 32, 4, 1.1, 0.86),
            ("sigma 1.5", 32, 4, 1.02, 0.795),
            ("bursts", 32, 4, 1.1, 0.885),
            ("sigma 1.5", 64, 2, 1.1, 0.88),
            ("sigma 1.5", 64, 4, 1.1, 0.86),
            ("sigma 1.5", 64, 4, 1.02, 0.79),
        ):
            ours, theirs, bound = 0, 0, 0
            for seed in range(24):
                counts = self.batch(family, seed, local * ranks)
                plan = llep.compute_llep_lpt_plan(counts, ranks, 1, local, factor)
                copies, _ = rivals.llep_greedy(counts.tolist(), ranks, factor)
                self.assertLessEqual(len(plan.weight_transfers), copies)
                cap = int(factor * (int(counts.sum()) // ranks))
                self.assertLessEqual(plan.gpu_loads.max(), cap)
                self.check(plan, counts, ranks, local)
                ours += len(plan.weight_transfers)
                theirs += copies
                bound += omnibal.spill_experts(
                    counts, np.arange(counts.size) // local, ranks,
                    max_overload=(cap + 0.5) / -(-int(counts.sum()) // ranks) - 1).fewest_copies
            case = "%s, %d ranks, %g" % (family, ranks, factor)
            self.assertLess(ours, most * theirs, case)
            self.assertLessEqual(ours, 1.025 * bound, case)

    def batch(self, family, seed, experts):
        random = np.random.RandomState(seed)
        if family == "bursts":
            return (np.where(random.randint(0, 50, experts) == 0, 8, 1)
                    * (1000 * random.lognormal(0, 0.7, experts)).astype(int))
        return (1000 * random.lognormal(0, float(family.split()[1]), experts)).astype(int)

    def check(self, plan, counts, ranks, local):
        # The ranges of each expert follow one another, and the lists are those of one plan.
        loads = np.zeros(ranks, dtype=int)
        for expert, parts in plan.lpt_plan.items():
            self.assertEqual([0] + [end for _, _, end in parts],
                             [start for _, start, _ in parts] + [counts[expert]])
            for rank, start, end in parts:
                self.assertLess(start, end)
                loads[rank] += end - start
        np.testing.assert_array_equal(loads, plan.gpu_loads)
        self.assertEqual(set(plan.lpt_plan), set(np.flatnonzero(counts).tolist()))
        foreign = [(e, e // local, *part) for e, parts in plan.lpt_plan.items() for part in parts
                   if part[0] != e // local]
        self.assertEqual(sorted(foreign), [
            (t.expert_id, t.src_rank, t.dst_rank, t.token_start, t.token_end)
            for t in plan.weight_transfers])
        self.assertEqual(plan.weights_to_send, [(e, to) for e, home, to, _, _ in foreign
                                                if home == 1])
        self.assertEqual(plan.weights_to_receive, [(e, home) for e, home, to, _, _ in foreign
                                                   if to == 1])

    def test_edges_and_errors(self):
        plan = llep.compute_llep_lpt_plan([0, 0], 2, 0, 1)
        self.assertEqual((plan.lpt_plan, plan.gpu_loads.tolist()), ({}, [0, 0]))
        plan = llep.compute_llep_lpt_plan([3, 0], 2, 0, 1, max_tokens_factor=1.0)
        self.assertEqual(plan.lpt_plan, {0: [(0, 0, 2), (1, 2, 3)]})
        self.assertEqual(llep.compute_llep_lpt_plan([7], 1, 0, 1).lpt_plan, {0: [(0, 0, 7)]})
        for text, call in (
            (r"llep.compute_llep_lpt_plan: global_expert_counts has the shape \(3,\)",
             lambda: llep.compute_llep_lpt_plan([1, 1, 1], 2, 0, 1)),
            (r"ep_rank is 2", lambda: llep.compute_llep_lpt_plan([1, 1], 2, 2, 1)),
            (r"max_tokens_factor is nan",
             lambda: llep.compute_llep_lpt_plan([1, 1], 2, 0, 1, float("nan"))),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()


class Verl(unittest.TestCase):
    CASES = (
        ([10, 20, 70, 80, 100, 120], 3, True),
        ([5, 10, 15, 20, 25, 100], 2, False),
        ([97, 32, 55, 12, 80, 3, 44, 61, 25, 70, 18, 90], 4, True),
        ([1, 2, 3, 4, 5, 6, 7, 8], 2, True),
        ([100, 1, 1, 1], 2, False),
        ([8] * 6, 3, True),
        ([2, 3, 5, 7], 2, True),
    )

    def check(self, lengths, parts, equal_size):
        found = verl.get_seqlen_balanced_partitions(lengths, parts, equal_size)
        self.assertEqual(len(found), parts)
        self.assertEqual(sorted(flat(found)), list(range(len(lengths))))
        self.assertTrue(all(part and part == sorted(part) for part in found))
        if equal_size:
            self.assertEqual({len(part) for part in found}, {len(lengths) // parts})
        return max(sum(lengths[i] for i in part) for part in found)

    def test_published_cases(self):
        for lengths, parts, equal_size in self.CASES:
            largest = self.check(lengths, parts, equal_size)
            theirs = rivals.differencing(lengths, parts, equal_size)
            self.assertLessEqual(largest, max(sum(lengths[i] for i in part) for part in theirs))
        one, other = verl.get_seqlen_balanced_partitions([1, 2, 3, 4, 5, 6, 7, 8], 2, True)
        self.assertEqual(len(one), len(other))
        self.assertEqual(
            sorted(map(len, verl.get_seqlen_balanced_partitions([100, 1, 1, 1], 2, False))), [1, 3])

    def test_never_less_even(self):
        for _ in range(60):
            parts = int(RANDOM.randint(1, 9))
            lengths = random_lengths(parts * int(RANDOM.randint(1, 20)), 500)
            for equal_size in (False, True):
                largest = self.check(lengths, parts, equal_size)
                theirs = rivals.differencing(lengths, parts, equal_size)
                self.assertLessEqual(largest, max(sum(lengths[i] for i in of) for of in theirs))

    def test_a_uid_whose_samples_are_apart_is_refused(self):
        # Its samples would be split over parts without a word.
        with self.assertRaisesRegex(ValueError, "uid 'a' of sample 2"):
            verl.get_group_balanced_partitions([1, 2, 3, 4], ["a", "b", "a", "b"], 2)

    def test_groups_of_one_uid_stay_together(self):
        lengths = [100, 100, 200, 200, 150, 150, 50, 50, 300, 300, 250, 250, 180, 180, 120, 120]
        uids = [i // 2 for i in range(16)]
        parts = verl.get_group_balanced_partitions(lengths, uids, 4)
        self.assertEqual(sorted(flat(parts)), list(range(16)))
        for part in parts:
            self.assertEqual(len(part), 4)
            self.assertTrue(all((i ^ 1) in part for i in part))

    def test_micro_batches(self):
        for _ in range(60):
            most = int(RANDOM.randint(50, 400))
            group = int(RANDOM.choice([1, 1, 2]))
            lengths = random_lengths(group * int(RANDOM.randint(4, 60)), most // group)
            parts = verl.rearrange_micro_batches(lengths, most, force_group_size=group)
            order = flat(parts)
            self.assertEqual(sorted(order), list(range(len(lengths))))
            self.assertTrue(all(part and sum(lengths[i] for i in part) <= most for part in parts))
            self.assertGreaterEqual(len(parts), -(-sum(lengths) // most))
            back = verl.get_reverse_idx(order)
            self.assertEqual([order[back[i]] for i in range(len(order))], list(range(len(order))))
            if group == 2:
                self.assertTrue(all(i ^ 1 in part for part in parts for i in part))
            # verl splits further until its even parts hold the cap.
            work = verl.calculate_workload(lengths).reshape(-1, group).sum(axis=1).tolist()
            tokens = np.reshape(lengths, (-1, group)).sum(axis=1)
            count = -(-sum(lengths) // most)
            while max(tokens[of].sum() for of in rivals.differencing(work, count, False)) > most:
                count += 1
            self.assertLessEqual(len(parts), count)

    def test_numbers_of_micro_batches(self):
        lengths = [100] * 8
        self.assertEqual(len(verl.rearrange_micro_batches(lengths, 400)), 2)
        self.assertEqual(len(verl.rearrange_micro_batches(lengths, 400, min_num_micro_batch=3)), 3)
        self.assertEqual(
            len(verl.rearrange_micro_batches(lengths, 400, num_batches_divided_by=4)), 4)
        self.assertEqual(len(verl.rearrange_micro_batches(
            lengths, 400, num_batches_divided_by=4, min_num_micro_batch=5)), 8)
        # The largest are in the middle.
        lengths = [97, 88, 79, 61, 52, 43, 90]
        work = [int(verl.calculate_workload([lengths[i] for i in part]).sum())
                for part in verl.rearrange_micro_batches(lengths, 100)]
        peak = work.index(max(work))
        self.assertTrue(0 < peak < len(work) - 1)
        self.assertEqual(work[: peak + 1], sorted(work[: peak + 1]))
        self.assertEqual(work[peak:], sorted(work[peak:], reverse=True))
        lengths = [100] * 8
        for arguments in (
            dict(max_token_len=99),
            dict(max_token_len=400, num_batches_divided_by=0),
            dict(max_token_len=400, min_num_micro_batch=-1),
            dict(max_token_len=400, force_group_size=3),
        ):
            self.assertRaises(ValueError, verl.rearrange_micro_batches, lengths, **arguments)
        # A longer sample is an error, or alone.
        lengths = [900, 100, 50, 700, 30]
        self.assertRaises(ValueError, verl.rearrange_micro_batches, lengths, 400)
        for least in (None, 5):
            parts = verl.rearrange_micro_batches(
                lengths, 400, min_num_micro_batch=least, oversized="own_group")
            self.assertIn([0], parts)
            self.assertIn([3], parts)
            self.assertEqual(sorted(i for part in parts for i in part), [0, 1, 2, 3, 4])
            self.assertEqual(len(parts), least or 3)
        self.assertRaises(ValueError, verl.get_seqlen_balanced_partitions, [1], 2, False)
        self.assertRaises(ValueError, verl.get_seqlen_balanced_partitions, [1, 2, 3], 2, True)


class Megatron(unittest.TestCase):
    def test_published_cases(self):
        scheduler = megatron.DpBalancedScheduler
        self.assertEqual(
            scheduler(2, 1, 1, 2).get_groups_and_subsamples([(7, 1), (11, 1)]), [[[7]], [[11]]])
        self.assertEqual(
            scheduler(8, 1, 2, None).get_groups_and_subsamples([(0, 2), (1, 2)]), [[[0], [1]]])
        with self.assertRaisesRegex(ValueError, "Not enough samples"):
            scheduler(2, 1, 1, 2).get_groups_and_subsamples([(7, 1)])
        with self.assertRaisesRegex(ValueError, "more than the capacity"):
            scheduler(4, 2, 1, None).get_groups_and_subsamples([(3, 9)])

    def test_fixed_groups_are_never_more(self):
        for _ in range(60):
            ranks = int(RANDOM.choice([1, 2, 4]))
            sharing = int(RANDOM.choice([1, 2]))
            lengths = random_lengths(ranks * int(RANDOM.randint(3, 40)), 100)
            samples = [(1000 + 3 * i, length) for i, length in enumerate(lengths)]
            found = megatron.DpBalancedScheduler(64, sharing * 2, ranks).get_groups_and_subsamples(
                samples)
            taken = []
            for micro_batch in found:
                self.assertEqual(len(micro_batch), ranks * sharing * 2)
                packs = micro_batch[:: 2 * sharing]
                self.assertEqual([p for p in packs for _ in range(2 * sharing)], micro_batch)
                self.assertTrue(all(packs))
                for pack in packs:
                    self.assertLessEqual(sum(dict(samples)[i] for i in pack), 128 * sharing)
                taken += flat(packs)
            self.assertEqual(sorted(taken), [number for number, _ in samples])
            theirs = rivals.in_order(samples, 128 * sharing, ranks)
            self.assertLessEqual(len(found) * ranks, len(theirs))

    def test_a_most_number_of_sequences(self):
        found = megatron.DpBalancedScheduler(100, 1, 2, max_num_seqs=3).get_groups_and_subsamples(
            [(i, 1) for i in range(12)])
        self.assertEqual(len(found), 2)
        self.assertTrue(all(len(pack) == 3 for micro_batch in found for pack in micro_batch))

    def test_a_sample_above_the_tokens_of_a_group(self):
        samples = [(i, length) for i, length in enumerate([900, 60, 40, 30, 20, 10])]
        scheduler = megatron.DpBalancedScheduler(100, 1, 2)
        self.assertRaises(ValueError, scheduler.get_groups_and_subsamples, samples)
        found = megatron.DpBalancedScheduler(
            100, 1, 2, oversized="own_group").get_groups_and_subsamples(samples)
        packs = [pack for micro_batch in found for pack in micro_batch]
        self.assertIn([0], packs)
        self.assertEqual(sorted(flat(packs)), list(range(6)))
        self.assertTrue(all(packs))

    def check_dynamic(self, ranks, lengths, capacity, multiple, most=None):
        samples = list(enumerate(lengths))
        found = megatron.DefaultDynamicCPScheduler(
            capacity, 1, ranks, multiple, most).get_groups_and_subsamples(samples)
        self.assertEqual(len(found) % (multiple or 1), 0)
        seen = []
        for micro_batch in found:
            self.assertEqual(len(micro_batch), ranks)
            self.assertTrue(all(micro_batch))
            for number in {number for ids in micro_batch for number in ids}:
                of = [rank for rank, ids in enumerate(micro_batch) if number in ids]
                self.assertTrue(len(of) & (len(of) - 1) == 0 or len(of) == ranks)
                self.assertEqual(of, list(range(of[0], of[0] + len(of))))
                self.assertEqual(of[0] % len(of), 0)
                seen.append(number)
            for ids in micro_batch:
                self.assertLessEqual(len(ids), most or len(ids))
                sharing = sum(other == ids for other in micro_batch)
                tokens = sum(-(-lengths[i] // sharing) for i in ids)
                self.assertLessEqual(tokens, capacity)
        self.assertEqual(sorted(seen), list(range(len(lengths))))
        return found

    def test_published_cases_of_dynamic_groups(self):
        self.assertEqual(len(self.check_dynamic(6, [192] * 3, 128, 2)), 2)
        self.assertEqual(len(self.check_dynamic(2, [6144, 2048], 4096, 2)), 2)
        self.check_dynamic(4, [64, 128, 256, 512], 512, None)

    def test_dynamic_groups(self):
        for _ in range(40):
            ranks = int(RANDOM.choice([1, 2, 4, 8, 16]))
            lengths = random_lengths(int(RANDOM.randint(ranks, 60)), 100 * ranks)
            multiple = int(RANDOM.choice([0, 2])) or None
            self.check_dynamic(ranks, lengths, 128, multiple)
    def test_every_rank_has_samples_on_any_number_of_ranks(self):
        lengths = [1, 1, 1, 1, 798, 600, 1, 1, 457, 1, 600, 872, 895]
        self.check_dynamic(7, lengths, 1000, None)
        for _ in range(300):
            ranks = int(RANDOM.choice([3, 5, 6, 7, 9, 10, 11, 13, 14]))
            lengths = [int(RANDOM.choice([RANDOM.randint(1, 100), RANDOM.randint(300, 900)]))
                       for _ in range(int(RANDOM.randint(ranks, 2 * ranks + 1)))]
            self.check_dynamic(ranks, lengths, 1000, None)
            # Long samples on several ranks, some of them alone.
            lengths = [int(RANDOM.randint(1, 1000 * ranks)) for _ in range(int(RANDOM.randint(1, 9)))]
            self.check_dynamic(ranks, lengths, 1000, None)

    def test_a_most_number_of_sequences_of_dynamic_groups(self):
        self.assertEqual(len(self.check_dynamic(2, [100] * 12, 4096, None, 2)), 3)
        for _ in range(200):
            ranks = int(RANDOM.randint(1, 9))
            most = int(RANDOM.randint(1, 4))
            lengths = random_lengths(int(RANDOM.randint(ranks * 2, 60)), 100 * ranks)
            self.check_dynamic(ranks, lengths, 128, None, most)
        for scheduler in (megatron.DpBalancedScheduler, megatron.DefaultDynamicCPScheduler):
            with self.assertRaisesRegex(ValueError, "max_num_seqs is 0, must be at least 1"):
                scheduler(128, 1, 4, max_num_seqs=0)
        with self.assertRaisesRegex(ValueError, "min_cp_size is 8, must be at most the ranks"):
            megatron.DefaultDynamicCPScheduler(128, 1, 4, min_cp_size=8)

    def test_a_sample_that_takes_more_ranks_than_there_are(self):
        with self.assertRaisesRegex(ValueError, "sample 0 of 900 tokens takes 8 ranks"):
            megatron.DefaultDynamicCPScheduler(128, 1, 4).get_groups_and_subsamples([(0, 900)])


class LightBinPack(unittest.TestCase):
    def test_published_cases(self):
        lengths = [20, 20, 10, 10, 10, 10]
        linear = lightbinpack.pack(lengths, 40, variant="linear")
        self.assertEqual(linear, [[0, 1], [2, 3, 4, 5]])
        square = lightbinpack.pack(lengths, 40, variant="square", dp_size=2)
        self.assertEqual(len(square), 1)
        self.assertEqual([sorted(lengths[i] for i in of) for of in square[0]], [[10, 10, 20]] * 2)
        self.assertEqual(lightbinpack.nf([2.5, 1.5, 3.0, 2.0, 1.0], 4.0), [[0, 1], [2], [3, 4]])
        for packer in (lightbinpack.bfd, lightbinpack.ffd):
            self.assertEqual(len(packer([2.5, 1.5, 3.0, 2.0, 1.0], 4.0)), 3)
        self.assertEqual(len(lightbinpack.obfd([2, 1, 3, 2, 1], 4)), 3)
        grouped = lightbinpack.ogbfd([2, 1, 3, 2, 1], 4, bins_per_group=2)
        self.assertEqual([len(group) for group in grouped], [2, 2])

    def test_never_more_bins(self):
        for _ in range(60):
            most = int(RANDOM.randint(20, 300))
            lengths = random_lengths(int(RANDOM.randint(1, 200)), most)
            bins = lightbinpack.pack(lengths, most, variant="linear")
            self.assertEqual(sorted(flat(bins)), list(range(len(lengths))))
            self.assertEqual(len(bins), len(rivals.best_fit_decreasing(lengths, most)))
            ranks = int(RANDOM.choice([1, 2, 4]))
            groups = lightbinpack.pack(lengths, most, dp_size=ranks)
            self.assertEqual(sorted(flat(flat(groups))), list(range(len(lengths))))
            self.assertTrue(all(len(group) == ranks for group in groups))
            self.assertTrue(
                all(sum(lengths[i] for i in of) <= most for group in groups for of in group))
            self.assertLessEqual(
                len(groups), len(rivals.grouped_best_fit(lengths, most, ranks)))

    def test_groups_have_even_sums_of_squares(self):
        lengths = [5, 4, 3, 3, 3]
        (group,) = lightbinpack.pack(lengths, 10, variant="square", dp_size=2)
        self.assertEqual([sum(lengths[i] ** 2 for i in of) for of in group], [34, 34])

    def test_arguments(self):
        self.assertEqual(lightbinpack.pack([], 4), [])
        strategy = lightbinpack.PackingStrategy.NF
        self.assertEqual(lightbinpack.pack([1, 2], 2, strategy=strategy), [[0], [1]])
        self.assertEqual(lightbinpack.pack([1, 2], 2, strategy="obfd"), [[1], [0]])
        noisy = lightbinpack.pack([50] * 40, 100, "obfd", random_seed=1, add_noise=True)
        self.assertEqual(sorted(flat(noisy)), list(range(40)))
        for arguments in (
            dict(strategy="none"), dict(variant="none"), dict(strategy="ohgbfd"),
            dict(strategy="nf", add_noise=True), dict(strategy="bfd", item_max_length=1),
            dict(strategy="obfd", random_seed=1),
        ):
            self.assertRaises(ValueError, lightbinpack.pack, [1, 2], 2, **arguments)
        self.assertRaises(ValueError, lightbinpack.pack, [1, 2], [2, 3])
        self.assertRaises(ValueError, lightbinpack.pack, [1, 3], 2, variant="linear")
        self.assertRaises(ValueError, lightbinpack.pack, [1, 3], 2)


class Isf(unittest.TestCase):
    def test_the_groups_of_the_reference(self):
        root = os.environ["OMNIBAL_ROOT"]
        with open(os.path.join(root, "tests/data/isf_reference.json")) as file:
            cases = json.load(file)
        for case in cases:
            items = [[i, a, b] for i, (a, b) in enumerate(zip(case["images"], case["tokens"]))]
            limits = case["capacity"]["images"], case["capacity"]["tokens"]
            keep = case["keep"]["tokens_at_least"]
            groups = isf.fast_process_random_groups(
                items, case["seed"], limits[0], limits[0], keep, limits[1], case["rounds"])
            offsets = case["offsets"]
            self.assertEqual([[item[0] for item in group] for group in groups],
                             [case["items"][a:b] for a, b in zip(offsets, offsets[1:])])

    def test_the_algorithm_written_anew(self):
        for _ in range(10):
            items = [[i, int(RANDOM.randint(0, 6)), int(RANDOM.randint(1, 1500))]
                     for i in range(300)]
            rounds = int(RANDOM.randint(1, 8))
            seed = int(RANDOM.randint(1000))
            self.assertEqual(
                isf.iter_random_groups(items, seed, None, 10, 3900, 4096, rounds),
                rivals.iterative_sampling(items, seed, 10, (10, 4096), 3900, rounds))

    def test_what_is_too_large_is_not_lost(self):
        groups = isf.iter_random_groups([[0, 1, 5000], [1, 2, 10]], llm_thresh=4000, iter_time=3)
        self.assertEqual(groups, [[[1, 2, 10]], [[0, 1, 5000]]])
        self.assertEqual(isf.iter_random_groups([]), [])

    def test_the_arguments_of_the_reference(self):
        items = [[0, 4, 900], [1, 5, 1000], [2, 9, 4000], [3, 1, 100]]
        self.assertEqual(
            isf.fast_process_random_groups(
                patch_set=items, seed=1024, vit_min=9, vit_max=9, llm_min=4050, llm_max=4096),
            isf.iter_random_groups(items, iter_time=3))


class Llava(unittest.TestCase):
    def test_chunks_are_even_and_as_many(self):
        for _ in range(60):
            chunks = int(RANDOM.randint(1, 9))
            lengths = random_lengths(chunks * int(RANDOM.randint(1, 20)), 2000)
            indices = RANDOM.permutation(len(lengths)).tolist()
            indices.sort(key=lambda i: -lengths[i])
            found = llava.split_to_even_chunks(indices, lengths, chunks)
            self.assertEqual(sorted(flat(found)), sorted(indices))
            self.assertEqual({len(chunk) for chunk in found}, {len(lengths) // chunks})
            for chunk in found:
                of = [lengths[i] for i in chunk]
                self.assertEqual(of, sorted(of, reverse=True))
            theirs = rivals.even_chunks(indices, lengths, chunks)
            largest = max(sum(lengths[i] for i in chunk) for chunk in found)
            self.assertLessEqual(largest, max(sum(lengths[i] for i in chunk) for chunk in theirs))
        odd = llava.split_to_even_chunks([0, 1, 2, 3, 4], [5, 4, 3, 2, 1], 2)
        self.assertEqual(sorted(map(len, odd)), [2, 3])

    def test_orders(self):
        lengths = random_lengths(1000, 2000)
        order = llava.get_length_grouped_indices(lengths, 4, 8, generator=3)
        self.assertEqual(sorted(order), list(range(1000)))
        self.assertEqual(order, llava.get_length_grouped_indices(lengths, 4, 8, generator=3))
        self.assertNotEqual(order, llava.get_length_grouped_indices(lengths, 4, 8, generator=4))
        order = llava.get_length_grouped_order(lengths, 4, generator=np.random.default_rng(1))
        self.assertEqual(sorted(order), list(range(1000)))
        self.assertEqual(lengths[order[0]], max(lengths))
        rest = [lengths[i] for i in order[1:200]]
        self.assertEqual(rest, sorted(rest, reverse=True))

        class Torch:
            def initial_seed(self):
                return 3

        self.assertEqual(llava.get_length_grouped_indices(lengths, 4, 8, generator=Torch()),
                         llava.get_length_grouped_indices(lengths, 4, 8, generator=3))
        self.assertEqual(llava.get_length_grouped_indices([], 4, 8), [])
        self.assertEqual(llava.get_length_grouped_order([], 4), [])


class LlamaFactory(unittest.TestCase):
    def test_knapsacks(self):
        for _ in range(100):
            lengths = random_lengths(200, 1000)
            given = list(lengths)
            found = llamafactory.greedy_knapsack(given, 1024)
            self.assertEqual(given, lengths)
            self.assertEqual(sorted(flat(found)), sorted(lengths))
            for knapsack in found:
                self.assertLessEqual(sum(knapsack), 1024)
                self.assertEqual(knapsack, sorted(knapsack, reverse=True))
            self.assertLessEqual(len(found), len(rivals.fullest_first(lengths, 1024)))

    def test_odd_input(self):
        pack = llamafactory.greedy_knapsack
        self.assertEqual(pack([], 8), [])
        self.assertEqual(pack([8, 3, 5], 8), [[8], [5, 3]])
        self.assertRaisesRegex(ValueError, "a number is 9", pack, [1, 9], 8)
        self.assertRaisesRegex(ValueError, "is -1", pack, [-1, 9], 8)
        self.assertRaisesRegex(ValueError, "capacity.* is 0", pack, [1], 0)
        self.assertRaisesRegex(ValueError, "must be an integer", pack, [0.5], 8)


class Veomni(unittest.TestCase):
    def batches_of(self, strategy, count):
        """The micro-batches of so many samples, each once; the last have the oldest that waits."""
        taken = []
        for i in range(count):
            strategy.put_item(i)
            if strategy.is_ready_for_micro_batch():
                taken.append(strategy.get_micro_batch(len(taken)))
        while not strategy.empty():
            oldest = min(strategy._items)
            taken.append(strategy.get_micro_batch(len(taken)))
            self.assertIn(oldest, taken[-1])
        self.assertEqual(sorted(flat(taken)), list(range(count)))
        return taken

    def test_micro_batches(self):
        fewer = 0
        for _ in range(30):
            lengths = random_lengths(200, 1000) + [3000]
            taken = self.batches_of(
                veomni.TextBatchingStrategy(1024, 50, get_length_fn=lambda i: lengths[i]), 201)
            for batch in taken:
                load = sum(lengths[i] for i in batch)
                self.assertTrue(load <= 1024 or batch == [200])
            fewer += len(rivals.first_that_fit(lengths, 1024)) - len(taken)
        self.assertGreaterEqual(fewer, 0)

    def test_two_counts_of_tokens(self):
        for _ in range(30):
            physical = random_lengths(200, 1000) + [3000]
            lengths = [length // 3 for length in physical]
            strategy = veomni.TextBatchingStrategy(
                300, 20, get_length_fn=lambda i: lengths[i], physical_token_cap=1200,
                get_physical_length_fn=lambda i: physical[i])
            for batch in self.batches_of(strategy, 201):
                effective = sum(lengths[i] for i in batch)
                of_memory = sum(physical[i] for i in batch)
                self.assertTrue((effective <= 300 and of_memory <= 1200) or len(batch) == 1)

    def test_physical_tokens(self):
        # Samples that no loss counts are taken too; ready is what fills the cap.
        strategy = veomni.TextBatchingStrategy(
            100, 2, get_length_fn=lambda item: item[0], physical_token_cap=10,
            get_physical_length_fn=lambda item: item[1])
        for item in ((0, 4), (1, 3)):
            strategy.put_item(item)
            self.assertFalse(strategy.is_ready_for_micro_batch())
        strategy.put_item((0, 6))
        self.assertTrue(strategy.is_ready_for_micro_batch())
        self.assertEqual(strategy.get_micro_batch(0), [(0, 4), (0, 6)])
        self.assertFalse(strategy.is_ready_for_micro_batch())
        self.assertEqual(strategy.get_micro_batch(1), [(1, 3)])
        self.assertRaisesRegex(ValueError, "has 0 tokens", strategy.put_item, (5, 0))
        self.assertRaisesRegex(ValueError, "has -1 tokens", strategy.put_item, (-1, 5))
        self.assertRaisesRegex(ValueError, "physical_token_cap is 0",
                               veomni.TextBatchingStrategy, 8, physical_token_cap=0)
        # By default both counts are the same.
        strategy = veomni.TextBatchingStrategy(100, get_length_fn=len, physical_token_cap=3)
        for item in ("ab", "cd", "e"):
            strategy.put_item(item)
        self.assertEqual(strategy.get_micro_batch(0), ["ab", "e"])

    def test_masks_and_warm_up(self):
        strategy = veomni.TextBatchingStrategy(8, 2, bsz_warmup_steps=4, bsz_warmup_init_mbtoken=4)
        for length in (3, 1, 5, 2, 6):
            strategy.put_item({"attention_mask": np.ones(length, dtype=int), "length": length})
        sizes = []
        while not strategy.empty():
            sizes.append(sum(i["length"] for i in strategy.get_micro_batch(len(sizes))))
        self.assertEqual(sum(sizes), 17)
        self.assertEqual(sizes[0], 4)
        self.assertRaises(ValueError, strategy.get_micro_batch, 0)
        self.assertRaises(ValueError, strategy.put_item, {"attention_mask": np.zeros(3, dtype=int)})


class Border(unittest.TestCase):
    """What is no integer, or no argument of the function, is refused or handled exactly."""

    def test_fractions_are_refused(self):
        scheduler = megatron.DpBalancedScheduler(100, 1, 2)
        calls = (
            ("verl.calculate_workload", lambda: verl.calculate_workload([0.5])),
            ("verl.calculate_workload", lambda: verl.calculate_workload([2**32])),
            ("verl.rearrange_micro_batches", lambda: verl.rearrange_micro_batches([1.9] * 4, 2)),
            ("verl.rearrange_micro_batches", lambda: verl.rearrange_micro_batches([2**63], 2)),
            ("verl.rearrange_micro_batches", lambda: verl.rearrange_micro_batches([1], 2.5)),
            ("verl.get_group_balanced_partitions",
             lambda: verl.get_group_balanced_partitions([1.5, 2], [0, 1], 2)),
            ("verl.get_group_balanced_partitions",
             lambda: verl.get_group_balanced_partitions([1, 2, 3], [0, 1, 2], 2)),
            ("verl.get_seqlen_balanced_partitions",
             lambda: verl.get_seqlen_balanced_partitions([1, 2], 0, True)),
            ("verl.get_reverse_idx", lambda: verl.get_reverse_idx([-1, 0])),
            ("megatron.DpBalancedScheduler.get_groups_and_subsamples",
             lambda: scheduler.get_groups_and_subsamples([(0, 1.5), (1, 2)])),
            ("isf.fast_process_random_groups",
             lambda: isf.fast_process_random_groups([[0, 1.5, 3]], 1, 9, 9, 1, 9)),
            ("isf.iter_random_groups", lambda: isf.iter_random_groups([[0, 1, 3.5]])),
            ("llamafactory.greedy_knapsack", lambda: llamafactory.greedy_knapsack([1.5], 9)),
            ("llava.split_to_even_chunks", lambda: llava.split_to_even_chunks([-1], [5, 6], 1)),
            ("llava.split_to_even_chunks", lambda: llava.split_to_even_chunks([2], [5, 6], 1)),
            ("trl.bfd", lambda: trl.bfd([1.5], 4)),
            ("trl.bfd_split", lambda: trl.bfd_split(np.array([2**63], dtype=np.uint64), 4)),
            ("trl.pack_examples", lambda: trl.pack_examples({"a": [[1], None]}, 4)),
            ("trl.pack_examples", lambda: trl.pack_examples({"a": 5}, 4)),
            ("veomni.TextBatchingStrategy", lambda: veomni.TextBatchingStrategy(1.5)),
            ("lightbinpack.pack", lambda: lightbinpack.pack([1, 2], 3, weights=[1, 2])),
            ("lightbinpack.pack", lambda: lightbinpack.pack([1, 2], 3, item_max_length=1)),
            ("lightbinpack.nf", lambda: lightbinpack.nf([1.0, float("nan")], 3)),
        )
        for name, call in calls:
            with self.assertRaises(ValueError) as caught:
                call()
            self.assertTrue(str(caught.exception).startswith("omnibal.compat." + name + ": "),
                            (name, str(caught.exception)))

    def test_floats_that_are_whole_are_integers(self):
        self.assertEqual(verl.rearrange_micro_batches([900.0, 300.0], 1000.0),
                         verl.rearrange_micro_batches([900, 300], 1000))
        self.assertEqual(llamafactory.greedy_knapsack([5.0, 3.0], 8), [[5.0, 3.0]])
        self.assertEqual(trl.bfd([3.0, 1.0], 4.0), trl.bfd([3, 1], 4))

    def test_fractions_of_lightbinpack_are_exact(self):
        lengths = [1.9, 1.9, 1.9, 0.9, 2.5]
        for arguments in ({}, {"variant": "linear"}, {"strategy": "nf"}, {"dp_size": 2}):
            groups = lightbinpack.pack(lengths, 3, **arguments)
            bins = groups if not groups or isinstance(groups[0][0], int) else flat(groups)
            self.assertEqual(sorted(flat(bins)), list(range(5)), arguments)
            for one in bins:
                self.assertLessEqual(sum(lengths[i] for i in one), 3, arguments)
        with self.assertRaisesRegex(ValueError, "lengths with add_noise is 1.9"):
            lightbinpack.pack(lengths, 3, add_noise=True, random_seed=1)
        many = RANDOM.uniform(0.5, 30, 500).round(2).tolist()
        for one in flat(lightbinpack.pack(many, 30.0)):
            self.assertLessEqual(sum(many[i] for i in one), 30.0 + 1e-9)

    def test_ranks_with_fewer_samples_have_empty_micro_batches(self):
        for lengths, arguments, count in (
            ([300, 200], {"min_num_micro_batch": 6}, 6),
            ([300, 200], {"num_batches_divided_by": 4}, 4),
            ([], {"min_num_micro_batch": 3}, 3),
            ([300, 200, 100, 50], {"min_num_micro_batch": 3, "force_group_size": 2}, 3),
            ([300, 200], {"min_num_micro_batch": 3, "use_dynamic_bsz_balance": False}, 3),
        ):
            parts = verl.rearrange_micro_batches(lengths, 1000, **arguments)
            self.assertEqual(len(parts), count)
            self.assertEqual(sorted(flat(parts)), list(range(len(lengths))))



if __name__ == "__main__":
    unittest.main()
