# SPDX-License-Identifier: Apache-2.0
"""The argument `threads`: equal results, errors of bodies, progress, Ctrl-C, and wrong numbers."""

import inspect
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
import omnibal

ROOT = pathlib.Path(os.environ["OMNIBAL_ROOT"])
RANDOM = np.random.RandomState(11)
LENGTHS = RANDOM.randint(1, 3000, 400_000)
ROWS = np.stack([RANDOM.randint(0, 9, 150_000), LENGTHS[:150_000]], axis=1)
FEW = ROWS[:1000]
SOME = ROWS[:20_000]
EXPERT_LOADS = RANDOM.randint(1, 500, (12, 16))
START = omnibal.best_fit_decreasing(SOME, (24, 8192))
OLD = omnibal.place_experts(RANDOM.randint(1, 500, (12, 16)), 3, 8).experts

# The calls, in which each executor has several bodies to run.
CALLS = {
    "count_samples": [
        lambda **given: omnibal.count_samples(LENGTHS, **given),
        lambda **given: omnibal.count_samples(ROWS, **given),
    ],
    "tune_capacity": [
        lambda **given: omnibal.tune_capacity(FEW, 4.0, **given),
        lambda **given: omnibal.tune_capacity(LENGTHS[:1000], 4.0, packer="isf", **given),
    ],
    "packing_bound": [
        lambda **given: omnibal.packing_bound(SOME, (24, 8192), effort="thorough", **given),
        lambda **given: omnibal.packing_bound(LENGTHS, 8192, effort="thorough", **given),
    ],
    "improve_packing": [
        lambda **given: omnibal.improve_packing(
            SOME, (24, 8192), START, passes=1, even_passes=6, **given),
    ],
    "place_experts": [
        lambda **given: omnibal.place_experts(EXPERT_LOADS, 3, 8, **given),
        lambda **given: omnibal.place_experts(
            EXPERT_LOADS, 3, 8, old=OLD, max_moved=20, **given),
    ],
}


def running_threads():
    """The threads of this process, also those that Python did not start."""
    return len(os.listdir("/proc/self/task"))


def contents(result):
    """All that a result holds, to be compared."""
    if not hasattr(result, "__reduce__") or isinstance(result, (int, float, str)):
        return result
    state = result.__reduce__()[1:]
    return repr(flat(state))


def flat(value):
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tolist()
    if isinstance(value, (list, tuple)):
        return [flat(one) for one in value]
    if type(value).__module__.startswith("omnibal"):
        return flat(value.__reduce__()[1:])
    return value


class Results(unittest.TestCase):
    def test_the_result_does_not_depend_on_the_threads(self):
        for name, calls in CALLS.items():
            for number, call in enumerate(calls):
                expected = contents(call())
                for threads in (1, 2, 5):
                    with self.subTest(call=name, number=number, threads=threads):
                        self.assertEqual(contents(call(threads=threads)), expected)

    def test_contents_tell_results_apart(self):
        self.assertNotEqual(contents(omnibal.place_experts(EXPERT_LOADS, 3, 8)),
                            contents(omnibal.place_experts(EXPERT_LOADS, 3, 8, seed=1, max_gap=0.5)))
        self.assertNotEqual(contents(omnibal.tune_capacity(FEW, 4.0)),
                            contents(omnibal.tune_capacity(FEW, 5.0)))

    def test_every_call_with_an_executor_has_threads(self):
        named = set()
        for header in (ROOT / "include/omnibal").rglob("*.hpp"):
            struct = None
            for line in header.read_text().splitlines():
                struct = (re.match(r"struct (\w+)_fn \{", line) or [None, struct])[1]
                if struct and re.search(r"executor Executor\b", line):
                    named.add(struct)
        self.assertEqual(named, set(CALLS))
        for name in named:
            threads = inspect.signature(getattr(omnibal, name)).parameters["threads"]
            self.assertEqual((threads.kind, threads.default), (threads.KEYWORD_ONLY, 1), name)


@unittest.skipUnless(os.path.isdir("/proc/self/task"), "the system has no list of threads")
class Started(unittest.TestCase):
    def most_threads(self, threads):
        """The largest number of threads while capacities are tried."""
        seen = []
        omnibal.tune_capacity(FEW, 4.0, threads=threads,
                              progress=lambda _: seen.append(running_threads()))
        return max(seen)

    def test_as_many_threads_run_as_were_given(self):
        before = running_threads()
        for threads in (1, 2, 5):
            self.assertEqual(self.most_threads(threads), before + threads - 1)
            self.assertEqual(running_threads(), before)

    def test_a_system_that_starts_no_thread_is_an_error(self):
        # Each thread reserves 8 MiB for its stack.
        script = """
import resource, numpy as np, omnibal
loads = np.ones((64, 4), np.int64)
one = omnibal.place_experts(loads, 1, 4)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (50 << 20),) * 2)
try:
    omnibal.place_experts(loads, 1, 4, threads=64)
except RuntimeError as error:
    print(error)
assert (omnibal.place_experts(loads, 1, 4, threads=2).experts == one.experts).all()
"""
        resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertEqual(ran.stderr, "")
        self.assertRegex(ran.stdout, "^omnibal.place_experts: threads is 64, but the system started"
                                     " only [2-9]: ")


class Errors(unittest.TestCase):
    def test_a_number_below_one(self):
        for name, calls in CALLS.items():
            for threads in (0, -3):
                with self.subTest(call=name, threads=threads):
                    with self.assertRaises(ValueError) as caught:
                        calls[0](threads=threads)
                    self.assertEqual(str(caught.exception), "omnibal.%s: threads is %d, must be at"
                                                            " least 1" % (name, threads))

    def test_no_integer(self):
        for threads in (2.0, "2", None, 2**70):
            with self.assertRaises(TypeError, msg=repr(threads)):
                omnibal.count_samples([1, 2], threads=threads)

    def test_the_error_of_the_first_body(self):
        lengths = LENGTHS.copy()
        lengths[[70_000, 250_000, 399_999]] = -7, -8, -9
        for threads in (1, 2, 5):
            with self.assertRaisesRegex(ValueError, r"70000.* -7\b"):
                omnibal.count_samples(lengths, threads=threads)

    def test_progress_may_raise_on_any_thread(self):
        class Stop(Exception):
            pass

        def stop_on_a_worker(_):
            if threading.get_ident() != caller:
                raise Stop

        caller = threading.get_ident()
        with self.assertRaises(Stop):
            omnibal.tune_capacity(FEW, 4.0, threads=2, progress=stop_on_a_worker)


class Progress(unittest.TestCase):
    def test_calls_of_several_threads_have_an_order(self):
        calls, callers, inside = [], set(), []

        def progress(packings):
            inside.append(packings)
            callers.add(threading.get_ident())
            time.sleep(0.001)  # another thread may have the GIL now
            self.assertEqual(inside, [packings])
            calls.append(packings)
            inside.clear()

        alone = []
        omnibal.tune_capacity(FEW, 4.0, progress=alone.append)
        omnibal.tune_capacity(FEW, 4.0, progress=progress, threads=3)
        self.assertEqual(calls, alone)
        self.assertGreater(len(callers), 1)

    def test_ctrl_c_ends_a_search_on_threads(self):
        def interrupt(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            with self.assertRaises(KeyboardInterrupt):
                omnibal.tune_capacity(ROWS, 4.0, threads=3)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_others_run_meanwhile(self):
        steps, ended = [], threading.Event()

        def count():
            while not ended.is_set():
                steps.append(time.perf_counter())
                time.sleep(0.0005)

        thread = threading.Thread(target=count)
        thread.start()
        begin = time.perf_counter()
        CALLS["improve_packing"][0](threads=2)
        end = time.perf_counter()
        ended.set()
        thread.join()
        self.assertGreater(sum(begin < at < end for at in steps), 5)


if __name__ == "__main__":
    unittest.main()
