// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The sum of the demands of each group.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Tuning constants of the speed of sums over groups; they do not change the sums.
struct group_tuning {
  static constexpr int threads = 256;
  /// The largest size of a group that one thread sums, and the largest size that one warp sums. A
  /// block sums larger groups.
  static constexpr std::size_t thread_limit = 32;
  static constexpr std::size_t warp_limit = 4096;
  /// The number of threads of a block that reads the totals of the ranks of one step.
  static constexpr int threads_of_step = 128;
};

/// The demands of the items of groups.
template <class Demand>
struct demands_of_items {
  static constexpr std::size_t kinds = omnibal::detail::kinds_of<Demand>;
  using sum = saturating_load<kinds>;

  grouping_view groups;
  Demand const* demands;
  std::size_t count;
  fault* faults;

  /// Returns the demand of the item at a position of the items.
  [[nodiscard]] OMNIBAL_HOST_DEVICE sum operator()(std::size_t position) const {
    std::uint32_t const item = groups.item(position);
    if (item < count) return checked_load(demands[item], faults);
    raise(faults, fault::unknown_index);
    return sum{};
  }
  /// Returns the weight of one kind of the demand of the item at a position. Loops over kinds call
  /// this function, because an array that a variable indexes would be in memory instead of
  /// registers.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t one(std::size_t position,
                                                      std::size_t kind) const {
    std::uint32_t const item = groups.item(position);
    if (item >= count) {
      raise(faults, fault::unknown_index);
      return 0;
    }
    return checked_amount(demands[item], kind, faults);
  }
};

/// Sums groups of floating-point demands: one thread adds the demands of a group in their order, as
/// on the host.
template <class Demand>
struct sum_in_order {
  demands_of_items<Demand> of;
  load_of<Demand>* loads;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t g) const {
    constexpr std::size_t kinds = demands_of_items<Demand>::kinds;
    load_of<Demand> load{};
    for (std::size_t k = of.groups.offset(g); k != of.groups.offset(g + 1); ++k) {
      std::uint32_t const item = of.groups.item(k);
      if (item >= of.count) {
        raise(of.faults, fault::unknown_index);
        continue;
      }
      for (std::size_t r = 0; r != kinds; ++r) {
        load[r] += checked_weight<double>(weight_at(of.demands[item], r), of.faults);
      }
    }
    for (std::size_t r = 0; r != kinds; ++r) {
      if (!(load[r] <= 0x1.fffffffffffffp+1023)) raise(of.faults, fault::overflow);
    }
    loads[g] = load;
  }
};

/// Sums groups of integral demands: a block sums several groups, and a thread, a warp or the whole
/// block sums one of them, depending on its size.
template <class Demand>
struct sum_by_blocks {
  static constexpr int min_blocks = 4;

  using sum = typename demands_of_items<Demand>::sum;
  static constexpr std::size_t kinds = demands_of_items<Demand>::kinds;

  demands_of_items<Demand> of;
  load_of<Demand>* loads;
  std::size_t groups_per_block;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    std::size_t const first = index * groups_per_block;
    std::size_t const here = smaller_of(groups_per_block, of.groups.size() - first);
    auto const size = [&](std::size_t k) { return std::size_t{of.groups.group_size(first + k)}; };

    block.for_each(here, [&](std::size_t k) {
      if (size(k) > group_tuning::thread_limit) return;
      sum load{};
      for (std::size_t p = of.groups.offset(first + k); p != of.groups.offset(first + k + 1); ++p) {
        load = add_loads<kinds>{}(load, of(p));
      }
      write(first + k, load);
    });
    std::size_t const largest = block.reduce(here, size, take_larger{}, std::size_t{0});
    if (largest <= group_tuning::thread_limit) return;

    block.for_each_warp(here, [&](auto& warp, std::size_t k) {
      if (size(k) <= group_tuning::thread_limit || size(k) > group_tuning::warp_limit) return;
      std::size_t const begin = of.groups.offset(first + k);
      sum const load = warp.reduce(
          size(k), [&](std::size_t p) { return of(begin + p); }, add_loads<kinds>{}, sum{});
      warp.once([&] { write(first + k, load); });
    });
    if (largest <= group_tuning::warp_limit) return;

    for (std::size_t k = 0; k != here; ++k) {
      if (size(k) <= group_tuning::warp_limit) continue;
      std::size_t const begin = of.groups.offset(first + k);
      for (std::size_t r = 0; r != kinds; ++r) {
        std::uint64_t const all = block.reduce(
            size(k), [&](std::size_t p) { return of.one(begin + p, r); }, add_saturating{},
            std::uint64_t{0});
        block.once([&] { write(first + k, r, all); });
      }
    }
  }

 private:
  OMNIBAL_HOST_DEVICE void write(std::size_t g, sum const& load) const {
    for (std::size_t r = 0; r != kinds; ++r) write(g, r, load.amounts[r]);
  }
  OMNIBAL_HOST_DEVICE void write(std::size_t g, std::size_t kind, std::uint64_t load) const {
    loads[g][kind] = static_cast<working_weight_of<Demand>>(checked_sum(load, of.faults));
  }
};

/// Returns the number of groups that a block sums: about eight items for each thread, and at most
/// one group for each thread.
[[nodiscard]] inline std::size_t groups_per_block(std::size_t items, std::size_t groups) {
  std::size_t const mean = groups == 0 ? 0 : items / groups;
  std::size_t const fitting = 8 * group_tuning::threads / larger_of<std::size_t>(mean, 1);
  return smaller_of<std::size_t>(larger_of<std::size_t>(fitting, 1), group_tuning::threads);
}

template <kernel_backend Backend, class Demand>
void group_loads(Backend& backend, grouping_view groups, Demand const* demands, std::size_t count,
                 load_of<Demand>* loads, fault* faults) {
  demands_of_items<Demand> const of{groups, demands, count, faults};
  if constexpr (std::floating_point<working_weight_of<Demand>>) {
    backend.for_each(groups.size(), sum_in_order<Demand>{of, loads});
  } else {
    std::size_t const per_block = groups_per_block(count, groups.size());
    backend.template for_each_block<group_tuning::threads>(
        parts_of(groups.size(), per_block), 0, sum_by_blocks<Demand>{of, loads, per_block});
  }
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
