# SPDX-License-Identifier: Apache-2.0
"""Encoders in the idle time of a pipeline: the simulation, the placement, and their bounds."""

import json
import pickle
import unittest

import numpy as np
import omnibal

RANDOM = np.random.RandomState(2)
FORWARD = RANDOM.randint(2, 8, (4, 6))
BACKWARD = RANDOM.randint(4, 12, (4, 6))
WEIGHT = RANDOM.randint(1, 5, (4, 6))


def reference(forward, backward, work, lists, transfer, turn):
    """The end of a step whose devices run lists in order, with one reader, virtual stage 0."""
    stages = len(lists)
    last = len(forward) - 1
    places = [0] * stages
    now = [0] * stages
    ends = {}
    cost = {"forward": work.forward, "backward": work.backward}

    def arrival(key, device, delay):
        end, at = ends[key]
        return end + (delay if at != device else 0)

    def needs(device, part, kind, chunk, micro_batch):
        if part == "encoder":
            wanted = ("forward", 0, micro_batch) if kind == "forward" else ("backward", 0, micro_batch)
            return [] if kind == "forward" else [(("language", *wanted), work.transfer[micro_batch] // work.pieces)]
        unit = turn(device, chunk)
        if kind == "forward" and unit == 0:
            return [(("encoder", "forward", piece, micro_batch), work.transfer[micro_batch] // work.pieces)
                    for piece in range(work.pieces)]
        if kind == "forward":
            return [(("language", "forward", unit - 1, micro_batch), transfer)]
        if kind == "backward" and unit != last:
            return [(("language", "backward", unit + 1, micro_batch), transfer)]
        return []

    moved = True
    while moved:
        moved = False
        for device, row in enumerate(lists):
            while places[device] < len(row):
                part, kind, chunk, micro_batch = row[places[device]]
                wanted = needs(device, part, kind, chunk, micro_batch)
                if any(key not in ends for key, _ in wanted):
                    break
                begin = max([now[device]] + [arrival(key, device, delay) for key, delay in wanted])
                if part == "encoder":
                    time = cost[kind][micro_batch] // work.pieces
                    key = (part, kind, chunk, micro_batch)
                else:
                    unit = turn(device, chunk)
                    time = {"forward": forward, "backward": backward}[kind][unit][micro_batch]
                    key = (part, kind, unit, micro_batch)
                now[device] = begin + time
                ends[key] = now[device], device
                places[device] += 1
                moved = True
    assert places == [len(row) for row in lists]
    return max(now)


class Encoders(unittest.TestCase):
    WORK = omnibal.EncoderWork(np.array([8, 4, 12, 4, 8, 16]), np.array([4, 4, 8, 4, 8, 0]),
                               transfer=np.array([4, 8, 12, 4, 8, 12]), pieces=4,
                               activation_bytes=5, output_bytes=2)

    def test_the_step_is_that_of_a_simulation_in_python(self):
        for stages, schedule in ((4, "1f1b"), (4, "gpipe"), (2, "interleaved_1f1b")):
            found = omnibal.place_encoder(FORWARD, BACKWARD, stages, self.WORK, transfer=2, bytes=3,
                                          schedule=schedule, simulations=200)
            expected = reference(FORWARD, BACKWARD, self.WORK, found.lists, 2,
                                 lambda device, chunk: chunk * stages + device)
            self.assertEqual(found.step.makespan, expected)
            alone = omnibal.simulate_pipeline(FORWARD, BACKWARD, stages, transfer=2, schedule=schedule)
            self.assertEqual(found.language_makespan, alone.makespan)
            self.assertLessEqual(found.lower_bound, found.step.makespan)
            self.assertLessEqual(found.step.makespan, found.before_makespan)
            self.assertLessEqual(found.language_makespan, found.step.makespan)
            again = omnibal.simulate_encoder(FORWARD, BACKWARD, stages, self.WORK, found.lists,
                                             transfer=2, bytes=3, schedule=schedule)
            self.assertEqual(again.makespan, found.step.makespan)
            self.assertEqual(again.peak_bytes.tolist(), found.step.peak_bytes.tolist())
            self.assertEqual(again.encoder.tolist(), found.step.encoder.tolist())

    def test_each_operation_is_once_in_the_lists(self):
        found = omnibal.place_encoder(FORWARD, BACKWARD, 4, self.WORK, weight=WEIGHT, schedule="zb_h1",
                                      simulations=50)
        rows = [row for device in found.lists for row in device]
        encoder = sorted(row[1:] for row in rows if row[0] == "encoder")
        self.assertEqual(encoder, sorted((kind, piece, m) for kind in ("forward", "backward")
                                         for piece in range(4) for m in range(6)))
        self.assertEqual(sum(row[0] == "language" for row in rows), 3 * 4 * 6)
        self.assertEqual(len(found.step.encoder), 2 * 4 * 6)
        self.assertEqual(found.step.language["end"].max() <= found.step.makespan, True)
        trace = omnibal.write_trace(found.step.encoder, process="encoder", process_id=1)
        self.assertEqual(sum(e["ph"] == "X" for e in json.loads(trace)["traceEvents"]), 2 * 4 * 6)

    def test_own_devices_readers_and_memory(self):
        work = omnibal.EncoderWork(6, 0, devices=[2], readers=[0, 1], pieces=2, output_bytes=1)
        found = omnibal.place_encoder(3, 5, 2, work, 4, bytes=10)
        self.assertEqual(len(found.lists), 3)
        self.assertEqual({row[0] for row in found.lists[2]}, {"encoder"})
        self.assertEqual({row[0] for row in found.lists[0]}, {"language"})
        for memory in (30, [30, 20, 30]):
            limited = omnibal.place_encoder(3, 5, 2, work, 4, bytes=10, memory=memory)
            self.assertTrue((limited.step.peak_bytes <= memory).all())
        listed = omnibal.list_schedule(3, 5, 2, 4)
        named = omnibal.place_encoder(3, 5, 2, work, schedule=listed)
        self.assertEqual(named.language_makespan, listed.makespan)
        # The encoder has the number of micro-batches if no other argument has.
        self.assertEqual(omnibal.place_encoder(1, 1, 1, omnibal.EncoderWork([1, 2, 3], 0)).lists[0][-1],
                         ("encoder", "backward", 0, 2))

    def test_bytes_are_kept_where_they_are_needed(self):
        # The stage keeps the features of micro-batch 1 from time 2 to 5, and the device of the
        # encoder two activations, and from time 5 on a gradient.
        work = omnibal.EncoderWork(1, 1, devices=[1], activation_bytes=5, output_bytes=2)
        lists = [[("language", kind, 0, m) for m in range(2) for kind in ("forward", "backward")],
                 [("encoder", kind, 0, m) for kind in ("forward", "backward") for m in range(2)]]
        step = omnibal.simulate_encoder(3, 1, 1, work, lists, 2)
        self.assertEqual((step.makespan, step.peak_bytes.tolist()), (10, [2, 12]))

    def test_floats(self):
        work = omnibal.EncoderWork([1.5, 0.5], 0)
        found = omnibal.place_encoder(1, 2, 1, work)
        self.assertEqual(found.step.makespan, 8.0)
        self.assertEqual(found.step.busy.dtype, np.float64)
        self.assertEqual(omnibal.place_encoder(1.5, 2, 1, omnibal.EncoderWork(1, 0), 2).step.makespan, 9.0)

    def test_copies(self):
        found = omnibal.place_encoder(FORWARD, BACKWARD, 4, self.WORK, simulations=0)
        again = pickle.loads(pickle.dumps(found))
        self.assertEqual((again.lists, repr(again)), (found.lists, repr(found)))
        self.assertEqual(again.step.language.tolist(), found.step.language.tolist())
        self.assertEqual(repr(again.step), repr(found.step))
        for work in (self.WORK, omnibal.EncoderWork(1.5, 2, devices=[1, 0], readers=[2])):
            copied = pickle.loads(pickle.dumps(work))
            for name in ("forward", "backward", "transfer", "activation_bytes", "output_bytes"):
                self.assertEqual(getattr(copied, name).tolist(), getattr(work, name).tolist())
            self.assertEqual((copied.pieces, copied.devices, copied.readers),
                             (work.pieces, work.devices, work.readers))
        for of in (omnibal.EncoderWork, omnibal.EncoderSimulation, omnibal.EncoderPlacement):
            self.assertRaises(ValueError, repr, of.__new__(of))

    def test_errors_of_the_work(self):
        for arguments, options, text in (
                (([[1]], 1), {}, "forward has 2 dimensions"), ((1, 1), {"pieces": 0}, "pieces is 0"),
                ((1, 1), {"activation_bytes": 1.5}, "the type of activation_bytes is float64"),
                ((1, 1), {"devices": []}, "devices is empty"),
                ((1, 1), {"devices": [-1]}, "an element of devices is -1"),
                ((1, "a"), {}, "the type of backward is")):
            with self.assertRaisesRegex(ValueError, "omnibal.EncoderWork: .*" + text):
                omnibal.EncoderWork(*arguments, **options)

    def test_errors(self):
        work = omnibal.EncoderWork(1, 1)
        for own, options, text in (
                (omnibal.EncoderWork([1, 2], 1), {}, "encoder.forward has 2 elements, must have 4"),
                (omnibal.EncoderWork(1, 1, devices=[9]), {}, r"encoder.devices\[0\] is 9"),
                (omnibal.EncoderWork(1, 1, devices=[9]), {"memory": 9, "bytes": 1}, r"devices\[0\] is 9"),
                (omnibal.EncoderWork(1, 1, readers=[9]), {}, r"encoder.readers\[0\] is 9"),
                (omnibal.EncoderWork(1, 1, readers=[]), {}, "encoder.readers is empty"),
                (omnibal.EncoderWork(-1, 1), {}, "-1"),
                (work, {"memory": 9}, "memory is given, but bytes is None and encoder has no bytes"),
                (work, {"memory": [1, 2, 3], "bytes": 1}, "memory has 3 elements, must have 2"),
                (work, {"memory": 1, "bytes": 10}, r"memory\[0\] is 1, must be at least 20"),
                (work, {"simulations": -1}, "simulations is -1"),
                (work, {"schedule": "zb_h1"}, "weight is None")):
            with self.assertRaisesRegex(ValueError, "omnibal.place_encoder: .*" + text):
                omnibal.place_encoder(1, 1, 2, own, 4, **options)
        with self.assertRaisesRegex(ValueError, "place_encoder: micro_batches is None"):
            omnibal.place_encoder(1, 1, 2, work)
        lists = omnibal.place_encoder(1, 1, 1, work, 1).lists
        for wrong, text in (([lists[0][:-1]], "lists"), ([], "lists has 0"),
                            ([[("vision", "forward", 0, 0)]], r"the part of lists\[0\]\[0\] is 'vision'"),
                            ([[("encoder", "up", 0, 0)]], "is 'up', must be forward"),
                            ([[("encoder", "forward", -1, 0)]], r"lists\[0\]\[0\] is -1"),
                            ([[3]], "is 3, must be a tuple"), ([lists[0][::-1]], "lists")):
            with self.assertRaisesRegex(ValueError, "omnibal.simulate_encoder: .*" + text):
                omnibal.simulate_encoder(1, 1, 1, work, wrong, 1)


if __name__ == "__main__":
    unittest.main()
