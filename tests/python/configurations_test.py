# SPDX-License-Identifier: Apache-2.0
"""Machines, training steps, their predictions, and the search of the fastest configuration."""

import copy
import inspect
import itertools
import json
import os
import pathlib
import pickle
import re
import threading
import unittest

import numpy as np
import omnibal

ROOT = pathlib.Path(os.environ["OMNIBAL_ROOT"])
H100 = omnibal.Machine.named("h100")
LLAMA = omnibal.LanguageModel(32, 4096, 32, 14336, 128256, kv_heads=8)
SMALL = omnibal.LanguageModel(16, 1024, 16, 2816, 32000, kv_heads=8)
EXPERTS = omnibal.LanguageModel(6, 512, 8, 1024, 8000, experts=(8, 2, 0, 512))
LENGTHS = np.random.RandomState(5).randint(100, 4000, 400)


def search(model=SMALL, machine=H100, **changes):
    """The search of a small space, with other arguments."""
    arguments = dict(sequences=32, tokens=2048, devices=8, memory_bytes=40 * 10**9,
                     reserve_bytes=2 * 10**9)
    arguments.update(changes)
    return omnibal.plan_configuration(model, machine, **arguments)


def search_packed(**changes):
    return search(tokens=0, lengths=LENGTHS, **changes)


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]


class Machines(unittest.TestCase):
    def test_names_are_the_machines_of_the_header(self):
        text = (ROOT / "include/omnibal/cost/machines.hpp").read_text()
        self.assertEqual(set(omnibal.Machine.names()),
                         set(re.findall(r"inline constexpr machine (\w+)", text)))
        listed = re.findall(r"inline constexpr machine (\w+)\{\n(.*?)\n\};", text, re.S)
        self.assertGreater(len(listed), 8)
        for name, body in listed:
            found = omnibal.Machine.named(name)
            for member, value in re.findall(r"\.(\w+) = ([\d.e-]+),", body):
                self.assertEqual(getattr(found, member), float(value), (name, member))
        gb300 = omnibal.Machine.named("gb300")
        self.assertEqual(gb300, omnibal.Machine.named("gb200").replace(
            fp8_gain=3.3, exchange_bytes_per_second=890e9))
        self.assertEqual((gb300.devices_per_node, omnibal.Machine.named("b300").devices_per_node),
                         (72, 8))

    def test_every_member_is_an_argument(self):
        members = list(H100.to_dict())
        self.assertEqual(set(members), set(inspect.signature(omnibal.Machine).parameters))
        for member in members:
            value = 3 if member == "devices_per_node" else 0.25
            changed = H100.replace(**{member: value})
            self.assertEqual(getattr(changed, member), value)
            self.assertEqual([m for m in members if getattr(changed, m) != getattr(H100, m)], [member])
            self.assertNotEqual(changed, H100)
        for name, parameter in inspect.signature(omnibal.Machine).parameters.items():
            if parameter.default is not parameter.empty:
                short = H100.to_dict()
                del short[name]
                self.assertEqual(getattr(omnibal.Machine(**short), name), parameter.default)

    def test_copies(self):
        same = {H100: 1}
        for again in (omnibal.Machine(**H100.to_dict()), copy.deepcopy(H100), H100.replace(),
                      pickle.loads(pickle.dumps(H100)),
                      eval(repr(H100), {"Machine": omnibal.Machine})):
            self.assertEqual(again, H100)
            self.assertEqual(same[again], 1)
        self.assertNotEqual(H100, "h100")
        third = H100.replace(hop_seconds=1 / 3)
        self.assertEqual(eval(repr(third), {"Machine": omnibal.Machine}), third)

    def test_errors(self):
        for changes, text in (({"hop_seconds": -1}, "hop_seconds is -1, must be finite and not"),
                              ({"launch_seconds": float("inf")}, "launch_seconds is inf, must be"),
                              ({"fp8_gain": 0}, "fp8_gain is 0, must be positive"),
                              ({"node_bytes_per_second": float("nan")}, "node_bytes_per_second is nan"),
                              ({"devices_per_node": 0}, "devices_per_node is 0, must be from 1 to")):
            with self.assertRaisesRegex(ValueError, "^omnibal.Machine: " + text):
                H100.replace(**changes)
        for changes, text in (({"hops": 1}, "there is no argument 'hops'"),
                              ({"fp8_gain": "2"}, "fp8_gain is of type str, must be a number"),
                              ({"devices_per_node": 8.0}, "devices_per_node is of type float, must be")):
            with self.assertRaisesRegex(TypeError, "^omnibal.Machine: " + text):
                H100.replace(**changes)
        with self.assertRaisesRegex(ValueError, "Machine.named: name is 'h200', must be a100_start, "):
            omnibal.Machine.named("h200")
        short = H100.to_dict()
        del short["node_bytes_per_second"]
        with self.assertRaisesRegex(TypeError, "argument 'node_bytes_per_second' is missing"):
            omnibal.Machine(**short)
        infinite = H100.replace(memory_bytes_per_second=float("inf"))
        step = omnibal.TrainingStep(tokens=2048)
        self.assertEqual(omnibal.predict_step(SMALL, step, infinite).parts["memory"], 0)


# A step of which every member matters, and for each member another value that it may have.
STEP = omnibal.TrainingStep(
    tokens=1024, sequences=2, micro_batches=8, tensor=2, pipeline=2, context=2, expert=2, data=4,
    chunks=2, norms="split", sharding="optimizer", offload_share=0.5, offload_bytes_per_second=1e9)
CHANGES = {
    "tokens": 2048, "sequences": 4, "document_tokens": 256, "lengths": [512, 512],
    "documents": (2, 1024, 2 * 512**2), "micro_batches": 4, "tensor": 4, "pipeline": 4, "context": 4,
    "expert": 4, "data": 2, "expert_tensor": 1, "chunks": 1, "boundaries": [0, 3, 5, 6, 8],
    "recompute": "full", "offload_share": 0.75, "offload_bytes_per_second": 2e9,
    "sharding": "parameters", "norms": "replicated", "precision": "fp8",
    "bytes": {"optimizer": 8}, "reduced_bytes": 4, "gathered_bytes": 4, "state_ranks": 2,
    "bucket_bytes": 1000, "layer_communication": "overlapped", "gradient_communication": "blocking",
}


class Steps(unittest.TestCase):
    def test_every_member_reaches_the_prediction(self):
        self.assertEqual(set(CHANGES), set(inspect.signature(omnibal.TrainingStep).parameters))
        # Boundaries of stages do not fit other numbers of them; the slow network shows bytes.
        slow = H100.replace(network_bytes_per_second=1e9, node_bytes_per_second=1e9,
                            devices_per_node=2)
        before = omnibal.predict_step(EXPERTS, STEP, slow)
        for member, value in CHANGES.items():
            step = STEP.replace(**{member: value})
            self.assertNotEqual(step, STEP, member)
            self.assertNotEqual(omnibal.predict_step(EXPERTS, step, slow), before, member)

    def test_defaults_are_those_of_the_signature(self):
        step = omnibal.TrainingStep(tokens=64)
        for name, parameter in inspect.signature(omnibal.TrainingStep).parameters.items():
            if name == "bytes":
                self.assertEqual(step.bytes, omnibal.TrainingStep(tokens=64, bytes="bf16").bytes)
            elif name != "tokens":
                self.assertEqual(getattr(step, name), parameter.default, name)
        self.assertEqual(step.bytes, {"activation": 2, "parameter": 2, "gradient": 4, "optimizer": 12,
                                      "matrix_input": 0, "matrix_copy": 0, "scale_block": 0})
        mxfp8 = step.replace(bytes="mxfp8").bytes
        self.assertEqual((mxfp8["matrix_input"], mxfp8["matrix_copy"], mxfp8["scale_block"]), (1, 2, 32))
        self.assertEqual(step.replace(bytes="fp8").bytes, dict(mxfp8, scale_block=0))

    def test_members_and_copies(self):
        for member, value in CHANGES.items():
            step = STEP.replace(**{member: value})
            found = getattr(step, member)
            if member == "bytes":
                self.assertEqual(found, dict(STEP.bytes, optimizer=8))
            else:
                self.assertEqual(list(found) if isinstance(value, (list, tuple)) else found,
                                 list(value) if isinstance(value, (list, tuple)) else value)
            for again in (omnibal.TrainingStep(**step.to_dict()), pickle.loads(pickle.dumps(step)),
                          copy.copy(step), step.replace(),
                          eval(repr(step), {"TrainingStep": omnibal.TrainingStep})):
                self.assertEqual(again.to_dict(), step.to_dict())
                self.assertEqual(again, step)
            self.assertEqual(json.loads(json.dumps(step.to_dict())), step.to_dict())

    def test_replace_changes_the_kind_of_micro_batch(self):
        packed = STEP.replace(lengths=np.array([5, 6], dtype=np.int32))
        self.assertEqual((packed.tokens, packed.sequences, packed.documents), (0, 1, None))
        sums = packed.replace(documents=(2, 11, 61))
        self.assertEqual((sums.lengths, sums.tokens), (None, 0))
        self.assertEqual(omnibal.predict_step(EXPERTS, packed, H100),
                         omnibal.predict_step(EXPERTS, sums, H100))
        plain = sums.replace(tokens=1024, sequences=2)
        self.assertEqual(plain, STEP)

    def test_lengths_are_those_of_layer_costs(self):
        # The squares within a window follow from the lengths, not from their sums.
        windowed = omnibal.LanguageModel(6, 512, 8, 1024, 8000, window=100)
        equal = omnibal.TrainingStep(tokens=2000, document_tokens=500)
        listed = omnibal.TrainingStep(lengths=[500] * 4)
        self.assertEqual(omnibal.predict_step(windowed, equal, H100),
                         omnibal.predict_step(windowed, listed, H100))
        uneven = omnibal.TrainingStep(lengths=[1997, 1, 1, 1])
        whole = omnibal.LanguageModel(6, 512, 8, 1024, 8000)
        attention = [omnibal.predict_step(model, uneven, H100).parts["attention"]
                     for model in (windowed, whole)]
        self.assertLess(attention[0], attention[1] / 5)
        sums = uneven.replace(documents=(4, 2000, 1997**2 + 3))
        with self.assertRaisesRegex(ValueError, "window of 100 tokens; TrainingStep requires lengths"):
            omnibal.predict_step(windowed, sums, H100)
        # A window of w tokens has w * (2 * length - w) squares of a longer document.
        within = uneven.replace(documents=(4, 2000, 1997**2 + 3, 100, 100 * (2 * 1997 - 100) + 3))
        self.assertEqual(omnibal.predict_step(windowed, within, H100),
                         omnibal.predict_step(windowed, uneven, H100))

    def test_errors(self):
        make = omnibal.TrainingStep
        for arguments, text in (
                ({}, "tokens is 0, must be positive unless lengths or documents are given"),
                ({"tokens": 8, "lengths": [3]}, "tokens, lengths and documents exclude each other"),
                ({"lengths": []}, "lengths is empty"),
                ({"lengths": [3, 0]}, r"lengths\[1\] is 0, must be at least 1"),
                ({"lengths": [3], "sequences": 2}, "sequences is 2, must be 1 if lengths or documents"),
                ({"lengths": [3], "document_tokens": 1}, "document_tokens is 1, must be 0 if"),
                ({"documents": [1, 2]}, "documents has 2 numbers, must have 3"),
                ({"tokens": 8, "recompute": "some"}, "recompute is 'some', must be none, selective or"),
                ({"tokens": 8, "bytes": "fp4"}, "bytes is 'fp4', must be bf16, fp8 or mxfp8"),
                ({"tokens": 8, "bytes": {"weights": 2}}, "bytes has the unknown key 'weights'"),
                ({"tokens": 8, "boundaries": [0, -3]}, r"boundaries\[1\] is -3, must be at least 0"),
                ({"tokens": 2**70}, "tokens is 1180591620717411303424, must be a number of 64 bits")):
            with self.assertRaisesRegex(ValueError, "^omnibal.TrainingStep: " + text):
                make(**arguments)
        for arguments, text in (({"tokens": 8.0}, "tokens is of type float, must be an int"),
                                ({"tokens": 8, "tensors": 2}, "there is no argument 'tensors'"),
                                ({"tokens": 8, "norms": 1}, "norms is of type int, must be a str"),
                                ({"tokens": 8, "bytes": 2}, "bytes is of type int, must be a str or"),
                                ({"tokens": 8, "bytes": {"gradient": 0.5}}, r"bytes\['gradient'\] is of")):
            with self.assertRaisesRegex(TypeError, "^omnibal.TrainingStep: " + text):
                make(**arguments)


class Prediction(unittest.TestCase):
    def test_parts_and_copies(self):
        step = omnibal.TrainingStep(tokens=2048, micro_batches=8, pipeline=2, chunks=2, data=4)
        found = omnibal.predict_step(SMALL, step, H100)
        self.assertEqual(list(found.parts), ["matmul", "attention", "memory", "tensor", "context", "expert",
                                             "transfer", "offload", "launch", "bubble", "gradients",
                                             "optimizer"])
        self.assertAlmostEqual(sum(found.parts.values()), found.seconds)
        self.assertGreater(found.parts["bubble"], 0)
        self.assertEqual((len(found.peak_bytes), len(found.forward_seconds)), (2, 4))
        # The passes are the times of a simulation, which the reduction and the optimizer follow.
        passes = omnibal.simulate_pipeline(found.forward_seconds, found.backward_seconds, 2, 8,
                                           schedule="interleaved_1f1b", chunks=2)
        rest = found.parts["gradients"] + found.parts["optimizer"]
        self.assertAlmostEqual(passes.makespan + rest, found.seconds)
        again = pickle.loads(pickle.dumps(found))
        self.assertEqual(again, found)
        self.assertEqual(again.to_dict(), found.to_dict())
        self.assertEqual(json.loads(json.dumps(found.to_dict())), found.to_dict())
        self.assertNotEqual(omnibal.predict_step(SMALL, step.replace(data=2), H100), found)

    def test_errors(self):
        for arguments, text in (
                ({"tensor": 0}, "omnibal.predict_step: step.tensor is 0, must be from 1"),
                ({"context": 0}, "omnibal.predict_step: step.context is 0, must be from 1"),
                ({"tensor": 3}, "heads is 16, must be a multiple of tensor, which is 3"),
                ({"expert": 2}, "step.expert is 2, must be 1 because the model has no experts"),
                ({"expert_tensor": 1}, "step.expert_tensor is 1, must be 0 because the model"),
                ({"document_tokens": 3}, "step.tokens is 2048, must be a multiple of step.document_tokens"),
                ({"boundaries": [0, 3]}, "step.boundaries is from 0 to 3, must be from 0 to 18"),
                ({"pipeline": 2, "boundaries": [0, 18]}, "step.boundaries has 2 values for 3 virtual stages"),
                ({"state_ranks": 9}, "step.state_ranks is 9, must be from 0 to 1"),
                ({"bytes": {"gradient": 65}}, "gradient bytes is 65, must be from 0 to 64")):
            step = omnibal.TrainingStep(**dict({"tokens": 2048}, **arguments))
            with self.assertRaisesRegex(ValueError, text):
                omnibal.predict_step(SMALL, step, H100)
        with self.assertRaisesRegex(ValueError, r"data \* context is 1, must be a multiple of expert"):
            omnibal.predict_step(EXPERTS, omnibal.TrainingStep(tokens=64, expert=2), H100)
        with self.assertRaises(TypeError):
            omnibal.predict_step(SMALL, omnibal.TrainingStep(tokens=64), "h100")


def every_step(model, machine, devices, sequences, tokens, layers, experts):
    """All steps of a space with even cuts, by the rules of tests/plan/every_configuration.hpp."""
    for t, p, c in itertools.product(divisors(devices), repeat=3):
        if devices % (t * p * c) or p > layers + 2 or (c > 1 and tokens % (2 * c)):
            continue
        d = devices // (t * p * c)
        for e, expert_tensor in itertools.product(divisors(experts), (0, 1)):
            if expert_tensor and (t == 1 or experts == 1):
                continue
            for b in divisors(sequences):
                batches, rest = divmod(sequences // b, d)
                if rest or not batches:
                    continue
                step = omnibal.TrainingStep(
                    tokens=tokens, sequences=b, micro_batches=batches, tensor=t, pipeline=p, context=c,
                    expert=e, data=d, expert_tensor=expert_tensor, norms="split" if t > 1 else "replicated")
                try:
                    omnibal.predict_step(model, step, machine)
                except ValueError:
                    continue
                for chunks in range(1, (layers + 2) // p + 1):
                    if chunks > 1 and (p == 1 or batches % p):
                        continue
                    for recompute in ("none", "selective", "full"):
                        for sharding in ("nothing", "optimizer", "parameters"):
                            yield step.replace(chunks=chunks, recompute=recompute, sharding=sharding)


class Search(unittest.TestCase):
    def check_every_step(self, model, layers, experts, memory):
        machine = H100.replace(devices_per_node=2)
        plan = omnibal.plan_configuration(
            model, machine, sequences=8, tokens=512, devices=4, memory_bytes=memory, cuts="even",
            runners_up=100)
        best = {}
        layouts = {}
        count = fitting = 0
        for step in every_step(model, machine, 4, 8, 512, layers, experts):
            if step.tensor > 2:
                continue
            found = omnibal.predict_step(model, step, machine)
            count += 1
            keys = [("tensor_parallel", step.tensor), ("pipeline_parallel", step.pipeline),
                    ("context_parallel", step.context), ("expert_parallel", step.expert),
                    ("schedule", "interleaved" if step.chunks > 1 else "1f1b"),
                    ("micro_batch", step.sequences), ("recompute", step.recompute),
                    ("sharding", step.sharding), ("offload", 0), "all"]
            seconds = found.seconds if found.peak_bytes.max() <= memory else np.inf
            fitting += seconds != np.inf
            for key in keys:
                best[key] = min(best.get(key, np.inf), seconds)
            layout = (step.tensor, step.pipeline, step.context, step.expert, step.expert_tensor, step.data)
            layouts[layout] = min(layouts.get(layout, np.inf), seconds)
        self.assertEqual(plan.configurations, count)
        self.assertTrue(0 < fitting < count, (fitting, count))
        self.assertTrue(plan.proven)
        self.assertEqual(plan.best.seconds, best["all"])
        self.assertEqual(plan.lower_bound, best["all"])
        chosen = plan.best.to_dict()
        names = {"tensor_parallel": "tensor", "pipeline_parallel": "pipeline",
                 "context_parallel": "context", "expert_parallel": "expert"}
        of_best = {choice: chosen[names.get(choice, choice)] for choice in
                   (*names, "micro_batch", "recompute", "sharding")}
        of_best["offload"] = chosen["offload_percent"]
        of_best["schedule"] = "interleaved" if chosen["chunks"] > 1 else "1f1b"
        families = {(f.choice, f.value): f for f in plan.families}
        self.assertEqual(set(families) | set(of_best.items()), set(best) - {"all"})
        for key, family in families.items():
            if family.best is None:
                self.assertEqual((best[key], family.reason), (np.inf, "memory"), key)
                self.assertGreater(family.min_bytes, memory)
            else:
                self.assertEqual(family.best.seconds, best[key], key)
                self.assertNotEqual(family.reason, "memory")
        runners = [one.seconds for one in plan.runners_up]
        self.assertEqual([plan.best.seconds] + runners,
                         sorted(seconds for seconds in layouts.values() if seconds < np.inf))

    def test_a_dense_model_is_that_of_every_step(self):
        self.check_every_step(omnibal.LanguageModel(6, 512, 8, 1024, 8000), 6, 1, 250 * 10**6)

    def test_experts_are_those_of_every_step(self):
        self.check_every_step(EXPERTS, 6, 8, 500 * 10**6)

    def test_known_values(self):
        # What the program prints: configure --model llama3-8b --devices 64 --tokens 8192.
        plan = search(LLAMA, sequences=256, tokens=8192, devices=64, memory_bytes=80 * 10**9,
                      reserve_bytes=8 * 10**9, layer_communication="overlapped")
        self.assertEqual((plan.status, plan.proven, plan.configurations), ("solved", True, 54324))
        best = plan.best
        self.assertEqual((best.tensor, best.pipeline, best.context, best.expert, best.data, best.micro_batch,
                          best.micro_batches, best.recompute, best.sharding),
                         (1, 1, 2, 1, 32, 1, 8, "selective", "optimizer"))
        self.assertEqual("%.2f" % best.seconds, "3.23")
        self.assertEqual("%.3f" % plan.flops_utilization(989e12), "0.527")
        self.assertEqual([round(b * 1e-9, 1) for b in best.peak_bytes], [67.4])
        self.assertEqual([(r.tensor, r.pipeline, r.chunks, r.context, r.data, r.micro_batch,
                           "%.2f" % r.seconds) for r in plan.runners_up],
                         [(1, 2, 4, 2, 16, 1, "3.25"), (1, 1, 1, 4, 16, 2, "3.26"),
                          (1, 2, 4, 4, 8, 2, "3.27"), (2, 1, 1, 1, 32, 1, "3.28")])
        losers = {(f.choice, f.value): ("%.2f" % f.best.seconds, f.reason) for f in plan.families}
        for key, expected in ((("tensor_parallel", 8), ("4.15", "links")),
                              (("pipeline_parallel", 8), ("3.92", "computation")),
                              (("schedule", "interleaved"), ("3.25", "bubble")),
                              (("micro_batch", 64), ("4.33", "computation")),
                              (("recompute", "full"), ("4.08", "computation")),
                              (("sharding", "parameters"), ("3.37", "links"))):
            self.assertEqual(losers[key], expected, key)
        # The same with --devices 16 --batch 64 --recompute none,full and a file of these lengths.
        plan = search(LLAMA, sequences=64, tokens=0, lengths=[5000, 300, 200, 4000] * 32, devices=16,
                      memory_bytes=80 * 10**9, reserve_bytes=8 * 10**9, recompute=["none", "full"],
                      layer_communication="overlapped")
        best = plan.best
        self.assertEqual((plan.configurations, best.data, best.token_capacity, best.micro_batches,
                          best.recompute, best.sharding), (20016, 16, 10240, 1, "none", "parameters"))
        self.assertEqual(("%.2f" % best.seconds, "%.3f" % best.padding,
                          "%.3f" % plan.flops_utilization(989e12), round(best.peak_bytes[0] * 1e-9, 1)),
                         ("0.92", "0.070", "0.508", 71.1))
        # What docs/guides/measured_costs.md prints for blocking communication.
        plan = search(LLAMA, sequences=256, tokens=8192, devices=64, memory_bytes=80 * 10**9,
                      reserve_bytes=8 * 10**9)
        self.assertEqual([round(1000 * one.seconds) for one in (plan.best, plan.runners_up[0])],
                         [3234, 3256])

    def test_results_are_steps_that_fit(self):
        for plan in (search(), search_packed(), search(EXPERTS), search(memory_bytes=6 * 10**9)):
            machine_bytes = 6 * 10**9 if plan.best.peak_bytes.max() < 4 * 10**9 else 40 * 10**9
            all_found = [plan.best, *plan.runners_up, *(f.best for f in plan.families if f.best)]
            self.assertGreater(len(all_found), 10)
            for one in all_found:
                self.assertEqual(one.tensor * one.pipeline * one.context * one.data, 8)
                self.assertLessEqual(one.peak_bytes.max(), machine_bytes - 2 * 10**9)
                self.assertGreaterEqual(one.seconds, plan.best.seconds)
                model = EXPERTS if one.expert > 1 or one.boundaries[-1] == 8 else SMALL
                self.assertEqual(omnibal.predict_step(model, one.step, H100).seconds, one.seconds)
                self.assertEqual(len(one.boundaries), one.pipeline * one.chunks + 1)
                if one.token_capacity == 0:
                    self.assertEqual(one.micro_batch * one.micro_batches * one.data, 32)
                    self.assertEqual((one.largest, one.padding), (None, 0))
                    self.assertEqual(omnibal.predict_step(model, one.step, H100), one.prediction)
                else:
                    self.assertEqual(one.micro_batch, one.token_capacity)
                    self.assertEqual(one.step.documents[1], one.token_capacity)
                    largest = one.step.replace(documents=one.largest)
                    self.assertEqual(omnibal.predict_step(model, largest, H100).peak_bytes.tolist(),
                                     one.peak_bytes.tolist())
                    self.assertTrue(0 <= one.padding < 1)

    def test_less_memory_is_never_faster(self):
        last = 0
        memory = 64 * 10**9
        while True:
            plan = search(memory_bytes=memory, reserve_bytes=0)
            if plan.status != "solved":
                break
            self.assertLessEqual(plan.best.peak_bytes.max(), memory)
            self.assertGreaterEqual(plan.best.seconds, last)
            last = plan.best.seconds
            memory //= 2
        self.assertEqual((plan.status, plan.best, plan.runners_up), ("infeasible", None, []))
        self.assertGreater(plan.min_bytes, memory)
        self.assertRegex(repr(plan), "infeasible, at least %d bytes" % plan.min_bytes)
        with self.assertRaisesRegex(ValueError, "flops_utilization: the plan is infeasible, has no step"):
            plan.flops_utilization(1e15)
        self.assertEqual(search(reserve_bytes=30 * 10**9).to_dict(),
                         search(memory_bytes=10 * 10**9, reserve_bytes=0).to_dict())

    def test_a_link_to_the_host_helps_if_the_memory_is_short(self):
        limits = dict(tensor_parallel=1, pipeline_parallel=1, context_parallel=1, micro_batch_sizes=4,
                      recompute="full", sharding="nothing", reserve_bytes=0)
        limits["memory_bytes"] = int(search(**limits).best.peak_bytes[0]) - 1
        self.assertEqual(search(**limits).status, "infeasible")
        plan = search(offload_bytes_per_second=50e9, **limits)
        best = plan.best
        self.assertEqual((best.offload_percent, best.step.offload_share, best.step.offload_bytes_per_second),
                         (25, 0.25, 50e9))
        self.assertEqual([(f.choice, f.value, f.reason) for f in plan.families],
                         [("offload", 0, "memory"), ("offload", 50, "links"), ("offload", 75, "links"),
                          ("offload", 100, "links")])
        self.assertEqual(search(offload_bytes_per_second=50e9, offload_percent=[0, 10], **limits)
                         .best.offload_percent, 10)
        host = int(best.host_bytes[0])
        self.assertEqual(search(offload_bytes_per_second=50e9, host_memory_bytes=host, **limits).status,
                         "solved")
        self.assertEqual(search(offload_bytes_per_second=50e9, host_memory_bytes=host - 1, **limits).status,
                         "infeasible")
        self.assertIn("offload 25 %", repr(best))

    def test_listed_values_are_those_of_the_result(self):
        for argument, value, member in (
                ("tensor_parallel", 2, "tensor"), ("pipeline_parallel", 4, "pipeline"),
                ("context_parallel", 4, "context"), ("micro_batch_sizes", 2, "micro_batch"),
                ("recompute", "full", "recompute"), ("sharding", "gradients", "sharding")):
            for given in (value, [value], (value, value)):
                plan = search(**{argument: given})
                self.assertEqual(getattr(plan.best, member), value)
                for one in plan.runners_up:
                    self.assertEqual(getattr(one, member), value)
        self.assertEqual(search(virtual_pipeline=2).best.chunks, 2)
        self.assertEqual(search(tensor_parallel=2, norms="replicated").best.norms, "replicated")
        self.assertEqual(search(tensor_parallel=np.array([2])).best.norms, "split")
        self.assertEqual(search(EXPERTS, expert_parallel=[4]).best.expert, 4)
        self.assertEqual(search_packed(token_capacities=[8192]).best.token_capacity, 8192)
        even = search(pipeline_parallel=8, virtual_pipeline=1, cuts=["even"]).best
        balanced = search(pipeline_parallel=8, virtual_pipeline=1, cuts="balanced").best
        self.assertNotEqual(even.boundaries.tolist(), balanced.boundaries.tolist())

    def test_numbers_of_the_software_are_those_of_the_step(self):
        before = search().best.step.to_dict()
        for argument, value in (("precision", "fp8"), ("reduced_bytes", 4), ("gathered_bytes", 1),
                                ("bucket_bytes", 10**6), ("layer_communication", "overlapped"),
                                ("gradient_communication", "blocking"), ("document_tokens", 512)):
            step = search(**{argument: value}).best.step
            self.assertEqual(getattr(step, argument), value)
            self.assertNotEqual(before[argument], value)
        self.assertEqual(search(bytes="fp8").best.step.bytes["matrix_copy"], 2)
        self.assertEqual(search(bytes={"gradient": 2}).best.step.bytes["gradient"], 2)
        self.assertEqual(len(search(runners_up=1).runners_up), 1)
        short = search(predictions=3)
        self.assertEqual((short.proven, short.predictions), (False, 3))
        self.assertLessEqual(short.lower_bound, search().best.seconds)
        self.assertEqual(search(sequences=64).best.step.to_dict()["micro_batches"] *
                         search(sequences=64).best.data * search(sequences=64).best.micro_batch, 64)

    def test_lengths(self):
        plan = search_packed()
        self.assertEqual(plan.best.token_capacity % 128, 0)
        strided = np.stack([LENGTHS, LENGTHS], axis=1).astype(np.int32)[:, 1]
        for given in (LENGTHS.tolist(), strided, LENGTHS.astype(np.uint64)):
            self.assertEqual(search(tokens=0, lengths=given).to_dict(), plan.to_dict())
        # Samples of one length have no padding, and the step of sequences of this length.
        equal = search(tokens=0, lengths=[2048] * 64, token_capacities=4096)
        same = search(tokens=2048, micro_batch_sizes=2)
        self.assertEqual(equal.best.padding, 0)
        self.assertAlmostEqual(equal.best.seconds, same.best.seconds)
        self.assertEqual(equal.best.data, same.best.data)

    def test_lengths_of_a_model_with_a_window(self):
        windowed = omnibal.LanguageModel(16, 1024, 16, 2816, 32000, window=256)
        plan = search(windowed, tokens=0, lengths=LENGTHS)
        count, tokens, squares, window, within = plan.best.step.documents
        self.assertEqual((tokens, window), (plan.best.token_capacity, 256))
        self.assertTrue(tokens <= within < squares, (within, squares))
        self.assertGreaterEqual(plan.best.largest[4], within)
        self.assertEqual(omnibal.predict_step(windowed, plan.best.step, H100), plan.best.prediction)
        equal = search(windowed, tokens=0, lengths=[2048] * 64, token_capacities=4096)
        same = search(windowed, tokens=2048, micro_batch_sizes=2)
        self.assertAlmostEqual(equal.best.seconds, same.best.seconds)

    def test_copies(self):
        for plan in (search(), search_packed(), search(memory_bytes=10**9, reserve_bytes=0)):
            for again in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
                self.assertEqual(again.to_dict(), plan.to_dict())
                self.assertEqual(repr(again), repr(plan))
                self.assertEqual([f.to_dict() for f in again.families],
                                 [f.to_dict() for f in plan.families])
            self.assertEqual(json.loads(json.dumps(plan.to_dict())), plan.to_dict())
        best = search().best
        again = pickle.loads(pickle.dumps(best))
        self.assertEqual((again.step, again.prediction), (best.step, best.prediction))

    def test_errors(self):
        for arguments, text in (
                ({"devices": 0}, "devices is 0, must be from 1 to"),
                ({"sequences": -1}, "sequences is -1, must be from 1 to"),
                ({"tokens": 0}, "tokens is 0, must be from 1 to"),
                ({"memory_bytes": 0}, "memory_bytes is 0, must be from 1"),
                ({"reserve_bytes": 41 * 10**9}, "reserve_bytes is 41000000000, must be from 0 to"),
                ({"tensor_parallel": [3]}, "devices is 8, must be a multiple of tensor_parallel, which is 3"),
                ({"pipeline_parallel": []}, "pipeline_parallel is empty, must be None or have a value"),
                ({"context_parallel": [0]}, "context_parallel is 0, must be from 1"),
                ({"virtual_pipeline": [1.5]}, "the type of virtual_pipeline is float64, must be integers"),
                ({"expert_parallel": [1, 2]}, "expert_parallel has 2, must be 1 because the model has no"),
                ({"micro_batch_sizes": 3}, "sequences is 32, must be a multiple of micro_batch_sizes"),
                ({"token_capacities": 4096}, "token_capacities has values, but lengths has none"),
                ({"recompute": "some"}, "recompute is 'some', must be none, selective or full"),
                ({"sharding": ["nothing", "all"]}, "sharding is 'all', must be nothing, optimizer, "),
                ({"norms": []}, "norms is empty"),
                ({"cuts": "odd"}, "cuts is 'odd', must be even or balanced"),
                ({"precision": "fp4"}, "precision is 'fp4', must be bf16 or fp8"),
                ({"layer_communication": "none"}, "layer_communication is 'none', must be blocking or"),
                ({"gradient_communication": "none"}, "gradient_communication is 'none', must be blocking"),
                ({"runners_up": -1}, "runners_up is -1, must not be negative"),
                ({"predictions": 0}, "predictions is 0, must be from 1"),
                ({"bucket_bytes": 0}, "bucket_bytes is 0, must be from 1"),
                ({"offload_bytes_per_second": -1}, "offload_bytes_per_second is -1, must not be negative"),
                ({"host_memory_bytes": -1}, "host_memory_bytes is -1, must be from 0"),
                ({"offload_percent": [101]}, "offload_percent is 101, must be from 0 to 100"),
                ({"offload_percent": 50}, "offload_percent has 50, must be 0 if offload_bytes_per_second"),
                ({"lengths": [5]}, "tokens is 2048, must be 0 if lengths are given"),
                ({"lengths": [], "tokens": 0}, "lengths is empty, must be None or have a value"),
                ({"lengths": [5, -7], "tokens": 0}, r"lengths\[1\] is -7, must be from 1"),
                ({"lengths": [5], "tokens": 0, "micro_batch_sizes": 1}, "micro_batch_sizes has values, but"),
                ({"lengths": [5], "tokens": 0, "document_tokens": 5}, "document_tokens is 5, must be from 0"),
                ({"pipeline_parallel": 1, "virtual_pipeline": 2}, "the arguments allow no configuration")):
            with self.assertRaisesRegex(ValueError, "^omnibal.plan_configuration: " + text):
                search(**arguments)
        with self.assertRaisesRegex(TypeError, "recompute is of type int, must be a str or a list"):
            search(recompute=1)
        windowed = omnibal.LanguageModel(16, 1024, 16, 2816, 32000, window=256)
        self.assertEqual(search(windowed).status, "solved")

    def test_other_threads_run_meanwhile(self):
        done = threading.Event()
        turns = 0

        def work():
            search(LLAMA, sequences=512, tokens=8192, devices=256, memory_bytes=80 * 10**9)
            done.set()

        thread = threading.Thread(target=work)
        thread.start()
        while not done.is_set():
            turns += 1
            done.wait(0.001)
        thread.join()
        self.assertGreater(turns, 10)


class Fit(unittest.TestCase):
    def test_the_machine_of_exact_runs_comes_back(self):
        true = H100.replace(matmul_flops_per_second=500e12, network_bytes_per_second=15e9)
        runs = [{"micro_batches": count, "data": data} for count in (2, 8, 32) for data in (8, 64, 256)]

        def predict(run, machine):
            step = omnibal.TrainingStep(tokens=4096, gradient_communication="blocking", **run)
            return omnibal.predict_step(SMALL, step, machine).seconds

        seconds = [predict(run, true) for run in runs]
        names = ["network_bytes_per_second", "matmul_flops_per_second"]
        found = omnibal.fit_machine(runs, seconds, predict, H100, names, prior=1e-5)
        self.assertEqual([one.name for one in found.constants], names)
        for one in found.constants:
            self.assertAlmostEqual(one.value / getattr(true, one.name), 1, 3)
            self.assertEqual(one.value, getattr(found.fitted, one.name))
            self.assertLess(one.relative_error, 1e-3)
            self.assertFalse(one.is_at_bound)
        self.assertEqual(found.fitted.replace(**{name: getattr(H100, name) for name in names}), H100)
        self.assertLess(found.largest_error, 1e-3)
        again = pickle.loads(pickle.dumps(found))
        self.assertEqual((again.fitted, repr(again.constants)), (found.fitted, repr(found.constants)))
        # A bound keeps the constants close to their starts.
        bounded = omnibal.fit_machine(runs, seconds, predict, H100, names, prior=1e-5, bound_factor=1.1)
        self.assertTrue(all(one.is_at_bound for one in bounded.constants))
        self.assertGreater(bounded.mean_error, found.mean_error)
        self.assertLessEqual(bounded.mean_error, bounded.largest_error)
        started = omnibal.fit_machine(runs, seconds, predict, H100, names, prior=1e6)
        self.assertAlmostEqual(started.fitted.matmul_flops_per_second / 689e12, 1, 3)
        once = omnibal.fit_machine(runs, seconds, predict, H100, names, prior=1e-5, rounds=1)
        self.assertGreater(once.mean_error, found.mean_error)
        wrong = [3 * seconds[0], *seconds[1:]]
        robust = omnibal.fit_machine(runs, wrong, predict, H100, names, prior=1e-5)
        strict = omnibal.fit_machine(runs, wrong, predict, H100, names, prior=1e-5, outlier_share=100.0)
        self.assertLess(abs(robust.fitted.matmul_flops_per_second / 500e12 - 1),
                        abs(strict.fitted.matmul_flops_per_second / 500e12 - 1))

    def test_errors(self):
        def fit(**changes):
            arguments = dict(runs=[1, 2], seconds=[0.5, 1.0], start=H100,
                             predict=lambda run, on: 1e9 * run / on.network_bytes_per_second,
                             constants=["network_bytes_per_second"])
            arguments.update(changes)
            return omnibal.fit_machine(**arguments)

        self.assertTrue(fit().constants[0].value > 0)
        for arguments, text in (
                ({"seconds": [1]}, r"there are 2 runs, but seconds has the shape \(1,\)"),
                ({"seconds": [1, -2]}, r"seconds\[1\] is -2, must be positive"),
                ({"seconds": ["1", "2"]}, "the type of seconds is <U1, must be numbers"),
                ({"constants": []}, "constants is empty"),
                ({"constants": ["devices_per_node"]}, "constants is 'devices_per_node', must be matmul_"),
                ({"constants": ["hop_seconds", "hop_seconds"]}, "constants has hop_seconds twice"),
                ({"constants": ["hop_seconds", "fp8_gain", "launch_seconds"]}, "runs has 2 elements, fewer"),
                ({"start": H100.replace(network_bytes_per_second=float("inf"))},
                 "start.network_bytes_per_second is inf, must be positive and finite"),
                ({"predict": lambda run, on: -1.0}, r"predict\[0\] is -1, must be positive"),
                ({"prior": 0.0}, "prior is 0, must be positive"),
                ({"outlier_share": -1.0}, "outlier_share is -1, must be positive"),
                ({"bound_factor": 1.0}, "bound_factor is 1, must be above 1"),
                ({"rounds": 0}, "rounds is 0, must be positive"),
                ({"rounds": -1}, "rounds is -1, must not be negative")):
            with self.assertRaisesRegex(ValueError, "^omnibal.fit_machine: " + text):
                fit(**arguments)
        for arguments, text in (({"predict": 3}, "predict is of type int, must be a function"),
                                ({"predict": lambda run, on: None}, "the result of predict is of type NoneType"),
                                ({"runs": 3}, "runs is of type int, must be a list")):
            with self.assertRaisesRegex(TypeError, "^omnibal.fit_machine: " + text):
                fit(**arguments)
        with self.assertRaises(ZeroDivisionError):
            fit(predict=lambda run, on: run / 0)


if __name__ == "__main__":
    unittest.main()
