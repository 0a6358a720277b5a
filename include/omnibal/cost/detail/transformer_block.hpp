#pragma once

/// \file
/// The layer of every transformer: attentions and feed-forward parts, each after a norm.

#include <omnibal/config.hpp>
#include <omnibal/cost/detail/attention.hpp>
#include <omnibal/cost/detail/feed_forward.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/detail/products.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layer_parts.hpp>
#include <omnibal/cost/parallel_degrees.hpp>
#include <omnibal/cost/workload.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace omnibal::inline v0::detail {

struct transformer_block {
  std::string_view function;
  std::int64_t hidden = 0;
  norm_kind norm = norm_kind::rms;
  std::optional<attention> self{};
  std::optional<attention> cross{};
  std::optional<dense_mlp> dense{};
  std::optional<expert_mixture> experts{};
  attention_kernel kernel = attention_kernel::flash;
  bool layer_scale = false;
  bool dropout = false;
  training_mode training = training_mode::all;

  [[nodiscard]] layer_cost cost(sequences const& tokens, cross_context const& context,
                                parallel_degrees const& degrees, byte_sizes const& bytes) const {
    layer_tally sums(function, degrees, bytes, training,
                     kernel == attention_kernel::flash ? remade::elementwise : remade::scores);
    check(sums);
    int128 const rows = sums.in_sequence(tokens.tokens);
    if (self) {
      add_norm(sums, rows, hidden, norm);
      self->add_to(sums, rows, rows, sums.in_sequence(tokens.squares));
      add_to_residual(sums, rows);
    }
    if (cross) {
      add_norm(sums, rows, hidden, norm);
      cross->add_to(sums, rows, sums.in_sequence(context.tokens), sums.in_sequence(context.pairs));
      add_to_residual(sums, rows);
    }
    add_norm(sums, rows, hidden, norm);
    if (dense) dense->add_to(sums, rows);
    if (experts) experts->add_to(sums, rows);
    add_to_residual(sums, rows);
    placed_bytes const output{sums.activation_bytes(rows * hidden), held::at_norm};
    return sums.result(output, output);
  }

 private:
  void check(layer_tally const& sums) const {
    if (self) self->check(sums);
    if (cross) cross->check(sums);
    if (dense) dense->check(sums);
    if (experts) experts->check(sums);
  }

  void add_to_residual(layer_tally& sums, int128 rows) const {
    int128 const numbers = rows * hidden;
    int128 const output = sums.activation_bytes(numbers);
    if (layer_scale) {
      sums.parameters(hidden, held::whole);
      sums.keep(output, held::at_norm, needed::for_weights);
      sums.moved(2 * output, held::at_norm);
    }
    if (dropout) {
      sums.keep(numbers, held::at_norm);
      sums.moved(2 * output + numbers, held::at_norm);
    }
    sums.moved(3 * output, held::at_norm);
  }
};

}  // namespace omnibal::inline v0::detail
