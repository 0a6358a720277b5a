# SPDX-License-Identifier: Apache-2.0
"""Interfaces of other packages that call omnibal: stand-ins written anew from their documentation,
and the packages themselves where they are installed."""

import abc
import copy
import dataclasses
import enum
import importlib
import itertools
import json
import os
import pathlib
import re
import sys
import tempfile
import types
import unittest
import unittest.mock
import warnings

import numpy as np
import omnibal
from drawn_lengths import drawn_lengths, flat
import rivals
from omnibal.compat import energon, lhotse, megatron, pytorch, slime, trl, verl
from omnibal.data import PackedBatchSampler, StatefulLoader, collate_packed, column_lengths

RANDOM = np.random.RandomState(21)


def installed(name):
    """The module of another package, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


torch = installed("torch")


class Case(unittest.TestCase):
    def setUp(self):
        # The instances of a test do not depend on the tests before it, which may be skipped.
        RANDOM.seed(21)


def random_lengths(count, most):
    return drawn_lengths(RANDOM, count, most)


def fewest_groups(lengths, capacity):
    """The fewest groups under a capacity, by trying all."""
    def place(i, loads, best):
        if len(loads) >= best or i == len(lengths):
            return min(best, len(loads))
        for g in range(len(loads)):
            if loads[g] + lengths[i] <= capacity:
                loads[g] += lengths[i]
                best = place(i + 1, loads, best)
                loads[g] -= lengths[i]
        return place(i + 1, loads + [lengths[i]], best)
    return place(0, [], len(lengths) + 1)


def smallest_maximum(work, rows, demand, budget):
    """The least work of the heaviest row under a budget, by trying all; None if there is none."""
    best = None
    for where in itertools.product(range(rows), repeat=len(work)):
        loads, used = [0] * rows, [0] * rows
        for i, row in enumerate(where):
            loads[row] += work[i]
            used[row] += demand[i]
        if max(used) <= budget and (best is None or max(loads) < best):
            best = max(loads)
    return best


# Megatron-Core: a module with a map from names to classes, and a function that runs the class.


def megatron_module(with_enum=False):
    """`data_schedule` as documented: a base class, two schedulers, their map, and a wrapper that
    takes one by the name in the config and runs it."""

    class BasePackingScheduler:
        def __init__(self, max_seqlen_per_dp_cp_rank, cp_size, dp_size,
                     microbatch_group_size_per_vp_stage, max_num_seqs=None):
            self.max_seqlen_per_dp_cp_rank = max_seqlen_per_dp_cp_rank
            self.cp_size = cp_size
            self.dp_size = dp_size
            self.microbatch_group_size_per_vp_stage = microbatch_group_size_per_vp_stage
            self.max_num_seqs = max_num_seqs

    class DpBalancedScheduler(BasePackingScheduler):
        def get_required_sample_keys(self):
            return ["tokens", "padded_seq_len"]

        def get_groups_and_subsamples(self, sample_id_seqlens):
            raise NotImplementedError("in order")

        def run(self, data_iterator, num_microbatches, dp_group, tp_group, pp_group, dp_cp_group,
                dev, config):
            samples = [next(data_iterator) for _ in range(num_microbatches)]
            for sample in samples:
                assert all(key in sample for key in self.get_required_sample_keys())
            lengths = [sample["padded_seq_len"] for sample in samples]
            groups = self.get_groups_and_subsamples(list(enumerate(lengths)))
            assert len({i for ranks in groups for ids in ranks for i in ids}) == len(lengths)
            mine = iter([[samples[i] for i in ranks[dp_cp_group]] for ranks in groups])
            squares = float(sum(length * length for length in lengths))
            return mine, len(groups), float(sum(lengths)), squares

    class DefaultDynamicCPScheduler(DpBalancedScheduler):
        def __init__(self, *args, min_cp_size=1, **kwargs):
            super().__init__(*args, **kwargs)
            self.min_cp_size = min_cp_size

    class PackingSchedulerEnum(enum.Enum):
        DP_BALANCED = "dp_balanced"
        DEFAULT_DYNAMIC_CP = "default_dynamic_cp"

    module = types.SimpleNamespace(BasePackingScheduler=BasePackingScheduler)
    key = PackingSchedulerEnum if with_enum else str
    module.scheduler_map = {key("dp_balanced"): DpBalancedScheduler,
                            key("default_dynamic_cp"): DefaultDynamicCPScheduler}

    def wrap_data_iterator(data_iterator, config, num_microbatches, dp_size, cp_size, rank):
        extra = {}
        if config.sequence_packing_scheduler == "default_dynamic_cp":
            extra["min_cp_size"] = config.min_dynamic_context_parallel_size
        scheduler = module.scheduler_map[key(config.sequence_packing_scheduler)](
            config.max_seqlen_per_dp_cp_rank, cp_size, dp_size,
            config.microbatch_group_size_per_vp_stage, max_num_seqs=None, **extra)
        return scheduler.run(data_iterator, num_microbatches, None, None, None, rank, None, config)

    module.wrap_data_iterator = wrap_data_iterator
    return module


def megatron_config(scheduler, most, group=None):
    return types.SimpleNamespace(
        sequence_packing_scheduler=scheduler, max_seqlen_per_dp_cp_rank=most,
        microbatch_group_size_per_vp_stage=group, min_dynamic_context_parallel_size=1)


class Megatron(Case):
    def test_the_flag_selects_the_registered_schedulers(self):
        # `run` and the keys stay Megatron's, and each rank gets its part of every sample once.
        for with_enum in (False, True):
            for flag in ("dp_balanced", "default_dynamic_cp"):
                module = megatron_module(with_enum)
                before = dict(module.scheduler_map)
                replaced = megatron.register(module)
                self.assertEqual(list(replaced.values()), list(before.values()))
                for key, scheduler in module.scheduler_map.items():
                    self.assertTrue(issubclass(scheduler, before[key]))
                    self.assertIs(scheduler.run, before[key].run)
                    self.assertEqual(scheduler.__name__, before[key].__name__)
                lengths = random_lengths(60, 200)
                seen = []
                for rank in range(8):
                    samples = iter([{"tokens": i, "padded_seq_len": n}
                                    for i, n in enumerate(lengths)])
                    mine, count, total, squares = module.wrap_data_iterator(
                        samples, megatron_config(flag, 100, 2), 60, 4, 2, rank)
                    packs = list(mine)
                    self.assertEqual(len(packs), count)
                    self.assertEqual(count % 2, 0)
                    self.assertEqual(total, sum(lengths))
                    self.assertEqual(squares, sum(n * n for n in lengths))
                    self.assertTrue(all(packs))
                    if flag == "dp_balanced":
                        for pack in packs:
                            self.assertLessEqual(sum(s["padded_seq_len"] for s in pack), 200)
                        if rank % 2 == 0:
                            seen += [s["tokens"] for pack in packs for s in pack]
                    else:
                        seen += [s["tokens"] for pack in packs for s in pack]
                if flag == "dp_balanced":
                    self.assertEqual(sorted(seen), list(range(60)))
                self.assertEqual(set(seen), set(range(60)))

    def test_fewer_packs_than_in_order(self):
        for _ in range(30):
            ranks = int(RANDOM.choice([2, 4, 8]))
            samples = list(enumerate(random_lengths(ranks * int(RANDOM.randint(4, 30)), 100)))
            module = megatron_module()
            megatron.register(module)
            scheduler = module.scheduler_map["dp_balanced"](100, 1, ranks, None)
            found = scheduler.get_groups_and_subsamples(samples)
            self.assertLessEqual(len(found) * ranks, len(rivals.in_order(samples, 100, ranks)))

    def test_the_linear_cost_decides_which_work_is_even(self):
        def idle(linear, of):
            """The idle work by the linear cost `of` if the scheduler has the cost `linear`."""
            found = megatron.DpBalancedScheduler(
                1000, 1, 4, linear_cost=linear).get_groups_and_subsamples(samples)
            work = [[sum(n * n + of * n for n in (lengths[i] for i in pack)) for pack in packs]
                    for packs in found]
            return sum(max(packs) * 4 - sum(packs) for packs in work)

        costs = (0, 100, 10**7)
        total = np.zeros((3, 3))
        for _ in range(20):
            lengths = [int(n) for n in np.clip(RANDOM.lognormal(4, 1, 80), 1, 900)]
            samples = list(enumerate(lengths))
            total += [[idle(linear, of) for linear in costs] for of in costs]
        # No other cost is better for a cost than itself.
        self.assertEqual(total.argmin(axis=1).tolist(), [0, 1, 2])
        self.assertEqual(megatron.DpBalancedScheduler(8, 1, 1).linear_cost, 24576)

    def test_registering_again_and_errors(self):
        module = megatron_module()
        first = megatron.register(module, linear_cost=1)
        self.assertEqual(megatron.register(module, linear_cost=2), first)
        self.assertEqual(module.scheduler_map["dp_balanced"].__mro__[1], first["dp_balanced"])
        with self.assertRaisesRegex(ValueError, "megatron.register: .* no 'dp_balanced'"):
            megatron.register(types.SimpleNamespace(scheduler_map={"mine": object}))
        with self.assertRaisesRegex(ValueError, "this version of Megatron-Core has no scheduler_map"):
            megatron.register(types.SimpleNamespace())
        with self.assertRaisesRegex(ValueError, "linear_cost is -1"):
            megatron.register(module, linear_cost=-1)
        scheduler = module.scheduler_map["dp_balanced"](4, 1, 2, None)
        with self.assertRaisesRegex(ValueError, "get_groups_and_subsamples: "):
            scheduler.get_groups_and_subsamples([(0, 9), (1, 1)])

    @unittest.skipIf(installed("megatron.core.datasets.data_schedule") is None,
                     "Megatron-Core with its packing schedulers is not installed")
    def test_the_package(self):
        module = importlib.import_module("megatron.core.datasets.data_schedule")
        if not hasattr(module, "scheduler_map"):
            # As in Megatron-Core 0.16.1.
            with self.assertRaisesRegex(ValueError, "no scheduler_map.*; call DpBalancedScheduler"):
                megatron.register()
            return
        megatron.register()
        scheduler = next(iter(module.scheduler_map.values()))(64, 1, 2, None)
        found = scheduler.get_groups_and_subsamples([(i, 30) for i in range(8)])
        self.assertEqual(sorted(flat(flat(found))), list(range(8)))


# Energon: an encoder whose buffer is packed, and each pack made into one sample.


class TaskEncoder:
    """The packing of `TaskEncoder` as documented: a full buffer is selected, and each pack that is
    not empty is encoded. Both methods must be overridden."""

    def select_samples_to_pack(self, samples):
        raise NotImplementedError

    def pack_selected_samples(self, samples):
        raise NotImplementedError

    def packs(self, samples, packing_buffer_size):
        for name in ("select_samples_to_pack", "pack_selected_samples"):
            assert getattr(type(self), name) is not getattr(TaskEncoder, name)
            assert getattr(getattr(self, name), "__stateless__", False)
        for first in range(0, len(samples), packing_buffer_size):
            for pack in self.select_samples_to_pack(samples[first : first + packing_buffer_size]):
                if pack:
                    yield self.pack_selected_samples(pack)


@dataclasses.dataclass
class TextSample:
    __key__: str
    __restore_key__: tuple
    tokens: np.ndarray
    labels: np.ndarray
    cu_seqlens: object = None


class TextEncoder(energon.Packing, TaskEncoder):
    packing_capacity = 100


def text_samples(lengths):
    return [TextSample(str(i), ("file", i), np.arange(n) + 1000 * i, np.arange(n) + 1000 * i + 1)
            for i, n in enumerate(lengths)]


class Energon(Case):
    def test_packs_of_a_buffer(self):
        for _ in range(20):
            samples = text_samples(random_lengths(int(RANDOM.randint(1, 80)), 100))
            packs = list(TextEncoder().packs(samples, 32))
            keys = flat([pack.__key__.split(",") for pack in packs])
            self.assertEqual(sorted(keys, key=int), [sample.__key__ for sample in samples])
            by_key = {sample.__key__: sample for sample in samples}
            for pack in packs:
                own = [by_key[key] for key in pack.__key__.split(",")]
                self.assertEqual(pack.__restore_key__, ())
                self.assertLessEqual(len(pack.tokens), 100)
                self.assertEqual(pack.tokens.tolist(), flat([s.tokens.tolist() for s in own]))
                # The labels are the next tokens, so that the first label of a sample stays.
                self.assertEqual(pack.labels.tolist(), flat([s.labels.tolist() for s in own]))
                ends = np.cumsum([len(s.tokens) for s in own]).tolist()
                self.assertEqual(pack.cu_seqlens.tolist(), [0] + ends)

    def test_the_fewest_packs_in_the_order_of_the_buffer(self):
        more = 0
        for _ in range(60):
            lengths = random_lengths(int(RANDOM.randint(1, 9)), 100)
            samples = text_samples(lengths)
            groups = TextEncoder().select_samples_to_pack(list(samples))
            numbers = [[int(sample.__key__) for sample in group] for group in groups]
            self.assertEqual(numbers, sorted(sorted(group) for group in numbers))
            more += len(groups) - fewest_groups(lengths, 100)
        # The packer is not exact: of 1,200 small buffers, 2 have one pack more than the fewest.
        self.assertLessEqual(more, 2)

    def test_several_resources_mappings_and_long_samples(self):
        class Encoder(energon.Packing, TaskEncoder):
            packing_capacity = (3, 50)

            def packing_demand(self, sample):
                return sample["images"], len(sample["tokens"])

        samples = [{"images": i % 3, "tokens": [i] * (5 + i), "labels": [i] * (5 + i), "id": i}
                   for i in range(30)]
        packs = list(Encoder().packs(samples, 30))
        self.assertEqual(sorted(flat(pack["tokens"].tolist() for pack in packs)),
                         sorted(flat(sample["tokens"] for sample in samples)))
        for pack in packs:
            own = sorted({int(i) for i in pack["tokens"]})
            self.assertLessEqual(len(pack["tokens"]), 50)
            self.assertLessEqual(sum(i % 3 for i in own), 3)
            self.assertEqual(pack["id"], own[0])
        long = text_samples([120, 30, 40])
        with self.assertRaisesRegex(ValueError, "sample 0 of the buffer has 120, above"):
            TextEncoder().select_samples_to_pack(long)
        for policy, groups in (("own_group", [[0], [1, 2]]), ("skip", [[1, 2]])):
            encoder = TextEncoder()
            encoder.packing_oversized = policy
            found = encoder.select_samples_to_pack(long)
            self.assertEqual([[int(s.__key__) for s in group] for group in found], groups)
        self.assertEqual(TextEncoder().select_samples_to_pack([]), [])
        with self.assertRaisesRegex(ValueError, "packing_capacity is None"):
            type("E", (energon.Packing,), {})().select_samples_to_pack(long)
        plain = types.SimpleNamespace(tokens=[1], labels=[1], loss_mask=[1])
        with self.assertRaisesRegex(ValueError, r"samples\[0\] is of the class SimpleNamespace"):
            TextEncoder().pack_selected_samples([plain])

    @unittest.skipIf(installed("megatron.energon") is None, "Megatron-Energon is not installed")
    def test_the_package(self):
        base = importlib.import_module("megatron.energon")
        wrappers = importlib.import_module("megatron.energon.wrappers.packing_dataset")
        stateless = importlib.import_module("megatron.energon.task_encoder.base").get_stateless
        encoder = type("E", (energon.Packing, base.TaskEncoder), {"packing_capacity": 9})()
        for method in (encoder.select_samples_to_pack, encoder.pack_selected_samples):
            self.assertTrue(encoder._is_overridden(method))
            self.assertTrue(stateless(method))
        self.assertTrue(wrappers.PackingDataset)


# PyTorch: an order of tokens, of which the ranks get equal chunks.


def attended(lengths):
    """The tokens to which each token attends, from the mask of causal documents."""
    document = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(document))
    mask = (document[:, None] == document) & (place[:, None] >= place)
    return mask.sum(axis=1)


def round_robin(work, ranks):
    """The loads of the order by processing time: descending, with each second row reversed."""
    rows = np.sort(work)[::-1].reshape(-1, ranks).copy()
    rows[1::2] = rows[1::2, ::-1]
    return rows.sum(axis=0)


class LoadBalancer(Case):
    def check(self, rows, ranks, **options):
        balancer = pytorch.LoadBalancer(rows, ranks, **options)
        order = balancer.indices()
        back = balancer.indices(restore=True)
        length = sum(rows[0])
        self.assertEqual(order.shape, (len(rows), length))
        for row, lengths in enumerate(rows):
            tokens = np.arange(length)
            self.assertEqual(sorted(order[row]), tokens.tolist())
            self.assertEqual(tokens[order[row]][back[row]].tolist(), tokens.tolist())
            loads = attended(lengths)[order[row]].reshape(ranks, -1).sum(axis=1)
            self.assertEqual(loads.tolist(), balancer.pairs[row].tolist())
            blocks = order[row].reshape(-1, balancer.block_size)
            self.assertTrue((np.diff(blocks, axis=1) == 1).all())
            self.assertTrue((blocks[:, 0] % balancer.block_size == 0).all())
        return balancer

    def test_any_documents(self):
        for _ in range(40):
            ranks = int(RANDOM.choice([1, 2, 3, 4, 8]))
            block = int(RANDOM.choice([1, 2, 4]))
            length = ranks * block * int(RANDOM.randint(1, 30))
            rows = []
            for _ in range(RANDOM.randint(1, 3)):
                cuts = np.sort(RANDOM.choice(np.arange(1, length), min(5, length - 1), False))
                rows.append(np.diff([0, *cuts, length]).tolist())
            balancer = self.check(rows, ranks, block_size=block)
            for row, lengths in enumerate(rows):
                work = attended(lengths).reshape(-1, block).sum(axis=1)
                self.assertLessEqual(balancer.pairs[row].max(), round_robin(work, ranks).max())

    def test_no_split_in_equal_numbers_is_more_even(self):
        for _ in range(40):
            length = 2 * int(RANDOM.randint(2, 7))
            cuts = np.sort(RANDOM.choice(np.arange(1, length), 2, False))
            lengths = np.diff([0, *cuts, length]).tolist()
            work = attended(lengths)
            best = min(max(work[list(own)].sum(), work.sum() - work[list(own)].sum())
                       for own in itertools.combinations(range(length), length // 2))
            self.assertEqual(self.check([lengths], 2, block_size=1).pairs.max(), best)

    def test_documents_that_head_and_tail_cannot_split(self):
        # Documents of 4 and 12 tokens, and lengths that no multiple of twice the ranks divides.
        self.assertEqual(self.check([[4, 12]], 2).pairs.tolist(), [[44, 44]])
        balancer = self.check([[1000, 3001, 95]], 8)
        self.assertEqual(balancer.block_size, 32)
        self.assertEqual(pytorch.LoadBalancer([[30000, 35536]], 8).block_size, 128)
        balancer = self.check([[1000, 3001, 95]], 8, block_size=16)
        self.assertLess(balancer.pairs.max() * 8 / balancer.pairs.sum(), 1.001)

    def test_errors(self):
        for rows, ranks, options, text in (
            ([[4, 12], [8]], 2, {}, r"sums of seq_length_per_doc are \[8, 16\]"),
            ([[4, 12]], 3, {}, "16 tokens, must be a multiple of world_size, 3"),
            ([[4, 12]], 2, {"block_size": 3}, "block_size is 3, must divide the 8"),
            ([[0]], 1, {}, "must be at least 1"),
            ([4, 12], 2, {}, "a list of lengths for each sequence"),
            (np.array([4, 12]), 2, {}, "a list of lengths for each sequence"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                pytorch.LoadBalancer(rows, ranks, **options)

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_the_package(self):
        try:
            from torch.distributed.tensor.experimental._context_parallel import _load_balancer
        except ImportError:
            self.skipTest("this PyTorch has no load balancers of context parallelism")
        bases = (pytorch.LoadBalancer, _load_balancer._LoadBalancer)
        balancer = type("Balancer", bases, {})([[16, 48], [32, 32]], 4)
        order, back = balancer._generate_indices(), balancer._generate_indices(restore=True)
        q = torch.arange(64).expand(2, 64)
        self.assertTrue(torch.equal(q.gather(1, order).gather(1, back), q))
        theirs = _load_balancer._PerDocumentHeadTailLoadBalancer([[16, 48], [32, 32]], 4, "cpu")
        self.assertEqual(order.shape, theirs._generate_indices().shape)
        for row, lengths in enumerate([[16, 48], [32, 32]]):
            work = torch.from_numpy(attended(lengths))
            even = work[theirs._generate_indices()[row]].reshape(4, -1).sum(1).max()
            ours = pytorch.LoadBalancer([lengths], 4, block_size=2).pairs.max()
            self.assertLessEqual(int(ours), 1.01 * int(even))


class PipelineCsv(Case):
    FORWARD = [[3, 1, 2, 1], [3, 1, 2, 1]]

    def test_rows_of_actions(self):
        # A row for each rank, and actions of stage, kind and micro-batch.
        found = omnibal.list_schedule(self.FORWARD, self.FORWARD, 2, weight=self.FORWARD)
        rows = found.to_csv().splitlines()
        self.assertEqual(len(rows), 2)
        for rank, row in enumerate(rows):
            actions = [re.fullmatch(r"(\d+)([FIWB])(\d+)", action).groups()
                       for action in row.split(",")]
            self.assertEqual({stage for stage, _, _ in actions}, {str(rank)})
            for kind in "FIW":
                self.assertEqual(sorted(m for _, k, m in actions if k == kind), list("0123"))

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_the_package(self):
        try:
            from torch.distributed.pipelining import schedules
        except ImportError:
            self.skipTest("this PyTorch has no pipelining")
        found = omnibal.list_schedule(self.FORWARD, self.FORWARD, 2, weight=self.FORWARD)
        for row, operations in zip(found.to_csv().splitlines(), found.operations):
            for text, (kind, chunk, micro_batch) in zip(row.split(","), operations):
                action = schedules._Action.from_str(text)
                self.assertEqual(str(action), text)
                self.assertEqual(action.microbatch_index, micro_batch)


# Lhotse: a constraint that tells a sampler when a batch is full.


@dataclasses.dataclass
class Cut:
    id: int
    duration: float


def bucketed_batches(cuts, constraint, buckets):
    """The batches of Lhotse's bucketing sampler without shuffling, as documented: examples go into
    buckets, and a batch of a bucket ends when the constraint is close to being exceeded."""
    queues = [[] for _ in range(len(buckets) + 1)]
    for cut in cuts:
        queues[constraint.select_bucket(buckets, example=cut)].append(cut)
    for queue in queues:
        own = constraint.copy()
        own.reset()
        batch = []
        for cut in queue:
            batch.append(cut)
            own.add(cut)
            if own.close_to_exceeding():
                yield batch
                batch = []
                own.reset()
        if batch:
            yield batch


def random_cuts(count):
    return [Cut(i, round(float(d), 3))
            for i, d in enumerate(np.clip(RANDOM.lognormal(2, 0.7, count), 0.5, 40))]


class Lhotse(Case):
    def used(self, batch, quadratic, padded=True):
        sizes = [c.duration + (c.duration**2 / quadratic if quadratic else 0) for c in batch]
        return len(sizes) * max(sizes) if padded else sum(sizes)

    def test_a_constraint_in_a_bucketing_sampler(self):
        for padded in (True, False):
            for quadratic in (None, 20.0):
                cuts = random_cuts(600)
                longest = max(cut.duration for cut in cuts)
                constraint = lhotse.Constraint(
                    120, max_examples=16, quadratic=quadratic, longest=longest, padded=padded)
                batches = list(bucketed_batches(cuts, constraint, [4.0, 8.0, 14.0, 25.0]))
                self.assertEqual(sorted(c.id for c in flat(batches)), list(range(600)))
                for batch in batches:
                    self.assertLessEqual(len(batch), 16)
                    if len(batch) > 1:
                        self.assertLessEqual(self.used(batch, quadratic, padded), 120 + 1e-9)
                self.assertGreater(max(len(batch) for batch in batches), 3)

    def test_an_example_above_longest_is_a_warning(self):
        constraint = lhotse.Constraint(30, longest=20)
        constraint.add(Cut(0, 20.0))
        with self.assertWarnsRegex(UserWarning, "length 20.5 exceeds longest, 20;"):
            constraint.add(Cut(1, 20.5))

    def test_the_methods_of_a_constraint(self):
        constraint = lhotse.Constraint(10, max_examples=3)
        self.assertFalse(constraint.exceeded())
        constraint.add(Cut(0, 4.0))
        self.assertFalse(constraint.close_to_exceeding())
        other = constraint.copy()
        other.add(Cut(1, 5.0))
        self.assertFalse(other.exceeded())
        self.assertTrue(other.close_to_exceeding())
        other.add(Cut(2, 1.0))
        self.assertTrue(other.exceeded())
        self.assertFalse(constraint.exceeded())
        constraint.reset()
        for _ in range(3):
            constraint.add(types.SimpleNamespace(num_tokens=1))
        self.assertTrue(constraint.close_to_exceeding())
        self.assertFalse(constraint.exceeded())
        self.assertEqual(constraint.select_bucket([2, 5], example_len=5), 1)
        self.assertEqual(constraint.measure_length(Cut(0, 2.5)), 2.5)
        with self.assertRaisesRegex(ValueError, "either example or example_len"):
            constraint.select_bucket([2, 5])
        with self.assertRaisesRegex(ValueError, "capacity is 0"):
            lhotse.Constraint(0)

    def samplers(self, cuts, constraint, ranks, **options):
        return [lhotse.BucketingSampler(cuts, constraint, world_size=ranks, rank=rank,
                                        make_batch=list, **options) for rank in range(ranks)]

    def test_batches_of_all_ranks(self):
        for ranks in (1, 2, 4):
            for quadratic in (None, 20.0):
                for padded in (True, False):
                    cuts = random_cuts(500)
                    constraint = lhotse.Constraint(
                        200, max_examples=20, quadratic=quadratic, padded=padded)
                    ours = self.samplers(cuts, constraint, ranks)
                    batches = [list(sampler) for sampler in ours]
                    self.assertEqual({len(b) for b in batches}, {len(batches[0])})
                    ids = {tuple(c.id for c in batch) for batch in flat(batches)}
                    self.assertEqual(sorted(flat(ids)), list(range(500)))
                    self.assertLess(len(flat(batches)) - len(ids), ranks)
                    for batch in flat(batches):
                        self.assertLessEqual(len(batch), 20)
                        self.assertLessEqual(self.used(batch, quadratic, padded), 200 + 1e-9)
                    # Not more batches than from sorted cuts, each batch until it is full.
                    count, own = 0, []
                    for cut in sorted(cuts, key=lambda c: -c.duration):
                        if self.used(own + [cut], quadratic, padded) > 200 or len(own) == 20:
                            count, own = count + 1, []
                        own.append(cut)
                    self.assertLessEqual(len(ids), count + 1)

    def test_the_fewest_padded_batches(self):
        def fewest(lengths, capacity):
            """Sorted cuts in runs: no padded batches are fewer than the best runs."""
            best = [0]
            for end in range(1, len(lengths) + 1):
                best.append(min(best[begin] + 1 for begin in range(end)
                                if (end - begin) * lengths[end - 1] <= capacity))
            return best[-1]

        for _ in range(50):
            cuts = random_cuts(int(RANDOM.randint(1, 40)))
            (sampler,) = self.samplers(cuts, lhotse.Constraint(60), 1)
            self.assertEqual(len(sampler), fewest(sorted(c.duration for c in cuts), 60))

    def test_epochs_and_resuming(self):
        cuts = random_cuts(300)
        sampler, other = self.samplers(cuts, lhotse.Constraint(100), 2, buffer_size=100)
        first = list(sampler)
        self.assertEqual(list(sampler), first)
        sampler.set_epoch(1)
        second = list(sampler)
        self.assertNotEqual(second, first)
        sampler.set_epoch(2)
        third = list(sampler)
        running = self.samplers(cuts, lhotse.Constraint(100), 2, buffer_size=100)[0]
        running.set_epoch(2)
        self.assertEqual(next(iter(running)), third[0])
        state = json.loads(json.dumps(running.state_dict()))
        resumed = self.samplers(cuts, lhotse.Constraint(100), 2, buffer_size=100)[0]
        resumed.load_state_dict(state)
        self.assertEqual(len(resumed), len(third) - 1)
        self.assertEqual(list(resumed), third[1:])
        with self.assertRaisesRegex(ValueError, "capacity is 90, and 100 in the state"):
            self.samplers(cuts, lhotse.Constraint(90), 2, buffer_size=100)[0].load_state_dict(state)
        with self.assertRaisesRegex(ValueError, "rank is 2, must be from 0 to 1"):
            lhotse.BucketingSampler(cuts, lhotse.Constraint(90), world_size=2, rank=2)

    def test_long_cuts_and_the_last_step(self):
        cuts = [Cut(0, 30.0)] + [Cut(i, 5.0) for i in range(1, 8)]
        (sampler,) = self.samplers(cuts, lhotse.Constraint(20), 1, shuffle=False)
        with self.assertWarnsRegex(UserWarning, "size 30.0 exceeds the capacity 20"):
            batches = list(sampler)
        self.assertIn([cuts[0]], batches)
        self.assertEqual(sorted(c.id for c in flat(batches)), list(range(8)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dropped = [list(s) for s in
                       self.samplers(cuts, lhotse.Constraint(20), 2, drop_last=True)]
        self.assertEqual([len(b) for b in dropped], [1, 1])
        self.assertEqual([len(s) for s in self.samplers([], lhotse.Constraint(20), 2)], [0, 0])

    @unittest.skipIf(installed("lhotse") is None, "Lhotse is not installed")
    def test_the_package(self):
        from lhotse import CutSet
        from lhotse.dataset import DynamicBucketingSampler
        from lhotse.dataset.sampling.base import SamplingConstraint
        from lhotse.testing.dummies import dummy_cut

        class Limit(lhotse.Constraint, SamplingConstraint):
            pass

        cuts = CutSet.from_cuts(
            dummy_cut(i, duration=cut.duration) for i, cut in enumerate(random_cuts(400)))
        longest = max(cut.duration for cut in cuts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = DynamicBucketingSampler(
                cuts, constraint=Limit(120, longest=longest), num_buckets=5, shuffle=True)
        batches = [[cut.duration for cut in batch] for batch in theirs]
        self.assertEqual(sum(map(len, batches)), 400)
        for batch in batches:
            self.assertTrue(len(batch) == 1 or len(batch) * max(batch) <= 120)
        ours = [lhotse.BucketingSampler(cuts, Limit(120), world_size=2, rank=r) for r in range(2)]
        batches = flat(list(sampler) for sampler in ours)
        self.assertIsInstance(batches[0], CutSet)
        self.assertEqual(len({cut.id for batch in batches for cut in batch}), 400)
        if torch is not None:
            from lhotse.dataset.iterable_dataset import IterableDatasetWrapper

            class Map(torch.utils.data.Dataset):
                def __getitem__(self, item):
                    return item

            loader = torch.utils.data.DataLoader(Map(), sampler=ours[0], batch_size=None)
            self.assertEqual(len(list(loader)), len(ours[0]) or len(batches) // 2)
            wrapper = IterableDatasetWrapper(Map(), ours[1])
            self.assertIsInstance(next(iter(wrapper)), CutSet)


# slime: the micro-batches of a rollout's steps.


def slime_args(**options):
    return types.SimpleNamespace(**{
        "micro_batch_size": 1, "use_dynamic_batch_size": False, "max_tokens_per_gpu": None,
        "balance_data": False, "hidden_size": 16, **options})


def slime_config(dp_size=1, cp_size=1, vpp_size=1, group=1):
    return {"dp_size": dp_size, "cp_size": cp_size, "vpp_size": vpp_size,
            "microbatch_group_size_per_vp_stage": group}


class Slime(Case):
    def check(self, args, config, lengths, rollouts, batch, kept, cap=None):
        """The documented invariants; returns the samples of each step and micro-batch."""
        partitions, places, counts, sizes = slime.build_dp_schedule(
            args, config, lengths, global_batch_size=batch, rollout_indices=rollouts)
        ranks = config["dp_size"]
        self.assertEqual((len(partitions), len(places)), (ranks, ranks))
        self.assertEqual(sizes, [batch] * (len(set(rollouts)) // batch))
        self.assertEqual(len(counts), len(sizes))
        for partition, own in zip(partitions, places):
            self.assertEqual(len(own), sum(counts))
            self.assertEqual(flat(own), list(range(len(partition))))
            self.assertTrue(all(own))
            for micro_batch in own:
                tokens = sum(lengths[partition[i]] for i in micro_batch)
                self.assertTrue(cap is None or tokens <= cap or len(micro_batch) == 1)
        self.assertEqual(sorted(flat(partitions)), sorted(kept))
        ends = np.cumsum([0] + counts)
        return [[[[partitions[r][i] for i in places[r][m]] for r in range(ranks)]
                 for m in range(a, b)] for a, b in zip(ends, ends[1:])], counts

    def test_published_cases(self):
        dynamic = dict(use_dynamic_batch_size=True)
        _, counts = self.check(slime_args(micro_batch_size=2), slime_config(4), [10] * 16,
                               list(range(16)), 16, range(16))
        self.assertEqual(counts, [2])
        lengths = [1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1]
        _, counts = self.check(slime_args(micro_batch_size=2, balance_data=True), slime_config(2),
                               lengths, list(range(16)), 8, range(16))
        self.assertEqual(counts, [2, 2])
        self.check(slime_args(max_tokens_per_gpu=10, **dynamic), slime_config(2), [5] * 8,
                   list(range(8)), 8, range(8), 10)
        steps, _ = self.check(slime_args(max_tokens_per_gpu=10, **dynamic), slime_config(2),
                              [15] + [3] * 7, list(range(8)), 8, range(8), 10)
        self.assertIn([0], [own for step in steps for row in step for own in row])
        _, counts = self.check(slime_args(max_tokens_per_gpu=8, **dynamic),
                               slime_config(2, 1, 2, 2), [4] * 32, list(range(32)), 16, range(32), 8)
        self.assertTrue(all(count % 2 == 0 for count in counts))
        rollouts = [0, 0, 0, 1, 1, 2, 2, 2, 2]
        steps, _ = self.check(slime_args(max_tokens_per_gpu=12, **dynamic), slime_config(), [3] * 9,
                              rollouts, 1, range(9), 12)
        self.assertEqual([sorted(flat(flat(step))) for step in steps],
                         [[0, 1, 2], [3, 4], [5, 6, 7, 8]])
        self.check(slime_args(max_tokens_per_gpu=12, **dynamic), slime_config(), [3] * 8,
                   [0, 0, 1, 2, 2, 3, 4, 4], 2, range(6), 12)
        with self.assertRaisesRegex(ValueError, "num_rollouts is 3"):
            self.check(slime_args(max_tokens_per_gpu=12, **dynamic), slime_config(), [3] * 6,
                       [0, 0, 1, 1, 2, 2], 4, [])

    def first_fit(self, lengths, cap, multiple):
        """First fit in the given order, and splits until the number is a multiple."""
        packs = []
        for length in lengths:
            for pack in packs:
                if sum(pack) + length <= cap:
                    pack.append(length)
                    break
            else:
                packs.append([length])
        return -(-len(packs) // multiple) * multiple

    def test_steps_under_a_soft_cap(self):
        for _ in range(40):
            ranks = int(RANDOM.choice([1, 2, 4]))
            group = int(RANDOM.choice([1, 2]))
            batch = int(RANDOM.randint(2 * ranks * group, 30))
            rollouts = sorted(int(r) for r in RANDOM.randint(0, 2 * batch, 6 * batch))
            rollouts = [sorted(set(rollouts)).index(r) for r in rollouts]
            lengths = random_lengths(len(rollouts), 60)
            lengths[:: 20] = [130] * len(lengths[::20])
            count = len(set(rollouts)) // batch
            kept = [i for i, r in enumerate(rollouts) if r < count * batch]
            steps, counts = self.check(
                slime_args(use_dynamic_batch_size=True, max_tokens_per_gpu=50),
                slime_config(ranks, 2, 1 + (group > 1), group), lengths, rollouts, batch, kept, 100)
            for s, step in enumerate(steps):
                own = [i for i in kept if s * batch <= rollouts[i] < (s + 1) * batch]
                self.assertEqual(sorted(flat(flat(step))), own)
                self.assertEqual(counts[s] % group, 0)
                theirs = self.first_fit([lengths[i] for i in own], 100, ranks * group)
                self.assertLessEqual(counts[s] * ranks, theirs)

    def test_static_micro_batches_and_errors(self):
        for _ in range(20):
            ranks, size, count = (int(RANDOM.randint(1, 5)) for _ in range(3))
            lengths = random_lengths(ranks * size * count, 100)
            steps, counts = self.check(slime_args(micro_batch_size=size), slime_config(ranks),
                                       lengths, list(range(len(lengths))), len(lengths),
                                       range(len(lengths)))
            self.assertEqual(counts, [count])
            self.assertEqual({len(own) for step in steps for row in step for own in row}, {size})

        def refuses(text, **options):
            with self.assertRaisesRegex(ValueError, "slime.build_dp_schedule: .*" + text):
                slime.build_dp_schedule(
                    slime_args(**options), slime_config(2), [3] * 6, global_batch_size=6,
                    rollout_indices=list(range(6)), sample_is_multimodal=[True] * 6)

        refuses("6 samples are 3 micro-batches of 2, must be a multiple of 2", micro_batch_size=2)
        refuses("global_batch_tokens is 0", global_batch_tokens=0)
        refuses("multimodal_aware_packing is 'apart', must be", multimodal_aware_packing="apart")
        with self.assertRaisesRegex(ValueError, "2 elements of sample_is_multimodal for 6 samples"):
            slime.build_dp_schedule(
                slime_args(), slime_config(2), [3] * 6, global_batch_size=6,
                rollout_indices=list(range(6)), sample_is_multimodal=[True] * 2)
        with self.assertRaisesRegex(ValueError, "1 rollouts have 3 samples, of which no step"):
            slime.build_dp_schedule(
                slime_args(global_batch_tokens=5), slime_config(2), [3] * 3, global_batch_size=1,
                rollout_indices=[0] * 3)
        with self.assertRaisesRegex(ValueError, "step 0 has 1 samples for 2 micro-batches"):
            slime.build_dp_schedule(
                slime_args(use_dynamic_batch_size=True, max_tokens_per_gpu=9), slime_config(2), [3],
                global_batch_size=1, rollout_indices=[0])

    def test_steps_of_a_number_of_tokens(self):
        # A step ends with the rollout that makes its tokens closest to the number.
        def steps(lengths, rollouts, ranks=1, tokens=10):
            return slime.build_dp_schedule(
                slime_args(use_dynamic_batch_size=True, max_tokens_per_gpu=20,
                           global_batch_tokens=tokens),
                slime_config(ranks), lengths, global_batch_size=1, rollout_indices=rollouts)[3]

        self.assertEqual(steps([4, 5, 8, 3], range(4)), [2, 2])
        # As far below as above: the step is above. The end may be below.
        self.assertEqual(steps([4, 4, 4, 4, 4], range(5)), [3, 2])
        self.assertEqual(steps([9, 2, 4, 4], range(4)), [2, 2])
        self.assertEqual(steps([12, 3], range(2)), [1, 1])
        # The samples of a step are a multiple of the ranks; the rest is left out.
        self.assertEqual(steps([10] * 7, range(7), 2), [2, 2, 2])
        self.assertEqual(steps([4, 4, 4, 4, 4], [0, 0, 0, 1, 2], 2), [2])

    def separate(self, args, ranks, lengths, is_multimodal, batch):
        """The schedule of a cap of 100 tokens, after a check of its micro-batches."""
        schedule = slime.build_dp_schedule(
            args, slime_config(ranks), lengths, global_batch_size=batch,
            rollout_indices=list(range(len(lengths))), sample_is_multimodal=is_multimodal)
        for partition, own in zip(*schedule[:2]):
            for micro_batch in own:
                samples = [partition[i] for i in micro_batch]
                sizes = [lengths[i] for i in samples]
                kinds = {is_multimodal[i] for i in samples}
                self.assertEqual(len(kinds), 1)
                is_padded = args.multimodal_aware_packing == "separate" and kinds == {True}
                size = len(sizes) * max(sizes) if is_padded else sum(sizes)
                self.assertTrue(size <= 100 or len(sizes) == 1)
        return schedule

    def test_multimodal_samples_are_apart(self):
        for trial in range(40):
            ranks, batch = int(RANDOM.choice([1, 2, 4])), 4 * int(RANDOM.randint(2, 10))
            lengths = random_lengths(2 * batch, 110)
            is_multimodal = (RANDOM.rand(2 * batch) < RANDOM.choice([0.1, 0.5, 1])).tolist()
            args = slime_args(use_dynamic_batch_size=True, max_tokens_per_gpu=100,
                              multimodal_aware_packing=("separate", "separate_raw")[trial % 2])
            partitions, places, counts, _ = self.separate(args, ranks, lengths, is_multimodal, batch)
            self.assertEqual(sorted(flat(partitions)), list(range(2 * batch)))
            for own in places:
                self.assertEqual(len(own), sum(counts))
                self.assertTrue(all(own))

    @unittest.skipIf(installed("slime.utils.dp_schedule") is None, "slime is not installed")
    def test_the_package(self):
        module = importlib.import_module("slime.utils.dp_schedule")
        theirs = module.build_dp_schedule
        # Only some versions of slime have these options.
        source = pathlib.Path(module.__file__).read_text()
        has_options = all(name in source for name in ("global_batch_tokens", "separate_raw"))
        for _ in range(30):
            ranks, batch = int(RANDOM.choice([1, 2, 4])), 4 * int(RANDOM.randint(3, 8))
            lengths = random_lengths(3 * batch, 130)
            args = slime_args(use_dynamic_batch_size=True, max_tokens_per_gpu=100,
                              balance_by_flops=False)
            options = dict(global_batch_size=batch, rollout_indices=list(range(3 * batch)))
            config = slime_config(ranks)
            _, _, our_counts, our_sizes = slime.build_dp_schedule(args, config, lengths, **options)
            _, _, their_counts, their_sizes = theirs(args, config, lengths, **options)
            self.assertEqual(our_sizes, their_sizes)
            for ours, other in zip(our_counts, their_counts):
                self.assertLessEqual(ours, other)
            if not has_options:
                continue
            args.global_batch_tokens = 10 * int(RANDOM.randint(20, 100))
            self.assertEqual(slime.build_dp_schedule(args, config, lengths, **options)[3],
                             theirs(args, config, lengths, **options)[3])
            args.global_batch_tokens = None
            is_multimodal = (RANDOM.rand(len(lengths)) < 0.5).tolist()
            for args.multimodal_aware_packing in ("separate", "separate_raw"):
                _, _, our_counts, _ = self.separate(args, ranks, lengths, is_multimodal, batch)
                _, _, their_counts, _ = theirs(
                    args, config, lengths, sample_is_multimodal=is_multimodal, **options)
                for ours, other in zip(our_counts, their_counts):
                    self.assertLessEqual(ours, other)


# TRL: batchers of rollouts, and parts of prompt groups.


def greedy_micro_batches(lengths, ranks, budget):
    """TRL's rows as documented: each sample goes into the fitting row with the least squares; a
    sample that fits in no row begins a new micro-batch."""
    rows, result = [[] for _ in range(ranks)], []
    for i, length in enumerate(lengths):
        fits = [r for r in rows if sum(lengths[k] for k in r) + length <= budget]
        if not fits:
            result.append(rows)
            rows = [[] for _ in range(ranks)]
            fits = rows
        min(fits, key=lambda r: sum(lengths[k] ** 2 for k in r)).append(i)
    return result


def rollouts(lengths):
    return [{"input_ids": [0] * n, "number": i} for i, n in enumerate(lengths)]


def numbers(micro_batches):
    return [[[sample["number"] for sample in row] for row in rows] for rows in micro_batches]


class TreeRow:
    """TRL's row as documented: unique tokens, where a token is shared with the next one only; the
    sum of their positions; the trained tokens; the groups."""

    def __init__(self):
        self.samples, self.tokens, self.groups = [], {}, set()
        self.trained = self.load = 0

    def paths(self, sample):
        ids = sample["input_ids"].tolist()
        return [(tuple(ids[: k + 1]), tuple(ids[k + 1 : k + 2])) for k in range(len(ids))]

    def fits(self, sample, budget):
        more = sum(path not in self.tokens for path in self.paths(sample))
        trained = self.trained + int(sample["completion_mask"].sum())
        return len(self.tokens) + more <= budget and trained <= budget

    def add(self, sample):
        for depth, path in enumerate(self.paths(sample)):
            if path not in self.tokens:
                self.tokens[path] = depth
                self.load += depth + 1
        self.samples.append(sample)
        self.groups.add(sample["group_id"])
        self.trained += int(sample["completion_mask"].sum())


def greedy_trees(samples, ranks, budget):
    """TRL's rows as documented: a sample goes to the lightest row of its group that it fits; if
    the group has rows without room and no row is empty, a micro-batch ends."""
    rows, result = [TreeRow() for _ in range(ranks)], []
    for sample in samples:
        if len(sample["input_ids"]) > budget:
            continue
        while True:
            home = [row for row in rows if sample["group_id"] in row.groups]
            fits = [row for row in home if row.fits(sample, budget)]
            if not fits and not (home and all(row.samples for row in rows)):
                fits = [row for row in rows if row.fits(sample, budget)]
            if fits:
                min(fits, key=lambda row: row.load).add(sample)
                break
            result.append(rows)
            rows = [TreeRow() for _ in range(ranks)]
    return result


def prompt_rollouts(prompts, array):
    """Answers to prompts, of at most 40 tokens together."""
    samples = []
    for prompt in range(prompts):
        start = [prompt] * int(RANDOM.randint(1, 15))
        for _ in range(RANDOM.randint(1, 5)):
            answer = RANDOM.randint(0, 9, RANDOM.randint(1, 26)).tolist()
            samples.append({
                "input_ids": array(start + answer), "group_id": prompt, "number": len(samples),
                "completion_mask": array([0] * len(start) + [1] * len(answer)), "metrics": {},
                "old_log_probs": array([0.0] * (len(start) + len(answer))), "advantage": 1.0})
    return samples


class TrlBatchers(Case):
    def test_rows_under_a_token_budget(self):
        ours_all = theirs_all = 0
        for _ in range(40):
            ranks = int(RANDOM.randint(1, 6))
            lengths = random_lengths(int(RANDOM.randint(0, 150)), 100)
            found = numbers(trl.TokenBudgetBatcher(rollouts(lengths), ranks, 150))
            place = 0
            for rows in found:
                self.assertEqual(len(rows), ranks)
                self.assertTrue(all(rows))
                own = sorted(flat(rows))
                self.assertEqual(own, list(range(place, place + len(own))))
                place += len(own)
                for row in rows:
                    self.assertLessEqual(sum(lengths[i] for i in row), 150)
            self.assertLess(len(lengths) - place, ranks)
            theirs = greedy_micro_batches(lengths, ranks, 150)
            ours_all += len(found) - (place == len(lengths) and bool(found))
            theirs_all += len(theirs)
        self.assertLess(ours_all, theirs_all)

    def test_the_rows_are_as_even_as_any(self):
        for _ in range(30):
            ranks = int(RANDOM.randint(2, 4))
            lengths = random_lengths(int(RANDOM.randint(ranks, 8)), 100)
            found = numbers(trl.TokenBudgetBatcher(rollouts(lengths), ranks, 100, linear_cost=0))
            for rows in found:
                own = flat(rows)
                work = [lengths[i] ** 2 for i in own]
                best = smallest_maximum(work, ranks, [lengths[i] for i in own], 100)
                heaviest = max(sum(lengths[i] ** 2 for i in row) for row in rows)
                self.assertLessEqual(heaviest, 1.02 * best)

    def test_rows_of_a_fixed_count(self):
        for count in ("any", "at_most_one_apart"):
            for _ in range(20):
                ranks = int(RANDOM.randint(1, 6))
                size = ranks + int(RANDOM.randint(0, 20))
                lengths = random_lengths(3 * size + 1, 100)
                found = numbers(trl.FixedCountBatcher(
                    rollouts(lengths), ranks, size, count=count, linear_cost=0))
                self.assertEqual(len(found), (3 * size + 1) // size)
                for m, rows in enumerate(found):
                    self.assertEqual(len(rows), ranks)
                    self.assertTrue(all(rows))
                    self.assertEqual(sorted(flat(rows)), list(range(m * size, (m + 1) * size)))
                    sizes = [len(row) for row in rows]
                    if count != "any":
                        self.assertLessEqual(max(sizes) - min(sizes), 1)
                        continue
                    # Longest first to the row with the least squares, as in TRL.
                    loads = [0] * ranks
                    for i in sorted(flat(rows), key=lambda i: -lengths[i]):
                        loads[loads.index(min(loads))] += lengths[i] ** 2
                    self.assertLessEqual(
                        max(sum(lengths[i] ** 2 for i in row) for row in rows), max(loads))

    def test_long_samples_and_errors(self):
        with self.assertWarnsRegex(UserWarning, "a sample has 9 tokens, above token_budget, 8"):
            found = numbers(trl.TokenBudgetBatcher(rollouts([9, 4, 5]), 2, 8))
        self.assertEqual(sorted(flat(flat(found))), [1, 2])
        with self.assertRaisesRegex(ValueError, "microbatch_size is 3, must be at least 4"):
            trl.FixedCountBatcher([], 4, 3)
        rows, rest = trl.pack_rollouts(
            [{"input_ids": [i] * n, "group_id": i} for i, n in enumerate([9, 4, 3, 2])], 8, 2,
            oversized="own_group")
        self.assertIn([0], flat(rows))
        self.assertEqual(sorted(flat(flat(rows)) + rest), [0, 1, 2, 3])
        with self.assertRaisesRegex(ValueError, "oversized is 'list'"):
            trl.pack_rollouts([], 8, oversized="list")

    def test_registered_classes_derive_from_the_old_ones(self):
        class IterableDataset:
            pass

        class Old(IterableDataset):
            def __init__(self, dataset, num_processes, size):
                raise AssertionError

        module = types.SimpleNamespace(FixedCountBatcher=Old, TokenBudgetBatcher=Old)
        for linear_cost in (5, 7):
            trl.register(module, linear_cost=linear_cost)
            for name in ("FixedCountBatcher", "TokenBudgetBatcher"):
                batcher = getattr(module, name)(rollouts([5, 3, 4, 6]), 2, 8)
                self.assertIsInstance(batcher, IterableDataset)
                self.assertEqual(batcher.linear_cost, linear_cost)
                self.assertEqual(type(batcher).__mro__[1:3], (getattr(trl, name), Old))
        self.assertEqual(len(list(module.TokenBudgetBatcher(rollouts([5, 3, 4, 6]), 2, 9))), 1)
        with self.assertRaisesRegex(ValueError, "has no FixedCountBatcher"):
            trl.register(types.SimpleNamespace())

    def check_trees(self, batches, ranks, budget):
        """Rows of a token budget: none empty, in the order of the samples."""
        place = 0
        for rows in batches:
            self.assertEqual(len(rows), ranks)
            own = sorted(sample["number"] for row in rows for sample in row.samples)
            self.assertEqual(own, list(range(place, place + len(own))))
            place += len(own)
            for row in rows:
                self.assertTrue(row.samples)
                self.assertLessEqual(len(row.tokens), budget)
                self.assertLessEqual(row.trained, budget)
                paths = {(tuple(ids[: k + 1]), tuple(ids[k + 1 : k + 2])) for ids in
                         [sample["input_ids"].tolist() for sample in row.samples]
                         for k in range(len(ids))}
                self.assertEqual(len(row.tokens), len(paths))
        return place

    def test_rows_that_share_prompts(self):
        ours_all = theirs_all = 0
        for _ in range(30):
            ranks = int(RANDOM.randint(1, 5))
            samples = prompt_rollouts(int(RANDOM.randint(1, 15)), np.array)
            module = types.SimpleNamespace(
                FixedCountBatcher=object, TokenBudgetBatcher=object, TreeRow=TreeRow)
            trl.register(module, linear_cost=0)
            batches = list(module.TokenBudgetBatcher(samples, ranks, 40, {}))
            place = self.check_trees(batches, ranks, 40)
            self.assertLess(len(samples) - place, ranks)
            theirs = greedy_trees(samples, ranks, 40)
            ours_all += len(batches) - (place == len(samples) and bool(batches))
            theirs_all += len(theirs)
            size = ranks * int(RANDOM.randint(1, 5))
            for rows in module.FixedCountBatcher(samples, ranks, size):
                self.assertEqual(len(rows), ranks)
                self.assertTrue(all(row.samples for row in rows))
                self.assertEqual(sum(len(row.samples) for row in rows), size)
                groups = {sample["group_id"] for row in rows for sample in row.samples}
                if len(groups) >= ranks:
                    self.assertEqual(sum(len(row.groups) for row in rows), len(groups))
        self.assertLess(ours_all, theirs_all)
        metrics = {"batch/dropped_oversize_total": []}
        with self.assertWarns(UserWarning):
            list(module.TokenBudgetBatcher(prompt_rollouts(1, np.array), 1, 3, metrics))
        self.assertGreater(len(metrics["batch/dropped_oversize_total"]), 0)

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_the_package(self):
        name = "trl.experimental.async_grpo.async_grpo_trainer"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = installed(name)
        if module is None or not hasattr(module, "TreeRow"):
            self.skipTest("TRL with AsyncGRPOTrainer and TreeRow is not installed")
        samples = prompt_rollouts(40, torch.tensor)
        theirs = list(module.TokenBudgetBatcher(samples, 4, 40, {}))
        fixed = list(module.FixedCountBatcher(samples, 4, 20))
        self.assertEqual([[len(row.samples) for row in rows] for rows in theirs],
                         [[len(row.samples) for row in rows]
                          for rows in greedy_trees(samples, 4, 40)])
        with unittest.mock.patch.object(module, "FixedCountBatcher", module.FixedCountBatcher), \
                unittest.mock.patch.object(module, "TokenBudgetBatcher", module.TokenBudgetBatcher):
            trl.register(linear_cost=0)
            batcher = module.TokenBudgetBatcher(samples, 4, 40, {})
            self.assertIsInstance(batcher, torch.utils.data.IterableDataset)
            loader = torch.utils.data.DataLoader(batcher, batch_size=1, collate_fn=lambda b: b[0])
            batches = list(loader)
            self.check_trees(batches, 4, 40)
            self.assertLessEqual(len(batches), len(theirs) + 1)
            ours = list(module.FixedCountBatcher(samples, 4, 20))
        for our_rows, their_rows in zip(ours, fixed):
            self.assertLessEqual(max(row.load for row in our_rows),
                                 1.02 * max(row.load for row in their_rows))
        batch = module.DataCollatorForRollout(0, num_processes=4)([batches[0]])
        self.assertEqual(batch["input_ids"].shape[0], 4)


class Verl(Case):
    def test_parts_that_are_at_most_one_apart(self):
        for _ in range(40):
            parts = int(RANDOM.randint(1, 6))
            lengths = random_lengths(parts + int(RANDOM.randint(0, 30)), 100)
            found = verl.get_seqlen_balanced_partitions(lengths, parts, "at_most_one_apart")
            self.assertEqual(sorted(flat(found)), list(range(len(lengths))))
            sizes = [len(part) for part in found]
            self.assertLessEqual(max(sizes) - min(sizes), 1)
            if len(lengths) % parts == 0:
                equal = verl.get_seqlen_balanced_partitions(lengths, parts, True)
                heaviest = [max(sum(lengths[i] for i in p) for p in of) for of in (found, equal)]
                self.assertLessEqual(heaviest[0], 1.01 * heaviest[1])
        with self.assertRaisesRegex(ValueError, "3 items for 2 .*'at_most_one_apart' accepts"):
            verl.get_seqlen_balanced_partitions([1, 2, 3], 2, True)
        with self.assertRaisesRegex(ValueError, "sample 1 has 9 tokens, .*oversized='own_group'"):
            verl.rearrange_micro_batches([3, 9, 2], 8)

    def test_prompts_with_different_numbers_of_answers(self):
        uids = flat([[p] * n for p, n in enumerate([2, 3, 1, 4, 2])])
        lengths = [10 * u + 5 for u in uids]
        with self.assertRaisesRegex(ValueError, "must be a multiple"):
            verl.get_group_balanced_partitions(lengths, uids, 2)
        parts = verl.get_group_balanced_partitions(
            lengths, uids, 2, equal_size="at_most_one_apart")
        self.assertEqual(sorted(flat(parts)), list(range(12)))
        prompts = [{uids[i] for i in part} for part in parts]
        self.assertFalse(prompts[0] & prompts[1])
        self.assertEqual(sorted(map(len, prompts)), [2, 3])

    def test_a_batch_instead_of_lengths(self):
        # A mapping of arrays is a batch; its index lists are those of its lengths.
        lengths = np.array(random_lengths(40, 200))
        batch = {"attention_mask": (np.arange(200) < lengths[:, None]).astype(np.int64),
                 "reward": np.arange(40.0)}
        options = dict(num_batches_divided_by=2, min_num_micro_batch=3)
        parts, indices = verl.rearrange_micro_batches(batch, 400, **options)
        self.assertEqual(indices, verl.rearrange_micro_batches(lengths, 400, **options))
        self.assertEqual(indices, verl.rearrange_micro_batches(batch, 400, None, 2, True, 3)[1])
        self.assertEqual(indices, verl.rearrange_micro_batches(lengths, 400, 2, 3))
        self.assertEqual(indices, verl.rearrange_micro_batches(
            batch=batch, max_token_len=400, **options)[1])
        self.assertEqual(indices, verl.rearrange_micro_batches(
            seq_len_effective=lengths, max_token_len=400, **options))
        self.assertEqual([part["reward"].astype(int).tolist() for part in parts], indices)
        for part in parts:
            self.assertLessEqual(part["attention_mask"].sum(), 400)
        with self.assertRaisesRegex(ValueError, r"compat.verl.rearrange_micro_batches: the batch has "
                                                r"the fields \['reward'\], must have attention_mask"):
            verl.rearrange_micro_batches({"reward": batch["reward"]}, 400)

    def verl_batch(self, lengths, nested=False):
        """A batch of verl with these lengths, padded to 200 tokens, or nested."""
        tensordict = installed("tensordict")
        tokens = [torch.arange(int(n)) for n in lengths]
        if nested:
            ids = torch.nested.as_nested_tensor(tokens, layout=torch.jagged)
            return tensordict.TensorDict({"input_ids": ids}, batch_size=[len(lengths)])
        mask = (torch.arange(200) < torch.tensor(lengths)[:, None]).long()
        return tensordict.TensorDict(
            {"input_ids": mask * 7, "attention_mask": mask, "row": torch.arange(len(lengths))},
            batch_size=[len(lengths)])

    def test_the_package(self):
        module = installed("verl.utils.seqlen_balancing")
        if module is None:
            self.skipTest("verl is not installed")
        for trial in range(20):
            lengths = random_lengths(4 * int(RANDOM.randint(2, 12)), 200)
            options = [{}, dict(num_batches_divided_by=2), dict(use_dynamic_bsz_balance=False),
                       dict(force_group_size=2, min_num_micro_batch=2)][trial % 4]
            batch = self.verl_batch(lengths, nested=trial % 3 == 0)
            results = [f(batch, max_token_len=400, **options)
                       for f in (module.rearrange_micro_batches, verl.rearrange_micro_batches)]
            for parts, indices in results:
                self.assertEqual(sorted(flat(indices)), list(range(len(lengths))))
                self.assertEqual([len(part) for part in parts], [len(rows) for rows in indices])
                self.assertEqual({type(part) for part in parts}, {type(batch)})
                for part, rows in zip(parts, indices):
                    self.assertLessEqual(sum(lengths[i] for i in rows), 400)
                    if "row" in part.keys():
                        self.assertEqual(part["row"].tolist(), rows)
            self.assertEqual(len(results[1][1]) % options.get("num_batches_divided_by", 1), 0)
            self.assertLessEqual(len(results[1][1]), len(results[0][1]))
        data = importlib.import_module("verl.protocol").DataProto(batch=self.verl_batch([90, 20, 100]))
        with unittest.mock.patch.object(module, "rearrange_micro_batches",
                                        verl.rearrange_micro_batches):
            parts, indices = module.prepare_dynamic_batch(data, 200)
        self.assertEqual(sorted(flat(indices)), [0, 1, 2])
        self.assertEqual([part.batch["row"].tolist() for part in parts], indices)
        rows = torch.cat([part.batch["row"] for part in parts])
        self.assertEqual(module.restore_dynamic_batch(rows, indices).tolist(), [0, 1, 2])

    def test_ranks_have_the_same_number(self):
        # One rank has fewer samples than the other has micro-batches; another one has an error.
        if torch is None or not torch.distributed.is_available():
            self.skipTest("torch with distributed is not installed")
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(verl_rank, (folder,), nprocs=2)
            found = [json.loads(pathlib.Path(folder, "%d.json" % rank).read_text())
                     for rank in range(2)]
        for rank, count in ((0, 2), (1, 12)):
            self.assertEqual(sorted(flat(found[rank]["indices"])), list(range(count)))
            self.assertEqual(len(found[rank]["indices"]), 6)
            self.assertEqual(sum(found[rank]["tokens"]), count * (60 if rank else 50))
            self.assertEqual(len(found[rank]["alone"]), 1 if rank == 0 else 6)
        self.assertIn("another rank of dp_group", found[0]["error"])
        self.assertIn("sample 0 has 150 tokens", found[1]["error"])


def verl_rank(rank, folder):
    """Writes what `rearrange_micro_batches` returns to one of two ranks."""
    torch.distributed.init_process_group(
        "gloo", init_method="file://%s/store" % folder, rank=rank, world_size=2)
    group = torch.distributed.group.WORLD
    lengths = np.full(2 if rank == 0 else 12, 50 if rank == 0 else 60)
    batch = {"attention_mask": torch.tensor(np.arange(150) < lengths[:, None]).long()}
    parts, indices = verl.rearrange_micro_batches(batch, 120, group)
    result = {
        "indices": indices,
        "tokens": [int(part["attention_mask"].sum()) for part in parts],
        "alone": verl.rearrange_micro_batches(batch, 120, group, same_micro_num_in_dp=False)[1],
    }
    if rank == 1:
        batch["attention_mask"][0] = 1
    try:
        verl.rearrange_micro_batches(batch, 120, group)
    except ValueError as error:
        result["error"] = str(error)
    pathlib.Path(folder, "%d.json" % rank).write_text(json.dumps(result))
    torch.distributed.destroy_process_group()


# Loaders and columns.


class Prefetching:
    """A loader that asks its sampler for `ahead` batches before it yields one, as workers do."""

    def __init__(self, sampler, ahead):
        self.sampler = sampler
        self.ahead = ahead

    def __iter__(self):
        waiting = []
        for batch in self.sampler:
            waiting.append(batch)
            if len(waiting) > self.ahead:
                yield waiting.pop(0)
        yield from waiting


class Loader(Case):
    def test_the_state_counts_batches_of_the_loop(self):
        lengths = RANDOM.randint(20, 101, 200).tolist()
        for ahead in (0, 4, 1000):
            for stop in (0, 3, 10):
                sampler = PackedBatchSampler(lengths, 200, ranks=2, rank=0)
                whole = list(sampler)
                loader = StatefulLoader(Prefetching(sampler, ahead), sampler)
                self.assertEqual(len(loader), len(whole))
                seen = list(itertools.islice(loader, stop))
                state = json.loads(json.dumps(loader.state_dict()))
                other = PackedBatchSampler(lengths, 200, ranks=2, rank=0)
                resumed = StatefulLoader(Prefetching(other, ahead), other)
                resumed.load_state_dict(state)
                self.assertEqual(len(resumed), len(whole) - stop)
                more = list(itertools.islice(resumed, 2))
                again = PackedBatchSampler(lengths, 200, ranks=2, rank=0)
                last = StatefulLoader(Prefetching(again, ahead), again)
                last.load_state_dict(resumed.state_dict())
                self.assertEqual(seen + more + list(last), whole)
                self.assertEqual(list(last), whole)
                last.set_epoch(1)
                self.assertEqual(last.state_dict()["position"], 0)
                self.assertNotEqual(list(last), whole)

    def test_other_ranks_continue(self):
        lengths = RANDOM.randint(20, 101, 400).tolist()
        samplers = [PackedBatchSampler(lengths, 200, ranks=2, rank=r) for r in range(2)]
        loaders = [StatefulLoader(Prefetching(s, 3), s) for s in samplers]
        done = flat(flat(itertools.islice(loader, 5)) for loader in loaders)
        state = loaders[0].state_dict()
        for _ in range(2):
            samplers = [PackedBatchSampler(lengths, 200, ranks=3, rank=r) for r in range(3)]
            loaders = [StatefulLoader(Prefetching(s, 3), s) for s in samplers]
            for loader in loaders:
                loader.load_state_dict(state)
            part = [list(itertools.islice(loader, 4)) for loader in loaders]
            done += flat(flat(part))
            state = loaders[1].state_dict()
        self.assertEqual(len(set(done)), len(done))

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_loaders_of_pytorch(self):
        lengths = random_lengths(60, 100)
        samples = [{"input_ids": torch.arange(n)} for n in lengths]
        for workers in (0, 2):
            sampler = PackedBatchSampler(lengths, 200, ranks=2, rank=0)
            whole = [sum(lengths[i] for i in batch) for batch in sampler]
            loader = StatefulLoader(torch.utils.data.DataLoader(
                samples, batch_sampler=sampler, collate_fn=collate_packed, num_workers=workers),
                sampler)
            for _ in itertools.islice(loader, 3):
                pass
            other = PackedBatchSampler(lengths, 200, ranks=2, rank=0)
            resumed = StatefulLoader(torch.utils.data.DataLoader(
                samples, batch_sampler=other, collate_fn=collate_packed, num_workers=workers), other)
            resumed.load_state_dict(loader.state_dict())
            self.assertEqual([len(batch["input_ids"]) for batch in resumed], whole[3:])

    @unittest.skipIf(installed("torchdata.stateful_dataloader") is None, "torchdata is not installed")
    def test_the_stateful_loader_of_torchdata(self):
        theirs = importlib.import_module("torchdata.stateful_dataloader").StatefulDataLoader
        lengths = random_lengths(60, 100)
        samples = [{"input_ids": torch.arange(n)} for n in lengths]
        for workers in (0, 2):
            def loader():
                sampler = PackedBatchSampler(lengths, 200, ranks=2, rank=0)
                return theirs(samples, batch_sampler=sampler, collate_fn=collate_packed,
                              num_workers=workers)

            whole = [len(batch["input_ids"]) for batch in loader()]
            first = loader()
            for _ in itertools.islice(iter(first), 3):
                pass
            state = first.state_dict()
            resumed = loader()
            resumed.load_state_dict(state)
            self.assertEqual([len(batch["input_ids"]) for batch in resumed], whole[3:])

    @unittest.skipIf(installed("torchdata.stateful_dataloader") is None, "torchdata is not installed")
    def test_samplers_and_mixtures_in_the_stateful_loader_of_torchdata(self):
        theirs = importlib.import_module("torchdata.stateful_dataloader").StatefulDataLoader

        def epoch():
            return {"batch_sampler": omnibal.EpochSampler(50, ranks=2, rank=1, batch=3, seed=4)}

        def steps():
            return {"batch_sampler": omnibal.StepSampler(np.arange(1, 51), ranks=2, rank=1)}

        def draws():
            return {"sampler": omnibal.Mixture([30, 20], [1, 1], end="drop_out"), "batch_size": 4}

        def batches():
            return {"sampler": omnibal.BatchMixture([30, 20], [1, 1], 4, end="stop"),
                    "batch_size": None}

        for options, workers in itertools.product((epoch, steps, draws, batches), (0, 2)):
            def loader():
                return theirs(AnyIndex(), collate_fn=list, num_workers=workers, **options())

            with self.subTest(options=options.__name__, workers=workers):
                first = loader()
                epochs = [list(first) for _ in range(2)]
                for stop in (0, 3, len(epochs[0]) - 1):
                    stopped = loader()
                    for _ in itertools.islice(iter(stopped), stop):
                        pass
                    resumed = loader()
                    resumed.load_state_dict(stopped.state_dict())
                    self.assertEqual(list(resumed), epochs[0][stop:])
                    self.assertEqual(list(resumed), epochs[1])

    @unittest.skipIf(installed("torchdata.stateful_dataloader") is None, "torchdata is not installed")
    def test_a_packed_stream_in_the_stateful_loader_of_torchdata(self):
        theirs = importlib.import_module("torchdata.stateful_dataloader").StatefulDataLoader
        for workers in (0, 1):
            def loader():
                return theirs(PackedStream(), batch_size=None, num_workers=workers)

            whole = list(loader())
            self.assertEqual(sorted(flat(whole)), list(range(60)))
            for stop in (1, 5, len(whole) - 2):
                stopped = loader()
                for _ in itertools.islice(iter(stopped), stop):
                    pass
                resumed = loader()
                resumed.load_state_dict(stopped.state_dict())
                self.assertEqual(list(resumed), whole[stop:])


class AnyIndex(torch.utils.data.Dataset if torch else object):
    """A data set whose samples are their indices."""

    def __getitem__(self, index):
        return [np.asarray(part).tolist() for part in index] if isinstance(index, tuple) else int(index)


class PackedStream(torch.utils.data.IterableDataset if torch else object):
    """Packs a mixture of two sources; both objects are the state of the stream."""

    def __init__(self):
        self.mixture = omnibal.Mixture([40, 20], [3, 1], end="drop_out", seed=5)
        self.packer = omnibal.OnlinePacker(64, buffer=8)

    def __iter__(self):
        if self.mixture.position < 60:
            for source, _, sample in self.mixture:
                group = self.packer.push(40 * source + sample, 5 + 7 * sample % 30)
                if group:
                    yield group.ids.tolist()
        while len(self.packer):
            yield self.packer.flush().ids.tolist()

    def state_dict(self):
        return {"mixture": self.mixture.state_dict(), "packer": self.packer.state_dict()}

    def load_state_dict(self, state):
        self.mixture.load_state_dict(state["mixture"])
        self.packer.load_state_dict(state["packer"])


class Columns(Case):
    def test_lengths_of_columns(self):
        lengths = random_lengths(50, 20)
        rows = {"input_ids": [[7] * n for n in lengths], "tokens": lengths}
        for column in rows:
            found = column_lengths(rows, column)
            self.assertEqual(found.tolist(), lengths)
            self.assertEqual(found.dtype, np.int64)
        with self.assertRaisesRegex(ValueError, "no column 'ids' among"):
            column_lengths(rows, "ids")
        with self.assertRaisesRegex(ValueError, "neither lists nor integers"):
            column_lengths({"score": [0.5]}, "score")

    @unittest.skipIf(installed("datasets") is None, "datasets is not installed")
    def test_the_package(self):
        datasets = importlib.import_module("datasets")
        lengths = random_lengths(50, 20)
        data = datasets.Dataset.from_dict(
            {"input_ids": [[7] * n for n in lengths], "tokens": lengths, "text": ["a"] * 50})
        for of in (data, data.shuffle(seed=1), data.select(range(5, 30)),
                   datasets.concatenate_datasets([data, data])):
            expected = [len(row) for row in of["input_ids"]]
            for column in ("input_ids", "tokens"):
                self.assertEqual(column_lengths(of, column).tolist(), expected)
        with self.assertRaisesRegex(ValueError, "has the type string"):
            column_lengths(data, "text")
        packed = data.remove_columns(["tokens", "text"]).map(
            trl.pack_examples, batched=True, fn_kwargs={"seq_length": 40},
            remove_columns=["input_ids"])
        self.assertEqual(sum(column_lengths(packed, "input_ids")), sum(lengths))


# Lhotse's interface, as documented: `copy` is its own, and `select_bucket` has a default.
SamplingConstraint = abc.ABCMeta("SamplingConstraint", (), {
    "copy": copy.copy,
    **{name: abc.abstractmethod(lambda self, *_: None) for name in (
        "add", "exceeded", "close_to_exceeding", "reset", "measure_length")},
})


class Page(Case):
    """The lines to paste of docs/coming_from.md run, with stand-ins of the packages."""

    def stand_ins(self):
        """Modules by name, with their parents."""
        modules = {
            "megatron.core.datasets.data_schedule": megatron_module(),
            "megatron.energon": types.SimpleNamespace(TaskEncoder=TaskEncoder),
            "trl.experimental.async_grpo.async_grpo_trainer": types.SimpleNamespace(
                FixedCountBatcher=object, TokenBudgetBatcher=object),
            "slime.ray.rollout": types.SimpleNamespace(build_dp_schedule=None),
            "verl.utils.seqlen_balancing": types.SimpleNamespace(
                get_seqlen_balanced_partitions=None),
            "lhotse.dataset": types.SimpleNamespace(
                DynamicBucketingSampler=lambda cuts, constraint: list(
                    bucketed_batches(cuts, constraint, [5.0]))),
            "lhotse.dataset.sampling.base": types.SimpleNamespace(
                SamplingConstraint=SamplingConstraint),
            "vllm.distributed.eplb.policy": types.SimpleNamespace(EPLB_POLICIES={}),
        }
        for name in list(modules):
            while "." in name:
                name, _, child = name.rpartition(".")
                parent = modules.setdefault(name, types.SimpleNamespace(__path__=[]))
                setattr(parent, child, modules[name + "." + child])
        return modules

    def run_block(self, block, **names):
        modules = self.stand_ins()
        with unittest.mock.patch.dict(sys.modules, modules):
            exec(compile(block, "coming_from.md", "exec"), names)
        return modules, names

    def test_lines_to_paste(self):
        root = pathlib.Path(os.environ["OMNIBAL_ROOT"])
        text = (root / "docs/coming_from.md").read_text()
        blocks = re.findall(r"(?s)```py\n(.*?)```", text)
        self.assertEqual(len(blocks), 5)

        class Dataset(dict):
            column_names = ["input_ids"]

            def map(self, function, batched, fn_kwargs, remove_columns):
                return function(self, **fn_kwargs)

        modules, names = self.run_block(
            blocks[0], dataset=Dataset(input_ids=[[1] * n for n in (3000, 1000, 2000, 90)]))
        self.assertEqual(sorted(names["lengths"]), [2000, 4090])
        trainer = modules["trl.experimental.async_grpo.async_grpo_trainer"]
        self.assertTrue(issubclass(trainer.TokenBudgetBatcher, trl.TokenBudgetBatcher))

        modules, _ = self.run_block(blocks[1])
        self.assertIs(modules["slime.ray.rollout"].build_dp_schedule, slime.build_dp_schedule)
        for name in ("get_seqlen_balanced_partitions", "get_group_balanced_partitions",
                     "rearrange_micro_batches"):
            self.assertIs(getattr(modules["verl.utils.seqlen_balancing"], name), getattr(verl, name))

        modules, names = self.run_block(blocks[2])
        scheduler = modules["megatron.core.datasets.data_schedule"].scheduler_map["dp_balanced"]
        self.assertTrue(hasattr(scheduler, "omnibal_base"))
        samples = [{"tokens": [1] * n, "labels": [2] * n, "loss_mask": [1] * n} for n in (9, 8000)]
        (pack,) = names["Encoder"]().packs(samples, 1000)
        self.assertEqual(pack["cu_seqlens"].tolist(), [0, 9, 8009])

        lengths = random_lengths(30, 4000)
        shards, loaded = [], []
        with tempfile.TemporaryDirectory() as folder:
            before = os.getcwd()
            os.chdir(folder)
            try:
                _, names = self.run_block(
                    blocks[3], lengths=lengths, world_size=2, rank=0,
                    dataset=[{"input_ids": [0] * n} for n in lengths],
                    DataLoader=lambda dataset, batch_sampler, collate_fn: types.SimpleNamespace(
                        batch_sampler=batch_sampler),
                    document_lengths=[96, 160], cp_mesh=types.SimpleNamespace(size=lambda: 4),
                    _context_parallel_shard=lambda *_, load_balancer: shards.append(load_balancer),
                    buffers=None, seq_dims=None, forward=[1, 1], backward=[2, 2],
                    schedule=types.SimpleNamespace(
                        _load_csv=lambda path: loaded.append(pathlib.Path(path).read_text())))
            finally:
                os.chdir(before)
        self.assertIs(names["loader"].sampler, names["sampler"])
        self.assertEqual(shards[0].indices().shape, (1, 256))
        self.assertEqual(len(loaded[0].splitlines()), 2)

        cuts = [Cut(i, 30.0) for i in range(50)]
        modules, names = self.run_block(blocks[4], cuts=cuts, world_size=2, rank=0)
        self.assertEqual(len(flat(names["theirs"])), 50)
        self.assertEqual(len(names["ours"]), 2)
        self.assertIn("default", modules["vllm.distributed.eplb.policy"].EPLB_POLICIES)


if __name__ == "__main__":
    unittest.main()
