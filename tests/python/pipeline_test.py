# SPDX-License-Identifier: Apache-2.0
"""Pipelines: schedules, their simulation and the order of micro-batches."""

import copy
import os
import pathlib
import pickle
import tempfile
import threading
import time
import unittest

import numpy as np
import omnibal

NAMED = ("gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_v", "v_half", "v_min")
RANDOM = np.random.RandomState(5)
FORWARD = RANDOM.randint(1, 20, (4, 8))
BACKWARD = RANDOM.randint(1, 30, (4, 8))
WEIGHT = RANDOM.randint(1, 15, (4, 8))


def parsed(text):
    """The operations of a CSV, read as PyTorch's `_load_csv` does: (virtual stage, letter, micro-batch)."""
    rows = []
    for line in text.splitlines():
        row = []
        for action in line.split(","):
            letter = next(c for c in action if c.isalpha())
            stage, _, micro_batch = action.partition(letter)
            row.append((int(stage), letter, int(micro_batch)))
        rows.append(row)
    return rows


class Simulation(unittest.TestCase):
    def test_named_schedules(self):
        # GPipe and 1F1B of equal stages take (micro-batches + stages - 1) * (forward + backward).
        found = {name: omnibal.simulate_pipeline(1, 1, 4, 8, weight=1, bytes=10, schedule=name)
                 for name in NAMED}
        self.assertEqual([found[name].makespan for name in ("gpipe", "1f1b", "zb_h1", "zb_v")],
                         [33, 33, 27, 51])
        self.assertAlmostEqual(found["1f1b"].bubble_share, 3 / 11)
        self.assertEqual(found["gpipe"].peak_bytes.tolist(), [80] * 4)
        self.assertEqual(found["1f1b"].peak_bytes.tolist(), [40, 30, 20, 10])
        self.assertEqual(found["1f1b"].busy.tolist(), [24] * 4)
        self.assertLess(max(found["v_min"].peak_bytes), max(found["v_half"].peak_bytes))

    def test_all_forms_of_the_same_times_are_the_same(self):
        expected = omnibal.simulate_pipeline(3, 5, 2, 6, transfer=1, bytes=7)
        for forward in (np.full(2, 3), [3, 3], np.full((2, 6), 3), np.full((6, 2), 3).T,
                        np.full((2, 6), 3, dtype=np.int32), [[3] * 6] * 2):
            for transfer in (1, [1], np.ones((1, 6), dtype=int)):
                for size in (7, [7, 7], np.full((2, 6), 7, dtype=np.uint8)):
                    found = omnibal.simulate_pipeline(forward, 5, 2, 6, transfer=transfer, bytes=size)
                    self.assertEqual(found.makespan, expected.makespan)
                    self.assertEqual(found.peak_bytes.tolist(), expected.peak_bytes.tolist())

    def test_each_number_is_of_its_virtual_stage_and_micro_batch(self):
        # One stage runs all operations, one after the other.
        forward, backward = np.array([[1, 20, 300]]), np.array([[4000, 50000, 600000]])
        self.assertEqual(omnibal.simulate_pipeline(forward, backward, 1).makespan, 654321)
        # Only micro-batch 1 crosses the cut slowly; chunk 1 of stage 0 is the virtual stage 2.
        slow = omnibal.simulate_pipeline(1, 1, 2, transfer=[[0, 50]])
        self.assertEqual(slow.makespan, omnibal.simulate_pipeline(1, 1, 2, 2).makespan + 99)
        busy = omnibal.simulate_pipeline([1, 2, 4, 8], 0, 2, 1, schedule="interleaved_1f1b").busy
        self.assertEqual(busy.tolist(), [5, 10])
        busy = omnibal.simulate_pipeline([1, 2, 4, 8], 0, 2, 1, weight=0, schedule="zb_v").busy
        self.assertEqual(busy.tolist(), [9, 6])

    def test_integers_stay_integers(self):
        found = omnibal.simulate_pipeline(2**53 + 1, 0, 1, 1)
        self.assertEqual((found.makespan, found.busy.dtype), (2**53 + 1, np.int64))
        for times in ((1.5, 1), (1, 1.5), (np.float32(1.5), 1)):
            found = omnibal.simulate_pipeline(*times, 1, 1)
            self.assertEqual((found.makespan, found.busy.dtype), (2.5, np.float64))
        self.assertEqual(omnibal.simulate_pipeline(1, 1, 1, 1, weight=0.5).makespan, 2.5)
        self.assertEqual(omnibal.simulate_pipeline(1, 1, 2, 1, transfer=0.5).makespan, 5.0)


class Schedules(unittest.TestCase):
    def test_it_is_a_schedule_as_long_as_it_says_and_within_the_memory(self):
        for weight in (None, WEIGHT):
            for stages, chunks, placement in ((4, 1, "looped"), (2, 2, "looped"), (2, 2, "v_shape"),
                                              (4, 1, "bidirectional")):
                layout = {"chunks": chunks, "placement": placement}
                memory = 10 * chunks * 8
                found = omnibal.list_schedule(FORWARD, BACKWARD, stages, weight=weight, transfer=2,
                                              bytes=10, memory=memory, **layout)
                self.assertEqual((found.stages, found.micro_batches, found.chunks, found.placement),
                                 (stages, 8, chunks, placement))
                self.assertEqual(found.splits_backward, weight is not None)
                kinds = ["forward", "backward"] + ["weight"] * found.splits_backward
                every = sorted((k, c, m) for k in kinds for c in range(chunks) for m in range(8))
                self.assertEqual([sorted(row) for row in found.operations], [every] * stages)
                step = omnibal.simulate_pipeline(FORWARD, BACKWARD, stages, weight=weight, transfer=2,
                                                 bytes=10, schedule=found)
                self.assertEqual(step.makespan, found.makespan)
                self.assertLessEqual(step.peak_bytes.max(), memory)
                self.assertLessEqual(found.lower_bound, found.makespan)
                self.assertLessEqual(found.longest_stage, found.makespan)

    def test_it_is_never_longer_than_the_named_schedules(self):
        for name, stages, chunks, placement in (("1f1b", 4, 1, "looped"), ("zb_h1", 4, 1, "looped"),
                                                ("interleaved_1f1b", 2, 2, "looped"),
                                                ("zb_v", 2, 2, "v_shape")):
            found = omnibal.list_schedule(FORWARD, BACKWARD, stages, weight=WEIGHT, chunks=chunks,
                                          placement=placement)
            named = omnibal.simulate_pipeline(FORWARD, BACKWARD, stages, weight=WEIGHT, schedule=name)
            self.assertLessEqual(found.makespan, named.makespan, name)

    def test_memory_of_each_stage_and_the_objective(self):
        memory = [20, 10]
        found = omnibal.list_schedule(3, 5, 2, 6, bytes=10, memory=memory)
        peak = omnibal.simulate_pipeline(3, 5, 2, bytes=10, schedule=found).peak_bytes
        self.assertTrue((peak <= memory).all())
        stage = omnibal.list_schedule(FORWARD, BACKWARD, 4, weight=WEIGHT, objective="longest_stage")
        self.assertEqual(stage.objective, "longest_stage")
        self.assertLessEqual(stage.lower_bound, stage.longest_stage)
        self.assertRegex(repr(stage), r"^ListedSchedule\(4 stages, 8 micro-batches, longest stage \d+, ")
        chunked = omnibal.list_schedule(1, 2, 2, 1, chunks=2)
        self.assertRegex(repr(chunked), r"^ListedSchedule\(2 stages, 2 chunks, 1 micro-batch, makespan ")

    def test_the_csv_has_the_operations(self):
        letters = {False: {"forward": "F", "backward": "B"},
                   True: {"forward": "F", "backward": "I", "weight": "W"}}
        for weight in (None, WEIGHT):
            for placement in ("looped", "v_shape"):
                found = omnibal.list_schedule(FORWARD, BACKWARD, 2, weight=weight, chunks=2,
                                              placement=placement)
                expected = []
                for stage, row in enumerate(found.operations):
                    turned = {0: stage, 1: 2 + (stage if placement == "looped" else 1 - stage)}
                    expected.append([(turned[chunk], letters[found.splits_backward][kind], m)
                                     for kind, chunk, m in row])
                self.assertEqual(parsed(found.to_csv()), expected)
                with tempfile.TemporaryDirectory() as folder:
                    path = pathlib.Path(folder) / "schedule.csv"
                    for given in (path, os.fspath(path)):
                        self.assertIsNone(found.write_csv(given))
                        self.assertEqual(path.read_bytes().decode(), found.to_csv())
                    self.assertRaises(OSError, found.write_csv, path / "none")

    def test_pytorch_reads_the_csv(self):
        try:
            from torch.distributed.pipelining.schedules import _Action
        except ImportError:
            self.skipTest("torch is not installed")
        found = omnibal.list_schedule(FORWARD, BACKWARD, 2, weight=WEIGHT, chunks=2)
        for line, row in zip(found.to_csv().splitlines(), found.operations):
            actions = [_Action.from_str(action) for action in line.split(",")]
            self.assertEqual([a.microbatch_index for a in actions], [m for _, _, m in row])

    def test_other_threads_run(self):
        steps, ended = [], threading.Event()

        def count():
            while not ended.is_set():
                steps.append(time.perf_counter())
                time.sleep(0.0005)

        thread = threading.Thread(target=count)
        thread.start()
        begin = time.perf_counter()
        omnibal.list_schedule(1, 2, 8, 256, weight=1)
        end = time.perf_counter()
        ended.set()
        thread.join()
        self.assertGreater(sum(begin < at < end for at in steps), 5)


class Orders(unittest.TestCase):
    def test_the_order_makes_the_step_that_it_says(self):
        for schedule, stages in (("1f1b", 4), ("gpipe", 4), ("interleaved_1f1b", 2), ("zb_v", 2)):
            found = omnibal.order_micro_batches(FORWARD, BACKWARD, stages, weight=WEIGHT,
                                                schedule=schedule, simulations=200)
            order = found.order
            self.assertEqual((sorted(order), order.dtype), (list(range(8)), np.uint32))

            def makespan(order):
                return omnibal.simulate_pipeline(FORWARD[:, order], BACKWARD[:, order], stages,
                                                 weight=WEIGHT[:, order], schedule=schedule).makespan

            self.assertEqual(found.makespan, makespan(order))
            self.assertEqual(found.given_makespan, makespan(np.arange(8)))
            self.assertLessEqual(found.lower_bound, found.makespan)
            total = (FORWARD + BACKWARD + WEIGHT).sum(axis=0)
            self.assertLessEqual(
                found.makespan,
                min(found.given_makespan, makespan(omnibal.largest_in_middle(total))))

    def test_the_schedule_may_be_a_list(self):
        listed = omnibal.list_schedule(FORWARD, BACKWARD, 4)
        found = omnibal.order_micro_batches(FORWARD, BACKWARD, 4, schedule=listed, simulations=50)
        self.assertEqual(found.given_makespan, listed.makespan)
        self.assertLessEqual(found.makespan, listed.makespan)

    def test_largest_in_middle(self):
        self.assertEqual(omnibal.largest_in_middle([]).tolist(), [])
        for costs in ([9, 1, 5, 2], np.array([9.5, 1.5, 5.0, 2.0])):
            self.assertEqual(omnibal.largest_in_middle(costs).tolist(), [1, 2, 0, 3])


class Results(unittest.TestCase):
    def test_they_can_be_pickled_and_copied(self):
        listed = omnibal.list_schedule(FORWARD, BACKWARD, 2, weight=WEIGHT, chunks=2,
                                       placement="v_shape")
        whole = omnibal.list_schedule(1.5, 2, 2, 3)
        order = omnibal.order_micro_batches(FORWARD, BACKWARD, 4, simulations=10)
        step = omnibal.simulate_pipeline(FORWARD, BACKWARD, 4, bytes=3)
        for result in (listed, whole, order, step):
            copies = [pickle.loads(pickle.dumps(result, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
            for other in copies + [copy.copy(result), copy.deepcopy(result)]:
                self.assertEqual(repr(other), repr(result))
                for member in (m for m in dir(type(result)) if not m.startswith("_")):
                    if not callable(getattr(result, member)):
                        np.testing.assert_equal(getattr(other, member), getattr(result, member))
        self.assertEqual(pickle.loads(pickle.dumps(listed)).to_csv(), listed.to_csv())

    def test_a_wrong_state_is_an_error(self):
        made, (cls,), state = omnibal.list_schedule(1, 2, 2, 3).__reduce_ex__(4)
        state = list(state)
        state[5] = [row[1:] for row in state[5]]
        with self.assertRaisesRegex(ValueError, "^omnibal.ListedSchedule: lists"):
            made(cls).__setstate__(tuple(state))
        with self.assertRaisesRegex(ValueError, "has no value"):
            omnibal.simulate_pipeline(1, 2, 2, schedule=made(cls))


class Errors(unittest.TestCase):
    def check(self, function, text, *arguments, error=ValueError, **options):
        with self.assertRaises(error) as caught:
            getattr(omnibal, function)(*arguments, **options)
        self.assertEqual(str(caught.exception), "omnibal.%s: %s" % (function, text))

    def test_all_functions_name_the_argument_and_its_value(self):
        shape = "forward has the shape (3,), must be a number or have the shape (2,) or (2, 4)"
        for function in ("simulate_pipeline", "order_micro_batches", "list_schedule"):
            for text, arguments, options in (
                (shape, ([1, 2, 3], 1, 2, 4), {}),
                ("backward has the shape (2, 5), must be a number or have the shape (2,) or (2, 4)",
                 (np.ones((2, 4)), np.ones((2, 5)), 2), {}),
                ("forward has the shape (1, 2, 4), must be a number or have the shape (2,) or (2, 4)",
                 (np.ones((1, 2, 4)), 1, 2, 4), {}),
                ("transfer has the shape (2,), must be a number or have the shape (1,) or (1, 4)",
                 (1, 1, 2, 4), {"transfer": [1, 2]}),
                ("micro_batches is None, must be given if no argument has a number for each "
                 "micro-batch", (1, 1, 2), {}),
                ("stages is 0, must be positive", (1, 1, 0, 4), {}),
                ("stages is -1, must not be negative", (1, 1, -1, 4), {}),
                ("micro_batches is -1, must not be negative", (1, 1, 2, -1), {}),
                ("the type of weight is <U1, must be integers or floats",
                 (1, 1, 2, 4), {"weight": "x"}),
                ("forward time of stage 1, micro-batch 0 is -2, must be finite, not negative and below "
                 "2^63", ([1, -2], 1, 2, 4), {}),
            ):
                with self.subTest(function=function, text=text):
                    self.check(function, text, *arguments, **options)
            self.assertRaises(TypeError, getattr(omnibal, function), 1, 1)

    def test_schedules(self):
        listed = omnibal.list_schedule(1, 2, 2, 3)
        for function in ("simulate_pipeline", "order_micro_batches"):
            for text, arguments, options in (
                ("schedule is 'zb', must be gpipe, 1f1b, interleaved_1f1b, zb_h1, zb_v, v_half, v_min "
                 "or a ListedSchedule", (1, 1, 2, 4), {"schedule": "zb"}),
                ("weight is None, must be given if the schedule splits the backward pass",
                 (1, 1, 2, 4), {"schedule": "zb_h1"}),
                ("chunks is 2, must be 1 as in the schedule 'gpipe'",
                 (1, 1, 2, 4), {"schedule": "gpipe", "chunks": 2}),
                ("stages is 3, must be 2 as in the schedule", (1, 1, 3), {"schedule": listed}),
                ("micro_batches is 4, must be 3 as in the schedule",
                 (1, 1, 2, 4), {"schedule": listed}),
                ("chunks is 2, must be 1 as in the schedule",
                 (1, 1, 2), {"schedule": listed, "chunks": 2}),
            ):
                with self.subTest(function=function, text=text):
                    self.check(function, text, *arguments, **options)
            self.check(function, "schedule is of type int, must be a str or a ListedSchedule",
                       1, 1, 2, 4, schedule=3, error=TypeError)
        self.check("order_micro_batches", "simulations is -1, must not be negative",
                   1, 1, 2, 4, simulations=-1)

    def test_memory_and_words(self):
        for text, options in (
            ("memory is given, but bytes is None: every micro-batch has 0 bytes", {"memory": 3}),
            ("memory has 3 elements, must have 2, one for each stage",
             {"memory": [3, 3, 3], "bytes": 1}),
            ("memory[0] is 3, must be at least 10, which micro-batch 0 keeps",
             {"memory": 3, "bytes": 10}),
            ("the type of bytes is float64, must be integers", {"bytes": 1.5}),
            ("placement is 'v', must be looped, v_shape or bidirectional", {"placement": "v"}),
            ("objective is 'time', must be makespan or longest_stage", {"objective": "time"}),
            ("chunks is 2, must be 1 if the placement is bidirectional",
             {"placement": "bidirectional", "chunks": 2}),
        ):
            with self.subTest(text=text):
                self.check("list_schedule", text, 1, 1, 2, 4, **options)

    def test_pytorch_has_no_bidirectional_schedules(self):
        both = omnibal.list_schedule(1, 2, 2, 2, placement="bidirectional")
        with self.assertRaisesRegex(ValueError, r"^omnibal.ListedSchedule.to_csv: virtual stage 0 lies"):
            both.to_csv()


if __name__ == "__main__":
    unittest.main()
