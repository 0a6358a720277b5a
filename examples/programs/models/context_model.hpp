// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What groups of ranks take with a language model, where nothing has been measured.

#include "model_file.hpp"

#include <omnibal/context/context_cost.hpp>

#include <cstdint>
#include <string>

namespace examples {

/// The shape of a language model, with the parameters that a token runs through to two digits, as
/// models are named; `keys` is the width of all keys, or of what they are made from.
struct model_shape {
  double parameters;
  double layers;
  double hidden;
  double keys;
};

[[nodiscard]] model_shape shape_of(omnibal::mixed_language_model const& model);
/// Of a known model.
[[nodiscard]] model_shape known_shape(std::string const& name);

/// The ranks of a step, in nodes with fast links, and what they reach in a second.
struct context_cluster {
  std::uint32_t ranks = 1;
  std::uint32_t ranks_per_node = 8;
  double flops = 400e12;
  double node_link_bytes = 200e9;
  double link_bytes = 50e9;
};

/// Seconds: forward and backward, causal attention, the all-to-all of queries, keys, values and
/// outputs both ways, within a node or beyond, and what starting a group takes.
[[nodiscard]] omnibal::context_cost context_cost_of(model_shape const& model,
                                                    context_cluster const& cluster);

}  // namespace examples
