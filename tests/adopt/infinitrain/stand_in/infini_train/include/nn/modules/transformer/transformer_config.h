// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace infini_train::nn {

enum class MLPType { kGELU, kSwiGLU };

struct TransformerConfig {
  std::int64_t block_size = 1024;
  std::int64_t vocab_size = 50304;
  std::int64_t n_layer = 12;
  std::int64_t n_head = 12;
  std::int64_t n_kv_head = 12;
  std::int64_t n_embd = 768;
  MLPType activation_type = MLPType::kGELU;
  bool flash = false;
};

}  // namespace infini_train::nn
