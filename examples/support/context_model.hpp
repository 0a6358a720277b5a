#pragma once

/// \file
/// What groups of ranks take with common language models, where nothing has been measured.

#include <omnibal/context/context_cost.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace examples {

/// The shape of a language model, with the parameters that a token runs through.
struct model_shape {
  std::string_view name;
  double parameters;
  double layers;
  double hidden;
  double keys;
};

/// Llama 3 8B and 70B, and a mixture of experts with 21 of 236 billion parameters active.
inline constexpr std::array context_models{model_shape{"llama3-8b", 8e9, 32, 4096, 1024},
                                           model_shape{"llama3-70b", 70e9, 80, 8192, 1024},
                                           model_shape{"moe", 21e9, 60, 5120, 512}};

/// The ranks of a step, in nodes with fast links.
struct context_cluster {
  std::uint32_t ranks = 1;
  std::uint32_t ranks_per_node = 8;
};

/// Seconds at 400 TFLOP/s: forward and backward, causal attention, the all-to-all of queries, keys,
/// values and outputs both ways, at 200 GB/s within a node and 50 GB/s beyond, and what starting a
/// group takes.
[[nodiscard]] omnibal::context_cost context_cost_of(model_shape const& model,
                                                    context_cluster const& cluster);

}  // namespace examples
