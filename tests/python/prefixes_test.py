# SPDX-License-Identifier: Apache-2.0
"""Forests of prefixes, their packings, micro-batches, exchanges, layouts and masks; slices."""

import copy
import pickle
import threading
import unittest

import numpy as np
import omnibal

NONE = 2**32 - 1


def rollouts(seed, prompts=12, answers=8, longest=40):
    """Token ids of answers to prompts, and the prompt of each answer. Answers begin alike."""
    random = np.random.RandomState(seed)
    sequences, keys = [], []
    for prompt in range(prompts):
        shared = random.randint(0, 50, random.randint(1, longest))
        for _ in range(answers):
            answer = random.randint(0, 3, random.randint(1, longest // 2))
            sequences.append(np.concatenate([[prompt], shared, answer]))
            keys.append(prompt)
    order = random.permutation(len(sequences))
    return [sequences[i] for i in order], np.array(keys)[order]


SEQUENCES, PROMPTS = rollouts(5)
FOREST = omnibal.build_prefix_forest(SEQUENCES)


def prefixes_of(sequences, group):
    """The tokens of a group as the prefixes that end with them: a set with each shared one once."""
    return {tuple(sequences[i][:n + 1]) for i in group for n in range(len(sequences[i]))}


def work_of(sequences, group, token=1.0, pair=1 / 12288):
    """The work of a group token by token."""
    return sum(token + pair * len(prefix) for prefix in prefixes_of(sequences, group))


def path_of(forest, sequence):
    """The nodes of a sequence, from its root."""
    nodes = [int(forest.ends[sequence])]
    while forest.parents[nodes[-1]] != NONE:
        nodes.append(int(forest.parents[nodes[-1]]))
    return nodes[::-1]


class Forest(unittest.TestCase):
    def test_paths_spell_the_sequences(self):
        for sequences in (SEQUENCES, [[], [1], [1], [1, 2], []], [[3, 4]], []):
            forest = omnibal.build_prefix_forest(sequences)
            self.assertEqual(forest.sequence_count, len(sequences))
            for i, sequence in enumerate(sequences):
                ids = []
                for node in path_of(forest, i):
                    source = sequences[forest.first_sequences[node]]
                    depth = int(forest.depths[node])
                    ids += list(source[depth - int(forest.lengths[node]):depth])
                self.assertEqual(ids, list(sequence))
            self.assertEqual(forest.trie_tokens, len(prefixes_of(sequences, range(len(sequences)))))
            self.assertEqual(forest.all_tokens, sum(map(len, sequences)))
            self.assertEqual(forest.sequence_tokens.tolist(), [len(s) for s in sequences])
            self.assertEqual(len(forest), forest.parents.size)
            for node, end in enumerate(forest.subtree_ends):
                inside = [v for v in range(len(forest)) if self.is_below(forest, v, node)]
                self.assertEqual(inside, list(range(node, end)))

    @staticmethod
    def is_below(forest, node, ancestor):
        while node != NONE and node != ancestor:
            node = int(forest.parents[node])
        return node == ancestor

    def test_rows_lists_and_arrays_give_the_same_forest(self):
        rows = np.random.RandomState(3).randint(0, 3, (20, 6))
        forest = omnibal.build_prefix_forest(rows)
        for given in (rows.tolist(), list(rows.astype(np.uint8)), list(rows[:, ::-1][:, ::-1]),
                      tuple(rows), (row for row in rows)):
            self.assertEqual(omnibal.build_prefix_forest(given), forest)
        self.assertNotEqual(forest, FOREST)

    def test_given_nodes_in_any_order(self):
        random = np.random.RandomState(8)
        order = random.permutation(len(FOREST))
        place = np.argsort(order)
        roots = FOREST.parents == NONE
        parents = np.where(roots, -1, place[np.where(roots, 0, FOREST.parents)])
        again = omnibal.PrefixForest(parents[order], FOREST.lengths[order], place[FOREST.ends])
        self.assertEqual(again, FOREST)
        self.assertEqual(omnibal.PrefixForest(FOREST.parents, FOREST.lengths, FOREST.ends), FOREST)
        # A node on no path is left out.
        self.assertEqual(len(omnibal.PrefixForest([-1, 0, 0], [1, 1, 1], [1])), 2)

    def test_hashes_of_blocks(self):
        hashes = [[tuple(s[k:k + 4]) for k in range(0, len(s), 4)] for s in SEQUENCES]
        hashes = [[hash(block) >> 1 for block in blocks] for blocks in hashes]
        lengths = [len(s) for s in SEQUENCES]
        forest = omnibal.build_prefix_forest(hashes, block_tokens=4, lengths=lengths)
        self.assertEqual(forest.sequence_tokens.tolist(), lengths)
        whole = {tuple(s[:k + 4]) for s in SEQUENCES for k in range(0, len(s) - 3, 4)}
        rest = {tuple(s) for s in SEQUENCES if len(s) % 4}
        self.assertEqual(forest.trie_tokens, 4 * len(whole) + sum(len(s) % 4 for s in rest))

    def test_arrays_are_read_only_views_that_keep_their_forest(self):
        forest = omnibal.build_prefix_forest(SEQUENCES)
        arrays = {name: getattr(forest, name) for name in
                  ("parents", "lengths", "depths", "subtree_ends", "first_sequences", "ends")}
        copies = {name: array.copy() for name, array in arrays.items()}
        self.assertEqual({str(array.dtype) for array in arrays.values()}, {"uint32", "uint64"})
        del forest
        for name, array in arrays.items():
            self.assertEqual(array.tolist(), copies[name].tolist())
            with self.assertRaises(ValueError):
                array[0] = 1

    def test_errors_name_argument_and_value(self):
        build, nodes = omnibal.build_prefix_forest, omnibal.PrefixForest
        for text, call in (
            (r"omnibal.build_prefix_forest: the type of sequences\[1\] is float64",
             lambda: build([[1], [0.5]])),
            (r"sequences\[0\] have 2 dimensions", lambda: build([[[1], [2]]])),
            ("block_tokens is given without lengths", lambda: build([[1]], block_tokens=4)),
            ("lengths are given without block_tokens", lambda: build([[1]], lengths=[4])),
            ("omnibal.build_prefix_forest: block_tokens is 0",
             lambda: build([[1]], block_tokens=0, lengths=[4])),
            ("block_tokens is -2", lambda: build([[1]], block_tokens=-2, lengths=[4])),
            (r"build_prefix_forest: lengths\[0\] is -1",
             lambda: build([[1]], block_tokens=4, lengths=[-1])),
            ("omnibal.build_prefix_forest: lengths has 2 values for 1 sequences",
             lambda: build([[1]], block_tokens=4, lengths=[4, 4])),
            (r"omnibal.build_prefix_forest: sequences\[0\] has 1 values for 2 blocks, because "
             r"lengths\[0\] is 5", lambda: build([[1]], block_tokens=4, lengths=[5])),
            (r"omnibal.PrefixForest: parents\[1\] is 5, must be a node, less than 2, or -1",
             lambda: nodes([-1, 5], [1, 1], [0])),
            (r"omnibal.PrefixForest: parents\[0\] is -2", lambda: nodes([-2], [1], [0])),
            (r"omnibal.PrefixForest: lengths\[0\] is -4", lambda: nodes([-1], [-4], [0])),
            ("omnibal.PrefixForest: lengths has 2 values for 1 nodes", lambda: nodes([-1], [1, 1], [0])),
            (r"omnibal.PrefixForest: ends\[1\] is 1", lambda: nodes([-1], [1], [0, 1])),
            ("node 0 is its own ancestor", lambda: nodes([1, 0], [1, 1], [0])),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()
        self.assertRaises(TypeError, build, 5)


class Work(unittest.TestCase):
    def test_it_is_the_sum_over_tokens(self):
        random = np.random.RandomState(4)
        for _ in range(20):
            group = random.permutation(len(SEQUENCES))[:random.randint(0, 30)]
            self.assertAlmostEqual(omnibal.prefix_work_of(FOREST, group), work_of(SEQUENCES, group))
            cost = omnibal.PrefixWork(token=0.5, pair=2)
            self.assertAlmostEqual(omnibal.prefix_work_of(FOREST, group, cost=cost),
                                   work_of(SEQUENCES, group, 0.5, 2))
            # The same formula as an array, and a window of eight tokens.
            table = cost(0, np.arange(int(FOREST.depths.max()) + 1))
            self.assertAlmostEqual(omnibal.prefix_work_of(FOREST, group, cost=table),
                                   work_of(SEQUENCES, group, 0.5, 2))
            window = np.cumsum(np.minimum(np.arange(table.size), 8))
            self.assertEqual(omnibal.prefix_work_of(SEQUENCES, group, cost=window),
                             sum(min(len(p), 8) for p in prefixes_of(SEQUENCES, group)))

    def test_positions_are_numbers_or_arrays(self):
        work = omnibal.PrefixWork(2, 1)
        self.assertEqual(work(3, 5), 2 * 2 + 4 + 5)
        self.assertEqual(work(np.array([[0], [1]]), [1, 2]).tolist(), [[3, 7], [0, 4]])
        self.assertEqual((work.token, work.pair), (2, 1))
        self.assertEqual(omnibal.PrefixWork().pair, 1 / 12288)
        self.assertNotEqual(work, omnibal.PrefixWork())

    def test_errors(self):
        for text, call in (
            ("omnibal.PrefixWork: token is -1", lambda: omnibal.PrefixWork(-1)),
            ("PrefixWork: pair is nan", lambda: omnibal.PrefixWork(1, float("nan"))),
            ("omnibal.PrefixWork: end is -1", lambda: omnibal.PrefixWork()(0, -1)),
            (r"omnibal.prefix_work_of: sequences\[1\] is 96, must be less than the number",
             lambda: omnibal.prefix_work_of(FOREST, [0, 96])),
            (r"cost has 3 elements, must have at least 4, because the longest sequence has 3",
             lambda: omnibal.prefix_work_of([[1, 2, 3]], [0], cost=[0, 1, 2])),
            ("cost must be a PrefixWork, or an array",
             lambda: omnibal.prefix_work_of(FOREST, [0], cost="flops")),
            (r"prefix_work_of: cost\(0, 2\) is -1",
             lambda: omnibal.prefix_work_of([[1, 2]], [0], cost=[0, 0, -1])),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()


class Packing(unittest.TestCase):
    def test_a_forest_is_as_good_as_its_sequences(self):
        for capacity in (30, 80, 200):
            packed = omnibal.pack_prefixes(FOREST, capacity)
            listed = omnibal.pack_prefixes(SEQUENCES, capacity)
            self.assertEqual(packed.groups, listed.groups)
            self.assertEqual(packed.forest, FOREST)
            self.assertEqual(listed.forest, FOREST)

    def test_no_packing_is_below_the_bound(self):
        for capacity, efforts in ((60, ["fast"]), (300, ["fast", "normal"])):
            packed = omnibal.pack_prefixes(FOREST, capacity)
            for effort in efforts:
                bound = omnibal.prefix_bound(FOREST, capacity, effort=effort)
                self.assertLessEqual(bound.tokens, packed.computed_tokens)
                self.assertLessEqual(bound.groups, len(packed))
                self.assertGreaterEqual(bound.groups, -(-packed.trie_tokens // capacity))
                self.assertGreaterEqual(bound.tokens, packed.bound_tokens)
        self.assertEqual(omnibal.prefix_bound(SEQUENCES, 10**6),
                         omnibal.prefix_bound(FOREST, 10**6, effort="thorough"))
        self.assertEqual(omnibal.prefix_bound(SEQUENCES, 10**6).tokens, FOREST.trie_tokens)

    def test_errors(self):
        for text, call in (
            ("prefix_bound: capacity is 0", lambda: omnibal.prefix_bound(FOREST, 0)),
            ("prefix_bound: capacity is -3", lambda: omnibal.prefix_bound(FOREST, -3)),
            ("prefix_bound: effort is 'most'", lambda: omnibal.prefix_bound([], 1, effort="most")),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()


class Balance(unittest.TestCase):
    def check(self, steps, ranks, capacity, sequences=SEQUENCES, **work):
        self.assertIsInstance(steps, omnibal.Steps)
        self.assertEqual(steps.ranks, ranks)
        self.assertEqual(sorted(steps.cells.items.tolist() + steps.oversized.tolist()),
                         list(range(len(sequences))))
        self.assertEqual(steps.tokens.shape, (len(steps), ranks))
        long = [i for i, s in enumerate(sequences) if len(s) > capacity]
        for m, step in enumerate(steps):
            self.assertEqual(len(step), ranks)
            for r, group in enumerate(step):
                tokens = len(prefixes_of(sequences, group))
                self.assertEqual(tokens, steps.tokens[m, r])
                self.assertTrue(tokens <= capacity or (len(group) == 1 and group[0] in long))
        self.assertEqual(steps.computed_tokens, steps.tokens.sum())
        missing = omnibal.unscheduled_groups(steps, len(sequences))
        self.assertEqual(missing.tolist(), steps.oversized.tolist())
        for r in range(ranks):
            own = sum(work_of(sequences, steps[m, r], **work) for m in range(len(steps)))
            self.assertAlmostEqual(own, steps.work[r])

    def test_micro_batches(self):
        for ranks, options in ((1, {}), (2, {"multiple_of": 2}), (3, {"effort": "fast"}),
                               (2, {"group_price": 0}), (3, {"seed": 7, "exchanges": 50})):
            steps = omnibal.balance_prefixes(SEQUENCES, ranks, 120, **options)
            self.check(steps, ranks, 120)
            self.assertEqual(len(steps) % options.get("multiple_of", 1), 0)
            self.assertEqual(steps.oversized.size, 0)
        again = omnibal.balance_prefixes(FOREST, 3, 120, seed=7, exchanges=50)
        self.assertEqual((again.cells, again.forest), (steps.cells, FOREST))
        # Arguments that change the groups are not lost on their way.
        changed = ({"group_price": 1000}, {"seed": 8}, {"effort": "thorough"})
        plain = omnibal.balance_prefixes(FOREST, 3, 120, exchanges=0)
        self.assertTrue(any(omnibal.balance_prefixes(FOREST, 3, 120, exchanges=0, **one).cells
                            != plain.cells for one in changed))

    def test_work_is_even(self):
        steps = omnibal.balance_prefixes(FOREST, 4, 200)
        before = omnibal.balance_prefixes(FOREST, 4, 200, exchanges=0)
        spread = [one.work.max() / one.work.mean() for one in (steps, before)]
        self.assertLessEqual(spread[0], 1.01)
        self.assertLess(spread[0], spread[1])
        rough = omnibal.balance_prefixes(FOREST, 4, 200, max_overload=1.0)
        self.assertEqual(rough.cells, before.cells)

    def test_costs(self):
        cost = omnibal.PrefixWork(token=0, pair=1)
        steps = omnibal.balance_prefixes(FOREST, 2, 150, cost=cost)
        self.check(steps, 2, 150, token=0, pair=1)
        table = cost(0, np.arange(int(FOREST.depths.max()) + 1))
        self.assertEqual(omnibal.balance_prefixes(FOREST, 2, 150, cost=table).cells, steps.cells)
        model = omnibal.LanguageModel(2, 64, 4, 128, 1000)
        flops = model.document_cost(np.arange(table.size))
        self.assertEqual(omnibal.prefix_work_of(FOREST, [3], cost=flops), flops[len(SEQUENCES[3])])

    @staticmethod
    def ranks_of_prompts(steps):
        """The ranks that have answers to each prompt."""
        ranks = {}
        for step in steps:
            for rank, group in enumerate(step):
                for i in group:
                    ranks.setdefault(PROMPTS[i], set()).add(rank)
        return [len(of) for of in ranks.values()]

    def test_keys_stay_on_a_rank(self):
        self.assertGreater(max(self.ranks_of_prompts(omnibal.balance_prefixes(FOREST, 3, 60))), 1)
        for keys in (PROMPTS, ["prompt %d" % p for p in PROMPTS]):
            steps = omnibal.balance_prefixes(SEQUENCES, 3, 60, keys=keys, multiple_of=2)
            self.check(steps, 3, 60)
            self.assertEqual(len(steps) % 2, 0)
            self.assertEqual(max(self.ranks_of_prompts(steps)), 1)

    def test_oversized_sequences(self):
        long = [i for i, s in enumerate(SEQUENCES) if len(s) > 40]
        self.assertTrue(long)
        listed = omnibal.balance_prefixes(SEQUENCES, 2, 40)
        self.check(listed, 2, 40)
        self.assertEqual(listed.oversized.tolist(), long)
        own = omnibal.balance_prefixes(SEQUENCES, 2, 40, oversized="own_group")
        self.check(own, 2, 40)
        self.assertEqual(own.oversized.size, 0)

    def test_layouts_are_those_of_the_micro_batches(self):
        steps = omnibal.balance_prefixes(SEQUENCES, 2, 120)
        for m in range(len(steps)):
            for r in range(2):
                wanted = omnibal.layout_prefixes(FOREST, steps[m, r])
                found = steps.layout(m, r)
                self.assertEqual({k: v.tolist() for k, v in found.items()},
                                 {k: v.tolist() for k, v in wanted.items()})
                self.assertEqual(found["positions"].size, steps.tokens[m, r])
        for place in ((len(steps), 0), (0, 2), (-1, 0)):
            self.assertRaises(IndexError, steps.layout, *place)

    def test_few_sequences(self):
        steps = omnibal.balance_prefixes([[1, 2], [1, 3]], 4, 8)
        self.check(steps, 4, 8, [[1, 2], [1, 3]])
        self.assertEqual(len(omnibal.balance_prefixes([], 2, 8)), 0)

    def test_errors(self):
        for text, options in (
            ("ranks is 0", {"ranks": 0}), ("ranks is -1", {"ranks": -1}),
            ("capacity is 0", {"capacity": 0}), ("exchanges is -5", {"exchanges": -5}),
            ("multiple_of is 0", {"multiple_of": 0}),
            ("max_overload is -1", {"max_overload": -1}),
            ("group_price is -1", {"group_price": -1}), ("oversized is cut", {"oversized": "cut"}),
            ("effort is 'most'", {"effort": "most"}), ("keys has 1 values for 2 sequences", {"keys": [1]}),
            ("the type of keys is float64", {"keys": [0.5, 1.5]}),
            ("sequence 0 has 3 tokens", {"capacity": 2, "oversized": "reject"}),
            ("cost has 2 elements", {"cost": [0, 1]}),
        ):
            arguments = {"sequences": [[1, 2, 3], [1, 2, 4]], "ranks": 2, "capacity": 8, **options}
            with self.assertRaisesRegex(ValueError, "omnibal.(balance|pack)_prefixes: .*" + text):
                omnibal.balance_prefixes(**arguments)


class Exchange(unittest.TestCase):
    def test_each_rank_receives_the_nodes_of_its_sequences_once(self):
        offsets = [0, 20, 60, len(SEQUENCES)]
        steps = omnibal.balance_prefixes(FOREST, 3, 120)
        moved = omnibal.prefix_exchange(FOREST, offsets, steps, 4)
        plan, home = moved.plan, moved.plan.home_offsets
        self.assertEqual(plan.bytes.tolist(), (4 * FOREST.lengths[moved.nodes]).tolist())
        for rank in range(3):
            own = [i for step in steps for i in step[rank]]
            wanted = sorted({node for i in own for node in path_of(FOREST, i)})
            self.assertEqual(moved.nodes[plan.arrivals[rank]].tolist(), wanted)
            # A rank sends only nodes of its own sequences.
            sent = set(moved.nodes[home[rank]:home[rank + 1]].tolist())
            has = {n for i in range(offsets[rank], offsets[rank + 1]) for n in path_of(FOREST, i)}
            self.assertLessEqual(sent, has)
        groups = omnibal.prefix_exchange(SEQUENCES, offsets, steps.cells, 4)
        self.assertEqual(groups.plan, plan)
        self.assertEqual(groups.nodes.tolist(), moved.nodes.tolist())

    def test_nodes_of_the_cluster(self):
        steps = omnibal.balance_prefixes(FOREST, 4, 120)
        offsets = [0, 24, 48, 72, 96]
        one = omnibal.prefix_exchange(FOREST, offsets, steps, 2, ranks_per_node=4).plan
        each = omnibal.prefix_exchange(FOREST, offsets, steps, 2).plan
        named = omnibal.prefix_exchange(FOREST, offsets, steps, 2, node_of=[0, 0, 1, 1]).plan
        self.assertEqual(one.moved_bytes_across_nodes, 0)
        self.assertEqual(each.moved_bytes_across_nodes, each.moved_bytes)
        self.assertTrue(0 < named.moved_bytes_across_nodes < named.moved_bytes)

    def test_errors(self):
        cells = omnibal.Groups([0, 1, 2], [0, 1])
        for text, arguments in (
            ("home_offsets ends with 3", ([0, 1, 3], cells, 4)),
            ("there are 2 cells for 3 ranks", ([0, 1, 1, 2], cells, 4)),
            ("token_bytes is -4", ([0, 1, 2], cells, -4)),
            ("cell 1 has sequence 7", ([0, 1, 2], omnibal.Groups([0, 1, 2], [0, 7]), 4)),
        ):
            with self.assertRaisesRegex(ValueError, "omnibal.prefix_exchange: .*" + text):
                omnibal.prefix_exchange([[1], [2]], *arguments)
        with self.assertRaisesRegex(TypeError, "cells is a list, must be Steps or Groups"):
            omnibal.prefix_exchange([[1], [2]], [0, 1, 2], [[0], [1]], 4)


def mask_of(layout):
    """The mask of a layout by its segments: a token attends to its segment and to those above it."""
    starts = layout["cu_seqlens"].astype(int)
    count = starts[-1]
    mask = np.zeros((count, count), dtype=bool)
    for segment in range(layout["parents"].size):
        above = segment
        while above != NONE:
            mask[starts[segment]:starts[segment + 1], starts[above]:starts[above + 1]] = True
            above = int(layout["parents"][above])
    return mask & np.tri(count, dtype=bool)


class Layouts(unittest.TestCase):
    GROUPS = [[0, 5, 9], list(range(20)), [3, 3], [], list(range(95, 60, -1))]

    def test_paths_spell_the_sequences(self):
        for group in self.GROUPS:
            layout = omnibal.layout_prefixes(FOREST, group)
            starts = layout["cu_seqlens"]
            self.assertEqual(layout["sequences"].tolist(), group)
            self.assertEqual(layout["sources"].tolist(),
                             FOREST.first_sequences[layout["nodes"]].tolist())
            self.assertEqual(starts[-1], len(prefixes_of(SEQUENCES, group)))
            for sequence, segment in zip(group, layout["ends"]):
                ids = []
                while segment != NONE:
                    source = SEQUENCES[layout["sources"][segment]]
                    ids = source[layout["positions"][starts[segment]:starts[segment + 1]]].tolist() + ids
                    segment = layout["parents"][segment]
                self.assertEqual(ids, SEQUENCES[sequence].tolist())

    def test_masks(self):
        for group in self.GROUPS:
            layout = omnibal.layout_prefixes(FOREST, group)
            mask = mask_of(layout)
            count = len(mask)
            q, k = np.arange(count)[:, None], np.arange(count)
            self.assertTrue((mask == ((k <= q) & (q < layout["token_ends"]))).all())
            self.check_slices(omnibal.slice_prefixes(layout), mask)
            for queries, keys in ((4, 4), (8, 3), (128, 128)):
                blocks = omnibal.block_prefixes(layout, queries=queries, keys=keys)
                self.check_blocks(blocks, mask, queries, keys)

    def check_slices(self, slices, mask):
        found = np.zeros(mask.shape, dtype=int)
        for q, k, kind in zip(slices["q_ranges"], slices["k_ranges"], slices["attn_type_map"]):
            part = np.ones((q[1] - q[0], k[1] - k[0]), dtype=int)
            found[q[0]:q[1], k[0]:k[1]] += np.tril(part) if kind == 1 else part
        self.assertTrue((found == mask).all())
        self.assertEqual({str(array.dtype) for array in slices.values()}, {"int32"})
        self.assertEqual(slices["q_ranges"].shape, (slices["attn_type_map"].size, 2))

    def check_blocks(self, blocks, mask, queries, keys):
        self.assertEqual({str(array.dtype) for array in blocks.values()}, {"int32"})
        rows, columns = -(-len(mask) // queries), -(-len(mask) // keys)
        self.assertEqual(blocks["kv_indices"].shape, (rows, columns))
        padded = np.zeros((rows * queries, columns * keys), dtype=bool)
        padded[:len(mask), :len(mask)] = mask
        for row in range(rows):
            part = padded[row * queries:(row + 1) * queries].reshape(queries, columns, keys)
            some = part.any(axis=(0, 2))
            full = part.all(axis=(0, 2))
            for name, wanted in (("", some & ~full), ("full_", full)):
                number = blocks[name + "kv_num_blocks"][row]
                listed = blocks[name + "kv_indices"][row, :number]
                self.assertEqual(listed.tolist(), np.flatnonzero(wanted).tolist())

    def test_the_loss_is_that_of_the_separate_sequences(self):
        random = np.random.RandomState(6)
        advantages = random.normal(size=len(SEQUENCES))
        begins = np.array([random.randint(0, len(s) + 1) for s in SEQUENCES])
        loss = {prefix: random.normal() for prefix in prefixes_of(SEQUENCES, range(len(SEQUENCES)))}
        for group in self.GROUPS:
            layout = omnibal.layout_prefixes(FOREST, group)
            weights = omnibal.prefix_loss_weights(
                layout, advantages[layout["sequences"]], begins[layout["sequences"]])
            wanted = sum(advantages[i] * loss[tuple(SEQUENCES[i][:n + 1])]
                         for i in group for n in range(max(1, begins[i]), len(SEQUENCES[i])))
            segments = np.repeat(np.arange(layout["parents"].size), np.diff(layout["cu_seqlens"]))
            found = sum(weight * loss[tuple(SEQUENCES[layout["sources"][s]][:p + 1])]
                        for weight, s, p in zip(weights, segments, layout["positions"]))
            self.assertAlmostEqual(found, wanted)
            self.assertEqual((weights.dtype, weights.size), (np.float64, layout["positions"].size))

    def test_errors(self):
        layout = omnibal.layout_prefixes([[7, 7, 1], [7, 7, 2, 3]], [0, 1])
        loss, slices, blocks = (omnibal.prefix_loss_weights, omnibal.slice_prefixes,
                                omnibal.block_prefixes)
        without = {name: array for name, array in layout.items() if name != "parents"}
        for text, call in (
            (r"layout_prefixes: group\[1\] is 2", lambda: omnibal.layout_prefixes([[1], [2]], [0, 2])),
            ("layout_prefixes: .*group is -1", lambda: omnibal.layout_prefixes([[1]], [-1])),
            ("prefix_loss_weights: weights has 1 values", lambda: loss(layout, [1], [0, 0])),
            ("prefix_loss_weights: begins has 3 values", lambda: loss(layout, [1, 1], [0, 0, 0])),
            (r"weights\[1\] is nan", lambda: loss(layout, [1, np.nan], [0, 0])),
            ("element of begins is -1", lambda: loss(layout, [1, 1], [0, -1])),
            ("block_prefixes: queries is 0", lambda: blocks(layout, queries=0)),
            ("block_prefixes: keys is -1", lambda: blocks(layout, keys=-1)),
            ("block_prefixes: keys is 4294967296", lambda: blocks(layout, keys=2**32)),
            ("slice_prefixes: layout has no 'parents'", lambda: slices(without)),
            (r"layout\['parents'\]\[1\] is 1", lambda: slices({**layout, "parents": [NONE, 1, 0]})),
            (r"layout\['ends'\]\[0\] is 3", lambda: loss({**layout, "ends": [3, 2]}, [1, 1], [0, 0])),
            (r"layout\['cu_seqlens'\]\[2\] is 1", lambda: slices({**layout, "cu_seqlens": [0, 2, 1, 5]})),
            (r"layout\['cu_seqlens'\]\[3\] is 6", lambda: slices({**layout, "cu_seqlens": [0, 2, 3, 6]})),
            (r"layout\['cu_seqlens'\]\[0\] is 1", lambda: slices({**layout, "cu_seqlens": [1, 2, 3, 5]})),
            (r"layout\['cu_seqlens'\] has 1 elements", lambda: slices({**layout, "cu_seqlens": [0]})),
            (r"layout\['token_ends'\]\[4\] is 9",
             lambda: blocks({**layout, "token_ends": [5, 5, 3, 5, 9]})),
            (r"layout\['predictors'\] has 2 elements",
             lambda: loss({**layout, "predictors": [1, 2]}, [1, 1], [0, 0])),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()


class Slices(unittest.TestCase):
    @staticmethod
    def attention(tokens):
        return 40 * tokens + tokens * (tokens + 1) // 2

    def test_the_largest_slice_is_smallest(self):
        for length, count in ((1000, 3), (257, 2), (64, 4), (30, 1), (640, 12)):
            places = omnibal.slice_sequence(length, count, self.attention, block=64)
            blocks = -(-length // 64)
            self.assertEqual(places.size, min(count, blocks) + 1)
            self.assertEqual((places[0], places[-1]), (0, length))
            self.assertTrue((places[:-1] % 64 == 0).all())
            largest = np.diff(self.attention(places)).max()
            self.assertEqual(largest, self.best(length, min(count, blocks)))
            numbers = omnibal.slice_sequence(
                length, count, lambda tokens: self.attention(tokens) / 2, block=64)
            self.assertEqual(numbers.tolist(), places.tolist())

    def best(self, length, count):
        """The least largest cost of slices, by dynamic programming over the ends of blocks."""
        ends = [*range(64, length, 64), length]
        cost = [0] + [self.attention(end) for end in ends]
        best = [0] + [float("inf")] * len(ends)
        for _ in range(count):
            best = [min((max(best[i], cost[j] - cost[i]) for i in range(j)), default=float("inf"))
                    for j in range(len(cost))]
        return best[-1]

    def test_slices_are_within_the_limit_and_cover_each_sequence(self):
        lengths = np.random.RandomState(9).randint(1, 2000, 30)
        limit = int(self.attention(600))
        for cost, most in ((self.attention, limit), (lambda n: self.attention(n) * 1.0, limit),
                           (self.attention, float(limit)), (self.attention, np.float32(limit))):
            slices = omnibal.slice_sequences(lengths, most, cost, block=32)
            covered = [np.zeros(length, dtype=int) for length in lengths]
            costs = []
            for parts in slices:
                costs.append(sum(self.attention(last) - self.attention(first)
                                 for _, first, last in parts))
                whole = len(parts) > 1
                for sequence, first, last in parts:
                    covered[sequence][first:last] += 1
                    self.assertTrue(not whole or (first, last) == (0, lengths[sequence]))
            self.assertTrue(all((tokens == 1).all() for tokens in covered))
            self.assertLessEqual(max(costs), limit)
            self.assertEqual(slices.largest, max(costs))
            self.assertEqual(type(slices.largest), int if cost is self.attention and most is limit
                             else float)
            self.assertEqual(slices.slice_counts.sum(), len(slices))
            long = (lengths > 600).sum()
            self.assertTrue((slices.slice_counts[:long] > 1).all())
            self.assertTrue((slices.slice_counts[long:] == 1).all())
            self.assertEqual(slices[-1], slices[len(slices) - 1])
            self.assertEqual(slices.sequences.size, slices.offsets[-1])

    def test_costs_of_the_package(self):
        model = omnibal.LanguageModel(2, 64, 4, 128, 1000)
        places = omnibal.slice_sequence(4096, 4, model.document_cost)
        self.assertTrue((np.diff(np.diff(places)) <= 0).all())
        affine = omnibal.affine_fit([1, 2, 3], [13, 23, 33])
        self.assertEqual(len(omnibal.slice_sequences([300, 200], 2500, affine)), 3)
        work = omnibal.PrefixWork()
        self.assertEqual(omnibal.slice_sequence(512, 2, lambda n: work(0, n)).tolist(), [0, 256, 512])

    def test_the_cost_is_called_once(self):
        calls = []

        def cost(tokens):
            calls.append(tokens.tolist())
            return tokens

        omnibal.slice_sequences([300, 100, 100], 128, cost)
        self.assertEqual(calls, [[100, 128, 256, 300]])

    def test_errors(self):
        one, many = omnibal.slice_sequence, omnibal.slice_sequences
        for text, call in (
            ("slice_sequence: length is 0", lambda: one(0, 2, np.abs)),
            ("slice_sequence: slices is 0", lambda: one(4, 0, np.abs)),
            ("slice_sequence: slices is -1", lambda: one(4, -1, np.abs)),
            ("slice_sequence: block is 0", lambda: one(4, 1, np.abs, block=0)),
            ("slice_sequence: cost returned 2 values for 1 numbers of tokens",
             lambda: one(4, 1, lambda n: [1, 2])),
            (r"slice_sequence: cost\(256\) is 1.*, less than cost\(128\)",
             lambda: one(256, 1, lambda n: 256 - n + 1)),
            (r"cost\(4\) is -4", lambda: one(4, 1, lambda n: -n)),
            ("the type of the result of cost is <U1", lambda: one(4, 1, lambda n: ["a"])),
            (r"slice_sequences: lengths\[1\] is 0", lambda: many([4, 0], 4, np.abs)),
            ("slice_sequences: limit is 0", lambda: many([4], 0, np.abs)),
            ("slice_sequences: limit must be a number", lambda: many([4], [4], np.abs)),
            ("slice_sequences: block is -1", lambda: many([4], 4, np.abs, block=-1)),
            ("sequence 0 of 300 tokens has a block that costs more than limit, which is 5",
             lambda: many([300], 5, np.abs)),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()
        with self.assertRaisesRegex(TypeError, "cost is a int, must be a function of an array"):
            one(4, 1, 5)
        with self.assertRaises(ZeroDivisionError):
            one(4, 1, lambda n: 1 // 0)


class Copies(unittest.TestCase):
    STEPS = omnibal.balance_prefixes(SEQUENCES, 2, 120)
    RESULTS = (
        FOREST,
        omnibal.PrefixWork(2, 3),
        omnibal.prefix_bound(FOREST, 100),
        omnibal.pack_prefixes(FOREST, 100),
        STEPS,
        omnibal.prefix_exchange(FOREST, [0, 50, 96], STEPS, 4),
        omnibal.slice_sequences([700, 100], 300, np.abs),
    )

    def members(self, result):
        names = [n for n in dir(result) if not n.startswith("_")]
        values = {n: getattr(result, n) for n in names if not callable(getattr(result, n))}
        return {n: self.members(v) if type(v).__module__.startswith("omnibal") else
                v.tolist() if hasattr(v, "tolist") else v for n, v in values.items()}

    def test_results_are_pickled_and_copied(self):
        for result in self.RESULTS:
            copies = [pickle.loads(pickle.dumps(result, protocol)) for protocol in range(6)]
            for again in [*copies, copy.deepcopy(result), copy.copy(result)]:
                self.assertIs(type(again), type(result))
                self.assertEqual(self.members(again), self.members(result))
                self.assertEqual(repr(again), repr(result))
        again = pickle.loads(pickle.dumps(self.STEPS))
        self.assertEqual([[own.tolist() for own in step] for step in again],
                         [[own.tolist() for own in step] for step in self.STEPS])
        self.assertFalse(again.is_repeat(0, 1))

    def test_an_object_without_a_value_is_an_error(self):
        for result in self.RESULTS:
            empty = type(result).__new__(type(result))
            for name in {n for n in dir(result) if not n.startswith("_")}:
                if callable(getattr(result, name)):
                    continue
                with self.assertRaisesRegex(ValueError, "has no value"):
                    getattr(empty, name)
            self.assertRaises(ValueError, pickle.dumps, empty)

    def test_other_threads_run(self):
        forest = omnibal.build_prefix_forest(rollouts(1, 60, 16)[0])
        count = [0]
        stop = threading.Event()

        def tick():
            while not stop.is_set():
                count[0] += 1
                stop.wait(0.0005)

        thread = threading.Thread(target=tick)
        thread.start()
        before = count[0]
        omnibal.balance_prefixes(forest, 8, 400)
        after = count[0]
        stop.set()
        thread.join()
        self.assertGreater(after - before, 3)


if __name__ == "__main__":
    unittest.main()
