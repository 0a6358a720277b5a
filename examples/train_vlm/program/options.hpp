// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The command line of train_vlm.

#include "length_options.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace train_vlm {

enum class task_kind {
  /// Trains, writes checkpoints and goes on from them.
  train,
  /// Trains an epoch in every form, several times, and compares times.
  compare,
  /// Measures the batches of many ranks one after the other.
  replay,
  /// Compares the gradients of one global batch in every form.
  gradients,
  /// Compares the losses of some steps in every form.
  curves,
  /// Compares what epochs of every form teach, for several seeds.
  learning,
  /// Compares packs of texts of one length and of two.
  long_contexts,
  /// Recomputes layers under budgets of memory.
  memory,
  /// Runs the model as a pipeline, a stage on each rank, and compares cuts.
  pipeline,
};

/// How samples come to ranks.
enum class form_kind {
  /// Random batches of so many samples, padded to the longest.
  padded,
  /// The same without padding.
  unpadded,
  /// Packs under a capacity, dealt at random.
  random_packs,
  /// The same packs in even steps.
  even_packs,
  /// Random batches, evened after the draw: samples move between the ranks.
  post_balanced,
};
inline constexpr form_kind all_forms[] = {form_kind::padded, form_kind::unpadded,
                                          form_kind::random_packs, form_kind::even_packs,
                                          form_kind::post_balanced};

/// What the sum of the losses of a rank is divided by.
enum class weight_kind {
  /// The mean number of tokens of the ranks in the step: all tokens of a step weigh the same.
  step,
  /// That of the epoch: all tokens of an epoch weigh the same.
  epoch,
  /// The number of tokens of this rank: the mean of means, which is wrong.
  means,
};

enum class oversized_kind { error, own_group };

struct model_size {
  std::int64_t vision_width = 64;
  std::int64_t vision_layers = 2;
  std::int64_t width = 96;
  std::int64_t layers = 3;
  std::int64_t heads = 4;
  std::int64_t vocabulary = 64;
  /// Tokens of the language model for an image tile; the encoder sees four patches for each.
  std::int64_t tile_tokens = 16;
  std::int64_t patch_values = 48;
};

struct train_options {
  task_kind task = task_kind::train;
  form_kind form = form_kind::even_packs;
  weight_kind weight = weight_kind::step;
  oversized_kind oversized = oversized_kind::error;

  /// Without files lengths are synthetic.
  examples::length_options lengths;
  std::size_t synthetic_samples = 1024;
  /// The first ones of the data; zero for all.
  std::size_t limit = 0;
  /// Tokens in the lengths for one of the model.
  std::int64_t shrink = 16;
  /// The capacity of packs; zero if `target_batch` chooses it.
  std::int64_t capacity_images = 0;
  std::int64_t capacity_tokens = 0;
  /// The mean number of samples of a pack for which a capacity is chosen; zero if it is given.
  double target_batch = 4;

  model_size model;
  std::size_t ranks = 2;
  /// Samples of a rank in a step where they are not packed; zero for as many as packs have.
  std::size_t batch = 0;
  double max_dist_ratio = 0.02;
  std::uint64_t seed = 1;
  double learning_rate = 1e-3;
  std::uint64_t epochs = 1;
  /// The most steps; zero for no limit.
  std::uint64_t steps = 0;
  std::size_t runs = 3;
  /// Packs of a step of a pipeline.
  std::size_t micro_batches = 8;
  std::vector<std::size_t> replayed_ranks{8, 32, 64};

  /// In `task_kind::memory`, saved tensors may also leave the device.
  bool offloads = false;

  std::filesystem::path checkpoint;
  std::uint64_t checkpoint_every = 0;
  bool resumes = false;
  std::filesystem::path log;
  /// A picture of what was learned.
  std::filesystem::path svg;
  std::int64_t timeout_seconds = 300;
};

/// The options of a command line, or nothing where it asked for help, which has been printed then.
/// Errors: `std::runtime_error`.
[[nodiscard]] std::optional<train_options> parse_options(int count, char const* const* words);

[[nodiscard]] std::string to_text(form_kind form);

/// What a checkpoint must share with the run that goes on from it.
[[nodiscard]] std::string lasting_options(train_options const& options);

}  // namespace train_vlm
