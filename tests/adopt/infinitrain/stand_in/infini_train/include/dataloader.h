// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "infini_train/include/dataset.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace infini_train {

/// Batch k of rank r has the rows from (k * ranks + r) * batch_size on; rows that do not fill a
/// batch for every rank are not loaded.
class DistributedDataLoader {
 public:
  class iterator {
   public:
    iterator(DistributedDataLoader const& loader, std::size_t batch)
        : loader_(&loader), batch_(batch) {}

    std::pair<std::shared_ptr<Tensor>, std::shared_ptr<Tensor>> operator*() const {
      std::vector<std::int64_t> inputs;
      std::vector<std::int64_t> targets;
      std::size_t const first = (batch_ * loader_->ranks_ + loader_->rank_) * loader_->batch_size_;
      for (std::size_t row = first; row != first + loader_->batch_size_; ++row) {
        auto const [input, target] = (*loader_->rows_)[row];
        inputs.insert(inputs.end(), input->values().begin(), input->values().end());
        targets.insert(targets.end(), target->values().begin(), target->values().end());
      }
      return {std::make_shared<Tensor>(std::move(inputs)),
              std::make_shared<Tensor>(std::move(targets))};
    }

    iterator& operator++() {
      ++batch_;
      return *this;
    }
    iterator& SeekGlobalBatch(std::size_t batch) {
      batch_ = batch;
      return *this;
    }
    friend bool operator==(iterator const& a, iterator const& b) { return a.batch_ == b.batch_; }

   private:
    DistributedDataLoader const* loader_;
    std::size_t batch_;
  };

  DistributedDataLoader(std::shared_ptr<Dataset> const& rows, std::size_t batch_size,
                        std::size_t rank, std::size_t ranks)
      : rows_(rows), batch_size_(batch_size), rank_(rank), ranks_(ranks) {}

  iterator begin() const { return {*this, 0}; }
  iterator end() const { return {*this, NumGlobalBatches()}; }
  std::size_t NumGlobalBatches() const { return rows_->Size() / (batch_size_ * ranks_); }

 private:
  std::shared_ptr<Dataset> rows_;
  std::size_t batch_size_;
  std::size_t rank_;
  std::size_t ranks_;
};

}  // namespace infini_train
