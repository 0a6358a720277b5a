# SPDX-License-Identifier: Apache-2.0
"""Micro-batches for data loaders: omnibal.data, and with torch where it is installed."""

import doctest
import json
import unittest

import numpy as np
import omnibal.data
from omnibal.data import PackedBatchSampler, collate_packed

try:
    import torch
except ImportError:
    torch = None


def draw(count, seed=1):
    random = np.random.RandomState(seed)
    return np.minimum(4096, np.exp(random.normal(6, 1, count)).astype(np.int64) + 1)


def samplers(lengths, ranks, **options):
    return [PackedBatchSampler(lengths, 4096, ranks=ranks, rank=r, **options) for r in range(ranks)]


def samples_of(batches):
    return sorted(sample for batch in batches for sample in batch)


class Sampler(unittest.TestCase):
    def test_every_sample_runs_once_if_nothing_repeats(self):
        # The promise of an epoch: without repeats, the ranks together yield each sample once.
        for ranks in (1, 2, 3, 8):
            for groups_per_rank in (1, 4):
                ours = samplers(
                    draw(500), ranks, groups_per_rank=groups_per_rank, remainder="short_step"
                )
                yielded = [batch for sampler in ours for batch in sampler]
                self.assertEqual(samples_of(yielded), list(range(500)))

    def test_all_ranks_yield_the_same_number_and_no_batch_exceeds_the_capacity(self):
        # Ranks that yield different numbers of micro-batches hang in their collectives.
        for count, ranks, groups_per_rank in (
            (501, 4, 1), (501, 4, 4), (200, 2, 4), (200, 3, 8), (9, 8, 2), (30, 5, 3)
        ):
            lengths = draw(count)
            ours = samplers(lengths, ranks, groups_per_rank=groups_per_rank)
            batches = [list(sampler) for sampler in ours]
            self.assertEqual(len({len(b) for b in batches}), 1)
            self.assertEqual(len(ours[0]), len(batches[0]))
            self.assertEqual(set(samples_of(sum(batches, []))), set(range(count)))
            different = {tuple(batch) for batch in sum(batches, [])}
            self.assertLess(len(sum(batches, [])) - len(different), ranks)
            for batch in sum(batches, []):
                self.assertLessEqual(lengths[batch].sum(), 4096)

    def test_steps_are_even(self):
        # The reason for this sampler: ranks of a step have similar work.
        lengths = draw(4000)
        ours = [list(sampler) for sampler in samplers(lengths, 4)]
        loads = np.array([[lengths[b].sum() for b in batches] for batches in ours])
        idle = 1 - loads.mean(0) / loads.max(0)
        self.assertLess(idle[:-1].mean(), 0.01)

    def test_epochs_have_other_orders_and_a_seed_repeats_them(self):
        sampler = PackedBatchSampler(draw(300), 4096, ranks=2, rank=0, seed=3)
        first = list(sampler)
        self.assertEqual(list(sampler), first)
        sampler.set_epoch(1)
        second = list(sampler)
        self.assertNotEqual(first, second)
        again = PackedBatchSampler(draw(300), 4096, ranks=2, rank=0, seed=3)
        again.set_epoch(1)
        self.assertEqual(list(again), second)

    def test_a_state_continues_exactly(self):
        for consumed in (0, 1, 7):
            sampler = PackedBatchSampler(draw(300), 4096, ranks=2, rank=1)
            sampler.set_epoch(5)
            whole = list(sampler)
            state = json.loads(json.dumps(sampler.state_dict(consumed)))
            other = PackedBatchSampler(draw(300), 4096, ranks=2, rank=1)
            other.load_state_dict(state)
            other.set_epoch(5)
            self.assertEqual(len(other), len(whole) - consumed)
            self.assertEqual(list(other), whole[consumed:])
            self.assertEqual(other.state_dict(), sampler.state_dict())

    def test_the_state_counts_what_was_yielded(self):
        sampler = PackedBatchSampler(draw(300), 4096)
        batches = iter(sampler)
        for _ in range(4):
            next(batches)
        self.assertEqual(sampler.state_dict()["position"], 4)
        whole = list(PackedBatchSampler(draw(300), 4096))
        end = PackedBatchSampler(draw(300), 4096)
        self.assertEqual(len(list(end)), len(whole))
        # A state after the last micro-batch continues with nothing, not with the epoch again.
        other = PackedBatchSampler(draw(300), 4096)
        other.load_state_dict(end.state_dict())
        self.assertEqual(list(other), [])
        self.assertEqual(list(other), whole)

    def test_the_number_of_ranks_may_change(self):
        # Runs resume on other numbers of machines, twice in one epoch too.
        lengths = draw(600)
        done, state = [], None
        trained = 0
        for ranks, groups_per_rank, steps in ((4, 2, 6), (3, 2, 5), (1, 6, 2), (2, 2, None)):
            ours = samplers(
                lengths, ranks, groups_per_rank=groups_per_rank, remainder="short_step"
            )
            for sampler in ours:
                if state is not None:
                    sampler.load_state_dict(state)
                batches = list(sampler)
                done += batches if steps is None else batches[: groups_per_rank * steps]
            if steps is not None:
                # A training loop counts from the beginning of the epoch, through all restarts.
                trained += groups_per_rank * steps
                state = json.loads(json.dumps(ours[0].state_dict(trained)))
        self.assertEqual(samples_of(done), list(range(600)))
        with self.assertRaisesRegex(ValueError, "consumed is 5, must be from 34 to .*beginning"):
            ours[0].state_dict(5)

    def test_the_number_of_ranks_may_change_after_the_last_step(self):
        # A checkpoint at the end of an epoch, whose last step has fewer micro-batches.
        for remainder in ("repeat", "short_step"):
            ours = samplers(draw(100), 2, groups_per_rank=4, remainder=remainder)
            for sampler in ours:
                position = len(sampler)
                other = PackedBatchSampler(
                    draw(100), 4096, ranks=3, groups_per_rank=4, remainder=remainder
                )
                other.load_state_dict(sampler.state_dict(position))
                self.assertEqual(list(other), [])

    def test_oversized_samples(self):
        # A few samples above the capacity must not stop a training run, if the user says so.
        lengths = [3, 9, 4, 12, 5]
        for oversized, expected in (("skip", [0, 2, 4]), ("own_group", [0, 1, 2, 3, 4])):
            sampler = PackedBatchSampler(lengths, 8, oversized=oversized)
            self.assertEqual(sampler.oversized.tolist(), [1, 3])
            batches = list(sampler)
            self.assertEqual(samples_of(batches), expected)
            self.assertEqual([1] in batches and [3] in batches, oversized == "own_group")

    def test_the_loss_factor_gives_each_token_the_same_weight(self):
        # The average over the ranks of the scaled sums of losses, over all steps, is the mean loss
        # of the tokens times the number of steps.
        lengths = draw(200)
        loss = np.random.RandomState(2).rand(200)
        ours = samplers(lengths, 2, groups_per_rank=2, remainder="short_step")
        factor = ours[0].loss_factor(lengths // 2)
        self.assertEqual(factor, ours[1].loss_factor(lengths // 2))
        sums = [sum((loss * (lengths // 2))[batch].sum() for batch in s) for s in ours]
        steps = -(-len(ours[0]) // 2)
        mean = (loss * (lengths // 2)).sum() / (lengths // 2).sum()
        self.assertAlmostEqual(np.mean(sums) * factor / steps, mean)

    def test_several_resources_and_a_cost(self):
        lengths = draw(400)
        images = np.arange(400) % 5
        ours = [
            PackedBatchSampler(
                (images, lengths), (9, 4096), ranks=2, rank=rank, cost=lengths * lengths
            )
            for rank in range(2)
        ]
        for batch in sum((list(sampler) for sampler in ours), []):
            self.assertLessEqual(images[batch].sum(), 9)
            self.assertLessEqual(lengths[batch].sum(), 4096)

    def test_wrong_arguments_are_named(self):
        def refuses(text, call):
            with self.assertRaisesRegex(ValueError, text):
                call()

        refuses(
            r"lengths\[1\] is 9, above the capacity 8; the number of such samples is 1",
            lambda: PackedBatchSampler([3, 9], 8),
        )
        refuses("oversized is 'drop'", lambda: PackedBatchSampler([3], 8, oversized="drop"))
        refuses("rank is 2, must be from 0 to 1", lambda: PackedBatchSampler([3], 8, ranks=2, rank=2))
        refuses("remainder is 'drop'", lambda: PackedBatchSampler([3], 8, remainder="drop"))
        refuses("lengths must be integers", lambda: PackedBatchSampler([3.5], 8))
        sampler = PackedBatchSampler([3, 4, 5], 8, groups_per_rank=2)
        refuses("consumed is 9", lambda: sampler.state_dict(9))
        state = sampler.state_dict()
        refuses("other lengths", lambda: PackedBatchSampler([3], 8).load_state_dict(state))
        refuses(
            "seed is 1, and 0 in the state",
            lambda: PackedBatchSampler([3, 4, 5], 8, seed=1).load_state_dict(state),
        )
        other = PackedBatchSampler([3, 4, 5], 8, groups_per_rank=2, ranks=3)
        refuses("within a step of 2", lambda: other.load_state_dict(sampler.state_dict(1)))


class Collate(unittest.TestCase):
    def test_fields_are_concatenated(self):
        batch = collate_packed(
            [
                {"input_ids": [1, 2, 3], "labels": [1, 2, 3]},
                {"input_ids": np.array([4, 5]), "labels": np.array([4, 5])},
            ]
        )
        self.assertEqual(batch["input_ids"].tolist(), [1, 2, 3, 4, 5])
        self.assertEqual(batch["labels"].tolist(), [-100, 2, 3, -100, 5])
        self.assertEqual(batch["position_ids"].tolist(), [0, 1, 2, 0, 1])
        self.assertEqual(batch["cu_seqlens"].tolist(), [0, 3, 5])
        self.assertEqual(batch["cu_seqlens"].dtype, np.int32)
        self.assertEqual(batch["max_seqlen"], 3)

    def test_fields_of_different_lengths_are_refused(self):
        for samples, message in (
            ([{"input_ids": [[1, 2]]}], r"input_ids of sample 0 has shape \(1, 2\)"),
            ([{"input_ids": [1]}, {"labels": [2]}], "sample 1 has no field input_ids"),
            ([{"input_ids": [1], "text": 3}], "text of sample 0 is one value"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                collate_packed(samples)
        with self.assertRaisesRegex(ValueError, "labels of sample 0 has 1 elements, must have 2"):
            collate_packed([{"input_ids": [1, 2], "labels": [1]}])
        with self.assertRaisesRegex(ValueError, "no samples"):
            collate_packed([])

    def test_examples(self):
        self.assertEqual(doctest.testmod(omnibal.data).failed, 0)


@unittest.skipIf(torch is None, "torch is not installed")
class Loader(unittest.TestCase):
    def test_data_loader(self):
        # The page's program: a loader with workers, stopped and resumed.
        lengths = draw(200)
        samples = [{"input_ids": torch.arange(int(n)), "labels": torch.arange(int(n))} for n in lengths]
        for workers in (0, 2):
            sampler = PackedBatchSampler(lengths, 4096, ranks=2, rank=0)
            loader = torch.utils.data.DataLoader(
                samples, batch_sampler=sampler, collate_fn=collate_packed, num_workers=workers
            )
            whole = [batch["cu_seqlens"].tolist() for batch in loader]
            self.assertEqual(len(whole), len(sampler))
            self.assertTrue(isinstance(next(iter(loader))["input_ids"], torch.Tensor))
            other = PackedBatchSampler(lengths, 4096, ranks=2, rank=0)
            other.load_state_dict(sampler.state_dict(3))
            loader = torch.utils.data.DataLoader(
                samples, batch_sampler=other, collate_fn=collate_packed, num_workers=workers
            )
            self.assertEqual([batch["cu_seqlens"].tolist() for batch in loader], whole[3:])


if __name__ == "__main__":
    unittest.main()
