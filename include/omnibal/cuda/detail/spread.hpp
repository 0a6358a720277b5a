#pragma once

/// \file
/// The largest, the sum and the number of some weights, and the ratios of metrics.hpp made of them.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/integers.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// The nearest double, ties to even. (Device code need not convert 128 bits as the host does.)
[[nodiscard]] OMNIBAL_HOST_DEVICE inline double to_double(omnibal::detail::uint128 value) {
  auto high = static_cast<std::uint64_t>(value >> 64);
  auto low = static_cast<std::uint64_t>(value);
  if (high == 0) return static_cast<double>(low);
  int shift = 0;
  while (high != 0) {
    // A bit that is shifted out stays as a trace, below all bits that are kept.
    low = low >> 1 | (low & 1) | high << 63;
    high >>= 1;
    ++shift;
  }
  auto result = static_cast<double>(low);
  for (; shift != 0; --shift) result *= 2.0;
  return result;
}

/// Integers that are not negative. The sum saturates, so that it does not depend on the order.
struct spread {
  std::uint64_t largest = 0;
  std::uint64_t sum = 0;

  OMNIBAL_HOST_DEVICE void add(std::uint64_t value) {
    largest = larger_of(largest, value);
    sum = saturating_sum(sum, value);
  }

  /// Zero for no weights.
  [[nodiscard]] OMNIBAL_HOST_DEVICE double mean(std::size_t count) const {
    return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
  }

  /// 1 - mean / largest, as `omnibal::dist_ratio` and `omnibal::pad_ratio` compute it.
  [[nodiscard]] OMNIBAL_HOST_DEVICE double idle_share(std::size_t count) const {
    if (largest == 0) return 0.0;
    auto const missing = static_cast<omnibal::detail::uint128>(largest) * count - sum;
    return to_double(missing) / (static_cast<double>(largest) * static_cast<double>(count));
  }
};

/// A spread for each of R kinds.
template <std::size_t R>
struct spreads {
  spread kinds[R];
};

template <std::size_t R>
struct merge_spreads {
  OMNIBAL_HOST_DEVICE spreads<R> operator()(spreads<R> left, spreads<R> const& right) const {
    for (std::size_t r = 0; r != R; ++r) {
      left.kinds[r].largest = larger_of(left.kinds[r].largest, right.kinds[r].largest);
      left.kinds[r].sum = saturating_sum(left.kinds[r].sum, right.kinds[r].sum);
    }
    return left;
  }
};

// The ratios: of the weights of one kind.

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

}  // namespace omnibal::inline v0::gpu::detail
