// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The command line of post_balance.

#include "length_options.hpp"
#include "modality_mix.hpp"
#include "model_file.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace examples {

/// What the ranks are. `simulated` ones do not exist: their plans are made by one thread.
enum class rank_engine { threads, mpi, nccl, simulated };
enum class plan_rule { rebalance, lpt };

struct post_balance_options {
  /// Without files samples are those of the synthetic mix.
  length_options lengths;
  rank_engine engine = rank_engine::threads;
  /// Of threads and simulated ones.
  std::size_t ranks = 4;
  std::size_t ranks_per_node = 2;
  std::size_t samples_per_rank = 16;
  std::size_t steps = 8;
  std::uint64_t seed = 1024;
  plan_rule rule = plan_rule::rebalance;
  /// Whose vision tower and language model train, and what devices reach.
  model_description model = find_model("internvit-6b+llama3-70b", model_parts::both);
  modality_rates rates{};
};

/// The options of a command line, or nothing where it asked for help, which has been printed then.
/// Under mpirun ranks are those of MPI unless it says otherwise. Errors: `std::runtime_error` that
/// names the option and the value.
[[nodiscard]] std::optional<post_balance_options> parse_post_balance(int count,
                                                                     char const* const* words);

}  // namespace examples
