#pragma once

/// \file
/// Samples from the largest to the smallest, each into the part that takes it best.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The samples from the largest to the smallest cost, equal ones by index.
template <std::size_t R>
[[nodiscard]] std::vector<std::uint32_t> largest_first(integer_costs<R> const& costs) {
  return order_descending(costs.size(), [&costs](std::size_t i) { return sum_of(costs[i]); });
}

/// How many samples of that order have any cost.
template <std::size_t R>
[[nodiscard]] std::size_t count_costly(integer_costs<R> const& costs,
                                       std::span<std::uint32_t const> order) {
  std::size_t result = order.size();
  while (result != 0 && sum_of(costs[order[result - 1]]) == 0) --result;
  return result;
}

/// Is called like `count_limits`, for parts with room for any number of samples.
struct any_room {
  std::size_t count;

  [[nodiscard]] std::size_t parts() const { return count; }
  [[nodiscard]] static bool is_full(std::size_t) { return false; }
  [[nodiscard]] static bool add(std::size_t) { return false; }
};

/// Puts `samples` into parts with room; `weight(sample)` is what a sample adds to the loads. `Room`
/// is called like `count_limits`.
template <class Loads, class Weight, class Room>
void place(std::span<std::uint32_t const> samples, Weight const& weight, Loads& loads, Room& room,
           std::vector<std::uint32_t>& part_of) {
  std::size_t const parts = room.parts();
  for (std::uint32_t const sample : samples) {
    auto const& cost = weight(sample);
    std::uint32_t const part = loads.best(cost);
    part_of[sample] = part;
    loads.add(part, cost);
    bool const leaves_less = room.add(part);
    if (room.is_full(part)) loads.close(part);
    for (std::size_t p = 0; leaves_less && p != parts; ++p) {
      if (room.is_full(p)) loads.close(p);
    }
  }
}

/// Puts samples without cost where the fewest samples are.
inline void place_costless(std::span<std::uint32_t const> samples, count_limits& room,
                           std::vector<std::uint32_t>& part_of) {
  if (samples.empty()) return;
  ranked_loads<uint128> counts(room.parts());
  for (std::size_t part = 0; part != room.parts(); ++part) {
    counts.add(part, {static_cast<std::int64_t>(room[part])});
    if (room.is_full(part)) counts.close(part);
  }
  auto const one = [](std::uint32_t) { return resources<1>{1}; };
  place(samples, one, counts, room, part_of);
}

/// The part of each sample. Those without cost are placed last.
template <std::size_t R>
[[nodiscard]] std::vector<std::uint32_t> place_longest_first(integer_costs<R> const& costs,
                                                             count_limits room) {
  std::vector<std::uint32_t> const order = largest_first(costs);
  std::vector<std::uint32_t> part_of(order.size());
  std::size_t const costly = count_costly(costs, std::span(order));
  auto const place_costly = [&](auto loads) {
    auto const cost = [&costs](std::uint32_t sample) -> resources<R> const& {
      return costs[sample];
    };
    place(std::span(order).first(costly), cost, loads, room, part_of);
  };
  if constexpr (R > 1) {
    place_costly(compared_loads<R>(room.parts()));
  } else if (std::int64_t const total = sum_of(total_of(costs));
             load_key<std::uint64_t>::can_hold(total, room.parts())) {
    place_costly(ranked_loads<std::uint64_t>(room.parts()));
  } else {
    place_costly(ranked_loads<uint128>(room.parts()));
  }
  place_costless(std::span(order).subspan(costly), room, part_of);
  return part_of;
}

}  // namespace omnibal::inline v0::detail
