// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A stage of a pipeline: some layers of the model, on one of the processes that run a step
/// together.

#include "model.hpp"

#include <omnibal/pipeline/schedule.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace train_vlm {

/// What a stage did for a micro-batch, and the time of the processor that it took.
struct stage_operation {
  omnibal::operation_kind kind = omnibal::operation_kind::forward;
  std::uint32_t micro_batch = 0;
  double seconds = 0;
};

/// What a neighbor sends, a tensor for each micro-batch: the next one is under way while this
/// stage computes. Where there is nothing to send, as of a text before the projector, nothing is
/// sent.
class arrivals {
 public:
  using group = ::c10d::ProcessGroupGloo;
  using shapes = std::vector<std::vector<std::int64_t>>;

  /// `tag` tells what goes forward from what goes backward.
  arrivals(group& of, int from, int tag, shapes shapes_of_all);

  /// That of the next micro-batch, which has come then; undefined where there is nothing. Errors:
  /// those of the group, as where the neighbor is gone or its timeout has passed.
  [[nodiscard]] at::Tensor take();

 private:
  void expect();

  group* group_;
  int from_, tag_;
  shapes shapes_;
  std::size_t next_ = 0;
  at::Tensor tensor_;
  c10::intrusive_ptr<::c10d::Work> work_;
};

/// The layers [boundaries[rank], boundaries[rank + 1]) of the chain of a model, which must live as
/// long. Every process has the whole model here, so that cuts can be changed; one of another
/// stage's layers is neither read nor changed.
class pipeline_stage {
 public:
  using group = arrivals::group;

  pipeline_stage(vlm& model, std::span<std::uint32_t const> boundaries,
                 c10::intrusive_ptr<group> of);

  /// Forward and backward passes of all micro-batches, which all stages have in the same order:
  /// adds up the gradients of `parameters()`, of losses multiplied by `scale`. Returns the sum of
  /// the losses on the last stage, zero on the others. A collective call.
  double run(std::span<batch const> micro_batches, double scale);

  /// What the last `run` did, in this order.
  [[nodiscard]] std::vector<stage_operation> const& operations() const { return operations_; }
  /// What an optimizer of this process has to step.
  [[nodiscard]] std::vector<at::Tensor> parameters() const;

 private:
  /// A micro-batch between its passes, until what it sent has come.
  struct kept_pass {
    at::Tensor in, out;
    c10::intrusive_ptr<::c10d::Work> sent;
  };

  [[nodiscard]] bool is_first() const { return first_ == 0; }
  [[nodiscard]] bool is_last() const { return last_ == model_->chain_size(); }
  [[nodiscard]] arrivals arrivals_from(int rank, std::size_t layers, int tag,
                                       std::span<batch const> micro_batches) const;
  [[nodiscard]] c10::intrusive_ptr<::c10d::Work> send(at::Tensor const& tensor, int rank, int tag);
  double forward(batch const& of, kept_pass& pass, arrivals& activations);
  void backward(kept_pass& pass, double scale, arrivals& gradients);

  vlm* model_;
  c10::intrusive_ptr<group> group_;
  std::size_t stages_, first_, last_;
  std::vector<stage_operation> operations_;
};

}  // namespace train_vlm
