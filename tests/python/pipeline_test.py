# SPDX-License-Identifier: Apache-2.0
"""Pipelines: schedules, their simulation, the order of micro-batches, costs of models, plans."""

import copy
import itertools
import json
import os
import pathlib
import pickle
import re
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

    def test_slices_of_sequences(self):
        # Slices of one each are 1F1B; the passes of a sequence run backward in reverse order.
        options = dict(bytes=1, timeline="recorded")
        whole = omnibal.simulate_pipeline(FORWARD, BACKWARD, 4, **options)
        single = omnibal.simulate_pipeline(FORWARD, BACKWARD, 4, schedule="sliced_1f1b",
                                           slices=[1] * 8, **options)
        self.assertEqual(single.makespan, whole.makespan)
        self.assertEqual(single.timeline.tolist(), whole.timeline.tolist())
        sliced = omnibal.simulate_pipeline(1, 2, 4, schedule="sliced_1f1b", slices=[4, 2, 2],
                                           **options)
        last = sliced.timeline[sliced.timeline["stage"] == 3]
        last = last[np.argsort(last["begin"])]
        order = last[last["kind"] == "backward"]["micro_batch"]
        self.assertEqual(order.tolist(), [3, 2, 1, 0, 5, 4, 7, 6])
        # 1 + (stages - 1) / slices times the work of a stage, and the bytes of Seq1F1B.
        self.assertEqual(sliced.makespan, 3 * (8 + 3))
        self.assertEqual(sliced.peak_bytes.tolist(), [7, 6, 5, 4])
        cut = omnibal.slice_sequences([900, 300, 200], 300, lambda n: n, block=100)
        counts = cut.slice_counts
        step = omnibal.simulate_pipeline(1.5, 2, 2, len(cut), schedule="sliced_1f1b", slices=counts)
        self.assertEqual(step.busy.tolist(), [3.5 * len(cut)] * 2)

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


class Timelines(unittest.TestCase):
    def step(self, schedule="zb_v", **options):
        options = {"weight": WEIGHT, "transfer": 2, **options}
        return omnibal.simulate_pipeline(FORWARD, BACKWARD, 2, schedule=schedule, timeline="recorded",
                                         **options)

    def test_operations_are_those_of_the_step(self):
        for schedule in ("interleaved_1f1b", "zb_v", "dual_pipe_v"):
            found = self.step(schedule)
            line = found.timeline
            self.assertEqual(line.dtype.names, ("kind", "stage", "chunk", "micro_batch", "begin", "end"))
            self.assertEqual(line["end"].max(), found.makespan)
            length = line["end"] - line["begin"]
            self.assertEqual([length[line["stage"] == s].sum() for s in range(2)], found.busy.tolist())
            of = {"forward": FORWARD, "backward": BACKWARD, "weight": WEIGHT}
            splits = schedule != "interleaved_1f1b"
            turn = [[0, 1], [3, 2]] if splits else [[0, 1], [2, 3]]
            self.assertEqual(len(line), 2 * 2 * 8 * (3 if splits else 2))
            for kind, stage, chunk, micro_batch, begin, end in line.tolist():
                unit = turn[chunk][stage], micro_batch
                expected = of[kind][unit]
                if not splits and kind == "backward":
                    expected += WEIGHT[unit]
                self.assertEqual(end - begin, expected, (kind, unit))
            for stage in range(2):
                own = line[line["stage"] == stage]
                self.assertTrue((own["begin"][1:] >= own["end"][:-1]).all())

    def test_it_is_none_unless_recorded(self):
        self.assertIsNone(omnibal.simulate_pipeline(1, 2, 2, 4).timeline)
        with self.assertRaisesRegex(ValueError, "timeline is 'all', must be none or recorded"):
            omnibal.simulate_pipeline(1, 2, 2, 4, timeline="all")
        again = pickle.loads(pickle.dumps(self.step()))
        self.assertEqual(again.timeline.tolist(), self.step().timeline.tolist())

    def test_a_trace_has_each_operation(self):
        for scale, unit in ((1, "microseconds"), (1000, "milliseconds"), (10**6, "seconds")):
            line = self.step().timeline
            text = omnibal.write_trace(line, unit=unit, process='a "b"', process_id=7,
                                       stage_names=["first", "last"])
            events = json.loads(text)["traceEvents"]
            self.assertEqual({event["pid"] for event in events}, {7})
            names = [event["args"]["name"] for event in events if event["ph"] == "M"]
            self.assertEqual(names, ['a "b"', "first", "last"])
            found = [(e["cat"], e["tid"], e["args"]["chunk"], e["args"]["micro_batch"], e["ts"],
                      e["ts"] + e["dur"]) for e in events if e["ph"] == "X"]
            expected = [(*row[:4], row[4] * scale, row[5] * scale) for row in line.tolist()]
            self.assertEqual(found, expected)

    def test_a_trace_of_floats_and_of_own_operations(self):
        step = omnibal.simulate_pipeline(1.5, 2, 1, 1, timeline="recorded")
        events = json.loads(omnibal.write_trace(step.timeline, unit="microseconds"))["traceEvents"]
        self.assertEqual([e["dur"] for e in events if e["ph"] == "X"], [1.5, 2])
        self.assertEqual(events[-1]["args"]["name"], "stage 0")
        exact = omnibal.simulate_pipeline(2**60 + 1, 0, 1, 1, timeline="recorded").timeline
        self.assertIn('"dur":%d.%03d' % divmod(2**60 + 1, 1000), omnibal.write_trace(exact))

    def test_errors_of_traces(self):
        line = self.step().timeline
        wrong = line.copy()
        wrong["kind"][3] = "update"
        late = line.copy()
        late["begin"][2] = late["end"][2] + 1
        below = np.array([("forward", -1, 0, 0, 0, 1)],
                         dtype=[(n, line.dtype[n] if n != "stage" else "i4") for n in line.dtype.names])
        for given, options, text in (
                (None, {}, "timeline is None, must be the timeline of a simulation"),
                ([1, 2], {}, "timeline has no field 'begin'"),
                (line[["begin", "end"]], {}, "timeline has no field 'kind'"),
                (line.reshape(2, -1), {}, "timeline has 2 dimensions"),
                (wrong, {}, "a kind of timeline is 'update', must be forward, backward or weight"),
                (late, {}, "of operation 2 is below"),
                (below, {}, r"an element of timeline\['stage'\] is -1"),
                (line, {"unit": "hours"}, "unit is 'hours'"),
                (line, {"process_id": -1}, "process_id is -1"),
                (line, {"stage_names": ["one"]}, "stage_names has 1 names, but timeline has stage 1")):
            with self.assertRaisesRegex(ValueError, "omnibal.write_trace: .*" + text):
                omnibal.write_trace(given, **options)


class InFlight(unittest.TestCase):
    SIZES = {"interleaved_1f1b": 2, "zb_v": 2, "v_half": 2, "v_min": 2, "dual_pipe_v": 2}

    def test_peaks_are_those_of_the_simulation(self):
        for name in (*NAMED, "dual_pipe_v"):
            peak = omnibal.peak_in_flight(name, 4, 8)
            step = omnibal.simulate_pipeline(1, 1, 4, 8, weight=1, bytes=10, schedule=name)
            self.assertEqual((10 * peak).tolist(), step.peak_bytes.tolist(), name)
            chunks = self.SIZES.get(name, 1)
            sizes = np.array([[7, 5, 6, 1], [2, 9, 4, 3]])[:chunks]
            # Row c has the bytes of chunk c by stage; in a V, chunk 1 runs in descending order.
            by_virtual_stage = sizes.copy()
            if name not in ("interleaved_1f1b", "gpipe", "1f1b", "zb_h1"):
                by_virtual_stage[1] = sizes[1][::-1]
            step = omnibal.simulate_pipeline(1, 1, 4, 8, weight=1, schedule=name,
                                             bytes=by_virtual_stage.ravel())
            counts = omnibal.chunks_in_flight(name, 4, 8)
            found = [int((rows @ sizes[:, s]).max()) for s, rows in enumerate(counts)]
            self.assertEqual(found, step.peak_bytes.tolist(), name)
            self.assertEqual({rows.shape[1] for rows in counts}, {chunks})

    def test_listed_schedules_have_their_sizes(self):
        listed = omnibal.list_schedule(FORWARD, BACKWARD, 2, chunks=2)
        peak = omnibal.peak_in_flight(listed)
        step = omnibal.simulate_pipeline(FORWARD, BACKWARD, 2, bytes=1, schedule=listed)
        self.assertEqual(peak.tolist(), step.peak_bytes.tolist())
        self.assertEqual(peak.tolist(), omnibal.peak_in_flight(listed, 2, 8, chunks=2).tolist())
        self.assertEqual(len(omnibal.chunks_in_flight(listed)), 2)
        for sizes, text in (((3,), "stages is 3, must be 2"), ((2, 7), "micro_batches is 7")):
            with self.assertRaisesRegex(ValueError, text):
                omnibal.peak_in_flight(listed, *sizes)

    def test_errors(self):
        for call in (omnibal.peak_in_flight, omnibal.chunks_in_flight):
            for arguments, text in ((("1f1b",), "stages is None"), (("1f1b", 4), "micro_batches is None"),
                                    (("1f1b", -4, 2), "stages is -4"), (("2f2b", 1, 1), "'2f2b'"),
                                    (("1f1b", 0, 2), "stages is 0")):
                with self.assertRaisesRegex(ValueError, "omnibal.%s: .*%s" % (call.__name__, text)):
                    call(*arguments)
            with self.assertRaisesRegex(ValueError, "chunks is 3, must be 1"):
                call("1f1b", 1, 1, chunks=3)
            self.assertRaises(TypeError, call, 7, 1, 1)


class DualPipeV(unittest.TestCase):
    def test_it_keeps_few_units_and_is_as_long_as_its_work(self):
        for stages, batches in ((1, 2), (2, 4), (3, 8), (4, 20)):
            peak = omnibal.peak_in_flight("dual_pipe_v", stages, batches)
            self.assertLessEqual(peak.max(), 2 * stages + 1)
            step = omnibal.simulate_pipeline(1, 1, stages, batches, weight=1, schedule="dual_pipe_v")
            self.assertEqual(step.busy.tolist(), [6 * batches] * stages)
            self.assertGreaterEqual(step.makespan, 6 * batches)
            self.assertLess(step.makespan, 6 * batches + 6 * stages)
        # The first stage fills with the first chunk, and then runs both chunks in turn.
        line = omnibal.simulate_pipeline(1, 1, 2, 4, weight=1, schedule="dual_pipe_v",
                                         timeline="recorded").timeline
        first = line[line["stage"] == 0][:4]
        self.assertEqual(first["chunk"].tolist(), [0, 0, 0, 1])

    def test_errors(self):
        text = "micro_batches is 7, must be at least twice the stages, which are 4, in the schedule"
        with self.assertRaisesRegex(ValueError, "omnibal.simulate_pipeline: " + text):
            omnibal.simulate_pipeline(1, 1, 4, 7, weight=1, schedule="dual_pipe_v")
        with self.assertRaisesRegex(ValueError, "weight is None"):
            omnibal.simulate_pipeline(1, 1, 4, 8, schedule="dual_pipe_v")
        with self.assertRaisesRegex(ValueError, "chunks is 3, must be 2"):
            omnibal.simulate_pipeline(1, 1, 4, 8, weight=1, chunks=3, schedule="dual_pipe_v")


class Estimates(unittest.TestCase):
    def test_they_are_the_formula(self):
        for times in ([3, 5, 2, 4], [1.5, 2, 0, 9]):
            self.assertEqual(omnibal.estimate_makespan(times, 8), 7 * max(times) + sum(times))
        equal = omnibal.simulate_pipeline(1, 2, 4, 8).makespan
        self.assertEqual(omnibal.estimate_makespan([3] * 4, 8), equal)
        chunked = omnibal.simulate_pipeline(1, 1, 4, 8, schedule="interleaved_1f1b").makespan
        self.assertEqual(omnibal.estimate_makespan([2] * 8, 8, chunks=2), chunked)
        turned = omnibal.simulate_pipeline(1, 1, 4, 8, weight=1, schedule="zb_v").makespan
        self.assertEqual(omnibal.estimate_makespan([3] * 8, 8, chunks=2, placement="v_shape"), turned)
        self.assertIsInstance(omnibal.estimate_makespan([1], 1), int)
        self.assertIsInstance(omnibal.estimate_makespan([1.0], 1), float)

    def test_errors(self):
        for arguments, options, text in (
                (([1, 2, 3], 4), {"chunks": 2}, "times has 3 elements, .* multiple of the chunks"),
                (([], 4), {}, "times has 0 elements"), (([1], 0), {}, "micro_batches is 0"),
                (([1], -1), {}, "micro_batches is -1"), (([1], 1), {"chunks": 0}, "chunks is 0"),
                (([1, -2], 1), {}, r"times\[1\] is -2"),
                (([1], 1), {"placement": "bidirectional"}, "must be looped or v_shape"),
                (([2**62, 2**62], 4), {}, "the makespan")):
            with self.assertRaisesRegex(ValueError, "omnibal.estimate_makespan: .*" + text):
                omnibal.estimate_makespan(*arguments, **options)


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
                ("schedule is 'zb', must be gpipe, 1f1b, interleaved_1f1b, zb_h1, zb_v, v_half, v_min, "
                 "dual_pipe_v%s or a ListedSchedule"
                 % (", sliced_1f1b" if function == "simulate_pipeline" else ""),
                 (1, 1, 2, 4), {"schedule": "zb"}),
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
        for text, options in (
            ("slices is None, must be given with the schedule 'sliced_1f1b'", {"slices": None}),
            ("slices is given, which requires the schedule 'sliced_1f1b'", {"schedule": "1f1b"}),
            ("slices is empty, must have a number for each sequence", {"slices": []}),
            ("slices[1] is 0, must be positive", {"slices": [2, 0]}),
            ("an element of slices is -1, must be in [0, 4294967295]", {"slices": [-1]}),
            ("micro_batches is 4, must be 3 as in the sum of slices", {"micro_batches": 4}),
            ("chunks is 2, must be 1 as in the schedule 'sliced_1f1b'", {"chunks": 2}),
        ):
            self.check("simulate_pipeline", text, 1, 1, 2,
                       **{"schedule": "sliced_1f1b", "slices": [2, 1], **options})
        self.assertRaises(TypeError, omnibal.order_micro_batches, 1, 1, 2, 4, slices=[4])

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


class Plans(unittest.TestCase):
    def best(self, times, sizes, stages, batches, memory, state):
        """The shortest step over all cuts and choices."""
        layers = len(times)
        best = None
        for cuts in itertools.combinations(range(1, layers), stages - 1):
            ends = [0, *cuts, layers]
            for choices in itertools.product(*(range(len(row)) for row in times)):
                chosen = [times[l][c] for l, c in enumerate(choices)]
                kept = [sizes[l][c] for l, c in enumerate(choices)]
                sums = [sum(chosen[a:b]) for a, b in zip(ends, ends[1:])]
                bytes = [min(stages - s, batches) * sum(kept[a:b]) + sum(state[a:b])
                         for s, (a, b) in enumerate(zip(ends, ends[1:]))]
                if all(used <= memory for used in bytes):
                    step = (batches - 1) * max(sums) + sum(sums)
                    best = step if best is None else min(best, step)
        return best

    def test_no_cuts_and_choices_have_a_shorter_step(self):
        for seed in range(25):
            random = np.random.RandomState(seed)
            layers, stages, batches = 5, random.randint(1, 4), random.randint(1, 6)
            times = random.randint(1, 9, (layers, 1)) + np.array([[0, 2]])
            sizes = np.stack([random.randint(5, 15, layers), random.randint(0, 5, layers)], axis=1)
            state = random.randint(0, 9, layers)
            memory = int(random.randint(20, 90))
            best = self.best(times, sizes, stages, batches, memory, state)
            plan = omnibal.plan_pipeline(times, sizes, stages, batches, memory, state_bytes=state)
            flat = omnibal.plan_pipeline(times.ravel(), sizes.ravel(), stages, batches, memory,
                                         offsets=range(0, 2 * layers + 1, 2), state_bytes=state)
            self.assertEqual(plan.to_json(), flat.to_json())
            if best is None:
                self.assertEqual(plan.status, "infeasible")
                self.assertGreater(plan.missing_bytes, 0)
                continue
            self.assertEqual(plan.status, "solved")
            self.assertLessEqual(plan.lower_bound, best)
            self.assertGreaterEqual(plan.step_time, best)
            if plan.proven:
                self.assertEqual(plan.step_time, best)
            self.check(plan, times, sizes, batches, memory, state)

    def check(self, plan, times, sizes, batches, memory, state):
        """The numbers of a plan are those of its cuts and choices."""
        ends = plan.boundaries.tolist()
        chosen = times[np.arange(len(times)), plan.choices]
        kept = sizes[np.arange(len(times)), plan.choices]
        sums = [chosen[a:b].sum() for a, b in zip(ends, ends[1:])]
        self.assertEqual(plan.stage_times.tolist(), sums)
        self.assertEqual(plan.step_time, (batches - 1) * max(sums) + sum(sums))
        bytes = [flight * kept[a:b].sum() + state[a:b].sum()
                 for flight, a, b in zip(plan.in_flight, ends, ends[1:])]
        self.assertEqual(plan.stage_bytes.tolist(), bytes)
        self.assertLessEqual(max(bytes), memory)
        lists = [[l for l in range(a, b) if plan.choices[l] == 1] for a, b in zip(ends, ends[1:])]
        self.assertEqual(plan.recompute_lists(1).tolist(), lists)

    def test_what_is_written(self):
        plan = omnibal.plan_pipeline([[4, 5]] * 6, [[10, 1]] * 6, 2, 4, memory=35)
        read = json.loads(plan.to_json())
        self.assertEqual((read["boundaries"], read["choices"]),
                         (plan.boundaries.tolist(), plan.choices.tolist()))
        self.assertEqual([stage["time"] for stage in read["stages"]], plan.stage_times.tolist())
        self.assertEqual(read["step_time"], plan.step_time)
        layout = plan.megatron_layout("EttttL")
        letters = "".join(part[0] * int(part[2:] or 1) for part in re.findall(r"[A-Za-z](?:\*\d+)?", layout))
        self.assertEqual((letters, layout.count("|")), ("EttttL", 1))
        again = pickle.loads(pickle.dumps(plan))
        self.assertEqual((again.to_json(), repr(again)), (plan.to_json(), repr(plan)))
        with self.assertRaisesRegex(ValueError, "megatron_layout: letters has 2 letters, must have 6"):
            plan.megatron_layout("EL")
        with self.assertRaisesRegex(ValueError, "megatron_layout: layer 0 is t|which Megatron-LM"):
            plan.megatron_layout("LttttE")

    def test_options_and_errors(self):
        arguments = ([[4, 5]] * 6, [[10, 1]] * 6, 3, 4)
        forced = omnibal.plan_pipeline(*arguments, 500, min_layers=[1, 1, 4], forbidden_cuts=[5])
        self.assertEqual(forced.boundaries.tolist(), [0, 1, 2, 6])
        kept = omnibal.plan_pipeline(*arguments, [500, 500, 25], in_flight=2, reserve_bytes=1)
        self.assertEqual(kept.in_flight.tolist(), [2, 2, 2])
        self.assertLessEqual(kept.stage_bytes[2], 25)
        floats = omnibal.plan_pipeline(np.array(arguments[0]) / 2, *arguments[1:], 500)
        self.assertEqual((floats.step_time, floats.stage_times.dtype), (24.0, np.float64))
        short = omnibal.plan_pipeline(*arguments, 21, transient_bytes=[[0, 20]] * 6)
        self.assertTrue((short.choices == 0).all() if short.status == "solved" else True)
        for change, text in (
                ({"stages": 0}, "stages is 0"), ({"micro_batches": 0}, "micro_batches is 0"),
                ({"times": [[1]] * 6}, "times have 6 and bytes have 12"),
                ({"times": [1, 2]}, "times must have a row for each layer"),
                ({"memory": [1, 2]}, "memory has 2"),
                ({"state_bytes": [1]}, "state_bytes have 1 elements, must have 6"),
                ({"offsets": [0, 3], "times": [1, 2], "bytes": [1, 2]}, "offsets must start with 0")):
            given = dict(zip(("times", "bytes", "stages", "micro_batches"), arguments), memory=500)
            with self.assertRaisesRegex(ValueError, "omnibal.plan_pipeline: .*" + text):
                omnibal.plan_pipeline(**{**given, **change})


class Models(unittest.TestCase):
    LLAMA = dict(layers=32, hidden=4096, heads=32, mlp=14336, vocabulary=128256, kv_heads=8)

    def matrices(self, layers, hidden, heads, mlp, vocabulary, kv_heads, gated=True):
        """The numbers of the matrices that each token is multiplied by."""
        size = hidden // heads
        attention = 2 * hidden * heads * size + 2 * hidden * kv_heads * size
        return layers * (attention + (3 if gated else 2) * hidden * mlp) + hidden * vocabulary

    def test_parameters_are_the_published_ones(self):
        self.assertEqual(omnibal.LanguageModel(**self.LLAMA).parameters, 8030261248)
        large = omnibal.LanguageModel(80, 8192, 64, 28672, 128256, kv_heads=8)
        self.assertEqual((large.parameters, large.active_parameters), (70553706496, 70553706496))
        tied = omnibal.LanguageModel(**self.LLAMA, tied=True)
        self.assertEqual(8030261248 - tied.parameters, 4096 * 128256)
        # Mixtral 8x7B has 46,702,792,704 parameters.
        mixtral = omnibal.LanguageModel(32, 4096, 32, 0, 32000, kv_heads=8, experts=(8, 2, 0, 14336))
        self.assertEqual(mixtral.parameters, 46702792704)
        self.assertEqual(mixtral.parameters - mixtral.active_parameters, 32 * 6 * 3 * 4096 * 14336)

    def test_flops_are_those_of_the_matrices_and_of_causal_attention(self):
        for gated in (True, False):
            model = omnibal.LanguageModel(**self.LLAMA, gated=gated)
            lengths = np.array([0, 1, 17, 4096, 100000])
            matrices = self.matrices(**self.LLAMA, gated=gated)
            # Forward and twice backward; half of the pairs, for queries with keys and for values.
            expected = 3 * (2 * matrices * lengths + 32 * 2 * 4096 * lengths**2)
            np.testing.assert_allclose(model.document_cost(lengths), expected, rtol=1e-3)

    def test_a_window_limits_the_pairs(self):
        model = omnibal.LanguageModel(**self.LLAMA)
        short = omnibal.LanguageModel(**self.LLAMA, window=1024)
        lengths = np.array([1024, 2048, 3072])
        missing = model.document_cost(lengths) - short.document_cost(lengths)
        self.assertEqual(missing.tolist(), (3 * 32 * 2 * 4096 * (lengths - 1024)**2).tolist())

    def test_costs_of_layers_add_up_and_plans_use_them(self):
        model = omnibal.LanguageModel(**self.LLAMA)
        costs = model.layer_costs([4096, 1000], 4 * 10**14)
        self.assertEqual({len(column) for column in costs.values()}, {34})
        self.assertEqual(costs["flops"].sum(), model.document_cost([4096, 1000]).sum())
        self.assertEqual(costs["times"].shape, (34, 3))
        np.testing.assert_allclose(costs["times"][:, 0], costs["flops"] / 4e5, rtol=1e-3, atol=2)
        self.assertTrue((np.diff(costs["times"]) >= 0).all())
        self.assertTrue((np.diff(costs["bytes"]) <= 0).all())
        self.assertEqual(costs["cut_bytes"][5], 2 * 4096 * 5096)
        half = model.layer_costs([4096, 1000], 4 * 10**14, tensor=2)
        np.testing.assert_allclose(half["flops"][1:33], costs["flops"][1:33] / 2, rtol=0.01)
        free = dict(state_bytes=costs["state_bytes"], transient_bytes=costs["transient_bytes"])
        wide = omnibal.plan_pipeline(costs["times"], costs["bytes"], 4, 16, 10**12, **free)
        tight = omnibal.plan_pipeline(costs["times"], costs["bytes"], 4, 16,
                                      int(wide.stage_bytes.max() * 0.9), **free)
        chosen = costs["times"][np.arange(34), wide.choices]
        self.assertEqual(chosen.tolist(), costs["times"][:, 0].tolist())
        self.assertGreaterEqual(tight.step_time, wide.step_time)
        self.assertLessEqual(tight.stage_bytes.max(), wide.stage_bytes.max() * 0.9)

    def test_pickle_and_errors(self):
        model = omnibal.LanguageModel(**self.LLAMA, window=512)
        again = pickle.loads(pickle.dumps(model))
        self.assertEqual(again.document_cost([9999]).tolist(), model.document_cost([9999]).tolist())
        for change, text in (({"hidden": 0}, "hidden is 0"), ({"layers": -1}, "-1"),
                             ({"dense_layers": 2}, "dense_layers is 2, but experts is None"),
                             ({"dense_layers": 99}, "dense_layers is 99, must be from 0 to")):
            with self.assertRaisesRegex(ValueError, text):
                omnibal.LanguageModel(**{**self.LLAMA, **change})
        with self.assertRaisesRegex(ValueError, "-5"):
            model.document_cost([-5])


if __name__ == "__main__":
    unittest.main()
