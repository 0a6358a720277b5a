#pragma once

/// \file
/// Which level each step of an epoch is of.

#include <omnibal/sample/detail/share_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Calls `body(level, ordinal)` for every step: first for up to `short_first` steps of the first
/// level, then for the others with the levels in turn, each as evenly spread as its number of steps
/// allows. The steps of a level come in their order.
template <class Body>
void for_each_turn(std::vector<std::uint64_t> step_counts, std::uint64_t short_first,
                   Body const& body) {
  if (step_counts.empty()) return;
  std::uint64_t const begin = std::min(step_counts[0], short_first);
  for (std::uint64_t step = 0; step != begin; ++step) body(std::size_t{0}, step);
  step_counts[0] -= begin;
  std::uint64_t const rest =
      std::accumulate(step_counts.begin(), step_counts.end(), std::uint64_t{0});
  if (rest == 0) return;
  share_tree const turns(std::move(step_counts));
  for (std::uint64_t position = 0; position != rest; ++position) {
    source_draw const draw = turns.draw(position);
    body(std::size_t{draw.source}, draw.ordinal + (draw.source == 0 ? begin : 0));
  }
}

}  // namespace omnibal::inline v0::detail
