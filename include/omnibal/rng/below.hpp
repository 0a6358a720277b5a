#pragma once

/// \file
/// Bounded random integers.

#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0::rng {

namespace detail {

struct wide_product {
  std::uint64_t high;
  std::uint64_t low;
};

/// The 128-bit product of two words.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr wide_product multiply_wide(std::uint64_t left,
                                                                       std::uint64_t right) {
  auto const product = static_cast<omnibal::detail::uint128>(left) * right;
  return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
}

}  // namespace detail

/// A uniform integer in [0, n), without bias.
///
/// `generator` gives uniform 64-bit words. Precondition: `n > 0`. Complexity: constant expected;
/// draws one word with probability 1 - n / 2^64 at least. Determinism: portable, the same on host
/// and device. Source: Lemire, "Fast random integer generation in an interval", ACM TOMACS 2019.
template <class Generator>
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t below(Generator& generator,
                                                                std::uint64_t n) {
  static_assert(sizeof(typename Generator::result_type) == 8, "the engine must give 64-bit words");
  auto product = detail::multiply_wide(generator(), n);
  if (product.low < n) {
    std::uint64_t const threshold = (0 - n) % n;
    while (product.low < threshold) product = detail::multiply_wide(generator(), n);
  }
  return product.high;
}

}  // namespace omnibal::inline v0::rng
