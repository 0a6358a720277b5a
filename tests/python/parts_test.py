# SPDX-License-Identifier: Apache-2.0
"""Balancing from homes, exactly, for costs that are no sums, of bundles; fits of costs."""

import copy
import functools
import itertools
import pickle
import unittest

import numpy as np
import omnibal

RANDOM = np.random.RandomState(17)


def loads_of(parts, costs):
    return np.array([np.asarray(costs)[part].sum(axis=0) for part in parts])


def all_parts(count, parts):
    """All assignments of samples to parts."""
    return itertools.product(range(parts), repeat=count)


class Rebalance(unittest.TestCase):
    HOME = omnibal.Groups([0, 30, 34, 60, 64], np.arange(64))
    COSTS = RANDOM.randint(1, 200, 64)
    BYTES = RANDOM.randint(1, 1000, 64)

    def moved(self, parts, of=None):
        of = self.BYTES if of is None else of
        return sum(int(of[i]) for rank, part in enumerate(parts) for i in part
                   if i not in self.HOME[rank])

    def test_it_is_even_and_moves_fewer_bytes_than_lpt(self):
        for costs in (self.COSTS, self.COSTS / 3, self.COSTS.astype(np.uint8)):
            found = omnibal.rebalance(self.HOME, costs, self.BYTES)
            self.assertEqual(sorted(found.items.tolist()), list(range(64)))
            bound = max(costs.sum() / 4, costs.max())
            self.assertLessEqual(loads_of(found, costs).max(), 1.01 * bound + 1)
            self.assertLess(self.moved(found), self.moved(omnibal.lpt(costs, 4)))

    def test_an_even_home_stays(self):
        home = omnibal.lpt(self.COSTS, 4)
        self.assertEqual(omnibal.rebalance(home, self.COSTS, self.BYTES).tolist(), home.tolist())

    def test_limits_counts_nodes_and_speeds(self):
        none = omnibal.rebalance(self.HOME, self.COSTS, self.BYTES, max_moved_bytes=0)
        self.assertEqual(none.tolist(), self.HOME.tolist())
        some = omnibal.rebalance(self.HOME, self.COSTS, self.BYTES, max_moved_bytes=5000)
        self.assertLessEqual(self.moved(some), 5000)
        self.assertLess(loads_of(some, self.COSTS).max(), loads_of(self.HOME, self.COSTS).max())
        counts = {rule: [len(part) for part in omnibal.rebalance(
            self.HOME, self.COSTS, self.BYTES, counts=rule)] for rule in ("kept", "equal")}
        self.assertEqual(counts, {"kept": [30, 4, 26, 4], "equal": [16] * 4})
        # The ranks 0 and 1, and 2 and 3, can be even by themselves.
        home = omnibal.Groups([0, 8, 8, 16, 16], np.arange(16))
        for nodes in ({"ranks_per_node": 2}, {"node_of": [7, 7, 3, 3]}):
            found = omnibal.rebalance(home, [1] * 16, [1] * 16, **nodes)
            self.assertEqual([sorted(np.array(part) // 8) for part in found],
                             [[0] * 4, [0] * 4, [1] * 4, [1] * 4])
        speeds = [1, 1, 2, 4]
        found = omnibal.rebalance(self.HOME, self.COSTS, self.BYTES, speeds=speeds)
        times = loads_of(found, self.COSTS) / speeds
        self.assertLessEqual(times.max(), 1.02 * self.COSTS.sum() / 8 + 1)

    def test_several_kinds_of_cost(self):
        rows = np.stack([self.COSTS, RANDOM.randint(1, 90, 64)], axis=1)
        found = omnibal.rebalance(self.HOME, rows, self.BYTES)
        self.assertEqual(found, omnibal.rebalance(self.HOME, tuple(rows.T), self.BYTES))
        floats = tuple((self.COSTS / 3).tolist())
        self.assertEqual(omnibal.rebalance(self.HOME, floats, self.BYTES),
                         omnibal.rebalance(self.HOME, np.array(floats), self.BYTES))
        shares = loads_of(found, rows) / rows.sum(axis=0)
        before = loads_of(self.HOME, rows) / rows.sum(axis=0)
        self.assertLess(shares.max(), before.max())
        self.assertLess(shares.max(), 0.3)

    def test_errors(self):
        for change, text in (
                ({"counts": "some"}, "counts is 'some', must be any, kept, equal or at_most_one_apart"),
                ({"costs": [1, 2]}, "cost has 2 elements, but there are 64 samples"),
                ({"bytes": -self.BYTES}, "bytes"),
                ({"max_overload": -1}, "max_overload is -1"),
                ({"node_of": [1, 2]}, "node_of has 2 elements"),
                ({"speeds": [1, 0, 1, 1]}, r"speeds\[1\] is 0"),
                ({"home": omnibal.Groups([0, 2], [0, 0])}, "")):
            arguments = {"home": self.HOME, "costs": self.COSTS, "bytes": self.BYTES, **change}
            with self.assertRaisesRegex(ValueError, "omnibal.rebalance: .*" + text):
                omnibal.rebalance(**arguments)


class Optimal(unittest.TestCase):
    def test_no_parts_are_better(self):
        for seed in range(60):
            random = np.random.RandomState(seed)
            count, parts = random.randint(1, 8), random.randint(1, 4)
            costs = random.randint(0, 20, count)
            found = omnibal.balance_optimally(costs, parts)
            best = min(max(np.bincount(of, weights=costs, minlength=parts))
                       for of in all_parts(count, parts))
            self.assertEqual((found.status, found.proven), ("solved", True))
            self.assertEqual((found.largest_load, found.lower_bound), (best, best))
            self.assertEqual(loads_of(found.parts, costs).max(), best)
            self.assertEqual(sorted(found.parts.items.tolist()), list(range(count)))

    def test_counts_kinds_and_speeds(self):
        for seed in range(20):
            random = np.random.RandomState(seed)
            costs = random.randint(0, 20, 6)
            equal = omnibal.balance_optimally(costs, 2, count="equal")
            best = min(max(costs[list(half)].sum(), costs.sum() - costs[list(half)].sum())
                       for half in itertools.combinations(range(6), 3))
            self.assertEqual((equal.largest_load, equal.proven), (best, True))
            self.assertEqual([len(part) for part in equal.parts], [3, 3])
            rows = 1 + random.randint(0, 20, (6, 2))
            found = omnibal.balance_optimally(rows, 2)
            shares = rows / rows.sum(axis=0)
            best = min(max(shares[np.array(of) == part].sum(axis=0).max() for part in range(2))
                       for of in all_parts(6, 2))
            self.assertAlmostEqual(found.largest_load, best)
            fast = omnibal.balance_optimally(costs, 2, speeds=[1, 3])
            best = min(max(costs[np.array(of) == 0].sum() / 1, costs[np.array(of) == 1].sum() / 3)
                       for of in all_parts(6, 2))
            times = loads_of(fast.parts, costs) / [1, 3]
            self.assertAlmostEqual(times.max(), best)

    def test_results_and_errors(self):
        found = omnibal.balance_optimally([1.5, 2.5], 1)
        self.assertEqual((found.largest_load, type(found.lower_bound)), (4.0, float))
        again = pickle.loads(pickle.dumps(found))
        self.assertEqual((again.parts, again.largest_load), (found.parts, found.largest_load))
        self.assertEqual(repr(copy.copy(found)), repr(found))
        hard = RANDOM.randint(10**6, 10**7, 40)
        self.assertLessEqual(omnibal.balance_optimally(hard, 7, nodes=1).lower_bound,
                             omnibal.balance_optimally(hard, 7, nodes=1).largest_load)
        with self.assertRaisesRegex(ValueError, "balance_optimally: parts is 0"):
            omnibal.balance_optimally([1], 0)
        with self.assertRaisesRegex(ValueError, "count is 'kept', must be any, equal or at_most_one"):
            omnibal.balance_optimally([1], 1, count="kept")


class SetCosts(unittest.TestCase):
    COSTS = {
        "padded_batch": lambda lengths, a, b: len(lengths) * max(lengths),
        "padded_attention": lambda lengths, a, b: len(lengths) * (a * max(lengths) + b * max(lengths)**2),
        "unmasked_pack": lambda lengths, a, b: a * sum(lengths) + b * sum(lengths)**2,
    }

    def largest(self, parts, lengths, name, a, b):
        return max(self.COSTS[name]([lengths[i] for i in part], a, b) for part in parts if len(part))

    def test_no_runs_are_better(self):
        for seed in range(40):
            random = np.random.RandomState(seed)
            lengths = random.randint(1, 60, random.randint(2, 9))
            for name in self.COSTS:
                for weights in ({}, {"linear": 3, "quadratic": 2}, {"linear": 0.5, "quadratic": 0.25}):
                    if name == "padded_batch" and weights:
                        continue
                    a, b = weights.get("linear", 0), weights.get("quadratic", 1)
                    for order in ("largest_first", "given"):
                        self.check(lengths, name, a, b, order, weights)

    def check(self, lengths, name, a, b, order, weights):
        count, parts = len(lengths), 2
        found = omnibal.balance_set_cost(lengths, parts, cost=name, order=order, **weights)
        runs = np.concatenate([part for part in found])
        wanted = np.arange(count)
        if order == "largest_first":
            wanted = np.argsort(-lengths, kind="stable")
        self.assertEqual(runs.tolist(), wanted.tolist())
        best = min(self.largest([wanted[:cut], wanted[cut:]], lengths, name, a, b)
                   for cut in range(1, count))
        self.assertAlmostEqual(self.largest(found, lengths, name, a, b), best)

    def test_the_parts_of_padded_batches_are_the_best_of_all(self):
        for seed in range(10):
            lengths = np.random.RandomState(seed).randint(1, 60, 7)
            found = omnibal.balance_set_cost(lengths, 3)
            best = min(self.largest([np.flatnonzero(np.array(of) == part) for part in range(3)],
                                    lengths, "padded_batch", 0, 1) for of in all_parts(7, 3))
            self.assertEqual(self.largest(found, lengths, "padded_batch", 0, 1), best)
        self.assertEqual(omnibal.balance_set_cost(lengths / 2, 3), found)

    def test_it_is_a_balancer_of_plans(self):
        lengths = RANDOM.randint(1, 60, 30)
        plan = omnibal.make_plan([0, 20, 30], lengths, lengths, balance=omnibal.balance_set_cost)
        attention = functools.partial(omnibal.balance_set_cost, cost="padded_attention")
        omnibal.make_plan([0, 20, 30], lengths, lengths, balance=attention)
        self.assertEqual({frozenset(part.tolist()) for part in plan.arrivals},
                         {frozenset(part.tolist()) for part in omnibal.balance_set_cost(lengths, 2)})

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "cost is 'sum', must be padded_batch, padded_attention or"):
            omnibal.balance_set_cost([1], 1, cost="sum")
        with self.assertRaisesRegex(ValueError, "linear is 2 and quadratic is 1, but a padded_batch"):
            omnibal.balance_set_cost([1], 1, linear=2)
        with self.assertRaisesRegex(ValueError, "length of a sample is -1"):
            omnibal.balance_set_cost([-1], 1)
        with self.assertRaisesRegex(ValueError, "too large|exceeds"):
            omnibal.balance_set_cost([2**40, 2**40], 1, cost="unmasked_pack")


class Bundles(unittest.TestCase):
    def test_equal_keys_are_together(self):
        keys = RANDOM.randint(0, 40, 300)
        for given in (keys, keys.astype(str), [str(key) for key in keys], keys.astype(np.uint8)):
            bundles = omnibal.bundle_by(given)
            wanted = {}
            for i, key in enumerate(keys.tolist()):
                wanted.setdefault(key, []).append(i)
            self.assertEqual(bundles.tolist(), list(wanted.values()))
        for given, text in (([0.5], "type of keys is float64"), ([[1]], "2 dimensions")):
            with self.assertRaisesRegex(ValueError, "omnibal.bundle_by: .*" + text):
                omnibal.bundle_by(given)

    def test_a_packing_keeps_bundles_whole(self):
        keys = RANDOM.randint(0, 60, 300)
        demands = np.stack([np.ones(300, dtype=int), RANDOM.randint(1, 400, 300)], axis=1)
        bundles = omnibal.bundle_by(keys)
        loads = omnibal.bundle_loads(bundles, demands)
        self.assertEqual(loads.tolist(), loads_of(bundles, demands).tolist())
        self.assertEqual(omnibal.bundle_loads(bundles, demands[:, 1]).tolist(), loads[:, 1].tolist())
        of_bundles = omnibal.best_packing(loads, (20, 1500))
        packed = omnibal.unbundle(of_bundles, bundles)
        self.assertIsInstance(packed, omnibal.Packing)
        self.assertEqual(sorted(packed.groups.items.tolist() + packed.oversized.tolist()),
                         list(range(300)))
        for group, of in zip(packed.groups, of_bundles.groups):
            self.assertEqual(group.tolist(), [i for b in of for i in bundles[b]])
        parts = omnibal.lpt(loads[:, 1], 3)
        whole = omnibal.unbundle(parts, bundles)
        self.assertTrue(all(len({part for part, group in enumerate(whole) if i in group}) == 1
                            for i in range(300)))

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "bundle_loads: .*"):
            omnibal.bundle_loads(omnibal.Groups([0, 1], [0]), [1, 2])
        with self.assertRaisesRegex(ValueError, "unbundle: group 0 has bundle 3, but there are 1"):
            omnibal.unbundle(omnibal.Groups([0, 1], [3]), omnibal.Groups([0, 1], [0]))
        with self.assertRaisesRegex(TypeError, "unbundle: groups is a list, must be Groups or a Packing"):
            omnibal.unbundle([[0]], omnibal.Groups([0, 1], [0]))


class Fits(unittest.TestCase):
    def test_least_squares(self):
        for seed in range(20):
            random = np.random.RandomState(seed)
            sizes = random.rand(30, 1 + seed % 3)
            values = 3 + sizes @ (1 + np.arange(sizes.shape[1])) + 0.1 * random.randn(30)
            for options, columns in (({}, [np.ones((30, 1)), sizes]), ({"offset": "zero"}, [sizes])):
                cost = omnibal.affine_fit(sizes, values, **options)
                solved, *_ = np.linalg.lstsq(np.hstack(columns), values, rcond=None)
                found = cost.slopes if options else np.concatenate([[cost.offset], cost.slopes])
                np.testing.assert_allclose(found, solved, rtol=1e-8)
                missed = values - cost.offset - sizes @ cost.slopes
                self.assertAlmostEqual(cost.root_mean_square_residual, np.sqrt(np.mean(missed**2)))
                self.assertAlmostEqual(cost.largest_residual, np.abs(missed).max())
                self.assertEqual(cost.largest_residual_index, np.abs(missed).argmax())
                self.assertFalse(cost.exact)
                np.testing.assert_allclose(cost(sizes), np.maximum(0, values - missed))
                self.assertEqual(omnibal.affine_fit(tuple(sizes.T), values, **options).offset, cost.offset)

    def test_exact_fits_signs_and_outliers(self):
        tokens = RANDOM.randint(1, 5000, 40)
        cost = omnibal.affine_fit((tokens, tokens**2), 7 + 2 * tokens + 3 * tokens**2)
        self.assertEqual((cost.offset, cost.slopes.tolist(), cost.exact), (7, [2, 3], True))
        self.assertEqual(cost([[4, 16]]).tolist(), [7 + 8 + 48])
        self.assertTrue((omnibal.affine_fit(tokens, 5 - 2 * tokens, signs="not_negative").slopes >= 0).all())
        self.assertEqual(omnibal.affine_fit([1, 2], [3, 1])(9), 0.0)
        wrong = 5 + 2.0 * tokens
        wrong[3] *= 50
        robust = omnibal.affine_fit(tokens, wrong, loss="huber")
        plain = omnibal.affine_fit(tokens, wrong)
        self.assertLess(abs(robust.slopes[0] - 2), abs(plain.slopes[0] - 2) / 10)
        near = np.stack([tokens, 2 * tokens + RANDOM.randint(0, 2, 40)], axis=1)
        found = omnibal.affine_fit(near, wrong)
        self.assertEqual(found.collinear_kinds(), [0, 1])
        self.assertEqual(found.collinear_kinds(1e300), [])

    def test_pickle_and_errors(self):
        cost = omnibal.affine_fit([1, 2, 3], [13, 23, 33])
        again = pickle.loads(pickle.dumps(cost))
        self.assertEqual((again(10), repr(again)), (103.0, repr(cost)))
        for arguments, text in (
                (([1, 2], [1]), "there are 2 sizes and 1 values"),
                (([1], [1]), "point"),
                (([5, 5], [1, 2]), "kind 0 of size is 5"),
                (([1, 2], [1, float("nan")]), "must be finite"),
                ((np.ones((5, 4)), np.ones(5)), "up to three numbers")):
            with self.assertRaisesRegex(ValueError, "omnibal.affine_fit: .*" + text):
                omnibal.affine_fit(*arguments)
        with self.assertRaisesRegex(ValueError, "affine_cost: sizes have 2 kinds, must have 1"):
            cost([[1, 2]])


if __name__ == "__main__":
    unittest.main()
