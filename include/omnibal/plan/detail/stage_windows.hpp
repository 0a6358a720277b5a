#pragma once

/// \file
/// Where stages can begin and end if none of them takes longer than a limit.

#include <omnibal/partition/empty_stages.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Boundary s lies in [first[s], last[s]] for every plan whose stages take `limit` at most.
struct stage_windows {
  std::vector<std::size_t> first;
  std::vector<std::size_t> last;

  /// `time(stage, first, last)` is no more than a stage takes.
  template <class StageTime>
  stage_windows(std::size_t layers, std::size_t stages, empty_stages empty, std::int64_t limit,
                StageTime const& time)
      : first(stages + 1, 0), last(stages + 1, layers) {
    std::size_t const fewest = empty == empty_stages::forbidden ? 1 : 0;
    last[0] = 0;
    for (std::size_t s = 0; s != stages; ++s) {
      std::size_t const end = layers - fewest * (stages - 1 - s);
      std::size_t reach = last[s];
      while (reach < end && time(s, last[s], reach + 1) <= limit) ++reach;
      last[s + 1] = reach;
    }
    first[stages] = layers;
    for (std::size_t s = stages; s-- != 0;) {
      std::size_t reach = first[s + 1];
      while (reach > fewest * s && time(s, reach - 1, first[s + 1]) <= limit) --reach;
      first[s] = reach;
    }
  }

  /// False where no plan is within the limit.
  [[nodiscard]] bool is_possible() const {
    for (std::size_t s = 0; s != first.size(); ++s) {
      if (first[s] > last[s]) return false;
    }
    return true;
  }
};

}  // namespace omnibal::inline v0::detail
