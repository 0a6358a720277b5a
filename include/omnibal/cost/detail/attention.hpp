// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// An attention with its projections.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <algorithm>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// The tokens of an attention and its pairs of tokens, on one sequence-parallel rank.
struct attended_tokens {
  int128 rows = 0;
  int128 context_rows = 0;
  /// The number of pairs of tokens; a causal mask hides half of them.
  int128 pairs = 0;
  /// The number of pairs of tokens for an indexer, which scores the whole sequence.
  int128 indexed_pairs = 0;
};

/// An attention with its projections, without the norms around it.
struct attention {
  std::int64_t hidden = 0;
  /// The width of the tokens from which keys and values are computed.
  std::int64_t context_width = 0;
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;
  std::int64_t head_size = 0;
  /// The size of a value of one head; 0 means the size of a key.
  std::int64_t value_size = 0;
  latent_attention latent{};
  sparse_indexer indexer{};
  key_value_source source = key_value_source::own;
  query_key_norm head_norm = query_key_norm::none;
  norm_kind norm = norm_kind::rms;
  attention_mask mask = attention_mask::full;
  attention_kernel kernel = attention_kernel::flash;
  attention_gate gate = attention_gate::none;
  bool sinks = false;
  bool input_bias = false;
  /// True if the biases of the inputs include keys; false if only queries and values have biases.
  bool key_bias = true;
  bool output_bias = false;
  bool dropout = false;

  void check(layer_tally const& tally) const {
    auto const name = tally.function();
    check_width(name, "hidden", hidden);
    check_width(name, "heads", heads);
    check_width(name, "kv_heads", key_value_heads);
    check_width(name, "context_width", context_width);
    if (head_size == 0) check_multiple(name, "hidden", hidden, "heads", heads);
    check_width(name, "head_size", size_of_head());
    check_multiple(name, "heads", heads, "kv_heads", key_value_heads);
    check_multiple(name, "heads", heads, "tensor", tally.tensor());
    if (tally.tensor() <= key_value_heads) {
      check_multiple(name, "kv_heads", key_value_heads, "tensor", tally.tensor());
    } else {
      check_multiple(name, "tensor", tally.tensor(), "kv_heads", key_value_heads);
    }
    check_between(name, "value_size", value_size, 0, max_width);
    check_between(name, "latent.key_value_rank", latent.key_value_rank, 0, max_width);
    check_between(name, "latent.query_rank", latent.query_rank, 0, max_width);
    check_between(name, "latent.rope_size", latent.rope_size, 0, max_width);
    check_between(name, "latent.value_size", latent.value_size, 0, max_width);
    check_width(name, "heads * head_size", heads * key_size());
    check_width(name, "heads * value_size", heads * size_of_value());
    check_between(name, "indexer.heads", indexer.heads, 0, max_width);
    if (indexer.heads != 0) check_width(name, "indexer.head_size", indexer.head_size);
    if (is_latent() && source != key_value_source::own) {
      throw_invalid(name, "source must be own if the attention is latent");
    }
  }

  /// Adds the attention. The layer keeps queries, keys and values in the form that the kernel
  /// needs.
  void add_to(layer_tally& tally, attended_tokens const& tokens) const {
    int128 const queries = query_width();
    int128 const output_width = int128{heads} * size_of_value();
    int128 const key_width = key_heads(tally) * key_size();
    int128 const value_width = key_heads(tally) * size_of_value();
    if (is_latent()) {
      add_latent_inputs(tally, tokens.rows, tokens.context_rows);
    } else {
      add_inputs(tally, tokens, queries, key_width, value_width);
    }
    int128 const numbers =
        tokens.rows * queries + tokens.context_rows * own_width(key_width, value_width);
    int128 const inputs = tally.activation_bytes(numbers);
    tally.keep(inputs, tensor_sharding::split);
    int128 const own_keys = source == key_value_source::earlier_layer ? int128{0} : key_width;
    add_head_norms(tally, tokens.rows * queries, tokens.context_rows * own_keys);
    if (indexer.heads != 0) add_indexer(tally, tokens);
    if (sinks) tally.parameters(heads, tensor_sharding::split);
    add_scores(tally, tokens.pairs);
    int128 const outputs = tokens.rows * output_width;
    tally.keep(tally.activation_bytes(outputs), tensor_sharding::split);
    add_gate(tally, tokens.rows, output_width);
    tally.widest(inputs + tally.activation_bytes(outputs), tensor_sharding::split);
    add_split_rows(tally, tokens.rows, {output_width, hidden, output_bias});
  }

  /// Returns the size of the queries of all heads of a token.
  [[nodiscard]] int128 query_width() const { return int128{heads} * key_size(); }

 private:
  [[nodiscard]] bool is_latent() const { return latent.key_value_rank > 0; }
  [[nodiscard]] std::int64_t size_of_head() const {
    return head_size == 0 ? hidden / heads : head_size;
  }
  /// Returns the size of a query or key of one head.
  [[nodiscard]] std::int64_t key_size() const {
    return size_of_head() + (is_latent() ? latent.rope_size : 0);
  }
  [[nodiscard]] std::int64_t size_of_value() const {
    std::int64_t const own = is_latent() ? latent.value_size : value_size;
    return own > 0 ? own : size_of_head();
  }
  /// Returns the number of key heads, including copies if there are more tensor-parallel ranks than
  /// heads.
  [[nodiscard]] int128 key_heads(layer_tally const& tally) const {
    return std::max(is_latent() ? heads : key_value_heads, tally.tensor());
  }

  /// Returns the size of the keys and values of a token that the layer computes itself.
  [[nodiscard]] int128 own_width(int128 key_width, int128 value_width) const {
    return source == key_value_source::earlier_layer ? int128{0} : key_width + value_width;
  }

  void add_inputs(layer_tally& tally, attended_tokens const& tokens, int128 queries,
                  int128 key_width, int128 value_width) const {
    add_split_columns(tally, tokens.rows, {hidden, queries, input_bias});
    if (source == key_value_source::earlier_layer) return;
    add_split_columns(tally, tokens.context_rows,
                      {context_width, key_width, input_bias && key_bias});
    if (source == key_value_source::keys) return;
    add_split_columns(tally, tokens.context_rows, {context_width, value_width, input_bias});
  }

  /// Adds the projections of latent attention. Every rank projects its tokens down and normalizes
  /// them; then it projects them up for its own heads.
  void add_latent_inputs(layer_tally& tally, int128 rows, int128 context_rows) const {
    if (latent.query_rank > 0) {
      add_whole(tally, rows, {hidden, latent.query_rank});
      add_norm(tally, rows, latent.query_rank, norm);
      add_split_columns(tally, rows, {latent.query_rank, query_width(), input_bias});
    } else {
      add_split_columns(tally, rows, {hidden, query_width(), input_bias});
    }
    add_whole(tally, context_rows, {context_width, latent.key_value_rank + latent.rope_size});
    add_norm(tally, context_rows, latent.key_value_rank, norm);
    add_split_columns(
        tally, context_rows,
        {latent.key_value_rank, int128{heads} * (size_of_head() + size_of_value()), input_bias});
  }

  void add_head_norms(layer_tally& tally, int128 queries, int128 keys) const {
    if (head_norm == query_key_norm::none) return;
    bool const has_keys = source != key_value_source::earlier_layer;
    if (head_norm == query_key_norm::each_head) {
      tally.parameters(numbers_of(norm) * (has_keys ? 2 : 1) * int128{key_size()},
                       tensor_sharding::whole);
    } else {
      int128 const normed_heads = int128{heads} + (has_keys ? key_heads(tally) : int128{0});
      tally.parameters(numbers_of(norm) * normed_heads * key_size(), tensor_sharding::split);
    }
    int128 const normed = tally.activation_bytes(queries + keys);
    tally.keep(normed, tensor_sharding::split, backward_use::always,
               recomputed_tensors::elementwise, {0, 2 * normed});
  }

  void add_scores(layer_tally& tally, int128 pairs) const {
    bool const is_halved = mask == attention_mask::causal && kernel == attention_kernel::flash;
    int128 const flops = (is_halved ? 1 : 2) * pairs * heads * (key_size() + size_of_value());
    tally.score_flops(flops);
    if (kernel == attention_kernel::flash) return;
    int128 const scores = tally.activation_bytes(pairs * heads);
    tally.keep(scores, tensor_sharding::split, backward_use::always, recomputed_tensors::scores,
               {flops, 2 * scores});
    tally.widest(2 * scores, tensor_sharding::split);
    if (!dropout) return;
    int128 const masks = pairs * heads;
    tally.keep(scores + masks, tensor_sharding::split, backward_use::always,
               recomputed_tensors::scores, {0, 2 * scores + masks});
  }

  /// Adds the indexer of sparse attention. Its small heads score all earlier tokens, and attention
  /// reads the tokens with the largest scores. Every rank has the whole indexer. The queries of the
  /// indexer are computed from the latent queries, if there are any. The indexer sends no gradients
  /// to its inputs. Its loss covers only the selected tokens.
  void add_indexer(layer_tally& tally, attended_tokens const& tokens) const {
    std::int64_t const inputs = latent.query_rank > 0 ? latent.query_rank : hidden;
    int128 const width = int128{indexer.heads} * indexer.head_size;
    add_detached(tally, tokens.rows, inputs, width);
    add_detached(tally, tokens.rows, hidden, indexer.head_size);
    add_detached(tally, tokens.rows, hidden, indexer.heads);
    tally.parameters(numbers_of(norm_kind::layer) * indexer.head_size, tensor_sharding::whole);
    tally.detached_flops(tokens.indexed_pairs * width, 2 * tokens.pairs * width,
                         tensor_sharding::whole);
    // The queries and the weights of the heads, and the keys before and after their norm.
    int128 const keys = tally.activation_bytes(tokens.rows * indexer.head_size);
    tally.moved(2 * keys, tensor_sharding::whole);
    tally.keep(tally.activation_bytes(tokens.rows * (width + indexer.heads)) + 2 * keys,
               tensor_sharding::whole, backward_use::if_trained);
  }

  /// Adds the projection of the gate. The gated output is the input of the output matrix.
  void add_gate(layer_tally& tally, int128 rows, int128 output_width) const {
    int128 const outputs = tally.activation_bytes(rows * output_width);
    if (gate == attention_gate::none) {
      if (tally.has_own_inputs()) {
        tally.keep(tally.matrix_input_bytes(rows * output_width), tensor_sharding::split,
                   backward_use::for_weights);
      }
      return;
    }
    int128 const width = gate == attention_gate::each_head ? int128{heads} : output_width;
    add_split_columns(tally, rows, {hidden, width});
    int128 const gates = tally.activation_bytes(rows * width);
    tally.keep(gates, tensor_sharding::split);
    tally.keep(tally.matrix_input_bytes(rows * output_width), tensor_sharding::split,
               backward_use::for_weights, recomputed_tensors::elementwise,
               {0, gates + 2 * outputs});
  }
};

}  // namespace omnibal::inline v0::detail
