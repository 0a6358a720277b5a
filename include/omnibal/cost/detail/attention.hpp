#pragma once

/// \file
/// Attention: projections, scores and what they keep.

#include <omnibal/config.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/detail/products.hpp>
#include <omnibal/cost/layer_parts.hpp>

#include <algorithm>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// One attention with its projections, without the norm before it.
struct attention {
  std::int64_t hidden = 0;
  /// Of the tokens that keys and values are made of.
  std::int64_t context_width = 0;
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;
  std::int64_t head_size = 0;
  latent_attention latent{};
  query_key_norm head_norm = query_key_norm::none;
  norm_kind norm = norm_kind::rms;
  attention_mask mask = attention_mask::full;
  attention_kernel kernel = attention_kernel::flash;
  bool input_bias = false;
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
    check_between(name, "latent.key_value_rank", latent.key_value_rank, 0, most_width);
    check_between(name, "latent.query_rank", latent.query_rank, 0, most_width);
    check_between(name, "latent.rope_size", latent.rope_size, 0, most_width);
    check_between(name, "latent.value_size", latent.value_size, 0, most_width);
    check_width(name, "heads * head_size", heads * key_size());
    check_width(name, "heads * latent.value_size", heads * size_of_value());
  }

  /// `rows` tokens attend to `context_rows` tokens, in `pairs` pairs of them, or half as many where
  /// the mask is causal.
  void add_to(layer_tally& tally, int128 rows, int128 context_rows, int128 pairs) const {
    int128 const query_width = int128{heads} * key_size();
    int128 const output_width = int128{heads} * size_of_value();
    int128 const key_width = key_heads(tally) * key_size();
    int128 const value_width = key_heads(tally) * size_of_value();
    if (latent.key_value_rank > 0) {
      add_latent_inputs(tally, rows, context_rows);
    } else {
      add_split_columns(tally, rows, hidden, query_width, input_bias);
      add_split_columns(tally, context_rows, context_width, key_width + value_width, input_bias);
    }
    int128 const inputs = rows * query_width + context_rows * (key_width + value_width);
    tally.keep(tally.activation_bytes(inputs), held::split);
    add_head_norms(tally, rows * query_width, context_rows * key_width);
    add_scores(tally, pairs);
    tally.keep(tally.activation_bytes(rows * output_width), held::split);
    tally.widest(tally.activation_bytes(inputs + rows * output_width), held::split);
    add_split_rows(tally, rows, output_width, hidden, output_bias);
  }

 private:
  [[nodiscard]] std::int64_t size_of_head() const {
    return head_size == 0 ? hidden / heads : head_size;
  }
  /// Numbers of a query or key of one head.
  [[nodiscard]] std::int64_t key_size() const {
    return size_of_head() + (latent.key_value_rank > 0 ? latent.rope_size : 0);
  }
  [[nodiscard]] std::int64_t size_of_value() const {
    bool const is_own = latent.key_value_rank > 0 && latent.value_size > 0;
    return is_own ? latent.value_size : size_of_head();
  }
  /// With the copies that more ranks than heads need.
  [[nodiscard]] int128 key_heads(layer_tally const& tally) const {
    return std::max(latent.key_value_rank > 0 ? heads : key_value_heads, tally.tensor());
  }

  /// Every rank projects down what it has of the tokens and norms it, and projects up its heads.
  void add_latent_inputs(layer_tally& tally, int128 rows, int128 context_rows) const {
    int128 const query_width = int128{heads} * key_size();
    if (latent.query_rank > 0) {
      add_whole(tally, rows, hidden, latent.query_rank, false);
      add_norm(tally, rows, latent.query_rank, norm);
      add_split_columns(tally, rows, latent.query_rank, query_width, input_bias);
    } else {
      add_split_columns(tally, rows, hidden, query_width, input_bias);
    }
    add_whole(tally, context_rows, context_width, latent.key_value_rank + latent.rope_size, false);
    add_norm(tally, context_rows, latent.key_value_rank, norm);
    add_split_columns(tally, context_rows, latent.key_value_rank,
                      int128{heads} * (size_of_head() + size_of_value()), input_bias);
  }

  void add_head_norms(layer_tally& tally, int128 queries, int128 keys) const {
    if (head_norm == query_key_norm::none) return;
    std::int64_t const sets = norm == norm_kind::layer ? 2 : 1;
    if (head_norm == query_key_norm::each_head) {
      tally.parameters(sets * 2 * int128{key_size()}, held::whole);
    } else {
      tally.parameters(sets * (int128{heads} + key_heads(tally)) * key_size(), held::split);
    }
    int128 const normed = tally.activation_bytes(queries + keys);
    tally.keep(normed, held::split, needed::always, remade::elementwise, {0, 2 * normed});
  }

  void add_scores(layer_tally& tally, int128 pairs) const {
    bool const is_halved = mask == attention_mask::causal && kernel == attention_kernel::flash;
    int128 const flops = (is_halved ? 1 : 2) * pairs * heads * (key_size() + size_of_value());
    tally.score_flops(flops);
    if (kernel == attention_kernel::flash) return;
    int128 const scores = tally.activation_bytes(pairs * heads);
    tally.keep(scores, held::split, needed::always, remade::scores, {flops, 2 * scores});
    tally.widest(2 * scores, held::split);
    if (!dropout) return;
    int128 const masks = pairs * heads;
    tally.keep(scores + masks, held::split, needed::always, remade::scores,
               {0, 2 * scores + masks});
  }
};

}  // namespace omnibal::inline v0::detail
