// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/transformer_config.h"
#include "utilities/dtype.h"

#include <optional>

struct LLamaOptions {
  bool RecomputeSwiGLu = false;
  bool RecomputeRMSNorm = false;
  bool RecomputeFFN = false;
  bool RecomputeQKV = false;
  bool RecomputeAtt = false;
  bool RecomputeBlock = false;
  bool OffloadResidual = false;
  std::optional<ETensorDType> MatmulType = std::nullopt;
};
