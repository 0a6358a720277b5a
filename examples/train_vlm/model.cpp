// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include "recompute.hpp"

#include <omnibal/grouping.hpp>
#include <omnibal/pack/cu_seqlens.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace train_vlm {

namespace {

template <class Number>
at::Tensor copied(std::vector<Number> const& numbers) {
  return torch::tensor(at::ArrayRef<Number>(numbers), at::TensorOptions(at::kLong));
}

/// Queries, keys and values: ... x heads x tokens x width of a head.
at::Tensor attend(at::Tensor const& qkv, at::Tensor const& mask) {
  double const scale = 1.0 / std::sqrt(static_cast<double>(qkv.size(-1)));
  at::Tensor scores = at::matmul(qkv[0] * scale, qkv[1].transpose(-2, -1));
  if (mask.defined()) scores = scores + mask;
  return at::matmul(at::softmax(scores, -1), qkv[2]);
}

}  // namespace

batch make_batch(model_size const& size, std::span<sample_contents const* const> samples,
                 padding padded) {
  auto const patch_values = size.tile_tokens * 4 * size.patch_values;
  std::vector<std::int64_t> lengths, image_tokens;
  std::vector<float> pixels;
  for (sample_contents const* sample : samples) {
    auto const tiles = static_cast<std::int64_t>(sample->pixels.size()) / patch_values;
    image_tokens.push_back(tiles * size.tile_tokens);
    lengths.push_back(image_tokens.back() + static_cast<std::int64_t>(sample->text.size()));
    pixels.insert(pixels.end(), sample->pixels.begin(), sample->pixels.end());
  }
  if (padded == padding::to_longest && !lengths.empty()) {
    std::ranges::fill(lengths, *std::ranges::max_element(lengths));
  }

  omnibal::grouping pack;
  for (std::uint32_t s = 0; s != samples.size(); ++s) pack.push(s);
  pack.close();
  auto const offsets = omnibal::cu_seqlens(pack, lengths);
  std::vector<std::int32_t> positions(static_cast<std::size_t>(offsets.tokens(0)));
  offsets.position_ids(0, positions.begin());

  std::vector<std::int64_t> text, text_at, images_at, scored_at, targets;
  for (std::size_t s = 0; s != samples.size(); ++s) {
    std::int64_t const first = offsets[0][s];
    std::int64_t const text_first = first + image_tokens[s];
    auto const& words = samples[s]->text;
    for (std::int64_t at = first; at != first + lengths[s]; ++at) {
      if (at < text_first) {
        images_at.push_back(at);
        continue;
      }
      auto const word = static_cast<std::size_t>(at - text_first);
      bool const is_padding = word >= words.size();
      text_at.push_back(at);
      text.push_back(is_padding ? 0 : words[word]);
      if (is_padding || at == first) continue;
      scored_at.push_back(at - 1);
      targets.push_back(words[word]);
    }
  }

  batch result;
  auto const values = static_cast<std::int64_t>(pixels.size());
  result.pixels = torch::tensor(at::ArrayRef<float>(pixels), at::TensorOptions(at::kFloat))
                      .view({values / patch_values, size.tile_tokens * 4, size.patch_values});
  result.text = copied(text);
  result.text_at = copied(text_at);
  result.images_at = copied(images_at);
  result.positions = copied(positions).to(at::kFloat);
  result.offsets.assign(offsets[0].begin(), offsets[0].end());
  result.longest = offsets.longest(0);
  double const never = -std::numeric_limits<double>::infinity();
  result.mask = at::full({result.longest, result.longest}, never, at::kFloat).triu(1);
  result.scored_at = copied(scored_at);
  result.targets = copied(targets);
  return result;
}

transformer_layer::transformer_layer(std::int64_t width, std::int64_t heads)
    : heads_(heads),
      norm_(torch::nn::LayerNormOptions({width})),
      network_norm_(torch::nn::LayerNormOptions({width})),
      attention_in_(width, 3 * width),
      attention_out_(width, width),
      network_in_(width, 4 * width),
      network_out_(4 * width, width) {
  register_module("norm", norm_);
  register_module("network_norm", network_norm_);
  register_module("attention_in", attention_in_);
  register_module("attention_out", attention_out_);
  register_module("network_in", network_in_);
  register_module("network_out", network_out_);
}

at::Tensor transformer_layer::add_network(at::Tensor const& tokens) {
  return tokens + network_out_(at::gelu(network_in_(network_norm_(tokens))));
}

at::Tensor transformer_layer::forward_tiles(at::Tensor const& tokens) {
  auto const tiles = tokens.size(0), patches = tokens.size(1), width = tokens.size(2);
  at::Tensor const qkv = attention_in_(norm_(tokens))
                             .view({tiles, patches, 3, heads_, width / heads_})
                             .permute({2, 0, 3, 1, 4});
  at::Tensor const seen = attend(qkv, {}).transpose(1, 2).reshape({tiles, patches, width});
  return add_network(tokens + attention_out_(seen));
}

at::Tensor transformer_layer::forward_samples(at::Tensor const& tokens, batch const& of) {
  auto const count = tokens.size(0), width = tokens.size(1);
  at::Tensor const qkv =
      attention_in_(norm_(tokens)).view({count, 3, heads_, width / heads_}).permute({1, 2, 0, 3});
  std::vector<at::Tensor> seen;
  for (std::size_t s = 0; s + 1 < of.offsets.size(); ++s) {
    auto const length = of.offsets[s + 1] - of.offsets[s];
    at::Tensor const own = qkv.slice(2, of.offsets[s], of.offsets[s + 1]);
    at::Tensor const own_mask = of.mask.slice(0, 0, length).slice(1, 0, length);
    seen.push_back(attend(own, own_mask).transpose(0, 1).reshape({length, width}));
  }
  return add_network(tokens + attention_out_(at::cat(seen)));
}

vlm::vlm(model_size const& size)
    : size_(size),
      patches_(size.patch_values, size.vision_width),
      projector_in_(4 * size.vision_width, size.width),
      projector_out_(size.width, size.width),
      head_(size.width, size.vocabulary),
      projector_norm_(torch::nn::LayerNormOptions({4 * size.vision_width})),
      last_norm_(torch::nn::LayerNormOptions({size.width})),
      words_(size.vocabulary, size.width) {
  register_module("patches", patches_);
  register_module("projector_norm", projector_norm_);
  register_module("projector_in", projector_in_);
  register_module("projector_out", projector_out_);
  register_module("words", words_);
  register_module("last_norm", last_norm_);
  register_module("head", head_);
  places_ =
      register_parameter("places", at::randn({4 * size.tile_tokens, size.vision_width}) * 0.02);
  auto const add = [&](auto& layers, std::string const& name, std::int64_t width) {
    layers.push_back(std::make_shared<transformer_layer>(width, size.heads));
    register_module(name + std::to_string(layers.size()), layers.back());
  };
  for (std::int64_t i = 0; i != size.vision_layers; ++i) add(vision_, "vision", size.vision_width);
  for (std::int64_t i = 0; i != size.layers; ++i) add(language_, "language", size.width);
}

template <class Run>
at::Tensor vlm::run_layer(std::size_t number, at::Tensor const& tokens, Run const& run) {
  bool const is_recomputed = number < recomputed_.size() && recomputed_[number];
  return is_recomputed ? recomputed(run, tokens) : run(tokens);
}

/// Four patches become a token of the language model.
at::Tensor vlm::project(at::Tensor const& patches) {
  at::Tensor const merged = patches.reshape({-1, 4 * size_.vision_width});
  return projector_out_(at::gelu(projector_in_(projector_norm_(merged))));
}

at::Tensor vlm::embed_positions(at::Tensor const& positions) const {
  std::int64_t const half = size_.width / 2;
  at::Tensor const powers =
      at::arange(half, at::kFloat) * (-std::log(1e4) / static_cast<double>(half));
  at::Tensor const angles = positions.unsqueeze(1) * powers.exp();
  return at::cat({angles.sin(), angles.cos()}, 1);
}

at::Tensor vlm::run_chain_layer(std::size_t layer, at::Tensor const& tokens, batch const& of) {
  bool const has_images = of.pixels.size(0) != 0;
  if (layer < projector_layer()) {
    if (!has_images) return {};
    if (layer == 0) return patches_(of.pixels) + places_;
    auto const run = [of_vision = vision_[layer - 1]](at::Tensor const& in) {
      return of_vision->forward_tiles(in);
    };
    return run_layer(layer - 1, tokens, run);
  }
  if (layer == projector_layer()) {
    at::Tensor const text = embed_positions(of.positions).index_add(0, of.text_at, words_(of.text));
    return has_images ? text.index_add(0, of.images_at, project(tokens)) : text;
  }
  if (layer + 1 == chain_size()) return head_(last_norm_(tokens.index_select(0, of.scored_at)));
  // Runs again in the backward pass, which may come after `of` is gone.
  auto const run = [of_language = language_[layer - projector_layer() - 1],
                    of](at::Tensor const& in) { return of_language->forward_samples(in, of); };
  return run_layer(layer - 2, tokens, run);
}

at::Tensor vlm::run_chain(std::size_t first, std::size_t last, at::Tensor tokens, batch const& of) {
  for (std::size_t layer = first; layer != last; ++layer) {
    tokens = run_chain_layer(layer, tokens, of);
  }
  return tokens;
}

std::vector<std::int64_t> vlm::chain_shape(std::size_t layers, batch const& of) const {
  if (layers > projector_layer()) return {of.positions.size(0), size_.width};
  return {of.pixels.size(0), 4 * size_.tile_tokens, size_.vision_width};
}

std::vector<at::Tensor> vlm::chain_parameters(std::size_t layer) const {
  std::vector<at::Tensor> result;
  auto const add = [&](auto const& module) {
    for (at::Tensor const& parameter : module->parameters()) result.push_back(parameter);
  };
  if (layer == 0) {
    add(patches_);
    result.push_back(places_);
  } else if (layer < projector_layer()) {
    add(vision_[layer - 1]);
  } else if (layer == projector_layer()) {
    add(projector_norm_);
    add(projector_in_);
    add(projector_out_);
    add(words_);
  } else if (layer + 1 != chain_size()) {
    add(language_[layer - projector_layer() - 1]);
  } else {
    add(last_norm_);
    add(head_);
  }
  return result;
}

at::Tensor vlm::loss_sum(at::Tensor const& logits, batch const& of) {
  return at::cross_entropy_loss(logits, of.targets, {}, at::Reduction::Sum);
}

}  // namespace train_vlm
