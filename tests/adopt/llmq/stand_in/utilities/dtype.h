// SPDX-License-Identifier: Apache-2.0
#pragma once

// A stand-in with the names of llmq's public interface that docs/evidence/adopt_llmq.md
// uses; the other headers of this folder are stand-ins too. They contain no code of llmq.

enum class ETensorDType { FP32, BF16, FP16, INT8, FP8_E4M3 };

constexpr int get_dtype_size(ETensorDType type) {
  switch (type) {
    case ETensorDType::FP32: return 4;
    case ETensorDType::BF16:
    case ETensorDType::FP16: return 2;
    default: return 1;
  }
}
