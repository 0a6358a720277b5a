#include "context_model.hpp"

namespace examples {

omnibal::context_cost context_cost_of(model_shape const& model, context_cluster const& cluster) {
  constexpr double flops = 400e12;
  omnibal::context_cost cost{.micro_step = 2e-3};
  double const token_bytes = 2 * (2 * model.hidden + 2 * model.keys) * model.layers * 2;
  for (std::uint32_t degree = 1; degree <= cluster.ranks; ++degree) {
    bool const is_in_node = degree <= cluster.ranks_per_node;
    double const link = is_in_node ? 200e9 : 50e9;
    double const fixed = degree == 1 ? 1e-3 : is_in_node ? 2e-3 : 3e-3;
    double const others = (degree - 1.0) / degree;
    cost.degrees.push_back({fixed,
                            (6 * model.parameters / flops + token_bytes * others / link) / degree,
                            6 * model.layers * model.hidden / flops / degree});
  }
  return cost;
}

}  // namespace examples
