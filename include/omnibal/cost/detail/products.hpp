#pragma once

/// \file
/// Matrix products and norms, of which all layers are made.

#include <omnibal/config.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_parts.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// A matrix whose outputs the tensor-parallel ranks share out.
inline void add_split_columns(layer_tally& tally, int128 rows, int128 inputs, int128 outputs,
                              bool has_bias) {
  tally.parameters(inputs * outputs + (has_bias ? outputs : 0), held::split);
  tally.linear_flops(2 * rows * inputs * outputs, held::split);
}

/// A matrix whose inputs these ranks share out; each has the whole bias.
inline void add_split_rows(layer_tally& tally, int128 rows, int128 inputs, int128 outputs,
                           bool has_bias) {
  tally.parameters(inputs * outputs, held::split);
  tally.parameters(has_bias ? outputs : 0, held::whole);
  tally.linear_flops(2 * rows * inputs * outputs, held::split);
}

/// A matrix that every rank has, for the tokens that it has between norms.
inline void add_whole(layer_tally& tally, int128 rows, int128 inputs, int128 outputs,
                      bool has_bias) {
  tally.parameters(inputs * outputs + (has_bias ? outputs : 0), held::whole);
  tally.linear_flops(2 * rows * inputs * outputs, held::at_norm);
}

/// A norm whose output a matrix takes: it keeps both its input and its output.
inline void add_norm(layer_tally& tally, int128 rows, int128 width, norm_kind kind) {
  tally.parameters(kind == norm_kind::layer ? 2 * width : width, held::whole);
  int128 const bytes = tally.activation_bytes(rows * width);
  tally.keep(bytes, held::at_norm);
  tally.keep(bytes, held::at_norm, needed::for_weights, remade::elementwise, {0, 2 * bytes});
  tally.widest(2 * bytes, held::at_norm);
}

}  // namespace omnibal::inline v0::detail
