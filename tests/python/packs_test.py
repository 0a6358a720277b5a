# SPDX-License-Identifier: Apache-2.0
"""Long and oversized samples, levels, sequence offsets, samplers of steps and levels, deferral."""

import copy
import json
import pickle
import unittest

import numpy as np
import omnibal

RANDOM = np.random.RandomState(23)
LENGTHS = RANDOM.randint(1, 900, 300)


class Oversized(unittest.TestCase):
    def test_policies(self):
        packed = omnibal.best_packing(LENGTHS, 800)
        long = np.flatnonzero(LENGTHS > 800).tolist()
        self.assertEqual(packed.oversized.tolist(), long)
        own = omnibal.place_oversized(packed, "own_group")
        self.assertEqual(own.groups.tolist(), packed.groups.tolist() + [[i] for i in long])
        self.assertEqual((own.oversized.size, own.lower_bound), (0, packed.lower_bound + len(long)))
        self.assertEqual(omnibal.place_oversized(packed, "list").groups, packed.groups)
        with self.assertRaisesRegex(ValueError, "place_oversized: .*the first is sample %d" % long[0]):
            omnibal.place_oversized(packed, "reject")
        with self.assertRaisesRegex(ValueError, "policy is 'drop', must be list, own_group or reject"):
            omnibal.place_oversized(packed, "drop")


class Long(unittest.TestCase):
    def test_every_token_is_in_one_piece_and_every_piece_in_one_group(self):
        for packer in ("best_fit_decreasing", "best_packing", "next_fit"):
            for sizes in ("even", "full"):
                for multiple in (1, 16):
                    found = omnibal.split_long(LENGTHS, 256, sizes=sizes, multiple=multiple,
                                               packer=packer)
                    self.check(found, sizes, multiple)

    def check(self, found, sizes, multiple):
        tokens = [np.zeros(length, dtype=int) for length in LENGTHS]
        for sample, first, length in zip(found.samples, found.firsts, found.lengths):
            tokens[sample][first:first + length] += 1
        self.assertTrue(all((one == 1).all() for one in tokens))
        self.assertTrue((found.firsts % multiple == 0).all())
        self.assertEqual(sorted(found.groups.items), list(range(found.samples.size)))
        self.assertLessEqual(max(found.lengths[group].sum() for group in found.groups), 256)
        self.assertLessEqual(found.lower_bound, len(found))
        for sample, length in enumerate(LENGTHS):
            own = found.samples == sample
            self.assertEqual(found.parts[own].tolist(), list(range(own.sum())))
            self.assertEqual(own.sum(), -(-length // 256))
            pieces = found.lengths[own]
            if sizes == "full":
                self.assertTrue((pieces[:-1] == 256).all())
            else:
                self.assertLessEqual(pieces.max() - pieces.min(), multiple)

    def test_policies_and_errors(self):
        long = np.flatnonzero(LENGTHS > 256).tolist()
        rejected = omnibal.split_long(LENGTHS, 256, policy="reject")
        self.assertEqual(rejected.oversized.tolist(), long)
        self.assertEqual(rejected.samples.tolist(), np.flatnonzero(LENGTHS <= 256).tolist())
        own = omnibal.split_long(LENGTHS, 256, policy="own_group")
        groups = [own.samples[group].tolist() for group in own.groups][own.first_long_group:]
        self.assertEqual(groups, [[sample] for sample in long])
        again = pickle.loads(pickle.dumps(own))
        self.assertEqual((again.groups, again.lengths.tolist()), (own.groups, own.lengths.tolist()))
        for options, text in (({"multiple": 300}, "multiple is 300"),
                              ({"packer": "isf"}, "packer is 'isf', must be best_fit_decreasing, "),
                              ({"policy": "cut"}, "policy is 'cut', must be reject, own_group or"),
                              ({"sizes": "odd"}, "sizes is 'odd', must be even or full")):
            with self.assertRaisesRegex(ValueError, "omnibal.split_long: .*" + text):
                omnibal.split_long(LENGTHS, 256, **options)
        with self.assertRaisesRegex(ValueError, "split_long: .*-1"):
            omnibal.split_long([-1], 256)


class Offsets(unittest.TestCase):
    def test_they_are_cumulative_sums(self):
        groups = omnibal.best_packing(LENGTHS, 1000).groups
        found = omnibal.cu_seqlens(groups, LENGTHS)
        self.assertEqual((len(found), found.offsets.dtype), (len(groups), np.int32))
        for g, group in enumerate(groups):
            own = LENGTHS[group]
            self.assertEqual(found[g].tolist(), [0, *np.cumsum(own)])
            self.assertEqual(found.longest[g], own.max())
            ids = np.concatenate([np.arange(length) for length in own])
            self.assertEqual(found.position_ids(g).tolist(), ids.tolist())
        self.assertEqual(found[-1].tolist(), found[len(found) - 1].tolist())
        self.assertEqual([one.tolist() for one in found[1:3]], [found[1].tolist(), found[2].tolist()])
        again = pickle.loads(pickle.dumps(found))
        self.assertEqual([one.tolist() for one in again], [one.tolist() for one in found])

    def test_empty_groups_and_errors(self):
        found = omnibal.cu_seqlens(omnibal.Groups([0, 0, 1], [0]), [7])
        self.assertEqual([one.tolist() for one in found], [[0], [0, 7]])
        self.assertEqual((found.longest.tolist(), found.position_ids(0).tolist()), ([0, 7], []))
        with self.assertRaises(IndexError):
            found[2]
        with self.assertRaisesRegex(ValueError, "cu_seqlens: .*group 0"):
            omnibal.cu_seqlens(omnibal.Groups([0, 1], [5]), [7])
        with self.assertRaisesRegex(ValueError, "cu_seqlens: .*tokens of group 0"):
            omnibal.cu_seqlens(omnibal.Groups([0, 2], [0, 0]), [2**30])


class Levels(unittest.TestCase):
    def check(self, packed, lengths, levels):
        """Samples are once in a pack of their level, or of a longer one that they fill."""
        bounds = [0, *levels]
        self.assertEqual(sorted(packed.groups.items.tolist() + packed.oversized.tolist()),
                         list(range(len(lengths))))
        self.assertEqual(packed.oversized.tolist(), np.flatnonzero(lengths > levels[-1]).tolist())
        for level, limit in enumerate(levels):
            packs = packed.groups[packed.first_groups[level]:packed.first_groups[level + 1]]
            filled = 0
            for pack in packs:
                self.assertLessEqual(lengths[pack].sum(), limit)
                own = lengths[pack] > bounds[level]
                self.assertTrue(own.any() or level == 0)
                filled += (~own).sum() if level else 0
            self.assertEqual(packed.filled_in[level], filled)
            attention = [int((lengths[pack]**2).sum()) for pack in packs]
            self.assertEqual(attention, sorted(attention, reverse=True))

    def test_packs_of_levels(self):
        levels = [128, 512, 850]
        plain = omnibal.pack_levels(LENGTHS, levels, fill="none")
        filled = omnibal.pack_levels(LENGTHS, levels)
        for packed in (plain, filled, omnibal.pack_levels(LENGTHS, levels, packer="best_packing")):
            self.check(packed, LENGTHS, levels)
            self.assertEqual(packed.levels.tolist(), [[length, 1, 0] for length in levels])
        self.assertEqual(plain.filled_in.tolist(), [0, 0, 0])
        packs = [np.diff(packed.first_groups.astype(int)) for packed in (filled, plain)]
        self.assertTrue((packs[0] <= packs[1]).all())
        self.assertLess(len(filled), len(plain))

    def test_oversized_samples_and_errors(self):
        own = omnibal.pack_levels(LENGTHS, [100, 400], oversized="own_group")
        alone = [pack[0] for pack in own.groups if LENGTHS[pack].sum() > 400 and len(pack) == 1]
        self.assertEqual(sorted(alone), np.flatnonzero(LENGTHS > 400).tolist())
        again = pickle.loads(pickle.dumps(own))
        self.assertEqual((again.groups, again.levels.tolist()), (own.groups, own.levels.tolist()))
        for levels, options, text in (
                ([400], {"oversized": "reject"}, "demand"), ([], {}, "levels is empty"),
                ([5, 4], {}, r"levels\[1\].length is 4"), ([[5, 0, 0]], {}, r"levels\[0\].sequence is 0"),
                ([[5, 1]], {}, "levels must be a list of lengths"),
                ([5], {"fill": "all"}, "fill is 'all', must be greedy or none")):
            with self.assertRaisesRegex(ValueError, "omnibal.pack_levels: .*" + text):
                omnibal.pack_levels(LENGTHS, levels, **options)


class StepSampling(unittest.TestCase):
    LOADS = RANDOM.randint(1, 500, 101)

    def run_epoch(self, samplers):
        """The steps of all ranks in an epoch: a list of steps, which are lists by rank."""
        return list(zip(*(sampler.epoch_steps() for sampler in samplers)))

    def test_epochs_are_those_of_schedule_steps(self):
        for loads in (self.LOADS, np.stack([self.LOADS, self.LOADS[::-1]], axis=1)):
            samplers = [omnibal.StepSampler(loads, ranks=4, rank=rank, seed=3) for rank in range(4)]
            for epoch in range(3):
                steps = self.run_epoch(samplers)
                wanted = omnibal.schedule_steps(loads, 4, seed=3, epoch=epoch)
                self.assertEqual([[own.tolist() for own in step] for step in steps],
                                 [[wanted[s, r].tolist() for r in range(4)] for s in range(len(wanted))])

    def test_it_resumes_after_any_step_with_other_ranks(self):
        for stop in (0, 1, 13, 25):
            samplers = [omnibal.StepSampler(self.LOADS, ranks=4, rank=rank) for rank in range(4)]
            run = [group for _ in range(stop) for s in samplers for group in s.next().tolist()]
            state = json.loads(json.dumps(samplers[2].state_dict()))
            self.assertEqual({s.state() for s in samplers}, {samplers[0].state()})
            others = [omnibal.StepSampler(self.LOADS, ranks=3, rank=rank) for rank in range(3)]
            for other in others:
                other.load_state_dict(state)
                self.assertEqual((other.step, other.epoch), (stop, 0))
                self.assertEqual(other.rank_changes_left, 8 - (stop > 0))
            run += [g for step in self.run_epoch(others) for own in step for g in own.tolist()]
            self.assertEqual(sorted(run), list(range(101)))
        same = omnibal.StepSampler(self.LOADS, ranks=4, rank=1, state=samplers[0].state())
        self.assertEqual(same.next().tolist(), samplers[1].next().tolist())

    def test_copies_and_remainders(self):
        sampler = omnibal.StepSampler(self.LOADS, ranks=4, rank=2, remainder="carry")
        sampler.next()
        for again in (copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))):
            self.assertEqual((again.step, again.left_over), (1, 1))
            self.assertEqual([s.tolist() for s in again.epoch_steps()],
                             [s.tolist() for s in copy.copy(sampler).epoch_steps()])
        self.assertEqual(sampler.step_count, 25)
        first = omnibal.StepSampler(self.LOADS, ranks=4, groups_per_rank=2, remainder="repeat")
        self.assertEqual({len(step) for step in first.epoch_steps()}, {2})
        self.assertTrue(first.done)
        self.assertEqual(omnibal.StepSampler([]).epoch_steps(), [])

    def test_an_iteration_yields_the_rest_of_the_epoch(self):
        for remainder in ("short_step", "carry"):
            sampler, other = (omnibal.StepSampler(self.LOADS, ranks=4, remainder=remainder)
                              for _ in range(2))
            sampler.next(), other.next()
            for _ in range(3):
                length = len(sampler)
                steps = [step.tolist() for step in sampler]
                self.assertEqual(len(steps), length)
                self.assertEqual(steps, [step.tolist() for step in other.epoch_steps()])
        steps = iter(sampler)
        next(steps)
        other.load_state_dict(sampler.state_dict())
        self.assertEqual([step.tolist() for step in other], [step.tolist() for step in steps])
        empty = omnibal.StepSampler([])
        self.assertEqual((len(empty), list(empty)), (0, []))

    def test_loads_are_copied(self):
        loads = self.LOADS.copy()
        sampler = omnibal.StepSampler(loads, ranks=4)
        loads[:] = 1
        again = pickle.loads(pickle.dumps(sampler))
        self.assertEqual(again.next().tolist(), sampler.next().tolist())

    def test_errors(self):
        sampler = omnibal.StepSampler(self.LOADS, ranks=2)
        for change, text in (({"rank": 2}, "rank is 2"), ({"ranks": 0}, "ranks is 0"),
                             ({"remainder": "drop"}, "remainder is 'drop', must be short_step, "),
                             ({"state": b"x"}, "state has 1 bytes"),
                             ({"groups_per_rank": 0}, "groups_per_rank is 0"),
                             ({"loads": [-1]}, "-1"),
                             ({"loads": self.LOADS[1:], "state": sampler.state()}, "loads")):
            with self.assertRaisesRegex(ValueError, "omnibal.(StepSampler|schedule_steps): .*" + text):
                omnibal.StepSampler(**{"loads": self.LOADS, "ranks": 2, **change})


class LevelSampling(unittest.TestCase):
    PACKED = omnibal.pack_levels(LENGTHS, [[128, 1, 0], [512, 2, 4], [900, 4, 8]], fill="none")
    LOADS = [int((LENGTHS[pack]**2).sum()) for pack in PACKED.groups]

    def samplers(self, ranks, **options):
        return [omnibal.LevelSampler(self.PACKED, self.LOADS, ranks=ranks, rank=rank, **options)
                for rank in range(ranks)]

    def check(self, steps, ranks):
        """Returns the packs that ran; the ranks of a degree share a pack of the level of the step."""
        run = []
        first = self.PACKED.first_groups
        for step in steps:
            level = step[0][0]
            degree = int(self.PACKED.levels[level][1])
            self.assertEqual({one for one, _ in step}, {level})
            for start in range(0, ranks, degree):
                shared = [packs.tolist() for _, packs in step[start:start + degree]]
                self.assertTrue(all(packs == shared[0] for packs in shared))
                self.assertTrue(all(first[level] <= g < first[level + 1] for g in shared[0]))
                run += shared[0]
        return run

    def test_each_pack_runs_once_on_the_ranks_of_its_level(self):
        samplers = self.samplers(4, seed=2)
        for epoch in range(2):
            steps = list(zip(*(sampler.epoch_steps() for sampler in samplers)))
            self.assertEqual(sorted(self.check(steps, 4)), list(range(len(self.LOADS))))
            self.assertEqual(samplers[0].epoch, epoch)

    def test_it_resumes_with_other_ranks(self):
        samplers = self.samplers(4)
        run = self.check([[s.next() for s in samplers] for _ in range(9)], 4)
        others = [omnibal.LevelSampler(self.PACKED, self.LOADS, ranks=8, rank=rank,
                                       state=samplers[0].state()) for rank in range(8)]
        others[3] = pickle.loads(pickle.dumps(others[3]))
        others[5] = copy.copy(others[5])
        others[6].load_state_dict(samplers[1].state_dict())
        self.assertEqual(len(others[0]), others[0].step_count - 9)
        # An iteration yields what `epoch_steps` returns.
        run += self.check(list(zip(*(sampler if sampler is others[0] else sampler.epoch_steps()
                                     for sampler in others))), 8)
        self.assertEqual(sorted(run), list(range(len(self.LOADS))))

    def test_short_steps_come_first_and_errors(self):
        steps = self.samplers(4, short_first_steps=5)[0].epoch_steps()
        self.assertEqual([level for level, _ in steps[:5]], [0] * 5)
        with self.assertRaisesRegex(ValueError, r"LevelSampler: levels\[1\].sequence is 2"):
            self.samplers(3)
        with self.assertRaisesRegex(ValueError, "LevelSampler: loads"):
            omnibal.LevelSampler(self.PACKED, self.LOADS[1:], ranks=4)


class Schedules(unittest.TestCase):
    LOADS = RANDOM.randint(1, 500, 120)

    def steps_of(self, schedule):
        return [[int(g) for own in step for g in own] for step in schedule]

    def test_carried_groups_run_in_the_next_epoch(self):
        carried, runs = [], np.zeros(101, dtype=int)
        for epoch in range(6):
            steps = omnibal.schedule_steps(self.LOADS[:101], 4, epoch=epoch, remainder="carry",
                                           carried=carried)
            ran = np.bincount(sum(self.steps_of(steps), []), minlength=101)
            due = 1 + np.bincount(np.array(carried, dtype=int), minlength=101)
            left = np.repeat(np.arange(101), due - ran)
            found = omnibal.unscheduled_groups(steps, 101, carried)
            self.assertEqual(found.tolist(), left.tolist())
            self.assertLess(len(found), 4)
            runs += ran
            carried = found.tolist()
        self.assertEqual((runs + np.bincount(carried, minlength=101)).tolist(), [6] * 101)
        with self.assertRaisesRegex(ValueError, "unscheduled_groups: .*"):
            omnibal.unscheduled_groups(steps, 50)

    def test_overlap_is_the_share_of_pairs_that_meet_twice(self):
        one = omnibal.schedule_steps(self.LOADS, 4, seed=1)
        two = omnibal.schedule_steps(self.LOADS, 6, seed=2)
        pairs = [{(a, b) for step in self.steps_of(steps) for a in step for b in step if a < b}
                 for steps in (one, two)]
        every = 120 * 119 / 2
        expected = len(pairs[0]) * len(pairs[1]) / every
        self.assertAlmostEqual(omnibal.step_overlap(one, two), len(pairs[0] & pairs[1]) / expected)
        self.assertAlmostEqual(omnibal.step_overlap(one, one), every / len(pairs[0]))

    def test_spread_is_the_variance_over_that_of_random_order(self):
        rows = np.stack([self.LOADS, RANDOM.randint(0, 9, 120)], axis=1)
        for options in ({}, {"max_dist_ratio": 1}, {"groups_per_rank": 3}):
            steps = omnibal.schedule_steps(self.LOADS, 4, **options)
            found = omnibal.step_spread(steps, rows)
            single = omnibal.step_spread(steps, self.LOADS)
            for kind in range(2):
                loads = rows[:, kind]
                cells = loads[np.array(self.steps_of(steps))]
                n, variance = cells.shape[1], loads.var()
                totals = cells.sum(axis=1)
                spread = np.mean((totals - n * loads.mean())**2) / (n * variance * (120 - n) / 119)
                self.assertAlmostEqual(found["totals"][kind], np.sqrt(spread))
                within = cells.var(axis=1, ddof=1).mean() / (variance * 120 / 119)
                self.assertAlmostEqual(found["within"][kind], within)
                self.assertAlmostEqual(found["variation"][kind], totals.std() / totals.mean())
            self.assertEqual(single, {name: ratios[0] for name, ratios in found.items()})
        with self.assertRaisesRegex(ValueError, "step_spread: the schedule names group"):
            omnibal.step_spread(steps, [1, 2])

    def test_ratios_of_attention_and_communication(self):
        groups = omnibal.best_packing(LENGTHS, 900).groups
        steps = omnibal.schedule_steps(omnibal.group_loads(groups, LENGTHS), 4)
        shares = []
        for step in steps:
            work = [sum(int((LENGTHS[groups[g]]**2).sum()) for g in own) for own in step]
            shares.append(1 - np.mean(work) / max(work))
        self.assertAlmostEqual(omnibal.attention_balance(steps, groups, LENGTHS), np.mean(shares))
        degrees = RANDOM.randint(1, 3, len(groups))
        tokens = omnibal.group_loads(groups, LENGTHS)
        self.assertAlmostEqual(omnibal.communication_ratio(groups, LENGTHS, degrees),
                               tokens[degrees > 1].sum() / tokens.sum())
        with self.assertRaisesRegex(ValueError, "the degree of group 0 is 0, must be at least 1"):
            omnibal.communication_ratio(groups, LENGTHS, 0 * degrees)
        with self.assertRaisesRegex(ValueError, "degrees has 1 elements, must have %d" % len(groups)):
            omnibal.communication_ratio(groups, LENGTHS, [1])

    def test_steps_of_levels(self):
        packed, loads = LevelSampling.PACKED, LevelSampling.LOADS
        for given in (loads, np.stack([loads, loads], axis=1)):
            levels = omnibal.level_steps(packed, given, 8)
            for level, steps in enumerate(levels):
                self.assertEqual(steps.ranks, 8 // packed.levels[level][1])
                packs = range(packed.first_groups[level], packed.first_groups[level + 1])
                self.assertEqual(sorted(sum(self.steps_of(steps), [])), list(packs))
        with self.assertRaisesRegex(ValueError, r"level_steps: levels\[1\].sequence is 2"):
            omnibal.level_steps(packed, loads, 3)
        with self.assertRaisesRegex(ValueError, "remainder is 'carry', must be short_step or repeat"):
            omnibal.level_steps(packed, loads, 8, remainder="carry")


class Deferral(unittest.TestCase):
    def simulated(self, queue, steps, group_size, max_delay, threshold):
        """The same rule over lists: the largest even set from the cheapest sample on."""
        waiting, results = [], []
        for now, lengths in enumerate(steps):
            every = waiting + [(now, 1000 * now + i, length) for i, length in enumerate(lengths)]
            may_wait = sorted((length for _, _, length in every if length >= threshold), reverse=True)
            total = sum(length for _, _, length in every)
            while may_wait and group_size * may_wait[0] > total:
                total -= may_wait.pop(0)
            limit = may_wait[0] if may_wait else -1
            if now - min((step for step, _, _ in every), default=now) >= max_delay:
                limit = float("inf")
            run = [one for one in every if one[2] <= limit or one[2] < threshold]
            waiting = [one for one in every if one not in run]
            results.append([(i, length, now - step) for step, i, length in run])
        return results, waiting

    def test_it_runs_what_the_rule_runs_and_resumes(self):
        for group_size, max_delay, threshold in ((1, 8, 0), (4, 5, 0), (4, 3, 200), (8, 0, 0), (6, 9, 50)):
            options = {"group_size": group_size, "max_delay": max_delay, "threshold": threshold}
            queue = omnibal.DeferralQueue(**options)
            steps = [RANDOM.randint(1, 400, RANDOM.randint(0, 9)) for _ in range(40)]
            wanted, waiting = self.simulated(queue, steps, group_size, max_delay, threshold)
            for now, lengths in enumerate(steps):
                found = queue.push(1000 * now + np.arange(len(lengths)), lengths, lambda given: given)
                self.assertEqual(list(zip(found.ids.tolist(), found.lengths.tolist(),
                                          found.delays.tolist())), wanted[now])
                if now % 7 == 3:
                    queue = omnibal.DeferralQueue(**options, state=queue.state())
                if now % 7 == 5:
                    queue = pickle.loads(pickle.dumps(queue))
                if now % 7 == 6:
                    state = json.loads(json.dumps(queue.state_dict()))
                    queue = omnibal.DeferralQueue(**options)
                    queue.load_state_dict(state)
            self.assertEqual((len(queue), queue.step), (len(waiting), 40))
            self.assertEqual(queue.flush().ids.tolist(), [i for _, i, _ in waiting])
            self.assertEqual(len(queue.flush()), 0)

    def test_the_cost_is_a_function_of_all_lengths(self):
        asked = []

        def cost(lengths):
            asked.append(lengths.tolist())
            return lengths**2 / 10

        queue = omnibal.DeferralQueue(group_size=2)
        self.assertEqual(queue.push([7, 8], [90, 10], cost).ids.tolist(), [])
        self.assertEqual(queue.push([9], [90], cost).ids.tolist(), [7, 8, 9])
        self.assertEqual(asked, [[90, 10], [90, 90, 10]])

    def test_errors_leave_the_queue_unchanged(self):
        queue = omnibal.DeferralQueue(group_size=4)
        queue.push([1, 2], [5, 100], lambda lengths: lengths)
        state = queue.state()
        for ids, lengths, cost, text in (
                ([1], [1, 2], lambda given: given, "ids has 1"),
                ([1], [-1], lambda given: given, "-1"),
                ([1], [1], lambda given: given[:1], r"cost\(lengths\) has 1 elements, must have"),
                ([1], [1], lambda given: -given, "-")):
            with self.assertRaisesRegex(ValueError, "omnibal.DeferralQueue.push: .*" + text):
                queue.push(ids, lengths, cost)
            self.assertEqual(queue.state(), state)
        with self.assertRaisesRegex(ValueError, "DeferralQueue: group_size is 0"):
            omnibal.DeferralQueue(group_size=0)
        with self.assertRaisesRegex(ValueError, "DeferralQueue: "):
            omnibal.DeferralQueue(max_delay=3, state=state)
        with self.assertRaisesRegex(ValueError, "DeferralQueue: "):
            omnibal.DeferralQueue(max_delay=3).load_state_dict(queue.state_dict())


class Histograms(unittest.TestCase):
    def test_the_groups_are_those_of_best_fit_decreasing(self):
        random = np.random.RandomState(3)
        for capacity in (10, 100, 4096):
            lengths = random.randint(0, capacity + 1 + capacity // 20, 2000)
            plan = omnibal.pack_histogram(omnibal.count_samples(lengths), capacity)
            packed = omnibal.best_fit_decreasing(lengths, capacity)
            self.assertEqual(plan.group_count, len(packed.groups))
            self.assertEqual(plan.group_count, int(plan.multiplicities.sum()))
            self.assertLessEqual(plan.lower_bound, plan.group_count)
            self.assertEqual(plan.proven, plan.lower_bound == plan.group_count)

    def test_each_sample_of_each_shard_has_one_group(self):
        random = np.random.RandomState(4)
        images, tokens = random.randint(0, 5, 600), random.randint(1, 900, 600)
        shards = np.array_split(np.arange(600), [50, 50, 320])
        before, all_samples = [], omnibal.count_samples((images[:0], tokens[:0]))
        for shard in shards:
            before.append(pickle.loads(pickle.dumps(all_samples)))
            all_samples.merge(omnibal.count_samples((images[shard], tokens[shard])))
        self.assertEqual(all_samples, omnibal.count_samples((images, tokens)))
        self.assertEqual(all_samples.sample_count, 600)
        plan = omnibal.pack_histogram(all_samples, (9, 850))
        self.assertEqual(pickle.loads(pickle.dumps(plan)), plan)
        groups = np.concatenate([
            omnibal.place_samples(plan, earlier, (images[shard], tokens[shard]))
            for earlier, shard in zip(before, shards)])
        oversized = tokens > 850
        self.assertTrue((groups[oversized] == omnibal.NO_GROUP).all())
        self.assertEqual(len(plan.oversized), len(np.unique(
            np.stack([images, tokens], axis=1)[oversized], axis=0)))
        inside = groups[~oversized].astype(np.int64)
        self.assertEqual(len(np.unique(inside)), plan.group_count)
        self.assertLessEqual(np.bincount(inside, images[~oversized]).max(), 9)
        self.assertLessEqual(np.bincount(inside, tokens[~oversized]).max(), 850)
        # A group has the demands that its pattern says.
        patterns = np.repeat(np.arange(len(plan)), plan.multiplicities.astype(np.int64))
        demands = plan.histogram.demands
        for group in range(plan.group_count):
            parts = slice(*plan.offsets[patterns[group]:patterns[group] + 2])
            wanted = np.repeat(demands[plan.entries[parts]], plan.counts[parts].astype(int), axis=0)
            mine = np.stack([images, tokens], axis=1)[groups == group]
            self.assertEqual(sorted(wanted.tolist()), sorted(mine.tolist()))
        shares = [omnibal.share_of_shard(plan, shard, 7) for shard in range(7)]
        self.assertEqual(sum(shares).tolist(), plan.multiplicities.tolist())
        for shard, share in enumerate(shares):
            self.assertEqual(share.sum(), len(range(shard, plan.group_count, 7)))

    def test_the_best_patterns_need_fewer_groups(self):
        samples = omnibal.SampleHistogram([3, 4], [12 * 10**9, 6 * 10**9])
        plan = omnibal.best_patterns(samples, 10)
        self.assertEqual((plan.group_count, plan.proven), (6 * 10**9, True))
        self.assertEqual(omnibal.pack_histogram(samples, 10).group_count, 7 * 10**9)
        self.assertEqual(pickle.loads(pickle.dumps(plan)), plan)
        self.assertEqual(omnibal.best_patterns(samples, 10, pattern_steps=0),
                         omnibal.pack_histogram(samples, 10))
        with self.assertRaisesRegex(ValueError, "best_patterns: pattern_steps is -1"):
            omnibal.best_patterns(samples, 10, pattern_steps=-1)

    def test_entries_and_wrong_arguments(self):
        samples = omnibal.SampleHistogram([3, 6, 3], [2, 10**10, 1])
        self.assertEqual((samples.demands.tolist(), samples.counts.tolist()), ([3, 6], [3, 10**10]))
        plan = omnibal.pack_histogram(samples, 6)
        self.assertEqual((plan.group_count, plan.proven), (10**10 + 2, True))
        with self.assertRaisesRegex(ValueError, "SampleHistogram: counts has 1 elements"):
            omnibal.SampleHistogram([1, 2], [3])
        with self.assertRaisesRegex(ValueError, r"counts\[0\] is -1"):
            omnibal.SampleHistogram([1], [-1])
        with self.assertRaisesRegex(ValueError, "1 and 2 resources"):
            samples.merge(omnibal.count_samples(([1], [2])))
        with self.assertRaisesRegex(ValueError, "capacity has 2 resources, must be 1"):
            omnibal.pack_histogram(samples, (1, 2))
        with self.assertRaisesRegex(ValueError, "shard is 3, must be below shards"):
            omnibal.share_of_shard(plan, 3, 3)
        with self.assertRaisesRegex(ValueError, "no further sample"):
            omnibal.place_samples(plan, None, [4])
        with self.assertRaisesRegex(ValueError, "demands have 2 resources, must have 1"):
            omnibal.place_samples(plan, None, ([4], [4]))


class Warnings(unittest.TestCase):
    def reference(self, amounts, capacity, share):
        """The commonest demand above zero, the largest of equally common ones."""
        values, counts = np.unique(amounts[amounts > 0], return_counts=True)
        if not len(values):
            return None
        best = len(counts) - 1 - int(np.argmax(counts[::-1]))
        commonest, count = int(values[best]), int(counts[best])
        if count < share * len(amounts) or 2 * commonest <= capacity:
            return None
        return (capacity, commonest, count, 2 * commonest)

    def test_they_are_those_of_a_search_by_hand(self):
        random = np.random.RandomState(3)
        seen = 0
        for _ in range(50):
            demands = random.randint(0, 6, (40, 2)) * [1, 100]
            capacity = random.randint(1, 10), int(random.randint(1, 1000))
            share = random.choice([0.0, 0.1, 0.2, 0.5])
            found = omnibal.capacity_warnings(demands, capacity, common_share=share)
            expected = {kind: self.reference(demands[:, kind], capacity[kind], share)
                        for kind in range(2)}
            expected = {kind: row for kind, row in expected.items() if row}
            self.assertEqual({one.kind: (one.capacity, one.commonest, one.samples, one.enough)
                              for one in found}, expected)
            seen += len(found)
        self.assertGreater(seen, 20)

    def test_copies_and_errors(self):
        found = omnibal.capacity_warnings(([5, 5], [1, 1]), (9, 2))
        self.assertEqual(pickle.loads(pickle.dumps(found)), found)
        self.assertNotEqual(found, omnibal.capacity_warnings([5, 5], 8))
        self.assertNotEqual(found[0], 9)
        self.assertEqual(omnibal.capacity_warnings([], 9), [])
        self.assertEqual(omnibal.capacity_warnings([2**62 + 1], 2**62)[0].enough, 2**63 - 1)
        for demands, capacity, share, text in (
                ([1], 0, 0.1, "capacity"), ([-1], 4, 0.1, "-1"), ([1], 4, 1.5, "common_share is 1.5"),
                ([1], (4, 5), 0.1, "capacity has 2 resources, must be 1"),
                ([1.5], 4, 0.1, "the type of demands is float64")):
            with self.assertRaisesRegex(ValueError, "omnibal.capacity_warnings: .*" + text):
                omnibal.capacity_warnings(demands, capacity, common_share=share)


class LevelMetrics(unittest.TestCase):
    def test_they_are_the_formulas(self):
        levels = [[128, 1, 0], [512, 2, 0], [850, 4, 0]]
        packed = omnibal.pack_levels(LENGTHS, levels)
        loads = omnibal.group_loads(packed.groups, LENGTHS)
        squares = omnibal.group_loads(packed.groups, LENGTHS**2)
        schedules = omnibal.level_steps(packed, loads, 4)
        found = omnibal.level_metrics(packed, schedules, LENGTHS)
        idle, attention, padded, shared = [], [], 0, 0
        for level, schedule in enumerate(schedules):
            for step in schedule:
                for values, shares in ((loads, idle), (squares, attention)):
                    totals = [int(values[cell].sum()) for cell in step]
                    shares.append(1 - np.mean(totals) / max(totals))
            first, last = packed.first_groups[level:level + 2]
            padded += levels[level][0] * int(last - first)
            shared += int(loads[first:last].sum()) * (level > 0)
        self.assertAlmostEqual(found.data_balance, np.mean(idle))
        self.assertAlmostEqual(found.attention_balance, np.mean(attention))
        self.assertAlmostEqual(found.communication_ratio, shared / loads.sum())
        self.assertAlmostEqual(found.pad_ratio, 1 - loads.sum() / padded)
        self.assertGreater(found.pad_ratio, 0)
        again = pickle.loads(pickle.dumps(found))
        self.assertEqual((again.data_balance, repr(again)), (found.data_balance, repr(found)))
        with self.assertRaisesRegex(ValueError, "omnibal.level_metrics: .*schedules has 2"):
            omnibal.level_metrics(packed, schedules[:2], LENGTHS)
        with self.assertRaisesRegex(ValueError, "omnibal.level_metrics: lengths have 2 dimensions"):
            omnibal.level_metrics(packed, schedules, [[1]])


if __name__ == "__main__":
    unittest.main()
