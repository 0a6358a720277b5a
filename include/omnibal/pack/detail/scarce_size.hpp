#pragma once

/// \file
/// How large amounts are where some resources are scarcer than others.

#include <omnibal/pack/detail/capacity_shares.hpp>
#include <omnibal/pack/detail/measure.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// The shares of the capacity, each times the square of how scarce its resource is: all demands
/// together take so many capacities of it, divided by those of the scarcest. Below 2^62.
///
/// Source of the weights: Panigrahy, Talwar, Uyeda, Wieder, "Heuristics for vector bin packing",
/// 2011.
template <std::size_t R, class T>
class scarce_size {
 public:
  template <class Layout>
  explicit scarce_size(measured<Layout> const& input) : share_(input.capacity) {
    std::uint64_t totals[R] = {};
    std::uint64_t most = 1;
    for (std::size_t r = 0; r != R; ++r) {
      auto const amount = input.amounts_of(r);
      // Shares of 2^31 at most, so that those of 2^32 samples can be added.
      for (std::size_t k = 0; k != input.size(); ++k) totals[r] += share_(amount(k), r) >> 32;
      most = std::max(most, totals[r]);
    }
    for (std::size_t r = 0; r != R; ++r) {
      auto const scarcity = static_cast<uint128>(totals[r]) * 65535 / most;
      weights_[r] = static_cast<std::uint64_t>(scarcity * scarcity >> 16);
    }
  }

  [[nodiscard]] std::uint64_t operator()(resources<R, T> const& amounts) const {
    std::uint64_t size = 0;
    for (std::size_t r = 0; r != R; ++r) size += (share_(amounts[r], r) >> 17) * weights_[r];
    return size;
  }

 private:
  capacity_shares<R, T> share_;
  std::uint64_t weights_[R] = {};
};

}  // namespace omnibal::inline v0::detail
