# SPDX-License-Identifier: Apache-2.0
"""Activations that are kept, recomputed or offloaded, beside all choices of small models."""

import itertools
import pickle
import unittest

import numpy as np
import omnibal

RANDOM = np.random.RandomState(8)
CHOICES = ("keep", "recompute", "offload")


def random_layers(count, modules):
    return [omnibal.ActivationLayer(RANDOM.randint(1, 50, modules), RANDOM.randint(0, 9, modules),
                                    int(RANDOM.randint(4, 12)), int(RANDOM.randint(8, 24)),
                                    required=RANDOM.rand(modules) < 0.2,
                                    forward_transient_bytes=int(RANDOM.randint(9)),
                                    backward_transient_bytes=int(RANDOM.randint(9)))
            for _ in range(count)]


def all_choices(layers):
    """Every choice of each module that is valid."""
    needs = [need for layer in layers for need in layer.required.tolist()]
    sizes = np.cumsum([0] + [len(layer.bytes) for layer in layers])
    for flat in itertools.product(*[("keep", "offload") if need else CHOICES for need in needs]):
        yield [list(flat[a:b]) for a, b in zip(sizes, sizes[1:])]


class Select(unittest.TestCase):
    def test_nothing_adds_less_time(self):
        for modules, rate, in_flight in ((2, 0.0, 1), (2, 1.5, 1), (1, 2.0, 3), (2, 3.0, 2)):
            layers = random_layers(3, modules)
            options = {"in_flight": in_flight, "forward_traffic_bytes": 5}
            usages = [omnibal.measure_activations(layers, choices, rate, **options)
                      for choices in all_choices(layers)]
            smallest = min(usage.peak_bytes for usage in usages)
            largest = max(usage.peak_bytes for usage in usages)
            for budget in np.linspace(smallest, largest, 5).astype(int).tolist():
                best = min(usage.added_time for usage in usages if usage.peak_bytes <= budget)
                found = omnibal.select_activations(layers, budget, rate, effort="thorough", **options)
                self.assertEqual(found.status, "solved")
                self.assertLessEqual(found.peak_bytes, budget)
                self.assertLessEqual(found.lower_bound, best)
                self.assertGreaterEqual(found.added_time, best)
                if found.proven:
                    self.assertEqual(found.added_time, best)
                usage = omnibal.measure_activations(layers, found.choices, rate, **options)
                self.assertEqual((usage.added_time, usage.peak_bytes, usage.offloaded_bytes),
                                 (found.added_time, found.peak_bytes, found.offloaded_bytes))
            none = omnibal.select_activations(layers, smallest - 1, rate, **options)
            self.assertEqual((none.status, none.choices, none.peak_bytes, none.missing_bytes),
                             ("infeasible", [], smallest, 1))

    def test_the_frontier_is_monotone(self):
        layers = random_layers(6, 3)
        budgets = [900, 100, 400, 0, 650, 250]
        found = omnibal.activation_frontier(layers, budgets, 1.0, effort="fast")
        feasible = sorted((b, one) for b, one in zip(budgets, found) if one.status == "solved")
        self.assertEqual(found[3].status, "infeasible")
        self.assertGreater(len(feasible), 2)
        for (_, small), (_, large) in zip(feasible, feasible[1:]):
            self.assertGreaterEqual(small.added_time, large.added_time)
            self.assertLessEqual(small.peak_bytes, large.peak_bytes)
        for budget, one in feasible:
            alone = omnibal.select_activations(layers, budget, 1.0, effort="fast")
            self.assertLessEqual(one.peak_bytes, budget)
            self.assertLessEqual(one.added_time, alone.added_time)
        self.assertEqual(omnibal.activation_frontier(layers, [], 1.0), [])


class Measure(unittest.TestCase):
    def test_known_values(self):
        layer = omnibal.ActivationLayer([10, 40], [1, 9], 8, 16, backward_transient_bytes=3)
        keep = omnibal.measure_activations([layer] * 2, [["keep"] * 2] * 2, 0.0, in_flight=2)
        self.assertEqual((keep.kept_bytes, keep.held_bytes, keep.added_time), (100, 100, 0))
        self.assertEqual(keep.peak_bytes, 203)
        self.assertEqual(keep.forward_bytes.tolist(), [150, 200])
        self.assertEqual(keep.backward_bytes.tolist(), [153, 203])
        again = omnibal.measure_activations([layer] * 2, [["recompute"] * 2] * 2, 0.0)
        self.assertEqual((again.added_time, again.kept_bytes, again.peak_bytes), (20, 0, 53))
        away = omnibal.measure_activations([layer] * 2, [["offload"] * 2, ["keep"] * 2], 100.0)
        self.assertEqual((away.offloaded_bytes, away.kept_bytes, away.added_time), (50, 50, 0))

    def test_traffic_precedes_activations(self):
        layers = [omnibal.ActivationLayer([40], [1], 8, 8)] * 3
        choices = [["offload"]] * 3
        plain = omnibal.measure_activations(layers, choices, 5.0)
        busy = omnibal.measure_activations(layers, choices, 5.0, forward_traffic_bytes=100)
        back = omnibal.measure_activations(layers, choices, 5.0, backward_traffic_bytes=100)
        self.assertGreater(busy.peak_bytes, plain.peak_bytes)
        self.assertNotEqual(busy.forward_bytes.tolist(), back.forward_bytes.tolist())

    def test_traffic_of_layers_precedes_activations(self):
        # The link sends or fetches the bytes of a layer in one pass, but not behind other traffic.
        def bytes_of(**traffic):
            layers = [omnibal.ActivationLayer([40], [1], 8, 8, **traffic)] * 2
            usage = omnibal.measure_activations(layers, [["offload"]] * 2, 5.0)
            return usage.forward_bytes.tolist(), usage.backward_bytes.tolist()

        self.assertEqual(bytes_of(), ([0, 40], [40, 40]))
        # Each pass sends 20 bytes of activations: 20 of the first layer remain, then 40 of both.
        self.assertEqual(bytes_of(forward_traffic_bytes=20)[0], [20, 40])
        # A backward pass fetches 20 bytes, so that 20 of the first layer never leave.
        self.assertEqual(bytes_of(backward_traffic_bytes=20)[0], [20, 60])

    def test_floats(self):
        layers = [omnibal.ActivationLayer([10], [1], 8, 16), omnibal.ActivationLayer([10], [0.5], 8, 16)]
        usage = omnibal.measure_activations(layers, [["recompute"], ["recompute"]], 0.0)
        self.assertEqual(usage.added_time, 1.5)
        whole = omnibal.measure_activations(layers[:1], [["recompute"]], 0.0)
        self.assertIsInstance(whole.added_time, int)
        timed = omnibal.ActivationLayer([10], [1], 8.5, 16)
        self.assertEqual((timed.forward_time, timed.recompute_time.dtype), (8.5, np.float64))


class Values(unittest.TestCase):
    def test_copies(self):
        layer = omnibal.ActivationLayer([10, 40], [1, 9], 8, 16, required=[True, False],
                                        forward_transient_bytes=1, backward_transient_bytes=2,
                                        forward_traffic_bytes=3, backward_traffic_bytes=4)
        again = pickle.loads(pickle.dumps(layer))
        for name in ("bytes", "recompute_time", "required"):
            self.assertEqual(getattr(again, name).tolist(), getattr(layer, name).tolist())
            self.assertEqual(getattr(again, name).dtype, getattr(layer, name).dtype)
        self.assertEqual([(of.forward_time, of.backward_time, of.forward_transient_bytes,
                           of.backward_transient_bytes, of.forward_traffic_bytes,
                           of.backward_traffic_bytes) for of in (again, layer)],
                         [(8, 16, 1, 2, 3, 4)] * 2)
        found = omnibal.select_activations([layer] * 3, 140, 0.0)
        copied = pickle.loads(pickle.dumps(found))
        self.assertEqual((copied.choices, repr(copied)), (found.choices, repr(found)))
        usage = omnibal.measure_activations([layer] * 3, found.choices, 0.0)
        copied = pickle.loads(pickle.dumps(usage))
        self.assertEqual((copied.backward_bytes.tolist(), repr(copied)),
                         (usage.backward_bytes.tolist(), repr(usage)))
        for of in (omnibal.ActivationLayer, omnibal.ActivationsResult, omnibal.ActivationUsage):
            self.assertRaises(ValueError, repr, of.__new__(of))

    def test_errors(self):
        make = omnibal.ActivationLayer
        for call, text in (
                (lambda: make([1, 2], [1], 1, 1), "recompute_time has 1 elements, must have 2"),
                (lambda: make([1.5], [1], 1, 1), "the type of bytes is float64"),
                (lambda: make([1], [1], [1], 1), "forward_time has 1 dimensions, must be a number"),
                (lambda: make([1], [1], 1, "a"), "the type of backward_time is"),
                (lambda: make([1], [1], 1, 1, required=[1]), "required has the type int64"),
                (lambda: make([1], [1], 1, 1, required=[True, False]), "must be bool and")):
            with self.assertRaisesRegex(ValueError, "omnibal.ActivationLayer: .*" + text):
                call()
        layer = make([10], [1], 8, 16)
        for layers, options, text in (
                ([make([-1], [1], 8, 16)], {}, "-1"), ([make([1], [-1], 8, 16)], {}, "-1"),
                ([layer], {"in_flight": 0}, "in_flight is 0"), ([layer], {"labels": 0}, "labels is 0"),
                ([layer], {"labels": -2}, "labels is -2"), ([layer], {"effort": "all"}, "effort is 'all'"),
                ([layer], {"forward_traffic_bytes": -3}, "forward_traffic_bytes is -3")):
            with self.assertRaisesRegex(ValueError, "omnibal.select_activations: .*" + text):
                omnibal.select_activations(layers, 100, 1.0, **options)
        with self.assertRaisesRegex(ValueError, "select_activations: bytes_per_time.*-1"):
            omnibal.select_activations([layer], 100, -1.0)
        for choices, text in (([], "choices has 0"), ([["keep", "keep"]], r"choices\[0\] has 2"),
                              ([["drop"]], r"an element of choices\[0\] is 'drop'")):
            with self.assertRaisesRegex(ValueError, "omnibal.measure_activations: .*" + text):
                omnibal.measure_activations([layer], choices, 1.0)
        needed = make([10], [1], 8, 16, required=[True])
        with self.assertRaisesRegex(ValueError, "must be keep or offload"):
            omnibal.measure_activations([needed], [["recompute"]], 1.0)


if __name__ == "__main__":
    unittest.main()
