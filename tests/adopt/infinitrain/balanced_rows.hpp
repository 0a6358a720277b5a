// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "infini_train/include/dataset.h"
#include "infini_train/include/tensor.h"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

/// What a sample takes of a row.
struct row_demand {
  std::int64_t images;
  std::int64_t tokens;
};

/// Rows of samples that together fill a sequence, in an order in which all ranks of a
/// `DistributedDataLoader` have equally much to do in every step.
class balanced_rows : public infini_train::Dataset {
 public:
  using row =
      std::pair<std::shared_ptr<infini_train::Tensor>, std::shared_ptr<infini_train::Tensor>>;
  /// Makes the input and the target of a row of these samples, padded to its length.
  using row_maker = std::function<row(std::span<std::uint32_t const>)>;

  struct loading {
    omnibal::resources<2> capacity;
    std::uint32_t batch_size;
    std::size_t ranks;
    std::uint64_t seed = 0;
  };

  balanced_rows(std::vector<row_demand> const& samples, loading const& how, row_maker make)
      : how_(how), make_(std::move(make)) {
    auto const demand = omnibal::demand_of(&row_demand::images, &row_demand::tokens);
    auto packed = omnibal::place_oversized(omnibal::best_packing(samples, demand, how.capacity),
                                           omnibal::oversize_policy::reject);
    groups_ = std::move(packed.groups);
    loads_ = omnibal::group_loads(groups_, samples, demand);
    set_epoch(0);
  }

  /// Other rows meet in a step. To be called before the epoch's loader is made.
  void set_epoch(std::uint64_t epoch) {
    auto const schedule = omnibal::schedule_steps(loads_, how_.ranks,
                                                  {.seed = how_.seed,
                                                   .epoch = epoch,
                                                   .remainder = omnibal::remainder_policy::repeat,
                                                   .groups_per_rank = how_.batch_size});
    auto const rows = schedule.cells().items();
    order_.assign(rows.begin(), rows.end());
    // The loader leaves out what does not fill a step.
    std::size_t const of_step = how_.batch_size * how_.ranks;
    for (std::size_t i = 0; order_.size() % of_step != 0; ++i) order_.push_back(order_[i]);
  }

  row operator[](std::size_t idx) const override { return make_(groups_[order_[idx]]); }
  std::size_t Size() const override { return order_.size(); }

 private:
  loading how_;
  row_maker make_;
  omnibal::grouping groups_;
  std::vector<omnibal::resources<2>> loads_;
  std::vector<std::uint32_t> order_;
};
