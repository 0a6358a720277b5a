#pragma once

/// \file
/// From measured samples to groups by best-fit decreasing of one integer resource.

#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/release.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/detail/best_fit_line.hpp>
#include <omnibal/pack/detail/bounds.hpp>
#include <omnibal/pack/detail/measure.hpp>
#include <omnibal/pack/packing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Best-fit decreasing of one integer resource by counting its values, and its lower bound. Frees
/// the demands.
template <class Layout>
[[nodiscard]] grouping pack_counted_line(measured<Layout>& input, packing_report& report) {
  auto counts = count_values(input.size(), input.amounts_of(0), input.capacity[0]);
  report.lower_bound = counted_bound(counts);
  auto const capacity = static_cast<std::uint32_t>(counts.size() - 1);
  std::uint32_t smallest = 0;
  while (smallest != capacity && counts[smallest] == 0) ++smallest;
  std::uint32_t value = capacity + 1;
  auto const next_run = [&] {
    do --value;
    while (counts[value] == 0);
    return std::pair(value, counts[value]);
  };
  run_rooms<std::uint32_t> rooms(input.size());
  auto assigned = best_fit_line(input.size(), std::move(rooms), capacity, smallest, next_run);
  // Where the samples of each size begin in the order of packing.
  std::uint32_t position = 0;
  for (std::size_t v = counts.size(); v-- != 0;) position += std::exchange(counts[v], position);
  std::vector<std::uint32_t> items(input.size());
  auto const size = input.amounts_of(0);
  fitting_indices indices(input.oversized);
  for (std::size_t k = 0; k != items.size(); ++k) {
    items[counts[static_cast<std::size_t>(size(k))]++] = indices.next();
  }
  release(input.demands);
  return std::move(assigned).collect(items);
}

/// The same by sorting the values.
template <class Layout>
[[nodiscard]] grouping pack_sorted_line(measured<Layout>& input, packing_report& report) {
  std::size_t const count = input.size();
  std::vector<std::uint32_t> order = order_descending(count, input.amounts_of(0));
  std::vector<std::uint64_t> sizes(count);
  for (std::size_t position = 0; position != count; ++position) {
    sizes[position] =
        static_cast<std::uint64_t>(input.layout.amount(input.demands[order[position]], 0));
  }
  release(input.demands);
  auto const ascending = [last = sizes.data() + count](std::size_t k) {
    return static_cast<std::int64_t>(*(last - 1 - k));
  };
  auto const once = [](std::size_t) { return std::uint32_t{1}; };
  report.lower_bound = martello_toth_bound(count, ascending, once, input.capacity[0]);
  std::size_t position = 0;
  auto const next_run = [&] {
    std::size_t const first = position;
    std::uint64_t const size = sizes[first];
    while (position != count && sizes[position] == size) ++position;
    return std::pair(size, position - first);
  };
  auto const capacity = static_cast<std::uint64_t>(input.capacity[0]);
  std::uint64_t const smallest = count == 0 ? 0 : sizes.back();
  auto assigned = best_fit_line(count, overlaid_rooms(sizes), capacity, smallest, next_run);
  release(sizes);
  number_to_index(order, input.oversized);
  return std::move(assigned).collect(order);
}

/// Best-fit decreasing of one integer resource.
template <class Layout>
[[nodiscard]] packing pack_line(measured<Layout>&& input) {
  packing result;
  packing_report& report = result.report;
  std::size_t const count = input.size();
  report.rounds = 1;
  report.item_rounds = count;
  result.groups = is_countable(count, input.capacity[0]) ? pack_counted_line(input, report)
                                                         : pack_sorted_line(input, report);
  // Samples that take nothing need a group all the same.
  report.lower_bound = std::max<std::size_t>(report.lower_bound, count == 0 ? 0 : 1);
  result.oversized = std::move(input.oversized);
  return result;
}

}  // namespace omnibal::inline v0::detail
