#pragma once

/// \file
/// How many micro-batches a schedule keeps at once.

#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

struct peak_in_flight_fn {
  /// For each stage the most units, each a micro-batch in one chunk of the model, whose activations
  /// it keeps at once: from the forward pass to the end of the backward pass, or of the gradients
  /// of the weights where the schedule splits the backward pass. With one chunk that is
  /// `plan_pipeline_options::in_flight`.
  ///
  /// Complexity: a call of `next` for each operation. Memory: the result. Determinism: portable.
  /// Errors: those of the schedule.
  template <pipeline_schedule Schedule>
  [[nodiscard]] std::vector<std::int64_t> operator()(Schedule const& schedule) const {
    schedule.check();
    std::size_t const operations =
        schedule.micro_batches * schedule.chunk_count() * (Schedule::splits_backward ? 3 : 2);
    std::vector<std::int64_t> result;
    for (std::size_t stage = 0; stage != schedule.stages; ++stage) {
      stage_progress done;
      std::int64_t kept = 0;
      std::int64_t most = 0;
      for (std::size_t i = 0; i != operations; ++i) {
        switch (schedule.next(stage, done)) {
          case operation_kind::forward:
            ++done.forward;
            most = std::max(most, ++kept);
            break;
          case operation_kind::backward:
            ++done.backward;
            if (!Schedule::splits_backward) --kept;
            break;
          case operation_kind::weight:
            ++done.weight;
            --kept;
            break;
        }
      }
      result.push_back(most);
    }
    return result;
  }
};

/// The micro-batches that the stages of a schedule keep; see `peak_in_flight_fn`.
inline constexpr peak_in_flight_fn peak_in_flight{};

}  // namespace omnibal::inline v0
