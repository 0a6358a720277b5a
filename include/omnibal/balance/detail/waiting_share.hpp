#pragma once

/// \file
/// The share of a step for which ranks wait, as a whole number.

#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// A whole step of waiting. 2^32 of them fit 64 bits.
inline constexpr std::int64_t whole_step = std::int64_t{1} << 30;

/// The loads of the ranks that have a group in a step.
template <std::size_t R>
class step_loads {
 public:
  void add(std::uint64_t const (&loads)[R]) {
    ++count_;
    for (std::size_t r = 0; r != R; ++r) {
      largest_[r] = std::max(largest_[r], loads[r]);
      sum_[r] += loads[r];
    }
  }

  /// The share of a step of `ranks` ranks for which those with a group wait in a resource, in
  /// `whole_step`s, rounded down: (largest * count - sum) / (largest * ranks). Precondition:
  /// `largest * ranks` fits 64 bits.
  [[nodiscard]] std::int64_t waiting(std::size_t r, std::size_t ranks) const {
    if (largest_[r] == 0) return 0;
    auto const waited = static_cast<double>(largest_[r] * count_ - sum_[r]);
    double const share = waited / static_cast<double>(largest_[r] * ranks);
    return static_cast<std::int64_t>(share * static_cast<double>(whole_step));
  }

 private:
  std::uint64_t largest_[R] = {};
  std::uint64_t sum_[R] = {};
  std::uint64_t count_ = 0;
};

}  // namespace omnibal::inline v0::detail
