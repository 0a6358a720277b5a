# SPDX-License-Identifier: Apache-2.0
"""Synthetic samples of images and text, their packs and random batches, and their tensors."""

import collections

import numpy as np
import torch

import omnibal

# The contents of a sample follow from its number.
Sample = collections.namedtuple("Sample", "number tiles text")
Batch = collections.namedtuple(
    "Batch", "pixels text text_at images_at positions offsets bounds shortest longest scored_at "
    "targets")
# Share, tiles with their shares, median of the text: docs/evidence/synthetic_data.md.
KINDS = [
    (0.42, {1: 0.34, 3: 0.22, 5: 0.30, 7: 0.14}, 80),
    (0.18, {5: 0.25, 7: 0.40, 9: 0.335, 13: 0.015}, 240),
    (0.10, {2: 0.40, 3: 0.25, 4: 0.18, 5: 0.08, 6: 0.05, 8: 0.04}, 180),
    (0.30, {0: 1.0}, 420),
]


def draw_sample(number, random, tile_tokens):
    """A sample of a random kind. Texts are shorter if a tile has fewer than 256 tokens."""
    _, tiles, median = KINDS[random.choice(len(KINDS), p=[kind[0] for kind in KINDS])]
    count = random.choice(list(tiles), p=list(tiles.values()))
    text = (16 + median * random.lognormal(0, 1)) * tile_tokens / 256
    return Sample(number, int(count), max(2, round(text)))


class Data:
    """Samples in packs whose number is given, and the same samples in as many random batches."""

    def __init__(self, size, capacity, packs, seed=1):
        """capacity: tiles and tokens of a pack. Complexity: that of `omnibal.best_packing`."""
        random = np.random.RandomState(seed)
        self.size = size
        self.capacity = capacity
        drawn = [draw_sample(i, random, size.tile_tokens) for i in range(8 * packs)]
        drawn = [one for one in drawn
                 if one.tiles <= capacity[0] and self.length(one) <= capacity[1]]
        groups = list(self.pack(drawn))
        if len(groups) < packs:
            raise ValueError(f"the samples fill {len(groups)} packs of {packs}")
        chosen = random.permutation(len(groups))[:packs]
        self.packs = [[drawn[i] for i in groups[g]] for g in chosen]
        every = [one for pack in self.packs for one in pack]
        self.samples = [every[i] for i in random.permutation(len(every))]
        self.random = [[self.samples[i] for i in part]
                       for part in np.array_split(np.arange(len(every)), packs)]

    def length(self, sample):
        return sample.tiles * self.size.tile_tokens + sample.text

    def demands(self, samples):
        return ([one.tiles for one in samples], [self.length(one) for one in samples])

    def pack(self, samples):
        return omnibal.best_packing(self.demands(samples), self.capacity)

    def tokens(self, samples):
        return sum(map(self.length, samples))

    def features(self, samples, is_padded):
        """What the time depends on: tokens, squares of lengths, tiles."""
        lengths = np.array([self.length(one) for one in samples], dtype=np.int64)
        if is_padded:
            lengths[:] = lengths.max()
        return [int(lengths.sum()), int((lengths ** 2).sum()), sum(one.tiles for one in samples)]

    def loss_tokens(self, samples):
        return sum(one.text - (one.tiles == 0) for one in samples)


def words_of(sample, vocabulary):
    """Words that a model can learn: a walk with a step of the sample, and one random word in eight."""
    random = np.random.RandomState(sample.number)
    used = min(64, vocabulary)
    walk = random.randint(used) + random.randint(1, 4) * np.arange(sample.text)
    noise = random.randint(used, size=sample.text)
    return np.where(random.randint(8, size=sample.text) == 0, noise, walk % used)


def pixels_of(samples, size, device, dtype):
    """Tiles x patches x values, the same in every batch with these samples."""
    shape = (4 * size.tile_tokens, size.patch_values)
    parts = [torch.empty(0, *shape, device=device)]
    for one in samples:
        generator = torch.Generator(device).manual_seed(one.number)
        parts.append(torch.randn(one.tiles, *shape, generator=generator, device=device))
    return torch.cat(parts).to(dtype)


def make_batch(data, samples, is_padded, device, dtype):
    """Samples as one sequence, padded to the longest one or not at all."""
    size = data.size
    lengths = [data.length(one) for one in samples]
    if is_padded:
        lengths = [max(lengths)] * len(lengths)
    pack = omnibal.Groups([0, len(samples)], range(len(samples)))
    bounds = omnibal.cu_seqlens(pack, lengths)[0]
    places = collections.defaultdict(list)
    for one, begin, end in zip(samples, bounds.tolist(), bounds[1:].tolist()):
        first = begin + one.tiles * size.tile_tokens
        words = words_of(one, size.vocabulary)
        skipped = 1 if one.tiles == 0 else 0
        places["images_at"].append(np.arange(begin, first))
        places["text_at"].append(np.arange(first, end))
        places["text"].append(np.pad(words, (0, end - first - one.text)))
        places["positions"].append(np.arange(end - begin))
        places["scored_at"].append(np.arange(first + skipped, first + one.text) - 1)
        places["targets"].append(words[skipped:])
    tensors = {name: torch.from_numpy(np.concatenate(parts).astype(np.int64)).to(device)
               for name, parts in places.items()}
    return Batch(pixels=pixels_of(samples, size, device, dtype),
                 offsets=torch.from_numpy(np.array(bounds, dtype=np.int32)).to(device),
                 bounds=bounds.tolist(), shortest=min(lengths), longest=max(lengths), **tensors)
