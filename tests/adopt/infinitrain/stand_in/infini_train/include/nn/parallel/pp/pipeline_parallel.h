// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

namespace infini_train::nn::parallel {

struct StageInfo {
  bool is_first_stage;
  bool is_last_stage;
  std::vector<std::pair<int, int>> layer_ranges_per_chunk;
};

class PipelineParallel {
 public:
  /// Chunk c of a stage is the chunk c * pp_size + pp_rank of all; the first ones have a layer more
  /// where layers are left.
  static StageInfo GetStageInfo(int total_layers, int pp_size, int pp_rank,
                                int chunks_per_stage = 1) {
    StageInfo info{pp_rank == 0, pp_rank == pp_size - 1, {}};
    int const chunks = pp_size * chunks_per_stage;
    auto const begin = [&](int chunk) {
      int const with_one_more = total_layers % chunks;
      return chunk * (total_layers / chunks) + (chunk < with_one_more ? chunk : with_one_more);
    };
    for (int chunk = pp_rank; chunk < chunks; chunk += pp_size) {
      if (begin(chunk) != begin(chunk + 1)) {
        info.layer_ranges_per_chunk.emplace_back(begin(chunk), begin(chunk + 1));
      }
    }
    return info;
  }
};

}  // namespace infini_train::nn::parallel
