// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Treatment of samples that exceed the capacity by themselves, for every packer.

#include <omnibal/check.hpp>
#include <omnibal/pack/packing.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace omnibal::inline v0 {

/// The treatment of samples that exceed the capacity by themselves.
enum class oversize_policy {
  list,       ///< in no group; `oversized` of the result lists them
  own_group,  ///< each in its own group; no other group exceeds the capacity
  reject,     ///< an error that names the first of them
};

struct place_oversized_fn {
  /// Applies a policy to the samples that a packer lists as oversized:
  /// `place_oversized(best_packing(samples, demand, capacity), oversize_policy::own_group)`. It
  /// accepts the packing of any packer, because every packer lists all oversized samples.
  ///
  /// With `own_group` the oversized samples follow the existing groups, each in its own group, by
  /// ascending index. `oversized` is empty then. The lower bound of the report increases by the
  /// number of these samples. Call functions that accept the packing of a packer, such as
  /// `improve_packing`, before this function. With `list`, or if no sample is oversized, the
  /// packing remains unchanged.
  ///
  /// Precondition: no group of the packing is open. Complexity: linear in the oversized samples.
  /// Memory: 8 bytes for each of these samples in `packed`; the result reuses the arrays of
  /// `packed`. Determinism: portable. Errors: `std::invalid_argument` if a group is open; with
  /// `reject` also if the packing has oversized samples, and the message contains their number and
  /// the first of them.
  [[nodiscard]] packing operator()(packing packed, oversize_policy policy) const {
    if (!packed.groups.open_group().empty()) {
      detail::throw_invalid(name, "packed has an open group with ",
                            packed.groups.open_group().size(), " samples, close it");
    }
    if (policy == oversize_policy::list || packed.oversized.empty()) return packed;
    if (policy == oversize_policy::reject) {
      detail::throw_invalid(name, "packed.oversized has ", packed.oversized.size(),
                            " samples, must have none; the first is sample ",
                            packed.oversized.front());
    }
    packed.report.lower_bound += packed.oversized.size();
    for (std::uint32_t const sample : packed.oversized) {
      packed.groups.push(sample);
      packed.groups.close();
    }
    packed.oversized.clear();
    return packed;
  }

 private:
  static constexpr std::string_view name = "place_oversized";
};

/// Applies a policy to the oversized samples of a packing; see `place_oversized_fn`.
inline constexpr place_oversized_fn place_oversized{};

}  // namespace omnibal::inline v0
