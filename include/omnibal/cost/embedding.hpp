// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The first and the last layers of a model: from tokens or pixels to vectors, and from vectors to
/// the loss.

#include <omnibal/config.hpp>
#include <omnibal/cost/detail/image_tokens.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/detail/model_limits.hpp>
#include <omnibal/detail/quotients.hpp>

#include <algorithm>
#include <cstdint>

namespace omnibal::inline v0 {

namespace detail {

/// Adds `count` square matrices of residual streams that read `inputs` different inputs. Their
/// outputs are scaled to the length of the first stream and kept.
inline void add_stream_products(layer_tally& tally, int128 rows, std::int64_t hidden,
                                std::int64_t count, std::int64_t inputs) {
  if (count == 0) return;
  add_whole(tally, rows, {hidden, int128{hidden} * count});
  tally.keep(tally.matrix_input_bytes(rows * hidden * inputs), tensor_sharding::at_norm,
             backward_use::for_weights);
  int128 const outputs = tally.activation_bytes(rows * hidden * count);
  tally.keep(outputs, tensor_sharding::at_norm);
  tally.moved(2 * outputs, tensor_sharding::at_norm);
}

}  // namespace detail

/// Embeddings of a token for each layer (Gemma 3n, Gemma 4). The embedding adds a normalized
/// product of the token embedding to them. Each layer multiplies its part by a gate
/// (`transformer::layer_input_size`). If `size` is 0, there are none.
struct layer_embeddings {
  std::int64_t vocabulary = 0;
  std::int64_t layers = 0;
  /// The size of the embedding of a token for one layer.
  std::int64_t size = 0;

  [[nodiscard]] friend bool operator==(layer_embeddings const&, layer_embeddings const&) = default;
};

/// The token embedding of a language model. The lookup has no FLOPs and keeps 8 bytes for the index
/// of each token. The vectors of all tokens are sent at the cut. Tensor-parallel ranks share the
/// vocabulary, which is rounded up to a multiple of the number of ranks. With `for_layers`, this
/// layer computes and keeps the inputs of all layers; the bytes at the cut do not include them.
///
/// Complexity, memory, determinism and errors as `transformer`.
struct embedding {
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;
  /// The number of learned positions, which every rank has; 0 means none.
  std::int64_t positions = 0;
  training_mode training = training_mode::all;
  layer_embeddings for_layers{};
  /// The number of learned numbers in addition to the matrix, such as the weights of a norm.
  std::int64_t other_parameters = 0;
  /// The number of streams of residual sums (`residual_streams`). Matrices compute all streams
  /// except the first.
  std::int64_t streams = 1;

  /// Returns the cost of the embedding for `batch.documents`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    using detail::int128;
    using detail::tensor_sharding;
    constexpr std::int64_t index_bytes = 8;
    constexpr char const* name = "embedding";
    detail::layer_tally tally(name, degrees, bytes, training, detail::recomputed_tensors::nothing);
    detail::check_width(name, "vocabulary", vocabulary);
    detail::check_width(name, "hidden", hidden);
    detail::check_between(name, "positions", positions, 0, detail::max_width);
    detail::check_sequences(name, "documents", batch.documents);
    int128 const rows = tally.in_sequence(batch.documents.tokens);
    int128 const output_bytes = tally.activation_bytes(rows * hidden);
    tally.parameters(detail::rounded_up(vocabulary, tally.tensor()) * hidden,
                     tensor_sharding::split);
    tally.parameters(int128{positions} * hidden, tensor_sharding::whole);
    detail::check_between(name, "other_parameters", other_parameters, 0, detail::max_width);
    tally.parameters(other_parameters, tensor_sharding::whole);
    if (for_layers.size != 0) add_layer_inputs(tally, rows);
    detail::check_between(name, "streams", streams, 1, detail::max_streams);
    detail::add_stream_products(tally, rows, hidden, streams - 1, 1);
    tally.keep(index_bytes * rows, tensor_sharding::whole, detail::backward_use::for_weights);
    tally.moved(2 * output_bytes, tensor_sharding::at_norm);
    tally.widest(output_bytes, tensor_sharding::at_norm);
    return tally.result({index_bytes * rows, tensor_sharding::whole},
                        {streams * output_bytes, tensor_sharding::at_norm});
  }

 private:
  void add_layer_inputs(detail::layer_tally& tally, detail::int128 rows) const {
    using detail::tensor_sharding;
    detail::check_width(tally.function(), "for_layers.vocabulary", for_layers.vocabulary);
    detail::check_width(tally.function(), "for_layers.layers", for_layers.layers);
    detail::check_width(tally.function(), "for_layers.size", for_layers.size);
    detail::int128 const width = detail::int128{for_layers.layers} * for_layers.size;
    detail::int128 const words = detail::rounded_up(for_layers.vocabulary, tally.tensor());
    tally.parameters(words * width, tensor_sharding::split);
    tally.parameters(for_layers.size, tensor_sharding::whole);
    detail::add_whole(tally, rows, {hidden, width});
    tally.keep(tally.matrix_input_bytes(rows * hidden), tensor_sharding::whole,
               detail::backward_use::for_weights);
    // The product before its norm, and the sum that the layers read.
    tally.keep(2 * tally.activation_bytes(rows * width), tensor_sharding::whole);
  }
};

/// The first layer of a vision tower, a matrix from the pixels of a patch to the width. The layer
/// also has class tokens, learned positions and, in CLIP, a norm. Every tensor-parallel rank has
/// the whole layer.
///
/// Forward FLOPs are 2 * patches * channels * patch_size^2 * hidden; the pixels are kept. For
/// images with their own sizes, class tokens are counted as patches. Complexity, memory,
/// determinism and errors as `transformer`.
struct patch_embedding {
  std::int64_t hidden = 0;
  /// The side of a tile in pixels; 0 means that there are no tiles.
  std::int64_t image_size = 0;
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  std::int64_t class_tokens = 0;
  /// The number of learned positions; for tiles, one position for each token.
  std::int64_t positions = 0;
  bool has_bias = true;
  training_mode training = training_mode::all;
  /// True if a norm precedes the layers of the tower.
  bool has_norm = false;
  norm_kind norm = norm_kind::layer;
  /// The number of learned numbers that belong to no product, norm or bias, such as mask tokens.
  std::int64_t other_parameters = 0;

  /// Returns the cost of the layer for `batch.tiles` and `batch.images`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    using detail::int128;
    using detail::tensor_sharding;
    detail::layer_tally tally(name, degrees, bytes, training, detail::recomputed_tensors::nothing);
    check();
    std::int64_t const in_tile =
        image_size == 0 ? 0 : detail::tile_tokens(name, image_size, patch_size, class_tokens);
    auto const images = detail::image_tokens(name, batch, in_tile);
    int128 const rows = tally.in_sequence(images.tokens);
    int128 const patches =
        tally.in_sequence(int128{images.tokens} - int128{batch.tiles} * class_tokens);
    int128 const pixels = int128{channels} * patch_size * patch_size;
    int128 const input_bytes = tally.activation_bytes(patches * pixels);
    int128 const output_bytes = tally.activation_bytes(rows * hidden);
    tally.parameters((pixels + (has_bias ? 1 : 0) + class_tokens + positions) * hidden,
                     tensor_sharding::whole);
    tally.parameters(other_parameters, tensor_sharding::whole);
    tally.linear_flops(2 * patches * pixels * hidden, tensor_sharding::whole);
    tally.keep(input_bytes, tensor_sharding::whole, detail::backward_use::for_weights);
    tally.moved(2 * output_bytes, tensor_sharding::whole);
    tally.widest(input_bytes + output_bytes, tensor_sharding::whole);
    if (has_norm) detail::add_output_norm(tally, rows, hidden, norm);
    return tally.result({input_bytes, tensor_sharding::whole},
                        {output_bytes, tensor_sharding::at_norm});
  }

 private:
  static constexpr char const* name = "patch_embedding";

  void check() const {
    constexpr std::int64_t max_pixels = std::int64_t{1} << 12;
    detail::check_width(name, "hidden", hidden);
    detail::check_between(name, "patch_size", patch_size, 1, max_pixels);
    detail::check_between(name, "channels", channels, 1, max_pixels);
    detail::check_between(name, "class_tokens", class_tokens, 0, detail::max_width);
    detail::check_between(name, "positions", positions, 0, detail::max_width);
    detail::check_between(name, "other_parameters", other_parameters, 0, detail::max_tokens);
  }
};

namespace detail {

/// The norm, the logits and the loss of `rows` tokens.
struct head_part {
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;
  norm_kind norm = norm_kind::rms;
  /// The number of tokens whose logits exist at the same time; 0 means all tokens.
  std::int64_t loss_chunk = 0;
  bool has_bias = false;
  bool owns_matrix = true;

  void add_to(layer_tally& tally, int128 rows) const {
    constexpr std::int64_t probability_bytes = 4;
    check_between(tally.function(), "loss_chunk", loss_chunk, 0, max_tokens);
    int128 const padded = rounded_up(vocabulary, tally.tensor());
    int128 const flops = 2 * rows * hidden * padded;
    add_norm(tally, rows, hidden, norm);
    if (owns_matrix) {
      tally.parameters(padded * hidden, tensor_sharding::split);
    } else {
      tally.borrowed_parameters(padded * hidden, tensor_sharding::split);
    }
    if (has_bias) tally.parameters(padded, tensor_sharding::split);
    tally.linear_flops(flops, tensor_sharding::split);
    int128 const at_a_time = loss_chunk == 0 ? rows : std::min(rows, int128{loss_chunk});
    int128 const bytes_of_token = tally.activation_bytes(padded) + probability_bytes * padded;
    if (loss_chunk == 0) {
      tally.keep(probability_bytes * rows * padded, tensor_sharding::split);
    } else {
      tally.repeated_flops(flops, tensor_sharding::split);
    }
    tally.moved(rows * bytes_of_token, tensor_sharding::split);
    tally.widest(at_a_time * bytes_of_token, tensor_sharding::split);
  }
};

}  // namespace detail

/// The owner of the weights of a head.
enum class head_weights {
  own,
  /// The embedding owns and counts the weights. In a pipeline of more than one stage
  /// (`parallel_degrees::pipeline`), the head has a copy, with parameters, gradients and optimizer
  /// state as for `own`.
  tied,
};

/// The losses of the layers of multi-token prediction. Each loss has a norm and logits like the
/// head.
struct prediction_losses {
  std::int64_t count = 0;
  norm_kind norm = norm_kind::rms;
  /// The number of tokens of a rank whose logits exist at the same time; 0 means all tokens.
  std::int64_t loss_chunk = 0;
  /// True if each loss has its own matrix, as in checkpoints that store a copy.
  bool owns_matrices = false;

  [[nodiscard]] friend bool operator==(prediction_losses const&,
                                       prediction_losses const&) = default;
};

/// The last layer of a language model: norm, logits, softmax and loss of every token.
///
/// V is the vocabulary, rounded up to a multiple of the tensor-parallel ranks, which share it.
/// Forward FLOPs are 2ThV. Kept bytes of a token are 4h in bf16, and 4V for the probabilities in
/// fp32. Nothing is sent at the cut. `selective` keeps the same bytes as `none`.
///
/// With `loss_chunk`, the head computes and drops the logits for `loss_chunk` tokens of a rank at a
/// time (chunked or fused linear cross-entropy). Then the probabilities of one chunk are transient
/// bytes and not kept. The backward pass computes the logits again, which costs another 2ThV.
/// Kernels that compute the gradients in the forward pass (Liger) do not compute the logits again,
/// but hold the gradients of the matrix and of the inputs, h for each token, until the backward
/// pass.
///
/// With `predictions` the layer also computes the losses of multi-token prediction. Each of them
/// has the cost of the main loss.
///
/// Complexity, memory, determinism and errors as `transformer`. Source: Korthikanti et al., 2022
/// (arXiv 2205.05198); Wijmans et al., "Cut your losses", 2024 (arXiv 2411.09009).
struct language_head {
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;
  norm_kind norm = norm_kind::rms;
  head_weights weights = head_weights::own;
  training_mode training = training_mode::all;
  /// The number of tokens of a rank whose logits exist at the same time; 0 means all tokens.
  std::int64_t loss_chunk = 0;
  /// True if the logits have a bias for each word.
  bool has_bias = false;
  /// The number of streams of residual sums (`residual_streams`). Matrices change all streams
  /// except the first before their mean is computed.
  std::int64_t streams = 1;
  /// The losses of multi-token prediction that the stage of the head computes.
  prediction_losses predictions{};

  /// Returns the cost of the head for `batch.documents`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    using detail::int128;
    using detail::tensor_sharding;
    constexpr char const* name = "language_head";
    detail::layer_tally tally(name, degrees, bytes, training, detail::recomputed_tensors::nothing);
    detail::check_width(name, "vocabulary", vocabulary);
    detail::check_width(name, "hidden", hidden);
    detail::check_sequences(name, "documents", batch.documents);
    int128 const rows = tally.in_sequence(batch.documents.tokens);
    detail::head_part const head{
        .vocabulary = vocabulary,
        .hidden = hidden,
        .norm = norm,
        .loss_chunk = loss_chunk,
        .has_bias = has_bias,
        .owns_matrix = weights == head_weights::own || degrees.pipeline > 1};
    head.add_to(tally, rows);
    detail::check_between(name, "streams", streams, 1, detail::max_streams);
    detail::add_stream_products(tally, rows, hidden, streams - 1, streams - 1);
    detail::check_between(name, "predictions.count", predictions.count, 0, detail::max_width);
    detail::head_part const further{.vocabulary = vocabulary,
                                    .hidden = hidden,
                                    .norm = predictions.norm,
                                    .loss_chunk = predictions.loss_chunk,
                                    .owns_matrix = predictions.owns_matrices};
    for (std::int64_t i = 0; i != predictions.count; ++i) further.add_to(tally, rows);
    int128 const inputs = (int128{streams} + predictions.count) * rows * hidden;
    return tally.result({tally.activation_bytes(inputs), tensor_sharding::at_norm}, {});
  }

  /// Returns the forward and backward FLOPs of the whole head as a function of the length of a
  /// document.
  [[nodiscard]] quadratic_cost sample_cost() const {
    return detail::sample_cost(*this, &micro_batch_work::documents);
  }
};

}  // namespace omnibal::inline v0
