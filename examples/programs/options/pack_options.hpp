// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The command line of pack_dataset.

#include "dataset.hpp"
#include "length_options.hpp"
#include "progress.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace examples {

enum class packer_kind { next_fit, isf, best_fit_decreasing, best_packing };
enum class shuffle_kind { fisher_yates, feistel, numpy };
enum class task_kind { pack, describe };
enum class output_kind { summary, details, quiet };

enum class keep_kind {
  /// A group is kept that reaches the threshold in any resource.
  reaches_any,
  /// OmniBal's code: images equal to their threshold, or tokens that reach theirs.
  reference
};

enum class improvement_kind {
  none,
  /// Samples are exchanged between the groups for fewer of them with evener loads.
  exchanges
};

/// How long a rank takes for what it gets.
struct rank_times {
  double ms_per_tile = 11.8;
  double ms_per_token = 0.308;
  /// False for the default, which no one measured on the devices of the user.
  bool is_given = false;
};

struct pack_options {
  length_options lengths;
  std::size_t synthetic_samples = 100000;

  task_kind task = task_kind::pack;
  packer_kind packer = packer_kind::best_packing;
  improvement_kind improvement = improvement_kind::none;
  /// The share of groups above the fewest that make the others evener.
  double spare_groups = 0;
  /// What the samples have. Text has a capacity of one image, which nothing takes.
  sample_kind kind = sample_kind::images_and_text;
  omnibal::resources<2> capacity{9, 4096};
  /// The mean number of samples in a group for which a capacity is chosen; zero: none is.
  double target_batch = 0;
  omnibal::resources<2> threshold{9, 3968};
  /// As they were typed: nothing, tokens, or images and tokens.
  std::vector<std::int64_t> typed_capacity;
  std::vector<std::int64_t> typed_threshold;
  keep_kind keep = keep_kind::reaches_any;
  shuffle_kind shuffle = shuffle_kind::fisher_yates;
  std::size_t rounds = 50;
  std::int64_t align_tokens = 1;
  std::uint64_t seed = 1024;

  std::size_t ranks = 8;
  rank_times times;
  /// The share of a step that ranks may wait in the mean.
  double max_dist_ratio = 0.005;
  std::uint64_t epoch = 0;
  omnibal::remainder_policy remainder = omnibal::remainder_policy::short_step;

  std::filesystem::path output = "plan";
  /// The file of the picture; empty: none is drawn.
  std::filesystem::path svg;
  output_kind output_text = output_kind::summary;
  visibility progress_line = visibility::hidden;
};

/// The command line is wrong. The text names the option and the value.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Sets the capacity, and the threshold to its default for that.
void set_capacity(pack_options& options, omnibal::resources<2> const& capacity);

/// Sets capacity and threshold as they were typed, for samples of this kind. Without a capacity one
/// is chosen later: for images and text through `target_batch`, four samples unless another was
/// typed. Errors: `usage_error` for amounts that samples of this kind do not have.
void settle(pack_options& options, sample_kind kind);

/// The options of a command line, or nothing where it asked for help, which has been printed then.
[[nodiscard]] std::optional<pack_options> parse_command_line(int count, char const* const* words);

[[nodiscard]] std::string library_version();

/// The names of the choices on the command line and in the plan.
[[nodiscard]] std::string to_text(packer_kind kind);
[[nodiscard]] std::string to_text(shuffle_kind kind);
[[nodiscard]] std::string to_text(keep_kind kind);
[[nodiscard]] std::string to_text(omnibal::remainder_policy policy);

}  // namespace examples
