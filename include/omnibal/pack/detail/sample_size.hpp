// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The size by which samples are sorted before packing.

#include <omnibal/pack/score.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// The size of a sample in units of 2^-32. Even attempts use `measure`, odd attempts use the other
/// measure. From attempt 2 on, the size has random weights of resources and random factors of
/// samples, all in [1/2, 1).
template <std::size_t R, class T>
class sample_size {
 public:
  sample_size(resources<R, T> const& capacity, size_measure measure, std::size_t attempt = 0)
      : share_(capacity),
        takes_sum_((measure == size_measure::sum_of_shares) == (attempt % 2 == 0)),
        varies_(attempt > 1),
        words_(0, attempt) {
    for (std::uint64_t& weight : weights_) weight = half_to_one(words_());
  }

  [[nodiscard]] std::uint64_t operator()(resources<R, T> const& amounts, std::size_t sample) const {
    if (!varies_) return whole([&](std::size_t r) { return share_(amounts[r], r); }) >> 31;
    std::uint64_t const size =
        whole([&](std::size_t r) { return (share_(amounts[r], r) >> 16) * weights_[r]; });
    return (size >> 16) * half_to_one(words_.word(R + sample)) >> 31;
  }

 private:
  [[nodiscard]] static std::uint64_t half_to_one(std::uint64_t word) {
    return (word >> 49) | std::uint64_t{1} << 15;
  }

  /// Returns the shares of a sample as one number; `share(r)` is the share of resource r.
  template <class Share>
  [[nodiscard]] std::uint64_t whole(Share const& share) const {
    std::uint64_t sum = 0;
    std::uint64_t largest = 0;
    for (std::size_t r = 0; r != R; ++r) {
      sum += share(r);
      largest = std::max(largest, share(r));
    }
    return takes_sum_ ? sum : largest;
  }

  capacity_shares<R, T> share_;
  bool takes_sum_;
  bool varies_;
  rng::engine words_;
  std::uint64_t weights_[R] = {};
};

}  // namespace omnibal::inline v0::detail
