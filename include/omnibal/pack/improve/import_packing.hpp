#pragma once

/// \file
/// Checking a packing that a caller hands over.

#include <omnibal/check.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/packing.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A sample by its place among those that fit, and among all.
struct numbered_sample {
  std::uint32_t number;
  std::uint32_t index;
};

/// Throws for a group that has a load of `load` without a sample that exceeds its room.
template <class Layout>
[[noreturn]] void reject_load(std::string_view function, measured<Layout> const& input,
                              std::size_t group, typename Layout::amounts_type const& load,
                              numbered_sample const& sample) {
  auto const demand = input.amounts(sample.number);
  std::size_t kind = 0;
  while (kind + 1 < load.size() && load[kind] <= input.capacity[kind] - demand[kind]) ++kind;
  auto const text_of = [&](typename Layout::amounts_type const& amounts) {
    return to_text(input.in_user_units(amounts, input.units)[kind]);
  };
  throw_invalid(function, "start.groups[" + to_text(group) + "] takes " + text_of(load) + " and " +
                              text_of(demand) + " of sample " + to_text(sample.index) +
                              " in resource " + to_text(kind) + ", must be at most " +
                              text_of(input.capacity));
}

/// The groups of `given` with each index replaced by the number of the sample among those that fit,
/// without empty groups. Throws `std::invalid_argument` unless `given` is a packing of the samples
/// of `input`.
template <class Layout>
[[nodiscard]] grouping checked_numbers(std::string_view function, measured<Layout> const& input,
                                       packing const& given) {
  constexpr std::uint32_t no_number = std::numeric_limits<std::uint32_t>::max();
  std::size_t const count = input.size() + input.oversized.size();
  auto const reject = [&](std::uint32_t index, char const* what) {
    throw_invalid(function, "start names sample " + to_text(index) + ", which " + what);
  };
  if (given.oversized != input.oversized) {
    throw_invalid(function,
                  "start lists " + to_text(given.oversized.size()) +
                      " oversized samples, not the " + to_text(input.oversized.size()) +
                      " that exceed this capacity, or lists others, or not in ascending order");
  }
  std::vector<std::uint32_t> number_of(count, no_number);
  fitting_indices indices(input.oversized);
  for (std::uint32_t k = 0; k != input.size(); ++k) number_of[indices.next()] = k;

  grouping result;
  result.reserve(given.groups.size(), input.size());
  for (std::size_t g = 0; g != given.groups.size(); ++g) {
    auto room = input.layout.empty_room();
    for (std::uint32_t const index : given.groups[g]) {
      if (index >= count) reject(index, "is not one of the samples");
      if (number_of[index] == no_number) reject(index, "is oversized or in another place as well");
      std::uint32_t const number = std::exchange(number_of[index], no_number);
      if (!input.layout.fits(room, input.demands[number])) {
        reject_load(function, input, g, input.layout.load(room), {number, index});
      }
      input.layout.take(room, input.demands[number]);
      result.push(number);
    }
    if (!given.groups[g].empty()) result.close();
  }
  if (result.item_count() != input.size()) {
    throw_invalid(function, "start has " + to_text(result.item_count()) + " samples, not " +
                                to_text(input.size()));
  }
  return result;
}

/// The inverse of `checked_numbers`.
template <class Layout>
[[nodiscard]] grouping to_indices(grouping const& numbers, measured<Layout> const& input) {
  std::vector<std::uint32_t> items(numbers.items().begin(), numbers.items().end());
  number_to_index(items, input.oversized);
  return grouping({numbers.offsets().begin(), numbers.offsets().end()}, std::move(items));
}

}  // namespace omnibal::inline v0::detail
