// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A model that is as small as can be and yet has encoders, an order of tokens and gradients, in
/// integers modulo 2^64: sums do not depend on the order of their terms, so that gradients on
/// samples that were exchanged must be equal to the last bit.

#include "modality_mix.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace examples {

/// By parameter; adds up over samples and ranks.
struct toy_gradients {
  static constexpr std::size_t encoder_weights = 4;

  std::uint64_t embedding = 0;
  std::uint64_t recurrence = 0;
  std::array<std::array<std::uint64_t, encoder_weights>, modality_count> encoders{};

  toy_gradients& operator+=(toy_gradients const& other);
  [[nodiscard]] friend bool operator==(toy_gradients const&, toy_gradients const&) = default;
};

/// What the language model reads: words of text, and for each piece a mark of its kind.
[[nodiscard]] std::vector<std::uint64_t> script_of(multimodal_sample const& sample);
/// What an encoder reads: a few words for each tile or second.
[[nodiscard]] std::vector<std::uint64_t> content_of(multimodal_sample const& sample,
                                                    std::size_t piece);

/// An encoder takes a weighted sum of a piece; the language model reads its script from left to
/// right, s = recurrence * s + (embedding * word, or what the encoder made of the piece), and its
/// loss is s at the end.
class toy_model {
 public:
  static constexpr std::uint64_t embedding = 0x9e3779b97f4a7c15u;
  static constexpr std::uint64_t recurrence = 0xd1342543de82ef95u;
  static constexpr std::uint64_t encoder_weight(modality kind, std::size_t k) {
    return (static_cast<std::uint64_t>(kind) + 3) * 0xbf58476d1ce4e5b9u + k * k * embedding;
  }

  [[nodiscard]] std::uint64_t encode(modality kind, std::span<std::uint64_t const> content) const;

  /// Adds the gradients of a sample's loss; `outputs` are those of its pieces by kind, in order,
  /// and `output_gradients` receives as many.
  void train(std::span<std::uint64_t const> script,
             std::array<std::span<std::uint64_t const>, modality_count> const& outputs,
             std::array<std::span<std::uint64_t>, modality_count> const& output_gradients,
             toy_gradients& sum) const;

  /// Adds the gradients of an encoder for one of its outputs.
  static void train_encoder(modality kind, std::span<std::uint64_t const> content,
                            std::uint64_t output_gradient, toy_gradients& sum);
};

/// The gradients of a rank's own samples, where they were drawn.
[[nodiscard]] toy_gradients train_at_home(toy_model const& model,
                                          std::vector<multimodal_sample> const& samples);

}  // namespace examples
