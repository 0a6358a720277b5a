#pragma once

/// \file
/// From work to time.

#include <omnibal/config.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/check_numbers.hpp>
#include <omnibal/detail/checked_cast.hpp>

#include <cstdint>
#include <limits>

namespace omnibal::inline v0 {

/// What one device does in a second: a functor from work to nanoseconds, rounded up, so that
/// decisions stay on integers. Rates that were reached serve better than those on the data sheet.
///
/// Determinism: portable. Errors: `std::invalid_argument` for a rate that is not positive and for
/// negative work, `std::overflow_error` above 2^63 - 1 nanoseconds.
struct accelerator {
  std::int64_t flops_per_second = 0;
  /// Of memory. The default leaves moved bytes out.
  std::int64_t bytes_per_second = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] constexpr std::int64_t operator()(work const& given) const {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr auto name = "accelerator";
    detail::check_between(name, "flops_per_second", flops_per_second, 1, most);
    detail::check_between(name, "bytes_per_second", bytes_per_second, 1, most);
    detail::check_between(name, "flops", given.flops, 0, most);
    detail::check_between(name, "moved_bytes", given.moved_bytes, 0, most);
    constexpr std::int64_t second = 1'000'000'000;
    bool const counts_bytes = bytes_per_second != most;
    detail::int128 const nanoseconds =
        detail::share_of(detail::int128{given.flops} * second, flops_per_second) +
        (counts_bytes
             ? detail::share_of(detail::int128{given.moved_bytes} * second, bytes_per_second)
             : detail::int128{0});
    return detail::checked_cast<std::int64_t>(name, "the number of nanoseconds", nanoseconds);
  }
};

}  // namespace omnibal::inline v0
