#pragma once

/// \file
/// What is minimised: a multiple of the bottleneck and of the sum over the stages.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace omnibal::inline v0::detail {

/// The type in which a multiple of a cost is compared.
template <class C>
using wide_weight = std::conditional_t<std::floating_point<C>, C, int128>;

/// `of_bottleneck` times the largest cost of a stage, plus `of_sum` times the sum.
template <class C>
struct step_time {
  std::uint64_t of_bottleneck = 1;
  std::uint64_t of_sum = 0;

  [[nodiscard]] wide_weight<C> operator()(C bottleneck, C sum) const {
    using wide = wide_weight<C>;
    return static_cast<wide>(of_bottleneck) * static_cast<wide>(bottleneck) +
           static_cast<wide>(of_sum) * static_cast<wide>(sum);
  }

  /// No stages whose costs add up to at least `sum` have a larger bottleneck and at most `time`.
  [[nodiscard]] C highest_bottleneck(wide_weight<C> time, C sum) const {
    using wide = wide_weight<C>;
    if (of_bottleneck == 0) return never<C>;
    wide const rest = std::max(wide{}, time - static_cast<wide>(of_sum) * static_cast<wide>(sum));
    wide result = rest / static_cast<wide>(of_bottleneck);
    // The difference may have lost a few bits of `time`.
    if constexpr (std::floating_point<C>) result += time * C{0x1p-50};
    return static_cast<C>(std::min(result, static_cast<wide>(never<C>)));
  }
};

/// `time` in the type of a cost; throws where it leaves that.
template <class C>
[[nodiscard]] C checked_time(std::string_view function, wide_weight<C> time) {
  if (!(time <= static_cast<wide_weight<C>>(never<C>))) {
    throw_overflow(function, "the time of a step");
  }
  return static_cast<C>(time);
}

}  // namespace omnibal::inline v0::detail
