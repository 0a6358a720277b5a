#pragma once

/// \file
/// Where stages can begin and end if none of them takes longer than a limit.

#include <omnibal/partition/empty_stages.hpp>
#include <omnibal/plan/detail/whole_layers.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Boundary s lies in [first[s], last[s]] for every plan whose stages take `limit` at most.
struct stage_windows {
  std::vector<std::size_t> first;
  std::vector<std::size_t> last;

  stage_windows(whole_layers const& layers, std::size_t stages, empty_stages empty,
                std::int64_t limit)
      : first(stages + 1, 0), last(stages + 1, layers.size()) {
    std::size_t const size = layers.size();
    std::size_t const fewest = empty == empty_stages::forbidden ? 1 : 0;
    last[0] = 0;
    for (std::size_t s = 0; s != stages; ++s) {
      std::size_t const end = size - fewest * (stages - 1 - s);
      std::size_t reach = last[s];
      while (reach < end && layers.least_time(last[s], reach + 1) <= limit) ++reach;
      last[s + 1] = reach;
    }
    first[stages] = size;
    for (std::size_t s = stages; s-- != 0;) {
      std::size_t reach = first[s + 1];
      while (reach > fewest * s && layers.least_time(reach - 1, first[s + 1]) <= limit) --reach;
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
