# SPDX-License-Identifier: Apache-2.0
"""What other systems do, written anew from what they publish: to be compared with, not to be used.

Each has the order of growth of the original, so that times may be compared too.
"""

import bisect
import collections
import heapq

import numpy as np


class SegmentTree:
    """The least value that is in the set and not below another: of TRL and LightBinPack."""

    def __init__(self, most):
        self.size = 1
        while self.size < most + 1:
            self.size *= 2
        self.tree = [0] * (2 * self.size)

    def set(self, place, value):
        tree, i = self.tree, self.size + place
        tree[i] = value
        while i > 1:
            i //= 2
            left, right = tree[2 * i], tree[2 * i + 1]
            tree[i] = left if left >= right else right

    def least(self, wanted):
        tree, i = self.tree, 1
        if tree[1] < wanted:
            return 0
        while i < self.size:
            i *= 2
            if tree[i] < wanted:
                i += 1
        return tree[i]


def best_fit_decreasing(lengths, capacity):
    """Bins of TRL's `bfd`, and of LightBinPack's `obfd`: the same number of them."""
    tree = SegmentTree(capacity)
    with_room = collections.defaultdict(collections.deque)
    bins = []
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    for i in order:
        length = lengths[i]
        if length == 0:
            continue
        room = tree.least(length)
        if room:
            of = with_room[room].popleft()
            if not with_room[room]:
                tree.set(room, 0)
        else:
            room, of = capacity, []
            bins.append(of)
        of.append(i)
        left = room - length
        if left:
            with_room[left].append(of)
            tree.set(left, left)
    return bins


def grouped_best_fit(lengths, capacity, ranks):
    """Groups of bins of LightBinPack's `ogbfd`: best fit among groups by their emptiest bin, which
    takes the sample."""
    tree = SegmentTree(capacity)
    with_room = collections.defaultdict(list)
    groups, rooms = [], []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        room = tree.least(lengths[i])
        if room:
            g = with_room[room].pop()
            if not with_room[room]:
                tree.set(room, 0)
        else:
            g = len(groups)
            groups.append([[] for _ in range(ranks)])
            rooms.append([capacity] * ranks)
        emptiest = max(range(ranks), key=lambda r: rooms[g][r])
        groups[g][emptiest].append(i)
        rooms[g][emptiest] -= lengths[i]
        left = max(rooms[g])
        if left:
            with_room[left].append(g)
            tree.set(left, left)
    return groups


def differencing(costs, parts, equal_size):
    """Parts of verl's `get_seqlen_balanced_partitions`: tuples of sums, the two with the largest
    spread combined again and again."""
    order = sorted(range(len(costs)), key=lambda i: (costs[i], i))
    states = []
    step = parts if equal_size else 1
    for first in range(0, len(order), step):
        sets = [(costs[i], [i]) for i in order[first : first + step]]
        sets += [(0, [])] * (parts - len(sets))
        sets.sort(key=lambda of: -of[0])
        heapq.heappush(states, (sets[-1][0] - sets[0][0], first, sets))
    while len(states) > 1:
        _, number, one = heapq.heappop(states)
        _, _, other = heapq.heappop(states)
        sets = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(one, reversed(other))]
        sets.sort(key=lambda of: -of[0])
        heapq.heappush(states, (sets[-1][0] - sets[0][0], number, sets))
    return [sorted(items) for _, items in states[0][2]]


def in_order(sample_id_seqlens, capacity, ranks, most=None):
    """Packs of Megatron-Core's `DpBalancedScheduler`: samples in their order, then samples moved
    into packs of their own until their number is a multiple of the ranks."""
    packs, load = [[]], 0
    for number, length in sample_id_seqlens:
        if packs[-1] and (load + length > capacity or (most and len(packs[-1]) >= most)):
            packs.append([])
            load = 0
        packs[-1].append(number)
        load += length
    place = len(packs) - 1
    while len(packs) % ranks:
        if len(packs[place]) > 1:
            packs.append([packs[place].pop()])
        else:
            place -= 1
    return packs


def random_groups(items, capacity, rng):
    """One round of OmniBal's grouping."""
    order = list(range(len(items)))
    rng.shuffle(order)
    groups, images, tokens = [], 0, 0
    for i in order:
        _, more_images, more_tokens = items[i]
        images += more_images
        tokens += more_tokens
        if not groups or images > capacity[0] or tokens > capacity[1]:
            groups.append([])
            images, tokens = more_images, more_tokens
        groups[-1].append(items[i])
    return groups


def iterative_sampling(items, seed, images, capacity, tokens, rounds):
    """OmniBal's iterative sampling and filtering; no item exceeds a capacity."""
    groups = random_groups(items, capacity, np.random.RandomState(seed))
    result = []
    for number in range(rounds - 1):
        left = []
        for group in groups:
            enough = sum(i[1] for i in group) >= images or sum(i[2] for i in group) >= tokens
            (result.append if enough else left.extend)(group)
        groups = random_groups(left, capacity, np.random.RandomState(seed + number))
    return result + groups


def even_chunks(indices, lengths, chunks):
    """LLaVA's `split_to_even_chunks`: each index to the chunk with the least sum that has room."""
    if len(indices) % chunks:
        return [indices[c::chunks] for c in range(chunks)]
    result = [[] for _ in range(chunks)]
    sums = [0] * chunks
    for i in indices:
        least = sums.index(min(sums))
        result[least].append(i)
        sums[least] += lengths[i]
        if len(result[least]) == len(indices) // chunks:
            sums[least] = float("inf")
    return result


def first_that_fit(lengths, capacity):
    """Micro-batches of VeOmni's buffer, all samples at once: the first ones that still fit."""
    waiting = list(range(len(lengths)))
    result = []
    while waiting:
        load, taken = 0, []
        for i in waiting:
            if not taken or lengths[i] <= capacity - load:
                load += lengths[i]
                taken.append(i)
            if load >= capacity:
                break
        chosen = set(taken)
        waiting = [i for i in waiting if i not in chosen]
        result.append(taken)
    return result


def fullest_first(lengths, capacity):
    """Knapsacks of LLaMA-Factory's `greedy_knapsack`: one after the other takes the largest length
    that still fits."""
    left = sorted(lengths)
    result = []
    while left:
        room, taken = capacity, []
        while left and left[0] <= room:
            taken.append(left.pop(bisect.bisect(left, room) - 1))
            room -= taken[-1]
        result.append(taken)
    return result


def packed_in_equal_numbers(weights, packs):
    """EPLB's packing: the largest first, each to the lightest pack with room."""
    loads, items = [0.0] * packs, [[] for _ in range(packs)]
    for item in sorted(range(len(weights)), key=lambda i: -weights[i]):
        room = [p for p in range(packs) if len(items[p]) < len(weights) // packs]
        pack = min(room, key=lambda p: loads[p])
        loads[pack] += weights[item]
        items[pack].append(item)
    return items


def eplb_greedy(weights, replicas, groups, nodes, ranks):
    """EPLB's experts of the ranks of one layer."""
    size = len(weights) // groups
    of_groups = [sum(weights[g * size:(g + 1) * size]) for g in range(groups)]
    result = []
    for own in packed_in_equal_numbers(of_groups, nodes):
        experts = [e for g in own for e in range(g * size, (g + 1) * size)]
        copies = dict.fromkeys(experts, 1)
        for _ in range(replicas // nodes - len(experts)):
            copies[max(experts, key=lambda e: weights[e] / copies[e])] += 1
        slots = [e for e in experts for _ in range(copies[e])]
        shares = [weights[e] / copies[e] for e in slots]
        result += [[slots[i] for i in rank]
                   for rank in packed_in_equal_numbers(shares, ranks // nodes)]
    return np.array(result)


def llep_greedy(counts, ranks, factor):
    """The copies and loads of LLEP's plan: experts with the most tokens first, and tokens above the
    cap to the rank with the least assigned and pending tokens, up to its cap."""
    local = len(counts) // ranks
    cap = max(1, int(factor * (sum(counts) // ranks)))
    loads = [sum(counts[r * local:(r + 1) * local]) for r in range(ranks)]
    copies = 0
    for expert in sorted(range(len(counts)), key=lambda e: -counts[e]):
        home, left = expert // local, counts[expert]
        loads[home] -= left
        stays = max(0, min(left, cap - loads[home]))
        loads[home] += stays
        left -= stays
        while left:
            to = min((r for r in range(ranks) if r != home), key=lambda r: loads[r])
            tokens = min(left, cap - loads[to]) if loads[to] < cap else left
            loads[to] += tokens
            left -= tokens
            copies += 1
    return copies, loads
