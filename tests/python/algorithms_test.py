# SPDX-License-Identifier: Apache-2.0
"""The functions of the package: what goes in and out, properties, errors."""

import copy
import json
import os
import pickle
import re
import signal
import sys
import threading
import time
import unittest
import unittest.mock

import numpy as np
import omnibal

RANDOM = np.random.RandomState(7)
DEMANDS = np.stack([RANDOM.randint(0, 6, 2000), RANDOM.randint(50, 2000, 2000)], axis=1)
CAPACITY = (12, 4096)
PACKERS = (
    omnibal.next_fit,
    omnibal.isf,
    omnibal.best_fit_decreasing,
    omnibal.best_packing,
)


def indices(groups):
    return sorted(i for group in groups for i in group)


class PaddedBatches(unittest.TestCase):
    def test_count_times_longest_is_within_the_capacity(self):
        packed = omnibal.pack_padded(DEMANDS, CAPACITY)
        self.assertEqual(sorted(indices(packed.groups) + packed.oversized.tolist()),
                         list(range(len(DEMANDS))))
        for group in packed.groups:
            self.assertTrue((len(group) * DEMANDS[group].max(axis=0) <= CAPACITY).all())
        self.assertEqual(len(packed.groups), packed.lower_bound)
        self.assertEqual(len(omnibal.pack_padded([1, 1, 1, 1, 1, 20], 50).groups), 2)
        with self.assertRaisesRegex(ValueError, "pack_padded: capacity"):
            omnibal.pack_padded([1], 0)


class Experts(unittest.TestCase):
    LOADS = np.random.RandomState(3).lognormal(6, 0.7, (4, 32))
    LATER = LOADS * np.random.RandomState(4).lognormal(0, 0.3, (4, 32))

    def check(self, placed, loads, slots, ranks):
        # The numbers are those of the arrays, and no rank has an expert twice.
        layers = len(loads)
        self.assertEqual(placed.experts.shape, (layers, ranks, slots))
        for layer in range(layers):
            rows = placed.experts[layer]
            self.assertTrue(all(len(set(row.tolist())) == slots for row in rows))
            copies = np.bincount(rows.ravel(), minlength=loads.shape[1])
            self.assertTrue((copies >= 1).all())
            largest = (loads[layer] / copies)[rows].sum(axis=1).max()
            self.assertAlmostEqual(placed.largest_loads[layer] / largest, 1)
        self.assertTrue((placed.lower_bounds <= placed.largest_loads).all())

    def test_placements(self):
        first = omnibal.place_experts(self.LOADS, 5, 8)
        self.check(first, self.LOADS, 5, 8)
        self.assertEqual(first.moved.tolist(), [0] * 4)
        after = omnibal.place_experts(self.LATER, 5, 8, old=first.experts, max_moved=20)
        self.check(after, self.LATER, 5, 8)
        moved = [sum(len(set(new.tolist()) - set(old.tolist())) for new, old in zip(a, b))
                 for a, b in zip(after.experts, first.experts)]
        self.assertEqual(after.moved.tolist(), moved)
        self.assertTrue(0 < sum(moved) <= 20)
        nodes = omnibal.place_experts(self.LOADS, 5, 8, groups=4, nodes=2, effort="fast")
        self.check(nodes, self.LOADS, 5, 8)
        of_node = nodes.experts.reshape(4, 2, -1) // 8
        for layer in of_node:
            self.assertFalse(set(layer[0].tolist()) & set(layer[1].tolist()))
        # Integers, lists and one layer without a dimension of layers are accepted.
        one = omnibal.place_experts([5, 4, 3, 2], 2, 3)
        self.assertEqual(one.experts.shape, (1, 3, 2))
        again = pickle.loads(pickle.dumps(after))
        np.testing.assert_array_equal(again.experts, after.experts)
        self.assertEqual(repr(again), repr(after))

    def test_splits_against_all_splits(self):
        random = np.random.RandomState(5)
        for _ in range(50):
            tokens = random.randint(0, 6, 2)
            first = random.randint(0, 4, 3)
            slots = np.array([[0], [0], [1]])
            split = omnibal.split_experts(tokens, slots, first_tokens=first)
            best = min(max(first[0] + a, first[1] + tokens[0] - a, first[2] + tokens[1])
                       for a in range(tokens[0] + 1))
            self.assertEqual(split.largest, best)
            self.assertEqual(split.tokens.shape, slots.shape)
            np.testing.assert_array_equal(split.rank_tokens, first + split.tokens.sum(axis=1))
            np.testing.assert_array_equal(
                np.bincount(slots.ravel(), split.tokens.ravel(), 2), tokens)
            full = split.full_ranks
            self.assertEqual(-(-int(split.rank_tokens[full].sum()) // len(full)), best)
        again = pickle.loads(pickle.dumps(split))
        np.testing.assert_array_equal(again.tokens, split.tokens)
        self.assertEqual(again.largest, split.largest)

    def test_spills_keep_the_cap(self):
        random = np.random.RandomState(6)
        home = np.arange(32) // 4
        for overload in (0.02, 0.1, 0.5):
            tokens = random.lognormal(5, 1.2, 32).astype(int)
            plan = omnibal.spill_experts(tokens, home, 8, max_overload=overload)
            self.assertEqual(plan.status, "solved")
            left = plan.home_tokens + np.bincount(plan.experts, plan.tokens, 32)
            np.testing.assert_array_equal(left, tokens)
            loads = np.bincount(home, plan.home_tokens, 8)
            loads += np.bincount(plan.ranks, plan.tokens, 8)
            np.testing.assert_array_equal(loads, plan.rank_tokens)
            self.assertEqual(plan.largest, loads.max())
            self.assertLessEqual(plan.largest, plan.cap)
            self.assertEqual(plan.cap, int(-(-tokens.sum() // 8) * (1 + overload)))
            self.assertGreaterEqual(len(plan), plan.fewest_copies)
            self.assertEqual(plan.proven, len(plan) == plan.fewest_copies)
            self.assertEqual(len(pickle.loads(pickle.dumps(plan))), len(plan))
        self.assertEqual(omnibal.spill_experts([9, 1], [0, 1], 2, slots=0).status, "infeasible")

    def test_errors(self):
        first = omnibal.place_experts(self.LOADS, 5, 8).experts
        place, spill, split = omnibal.place_experts, omnibal.spill_experts, omnibal.split_experts
        for text, call in (
            (r"omnibal.place_experts: slots is 3, must be from 4 to 32",
             lambda: place(self.LOADS, 3, 8)),
            (r"ranks is -1, must not be negative", lambda: place([1], 1, -1)),
            (r"max_moved is 3, must have no value without", lambda: place([1], 1, 1, max_moved=3)),
            (r"the shape of old is \(4, 5, 8\), must be \(4, 8, 5\)",
             lambda: place(self.LOADS, 5, 8, old=first.reshape(4, 5, 8))),
            (r"old has 2 dimensions", lambda: place([1], 1, 1, old=[[0]])),
            (r"an element of old is -1", lambda: place([1], 1, 1, old=[[[-1]]])),
            (r"loads have 3 dimensions", lambda: place([[[1]]], 1, 1)),
            (r"effort is 'most'", lambda: place([1], 1, 1, effort="most")),
            (r"omnibal.split_experts: slots\[1\] is 2, must be below the 2 experts",
             lambda: split([1, 1], [[0], [2]])),
            (r"slots has 1 dimensions, must have the shape \(ranks, slots\)",
             lambda: split([1], [0])),
            (r"first_tokens has 1", lambda: split([1], [[0], [0]], first_tokens=[1])),
            (r"tokens is float64", lambda: split([0.5], [[0]])),
            (r"omnibal.spill_experts: home\[1\] is 2, must be below the 2 ranks",
             lambda: spill([1, 1], [0, 2], 2)),
            (r"an element of home is -1", lambda: spill([1], [-1], 2)),
            (r"max_overload is -1", lambda: spill([1], [0], 2, max_overload=-1)),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()


class Packing(unittest.TestCase):
    def check(self, packed, demands, capacity):
        loads = np.asarray(omnibal.group_loads(packed.groups, demands)).reshape(len(packed), -1)
        self.assertTrue((loads <= np.asarray(capacity)).all())
        self.assertEqual(
            sorted(packed.groups.items.tolist() + packed.oversized.tolist()),
            list(range(len(demands))),
        )
        self.assertGreaterEqual(len(packed), packed.lower_bound)

    def test_nothing_is_lost_and_capacities_hold(self):
        for packer in PACKERS:
            self.check(packer(DEMANDS, CAPACITY), DEMANDS, CAPACITY)
            self.check(packer(DEMANDS[:, 1], 4096), DEMANDS[:, 1], 4096)
            self.check(packer(DEMANDS[:, 1], 1500), DEMANDS[:, 1], 1500)
            three = np.concatenate([DEMANDS, DEMANDS[:, :1] * 7], axis=1)
            self.check(packer(three, (12, 4096, 80)), three, (12, 4096, 80))
            self.assertEqual(len(packer([], 5)), 0)
            self.assertEqual(len(packer(np.zeros((0, 2), dtype=int), (5, 5))), 0)

    def test_the_same_numbers_in_any_array_give_the_same_groups(self):
        expected = omnibal.isf(DEMANDS.astype(np.int64), CAPACITY, seed=3)
        wide = np.zeros((2000, 7), dtype=np.int64)
        wide[:, 2:4] = DEMANDS
        big = DEMANDS.astype(">i8")
        for demands in (
            DEMANDS.astype(np.int32),
            DEMANDS.astype(np.uint16),
            DEMANDS.astype(np.uint64),
            np.asfortranarray(DEMANDS),
            wide[:, 2:4],
            np.repeat(DEMANDS, 2, axis=0)[::2],
            big,
            DEMANDS.tolist(),
            (DEMANDS[:, 0], DEMANDS[:, 1]),
            (DEMANDS[:, 0].tolist(), DEMANDS[:, 1].astype(np.int8).astype(np.int64) * 0
             + DEMANDS[:, 1]),
        ):
            for capacity in (CAPACITY, list(CAPACITY), np.array(CAPACITY, dtype=np.uint32)):
                found = omnibal.isf(demands, capacity, seed=3)
                self.assertEqual(found.groups, expected.groups)
        lengths = DEMANDS[:, 1]
        reverse = lengths[::-1]
        self.assertEqual(omnibal.next_fit(reverse, 4096).groups,
                         omnibal.next_fit(reverse.copy(), 4096).groups)

    def test_results_own_their_arrays(self):
        groups = omnibal.best_packing(DEMANDS, CAPACITY).groups
        offsets, items = groups.offsets, groups.items
        expected = items.copy()
        self.assertEqual(offsets.dtype, np.uint32)
        self.assertEqual(items.dtype, np.uint32)
        first = groups[0]
        self.assertTrue(np.shares_memory(first, items))
        del groups
        for _ in range(20):
            omnibal.best_packing(DEMANDS, CAPACITY)
        np.testing.assert_array_equal(items, expected)
        self.assertEqual(first.tolist(), expected[: offsets[1]].tolist())

    def test_what_is_contiguous_is_not_copied(self):
        try:
            import resource
        except ImportError:
            self.skipTest("there is no resource module")
        lengths = np.full(4_000_000, 4096, dtype=np.int64)
        omnibal.pad_ratio(omnibal.Groups([0, 1], [0]), lengths)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(3):
            omnibal.pad_ratio(omnibal.Groups([0, 1], [0]), lengths)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(grown, 16_000)

    def test_groups_are_a_sequence(self):
        groups = omnibal.Groups([0, 2, 2, 3], [5, 6, 7])
        self.assertEqual(groups.tolist(), [[5, 6], [], [7]])
        self.assertEqual([g.tolist() for g in groups], groups.tolist())
        self.assertEqual(groups[-1].tolist(), [7])
        self.assertRaises(IndexError, lambda: groups[3])
        self.assertEqual(pickle.loads(pickle.dumps(groups)), groups)
        packed = omnibal.best_packing(DEMANDS, CAPACITY)
        again = pickle.loads(pickle.dumps(packed))
        self.assertEqual(again.groups, packed.groups)
        self.assertEqual(again.lower_bound, packed.lower_bound)
        for offsets, items in (([1, 2], [0, 0]), ([0, 3], [0]), ([0, 2, 1], [0]), ([0, 1], [-1]),
                               ([], []), ([0, 1], [1 << 32])):
            self.assertRaises(ValueError, omnibal.Groups, offsets, items)

    def test_isf_has_the_groups_of_the_reference(self):
        with open(os.path.join(os.environ["OMNIBAL_ROOT"],
                               "tests/data/isf_reference.json")) as file:
            cases = json.load(file)
        for case in cases:
            capacity = case["capacity"]["images"], case["capacity"]["tokens"]
            keep = case["keep"]
            self.assertEqual(keep["images_equal"], capacity[0])
            found = omnibal.isf((case["images"], case["tokens"]), capacity,
                                rounds=case["rounds"], seed=case["seed"], shuffle="numpy",
                                threshold=(capacity[0], keep["tokens_at_least"]))
            self.assertEqual(found.groups.offsets.tolist(), case["offsets"])
            self.assertEqual(found.groups.items.tolist(), case["items"])

    def test_improve_and_bound(self):
        start = omnibal.isf(DEMANDS, CAPACITY)
        better = omnibal.improve_packing(DEMANDS, CAPACITY, start, passes=4)
        self.check(better, DEMANDS, CAPACITY)
        self.assertLessEqual(len(better), len(start))
        self.assertGreaterEqual(len(better), omnibal.packing_bound(DEMANDS, CAPACITY))
        self.assertRaises(ValueError, omnibal.improve_packing, DEMANDS[:10], CAPACITY, start)

    def test_tune_capacity(self):
        tuned = omnibal.tune_capacity(DEMANDS, 4.0, granularity=(1, 16))
        self.assertEqual(tuned.status, "solved")
        self.assertTrue(4 <= tuned.best.mean_group_size <= 5)
        self.assertEqual(tuned.best.capacity[1] % 16, 0)
        self.assertEqual(tuned.finalists[0].capacity.tolist(), tuned.best.capacity.tolist())
        packed = omnibal.best_fit_decreasing(DEMANDS, tuned.best.capacity)
        self.assertEqual(len(packed), tuned.best.groups)
        omnibal.tune_capacity(DEMANDS, 4.0, packer="isf")

    def test_the_stream(self):
        packer = omnibal.OnlinePacker(CAPACITY, buffer=64)
        seen, loads = [], []
        for i, demand in enumerate(DEMANDS):
            if i == 1000:
                packer = omnibal.OnlinePacker.restore(packer.state())
            result = packer.push(i, demand)
            self.assertFalse(result.oversized)
            if result:
                seen += result.ids.tolist()
                loads.append(result.load)
        while True:
            result = packer.flush()
            if not result:
                break
            seen += result.ids.tolist()
            loads.append(result.load)
        self.assertEqual(sorted(seen), list(range(len(DEMANDS))))
        self.assertTrue((np.array(loads) <= CAPACITY).all())
        self.assertTrue(packer.push(1, (13, 1)).oversized)
        self.assertRaises(ValueError, packer.push, 1, (-1, 1))
        self.assertRaises(ValueError, packer.push, 1, 5)
        self.assertRaises(ValueError, omnibal.OnlinePacker.restore, b"")
        self.assertRaises(ValueError, omnibal.OnlinePacker.restore, packer.state()[:-3])

    def test_state_dicts_of_the_packers(self):
        # JSON holds the state of the stream, and a new packer continues exactly.
        for made in (lambda **other: omnibal.OnlinePacker(CAPACITY, **{"buffer": 64, **other}),
                     lambda **other: omnibal.OnlinePaddedPacker(CAPACITY, **{"buffer": 64, **other})):
            packer = made()
            for i in range(100):
                packer.push(i, DEMANDS[i])
            state = json.loads(json.dumps(packer.state_dict()))
            other = made()
            other.push(7, DEMANDS[7])
            other.load_state_dict(state)
            self.assertEqual(other.state(), packer.state())
            for i in range(100, 300):
                self.assertEqual(other.push(i, DEMANDS[i]).ids.tolist(),
                                 packer.push(i, DEMANDS[i]).ids.tolist())
            for wrong in (made(buffer=65), made(longest_wait=9), type(packer)((12, 4097), buffer=64),
                          type(packer)(4096, buffer=64)):
                with self.assertRaisesRegex(ValueError, "another capacity or other options"):
                    wrong.load_state_dict(state)
                self.assertEqual(len(wrong), 0)
            self.assertRaises(ValueError, packer.load_state_dict, {"state": "02"})


class Prefixes(unittest.TestCase):
    SEQUENCES = [[7, 7, 1], [7, 7, 2, 3], [9], [7, 7]]

    def test_lists_and_arrays_give_the_same_groups(self):
        packed = omnibal.pack_prefixes(self.SEQUENCES, 5)
        for kind in (np.int32, np.int64, np.uint16):
            arrays = [np.array(ids, kind) for ids in self.SEQUENCES]
            self.assertEqual(omnibal.pack_prefixes(arrays, 5).groups, packed.groups)
        self.assertEqual(packed.computed_tokens, packed.trie_tokens)
        self.assertEqual((packed.all_tokens, packed.bound_tokens), (10, 6))
        self.assertEqual(sorted(i for group in packed for i in group.tolist()), [0, 1, 2, 3])

    def test_a_layout_finds_the_tokens_of_each_sequence(self):
        packed = omnibal.pack_prefixes(self.SEQUENCES, 6)
        layout = packed.layout(0)
        starts, none = layout["cu_seqlens"], 2**32 - 1
        for sequence, segment in zip(layout["sequences"], layout["ends"]):
            ids = []
            while segment != none:
                source = self.SEQUENCES[layout["sources"][segment]]
                places = layout["positions"][starts[segment] : starts[segment + 1]]
                ids = [source[p] for p in places] + ids
                segment = layout["parents"][segment]
            self.assertEqual(ids, self.SEQUENCES[sequence])

    def test_options_and_copies(self):
        packed = omnibal.pack_prefixes(self.SEQUENCES, 3, multiple_of=3, oversized="own_group")
        self.assertEqual(len(packed) % 3, 0)
        self.assertEqual(omnibal.pack_prefixes(self.SEQUENCES, 3).oversized.tolist(), [1])
        again = pickle.loads(pickle.dumps(packed))
        self.assertEqual(again.groups, packed.groups)
        self.assertEqual(repr(again), repr(packed))
        for group in range(len(packed)):
            found, expected = again.layout(group), packed.layout(group)
            self.assertEqual({k: v.tolist() for k, v in found.items()},
                             {k: v.tolist() for k, v in expected.items()})

    def test_errors_name_argument_and_value(self):
        for text, call in (
            ("capacity is 0", lambda: omnibal.pack_prefixes([[1]], 0)),
            ("oversized is all", lambda: omnibal.pack_prefixes([[1]], 1, oversized="all")),
            (r"type of sequences\[1\] is float64", lambda: omnibal.pack_prefixes([[1], [0.5]], 1)),
            ("sequence 0 has 2 tokens",
             lambda: omnibal.pack_prefixes([[1, 2]], 1, oversized="reject")),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()
        with self.assertRaises(IndexError):
            omnibal.pack_prefixes([[1]], 1).layout(4)


class Balancing(unittest.TestCase):
    COSTS = DEMANDS[:, 1] ** 2

    def loads(self, parts, costs=None):
        costs = self.COSTS if costs is None else costs
        return [int(costs[part].sum()) for part in parts]

    def test_parts_are_complete_and_even(self):
        for parts in (
            omnibal.lpt(self.COSTS, 16),
            omnibal.lpt(self.COSTS, 16, count="equal"),
            omnibal.karmarkar_karp(self.COSTS, 16),
            omnibal.deal(self.COSTS, 16),
            omnibal.lpt(self.COSTS * 0.5, 16),
        ):
            self.assertEqual(indices(parts), list(range(2000)))
            self.assertLess(omnibal.imbalance(self.loads(parts)), 1.01)
            evener = omnibal.refine_parts(self.COSTS, parts)
            self.assertLessEqual(max(self.loads(evener)), max(self.loads(parts)))
        counts = {len(part) for part in omnibal.lpt(self.COSTS, 16, count="equal")}
        self.assertEqual(counts, {125})

    def test_speeds_make_times_even(self):
        speeds = np.array([1.5, 1.0] * 8)
        even = dict(speeds=speeds)
        dealt = omnibal.deal(self.COSTS, 16, **even)
        within = omnibal.balance_under_capacity(self.COSTS, 600, DEMANDS, CAPACITY, speeds=[2, 1] * 300)
        self.assertEqual(within.status, "solved")
        self.assertGreater(sum(self.loads(within.parts)[::2]), 1.5 * sum(self.loads(within.parts)[1::2]))
        for parts in (
            omnibal.lpt(self.COSTS, 16, **even),
            omnibal.karmarkar_karp(self.COSTS, 16, **even),
            omnibal.refine_parts(self.COSTS, dealt, **even),
        ):
            self.assertEqual(indices(parts), list(range(2000)))
            times = self.loads(parts) / speeds
            self.assertLess(times.max(), 1.001 * self.COSTS.sum() / speeds.sum())
        counts = [len(part) for part in dealt]
        self.assertEqual(set(counts[::2]) | set(counts[1::2]), {100, 150})
        equal = omnibal.lpt(self.COSTS, 16, speeds=[0.3] * 16)
        self.assertEqual(equal.tolist(), omnibal.lpt(self.COSTS, 16).tolist())
        for call in (omnibal.lpt, omnibal.karmarkar_karp, omnibal.deal):
            with self.assertRaisesRegex(ValueError, r"speeds\[1\] is -1"):
                call([1, 2], 2, speeds=[1, -1])
            with self.assertRaisesRegex(ValueError, "speeds have 2 dimensions"):
                call([1, 2], 2, speeds=[[1, 2]])

    def test_caps_are_strict(self):
        within = omnibal.balance_under_capacity(self.COSTS, 600, DEMANDS, CAPACITY)
        self.assertEqual(within.status, "solved")
        loads = omnibal.group_loads(within.parts, DEMANDS)
        self.assertTrue((loads <= CAPACITY).all())
        self.assertEqual(within.largest_load, max(self.loads(within.parts)))
        few = omnibal.balance_under_capacity(self.COSTS, 3, DEMANDS, CAPACITY)
        self.assertEqual((few.status, few.reason), ("infeasible", "too_few_parts"))
        steps = omnibal.micro_batches(self.COSTS, 8, DEMANDS, CAPACITY, multiple_of=2)
        self.assertEqual(len(steps) % 2, 0)
        self.assertEqual(indices(steps.cells), list(range(2000)))
        self.assertTrue((omnibal.group_loads(steps.cells, DEMANDS) <= CAPACITY).all())
        self.assertEqual(steps[1, 3].tolist(), steps.cells[11].tolist())

    def test_capacity_of_each_part(self):
        lengths = [9, 7, 6, 5, 4, 3, 2]
        within = omnibal.balance_under_capacity(lengths, 3, lengths, [9, 16, 11])
        self.assertEqual([sum(lengths[i] for i in part) for part in within.parts], [9, 16, 11])
        rows = omnibal.balance_under_capacity(lengths, 3, lengths, [[9], [16], [11]])
        self.assertEqual(within.parts, rows.parts)
        of_two = np.array([[length, 1] for length in lengths])
        self.assertEqual(
            omnibal.balance_under_capacity(lengths, 3, of_two, [[9, 2], [16, 2], [11, 4]]).status,
            "solved")
        steps = omnibal.micro_batches(lengths, 2, lengths, [12, 9])
        for step in steps:
            for rank, capacity in enumerate([12, 9]):
                self.assertLessEqual(sum(lengths[i] for i in step[rank]), capacity)
        for call, text in (
            (lambda: omnibal.balance_under_capacity(lengths, 3, lengths, [9, 9]),
             "capacity has 2 values for 3 parts"),
            (lambda: omnibal.micro_batches(lengths, 2, of_two, [[9], [9]]), "capacity[0] has 1 resources"),
            (lambda: omnibal.micro_batches(lengths, 2, lengths, [8, 8]),
             "sample 0 takes 9, which fits no rank"),
            (lambda: omnibal.micro_batches(lengths, 2, lengths, [[[8]]]), "capacity has 3 dimensions"),
        ):
            with self.assertRaisesRegex(ValueError, re.escape(text)):
                call()

    def test_micro_batches_with_speeds(self):
        speeds = [1.5, 1.0] * 4
        steps = omnibal.micro_batches(self.COSTS, 8, DEMANDS, CAPACITY, speeds=speeds)
        self.assertEqual(indices(steps.cells), list(range(2000)))
        self.assertTrue((omnibal.group_loads(steps.cells, DEMANDS) <= CAPACITY).all())
        loads = np.array(self.loads(steps.cells), dtype=float).reshape(-1, 8).sum(axis=0)
        self.assertLess((loads / speeds).max(), 1.02 * loads.sum() / sum(speeds))
        same = omnibal.micro_batches(self.COSTS, 8, DEMANDS, CAPACITY, speeds=[2] * 8)
        self.assertEqual(same.cells, omnibal.micro_batches(self.COSTS, 8, DEMANDS, CAPACITY).cells)

    def test_steps_with_speeds(self):
        loads = list(range(100, 900))
        speeds = np.array([2.0, 1.0, 1.0, 2.0])
        steps = omnibal.schedule_steps(loads, 4, groups_per_rank=20, max_dist_ratio=0.0, speeds=speeds)
        sums = np.array([[sum(loads[g] for g in rank) for rank in step] for step in steps], dtype=float)
        self.assertLess((sums / speeds).max(axis=1).sum(), 1.01 * sums.sum() / speeds.sum())
        with self.assertRaisesRegex(ValueError, "schedule_steps.*speeds has 2 values for 4 ranks"):
            omnibal.schedule_steps(loads, 4, speeds=[1, 2])

    def test_steps(self):
        packed = omnibal.best_packing(DEMANDS, CAPACITY)
        loads = omnibal.group_loads(packed.groups, DEMANDS)
        steps = omnibal.schedule_steps(loads, 8, seed=1, epoch=2)
        self.assertEqual(indices(steps.cells), list(range(len(packed))))
        dealt = omnibal.schedule_steps(loads, 8, max_dist_ratio=1.0)
        self.assertLess(omnibal.dist_ratio(loads, steps)[1], omnibal.dist_ratio(loads, dealt)[1])
        other = omnibal.schedule_steps(loads, 8, seed=1, epoch=3)
        self.assertNotEqual(steps.cells, other.cells)
        repeat = omnibal.schedule_steps(loads[:, 1][:-1], 8, remainder="repeat")
        last = len(repeat) - 1
        repeated = [repeat.is_repeat(last, r) for r in range(8)]
        self.assertEqual(sum(repeated), -(len(packed) - 1) % 8)
        self.assertEqual(pickle.loads(pickle.dumps(repeat)).is_repeat(last, 7), repeated[7])
        self.assertIsInstance(omnibal.dist_ratio([1, 2, 3]), float)
        self.assertAlmostEqual(omnibal.dist_ratio([1, 2, 3]), 1 / 3)
        self.assertAlmostEqual(omnibal.utilization([1, 2, 3], 4), 0.5)
        self.assertAlmostEqual(omnibal.pad_ratio(omnibal.Groups([0, 2], [0, 1]), [1, 2]), 0.25)

    def test_loss_normalizer(self):
        # The averaged scaled sums of the ranks are the mean loss of all tokens of the epoch.
        tokens = np.array([[40, 10], [0, 30]], dtype=np.int32)
        losses = tokens * 2.5
        scale = omnibal.loss_normalizer(tokens)
        self.assertAlmostEqual((losses * scale).mean(), 2.5)
        self.assertEqual(scale, omnibal.loss_normalizer(tokens.ravel().tolist()))
        self.assertEqual(omnibal.loss_normalizer([0, 0]), 0.0)


class Planning(unittest.TestCase):
    def test_stages(self):
        self.assertEqual(omnibal.partition_minimax([1, 1, 1, 3, 3, 3], 2).boundaries.tolist(), [0, 4, 6])
        self.assertEqual(omnibal.partition_minimax([0.5, 0.25, 0.25], 2).bottleneck, 0.5)
        # Cuts in the middle of a block are dear.
        cut = omnibal.partition_layers([4] * 6, 2, cut_costs=[0, 9, 9, 9, 1, 9])
        self.assertEqual((cut.boundaries.tolist(), cut.bottleneck), ([0, 4, 6], 17))
        floats = omnibal.partition_layers([4.0] * 6, 2, cut_costs=[0, 9, 9, 9, 1, 9])
        self.assertEqual((floats.boundaries.tolist(), floats.bottleneck), ([0, 4, 6], 17.0))
        bounded = omnibal.partition_layers([1] * 6, 2, bytes=[9, 1, 1, 1, 1, 1], capacity=11)
        self.assertEqual(bounded.boundaries.tolist(), [0, 3, 6])
        missing = omnibal.partition_layers([1] * 6, 2, bytes=[9] * 6, capacity=11)
        self.assertEqual((missing.status, missing.missing_bytes), ("infeasible", 16))
        step = omnibal.partition_throughput([4] * 6, 2, 8, cut_costs=[0, 9, 9, 9, 1, 9])
        self.assertEqual(step.objective, 7 * step.bottleneck + 26)

    def test_stages_against_all_cuts(self):
        for _ in range(200):
            layers = int(RANDOM.randint(2, 8))
            costs = RANDOM.randint(0, 9, layers)
            cuts = RANDOM.randint(0, 5, layers)
            def stage(first, last):
                return (costs[first:last].sum() + (cuts[first] if first else 0)
                        + (cuts[last] if last != layers else 0))
            best = min(max(stage(0, cut), stage(cut, layers)) for cut in range(1, layers))
            found = omnibal.partition_layers(costs, 2, cut_costs=cuts)
            self.assertEqual(found.bottleneck, best)
            self.assertEqual(
                omnibal.partition_layers(costs * 1.0, 2, cut_costs=cuts).bottleneck, best)

    def test_recomputation(self):
        times = np.tile([1.0, 1.1, 1.3], (8, 1))
        size = np.tile([100, 60, 10], (8, 1))
        plan = omnibal.select_recompute(times, size, 500)
        self.assertEqual(plan.status, "solved")
        self.assertTrue(plan.proven)
        chosen = plan.choices
        self.assertEqual(plan.bytes, size[np.arange(8), chosen].sum())
        self.assertLessEqual(plan.bytes, 500)
        jagged = omnibal.select_recompute([1, 2, 1], [9, 1, 5], 10, offsets=[0, 2, 3])
        self.assertEqual(jagged.choices.tolist(), [1, 0])
        self.assertEqual(omnibal.select_recompute(times, size, 79).missing_bytes, 1)

    def test_groups_of_ranks(self):
        lengths = [100_000] + [1_000] * 30
        cost = [(1.0, 1e-3 / d, 1e-6 / d) for d in range(1, 17)]
        plan = omnibal.context_groups(lengths, 16, cost, bytes_per_token=1, capacity=16_000)
        self.assertEqual(plan.status, "solved")
        self.assertEqual(indices(plan.samples), list(range(31)))
        self.assertGreaterEqual(plan.makespan, plan.lower_bound)
        ends = plan.micro_step_offsets
        for k in range(len(ends) - 1):
            groups = range(ends[k], ends[k + 1])
            ranks = [r for g in groups
                     for r in range(plan.first_ranks[g], plan.first_ranks[g] + plan.degrees[g])]
            self.assertEqual(len(set(ranks)), len(ranks))
        of_ranks = [16_000] * 16
        self.assertEqual(
            omnibal.context_groups(lengths, 16, cost, bytes_per_token=1, capacity=of_ranks).digest,
            plan.digest)
        with self.assertRaisesRegex(ValueError, "capacity has 2 values for 16 ranks"):
            omnibal.context_groups(lengths, 16, cost, bytes_per_token=1, capacity=[16_000] * 2)
        none = omnibal.context_groups(lengths, 2, cost, bytes_per_token=1, capacity=16_000)
        self.assertEqual((none.status, none.sample, none.min_degree), ("infeasible", 0, 7))

    def test_groups_lie_on_blocks(self):
        cost = [(d, 1 / d, 0) for d in range(1, 6)]
        chain = omnibal.context_groups([8, 6, 3, 4, 5, 5], 4, cost, bytes_per_token=1, capacity=8,
                                       degrees=[1, 2, 4])
        self.assertEqual(chain.first_ranks.tolist(), [0, 2, 3])
        self.assertEqual((chain.makespan, chain.proven), (9.5, True))
        blocks = omnibal.context_groups([3, 2], 5, cost, bytes_per_token=1, capacity=1,
                                        degrees=[2, 3], placement="blocks")
        self.assertEqual(blocks.first_ranks.tolist(), [0, 0])
        speeds = [1, 2, 4, 2]
        timed = omnibal.context_groups([100, 10], 4, [(1, 1, 0)], speeds=speeds)
        self.assertEqual((timed.first_ranks.tolist(), timed.times.tolist()), ([1, 2], [21, 101]))
        with self.assertRaisesRegex(ValueError, "speeds has 2 values for 4 ranks"):
            omnibal.context_groups([100, 10], 4, [(1, 1, 0)], speeds=[1, 2])
        with self.assertRaisesRegex(ValueError, "placement is 'near', must be anywhere or blocks"):
            omnibal.context_groups([3, 2], 5, cost, placement="near")
        with self.assertRaisesRegex(ValueError, "capacity is given, but bytes_per_token is 0"):
            omnibal.context_groups([400], 1, [[1, .1, .001]], capacity=100)


class Sampling(unittest.TestCase):
    def test_ranks_take_all_samples_once_and_resume(self):
        ranks = [omnibal.EpochSampler(101, ranks=4, rank=r, batch=3, seed=5) for r in range(4)]
        seen = []
        while not ranks[0].done:
            seen += [i for sampler in ranks for i in sampler.next().tolist()]
        self.assertEqual(sorted(seen), list(range(101)))
        one = omnibal.EpochSampler(101, batch=10, seed=5)
        first = [one.next().tolist() for _ in range(4)]
        again = omnibal.EpochSampler(101, batch=10, seed=5, state=one.state())
        self.assertEqual(again.next().tolist(), one.next().tolist())
        self.assertEqual(again(2).tolist(), first[2])
        self.assertRaises(ValueError, omnibal.EpochSampler, 100, batch=10, state=one.state())
        self.assertRaises(ValueError, omnibal.EpochSampler, 100, batch=10, state=b"x")

    def test_ranks_change_any_number_of_times_in_an_epoch(self):
        seen, state = [], None
        for change in range(40):
            ranks = 1 + change % 8
            samplers = [omnibal.EpochSampler(1000, ranks=ranks, rank=r, batch=2, seed=3, state=state)
                        for r in range(ranks)]
            seen += [i for sampler in samplers for i in sampler.next().tolist()]
            self.assertEqual(samplers[0].step, change + 1)
            state = samplers[0].state()
        last = omnibal.EpochSampler(1000, batch=2, seed=3, state=state)
        while not last.done:
            seen += last.next().tolist()
        self.assertEqual(sorted(seen), list(range(1000)))

    def test_a_mixture_is_endless_by_default(self):
        self.assertEqual(len(omnibal.Mixture([3, 4], [1, 1])), 2**63 - 1)
        self.assertEqual(len(omnibal.Mixture([3, 4], [3, 4], end="stop")), 7)

    def test_sources_in_proportion(self):
        mixture = omnibal.Mixture([10, 20, 5], [5, 3, 2], seed=1)
        self.assertEqual(mixture.period, 10)
        sources, epochs, samples = mixture.draws(0, 100)
        self.assertEqual(np.bincount(sources).tolist(), [50, 30, 20])
        for s, size in enumerate((10, 20, 5)):
            of = samples[sources == s]
            self.assertEqual(sorted(of[:size].tolist()), list(range(size)))
        self.assertEqual(epochs.max(), 4)
        self.assertRaises(ValueError, omnibal.Mixture, [1, 2], [1])

    def test_other_weights_in_mid_run_lose_and_repeat_nothing(self):
        before = omnibal.Mixture([1000, 1000], [1, 1], seed=7, window=8)
        after = before.reweighted(603, [2, 1])
        for mixture in (after, pickle.loads(pickle.dumps(after)), copy.copy(after)):
            sources, epochs, samples = mixture.draws(0, 1400)
            self.assertEqual(samples[:603].tolist(), before.draws(0, 603)[2].tolist())
            for s in range(2):
                of = samples[(sources == s) & (epochs == 0)]
                self.assertEqual(len(set(of.tolist())), len(of))
            self.assertEqual(mixture.drawn(1400).tolist(), np.bincount(sources).tolist())
            self.assertEqual(mixture.seek(mixture.drawn(1203)), 1203)
            self.assertEqual(mixture.digest, after.digest)
        gained = after.drawn(1203) - after.drawn(603)
        self.assertEqual(gained.tolist(), [400, 200])
        with self.assertRaisesRegex(ValueError, "omnibal.Mixture: .*source 0 has never 2000 draws"):
            omnibal.Mixture([10, 10], [1, 1], end="stop").seek([2000, 0])
        with self.assertRaisesRegex(ValueError, "there are 3 weights, must be 2"):
            before.reweighted(3, [1, 1, 1])

    def test_a_mixture_continues_after_other_draws(self):
        whole = omnibal.Mixture([50, 40], [2, 1], seed=3)
        rest = omnibal.Mixture([50, 40], [2, 1], seed=3, drawn=whole.drawn(30))
        for mixture in (rest, pickle.loads(pickle.dumps(rest))):
            self.assertEqual([a.tolist() for a in mixture.draws(0, 60)],
                             [a.tolist() for a in whole.draws(30, 60)])

    def test_ends_of_a_mixture(self):
        sizes, weights = [3, 4, 3], [1, 1, 1]
        lengths = {end: len(omnibal.Mixture(sizes, weights, end=end))
                   for end in ("stop", "stop_after_all", "drop_out")}
        self.assertEqual((lengths["stop"], lengths["drop_out"]), (9, 10))
        self.assertIn(lengths["stop_after_all"], (10, 11, 12))
        sources, _, samples = omnibal.Mixture(sizes, weights, end="drop_out").draws(0, 10)
        self.assertEqual(sorted(zip(sources.tolist(), samples.tolist())),
                         [(s, i) for s, size in enumerate(sizes) for i in range(size)])
        with self.assertRaisesRegex(ValueError, "end is 'all', must be restart, stop, stop_after_all or"):
            omnibal.Mixture(sizes, weights, end="all")

    def test_batches_of_one_source_skip_small_ones(self):
        mixture = omnibal.BatchMixture([100, 3, 50], [3, 1, 1], 8, seed=2, window=4)
        self.assertEqual(mixture.skipped.tolist(), [1])
        seen = set()
        for position in range(18):
            source, epoch, samples = mixture.draw(position)
            self.assertEqual(len(samples), 8)
            for sample in samples.tolist():
                self.assertLess(sample, [100, 3, 50][source])
                self.assertNotIn((source, epoch, sample), seen)
                seen.add((source, epoch, sample))
        again = pickle.loads(pickle.dumps(mixture))
        self.assertEqual((again.draw(5)[2].tolist(), again.digest),
                         (mixture.draw(5)[2].tolist(), mixture.digest))
        with self.assertRaisesRegex(ValueError, "no source with a weight has 8 samples"):
            omnibal.BatchMixture([3], [1], 8)

    def test_iteration_yields_epoch_after_epoch(self):
        # A training loop has one `for` per epoch; a resume in the middle yields the rest.
        sampler = omnibal.EpochSampler(11, ranks=2, rank=1, batch=2, seed=5)
        other = omnibal.EpochSampler(11, ranks=2, rank=1, batch=2, seed=5)
        for epoch in range(3):
            expected = len(sampler)
            batches = [batch.tolist() for batch in sampler]
            self.assertEqual(len(batches), expected)
            self.assertEqual(batches, [other.next().tolist() for _ in range(expected)])
            self.assertEqual((sampler.epoch, sampler.done), (epoch, True))
        sampler.next()
        self.assertEqual(len(sampler), sampler.step_count - 1)
        self.assertEqual(len(list(sampler)), sampler.step_count - 1)
        # Carried samples make the next epoch one step longer.
        carrying = omnibal.EpochSampler(3, batch=2, remainder="carry")
        for steps in (1, 2, 1, 2):
            self.assertEqual((len(carrying), len(list(carrying))), (steps, steps))
        self.assertEqual((len(omnibal.EpochSampler(0)), list(omnibal.EpochSampler(0))), (0, []))

    def test_a_state_dict_continues_exactly(self):
        options = dict(ranks=2, rank=1, batch=2, seed=5, remainder="repeat", contents=7)
        for steps in (0, 1, 3, 4):
            sampler = omnibal.EpochSampler(11, **options)
            for _ in range(steps):
                sampler.next()
            state = json.loads(json.dumps(sampler.state_dict()))
            other = omnibal.EpochSampler(11, **{**options, "seed": 9})
            other.load_state_dict(state)
            for again in (other, pickle.loads(pickle.dumps(sampler)), copy.copy(sampler)):
                self.assertEqual(again.state_dict(), state)
                ours = copy.copy(sampler)
                for _ in range(5):
                    self.assertEqual(again.next().tolist(), ours.next().tolist())
        # A loader that reads ahead says what was trained on.
        ahead = omnibal.EpochSampler(11, **options)
        ahead.next()
        trained = ahead.state_dict()
        ahead.next()
        self.assertEqual(ahead.state_dict(consumed=1), trained)
        self.assertEqual(ahead.step, 2)
        with self.assertRaisesRegex(ValueError, "omnibal.EpochSampler: the state has 1 bytes"):
            ahead.load_state_dict({"state": "00"})
        with self.assertRaisesRegex(ValueError, "digest"):
            omnibal.EpochSampler(12).load_state_dict(trained)
        self.assertEqual(ahead.step, 2)

    def test_a_pickled_mixture_is_the_same(self):
        sizes, weights = np.array([5, 6]), np.array([1, 2.5])
        mixture = omnibal.Mixture(sizes, weights, seed=3, end="stop", window=4)
        sizes[0] = 1
        for again in (pickle.loads(pickle.dumps(mixture)), copy.deepcopy(mixture)):
            self.assertEqual((again.digest, len(again)), (mixture.digest, len(mixture)))
            self.assertEqual([a.tolist() for a in again.draws(0, 5)],
                             [a.tolist() for a in mixture.draws(0, 5)])


    def test_iterations_over_mixtures_resume(self):
        # The position is the state; a stopped iteration continues with the next draw.
        def mixtures(end="drop_out", seed=3):
            options = {"seed": seed, "end": end, "window": 4}
            return (omnibal.Mixture([15, 26], [1, 2.5], **options),
                    omnibal.BatchMixture([15, 26], [1, 2.5], 4, **options))

        def plain(draws):
            return [(*draw[:2], np.asarray(draw[2]).tolist()) for draw in draws]

        for mixture, other in zip(mixtures(), mixtures()):
            length = len(mixture)
            whole = plain(mixture)
            self.assertEqual((len(whole), mixture.position), (length, length))
            # The end is the beginning of the next iteration.
            self.assertEqual(len(mixture), length)
            self.assertEqual(plain(mixture), whole)
            for stop in (0, 1, length - 1, length):
                mixture.position = 0
                draws = iter(mixture)
                self.assertEqual(plain(next(draws) for _ in range(stop)), whole[:stop])
                state = json.loads(json.dumps(mixture.state_dict()))
                other.load_state_dict(state)
                for again in (other, pickle.loads(pickle.dumps(mixture)), copy.copy(mixture)):
                    self.assertEqual(again.state_dict(), state)
                    self.assertEqual(plain(again), whole[stop:] or whole)
                self.assertEqual(plain(draws), whole[stop:])
            # A loader that reads ahead says what was trained on.
            self.assertEqual(mixture.state_dict(consumed=3)["position"], 3)
            for text, call in (
                    ("position is %d, must be at most %d" % (length + 1, length),
                     lambda: mixture.state_dict(consumed=length + 1)),
                    ("position is", lambda: mixture.load_state_dict({**state, "position": 99})),
                    ("other sizes, weights or options",
                     lambda: mixture.load_state_dict({**state, "digest": 9}))):
                with self.assertRaisesRegex(ValueError, text):
                    call()
        for mixture, stranger in zip(mixtures("restart"), mixtures("restart", seed=4)):
            draws = iter(mixture)
            first = plain(next(draws) for _ in range(100))
            self.assertEqual(len(mixture), 2**63 - 1 - 100)
            mixture.position = 40
            self.assertEqual(plain(next(draws) for _ in range(60)), first[40:])
            with self.assertRaisesRegex(ValueError, "other sizes, weights or options"):
                stranger.load_state_dict(mixture.state_dict())

    def test_a_state_has_the_weights_of_a_reweighted_mixture(self):
        def fresh():
            return omnibal.Mixture([1000, 1000], [1, 1], seed=7, window=8)

        mixture = fresh().reweighted(60, [2, 1]).reweighted(90, [0.1, 0.3])
        mixture.position = 80
        state = json.loads(json.dumps(mixture.state_dict()))
        for other in (fresh(), mixture, fresh().reweighted(10, [1, 5])):
            other.load_state_dict(state)
            self.assertEqual((other.digest, other.position), (mixture.digest, 80))
            draws = list(zip(*(a.tolist() for a in mixture.draws(80, 50))))
            self.assertEqual([draw for draw, _ in zip(other, range(50))], draws)


class SoftCapacity(unittest.TestCase):
    def check(self, groups, lengths, capacity):
        self.assertEqual(sorted(i for group in groups for i in group), list(range(len(lengths))))
        for group in groups:
            if len(group) != 1:
                self.assertLessEqual(sum(lengths[i] for i in group), capacity)

    def test_a_longer_sample_is_alone_and_ranks_keep_the_same_number(self):
        lengths = [9000, 500, 700, 4096, 8000, 100, 300, 4000, 5000, 20]
        for ranks, multiple in ((1, 1), (2, 1), (3, 2)):
            steps = omnibal.micro_batches(
                lengths, ranks, lengths, 4096, multiple_of=multiple, oversized="own_group")
            self.assertEqual(len(steps) % multiple, 0)
            self.check(steps.cells.tolist(), lengths, 4096)
        within = omnibal.balance_under_capacity(lengths, 6, lengths, 4096, oversized="own_group")
        self.assertEqual(within.status, "solved")
        self.check(within.parts.tolist(), lengths, 4096)
        self.assertEqual(omnibal.balance_under_capacity(lengths, 6, lengths, 4096).reason,
                         "sample_above_capacity")
        self.assertRaises(ValueError, omnibal.micro_batches, lengths, 2, lengths, 4096)
        with self.assertRaisesRegex(ValueError, "oversized is 'list', must be own_group or reject"):
            omnibal.micro_batches(lengths, 2, lengths, 4096, oversized="list")

    def test_optimizer_steps_have_even_work_and_mixed_lengths(self):
        lengths = np.random.RandomState(5).pareto(1.1, 256) * 200 + 20
        lengths = np.minimum(lengths.astype(int), 20000)
        steps = omnibal.optimizer_steps(lengths, 4, 2, lengths, 16384, oversized="own_group")
        self.assertEqual(len(steps), 4)
        self.check([cell for step in steps for cell in step.cells.tolist()], lengths, 16384)
        loads = [sum(int(lengths[step[m, r]].sum()) for m in range(len(step)))
                 for step in steps for r in range(2)]
        self.assertLess(max(loads), max(1.02 * np.mean(loads), max(lengths) + 1))
        counts = [sum(map(len, step.cells.tolist())) for step in steps]
        self.assertLess(max(counts) - min(counts), 20)
        self.assertRaises(ValueError, omnibal.optimizer_steps, lengths, 0, 2, lengths, 16384)


class PaddedStream(unittest.TestCase):
    def test_groups_keep_the_padded_budget_and_resume(self):
        for capacity in (3000, (3000, 60)):
            rows = np.random.RandomState(1).randint(1, 800, (400, 2))
            rows[:, 1] = rows[:, 1] % 9 + 1
            packer = omnibal.OnlinePaddedPacker(capacity, buffer=32)
            seen = []

            def take(group):
                if not group:
                    return
                of = rows[group.ids]
                padded = of.max(axis=0) * len(of)
                self.assertTrue((padded[: np.size(capacity)] <= capacity).all())
                self.assertEqual(np.ravel(group.load).tolist(), padded[: np.size(capacity)].tolist())
                seen.extend(group.ids.tolist())

            for i, row in enumerate(rows.tolist()):
                take(packer.push(i, row[0] if capacity == 3000 else row))
                if i == 200:
                    self.assertEqual(sorted(packer.waiting.tolist() + seen), list(range(201)))
                    packer = pickle.loads(pickle.dumps(packer))
            while len(packer):
                take(packer.flush())
            self.assertEqual(sorted(seen), list(range(400)))
        self.assertTrue(omnibal.OnlinePaddedPacker(9).push(0, 10).oversized)
        self.assertRaises(ValueError, omnibal.OnlinePaddedPacker.restore, b"x")
        with self.assertRaisesRegex(ValueError, "omnibal.OnlinePaddedPacker: capacity"):
            omnibal.OnlinePaddedPacker(0)


class Texts(unittest.TestCase):
    """What a notebook shows of a result, in one line."""

    def test_sequences_yield_what_their_indices_have(self):
        packed = omnibal.best_packing([5, 3, 4, 6, 2, 4], 8)
        steps = omnibal.schedule_steps([9, 1, 8, 2], ranks=2)
        for sequence in (packed, packed.groups):
            self.assertEqual([group.tolist() for group in sequence], packed.groups.tolist())
            self.assertEqual(sequence[-1].tolist(), packed.groups.tolist()[-1])
            self.assertEqual([g.tolist() for g in sequence[::-1]], packed.groups.tolist()[::-1])
            self.assertEqual(sequence[9:], [])
        self.assertEqual([[rank.tolist() for rank in step] for step in steps],
                         [[steps[s, r].tolist() for r in range(2)] for s in range(2)])
        self.assertEqual(steps[-1][1].tolist(), steps[1, 1].tolist())
        for place in (2, -3, (2, 0), (-1, 0)):
            self.assertRaises(IndexError, steps.__getitem__, place)

    def test_a_chart_has_the_shares_of_each_resource(self):
        # Axes of matplotlib, which need not be installed, are an argument.
        axes = unittest.mock.MagicMock()
        packed = omnibal.best_packing(([1, 2, 1], [30, 10, 60]), (4, 60))
        self.assertIs(packed.plot(([1, 2, 1], [30, 10, 60]), (4, 60), axes), axes)
        lines = [call[0] for call in axes.step.call_args_list]
        self.assertEqual([places.tolist() for places, _ in lines], [[1, 2], [1, 2]])
        self.assertEqual([shares.tolist() for _, shares in lines], [[0.75, 0.25], [1.0, 40 / 60]])
        empty = omnibal.best_packing([], 4).plot([], 4, axes)
        self.assertIs(empty, axes)
        with unittest.mock.patch.dict(sys.modules, {"matplotlib": None}):
            with self.assertRaisesRegex(ImportError, "omnibal.Packing.plot needs matplotlib"):
                packed.plot(([1, 2, 1], [30, 10, 60]), (4, 60))

    def test_results(self):
        sampler = omnibal.EpochSampler(10, ranks=2, rank=1, batch=2)
        sampler.next()
        packer = omnibal.OnlinePacker((9, 4096))
        pushed = packer.push(3, (1, 2))
        cost = [[0, 1, 0.001], [0.1, 0.5, 0.0005]]
        expected = {
            "Groups(1 group of 1 index)": omnibal.Groups([0, 1], [4]),
            "Packing(2 groups, at least 2, 1 oversized sample)": omnibal.next_fit([5, 9, 4], 8),
            "Steps(2 steps of 2 ranks)": omnibal.schedule_steps([9, 1, 8, 2], ranks=2),
            "Partition(solved, 2 stages, objective 6.125, at least 6.125, proven)":
                omnibal.partition_minimax([5.5, 3, 3.125], 2),
            "Partition(infeasible, 14 bytes missing in stage 1)":
                omnibal.partition_layers([4, 2, 3], 2, bytes=[9, 9, 9], capacity=4),
            "Recompute(solved, 2 layers, time 3, at least 3, proven, 9 bytes)":
                omnibal.select_recompute([[0, 3], [0, 5]], [[8, 1], [8, 1]], 10),
            "Recompute(infeasible, 1 bytes missing)":
                omnibal.select_recompute([[0, 3], [0, 5]], [[8, 1], [8, 1]], 1),
            "Within(solved, 2 parts, largest load 7, at least 7, proven)":
                omnibal.balance_under_capacity([3, 4, 5], 2, [3, 4, 5], 8),
            "Within(infeasible, sample 2 exceeds the capacity)":
                omnibal.balance_under_capacity([3, 4, 5], 2, [3, 4, 5], 4),
            "Within(infeasible, at least 2 parts needed)":
                omnibal.balance_under_capacity([3, 4, 5], 1, [3, 4, 5], 8),
            "ContextPlan(solved, 1 group, 1 micro-step, makespan 19.0745, at least 19.0745, proven, "
            "0 idle ranks)": omnibal.context_groups([30, 7], 2, cost),
            "ContextPlan(infeasible, sample 1 needs 8 ranks)":
                omnibal.context_groups([100, 2000], 2, cost, bytes_per_token=4, capacity=1000),
            "Tuned(not_found)": omnibal.tune_capacity([9, 9], 4000.0),
            "OnlineResult(0 samples)": pushed,
            "OnlineResult(0 samples, the pushed sample is oversized)": packer.push(4, (10, 1)),
            "OnlinePacker(capacity [9, 4096], waiting 1 sample)": packer,
            "EpochSampler(10 samples, rank 1 of 2, batch 2, epoch 0, step 1 of 3)": sampler,
            "Mixture(2 sources, endless)": omnibal.Mixture([3, 4], [1, 2]),
            "Mixture(1 source, 3 draws)": omnibal.Mixture([3], [1], end="stop"),
        }
        for text, result in expected.items():
            self.assertEqual(repr(result), text)
        self.assertEqual(repr(packer.flush()), "OnlineResult(1 sample, load [1, 2])")
        self.assertEqual(repr(omnibal.OnlinePacker(8)), "OnlinePacker(capacity 8, waiting 0 samples)")
        tuned = omnibal.tune_capacity(np.arange(1, 400), 4.0)
        self.assertRegex(repr(tuned.best),
                         r"^TunedCapacity\(capacity \[\d+\], \d+ groups of 4\.\d+ samples, "
                         r"fill 0\.\d+, 0 oversized samples\)$")
        self.assertIn(repr(tuned.best)[len("TunedCapacity("):-1], repr(tuned))


class Copies(unittest.TestCase):
    RESULTS = (
        omnibal.lpt([5, 1, 3], 2),
        omnibal.best_packing([5, 1, 3], 9),
        omnibal.schedule_steps([5, 1, 3], ranks=2),
        omnibal.partition_minimax([5, 1, 3], 2),
        omnibal.partition_layers([1.5, 1.0], 2),
        omnibal.select_recompute([[1.0, 1.3]] * 4, [[100, 10]] * 4, budget=250),
        omnibal.balance_under_capacity([5, 1, 3], 3, [5, 1, 3], 20),
        omnibal.tune_capacity([5, 1, 3, 2], 2.0),
        omnibal.OnlinePacker(10, buffer=1).push(1, 5),
        omnibal.tune_capacity([5, 1, 3, 2], 2.0).best,
        omnibal.context_groups([8, 4], 2, [(1, 0, 1), (1, 0, 0.5)]),
        omnibal.place_experts([5, 1, 3], 2, 2),
        omnibal.split_experts([5, 1, 3], [[0, 1], [0, 2]]),
        omnibal.spill_experts([5, 1, 3], [0, 0, 1], 2),
    )

    def members(self, result):
        names = [n for n in dir(result) if not n.startswith("_")]
        values = {n: getattr(result, n) for n in names if not callable(getattr(result, n))}
        return {
            n: self.members(v) if type(v).__module__.startswith("omnibal") else
            [self.members(one) for one in v] if n == "finalists" else
            v.tolist() if hasattr(v, "tolist") else v
            for n, v in values.items()
        }

    def test_all_results_are_pickled_and_copied(self):
        for result in self.RESULTS:
            copies = [pickle.loads(pickle.dumps(result, protocol)) for protocol in range(6)]
            for again in [*copies, copy.deepcopy(result), copy.copy(result)]:
                self.assertIs(type(again), type(result))
                self.assertEqual(self.members(again), self.members(result))
        packer = omnibal.OnlinePacker(10)
        packer.push(7, 4)
        self.assertEqual(pickle.loads(pickle.dumps(packer, 0)).flush().ids.tolist(), [7])

    def test_an_object_without_a_value_is_an_error(self):
        for result in self.RESULTS:
            empty = type(result).__new__(type(result))
            for name in {n for n in dir(result) if not n.startswith("_")} - {"is_repeat", "plot"}:
                with self.assertRaisesRegex(ValueError, "has no value"):
                    getattr(empty, name)()
            self.assertRaises(ValueError, pickle.dumps, empty)

    def test_indices_of_samples_are_signed(self):
        sources, epochs, samples = omnibal.Mixture([5, 6], [1, 2]).draws(0, 8)
        self.assertEqual({a.dtype for a in (sources, epochs, samples)}, {np.dtype(np.int64)})
        self.assertEqual((np.array([0, 5])[sources] + samples).dtype, np.int64)
        self.assertEqual(omnibal.EpochSampler(5).next().dtype, np.int64)
        packer = omnibal.OnlinePacker(10)
        packer.push(7, 4)
        self.assertEqual(packer.flush().ids.dtype, np.int64)


class Errors(unittest.TestCase):
    def test_texts(self):
        cases = (
            (lambda: omnibal.isf([-1], 4), "omnibal.isf: demand of sample 0 is -1"),
            (lambda: omnibal.isf([1], 0), "omnibal.isf: capacity[0] is 0"),
            (lambda: omnibal.isf([1], (4, 4)), "capacity has 2 resources, must be 1"),
            (lambda: omnibal.isf([1], 4, rounds=0), "omnibal.isf: rounds is 0"),
            (lambda: omnibal.isf([1], 4, rounds=-2), "rounds is -2"),
            (lambda: omnibal.isf([1], 4, shuffle="x"), "shuffle is 'x'"),
            (lambda: omnibal.isf([1], 4, threshold=5), "threshold[0] is 5"),
            (lambda: omnibal.isf([1.5], 4), "the type of demands is float64"),
            (lambda: omnibal.isf([True], 4), "the type of demands is bool"),
            (lambda: omnibal.isf(["a"], 4), "the type of demands is"),
            (lambda: omnibal.isf([[[1]]], 4), "demands have 3 dimensions"),
            (lambda: omnibal.isf([[1, 2, 3, 4]], (1, 2, 3, 4)), "must be at most 3"),
            (lambda: omnibal.isf(np.array([1 << 63], dtype=np.uint64), 4), "go up to"),
            (lambda: omnibal.best_packing([1], 4, effort="much"), "effort is 'much'"),
            (lambda: omnibal.lpt([1], 0), "omnibal.lpt"),
            (lambda: omnibal.lpt([1], -1), "parts is -1"),
            (lambda: omnibal.lpt([1, 2, 3], 2, count="equal"), "omnibal.lpt"),
            (lambda: omnibal.lpt([float("nan")], 2), "omnibal.lpt"),
            (lambda: omnibal.lpt([1 << 62, 1 << 62], 2), "omnibal.lpt"),
            (lambda: omnibal.refine_parts([1, 2], omnibal.Groups([0, 1], [0])), "omnibal.refine_parts"),
            (lambda: omnibal.balance_under_capacity([1], 1, [1, 2], 4), "omnibal.balance_under_capacity"),
            (lambda: omnibal.micro_batches([1], 1, [9], 4), "omnibal.micro_batches"),
            (lambda: omnibal.group_loads(omnibal.Groups([0, 1], [4]), [1]), "group_loads"),
            (lambda: omnibal.schedule_steps([1], 0), "omnibal.schedule_steps"),
            (lambda: omnibal.loss_normalizer([]), "loss_tokens is empty"),
            (lambda: omnibal.loss_normalizer([3, -9]), "loss_tokens[1] is -9"),
            (lambda: omnibal.loss_normalizer([0.5]), "loss_tokens"),
            (lambda: omnibal.schedule_steps([1], 1, remainder="x"), "remainder is 'x'"),
            (lambda: omnibal.partition_minimax([1], 2), "omnibal.partition_minimax"),
            (lambda: omnibal.partition_layers([1, -1], 1), "costs[1] is -1"),
            (lambda: omnibal.partition_layers([1, 1], 1, cut_costs=[1]), "1 costs of cuts"),
            (lambda: omnibal.partition_throughput([1, 1], 1, 0), "micro_batches is 0"),
            (lambda: omnibal.select_recompute([1, 2], [1], 3, offsets=[0, 2]), "bytes"),
            (lambda: omnibal.select_recompute([1, 2], [1, 2], 3), "offsets"),
            (lambda: omnibal.context_groups([1], 1, [1, 2]), "cost must have a row"),
            (lambda: omnibal.isf(([1, 2], [1]), (4, 4)), "omnibal.isf: demands have columns of 2"),
            (lambda: omnibal.isf([1], 4.5), "the type of capacity is float64"),
            (lambda: omnibal.lpt(["a"], 1), "must be integers or floats"),
            (lambda: omnibal.EpochSampler(4, batch=0), "omnibal.EpochSampler: batch is 0"),
            (lambda: omnibal.EpochSampler(4, rank=4), "omnibal.EpochSampler: rank is 4"),
            (lambda: omnibal.Mixture([1, 2], [1]), "omnibal.Mixture: there are 1 weights"),
            (lambda: omnibal.OnlinePacker(0), "omnibal.OnlinePacker: "),
            (lambda: omnibal.select_recompute([[1.0], [1.0, 2.0]], [[1], [1, 2]], 3),
             "where layers differ in their number of choices"),
        )
        for call, text in cases:
            with self.assertRaises(ValueError) as caught:
                call()
            self.assertIn(text, str(caught.exception))

    def test_an_array_protocol_that_fails(self):
        # Ctrl-C, and errors of the object, reach the caller: they say nothing about the argument.
        class Broken:
            def __init__(self, error):
                self.error = error

            def __array__(self, dtype=None, copy=None):
                raise self.error

            __index__ = __float__ = __array__

        machine = omnibal.Machine.named("h100")
        calls = (
            lambda given: omnibal.isf(given, 4),
            lambda given: omnibal.isf([1], given),
            lambda given: omnibal.isf((np.array([1]), [given]), (4, 4)),
            lambda given: omnibal.lpt(given, 2),
            lambda given: omnibal.lpt([1, 2], 2, speeds=given),
            lambda given: omnibal.bundle_by(given),
            lambda given: omnibal.select_recompute(given, [[1]], 3),
            lambda given: omnibal.context_groups([1], 1, given),
            lambda given: omnibal.affine_fit(given, [1.0]),
            lambda given: omnibal.affine_fit([1, 2], [1.0, 2.0])(given),
            lambda given: omnibal.fit_machine([1], given, lambda run, on: 1.0, machine,
                                              ["matmul_flops_per_second"]),
            lambda given: omnibal.simulate_pipeline(given, 1, 2, 4),
            lambda given: omnibal.EncoderWork(given, 1),
            lambda given: machine.replace(devices_per_node=given),
            lambda given: omnibal.fit_machine([1], [1.0], lambda run, on: given, machine,
                                              ["matmul_flops_per_second"]),
        )
        for error in (KeyboardInterrupt, MemoryError, RuntimeError("no"), OSError("gone")):
            for place, call in enumerate(calls):
                with self.subTest(error=error, place=place):
                    with self.assertRaises(error if isinstance(error, type) else type(error)):
                        call(Broken(error))
        for place, call in enumerate(calls[:-2]):
            # The text names the argument, and the cause has the reason.
            with self.subTest(place=place), self.assertRaises(ValueError) as caught:
                call(Broken(TypeError("convert it first")))
            self.assertIn("omnibal.", str(caught.exception))
            self.assertIn("no array of numbers", str(caught.exception))
            self.assertEqual(str(caught.exception.__cause__), "convert it first")

    def test_texts_where_numbers_are_wanted(self):
        line = omnibal.affine_fit([1, 2], [1.0, 2.0])
        for name, call in (
            ("sizes", lambda: omnibal.affine_fit(["a", "b"], [1.0, 2.0])),
            ("values", lambda: omnibal.affine_fit([1.0, 2.0], ["a", "b"])),
            ("sizes", lambda: line(["a"])),
            ("cost", lambda: omnibal.context_groups([1], 1, [["a", "b", "c"]])),
            ("speeds", lambda: omnibal.lpt([1, 2], 2, speeds=["a", "b"])),
        ):
            with self.assertRaisesRegex(ValueError, "%s has an element that is no number" % name):
                call()


class Progress(unittest.TestCase):
    """Long searches say how far they are, and end when they are asked to."""

    LENGTHS = np.random.RandomState(3).randint(200, 2000, 3000)

    def improve(self, **options):
        start = omnibal.next_fit(self.LENGTHS, 4096)
        return omnibal.improve_packing(self.LENGTHS, 4096, start, even_passes=0, **options)

    def test_each_pass_is_reported(self):
        calls = []
        packed = self.improve(passes=5, progress=lambda *call: calls.append(call))
        self.assertEqual([call[0] for call in calls], [1, 2, 3, 4, 5])
        self.assertEqual(calls[-1][1], len(packed))
        self.assertLessEqual(calls[-1][2], packed.lower_bound)
        self.assertEqual(self.improve(passes=5).groups, packed.groups)

    def test_false_ends_the_passes(self):
        start = omnibal.next_fit(self.LENGTHS, 4096)
        packed = self.improve(passes=5, progress=lambda *call: call[0] < 2)
        self.assertEqual(packed.rounds, start.rounds + 2)

    def test_an_error_in_it_passes_through(self):
        with self.assertRaises(ZeroDivisionError):
            self.improve(progress=lambda *_: 1 // 0)
        with self.assertRaises(TypeError):
            self.improve(progress=3)

    def test_balancers_report_passes_too(self):
        # Both kinds are scarce, so that the first packing has more groups than the bound.
        first = np.random.RandomState(3).randint(1, 1000, 3000)
        demands = np.stack([first, np.random.RandomState(4).permutation(first)], 1)
        calls = []
        steps = omnibal.micro_batches(first, 4, demands, (2000, 2000),
                                      progress=lambda *call: calls.append(call))
        self.assertEqual([call[0] for call in calls], list(range(1, len(calls) + 1)))
        self.assertGreater(len(calls), 1)
        self.assertEqual(omnibal.micro_batches(first, 4, demands, (2000, 2000)).cells, steps.cells)
        count = []
        ended = omnibal.micro_batches(first, 4, demands, (2000, 2000),
                                      progress=lambda *call: count.append(call) or False)
        self.assertEqual(len(count), 1)
        self.assertGreaterEqual(len(ended), len(steps))
        self.assertEqual(sorted(ended.cells.items.tolist()), list(range(3000)))
        with self.assertRaises(ZeroDivisionError):
            omnibal.balance_under_capacity(first, omnibal.packing_bound(demands, (2000, 2000)), demands,
                                           (2000, 2000), progress=lambda *_: 1 // 0)

    def test_each_packing_of_a_tuned_capacity_is_reported(self):
        calls = []
        omnibal.tune_capacity(self.LENGTHS, 4.0, progress=calls.append)
        self.assertEqual(calls, list(range(len(calls))))
        self.assertGreater(len(calls), 2)
        with self.assertRaises(ZeroDivisionError):
            omnibal.tune_capacity(self.LENGTHS, 4.0, progress=lambda _: 1 // 0)

    def test_ctrl_c_ends_what_takes_seconds(self):
        before = signal.getsignal(signal.SIGALRM)

        def interrupt(*_):
            raise KeyboardInterrupt

        random = np.random.RandomState(3)
        lengths = random.randint(200, 2000, 30_000)
        demands = np.stack([lengths, random.permutation(lengths)], 1)
        start = omnibal.next_fit(lengths, 4096)
        mixture = omnibal.Mixture([5, 6, 7], [0.3, 0.3, 0.4])
        calls = {
            "improve_packing": lambda: omnibal.improve_packing(lengths, 4096, start, passes=10**9),
            "micro_batches": lambda: omnibal.micro_batches(
                lengths, 8, demands, (4096, 4096), effort="thorough"),
            "tune_capacity": lambda: omnibal.tune_capacity(np.tile(demands, (20, 1)), 4.0),
            "draws": lambda: mixture.draws(0, 10**7),
        }
        for name, call in calls.items():
            signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            try:
                with self.assertRaises(KeyboardInterrupt, msg=name):
                    call()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)


class Threads(unittest.TestCase):
    def test_others_run_while_the_library_computes(self):
        lengths = RANDOM.randint(1, 1000, 300_000)
        steps, ended = [], threading.Event()

        def count():
            while not ended.is_set():
                steps.append(time.perf_counter())
                time.sleep(0.0005)

        thread = threading.Thread(target=count)
        thread.start()
        begin = time.perf_counter()
        omnibal.improve_packing(lengths, 4096, omnibal.next_fit(lengths, 4096), passes=3)
        end = time.perf_counter()
        ended.set()
        thread.join()
        inside = sum(begin < at < end for at in steps)
        self.assertGreater(inside, 5)

    def test_several_threads(self):
        expected = omnibal.best_packing(DEMANDS, CAPACITY).groups
        found = []
        threads = [threading.Thread(
            target=lambda: found.append(omnibal.best_packing(DEMANDS, CAPACITY).groups))
            for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(all(groups == expected for groups in found))


if __name__ == "__main__":
    unittest.main()
