// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Layers that attend to the tokens of tiles: those of a resampler or Q-Former behind a vision
/// tower, and those between the layers of a language model.

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/vision_transformer.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <stdexcept>

namespace examples {

/// Errors: `std::overflow_error` above 2^63 - 1.
inline std::int64_t product_of(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (std::int64_t const factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) {
      throw std::overflow_error("tokens and queries of tiles exceed 2^63 - 1");
    }
  }
  return result;
}

/// Errors: `std::overflow_error` above 2^63 - 1.
inline std::int64_t sum_of(std::int64_t first, std::int64_t second) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(first, second, &result)) {
    throw std::overflow_error("the bytes that a cut sends exceed 2^63 - 1");
  }
  return result;
}

/// A layer of the queries of each tile. They attend to one another, where it has an attention of
/// its own, and to `seen` tokens of their tile.
struct query_layer {
  omnibal::transformer layer{};
  std::int64_t queries = 0;
  std::int64_t seen = 0;

  [[nodiscard]] omnibal::layer_cost operator()(omnibal::micro_batch_work const& batch,
                                               omnibal::parallel_degrees const& degrees = {},
                                               omnibal::byte_sizes const& bytes = {}) const {
    return layer(
        {.documents = omnibal::equal_sequences({.count = batch.tiles, .length = queries}),
         .context = {product_of({batch.tiles, seen}), product_of({batch.tiles, queries, seen})}},
        degrees, bytes);
  }
};

/// A layer of the documents whose tokens attend to the tiles of one image, the last one before
/// them. An image has up to `tiles_of_image` tiles.
struct cross_layer {
  omnibal::transformer layer{};
  std::int64_t tile_tokens = 0;
  std::int64_t tiles_of_image = 1;

  [[nodiscard]] omnibal::layer_cost operator()(omnibal::micro_batch_work const& batch,
                                               omnibal::parallel_degrees const& degrees = {},
                                               omnibal::byte_sizes const& bytes = {}) const {
    std::int64_t const seen = product_of({std::min(batch.tiles, tiles_of_image), tile_tokens});
    return layer({.documents = batch.documents,
                  .context = {product_of({batch.tiles, tile_tokens}),
                              product_of({batch.documents.tokens, seen})}},
                 degrees, bytes);
  }
};

/// A layer of the queries of each window of a clip. They attend to one another, and to the tokens
/// of their window if the layer has cross-attention. All clips together are cut into windows.
struct window_layer {
  omnibal::transformer layer{};
  std::int64_t queries = 0;
  std::int64_t window = 1;

  [[nodiscard]] omnibal::layer_cost operator()(omnibal::micro_batch_work const& batch,
                                               omnibal::parallel_degrees const& degrees = {},
                                               omnibal::byte_sizes const& bytes = {}) const {
    std::int64_t const tokens = batch.clips.tokens;
    std::int64_t const windows = tokens / window + (tokens % window == 0 ? 0 : 1);
    bool const attends = layer.cross.context_width != 0;
    return layer({.documents = omnibal::equal_sequences({.count = windows, .length = queries}),
                  .context = {attends ? product_of({windows, window}) : 0,
                              attends ? product_of({windows, queries, window}) : 0}},
                 degrees, bytes);
  }
};

/// Layers of queries of each window of a clip (Granite speech). The first of so many layers sees
/// the window.
struct window_tower {
  std::int64_t queries = 0;
  std::int64_t window = 1;
  std::int64_t layers = 0;
  omnibal::transformer layer{};
  std::int64_t cross_every = 1;

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    for (std::int64_t l = 0; l != layers; ++l) {
      window_layer one{layer, queries, window};
      if (l % cross_every != 0) one.layer.cross = {};
      visit(one, std::int64_t{1});
    }
  }
};

/// A layer of the documents whose tokens attend to one clip, such as the speech that they write
/// down.
struct heard_layer {
  omnibal::transformer layer{};

  [[nodiscard]] omnibal::layer_cost operator()(omnibal::micro_batch_work const& batch,
                                               omnibal::parallel_degrees const& degrees = {},
                                               omnibal::byte_sizes const& bytes = {}) const {
    auto const& clips = batch.clips;
    std::int64_t const seen =
        clips.count == 0 ? 0
                         : clips.tokens / clips.count + (clips.tokens % clips.count == 0 ? 0 : 1);
    return layer({.documents = batch.documents,
                  .context = {clips.tokens, product_of({batch.documents.tokens, seen})}},
                 degrees, bytes);
  }
};

/// Numbers that later layers read and that a cut sends, in addition to the output of the layer
/// before the cut.
struct carried_numbers {
  std::int64_t of_tile = 0;
  /// Of a token of the audio tower.
  std::int64_t of_clip_token = 0;
  /// Of a token of the documents.
  std::int64_t of_token = 0;
  /// Of a token of the documents, in keys and values, which tensor-parallel ranks share by heads.
  std::int64_t of_token_in_heads = 0;

  [[nodiscard]] friend bool operator==(carried_numbers const&, carried_numbers const&) = default;
  carried_numbers& operator+=(carried_numbers const& other) {
    for (auto const member : {&carried_numbers::of_tile, &carried_numbers::of_clip_token,
                              &carried_numbers::of_token, &carried_numbers::of_token_in_heads}) {
      this->*member = sum_of(this->*member, other.*member);
    }
    return *this;
  }
};

/// A layer behind which a cut also sends numbers that later layers read.
template <class Layer>
struct passing {
  Layer layer{};
  carried_numbers carried{};

  [[nodiscard]] omnibal::layer_cost operator()(omnibal::micro_batch_work const& batch,
                                               omnibal::parallel_degrees const& degrees = {},
                                               omnibal::byte_sizes const& bytes = {}) const {
    omnibal::layer_cost cost = layer(batch, degrees, bytes);
    bool const is_split = degrees.norms == omnibal::norm_regions::split;
    std::int64_t const ranks = degrees.sequence * (is_split ? degrees.tensor : 1);
    std::int64_t const whole =
        sum_of(sum_of(product_of({batch.tiles, carried.of_tile, bytes.activation}),
                      product_of({batch.clips.tokens, carried.of_clip_token, bytes.activation})),
               product_of({batch.documents.tokens, carried.of_token, bytes.activation}));
    std::int64_t const in_heads =
        product_of({batch.documents.tokens, carried.of_token_in_heads, bytes.activation});
    cost.cut_bytes = sum_of(cost.cut_bytes, share_of(whole, ranks));
    cost.cut_bytes = sum_of(cost.cut_bytes, share_of(in_heads, degrees.sequence * degrees.tensor));
    return cost;
  }

 private:
  /// The share of the rank with the most.
  static std::int64_t share_of(std::int64_t amount, std::int64_t ranks) {
    return amount / ranks + (amount % ranks == 0 ? 0 : 1);
  }
};

/// What makes a fixed number of tokens of each tile, between a tower and its connector.
struct query_tower {
  std::int64_t queries = 0;
  std::int64_t layers = 0;
  /// With cross-attention; where it stands instead of an attention of the queries, they are among
  /// what it sees (perceiver), else they attend to one another in every layer (Q-Former).
  omnibal::transformer layer{};
  /// The first of so many layers sees the tile, the others have no cross-attention.
  std::int64_t cross_every = 1;

  [[nodiscard]] bool is_perceiver() const {
    return layer.cross.placement == omnibal::cross_placement::instead_self;
  }

  template <class Visit>
  void for_each_layer(omnibal::vision_transformer const& tower, Visit&& visit) const {
    std::int64_t const patches = tower.tile_tokens();
    std::int64_t const seen = patches + (is_perceiver() ? queries : 0);
    std::int64_t const last = (layers - 1) / cross_every * cross_every;
    for (std::int64_t l = 0; l != layers; ++l) {
      query_layer one{layer, queries, seen};
      if (l % cross_every != 0) one.layer.cross = {};
      std::int64_t const passed = l < last ? product_of({patches, tower.hidden}) : 0;
      visit(passing<query_layer>{one, {.of_tile = passed}}, std::int64_t{1});
    }
  }
};

/// The last layer of a language model that has attention; the last layer if none has.
/// Precondition: the model has layers.
inline omnibal::transformer const& last_attention_layer(
    omnibal::mixed_language_model const& model) {
  for (auto run = model.runs.rbegin(); run != model.runs.rend(); ++run) {
    if (run->layer.heads != 0) return run->layer;
  }
  return model.runs.back().layer;
}

/// True if layers of the language model have cross-attention of their own.
inline bool has_cross_attention(omnibal::mixed_language_model const& model) {
  return std::ranges::any_of(
      model.runs, [](omnibal::layer_run const& run) { return run.layer.cross.context_width != 0; });
}

/// Visits a language model some of whose layers attend to the tokens of tiles. A cut before the
/// last of these layers also sends the tokens.
template <class Visit>
void visit_with_tiles(omnibal::mixed_language_model const& model, std::int64_t tile_tokens,
                      std::int64_t tiles_of_image, Visit&& visit) {
  auto const attends = [](omnibal::layer_run const& run) {
    return run.layer.cross.context_width != 0;
  };
  auto const last = std::find_if(model.runs.rbegin(), model.runs.rend(), attends).base();
  std::int64_t const passed = product_of({tile_tokens, std::prev(last)->layer.cross.context_width});
  visit(passing<omnibal::embedding>{model.input, {.of_tile = passed}}, std::int64_t{1});
  for (auto run = model.runs.begin(); run != model.runs.end(); ++run) {
    bool const is_before = run < std::prev(last);
    cross_layer const attending{run->layer, tile_tokens, tiles_of_image};
    if (!attends(*run)) {
      visit(passing<omnibal::transformer>{run->layer, {.of_tile = is_before ? passed : 0}},
            run->count);
    } else if (is_before || run->count == 1) {
      visit(passing<cross_layer>{attending, {.of_tile = is_before ? passed : 0}}, run->count);
    } else {
      visit(passing<cross_layer>{attending, {.of_tile = passed}}, run->count - 1);
      visit(passing<cross_layer>{attending, {}}, std::int64_t{1});
    }
  }
  visit(model.output, std::int64_t{1});
  if (model.prediction_layers != 0) visit(model.prediction, model.prediction_layers);
}

/// Layers of cross-attention to the tokens of tiles, one before each run of so many layers of a
/// language model.
struct cross_layers {
  omnibal::transformer layer{};
  std::int64_t every = 1;

  template <class Visit>
  void for_each_layer(omnibal::mixed_language_model const& model, std::int64_t tile_tokens,
                      Visit&& visit) const {
    std::int64_t const last = (model.layers() - 1) / every * every;
    carried_numbers const passed{.of_tile = product_of({tile_tokens, layer.cross.context_width})};
    visit(passing<omnibal::embedding>{model.input, passed}, std::int64_t{1});
    std::int64_t l = 0;
    for (omnibal::layer_run const& run : model.runs) {
      for (std::int64_t const run_end = l + run.count; l < run_end;) {
        carried_numbers const numbers = l < last ? passed : carried_numbers{};
        if (l % every == 0) {
          visit(passing<cross_layer>{{layer, tile_tokens}, numbers}, std::int64_t{1});
        }
        std::int64_t const end = std::min((l / every + 1) * every, run_end);
        visit(passing<omnibal::transformer>{run.layer, numbers}, end - l);
        l = end;
      }
    }
    model.visit_output(visit);
  }
};

}  // namespace examples
