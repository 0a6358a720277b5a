#pragma once

/// \file
/// A number by which ranks compare their options.

#include <omnibal/detail/data_digest.hpp>
#include <omnibal/exchange/make_plan_options.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// `shape` is what else must be equal, such as the number of kinds of costs.
[[nodiscard]] inline std::uint64_t digest_of_options(make_plan_options const& options,
                                                     std::uint64_t shape) {
  data_digest digest;
  digest.add(std::uint64_t{options.ranks_per_node});
  digest.add(options.max_overload);
  digest.add(shape);
  return digest.value();
}

}  // namespace omnibal::inline v0::detail
