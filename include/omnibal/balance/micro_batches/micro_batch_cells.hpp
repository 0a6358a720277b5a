#pragma once

/// \file
/// Which rank runs which micro-batch when.

#include <omnibal/balance/detail/capped_balancer.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Puts batches with neighbouring costs into the same step, evens them there, and gives each to the
/// rank with the least cost so far.
template <class Layout>
class micro_batch_cells {
 public:
  /// The arguments must outlive this object.
  micro_batch_cells(capped_balancer<Layout> const& balancer, whole_costs<1> const& costs,
                    std::size_t ranks)
      : balancer_(balancer), costs_(costs), ranks_(ranks) {}

  /// `batch_of` has the batch of each sample; the number of batches is a multiple of the ranks.
  [[nodiscard]] steps arrange(std::vector<std::uint32_t> batch_of, std::size_t batches) const {
    number_by_cost(batch_of, batches);
    even_steps(batch_of, batches);
    return deal(batch_of, batches);
  }

 private:
  [[nodiscard]] std::vector<std::int64_t> loads_of(std::vector<std::uint32_t> const& batch_of,
                                                   std::size_t batches) const {
    std::vector<std::int64_t> loads(batches, 0);
    for (std::size_t i = 0; i != batch_of.size(); ++i) loads[batch_of[i]] += costs_[i][0];
    return loads;
  }

  /// Numbers the batches from the largest to the smallest cost, so that those of step s are
  /// s * ranks, s * ranks + 1, ...
  void number_by_cost(std::vector<std::uint32_t>& batch_of, std::size_t batches) const {
    auto const loads = loads_of(batch_of, batches);
    auto const order = order_descending(batches, [&loads](std::size_t b) { return loads[b]; });
    std::vector<std::uint32_t> number_of(batches);
    for (std::uint32_t n = 0; n != batches; ++n) number_of[order[n]] = n;
    for (std::uint32_t& batch : batch_of) batch = number_of[batch];
  }

  /// Exchanges samples inside each step.
  void even_steps(std::vector<std::uint32_t>& batch_of, std::size_t batches) const {
    if (ranks_ == 1) return;
    std::vector<std::uint32_t> step_of(batch_of.size());
    std::vector<std::uint32_t> rank_of(batch_of.size());
    for (std::size_t i = 0; i != batch_of.size(); ++i) {
      step_of[i] = static_cast<std::uint32_t>(batch_of[i] / ranks_);
      rank_of[i] = static_cast<std::uint32_t>(batch_of[i] % ranks_);
    }
    std::vector<std::vector<std::uint32_t>> orders(batches / ranks_);
    for (std::uint32_t const sample : balancer_.order()) orders[step_of[sample]].push_back(sample);
    for (std::vector<std::uint32_t> const& order : orders) {
      std::int64_t sum = 0;
      for (std::uint32_t const sample : order) sum += costs_[sample][0];
      auto const count = static_cast<std::int64_t>(ranks_);
      balancer_.even(order, rank_of, ranks_, sum / count + (sum % count != 0 ? 1 : 0));
    }
    for (std::size_t i = 0; i != batch_of.size(); ++i) {
      batch_of[i] = static_cast<std::uint32_t>(step_of[i] * ranks_ + rank_of[i]);
    }
  }

  /// The largest batch of each step goes to the rank with the least cost so far, and so on.
  [[nodiscard]] steps deal(std::vector<std::uint32_t> const& batch_of, std::size_t batches) const {
    grouping const groups = collect_parts(batch_of, batches);
    auto const loads = loads_of(batch_of, batches);
    std::vector<std::int64_t> sums(ranks_, 0);
    std::vector<std::uint32_t> lightest(ranks_);
    std::vector<std::uint32_t> largest(ranks_);
    std::vector<std::uint32_t> batch_at(ranks_);
    steps result(ranks_);
    result.reserve(batches / ranks_, batch_of.size());
    for (std::size_t first = 0; first != batches; first += ranks_) {
      for (std::uint32_t r = 0; r != ranks_; ++r) {
        lightest[r] = r;
        largest[r] = static_cast<std::uint32_t>(first + r);
      }
      std::sort(lightest.begin(), lightest.end(), [&sums](std::uint32_t a, std::uint32_t b) {
        return sums[a] < sums[b] || (sums[a] == sums[b] && a < b);
      });
      std::sort(largest.begin(), largest.end(), [&loads](std::uint32_t a, std::uint32_t b) {
        return loads[a] > loads[b] || (loads[a] == loads[b] && a < b);
      });
      for (std::size_t i = 0; i != ranks_; ++i) {
        batch_at[lightest[i]] = largest[i];
        sums[lightest[i]] += loads[largest[i]];
      }
      for (std::uint32_t const batch : batch_at) {
        for (std::uint32_t const item : groups[batch]) result.push(item);
        result.close();
      }
    }
    return result;
  }

  capped_balancer<Layout> const& balancer_;
  whole_costs<1> const& costs_;
  std::size_t ranks_;
};

}  // namespace omnibal::inline v0::detail
