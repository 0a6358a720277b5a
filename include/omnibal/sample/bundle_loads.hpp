#pragma once

/// \file
/// Samples that must stay together, as one sample.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct bundle_loads_fn {
  /// The demand of each bundle, the sum of those of its samples: what a packer or balancer takes as
  /// samples, with `std::identity` as their demand, so that the samples of a bundle stay together.
  /// `unbundle` turns the result into groups of samples.
  ///
  /// `bundles` has every sample in one bundle; those that go alone are bundles of one. `demand`
  /// gives resources or one weight. Complexity: linear. Memory: the result and a byte per sample.
  /// Determinism: portable. Errors: `std::invalid_argument` for a sample in two bundles or in none,
  /// an index that is not in `samples` and a demand that is negative or not finite;
  /// `std::overflow_error` for a load above its type.
  template <sample_range Samples, class Demand>
    requires demand_function<Demand, sample_reference<Samples>>
  [[nodiscard]] auto operator()(groups_argument bundles, Samples const& samples,
                                Demand const& demand) const {
    auto loads = group_loads(bundles, samples, demand);
    check_each_once(bundles, std::ranges::size(samples));
    return loads;
  }

 private:
  static constexpr std::string_view name = "bundle_loads";

  static void check_each_once(grouping_view bundles, std::size_t samples) {
    std::vector<std::uint8_t> seen(samples, 0);
    for (std::uint32_t const item : bundles.items()) {
      if (seen[item]++ == 0) continue;
      detail::throw_invalid(name, "sample " + detail::to_text(item) + " is in two places");
    }
    if (bundles.item_count() == samples) return;
    detail::throw_invalid(name, "the bundles have " + detail::to_text(bundles.item_count()) +
                                    " samples, not " + detail::to_text(samples));
  }
};

/// Samples that must stay together, as one sample; see `bundle_loads_fn`.
inline constexpr bundle_loads_fn bundle_loads{};

}  // namespace omnibal::inline v0
