// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Steps of long and short samples for three models on any number of ranks.

#include "context_model.hpp"
#include "context_rivals.hpp"
#include "long_context_mix.hpp"

#include <omnibal/context/context_groups.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace bench {

inline constexpr std::uint32_t ranks_per_node = 8;

enum class allowed_degrees { any, in_nodes, powers_of_two };

/// A step of each model and mixture, of `n` samples on `ranks`.
[[nodiscard]] inline std::vector<examples::context_step> model_steps(benchmark::State const& state,
                                                                     allowed_degrees allowed) {
  std::vector<examples::context_step> steps;
  auto const count = static_cast<std::size_t>(state.range(0));
  auto const ranks = static_cast<std::uint32_t>(state.range(1));
  for (char const* const name : {"llama3-8b", "llama3-70b", "deepseek-v2"}) {
    examples::model_shape const model = examples::known_shape(name);
    for (auto const mix : {examples::length_mix::two_sources, examples::length_mix::broad}) {
      examples::context_step step{
          .ranks = ranks, .cost = examples::context_cost_of(model, {ranks, ranks_per_node})};
      for (auto const& sample : examples::long_context_mix(mix, count, count + 7).samples) {
        step.lengths.push_back(sample.tokens);
      }
      step.options.capacity = 16'384;
      if (allowed == allowed_degrees::in_nodes) step.options.ranks_per_node = ranks_per_node;
      if (allowed == allowed_degrees::powers_of_two) {
        step.options.degrees = omnibal::powers_of_two(ranks);
      }
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

}  // namespace bench
