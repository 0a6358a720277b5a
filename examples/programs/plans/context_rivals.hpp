// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What trainers without groups of different sizes do with a step of long and short samples: one
/// degree for all, or one for each level of length.

#include <omnibal/context/context_groups.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace examples {

/// Samples of a step, and what they run on. A sample takes its tokens, shared by the ranks of a
/// group.
struct context_step {
  std::vector<std::int64_t> lengths{};
  std::uint32_t ranks = 1;
  omnibal::context_cost cost{};
  omnibal::context_groups_options options{};

  static std::int64_t memory(std::int64_t length, std::uint32_t degree) {
    return (length + degree - 1) / degree;
  }
};

/// One degree for all samples, as well as the library deals them. Infeasible where one does not
/// fit.
[[nodiscard]] omnibal::context_plan one_degree(context_step const& step,
                                               std::span<std::int64_t const> lengths,
                                               std::uint32_t degree,
                                               omnibal::context_groups_workspace& workspace);

/// The degrees that all ranks of a step can have at once: the allowed ones, or where all are those
/// that divide the ranks.
[[nodiscard]] std::vector<std::uint32_t> single_degrees(context_step const& step);

/// The plan with the least time with one of the degrees of `single_degrees`. Infeasible where a
/// sample fits on none.
[[nodiscard]] omnibal::context_plan best_degree(context_step const& step,
                                                std::span<std::int64_t const> lengths,
                                                omnibal::context_groups_workspace& workspace);

/// Levels as in hierarchical balance packing: samples of neighboring octaves of length in
/// micro-steps of their own, with the best degree for them. The first octave ends at an eighth of
/// what a rank holds, and of all ways to part them into levels, one level among them, this is the
/// best.
[[nodiscard]] omnibal::context_plan best_levels(context_step const& step,
                                                omnibal::context_groups_workspace& workspace);

}  // namespace examples
