# SPDX-License-Identifier: Apache-2.0
"""The model of examples/train_vlm in Python: a vision transformer over the patches of each image tile,
a projector, and a causal language model over samples of different lengths."""

import collections
import inspect
import math

import torch
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

# Tokens of the language model for a tile; the encoder sees four patches for each of them.
Size = collections.namedtuple(
    "Size", "vision_width vision_layers width layers heads vocabulary tile_tokens patch_values")


def attend_in_turn(query, key, value, batch):
    """Causal attention within each sample, one sample after the other: tokens x heads x width."""
    parts = []
    for begin, end in zip(batch.bounds, batch.bounds[1:]):
        own = (one[begin:end].transpose(0, 1).unsqueeze(0) for one in (query, key, value))
        seen = scaled_dot_product_attention(*own, is_causal=True)
        parts.append(seen.squeeze(0).transpose(0, 1))
    return torch.cat(parts)


def varlen_attention():
    """The attention of PyTorch 2.10 and newer. First versions had is_causal, later ones a window."""
    from torch.nn.attention.varlen import varlen_attn

    has_flag = "is_causal" in inspect.signature(varlen_attn).parameters
    causal = {"is_causal": True} if has_flag else {"window_size": (-1, 0)}

    def attend(query, key, value, batch):
        return varlen_attn(query, key, value, batch.offsets, batch.offsets, batch.longest,
                           batch.longest, **causal)

    return attend


def flash_attention():
    from flash_attn import flash_attn_varlen_func

    def attend(query, key, value, batch):
        return flash_attn_varlen_func(query, key, value, batch.offsets, batch.offsets,
                                      batch.longest, batch.longest, causal=True)

    return attend


def nested_attention():
    def attend(query, key, value, batch):
        offsets = batch.offsets.long()
        nested = (torch.nested.nested_tensor_from_jagged(
            one.contiguous(), offsets, min_seqlen=batch.shortest,
            max_seqlen=batch.longest).transpose(1, 2) for one in (query, key, value))
        return scaled_dot_product_attention(*nested, is_causal=True).transpose(1, 2).values()

    return attend


def largest_difference(attend, batch, heads, width, device, dtype):
    """The difference of outputs and gradients from attention sample by sample, over the largest."""
    generator = torch.Generator(device).manual_seed(1)
    shape = (batch.bounds[-1], 3, heads, width)
    given = torch.randn(shape, generator=generator, device=device, dtype=dtype)
    results = []
    for one in (attend_in_turn, attend):
        values = given.clone().requires_grad_(True)
        seen = one(*values.unbind(1), batch)
        seen.float().square().sum().backward()
        results.append((seen.detach().float(), values.grad.float()))
    return max(float((a - b).abs().max() / a.abs().max()) for a, b in zip(*results))


def choose_attention(batch, heads, width, device, dtype):
    """The name and the function of the first attention that runs and has the right result."""
    every = {"torch.nn.attention.varlen": varlen_attention, "flash_attn": flash_attention,
             "torch.nested": nested_attention}
    for name, make in every.items():
        try:
            attend = make()
            difference = largest_difference(attend, batch, heads, width, device, dtype)
        except (ImportError, AttributeError, RuntimeError, NotImplementedError, TypeError,
                ValueError, AssertionError) as error:
            print(f"attention by {name} does not run: {str(error).splitlines()[:1]}")
            continue
        if difference < 0.03:
            return name, attend
        print(f"attention by {name} is wrong by {difference:.2g}")
    return "scaled_dot_product_attention, sample by sample", attend_in_turn


class Layer(torch.nn.Module):
    """A layer of either transformer: attention and a feed-forward network, both after a norm."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.LayerNorm(width)
        self.attention_in = torch.nn.Linear(width, 3 * width)
        self.attention_out = torch.nn.Linear(width, width)
        self.network_norm = torch.nn.LayerNorm(width)
        self.network_in = torch.nn.Linear(width, 4 * width)
        self.network_out = torch.nn.Linear(4 * width, width)

    def add(self, tokens, seen):
        tokens = tokens + self.attention_out(seen)
        return tokens + self.network_out(gelu(self.network_in(self.network_norm(tokens))))

    def forward_tiles(self, tokens):
        """Every patch of a tile sees all others: tiles x patches x width."""
        tiles, patches, width = tokens.shape
        qkv = self.attention_in(self.norm(tokens))
        qkv = qkv.view(tiles, patches, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        seen = scaled_dot_product_attention(*qkv.unbind(0))
        return self.add(tokens, seen.transpose(1, 2).reshape(tokens.shape))

    def forward_samples(self, tokens, batch, attend):
        """Every token of a sample sees those before it: tokens x width."""
        count, width = tokens.shape
        qkv = self.attention_in(self.norm(tokens)).view(count, 3, self.heads, width // self.heads)
        return self.add(tokens, attend(*qkv.unbind(1), batch).reshape(count, width))


class Vlm(torch.nn.Module):
    def __init__(self, size, attend):
        super().__init__()
        self.size = size
        self.attend = attend
        self.is_recomputed = False
        self.patches = torch.nn.Linear(size.patch_values, size.vision_width)
        self.places = torch.nn.Parameter(
            0.02 * torch.randn(4 * size.tile_tokens, size.vision_width))
        self.vision = torch.nn.ModuleList(
            Layer(size.vision_width, size.heads) for _ in range(size.vision_layers))
        self.projector_norm = torch.nn.LayerNorm(4 * size.vision_width)
        self.projector_in = torch.nn.Linear(4 * size.vision_width, size.width)
        self.projector_out = torch.nn.Linear(size.width, size.width)
        self.words = torch.nn.Embedding(size.vocabulary, size.width)
        self.language = torch.nn.ModuleList(
            Layer(size.width, size.heads) for _ in range(size.layers))
        self.last_norm = torch.nn.LayerNorm(size.width)
        self.head = torch.nn.Linear(size.width, size.vocabulary)

    def run(self, layer, *given):
        """A layer that keeps its activations, or one that keeps its input and runs again."""
        if not self.is_recomputed:
            return layer(*given)
        return checkpoint(layer, *given, use_reentrant=False, preserve_rng_state=False)

    def encode(self, pixels):
        """Four patches become a token of the language model."""
        tokens = self.patches(pixels) + self.places
        for layer in self.vision:
            tokens = self.run(layer.forward_tiles, tokens)
        merged = tokens.reshape(-1, 4 * self.size.vision_width)
        return self.projector_out(gelu(self.projector_in(self.projector_norm(merged))))

    def embed_positions(self, positions):
        half = self.size.width // 2
        powers = torch.arange(half, device=positions.device) * (-math.log(1e4) / half)
        angles = positions.float().unsqueeze(1) * powers.exp()
        return torch.cat([angles.sin(), angles.cos()], 1).to(self.words.weight.dtype)

    def logits(self, batch):
        """The prediction of the token after each token with a loss."""
        tokens = self.embed_positions(batch.positions)
        tokens = tokens.index_add(0, batch.text_at, self.words(batch.text))
        if batch.pixels.shape[0] != 0:
            tokens = tokens.index_add(0, batch.images_at, self.encode(batch.pixels))
        for layer in self.language:
            tokens = self.run(layer.forward_samples, tokens, batch, self.attend)
        return self.head(self.last_norm(tokens.index_select(0, batch.scored_at)))

    def loss_sum(self, batch):
        """The sum of the losses of all tokens that have one."""
        return cross_entropy(self.logits(batch).float(), batch.targets, reduction="sum")
