# SPDX-License-Identifier: Apache-2.0
"""Plans of exchanges: their two directions, a step over simulated ranks, orchestration, pieces."""

import copy
import importlib.util
import os
import pathlib
import pickle
import socket
import subprocess
import sys
import threading
import unittest

import numpy as np
import omnibal

ROOT = pathlib.Path(os.environ["OMNIBAL_ROOT"])
sys.path.insert(0, str(ROOT / "examples/programs"))
import exchange_samples

RANDOM = np.random.RandomState(11)
HOMES = np.concatenate([[0], np.cumsum([9, 0, 14, 5, 22])])
COSTS = RANDOM.randint(1, 300, HOMES[-1])
BYTES = RANDOM.randint(1, 9000, HOMES[-1])


def home_groups(offsets):
    return omnibal.Groups(offsets, np.arange(offsets[-1]))


def moved(plan, node_of):
    """The bytes that change the node, by the places of all samples before and after."""
    ranks = np.repeat(np.arange(plan.ranks), np.diff(plan.home_offsets.astype(int)))
    return sum(int(plan.bytes[i]) for rank, group in enumerate(plan.arrivals) for i in group
               if node_of[ranks[i]] != node_of[rank])


class Plans(unittest.TestCase):
    def check(self, plan, offsets=HOMES, sizes=BYTES, node_of=None):
        """Every sample arrives once; sends, counts and bytes agree with the arrivals."""
        ranks = len(offsets) - 1
        self.assertEqual((plan.ranks, len(plan)), (ranks, offsets[-1]))
        self.assertEqual(plan.home_offsets.tolist(), list(offsets))
        self.assertEqual(sorted(plan.arrivals.items.tolist()), list(range(offsets[-1])))
        self.assertEqual(plan.bytes.tolist(), list(sizes))
        arrivals = [set(group.tolist()) for group in plan.arrivals]
        for rank in range(ranks):
            sends = plan.sends(rank)
            for to in range(ranks):
                wanted = [i - offsets[rank] for i in plan.arrivals[to].tolist()
                          if offsets[rank] <= i < offsets[rank + 1]]
                self.assertEqual(sends[to].tolist(), wanted)
                self.assertEqual(plan.send_counts(rank)[to], len(wanted))
                self.assertEqual(plan.receive_counts(to)[rank], len(wanted))
        self.assertEqual(plan.moved_bytes, moved(plan, range(ranks)))
        self.assertEqual(plan.moved_bytes_across_nodes, moved(plan, node_of or range(ranks)))
        values = RANDOM.randint(0, 99, len(plan))
        there = plan.permuted(values)
        self.assertEqual(there.tolist(), values[plan.arrivals.items].tolist())
        back = plan.inverse()
        self.assertEqual(back.permuted(there).tolist(), values.tolist())
        self.assertEqual(back.permuted(there.tolist()), values.tolist())
        self.assertEqual(back.inverse(), plan)
        self.assertEqual(back.inverse().digest, plan.digest)
        self.assertEqual(plan.permuted(np.arange(len(plan)))[plan.departures.items].tolist(),
                         list(range(len(plan))))
        for again in (copy.copy(plan), pickle.loads(pickle.dumps(plan))):
            self.assertEqual((again, again.digest), (plan, plan.digest))
            self.assertEqual(again.moved_bytes_across_nodes, plan.moved_bytes_across_nodes)
        return arrivals

    def test_a_plan_is_even_and_moves_less_than_lpt(self):
        plan = omnibal.make_plan(HOMES, COSTS, BYTES)
        self.check(plan)
        loads = np.array([COSTS[group].sum() for group in plan.arrivals])
        self.assertLessEqual(loads.max(), 1.01 * max(COSTS.sum() / 5, COSTS.max()) + 1)
        other = omnibal.make_plan(HOMES, COSTS, BYTES, balance=omnibal.lpt)
        self.check(other)
        self.assertLess(plan.moved_bytes, other.moved_bytes)

    def test_it_is_rebalance_of_the_homes(self):
        found = omnibal.rebalance(home_groups(HOMES), COSTS, BYTES)
        plan = omnibal.make_plan(HOMES, COSTS, BYTES)
        self.assertEqual([sorted(g.tolist()) for g in plan.arrivals],
                         [sorted(g.tolist()) for g in found])

    def test_a_function_balances_and_its_parts_go_where_their_bytes_are(self):
        asked = []

        def balance(costs, parts):
            asked.append((costs, parts))
            return omnibal.lpt(costs, parts)

        plan = omnibal.make_plan(HOMES, COSTS, BYTES, balance=balance)
        self.assertIs(asked[0][0], COSTS)
        self.assertEqual([parts for _, parts in asked], [5])
        parts = omnibal.lpt(COSTS, 5)
        found = omnibal.placement(home_groups(HOMES), parts, BYTES)
        self.assertEqual(plan.moved_bytes, found.moved_bytes)
        self.assertEqual({frozenset(group.tolist()) for group in plan.arrivals},
                         {frozenset(group.tolist()) for group in parts})
        with self.assertRaisesRegex(TypeError, "make_plan: balance returned a list, must return Groups"):
            omnibal.make_plan(HOMES, COSTS, BYTES, balance=lambda costs, parts: [])
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            omnibal.make_plan(HOMES, COSTS, BYTES, balance=lambda costs, parts: 1 // 0)

    def test_given_parts_several_kinds_of_costs_nodes_and_speeds(self):
        parts = omnibal.deal(COSTS, 5)
        plan = omnibal.make_plan(HOMES, parts, BYTES)
        self.check(plan)
        self.assertEqual(plan.arrivals, parts)
        rows = np.stack([COSTS, RANDOM.randint(1, 50, len(COSTS))], axis=1)
        for costs in (rows, tuple(rows.T), COSTS / 7):
            self.check(omnibal.make_plan(HOMES, costs, BYTES))
        node_of = [0, 0, 1, 1, 1]
        self.check(omnibal.make_plan(HOMES, COSTS, BYTES, node_of=node_of), node_of=node_of)
        plan = omnibal.make_plan(HOMES, COSTS, BYTES, ranks_per_node=2)
        self.check(plan, node_of=[0, 0, 1, 1, 2])
        speeds = [1, 1, 1, 1, 4]
        fast = omnibal.make_plan(HOMES, COSTS, BYTES, speeds=speeds)
        times = [COSTS[group].sum() / speed for group, speed in zip(fast.arrivals, speeds)]
        self.assertLess(max(times), 1.02 * COSTS.sum() / 8 + 1)

    def test_placement_is_the_best_of_all_orders(self):
        import itertools
        for seed in range(20):
            random = np.random.RandomState(seed)
            sizes = random.randint(0, 50, 12)
            home = omnibal.Groups([0, 3, 6, 9, 12], np.arange(12))
            parts = omnibal.Groups([0, 3, 6, 9, 12], random.permutation(12))

            def bytes_of(order, width):
                return sum(int(sizes[i]) for part, rank in enumerate(order) for i in parts[part]
                           if i // 3 // width != rank // width)

            found = omnibal.placement(home, parts, sizes, ranks_per_node=2)
            best = min((bytes_of(o, 2), bytes_of(o, 1)) for o in itertools.permutations(range(4)))
            self.assertTrue(found.proven)
            self.assertEqual((found.moved_bytes_across_nodes, found.moved_bytes), best)
            self.assertEqual((bytes_of(found.rank_of_part, 2), bytes_of(found.rank_of_part, 1)), best)
            self.assertEqual(found.min_across_nodes, best[0])

    def test_composition(self):
        first = omnibal.make_plan(HOMES, COSTS, BYTES)
        between = first.arrivals.offsets
        second = omnibal.make_plan(between, first.permuted(COSTS)[::-1], first.permuted(BYTES))
        both = omnibal.compose(first, second, BYTES)
        self.check(both)
        values = np.arange(len(COSTS))
        self.assertEqual(both.permuted(values).tolist(),
                         second.permuted(first.permuted(values)).tolist())
        with self.assertRaisesRegex(ValueError, "compose: the second plan does not start where"):
            omnibal.compose(first, first, BYTES)

    def test_errors(self):
        for arguments, text in (
                (([0], COSTS, BYTES), "home_offsets has 1 elements"),
                (([1, 2], [1], [1]), r"home_offsets\[0\] is 1"),
                ((HOMES, COSTS[1:], BYTES), "costs has 49 elements, but there are 50"),
                ((HOMES, COSTS, -BYTES), "bytes"),
                ((HOMES, omnibal.lpt(COSTS, 4), BYTES), "there are 4 parts for 5 ranks")):
            with self.assertRaisesRegex(ValueError, "omnibal.make_plan: .*" + text):
                omnibal.make_plan(*arguments)
        with self.assertRaisesRegex(ValueError, "balance is 'lpt', must be rebalance"):
            omnibal.make_plan(HOMES, COSTS, BYTES, balance="lpt")
        plan = omnibal.make_plan(HOMES, COSTS, BYTES)
        with self.assertRaisesRegex(IndexError, "no rank 5 among 5"):
            plan.sends(5)
        with self.assertRaisesRegex(ValueError, "ExchangePlan.permuted: values has 3 elements"):
            plan.permuted([1, 2, 3])


class World:
    """Ranks as threads that exchange arrays: a stand-in for a process group."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.barrier = threading.Barrier(ranks)
        self.slots = [None] * ranks

    def share(self, rank, value):
        """Returns the values of all ranks."""
        self.slots[rank] = value
        self.barrier.wait()
        result = list(self.slots)
        self.barrier.wait()
        return result

    def all_to_all(self, rank):
        def call(sent, send_sizes, receive_sizes):
            assert sum(send_sizes) == len(sent)
            ends = np.cumsum(send_sizes)
            pieces = [sent[end - size:end] for end, size in zip(ends, send_sizes)]
            received = [pieces_of[rank] for pieces_of in self.share(rank, pieces)]
            assert [len(piece) for piece in received] == receive_sizes
            return np.concatenate(received)
        return call

    def run(self, body):
        results = [None] * self.ranks
        errors = []

        def one(rank):
            try:
                results[rank] = body(rank)
            except Exception as error:
                errors.append(error)
                self.barrier.abort()

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(self.ranks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return results


class Example(unittest.TestCase):
    def test_samples_arrive_and_results_return(self):
        for ranks in (1, 2, 5):
            world = World(ranks)
            results = world.run(lambda rank: exchange_samples.run(
                rank, ranks, lambda values: world.share(rank, values), world.all_to_all(rank)))
            self.assertEqual(len({plan.digest for plan, _, _ in results}), 1)
            _, before, after = results[0]
            self.assertEqual(sum(before), sum(after))
            self.assertLessEqual(max(after), max(before))

    def test_elements_after_the_exchange(self):
        sizes = RANDOM.randint(0, 7, HOMES[-1])
        plan = omnibal.make_plan(HOMES, COSTS, BYTES)
        values = [np.full(size, sample) for sample, size in enumerate(sizes)]
        world = World(5)
        found = world.run(lambda rank: exchange_samples.exchange(
            world.all_to_all(rank), plan, rank,
            np.concatenate([np.zeros(0, dtype=int), *values[HOMES[rank]:HOMES[rank + 1]]]), sizes))
        for rank, elements in enumerate(found):
            wanted = np.concatenate([values[i] for i in plan.arrivals[rank]])
            self.assertEqual(elements.tolist(), wanted.tolist())

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
    def test_over_gloo(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        names = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
        command = [sys.executable, str(ROOT / "examples/programs/exchange_samples.py")]
        ranks = [subprocess.Popen(command, env={**os.environ, **names, "RANK": str(rank)},
                                  stdout=subprocess.PIPE, text=True) for rank in range(2)]
        printed = [rank.communicate(timeout=300)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0])
        self.assertRegex(printed[0], "before, 1.* after")


class Orchestration(unittest.TestCase):
    HOMES = [0, 4, 4, 10]
    COSTS = RANDOM.randint(1, 99, 10)
    PIECES = [RANDOM.randint(0, 4, 10), RANDOM.randint(0, 2, 10)]

    def encoders(self):
        return [(pieces, RANDOM.randint(1, 50, pieces.sum()), RANDOM.randint(1, 500, pieces.sum()),
                 RANDOM.randint(1, 100, pieces.sum())) for pieces in self.PIECES]

    def test_outputs_of_a_sample_are_with_it_in_order(self):
        encoders = self.encoders()
        plans = omnibal.make_orchestration(self.HOMES, self.COSTS, self.COSTS * 4, encoders)
        self.assertEqual(plans.samples.arrivals.items.size, 10)
        for number, (pieces, costs, sizes, outputs) in enumerate(encoders):
            owner = np.repeat(np.arange(10), pieces)
            to_encoder, to_model = plans.inputs[number], plans.outputs[number]
            self.assertEqual(to_encoder.bytes.tolist(), sizes.tolist())
            loads = [costs[group].sum() for group in to_encoder.arrivals]
            self.assertLessEqual(max(loads), 1.01 * max(costs.sum() / 3, costs.max()) + costs.max())
            # Pieces numbered before, moved to the encoders and then to the model.
            arrived = to_model.permuted(to_encoder.permuted(np.arange(len(owner))))
            self.assertEqual(to_model.bytes.tolist(),
                             outputs[to_encoder.arrivals.items].tolist())
            ends = to_model.arrivals.offsets
            for rank, samples in enumerate(plans.samples.arrivals):
                own = arrived[ends[rank]:ends[rank + 1]]
                begins = plans.pieces_of_samples(number, rank)
                for k, sample in enumerate(samples):
                    self.assertEqual(own[begins[k]:begins[k + 1]].tolist(),
                                     np.flatnonzero(owner == sample).tolist())

    def test_pickle_and_errors(self):
        encoders = self.encoders()
        plans = omnibal.make_orchestration(self.HOMES, self.COSTS, self.COSTS, encoders)
        again = pickle.loads(pickle.dumps(plans))
        self.assertEqual((again.digest, again.inputs, again.outputs),
                         (plans.digest, plans.inputs, plans.outputs))
        self.assertEqual(again.pieces_of_samples(1, 2).tolist(),
                         plans.pieces_of_samples(1, 2).tolist())
        self.assertEqual(
            omnibal.make_orchestration(self.HOMES, self.COSTS, self.COSTS).samples,
            omnibal.make_plan(self.HOMES, self.COSTS, self.COSTS))
        with self.assertRaisesRegex(ValueError, r"encoders\[0\] must have four lists"):
            omnibal.make_orchestration(self.HOMES, self.COSTS, self.COSTS, [self.COSTS])
        with self.assertRaisesRegex(ValueError, "make_orchestration: the number of costs"):
            broken = (encoders[0][0], encoders[0][1][1:], *encoders[0][2:])
            omnibal.make_orchestration(self.HOMES, self.COSTS, self.COSTS, [broken])
        with self.assertRaisesRegex(IndexError, "no encoder 2"):
            plans.pieces_of_samples(2, 0)


class Pieces(unittest.TestCase):
    LENGTHS = np.random.RandomState(5).randint(1, 400, 24)
    COST = [[1.0, 0.01, 1e-3 / d] for d in range(1, 5)]
    PLAN = omnibal.context_groups(LENGTHS, 4, COST)

    def test_every_token_is_on_one_rank_of_its_group(self):
        for multiple, padding in ((1, "to_multiple"), (8, "to_multiple"), (2, "to_equal_pieces")):
            layout = omnibal.context_pieces(self.PLAN, self.LENGTHS, 4, multiple=multiple,
                                            padding=padding)
            covered = [np.zeros(length, dtype=int) for length in self.LENGTHS]
            for sample, first, tokens in zip(layout.samples, layout.firsts, layout.tokens):
                covered[sample][first:first + tokens] += 1
            self.assertTrue(all((tokens == 1).all() for tokens in covered))
            self.assertTrue((layout.padded_tokens % multiple == 0).all())
            self.assertEqual(sorted(layout.cells.items), list(range(len(layout))))
            offsets = self.PLAN.micro_step_offsets
            for step in range(layout.micro_steps):
                for g in range(offsets[step], offsets[step + 1]):
                    first, degree = int(self.PLAN.first_ranks[g]), int(self.PLAN.degrees[g])
                    self.check_group(layout, step, first, degree, self.PLAN.samples[g], multiple)

    def check_group(self, layout, step, first, degree, samples, multiple):
        ranks = range(first, first + degree)
        totals = []
        for rank in ranks:
            cell = layout.cells[step * layout.ranks + rank]
            self.assertEqual(set(layout.samples[cell]) - set(samples.tolist()), set())
            ids = [layout.firsts[piece] + np.arange(layout.padded_tokens[piece]) for piece in cell]
            ids = np.concatenate([np.zeros(0, dtype=int), *ids])
            self.assertEqual(layout.position_ids(step, rank).tolist(), ids.tolist())
            by_sample = [layout.padded_tokens[cell][layout.samples[cell] == s].sum() for s in samples]
            self.assertEqual(layout.cu_seqlens(step, rank).tolist(), [0, *np.cumsum(by_sample)])
            totals.append(sum(by_sample))
        self.assertLessEqual(max(totals) - min(totals), multiple)

    def test_the_most_padded_tokens_of_a_rank(self):
        plan = omnibal.context_groups([397], 4, [[1e9, 0, 0]] * 3 + [[1.0, 0.0, 0.0]], degrees=[4])
        for options in ({}, {"multiple": 8}, {"multiple": 2, "padding": "to_equal_pieces"}):
            layout = omnibal.context_pieces(plan, [397], 4, **options)
            most = max(layout.padded_tokens[cell].sum() for cell in layout.cells)
            self.assertEqual(omnibal.padded_piece_tokens(397, 4, **options), most)
        with self.assertRaisesRegex(ValueError, "padded_piece_tokens: degree is 0"):
            omnibal.padded_piece_tokens(5, 0)

    def test_the_exchange_brings_the_pieces_of_each_rank(self):
        layout = omnibal.context_pieces(self.PLAN, self.LENGTHS, 4)
        homes = [0, 6, 12, 18, 24]
        plan = omnibal.context_exchange(layout, homes, 8)
        for rank in range(4):
            cells = [layout.cells[step * 4 + rank] for step in range(layout.micro_steps)]
            self.assertEqual(plan.arrivals[rank].tolist(), np.concatenate(cells).tolist())
        self.assertEqual(plan.bytes.tolist(), (8 * layout.tokens).tolist())
        self.assertEqual(plan.home_offsets.tolist(), layout.piece_offsets[homes].tolist())
        self.assertEqual(plan.inverse().inverse(), plan)
        with self.assertRaisesRegex(ValueError, "context_exchange: home_offsets ends with 20"):
            omnibal.context_exchange(layout, [0, 6, 12, 18, 20], 8)

    def test_pickle_and_errors(self):
        layout = omnibal.context_pieces(self.PLAN, self.LENGTHS, 4, multiple=2)
        again = pickle.loads(pickle.dumps(layout))
        self.assertEqual(again.padded_tokens.tolist(), layout.padded_tokens.tolist())
        self.assertEqual(again.cells, layout.cells)
        with self.assertRaisesRegex(ValueError, "padding is 'none', must be to_multiple or"):
            omnibal.context_pieces(self.PLAN, self.LENGTHS, 4, padding="none")
        with self.assertRaisesRegex(ValueError, "context_pieces: .*"):
            omnibal.context_pieces(self.PLAN, self.LENGTHS, 2)
        with self.assertRaisesRegex(IndexError, "no such micro-step or rank"):
            layout.position_ids(0, 4)


if __name__ == "__main__":
    unittest.main()
