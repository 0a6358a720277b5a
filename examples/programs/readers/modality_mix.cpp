// SPDX-License-Identifier: Apache-2.0
#include "modality_mix.hpp"

#include <omnibal/cost/audio_transformer.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>

namespace examples {

namespace {

using omnibal::rng::below;
using omnibal::rng::engine;

/// Of Whisper's encoder.
constexpr std::int64_t sound_width = 1280;

/// Of the audio encoder for one of the language model.
constexpr std::int64_t sound_tokens_per_token = 2;

/// In [least, least * 2^octaves), as many in each octave as in all larger ones.
std::int64_t with_tail(engine& random, std::int64_t least, std::uint64_t octaves) {
  std::uint64_t octave = 0;
  while (octave + 1 < octaves && below(random, 2) == 0) ++octave;
  auto const first = static_cast<std::uint64_t>(least) << octave;
  return static_cast<std::int64_t>(first + below(random, first));
}

void add_images(engine& random, multimodal_sample& sample) {
  for (std::uint64_t left = 1 + below(random, 4); left != 0; --left) {
    // A tile and a thumbnail, up to twelve tiles and a thumbnail.
    auto const tiles = static_cast<std::int64_t>(below(random, 13));
    sample.pieces.push_back({modality::image, tiles < 2 ? 1 : tiles + 1});
  }
}

void add_sounds(engine& random, multimodal_sample& sample) {
  for (std::uint64_t left = 1 + below(random, 3); left != 0; --left) {
    // Two seconds to a minute.
    sample.pieces.push_back({modality::sound, with_tail(random, 100, 5)});
  }
}

}  // namespace

std::vector<std::int64_t> multimodal_sample::sizes_of(modality kind) const {
  std::vector<std::int64_t> result;
  for (media_piece const& piece : pieces) {
    if (piece.kind == kind) result.push_back(piece.size);
  }
  return result;
}

std::vector<multimodal_sample> draw_samples(mix_draw const& which) {
  std::vector<multimodal_sample> samples;
  samples.reserve(which.samples);
  engine random(which.seed, which.step << 32 | which.rank);
  for (std::size_t i = 0; i != which.samples; ++i) {
    auto& sample = samples.emplace_back(multimodal_sample{which.rank * which.samples + i, 0, {}});
    // Of twenty samples six are text alone, seven have images, four sound and three both.
    std::uint64_t const kind = below(random, 20);
    bool const has_images = kind >= 10;
    bool const has_sounds = kind >= 6 && kind < 13;
    sample.text_tokens = with_tail(random, has_images || has_sounds ? 32 : 128, 7);
    if (has_images) add_images(random, sample);
    if (has_sounds) add_sounds(random, sample);
    if (has_images && has_sounds) {
      for (std::size_t k = sample.pieces.size(); k > 1; --k) {
        std::swap(sample.pieces[k - 1], sample.pieces[below(random, k)]);
      }
    }
  }
  return samples;
}

namespace {

struct resampler_stack {
  vision_part const& part;

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    if (part.resampler) part.resampler->for_each_layer(part.tower.layer(), visit);
  }
};

omnibal::quadratic_cost tower_cost(vision_part const& part) {
  return omnibal::tile_cost(part.tower) + omnibal::tile_cost(resampler_stack{part});
}

/// What a token of a document takes more where it sees a tile.
std::int64_t seen_token_cost(model_description const& model) {
  auto const flops = [&](std::int64_t tiles, std::int64_t tokens) {
    omnibal::micro_batch_work const batch{
        .tiles = tiles, .documents = omnibal::equal_sequences({.count = tokens, .length = 1})};
    std::int64_t sum = 0;
    for (auto const& layer : omnibal::layer_costs(model.language_layers(), batch)) {
      sum += layer.flops();
    }
    return sum;
  };
  return flops(1, 1) - flops(1, 0) - flops(0, 1);
}

}  // namespace

modality_costs::modality_costs()
    : modality_costs(find_model("internvit-6b+llama3-70b", model_parts::both)) {}

modality_costs::modality_costs(model_description const& model, modality_rates const& rates)
    : rates_(rates),
      tile_bytes_(3 * model.vision->tower.layer().image_size *
                  model.vision->tower.layer().image_size),
      tile_tokens_(model.vision->connector.tile_tokens),
      document_tokens_(model.document_tokens_of_tile()),
      width_(model.vision->connector.output),
      tile_(tower_cost(*model.vision)),
      clip_(32 *
            omnibal::audio_transformer{.hidden = sound_width, .heads = 20, .mlp = 4 * sound_width}
                .sample_cost()),
      document_(omnibal::document_cost(model.language_layers())),
      seen_tile_(omnibal::tile_cost(model.language_layers()).linear),
      seen_token_(seen_token_cost(model)) {}

std::int64_t modality_costs::convolution_time(modality kind, std::int64_t size) const {
  if (kind == modality::image) return 0;
  // Multiplications of a token: two frames of bands, then one output of two frames.
  constexpr std::int64_t forward = 2 * 3 * sound_width * (2 * 128 + sound_width);
  return nanoseconds(3 * forward * size, rates_.flops);
}

std::int64_t modality_costs::tokens_of(modality kind, std::int64_t size) const {
  return kind == modality::image ? size * tile_tokens_
                                 : (size + sound_tokens_per_token - 1) / sound_tokens_per_token;
}

std::int64_t modality_costs::language_tokens(multimodal_sample const& sample) const {
  std::int64_t tokens = sample.text_tokens;
  for (media_piece const& piece : sample.pieces) {
    tokens += piece.kind == modality::image ? piece.size * document_tokens_
                                            : tokens_of(piece.kind, piece.size);
  }
  return tokens;
}

std::int64_t modality_costs::language_time(multimodal_sample const& sample) const {
  std::int64_t const tokens = language_tokens(sample);
  std::int64_t tiles = 0;
  for (std::int64_t const size : sample.sizes_of(modality::image)) tiles += size;
  std::int64_t const seen = tiles == 0 ? 0 : tiles * seen_tile_ + tokens * seen_token_;
  return nanoseconds(document_(tokens) + seen, rates_.flops);
}

std::int64_t modality_costs::input_bytes(modality kind, std::int64_t size) const {
  // Two spectra of 128 bands for a token.
  constexpr std::int64_t bytes_of_token = 2 * 128 * 2;
  return size * (kind == modality::image ? tile_bytes_ : bytes_of_token);
}

std::int64_t modality_costs::output_bytes(modality kind, std::int64_t size) const {
  return 2 * width_ * tokens_of(kind, size);
}

void batch_measures::add_rank(std::vector<multimodal_sample> const& samples,
                              modality_costs const& costs) {
  for (multimodal_sample const& sample : samples) {
    times.push_back(costs.language_time(sample));
    bytes.push_back(modality_costs::text_bytes(sample));
    for (std::size_t m = 0; m != modality_count; ++m) {
      auto const kind = static_cast<modality>(m);
      encoder& of_kind = encoders[m];
      auto const sizes = sample.sizes_of(kind);
      of_kind.piece_counts.push_back(static_cast<std::uint32_t>(sizes.size()));
      for (std::int64_t const size : sizes) {
        of_kind.times.push_back(costs.encoder_time(kind, size));
        of_kind.convolution_times.push_back(costs.convolution_time(kind, size));
        of_kind.bytes.push_back(costs.input_bytes(kind, size));
        of_kind.output_bytes.push_back(costs.output_bytes(kind, size));
      }
    }
  }
  offsets.push_back(static_cast<std::uint32_t>(offsets.back() + samples.size()));
}

}  // namespace examples
