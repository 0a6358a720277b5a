// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "utilities/dtype.h"

struct TransformerConfig {
  int HiddenSize;
  int IntermediateSize;
  int VocabSize;
  int NumQueryHeads;
  int NumKeyValHeads;
  int NumLayers;
  ETensorDType DType = ETensorDType::BF16;

  [[nodiscard]] int head_size() const { return HiddenSize / NumQueryHeads; }
  [[nodiscard]] int qkv_channels() const {
    return head_size() * (NumQueryHeads + 2 * NumKeyValHeads);
  }
};
