// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The outlier queues of WLB-LLM, written anew.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bench {

/// A sample and the step in which it came.
struct arrived_sample {
  std::int64_t length = 0;
  std::uint64_t step = 0;
};

/// Samples from the first threshold on wait in a queue for those between it and the next one. Where
/// a queue has as many as there are places, so many of them leave it, the oldest first.
class outlier_queues {
 public:
  outlier_queues(std::vector<std::int64_t> thresholds, std::size_t places)
      : thresholds_(std::move(thresholds)), queues_(thresholds_.size()), places_(places) {}

  std::vector<arrived_sample> push(std::vector<std::int64_t> const& lengths) {
    std::vector<arrived_sample> result;
    for (std::int64_t const length : lengths) {
      std::size_t level = 0;
      while (level != thresholds_.size() && length >= thresholds_[level]) ++level;
      (level == 0 ? result : queues_[level - 1]).push_back({length, step_});
    }
    for (auto& queue : queues_) {
      while (queue.size() >= places_) leave(queue, places_, result);
    }
    ++step_;
    return result;
  }

  std::vector<arrived_sample> flush() {
    std::vector<arrived_sample> result;
    for (auto& queue : queues_) leave(queue, queue.size(), result);
    return result;
  }

 private:
  static void leave(std::vector<arrived_sample>& queue, std::size_t count,
                    std::vector<arrived_sample>& result) {
    auto const last = queue.begin() + static_cast<std::ptrdiff_t>(count);
    result.insert(result.end(), queue.begin(), last);
    queue.erase(queue.begin(), last);
  }

  std::vector<std::int64_t> thresholds_;
  std::vector<std::vector<arrived_sample>> queues_;
  std::size_t places_;
  std::uint64_t step_ = 0;
};

}  // namespace bench
