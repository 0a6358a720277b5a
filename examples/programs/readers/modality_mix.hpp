// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Samples of text, images and sound, and what they take in each phase of a multimodal model.

#include "model_file.hpp"

#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/exchange/make_orchestration.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace examples {

/// The kinds of pieces that have an encoder.
enum class modality : std::uint8_t { image, sound };
inline constexpr std::size_t modality_count = 2;
inline constexpr std::array<std::string_view, modality_count> encoder_names{"vision encoder",
                                                                            "audio encoder"};

/// A piece of a sample: its tiles, or its tokens in the audio encoder, 50 for each second.
struct media_piece {
  modality kind;
  std::int64_t size;

  [[nodiscard]] friend bool operator==(media_piece const&, media_piece const&) = default;
};

struct multimodal_sample {
  /// Where it was drawn, unique in a batch.
  std::uint64_t number;
  std::int64_t text_tokens;
  /// In the order in which they stand in the text. Many samples have none.
  std::vector<media_piece> pieces;

  /// The sizes of its pieces of one kind, in order.
  [[nodiscard]] std::vector<std::int64_t> sizes_of(modality kind) const;
};

/// The samples that a rank draws for a step: conversations with images, with sound, with both and
/// with neither, whose lengths have heavy tails. The same for equal numbers everywhere.
struct mix_draw {
  std::uint64_t seed = 1024;
  std::uint64_t step = 0;
  std::size_t rank = 0;
  std::size_t samples = 16;
};
[[nodiscard]] std::vector<multimodal_sample> draw_samples(mix_draw const& which);

/// What a device reaches in a second: in the vision tower, and in all else.
struct modality_rates {
  std::int64_t tower_flops = 400'000'000'000'000;
  std::int64_t flops = 400'000'000'000'000;
};

/// The nanoseconds that a device takes forward and backward, and bytes, for the vision tower and
/// the language model of a model and the encoder of Whisper large on as much sound as there is. A
/// second of sound becomes 25 tokens of the language model.
class modality_costs {
 public:
  /// InternViT-6B and Llama 3 70B.
  modality_costs();
  /// Precondition: the model has both parts.
  explicit modality_costs(model_description const& model, modality_rates const& rates = {});

  [[nodiscard]] std::int64_t encoder_time(modality kind, std::int64_t size) const {
    return kind == modality::image ? nanoseconds(tile_(size), rates_.tower_flops)
                                   : nanoseconds(clip_(size), rates_.flops);
  }
  /// The convolutions in front of an audio encoder: three frames wide, of 128 bands and then of its
  /// width, two frames for a token. `encoder_time` is without them; images have none.
  [[nodiscard]] std::int64_t convolution_time(modality kind, std::int64_t size) const;
  [[nodiscard]] std::int64_t language_time(multimodal_sample const& sample) const;
  [[nodiscard]] std::int64_t language_tokens(multimodal_sample const& sample) const;

  /// Pixels of a byte, or Mel spectra in two bytes.
  [[nodiscard]] std::int64_t input_bytes(modality kind, std::int64_t size) const;
  /// What the encoder makes, in the width of the language model and two bytes.
  [[nodiscard]] std::int64_t output_bytes(modality kind, std::int64_t size) const;
  /// Tokens and labels.
  [[nodiscard]] static std::int64_t text_bytes(multimodal_sample const& sample) {
    return 8 * sample.text_tokens;
  }

 private:
  static std::int64_t nanoseconds(std::int64_t flops, std::int64_t rate) {
    return flops / std::max<std::int64_t>(rate / 1'000'000'000, 1);
  }
  /// Of the language model.
  [[nodiscard]] std::int64_t tokens_of(modality kind, std::int64_t size) const;

  modality_rates rates_;
  std::int64_t tile_bytes_;
  std::int64_t tile_tokens_;
  /// Of these, what stands in a document.
  std::int64_t document_tokens_;
  std::int64_t width_;
  omnibal::quadratic_cost tile_;
  omnibal::quadratic_cost clip_;
  omnibal::quadratic_cost document_;
  /// FLOPs of cross-attention: of a tile, and of a token of a document that sees one.
  std::int64_t seen_tile_;
  std::int64_t seen_token_;
};

/// What `make_orchestration` takes, for the samples of all ranks.
struct batch_measures {
  struct encoder {
    std::vector<std::uint32_t> piece_counts;
    std::vector<std::int64_t> times;
    std::vector<std::int64_t> convolution_times;
    std::vector<std::int64_t> bytes;
    std::vector<std::int64_t> output_bytes;
  };

  std::vector<std::uint32_t> offsets{0};
  std::vector<std::int64_t> times;
  std::vector<std::int64_t> bytes;
  std::array<encoder, modality_count> encoders;

  /// Adds the samples of the next rank.
  void add_rank(std::vector<multimodal_sample> const& samples, modality_costs const& costs);

  /// `balance` makes the parts of each phase.
  template <class Balance = omnibal::rebalance_fn>
  [[nodiscard]] auto language(Balance const& balance = {}) const {
    return omnibal::language_phase{std::span(times), std::span(bytes), balance};
  }
  template <class Balance = omnibal::rebalance_fn>
  [[nodiscard]] auto of_encoders(Balance const& balance = {}) const {
    auto const measures = [&](encoder const& one) {
      return omnibal::encoder_phase{std::span(one.piece_counts), std::span(one.times),
                                    std::span(one.bytes), std::span(one.output_bytes), balance};
    };
    static_assert(modality_count == 2);
    return std::array{measures(encoders[0]), measures(encoders[1])};
  }
};

}  // namespace examples
