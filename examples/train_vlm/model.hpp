// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A vision-language model: a vision transformer over the patches of each image tile, a projector,
/// and a causal language model over packed sequences.

#include "contents.hpp"
#include "options.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <torch/nn.h>

namespace train_vlm {

/// Samples as one sequence of tokens, in which attention stays within each sample.
struct batch {
  /// Tiles x patches x values.
  at::Tensor pixels;
  /// Text and padding, and where these and the tokens of the images are in the sequence.
  at::Tensor text;
  at::Tensor text_at;
  at::Tensor images_at;
  /// The place of each token within its sample.
  at::Tensor positions;
  /// Added to what a token sees of those of its sample: minus infinity for later ones.
  at::Tensor mask;
  /// Where samples begin and end.
  std::vector<std::int64_t> offsets;
  std::int64_t longest = 0;
  /// Tokens with a loss: those before a text token of the same sample; and these text tokens.
  at::Tensor scored_at;
  at::Tensor targets;
};

enum class padding { none, to_longest };

/// One batch of all these samples.
[[nodiscard]] batch make_batch(model_size const& size,
                               std::span<sample_contents const* const> samples, padding padded);

/// A layer of either transformer: attention and a feed-forward network, both after a norm.
class transformer_layer : public torch::nn::Module {
 public:
  transformer_layer(std::int64_t width, std::int64_t heads);

  /// Every token of a tile sees all others: tiles x patches x width.
  [[nodiscard]] at::Tensor forward_tiles(at::Tensor const& tokens);
  /// Every token of a sample sees those before it: tokens x width.
  [[nodiscard]] at::Tensor forward_samples(at::Tensor const& tokens, batch const& of);

 private:
  [[nodiscard]] at::Tensor add_network(at::Tensor const& tokens);

  std::int64_t heads_;
  torch::nn::LayerNorm norm_, network_norm_;
  torch::nn::Linear attention_in_, attention_out_, network_in_, network_out_;
};

class vlm : public torch::nn::Module {
 public:
  explicit vlm(model_size const& size);

  /// What the model says of the token that follows each scored one.
  [[nodiscard]] at::Tensor logits(batch const& of) { return run_chain(0, chain_size(), {}, of); }

  /// The model as a chain of layers, of which a pipeline makes stages: patches, the encoder,
  /// projector and words, the language model, the head.
  [[nodiscard]] std::size_t chain_size() const { return vision_.size() + language_.size() + 3; }
  /// What the layers [first, last) of the chain make of what those before them gave, nothing where
  /// there are none; the last one gives the logits. Without images the encoder gives nothing.
  [[nodiscard]] at::Tensor run_chain(std::size_t first, std::size_t last, at::Tensor tokens,
                                     batch const& of);
  /// The shape of what the first `layers` of the chain give, from one to all but one.
  [[nodiscard]] std::vector<std::int64_t> chain_shape(std::size_t layers, batch const& of) const;
  [[nodiscard]] std::vector<at::Tensor> chain_parameters(std::size_t layer) const;

  /// Which layers keep nothing and are recomputed: those of the encoder, then the others. At the
  /// begin none is.
  void recompute_layers(std::vector<bool> chosen) { recomputed_ = std::move(chosen); }
  /// The sum of the losses of all tokens that have one.
  [[nodiscard]] at::Tensor loss_sum(batch const& of) { return loss_sum(logits(of), of); }
  [[nodiscard]] static at::Tensor loss_sum(at::Tensor const& logits, batch const& of);

 private:
  [[nodiscard]] at::Tensor run_chain_layer(std::size_t layer, at::Tensor const& tokens,
                                           batch const& of);
  [[nodiscard]] at::Tensor project(at::Tensor const& patches);
  [[nodiscard]] std::size_t projector_layer() const { return vision_.size() + 1; }
  [[nodiscard]] at::Tensor embed_positions(at::Tensor const& positions) const;

  /// A layer, kept or recomputed; `number` counts those of both transformers.
  template <class Run>
  [[nodiscard]] at::Tensor run_layer(std::size_t number, at::Tensor const& tokens, Run const& run);

  model_size size_;
  std::vector<bool> recomputed_;
  torch::nn::Linear patches_, projector_in_, projector_out_, head_;
  torch::nn::LayerNorm projector_norm_, last_norm_;
  torch::nn::Embedding words_;
  at::Tensor places_;
  std::vector<std::shared_ptr<transformer_layer>> vision_, language_;
};

}  // namespace train_vlm
