// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A profile of a language model that is computed from cost models.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/model_limits.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/select_levels.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace omnibal::inline v0 {

/// A functor for `select_levels` that computes the memory and the time of a full pack from the cost
/// models of a language model. Use it until measurements exist.
///
/// - Memory: the state of all layers as `degrees` shards it, the memory that the layers keep of a
///   pack, and the largest transient bytes of any layer. A checkpointed layer keeps its input. The
///   transient bytes include the whole parameters and gradients of the running layer if these are
///   sharded. With sharded parameters, the whole parameters of one more layer are added, because
///   they are gathered at the same time.
/// - Time: forward, backward and recomputation on `device`, and `pack_overhead_nanoseconds`. The
///   all-to-all of queries, keys, values and outputs among the ranks that share a pack is added,
///   forward, backward and in the recomputation, as in Ulysses.
///
/// Complexity: constant. Allocates nothing. Determinism: portable. Errors: the errors of the layers
/// and of `device_model`; `std::invalid_argument` if a number is negative, or is zero although it
/// must be positive. It is also thrown if more layers are checkpointed than exist, or if the degree
/// does not divide the number of ranks. Source: Jacobs et al., "DeepSpeed Ulysses", 2023 (arXiv
/// 2309.14509); Yao et al., "Hierarchical balance packing", NeurIPS 2025.
struct language_profile {
  mixed_language_model model{};
  device_model device{};
  /// The memory of one device.
  std::int64_t memory_bytes = 0;
  /// The number of all ranks that train, including ranks that share a pack.
  std::int64_t ranks = 1;
  /// The parallel degrees without `sequence` and `data`, which follow from the level and the ranks.
  parallel_degrees degrees{.sharding = sharded_state::parameters};
  /// The number of tokens of each document of a pack; 0 means that one document fills the pack. The
  /// last document may be shorter.
  std::int64_t document = 0;
  /// The number of tokens of a rank whose logits exist at the same time; 0 means the tokens of the
  /// whole pack.
  std::int64_t logit_tokens = 0;
  /// The bytes per second that a rank sends to the ranks that share its packs.
  std::int64_t link_bytes_per_second = 1;
  /// The fixed time of a pack, independent of its length, for gathering sharded parameters and
  /// launching kernels.
  std::int64_t pack_overhead_nanoseconds = 0;

  /// Returns the reading of a full pack.
  [[nodiscard]] level_reading operator()(packing_level const& level) const {
    check(level);
    return reading(level, documents_of(level.length));
  }

  /// Returns the reading of a pack with these documents.
  [[nodiscard]] level_reading reading(packing_level const& level,
                                      sequences const& documents) const {
    check(level);
    parallel_degrees const spread = degrees_of(level);
    micro_batch_work const batch{.documents = documents};
    totals sums{};
    add(sums, model.input(batch, spread), 1, recompute_choice::none);
    std::int64_t checkpointed = level.checkpointed_layers;
    for (layer_run const& run : model.runs) {
      std::int64_t const here = std::min(checkpointed, run.count);
      add_layers(sums, run.layer, batch, spread, {here, run.count});
      checkpointed -= here;
    }
    add_head(sums, batch, spread);
    add_prediction(sums, batch, spread);
    detail::int128 const used = sums.bytes + sums.transient + sums.gathered;
    return {detail::checked_cast<std::int64_t>(name, "the free memory", memory_bytes - used),
            detail::checked_cast<std::int64_t>(name, "the time of a pack",
                                               sums.nanoseconds + pack_overhead_nanoseconds)};
  }

 private:
  static constexpr std::string_view name = "language_profile";

  struct totals {
    detail::int128 bytes = 0;
    detail::int128 nanoseconds = 0;
    /// The largest transient bytes of any layer.
    std::int64_t transient = 0;
    std::int64_t gathered = 0;
  };
  struct layer_counts {
    std::int64_t checkpointed;
    std::int64_t all;
  };

  void check(packing_level const& level) const {
    detail::check_level(name, "level", level);
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    detail::check_between(name, "memory_bytes", memory_bytes, 1, most);
    detail::check_between(name, "document", document, 0, detail::max_tokens);
    detail::check_between(name, "logit_tokens", logit_tokens, 0, detail::max_tokens);
    detail::check_between(name, "link_bytes_per_second", link_bytes_per_second, 1, most);
    detail::check_between(name, "pack_overhead_nanoseconds", pack_overhead_nanoseconds, 0, most);
    detail::check_between(name, "checkpointed_layers", level.checkpointed_layers, 0,
                          model.layers());
    detail::check_between(name, "ranks", ranks, 1, detail::max_width);
    detail::check_multiple(name, "ranks", ranks, "the degree", level.sequence);
  }

  [[nodiscard]] parallel_degrees degrees_of(packing_level const& level) const {
    parallel_degrees result = degrees;
    result.sequence = level.sequence;
    result.data = ranks / level.sequence;
    return result;
  }

  [[nodiscard]] sequences documents_of(std::int64_t length) const {
    std::int64_t const each = document == 0 ? length : std::min(document, length);
    sequences result = equal_sequences({.count = length / each, .length = each});
    sequences const last = equal_sequences({.count = 1, .length = length % each});
    result = {result.count + last.count, result.tokens + last.tokens,
              result.squares + last.squares};
    auto const spans = attention_spans(model);
    for (std::size_t i = 0; i != spans.size() && spans[i].kind != span_kind::whole; ++i) {
      detail::int128 const squares =
          detail::int128{length / each} * spans[i].squares(each) + spans[i].squares(length % each);
      result.spans[i] = {spans[i], detail::checked_cast<std::int64_t>(name, "squares", squares)};
    }
    return result;
  }

  void add(totals& sums, layer_cost const& layer, std::int64_t count,
           recompute_choice choice) const {
    recompute_cost const& chosen = layer[choice];
    sums.bytes += detail::int128{count} * (layer.state_bytes() + chosen.kept_bytes);
    sums.nanoseconds += detail::int128{count} *
                        (device(layer.forward) + device(layer.backward) + device(chosen.extra));
    sums.transient = std::max(sums.transient, chosen.transient_bytes);
  }

  void add_layers(totals& sums, transformer const& layer, micro_batch_work const& batch,
                  parallel_degrees const& spread, layer_counts const& counts) const {
    if (counts.all == 0) return;
    layer_cost const cost = layer(batch, spread);
    add(sums, cost, counts.all - counts.checkpointed, recompute_choice::none);
    if (counts.checkpointed != 0) add(sums, cost, counts.checkpointed, recompute_choice::full);
    // The exchange runs forward and backward, and forward again in each recomputation.
    std::int64_t const passes = 2 * counts.all + counts.checkpointed;
    sums.nanoseconds += detail::int128{passes} * exchange_nanoseconds(layer, batch, spread);
    if (degrees.sharding == sharded_state::parameters) {
      sums.gathered = std::max(sums.gathered, cost.parameters * byte_sizes{}.parameter);
    }
  }

  /// Adds the cost of the head: the memory of the logits of `logit_tokens` tokens, and the work of
  /// all tokens.
  void add_head(totals& sums, micro_batch_work const& batch, parallel_degrees const& spread) const {
    layer_cost cost = model.output(batch, spread);
    std::int64_t const part = logit_tokens * spread.sequence;
    if (part != 0 && part < batch.documents.tokens) {
      cost.choices =
          model.output(micro_batch_work{.documents = documents_of(part)}, spread).choices;
    }
    add(sums, cost, 1, recompute_choice::none);
  }

  /// Adds the layers of multi-token prediction, which compute logits as the head does.
  void add_prediction(totals& sums, micro_batch_work const& batch,
                      parallel_degrees const& spread) const {
    if (model.prediction_layers == 0) return;
    prediction_layer chunked = model.prediction;
    chunked.loss_chunk = logit_tokens;
    add(sums, chunked(batch, spread), model.prediction_layers, recompute_choice::none);
    sums.nanoseconds += detail::int128{2} * model.prediction_layers *
                        exchange_nanoseconds(chunked.layer, batch, spread);
  }

  /// Returns the number of numbers that a layer exchanges for each token: the queries, keys, values
  /// and outputs of attention and of linear attention, and the inputs and outputs of a state space.
  [[nodiscard]] static detail::int128 exchanged_numbers(transformer const& layer) {
    detail::int128 result = 0;
    if (layer.heads != 0) {
      std::int64_t const head_size =
          layer.head_size == 0 ? layer.hidden / layer.heads : layer.head_size;
      std::int64_t const key_heads = layer.kv_heads == 0 ? layer.heads : layer.kv_heads;
      result += detail::int128{2} * (layer.heads + key_heads) * head_size;
    }
    delta_net const& net = layer.delta;
    std::int64_t const values = net.value_heads == 0 ? net.key_heads : net.value_heads;
    std::int64_t const value_size = net.value_size == 0 ? net.key_size : net.value_size;
    result += detail::int128{2} * net.key_heads * net.key_size;
    result += detail::int128{2} * values * value_size;
    state_space const& space = layer.space;
    if (space.heads != 0) {
      result += detail::int128{2} * (space.heads * space.head_size + space.groups * space.state);
    }
    return result;
  }

  /// Returns the time of the all-to-all of one layer in one pass. A rank sends its queries, keys,
  /// values and outputs, except for its own share.
  [[nodiscard]] std::int64_t exchange_nanoseconds(transformer const& layer,
                                                  micro_batch_work const& batch,
                                                  parallel_degrees const& spread) const {
    detail::int128 const numbers = exchanged_numbers(layer);
    detail::int128 const tokens = detail::share_of(batch.documents.tokens, spread.sequence);
    detail::int128 const bytes =
        tokens * numbers * byte_sizes{}.activation * (spread.sequence - 1) / spread.sequence;
    constexpr std::int64_t second = 1'000'000'000;
    return detail::checked_cast<std::int64_t>(
        name, "the time of an exchange", detail::share_of(bytes * second, link_bytes_per_second));
  }
};

}  // namespace omnibal::inline v0
