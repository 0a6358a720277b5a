// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Options and keep rules of `isf`, on the host and on a device.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <string_view>
#include <type_traits>

namespace omnibal::inline v0 {

struct isf_options {
  /// The maximum number of rounds; the last round keeps every group.
  std::size_t rounds = 50;
  /// The smallest share of its samples that a round must keep. If a round keeps a smaller share,
  /// the next round is the last.
  double min_gain = 0.0;
};

/// Keeps a group that reaches the threshold of at least one resource.
///
/// Determinism: portable. Source: Yao et al., OmniBal, ICML 2025 (Q'v and Q't).
template <class Threshold>
  requires detail::is_resources<Threshold>
struct reaches_any {
  Threshold threshold;

  template <class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool operator()(
      resources<Threshold::size(), T> const& load) const {
    using common = std::common_type_t<T, typename Threshold::value_type>;
    bool result = false;
    for (std::size_t r = 0; r != load.size(); ++r) {
      result |= static_cast<common>(load[r]) >= static_cast<common>(threshold[r]);
    }
    return result;
  }

  /// Checks the threshold against a capacity; packers call it before the first round. Errors:
  /// `std::invalid_argument` if no group under this capacity reaches a threshold, or if a threshold
  /// is negative or not finite.
  template <class T>
  constexpr void check(std::string_view function,
                       resources<Threshold::size(), T> const& capacity) const {
    using common = std::common_type_t<T, typename Threshold::value_type>;
    for (std::size_t r = 0; r != capacity.size(); ++r) {
      detail::check_weight(function, "threshold", r, threshold[r]);
      if (static_cast<common>(threshold[r]) > static_cast<common>(capacity[r])) {
        detail::throw_invalid(function, "threshold[", r, "] is ", threshold[r],
                              ", above the capacity ", capacity[r]);
      }
    }
  }
};

template <class Threshold>
reaches_any(Threshold) -> reaches_any<Threshold>;

/// Returns the default rule: one resource reaches 31/32 of the capacity, rounded up.
template <std::size_t R, class T>
[[nodiscard]] constexpr reaches_any<resources<R, T>> reaches_most(resources<R, T> const& capacity) {
  reaches_any<resources<R, T>> rule{capacity};
  for (T& amount : rule.threshold.amounts) amount = static_cast<T>(amount - amount / 32);
  return rule;
}

/// A keep rule that can check itself against a capacity.
template <class Rule, class Load>
concept checked_keep_rule = requires(Rule const& rule, Load const& capacity) {
  rule.check(std::string_view(), capacity);
};

}  // namespace omnibal::inline v0
