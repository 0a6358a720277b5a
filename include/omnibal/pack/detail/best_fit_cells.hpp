#pragma once

/// \file
/// Best fit for any number of resources.

#include <omnibal/pack/detail/assignment.hpp>
#include <omnibal/pack/detail/cell_rooms.hpp>
#include <omnibal/pack/detail/demand_traits.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Best-fit of `demands` in their order, each of which fits an empty group; overwrites them.
///
/// The room of group g replaces demand g: a group is opened by a sample of its own, so sample g has
/// been packed by then.
template <class Layout, std::size_t R, class T, class Score>
[[nodiscard]] group_assignment best_fit_cells(Layout const& layout,
                                              std::vector<typename Layout::demand_type> demands,
                                              resources<R, T> const& capacity, Score const& score) {
  group_assignment result(demands.size());
  if (demands.empty()) return result;
  auto const traits = traits_of(layout, demands, capacity);
  auto const least_demand = layout.encode(traits.smallest);
  auto* const rooms = demands.data();
  cell_rooms<Layout, R, T> open(layout, rooms, capacity, traits, demands.size());
  for (std::size_t k = 0; k != demands.size(); ++k) {
    auto const demand = demands[k];
    std::uint32_t group = open.take(demand, score);
    if (group == open.none) {
      group = result.open();
      rooms[group] = layout.empty_room();
    }
    layout.take(rooms[group], demand);
    result.assign(group);
    if (layout.fits(rooms[group], least_demand)) open.push(group);
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
