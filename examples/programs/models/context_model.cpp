// SPDX-License-Identifier: Apache-2.0
#include "context_model.hpp"

#include <omnibal/cost/layered_model.hpp>

#include <cmath>
#include <cstdint>

namespace examples {

model_shape shape_of(omnibal::mixed_language_model const& model) {
  auto const active = static_cast<double>(omnibal::count_parameters(model).active);
  double const unit = std::pow(10.0, std::floor(std::log10(active)) - 1);
  omnibal::transformer const& layer = last_attention_layer(model);
  std::int64_t const key_heads = layer.kv_heads == 0 ? layer.heads : layer.kv_heads;
  bool const has_size = layer.head_size != 0 || layer.heads == 0;
  std::int64_t const head_size = has_size ? layer.head_size : layer.hidden / layer.heads;
  std::int64_t const latent = layer.latent.key_value_rank;
  return {.parameters = std::floor(active / unit) * unit,
          .layers = static_cast<double>(model.layers()),
          .hidden = static_cast<double>(layer.hidden),
          .keys = static_cast<double>(latent == 0 ? key_heads * head_size : latent)};
}

model_shape known_shape(std::string const& name) {
  return shape_of(*find_model(name, model_parts::language).language);
}

omnibal::context_cost context_cost_of(model_shape const& model, context_cluster const& cluster) {
  omnibal::context_cost cost{.micro_step = 2e-3};
  double const token_bytes = 2 * (2 * model.hidden + 2 * model.keys) * model.layers * 2;
  for (std::uint32_t degree = 1; degree <= cluster.ranks; ++degree) {
    bool const is_in_node = degree <= cluster.ranks_per_node;
    double const link = is_in_node ? cluster.node_link_bytes : cluster.link_bytes;
    double const fixed = degree == 1 ? 1e-3 : is_in_node ? 2e-3 : 3e-3;
    double const others = (degree - 1.0) / degree;
    cost.degrees.push_back(
        {fixed, (6 * model.parameters / cluster.flops + token_bytes * others / link) / degree,
         6 * model.layers * model.hidden / cluster.flops / degree});
  }
  return cost;
}

}  // namespace examples
