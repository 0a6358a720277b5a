#pragma once

/// \file
/// What becomes of samples that exceed the capacity alone, for every packer.

#include <omnibal/check.hpp>
#include <omnibal/pack/packing.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace omnibal::inline v0 {

/// What becomes of samples that exceed the capacity alone.
enum class oversize_policy {
  list,    ///< they are in no group, and `oversized` of the result has them
  alone,   ///< each is a group of its own, the only kind that exceeds the capacity
  reject,  ///< the first of them is an error
};

struct place_oversized_fn {
  /// Applies a policy to the samples that a packer has set aside:
  /// `place_oversized(best_packing(samples, demand, capacity), oversize_policy::alone)`. It takes
  /// the packing of any packer, which lists them all.
  ///
  /// With `alone` they follow the groups that are there, each a group of its own, by ascending
  /// index; `oversized` is empty then, and the lower bound of the report is higher by their number.
  /// What takes packings as packers give them, such as `improve`, comes before. With `list` and
  /// where no sample is oversized the packing stays as it is.
  ///
  /// Precondition: no group of the packing is open. Complexity: linear in the oversized samples.
  /// Memory: 8 bytes for each of them in `packed`, whose arrays the result takes over. Determinism:
  /// portable. Errors: `std::invalid_argument` for a group that is open, and with `reject` for a
  /// packing with oversized samples, with their number and the first.
  [[nodiscard]] packing operator()(packing packed, oversize_policy policy) const {
    if (!packed.groups.open_group().empty()) {
      detail::throw_invalid(name, "packed has an open group with " +
                                      detail::to_text(packed.groups.open_group().size()) +
                                      " samples, close it");
    }
    if (policy == oversize_policy::list || packed.oversized.empty()) return packed;
    if (policy == oversize_policy::reject) {
      detail::throw_invalid(name, "packed.oversized has " +
                                      detail::to_text(packed.oversized.size()) +
                                      " samples, must have none; the first is sample " +
                                      detail::to_text(packed.oversized.front()));
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
