#pragma once

/// \file
/// From measured samples to groups by best-fit decreasing of several resources.

#include <omnibal/detail/capacity_shares.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/release.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/detail/assignment.hpp>
#include <omnibal/pack/detail/open_groups.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
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
  group_rooms<Layout> const groups{layout, rooms};
  cell_rooms<R, T> open(capacity, traits, demands.size());
  for (std::size_t k = 0; k != demands.size(); ++k) {
    auto const demand = demands[k];
    std::uint32_t group = open.take(groups, demand, score);
    if (group == open.none) {
      group = result.open();
      rooms[group] = layout.empty_room();
    }
    layout.take(rooms[group], demand);
    result.assign(group);
    if (layout.fits(rooms[group], least_demand)) open.push(group, layout.left(rooms[group]));
  }
  return result;
}

/// The shares of a capacity that a sample takes in one number; `share(r)` is that of resource r.
template <std::size_t R, class Share>
[[nodiscard]] std::uint64_t size_of_shares(size_measure measure, Share const& share) {
  std::uint64_t sum = 0;
  std::uint64_t largest = 0;
  for (std::size_t r = 0; r != R; ++r) {
    sum += share(r);
    largest = std::max(largest, share(r));
  }
  return measure == size_measure::sum_of_shares ? sum : largest;
}

/// The size of a sample in units of 2^-32.
template <std::size_t R, class T>
class sample_size {
 public:
  sample_size(resources<R, T> const& capacity, size_measure measure)
      : share_(capacity), measure_(measure) {}

  [[nodiscard]] std::uint64_t operator()(resources<R, T> const& amounts,
                                         std::size_t /*sample*/) const {
    return size_of_shares<R>(measure_, [&](std::size_t r) { return share_(amounts[r], r); }) >> 31;
  }

 private:
  capacity_shares<R, T> share_;
  size_measure measure_;
};

/// Best-fit decreasing by `score`, the largest samples by `size` first.
template <class Layout, class Size, class Score>
[[nodiscard]] grouping pack_cells(measured<Layout>& input, demands_after after, Size const& size,
                                  Score const& score) {
  std::vector<std::uint32_t> order = order_descending(
      input.size(), [&size, layout = input.layout, first = input.demands.data()](std::size_t k) {
        return size(layout.amounts(first[k]), k);
      });
  std::vector<typename Layout::demand_type> demands(input.size());
  for (std::size_t position = 0; position != order.size(); ++position) {
    demands[position] = input.demands[order[position]];
  }
  if (after == demands_after::freed) release(input.demands);
  auto assigned = best_fit_cells(input.layout, std::move(demands), input.capacity, score);
  number_to_index(order, input.oversized);
  return std::move(assigned).collect(order);
}

}  // namespace omnibal::inline v0::detail
