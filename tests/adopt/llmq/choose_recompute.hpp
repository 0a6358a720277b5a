// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/llama_model.h"
#include "training/transformer_config.h"
#include "utilities/dtype.h"

#include <omnibal/activation_option.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// What the GPU does in a second, measured: operations of matrices, and bytes of memory.
struct device_rates {
  double flops;
  double bytes;
};

/// B sequences of T tokens.
struct micro_batch {
  std::int64_t B;
  std::int64_t T;
};

/// All settings of the flags that differ, flags that imply others set with them.
inline std::vector<LLamaOptions> recompute_settings(LLamaOptions const& options) {
  std::vector<LLamaOptions> settings;
  for (bool const norm : {false, true}) {
    for (int const ffn : {0, 1, 2}) {
      for (int const att : {0, 1, 2}) {
        LLamaOptions setting = options;
        setting.RecomputeRMSNorm = norm;
        setting.RecomputeSwiGLu = ffn >= 1;
        setting.RecomputeFFN = ffn == 2;
        setting.RecomputeQKV = att >= 1;
        setting.RecomputeAtt = att == 2;
        setting.RecomputeBlock = false;
        settings.push_back(setting);
      }
    }
  }
  settings.push_back(settings.back());
  settings.back().RecomputeBlock = true;
  return settings;
}

/// What one layer keeps of a micro-batch, and the seconds that it takes to make the rest again: the
/// tensors of `sLLamaLayerActivations` and the steps of `_recompute_block`, without the norms of
/// queries and keys.
inline omnibal::activation_option<double> layer_choice(TransformerConfig const& config,
                                                       LLamaOptions const& options,
                                                       micro_batch const& batch,
                                                       device_rates const& rates) {
  std::int64_t const C = config.HiddenSize;
  std::int64_t const H = config.IntermediateSize;
  std::int64_t const qkv = config.qkv_channels();
  std::int64_t const tokens = batch.B * batch.T;
  std::int64_t const element = get_dtype_size(config.DType);
  bool const quantized = options.MatmulType && *options.MatmulType != config.DType;
  bool const block = options.RecomputeBlock;
  bool const att = options.RecomputeAtt || block;
  bool const ffn = options.RecomputeFFN || block;
  bool const norm = options.RecomputeRMSNorm || block;

  omnibal::activation_option<double> result;
  auto const tensor = [&](std::int64_t bytes, bool kept) {
    (kept ? result.bytes : result.transient_bytes) += tokens * bytes;
  };
  tensor(element * C, !options.OffloadResidual);     // the residual after the block
  tensor(element * C, !block);                       // the residual after attention
  tensor(element * C, !quantized && !norm && !att);  // the first norm
  tensor(element * C, !quantized && !norm && !ffn);  // the second norm
  tensor(element * qkv, !options.RecomputeQKV && !att);
  tensor(element * C, !att);  // the output of attention
  tensor(element * 2 * H, !ffn);
  tensor(element * H, !quantized && !options.RecomputeSwiGLu && !ffn);
  if (quantized) {
    tensor(2 * C, !norm);
    tensor(H, !options.RecomputeSwiGLu && !ffn);
  }
  tensor(4 * (2 + config.NumQueryHeads), true);  // statistics

  auto const matrix = [&](std::int64_t rows, std::int64_t columns, bool again) {
    if (again) result.time += static_cast<double>(2 * tokens * rows * columns) / rates.flops;
  };
  auto const moved = [&](std::int64_t bytes, bool again) {
    if (again) result.time += static_cast<double>(tokens * bytes) / rates.bytes;
  };
  moved(2 * element * C, norm || att);
  matrix(C, qkv, options.RecomputeQKV || att);
  moved(2 * element * qkv, options.RecomputeQKV || att);  // rotary positions
  matrix(batch.T, C, att);                                // causal: half of two products
  matrix(C, C, block);
  moved(2 * element * C, norm || ffn);
  matrix(C, 2 * H, ffn);
  moved(3 * element * H, options.RecomputeSwiGLu || ffn);
  return result;
}

/// Sets the flags with which the activations of all layers stay within a budget of bytes and the
/// least is made again. `status` is infeasible where no flags do.
inline omnibal::recompute_result<double> choose_recompute(LLamaOptions& options,
                                                          TransformerConfig const& config,
                                                          micro_batch const& batch,
                                                          device_rates const& rates,
                                                          std::int64_t budget) {
  auto const settings = recompute_settings(options);
  std::vector<omnibal::activation_option<double>> choices;
  for (LLamaOptions const& setting : settings) {
    auto choice = layer_choice(config, setting, batch, rates);
    choice.bytes *= config.NumLayers;
    choice.time *= config.NumLayers;
    choices.push_back(choice);
  }
  // One set of flags holds for all layers: a model of one layer.
  auto const chosen = omnibal::select_recompute(std::array{choices}, budget);
  if (chosen.status == omnibal::solve_status::solved) options = settings[chosen.choices[0]];
  return chosen;
}
