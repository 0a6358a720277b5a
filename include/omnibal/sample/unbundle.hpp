#pragma once

/// \file
/// Groups of bundles as groups of samples.

#include <omnibal/detail/sample_at.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/packing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0 {

struct unbundle_fn {
  /// Groups of bundles as groups of samples: each bundle is replaced by its samples, and the order
  /// of the bundles and of the samples in them is kept.
  ///
  /// Complexity: linear in the samples and groups. Allocates the result. Determinism: portable.
  /// Errors: `std::invalid_argument` for a group that names a bundle that does not exist.
  [[nodiscard]] grouping operator()(groups_argument groups, groups_argument bundles) const {
    grouping result;
    result.reserve(groups.size(), bundles.item_count());
    for (std::size_t g = 0; g != groups.size(); ++g) {
      for (std::uint32_t const bundle : groups[g]) append(result, g, bundle, bundles);
      result.close();
    }
    return result;
  }

  /// The same for a packing: the samples of an oversized bundle are oversized. The report stays
  /// that of the bundles.
  [[nodiscard]] packing operator()(packing const& packed, groups_argument bundles) const {
    packing result{(*this)(packed.groups, bundles), {}, packed.report};
    grouping oversized;
    for (std::uint32_t const bundle : packed.oversized) {
      append(oversized, packed.groups.size(), bundle, bundles);
    }
    result.oversized.assign(oversized.open_group().begin(), oversized.open_group().end());
    std::sort(result.oversized.begin(), result.oversized.end());
    return result;
  }

 private:
  static constexpr std::string_view name = "unbundle";

  static void append(grouping& output, std::size_t group, std::uint32_t bundle,
                     grouping_view bundles) {
    if (bundle >= bundles.size()) {
      detail::throw_invalid(name, "group " + detail::to_text(group) + " has bundle " +
                                      detail::to_text(bundle) + ", but there are " +
                                      detail::to_text(bundles.size()));
    }
    for (std::uint32_t const sample : bundles[bundle]) output.push(sample);
  }
};

/// Groups of bundles as groups of samples; see `unbundle_fn`.
inline constexpr unbundle_fn unbundle{};

}  // namespace omnibal::inline v0
