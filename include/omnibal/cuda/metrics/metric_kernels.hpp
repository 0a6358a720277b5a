// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The ratios of metrics.hpp from amounts on the device.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/group_loads.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Returns the nearest `double`, ties to even, equal on host and device. The conversion of 128 bits
/// that compilers provide may differ on a device.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline double to_double(omnibal::detail::uint128 value) {
  auto high = static_cast<std::uint64_t>(value >> 64);
  auto low = static_cast<std::uint64_t>(value);
  if (high == 0) return static_cast<double>(low);
  int shift = 0;
  while (high != 0) {
    // If a bit that is shifted out is set, the lowest bit becomes set too, so that the conversion
    // rounds correctly.
    low = low >> 1 | (low & 1) | high << 63;
    high >>= 1;
    ++shift;
  }
  auto result = static_cast<double>(low);
  for (; shift != 0; --shift) result *= 2.0;
  return result;
}

/// The largest of some integers that are not negative, and their sum. The sum saturates. Therefore
/// it does not depend on the order of additions.
struct spread {
  std::uint64_t largest = 0;
  std::uint64_t sum = 0;

  OMNIBAL_HOST_DEVICE void add(std::uint64_t value) {
    largest = larger_of(largest, value);
    sum = saturating_sum(sum, value);
  }

  /// Returns the mean, or zero if `count` is zero.
  [[nodiscard]] OMNIBAL_HOST_DEVICE double mean(std::size_t count) const {
    return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
  }

  /// Returns 1 - mean / largest, as `omnibal::dist_ratio` and `omnibal::pad_ratio` compute it.
  [[nodiscard]] OMNIBAL_HOST_DEVICE double idle_share(std::size_t count) const {
    if (largest == 0) return 0.0;
    auto const missing = static_cast<omnibal::detail::uint128>(largest) * count - sum;
    return to_double(missing) / (static_cast<double>(largest) * static_cast<double>(count));
  }
};

struct merge_spreads {
  OMNIBAL_HOST_DEVICE spread operator()(spread const& left, spread const& right) const {
    return {larger_of(left.largest, right.largest), saturating_sum(left.sum, right.sum)};
  }
};

// The ratios of the weights of one kind.

struct idle_share {
  [[nodiscard]] OMNIBAL_HOST_DEVICE double operator()(spread const& all, std::size_t count,
                                                      std::size_t /*kind*/) const {
    return all.idle_share(count);
  }
};

struct largest_over_mean {
  [[nodiscard]] OMNIBAL_HOST_DEVICE double operator()(spread const& all, std::size_t count,
                                                      std::size_t /*kind*/) const {
    double const mean = all.mean(count);
    return mean > 0.0 ? static_cast<double>(all.largest) / mean : 1.0;
  }
};

template <std::size_t R>
struct mean_over_limit {
  double limits[R];

  [[nodiscard]] OMNIBAL_HOST_DEVICE double operator()(spread const& all, std::size_t count,
                                                      std::size_t kind) const {
    return all.mean(count) / limits[kind];
  }
};

/// The number of elements to measure: `size`, or at most `size` if `counted` points to a number on
/// the device.
struct element_count {
  std::size_t size;
  std::uint32_t const* counted;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t operator()() const {
    return counted == nullptr ? size : smaller_of<std::size_t>(size, *counted);
  }
};

/// Raises a fault if the sum exceeds `std::int64_t`, the type of the sum on the host.
OMNIBAL_HOST_DEVICE inline void check_sum(spread const& all, fault* faults) {
  if (all.sum > largest_sum) raise(faults, fault::overflow);
}

/// Writes to `out[r]` the ratio of the amounts of kind r. Each block reads some amounts, and the
/// last block reads the results of the blocks.
template <class Amount, class Ratio>
struct measure_ratio {
  static constexpr std::size_t kinds = omnibal::detail::kinds_of<Amount>;

  Amount const* amounts;
  element_count count;
  Ratio ratio;
  std::size_t blocks;
  /// An element for each kind of each block.
  spread* of_blocks;
  /// The counter of finished blocks for `is_last_of`; zero before the launch.
  std::uint32_t* arrived;
  double* out;
  fault* faults;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    std::size_t const per_block = parts_of(count.size, blocks);
    std::size_t const all = count();
    std::size_t const first = smaller_of(index * per_block, all);
    for (std::size_t r = 0; r != kinds; ++r) {
      auto const one = [&](std::size_t i) {
        std::uint64_t const amount = checked_amount(amounts[first + i], r, faults);
        return spread{amount, amount};
      };
      spread const here =
          block.reduce(smaller_of(per_block, all - first), one, merge_spreads{}, spread{});
      block.once([&] { of_blocks[index * kinds + r] = here; });
    }
    if (!block.is_last_of(blocks, arrived)) return;
    for (std::size_t r = 0; r != kinds; ++r) {
      spread const whole = block.reduce(
          blocks, [&](std::size_t b) { return of_blocks[b * kinds + r]; }, merge_spreads{},
          spread{});
      block.once([&] {
        check_sum(whole, faults);
        out[r] = ratio(whole, all, r);
      });
    }
  }
};

/// Writes to `out[r]` the `ratio` of the amounts of kind r.
template <kernel_backend Backend, class Amount, class Ratio>
void ratios_of(Backend& backend, Amount const* amounts, element_count count, Ratio const& ratio,
               double* out, fault* faults) {
  std::size_t const most = larger_of<std::size_t>(parts_of(count.size, 4096), 1);
  std::size_t const blocks = smaller_of<std::size_t>(most, 1024);
  auto* const of_blocks =
      backend.template scratch<spread>(blocks * omnibal::detail::kinds_of<Amount>);
  auto* const arrived = backend.template scratch<std::uint32_t>(1);
  backend.fill_zero(arrived, 1);
  backend.template for_each_block<group_tuning::threads>(
      blocks, 0,
      measure_ratio<Amount, Ratio>{amounts, count, ratio, blocks, of_blocks, arrived, out, faults});
}

/// Writes the mean of the shares that are not negative, for each of R kinds. One thread adds the
/// shares of a kind in their order, as the host does. The shares of a batch begin at
/// `shares[batch * R]`. A negative share marks a batch that the mean leaves out.
template <std::size_t R>
struct mean_in_order {
  double const* shares;
  std::size_t batches;
  double* out;

  static constexpr std::size_t tile = 1024;
  static constexpr std::size_t shared_bytes = tile * sizeof(double);

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t kind) const {
    auto* const some = block.template take<double>(tile);
    // Only the thread that adds uses these variables.
    double sum = 0.0;
    std::size_t count = 0;
    for (std::size_t first = 0; first < batches; first += tile) {
      std::size_t const here = smaller_of(tile, batches - first);
      block.for_each(here, [&](std::size_t i) { some[i] = shares[(first + i) * R + kind]; });
      block.once([&] {
        for (std::size_t i = 0; i != here; ++i) {
          if (some[i] < 0.0) continue;
          sum += some[i];
          ++count;
        }
      });
    }
    block.once([&] { out[kind] = count == 0 ? 0.0 : sum / static_cast<double>(count); });
  }
};

/// Writes the idle share of the lengths of each group. A block processes several groups, as in
/// `sum_by_blocks`.
template <class Length>
struct pad_by_blocks {
  static constexpr int min_blocks = 4;

  demands_of_items<Length> of;
  double* shares;
  std::size_t groups_per_block;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    std::size_t const first = index * groups_per_block;
    std::size_t const here = smaller_of(groups_per_block, of.groups.size() - first);
    auto const size = [&](std::size_t k) { return std::size_t{of.groups.group_size(first + k)}; };

    block.for_each(here, [&](std::size_t k) {
      if (size(k) > group_tuning::thread_limit) return;
      spread all{};
      for (std::size_t p = of.groups.offset(first + k); p != of.groups.offset(first + k + 1); ++p) {
        all.add(of.one(p, 0));
      }
      write(first + k, size(k), all);
    });
    std::size_t const largest = block.reduce(here, size, take_larger{}, std::size_t{0});
    if (largest <= group_tuning::thread_limit) return;

    for (std::size_t k = 0; k != here; ++k) {
      if (size(k) <= group_tuning::thread_limit) continue;
      std::size_t const begin = of.groups.offset(first + k);
      auto const one = [&](std::size_t p) {
        std::uint64_t const length = of.one(begin + p, 0);
        return spread{length, length};
      };
      spread const all = block.reduce(size(k), one, merge_spreads{}, spread{});
      block.once([&] { write(first + k, size(k), all); });
    }
  }

 private:
  OMNIBAL_HOST_DEVICE void write(std::size_t g, std::size_t size, spread const& all) const {
    check_sum(all, of.faults);
    shares[g] = size == 0 ? -1.0 : all.idle_share(size);
  }
};

/// Writes the mean pad ratio of groups.
template <kernel_backend Backend, class Length>
void pad_ratio_of_groups(Backend& backend, grouping_view groups, Length const* lengths,
                         std::size_t count, double* out, fault* faults) {
  auto* const shares = backend.template scratch<double>(groups.size());
  std::size_t const per_block = groups_per_block(count, groups.size());
  backend.template for_each_block<group_tuning::threads>(
      parts_of(groups.size(), per_block), 0,
      pad_by_blocks<Length>{{groups, lengths, count, faults}, shares, per_block});
  using mean = mean_in_order<1>;
  backend.template for_each_block<group_tuning::threads>(1, mean::shared_bytes,
                                                         mean{shares, groups.size(), out});
}

/// Writes the idle share of the ranks of one step, for each kind, or -1 for a step that the mean
/// leaves out.
template <std::size_t R>
struct idle_share_of_step {
  resources<R> const* totals;
  std::size_t ranks;
  element_count steps;
  double* shares;
  fault* faults;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    if (step >= steps()) {
      block.for_each(R, [&](std::size_t r) { shares[step * R + r] = -1.0; });
      return;
    }
    resources<R> const* const of_ranks = totals + step * ranks;
    for (std::size_t r = 0; r != R; ++r) {
      auto const one = [&](std::size_t rank) {
        auto const total = static_cast<std::uint64_t>(of_ranks[rank][r]);
        return spread{total, total};
      };
      spread const all = block.reduce(ranks, one, merge_spreads{}, spread{});
      block.once([&] {
        check_sum(all, faults);
        shares[step * R + r] = all.idle_share(ranks);
      });
    }
  }
};

/// Writes the mean dist ratio of the steps of a schedule, whose cells contain indices of groups.
template <kernel_backend Backend, class Load>
void dist_ratio_of_steps(Backend& backend, grouping_view cells, std::size_t ranks,
                         std::uint32_t const* counted, Load const* loads, std::size_t groups,
                         double* out, fault* faults) {
  constexpr std::size_t kinds = omnibal::detail::kinds_of<Load>;
  std::size_t const steps = cells.size() / ranks;
  auto* const totals = backend.template scratch<load_of<Load>>(cells.size());
  auto* const shares = backend.template scratch<double>(steps * kinds);
  group_loads(backend, cells, loads, groups, totals, faults);
  backend.template for_each_block<group_tuning::threads_of_step>(
      steps, 0,
      idle_share_of_step<kinds>{totals, ranks, element_count{steps, counted}, shares, faults});
  using mean = mean_in_order<kinds>;
  backend.template for_each_block<group_tuning::threads>(kinds, mean::shared_bytes,
                                                         mean{shares, steps, out});
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
