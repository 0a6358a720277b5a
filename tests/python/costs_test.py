# SPDX-License-Identifier: Apache-2.0
"""Costs from measurements: the memory of checkpointed layers, tables of points, costs of degrees."""

import math
import pickle
import unittest

import numpy as np
import omnibal


class Probe(unittest.TestCase):
    def test_the_line_is_exact(self):
        for few, many in (((0, -300), (4, 100)), ((3, 7), (10, 2**61)), ((2, -1), (5, 9))):
            line = omnibal.two_point_probe(few, many)
            rise, run = many[1] - few[1], many[0] - few[0]
            self.assertEqual(line.bytes_per_layer, rise / run)
            for layers in range(15):
                self.assertEqual(line.free_bytes(layers), few[1] + rise * (layers - few[0]) // run)
            for target in (-100, 0, 1, 50, 333):
                fewest = next((n for n in range(13) if line.free_bytes(n) >= target), None)
                found = line.checkpointed_for(12, target)
                if fewest is None:
                    self.assertEqual((found.status, found.layers), ("infeasible", 12))
                    self.assertEqual(found.missing_bytes, target - line.free_bytes(12))
                else:
                    self.assertEqual((found.status, found.layers, found.missing_bytes),
                                     ("solved", fewest, 0))

    def test_copies_and_errors(self):
        line = omnibal.two_point_probe(np.array([0, -300]), (4, 100))
        again = pickle.loads(pickle.dumps(line))
        self.assertEqual((again.bytes_per_layer, again.free_bytes(2)), (100.0, -100))
        count = pickle.loads(pickle.dumps(line.checkpointed_for(1)))
        self.assertEqual(repr(count), "CheckpointCount(infeasible, 1 layer, 200 bytes missing)")
        self.assertEqual((count.status, count.missing_bytes), ("infeasible", 200))
        for few, many, text in (((4, 0), (4, 9), "many.checkpointed_layers is 4, must be above 4"),
                                ((0, 9), (4, 9), "many.free_bytes is 9, must be above 9"),
                                ((-1, 0), (4, 9), "few.checkpointed_layers is -1"),
                                ((0, 0, 0), (4, 9), "few has 3 elements, must be a pair"),
                                ((0, 0), (4, 9.5), "the type of many is float64"),
                                ((0, -2**63), (1, 2**63 - 1), "the difference of the readings")):
            with self.assertRaisesRegex(ValueError, "omnibal.two_point_probe: .*" + text):
                omnibal.two_point_probe(few, many)
        with self.assertRaisesRegex(ValueError, "omnibal.CheckpointLine: checkpointed_layers is -1"):
            line.free_bytes(-1)


class Table(unittest.TestCase):
    def test_floats_are_interpolated(self):
        sizes, values = [10, 20, 40], [3.0, 7.0, 8.0]
        cost = omnibal.measured_table(sizes, values)
        inside = np.arange(10, 41)
        self.assertTrue(np.allclose(cost(inside), np.interp(inside, sizes, values)))
        self.assertEqual((cost(60), cost(0)), (9.0, 0.0))
        self.assertAlmostEqual(cost(5), 1.0)
        self.assertEqual(cost(np.full((2, 3), 20)).tolist(), [[7.0] * 3] * 2)
        self.assertEqual((cost(np.int32(20)), cost([]).tolist()), (7.0, []))
        self.assertEqual(omnibal.measured_table([5], [2.5])(99), 2.5)

    def test_integers_are_exact_and_rounded(self):
        cost = omnibal.measured_table([0, 4], [0, 2**60 + 1])
        self.assertIsInstance(cost(1), int)
        for size in range(9):
            self.assertEqual(cost(size), (2 * size * (2**60 + 1) + 4) // 8)
        self.assertEqual(cost([1, 2]).dtype, np.int64)

    def test_copies_and_errors(self):
        cost = omnibal.measured_table([10, 20], [3.5, 7.0])
        again = pickle.loads(pickle.dumps(cost))
        self.assertEqual((again(15), again.sizes.tolist(), again.values.tolist()),
                         (cost(15), [10, 20], [3.5, 7.0]))
        self.assertEqual(repr(cost), "MeasuredCost(2 points)")
        for sizes, values, text in (([], [], "points is empty"), ([1, 1], [2, 3], r"sizes\[1\] is 1, must be above 1"),
                                    ([1, 2], [3], "values has 1 elements, must have 2"),
                                    ([1, 2], [3, -1], r"values\[1\] is -1"), ([1, 2], [3, math.nan], "nan"),
                                    ([1.5], [3], "the type of sizes is float64")):
            with self.assertRaisesRegex(ValueError, "omnibal.measured_table: .*" + text):
                omnibal.measured_table(sizes, values)
        with self.assertRaisesRegex(ValueError, "-1"):
            cost([3, -1])
        with self.assertRaisesRegex(ValueError, "the type of sizes is float64"):
            cost(1.5)
        with self.assertRaisesRegex(ValueError, "the value of a size"):
            omnibal.measured_table([0, 1], [0, 2**62])(5)


class ContextCost(unittest.TestCase):
    @staticmethod
    def time(length, degree):
        return 50 + 3 * length / degree + length * length / (1000 * degree)

    def test_a_parabola_is_found_again(self):
        for lengths in (None, [1000, 3000, 9000, 20000]):
            table = omnibal.tabulate_context_cost(self.time, 4, lengths=lengths)
            self.assertEqual(table.shape, (4, 3))
            for row, degree in zip(table, range(1, 5)):
                self.assertTrue(np.allclose(row, [50, 3 / degree, 0.001 / degree]), row)
        plan = omnibal.context_groups([4000, 1000, 500], 4, table, micro_step=1.0)
        self.assertEqual(plan.status, "solved")

    def test_the_function_is_called_for_each_length_and_degree(self):
        calls = []
        omnibal.tabulate_context_cost(lambda *at: calls.append(at) or 1, 2, lengths=[4, 2, 8])
        self.assertEqual(sorted(calls), [(n, d) for n in (2, 4, 8) for d in (1, 2)])
        calls.clear()
        omnibal.tabulate_context_cost(lambda *at: calls.append(at) or 1, 1)
        self.assertEqual([n for n, _ in calls], [1024 * 2**i for i in range(8)])

    def test_errors(self):
        for time, degrees, lengths, text in (
                (self.time, 0, None, "degrees is 0"), (self.time, -1, None, "degrees is -1"),
                (self.time, 1, [], "lengths is empty"), (self.time, 1, [1, 2, 2], "lengths is .*equal"),
                (self.time, 1, [0, 1, 2], r"lengths\[0\] is 0"),
                (lambda length, degree: -1.0, 1, None, r"time\(1024, 1\) is -1, must be positive")):
            with self.assertRaisesRegex(ValueError, "omnibal.tabulate_context_cost: .*" + text):
                omnibal.tabulate_context_cost(time, degrees, lengths=lengths)
        with self.assertRaises(ZeroDivisionError):
            omnibal.tabulate_context_cost(lambda length, degree: 1 / 0, 1)
        with self.assertRaises(TypeError):
            omnibal.tabulate_context_cost(lambda length, degree: [1], 1)


if __name__ == "__main__":
    unittest.main()
