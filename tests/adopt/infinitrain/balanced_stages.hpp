// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "infini_train/include/nn/modules/transformer/transformer_config.h"
#include "infini_train/include/nn/parallel/pp/pipeline_parallel.h"

#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/partition/partition_minimax.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

/// The FLOPs of each layer for a sequence of `tokens`. The last stage runs the head after its last
/// layer, so they count together. `ffn_hidden` is the width in the MLP.
inline std::vector<std::int64_t> layer_flops(infini_train::nn::TransformerConfig const& config,
                                             std::int64_t ffn_hidden, std::int64_t tokens) {
  using infini_train::nn::MLPType;
  omnibal::micro_batch_work const batch{
      .documents = omnibal::equal_sequences({.count = 1, .length = tokens})};
  omnibal::transformer const layer{.hidden = config.n_embd,
                                   .heads = config.n_head,
                                   .kv_heads = config.n_kv_head,
                                   .mlp = ffn_hidden,
                                   .feed_forward = config.activation_type == MLPType::kSwiGLU
                                                       ? omnibal::mlp_kind::gated
                                                       : omnibal::mlp_kind::plain,
                                   .kernel = config.flash ? omnibal::attention_kernel::flash
                                                          : omnibal::attention_kernel::unfused};
  omnibal::language_head const head{.vocabulary = config.vocab_size, .hidden = config.n_embd};

  std::vector<std::int64_t> flops(static_cast<std::size_t>(config.n_layer), layer(batch).flops());
  flops.back() += head(batch).flops();
  return flops;
}

/// What `PipelineParallel::GetStageInfo` returns, with stages that take equally long in place of
/// stages with equally many layers.
inline infini_train::nn::parallel::StageInfo balanced_stage_info(
    std::vector<std::int64_t> const& layer_times, int pp_size, int pp_rank,
    int chunks_per_stage = 1) {
  auto const chunks =
      static_cast<std::size_t>(pp_size) * static_cast<std::size_t>(chunks_per_stage);
  auto const cut = omnibal::partition_minimax(layer_times, chunks);
  infini_train::nn::parallel::StageInfo info{pp_rank == 0, pp_rank == pp_size - 1, {}};
  for (auto chunk = static_cast<std::size_t>(pp_rank); chunk < chunks;
       chunk += static_cast<std::size_t>(pp_size)) {
    info.layer_ranges_per_chunk.emplace_back(static_cast<int>(cut.boundaries[chunk]),
                                             static_cast<int>(cut.boundaries[chunk + 1]));
  }
  return info;
}
