// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The layer of multi-token prediction.

#include <omnibal/config.hpp>
#include <omnibal/cost/detail/transformer_block.hpp>
#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/detail/model_limits.hpp>
#include <omnibal/detail/quotients.hpp>

#include <algorithm>
#include <cstdint>

namespace omnibal::inline v0 {

/// The part of a prediction layer that its stage runs.
enum class prediction_part {
  whole,
  before_loss,  ///< without the last norm and the loss, which `language_head::predictions` counts
};

/// A layer that predicts one more token (DeepSeek-V3, GLM-4.5, Qwen3.5). The layer normalizes the
/// embedding of the next token and the output of the model, and combines both by a matrix of 2h x
/// h. Then it runs a transformer layer, a norm and the head of the model.
///
/// FLOPs and kept bytes are the sum over the transformer layer, the matrix (4Th^2 forward), the
/// norms, and a `language_head` with the same `loss_chunk`. The layer uses the matrices of the
/// embedding and of the head, which count them. With more than one stage, the layer has a copy of
/// the embedding, and a whole layer is on the stage of the head. The bytes at the cut are the
/// output of the transformer layer.
///
/// Complexity, memory, determinism and errors as `transformer`. Source: DeepSeek-AI, "DeepSeek-V3",
/// 2024 (arXiv 2412.19437).
struct prediction_layer {
  transformer layer{};
  std::int64_t vocabulary = 0;
  /// The number of tokens of a rank whose logits exist at the same time; 0 means all tokens.
  std::int64_t loss_chunk = 0;
  /// True if the layer has its own embedding and head, as in checkpoints that store a copy of both.
  bool owns_embeddings = false;
  prediction_part part = prediction_part::whole;

  /// Returns the cost of the layer for `batch.documents`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    using detail::int128;
    detail::check_sequences(name, "documents", batch.documents);
    detail::check_width(name, "vocabulary", vocabulary);
    auto block = layer.block();
    block.function = name;
    auto tally = block.tally(degrees, bytes);
    int128 const rows = tally.in_sequence(batch.documents.tokens);
    auto const output = block.output_of(tally, batch.documents);
    add_layer(tally, block, rows, batch, degrees);
    if (part == prediction_part::before_loss) return tally.result(output, output);
    detail::head_part const head{.vocabulary = vocabulary,
                                 .hidden = layer.hidden,
                                 .norm = layer.norm,
                                 .loss_chunk = loss_chunk,
                                 .owns_matrix = owns_embeddings};
    head.add_to(tally, rows);
    return tally.result(output, output);
  }

  /// Returns the forward and backward FLOPs of the whole layer as a function of the length of a
  /// document.
  [[nodiscard]] quadratic_cost sample_cost() const {
    return detail::sample_cost(*this, &micro_batch_work::documents);
  }

 private:
  static constexpr char const* name = "prediction_layer";

  /// Adds all parts of the layer before the last norm.
  void add_layer(detail::layer_tally& tally, detail::transformer_block const& block,
                 detail::int128 rows, micro_batch_work const& batch,
                 parallel_degrees const& degrees) const {
    using detail::int128;
    using detail::tensor_sharding;
    constexpr std::int64_t index_bytes = 8;
    std::int64_t const hidden = layer.hidden;
    int128 const matrix = detail::rounded_up(vocabulary, tally.tensor()) * hidden;
    detail::add_norm(tally, rows, hidden, layer.norm);
    detail::add_norm(tally, rows, hidden, layer.norm);
    tally.keep(index_bytes * rows, tensor_sharding::whole, detail::backward_use::for_weights);
    detail::add_split_rows(tally, rows, {2 * int128{hidden}, hidden});
    block.add_to(tally, "documents", batch.documents, batch.context);
    bool const has_copy = owns_embeddings || degrees.pipeline > 1;
    if (has_copy) tally.parameters(matrix, tensor_sharding::split);
    if (!has_copy) tally.borrowed_parameters(matrix, tensor_sharding::split);
  }
};

}  // namespace omnibal::inline v0
