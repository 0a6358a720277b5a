// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The configuration of a training step, and its predicted time and memory.

#include <omnibal/cost/kernel_times.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// The relation of communication and computation in time.
enum class communication {
  blocking,    ///< the device waits
  overlapped,  ///< other work runs meanwhile, as far as there is any
};

/// The offload of kept activations from each device to the memory of its host.
struct activation_offload {
  /// The share of the kept bytes of each layer that is offloaded, from 0 to 1.
  double share = 0;
  /// The bytes per second of one device in each direction; must be positive if `share` is.
  double bytes_per_second = 0;

  [[nodiscard]] friend bool operator==(activation_offload const&,
                                       activation_offload const&) = default;
};

/// The configuration of a training step.
struct training_step {
  /// The number of sequences of a micro-batch, and the tokens of each sequence.
  std::int64_t sequences = 1;
  std::int64_t tokens = 0;
  /// The tokens of a packed document; 0 means that a sequence is one document.
  std::int64_t document_tokens = 0;
  /// A micro-batch of any documents, tiles and images. If it is not empty, it replaces `sequences`,
  /// `tokens` and `document_tokens`, which must then have their defaults.
  micro_batch_work work{};
  /// The number of micro-batches of a data-parallel rank.
  std::int64_t micro_batches = 1;
  parallel_degrees degrees{};
  /// The number of chunks of the model on a stage; if it is above 1, the schedule is interleaved.
  std::int64_t chunks = 1;
  recompute_choice recomputed = recompute_choice::none;
  activation_offload offload{};
  matmul_precision precision = matmul_precision::bf16;
  byte_sizes bytes{};
  /// The bytes of a gradient in a reduction, and of a parameter in a gather.
  std::int64_t reduced_bytes = 2;
  std::int64_t gathered_bytes = 2;
  /// The number of data-parallel ranks that share the state; 0 means all of them.
  std::int64_t state_ranks = 0;
  /// The bytes that one call of a reduction sends.
  std::int64_t bucket_bytes = 500'000'000;
  /// The overlap of two kinds of communication. Collectives of tensor parallelism in the backward
  /// pass can overlap the gradients of weights. Transfers of an interleaved pipeline can overlap
  /// passes.
  communication layer_communication = communication::blocking;
  /// The overlap of the reduction of gradients. If `degrees.sharding` is `parameters`, layers are
  /// always gathered while other layers compute.
  communication gradient_communication = communication::overlapped;
  /// The boundaries of virtual stages over embedding, layers and head; one more than `pipeline *
  /// chunks`. If the list is empty, `even_boundaries` chooses them.
  std::vector<std::int64_t> boundaries{};
};

/// The seconds of the parts of a step, for the slowest stage. Their sum is the time of the step.
struct step_seconds {
  double matmul = 0;
  double attention = 0;
  double memory = 0;
  /// The time of collectives of tensor, context and expert parallelism that does not overlap
  /// computation.
  double tensor = 0;
  double context = 0;
  double expert = 0;
  /// The time of transfers between stages that does not overlap computation.
  double transfer = 0;
  /// The time of the offload of activations, and of their way back, that does not overlap
  /// computation.
  double offload = 0;
  /// The time in which the device is idle until the host launches kernels.
  double launch = 0;
  /// The idle time of the slowest stage, because of other stages.
  double bubble = 0;
  /// The time of reductions of gradients and gathers of parameters that does not overlap
  /// computation.
  double gradients = 0;
  double optimizer = 0;

  static constexpr std::array<double step_seconds::*, 12> parts() {
    return {&step_seconds::matmul,   &step_seconds::attention, &step_seconds::memory,
            &step_seconds::tensor,   &step_seconds::context,   &step_seconds::expert,
            &step_seconds::transfer, &step_seconds::offload,   &step_seconds::launch,
            &step_seconds::bubble,   &step_seconds::gradients, &step_seconds::optimizer};
  }

  [[nodiscard]] constexpr double total() const {
    double sum = 0;
    for (auto const part : parts()) sum += this->*part;
    return sum;
  }

  constexpr step_seconds& add(step_seconds const& other, double times = 1) {
    for (auto const part : parts()) this->*part += times * (other.*part);
    return *this;
  }

  [[nodiscard]] friend bool operator==(step_seconds const&, step_seconds const&) = default;
};

/// The result of `predict_step`.
struct step_prediction {
  step_seconds seconds{};
  /// The seconds of a micro-batch on each virtual stage, including transfers. `simulate_pipeline`
  /// returns the timeline of the passes for these times. The reduction of gradients and the
  /// optimizer follow the passes.
  std::vector<stage_time<double>> passes{};
  /// The peak of the bytes of each stage: state, kept and transient activations.
  std::vector<std::int64_t> peak_bytes{};
  /// The peak of the bytes that a device of each stage offloads to its host.
  std::vector<std::int64_t> host_bytes{};

  [[nodiscard]] double total() const { return seconds.total(); }

  [[nodiscard]] friend bool operator==(step_prediction const&, step_prediction const&) = default;
};

}  // namespace omnibal::inline v0
