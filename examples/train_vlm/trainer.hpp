// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Training on several processes: batches, gradients, steps and checkpoints.

#include "feed.hpp"
#include "model.hpp"
#include "options.hpp"

#include <omnibal/comm/c10d.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/optim.h>

namespace train_vlm {

/// Where this process is among those that train together.
struct place_in_world {
  std::size_t rank = 0;
  std::size_t ranks = 1;
  /// The file by which the processes find each other.
  std::string meeting;
};

/// The times of a step of a rank, in seconds.
struct step_times {
  double planning = 0;
  /// Forward and backward passes; of the processor too.
  double compute = 0;
  double processor = 0;
  /// In the sum of the gradients, waiting for other ranks included.
  double reduction = 0;
  double all = 0;
  /// What the cost functor says of `processor`.
  double predicted = 0;
  std::int64_t tokens = 0;
  std::int64_t images = 0;
};

/// The samples of a rank in a step; those that came from other ranks are kept here.
struct step_samples {
  std::vector<sample_contents> received;
  std::vector<sample_contents const*> samples;
  batch_features features{};
};

/// How many tokens of them have a loss.
[[nodiscard]] std::int64_t loss_tokens(step_samples const& of);

/// A batch that is measured before the training.
struct profile_batch {
  std::vector<std::uint32_t> ids;
  form_kind form = form_kind::unpadded;
};

/// What some batches took, measured before the training.
struct batch_profile {
  /// The cost functor that was fitted to the processor times.
  time_model cost;
  /// The relative standard deviation of a single measured time from the functor.
  double spread = 0;
  /// Seconds of a step besides the passes: sum of the gradients, optimizer, numbers of tokens.
  double step_seconds = 0;
  /// Seconds of a step for the plan and the exchange of post-balancing.
  double exchange_seconds = 0;
};

struct step_result {
  step_times times;
  /// The mean loss of all tokens of the step.
  double loss = 0;
  /// Some rank wants to stop.
  bool stops = false;
};

/// What the losses of a rank are divided by.
struct loss_weight {
  weight_kind kind = weight_kind::step;
  /// What they are multiplied by in all steps, for `weight_kind::epoch`.
  double scale = 0;
};

class trainer {
 public:
  using group = ::c10d::ProcessGroupGloo;

  /// Meets the other processes. Data sets of several trainers are made once, by `fill`.
  trainer(train_options const& options, place_in_world const& place);

  /// The model and the optimizer as they are at the begin.
  void reset(std::uint64_t seed);

  /// Makes the contents of all samples.
  void fill(packed_data data);
  [[nodiscard]] packed_data const& data() const { return data_; }

  /// Some packs, and halves of packs with and without padding, so that tiles, tokens and samples
  /// do not grow together.
  [[nodiscard]] std::vector<profile_batch> profile_batches() const;
  /// Fits a cost functor to the medians of the times that each batch took on rank 0, and computes
  /// the spread of all these times. Equal on all ranks.
  [[nodiscard]] batch_profile fitted(std::vector<profile_batch> const& batches,
                                     std::vector<std::vector<double>> const& seconds);
  /// Measures such batches in steps, all ranks the same ones at once; the model begins anew.
  [[nodiscard]] batch_profile profile();

  /// The samples of a step: those of `ids`, or for post-balancing what moves to this rank.
  [[nodiscard]] step_samples gather(form_kind form, std::span<std::uint32_t const> ids,
                                    time_model const& cost);
  /// Adds the gradients of a batch whose losses are multiplied by `scale`; returns the sum of the
  /// losses.
  double add_gradients(step_samples const& of, padding padded, double scale);
  /// The mean loss of all tokens of the data, without training on them.
  [[nodiscard]] double evaluate();
  /// The gradients of all parameters in one row, zero where there are none yet.
  [[nodiscard]] at::Tensor gradients();
  /// What losses are multiplied by before the mean of the gradients over the ranks.
  [[nodiscard]] double scale_of(weight_kind weight, std::int64_t own_loss_tokens);
  /// A step of AdamW with the mean over the ranks of gradients that were added up.
  void update(at::Tensor const& sum);

  /// Gradients of `ids`, their mean over the ranks, and a step of AdamW.
  step_result step(form_kind form, std::span<std::uint32_t const> ids, time_model const& cost,
                   loss_weight const& weight, bool stops);

  /// The sum over all ranks.
  void sum(at::Tensor& values);

  void save(std::string const& path, time_model const& cost, omnibal::sampler_state const& state);
  /// The cost functor and the state that were saved. Errors: `std::runtime_error` for a file that
  /// is no checkpoint, or one of other options.
  [[nodiscard]] std::pair<time_model, omnibal::sampler_state> load(std::string const& path);

  [[nodiscard]] omnibal::c10d::communicator_ref<group> const& comm() const { return comm_; }
  [[nodiscard]] omnibal::shard shard() const { return {place_.ranks, place_.rank}; }
  [[nodiscard]] vlm& model() { return *model_; }

 private:
  [[nodiscard]] static c10::intrusive_ptr<group> connect(train_options const& options,
                                                         place_in_world const& place);

  train_options options_;
  place_in_world place_;
  omnibal::c10d::communicator_ref<group> comm_;
  packed_data data_;
  std::vector<sample_contents> contents_;
  std::shared_ptr<vlm> model_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
};

}  // namespace train_vlm
