// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "infini_train/include/tensor.h"

#include <cstddef>
#include <memory>
#include <utility>

namespace infini_train {

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::pair<std::shared_ptr<Tensor>, std::shared_ptr<Tensor>> operator[](
      std::size_t idx) const = 0;
  virtual std::size_t Size() const = 0;
};

}  // namespace infini_train
