// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace infini_train::nn::parallel {

inline thread_local int pp_rank = 0;

namespace global {

inline int GetPipelineParallelSize() { return 4; }
inline int GetVirtualPipelineParallelSize() { return 1; }

}  // namespace global

}  // namespace infini_train::nn::parallel
