// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Best-fit decreasing of several resources.

#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/unset_array.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/detail/collect_groups.hpp>
#include <omnibal/pack/detail/demand_traits.hpp>
#include <omnibal/pack/detail/open_bin_index.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The state of the demands after a packing. With `freed`, the demands are freed as soon as they
/// have been read, because the groups need the memory.
enum class demands_after { kept, freed };

/// The demands in the order of packing, and the rooms of the groups. Demands of one word are read
/// in place, at any address, and in advance. Wider demands are copied into the order, and rooms
/// overwrite the copies. The memory is therefore 24 + 8R bytes per sample. Invariant: group g opens
/// for sample g or a later one, so the copies that rooms overwrite have been read.
template <class Layout>
class demands_and_rooms {
 public:
  using demand_type = typename Layout::demand_type;
  static constexpr bool is_copied = sizeof(demand_type) > sizeof(std::uint64_t);

  demands_and_rooms(std::vector<demand_type> const& demands,
                    std::vector<std::uint32_t> const& order)
      : demands_(demands.data()), order_(order.data()), count_(order.size()), rooms_(count_) {
    if constexpr (is_copied) {
      for (std::size_t k = 0; k != count_; ++k) rooms_[k] = demands[order[k]];
    }
  }

  /// Returns the demand of the sample at place k of the order.
  [[nodiscard]] demand_type demand(std::size_t k) const {
    if constexpr (is_copied) return rooms_[k];
    if (k + ahead < count_) __builtin_prefetch(demands_ + order_[k + ahead]);
    return demands_[order_[k]];
  }

  [[nodiscard]] demand_type& room(std::uint32_t group) { return rooms_[group]; }
  [[nodiscard]] demand_type const* rooms() const { return rooms_.data(); }

 private:
  static constexpr std::size_t ahead = 16;

  demand_type const* demands_;
  std::uint32_t const* order_;
  std::size_t count_;
  unset_array<demand_type> rooms_;
};

/// Packs samples by best fit in the order `order`. Precondition: each sample fits an empty group.
template <class Layout, class Score>
[[nodiscard]] group_assignment fit_by_index(measured<Layout>& input, demands_after after,
                                            std::vector<std::uint32_t> const& order,
                                            Score const& score) {
  std::size_t const count = order.size();
  if (count == 0) return group_assignment(0);
  auto const layout = input.layout;
  auto const traits = traits_of(layout, input.demands, input.capacity);
  auto const min_demand = layout.encode(traits.smallest);
  using line_type = demands_and_rooms<Layout>;
  line_type line(input.demands, order);
  if (line_type::is_copied && after == demands_after::freed) release(input.demands);
  group_rooms<Layout> const groups{layout, line.rooms()};
  open_bin_index open(input.capacity, traits, count);
  group_assignment result(count);
  for (std::size_t k = 0; k != count; ++k) {
    auto const demand = line.demand(k);
    std::uint32_t group = open.take(groups, demand, score);
    if (group == open.none) {
      group = result.open(1).first;
      line.room(group) = layout.empty_room();
    }
    auto& room = line.room(group);
    layout.take(room, demand);
    result.assign(group);
    if (layout.fits(room, min_demand)) open.push(group, layout.left(room));
  }
  if (after == demands_after::freed) release(input.demands);
  return result;
}

/// Packs samples by best-fit decreasing by `score`, the largest samples by `size` first.
template <class Layout, class Size, class Score>
[[nodiscard]] grouping vector_best_fit(measured<Layout>& input, demands_after after,
                                       Size const& size, Score const& score) {
  std::vector<std::uint32_t> order = order_descending(
      input.size(), [&size, layout = input.layout, first = input.demands.data()](std::size_t k) {
        return size(layout.amounts(first[k]), k);
      });
  auto assigned = fit_by_index(input, after, order, score);
  number_to_index(order, input.oversized);
  return std::move(assigned).collect(order);
}

}  // namespace omnibal::inline v0::detail
