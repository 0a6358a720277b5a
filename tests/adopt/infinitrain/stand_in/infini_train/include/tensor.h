// SPDX-License-Identifier: Apache-2.0
#pragma once

// A stand-in with the names of InfiniTrain's public interface that docs/evidence/adopt_infinitrain.md
// uses; the other headers of this folder are stand-ins too. They contain no code of InfiniTrain.

#include <cstdint>
#include <utility>
#include <vector>

namespace infini_train {

class Tensor {
 public:
  explicit Tensor(std::vector<std::int64_t> values) : values_(std::move(values)) {}
  std::vector<std::int64_t> const& values() const { return values_; }

 private:
  std::vector<std::int64_t> values_;
};

}  // namespace infini_train
