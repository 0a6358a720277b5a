// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What plan_vlm takes for granted unless it is told otherwise. Written down before its first run;
/// nothing here was fitted to a result.

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layer_cost.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace examples {

/// The cluster and the training of OmniBal's ablation, as far as the paper tells; the rest are the
/// defaults of trainers.
struct vlm_assumptions {
  /// 64 A100 as 4 stages, 2 tensor-parallel and 8 data-parallel ranks.
  std::size_t stages = 4;
  /// Chunks of the model on each stage, looped; 1F1B for one chunk, interleaved 1F1B for several.
  std::size_t chunks = 1;
  std::int64_t tensor_ranks = 2;
  std::size_t data_ranks = 8;
  /// Micro-batches of a rank in a step, and samples of a random micro-batch.
  std::size_t micro_batches = 16;
  std::size_t batch_samples = 4;
  /// Half of the peak is reached by every matrix product; other operations and transfers take no
  /// time.
  double peak_flops = 312e12;
  omnibal::device_model device{.flops_per_second = 156'000'000'000'000};
  /// Without 4 GB for the context of the device, buffers of communication and fragmentation.
  std::int64_t memory_bytes = 80'000'000'000;
  std::int64_t reserve_bytes = 4'000'000'000;
  /// For GPU days: the size of the set on which InternVL-Chat 1.2 was tuned.
  double training_samples = 1'200'000;
  /// Data-parallel ranks that share out experts.
  std::int64_t expert_ranks = 1;
  /// By `recompute_choice`: what layers may do in the last plan.
  std::array<bool, 3> recomputed{true, true, true};

  /// Norms are split (sequence parallelism), the optimizer is shared out over the data-parallel
  /// ranks; bf16 with gradients in fp32. All layers are trained, attention is fused.
  [[nodiscard]] omnibal::parallel_degrees degrees() const {
    return {.tensor = tensor_ranks,
            .data = static_cast<std::int64_t>(data_ranks),
            .expert = expert_ranks,
            .norms = omnibal::norm_regions::split,
            .sharding = omnibal::sharded_state::optimizer,
            .pipeline = static_cast<std::int64_t>(stages)};
  }
  [[nodiscard]] double gpus() const {
    return static_cast<double>(stages * data_ranks) * static_cast<double>(tensor_ranks);
  }
};

}  // namespace examples
