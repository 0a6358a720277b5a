// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The command line of pack_long_context.

#include "context_comparison.hpp"
#include "length_options.hpp"
#include "long_context_mix.hpp"
#include "machine_file.hpp"
#include "model_file.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// The tokens of samples in which `long_context_options::clips` stand.
inline constexpr std::int64_t tokens_with_clips = 4096;

/// What the program compares: levels over an epoch, or ways of running given steps.
enum class long_context_task { levels, steps };

/// What the losses of a step are divided by: its tokens, or those of a mean step of the epoch, so
/// that every token of the epoch weighs the same.
enum class loss_weights { epoch, step };
inline constexpr std::array<std::string_view, 2> loss_weight_names{"epoch", "step"};

struct long_context_options {
  long_context_task task = long_context_task::levels;
  length_options lengths;
  length_mix mix = length_mix::two_sources;
  std::size_t synthetic_samples = 100'000;
  std::uint64_t seed = 1024;
  std::int64_t ranks = 32;
  /// Its language model trains.
  model_description model = find_model("llama3-8b", model_parts::language);
  /// In every `tokens_with_clips` tokens of the samples; none for a model without an audio tower.
  omnibal::repeated_length clips{};
  machine_description machine = find_machine("a100-80gb");
  /// The directory of the plan; empty for none.
  std::filesystem::path output;
  loss_weights weights = loss_weights::epoch;
  /// The file of the picture of the levels; empty for none.
  std::filesystem::path svg;
  /// So many steps of the epoch have short packs only.
  std::uint64_t short_first_steps = 0;

  step_size size{};
  std::uint32_t ranks_per_node = 8;
  /// Ascending; none for all.
  std::vector<std::uint32_t> degrees;
  /// What the memory of a rank holds.
  std::int64_t rank_tokens = 16'384;
  /// The file of the picture of a step; empty for none.
  std::filesystem::path svg_step;
};

/// The options of a command line, or nothing where it asked for help, which has been printed then.
/// Errors: `std::runtime_error` that names the option and the value.
[[nodiscard]] std::optional<long_context_options> parse_long_context(int count,
                                                                     char const* const* words);

}  // namespace examples
