// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// An entry of a histogram of samples.

#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

/// A demand and the number of samples that have it.
template <std::size_t R = 1>
struct demand_count {
  resources<R> demand;
  std::uint64_t count;

  [[nodiscard]] friend bool operator==(demand_count const&, demand_count const&) = default;
};

}  // namespace omnibal::inline v0
