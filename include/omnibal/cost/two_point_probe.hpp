// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The bytes of a checkpointed layer, from two readings of free memory.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/model_limits.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/solve_status.hpp>

#include <cstdint>
#include <string_view>

namespace omnibal::inline v0 {

/// The free memory of a device at its peak if a number of its layers are checkpointed (recomputed).
struct memory_reading {
  std::int64_t checkpointed_layers = 0;
  /// The free bytes; negative if a trainer reports the number of missing bytes.
  std::int64_t free_bytes = 0;

  [[nodiscard]] friend bool operator==(memory_reading const&, memory_reading const&) = default;
};

/// The number of layers that must be checkpointed.
struct checkpoint_count {
  /// The status: infeasible if the target is not free even with all layers checkpointed.
  solve_status status = solve_status::solved;
  /// The number of checkpointed layers; all layers if infeasible.
  std::int64_t layers = 0;
  /// The missing bytes if infeasible.
  std::int64_t missing_bytes = 0;

  [[nodiscard]] friend bool operator==(checkpoint_count const&, checkpoint_count const&) = default;
};

/// The exact line through two readings. `two_point_probe` creates it.
class checkpoint_line {
 public:
  /// Returns the bytes that a checkpointed layer frees.
  [[nodiscard]] double bytes_per_layer() const {
    return static_cast<double>(gained_bytes_) / static_cast<double>(gained_layers_);
  }

  /// Returns the free memory with this number of layers checkpointed, rounded down. Errors:
  /// `std::invalid_argument` for a number of layers that is negative or above 2^24,
  /// `std::overflow_error` if the result exceeds 64 bits.
  [[nodiscard]] std::int64_t free_bytes(std::int64_t checkpointed_layers) const {
    detail::check_between("checkpoint_line", "checkpointed_layers", checkpointed_layers, 0,
                          detail::max_width);
    detail::int128 const change =
        detail::int128{gained_bytes_} * (checkpointed_layers - start_.checkpointed_layers);
    detail::int128 const result =
        start_.free_bytes + detail::floored_quotient(change, gained_layers_);
    return detail::checked_cast<std::int64_t>("checkpoint_line", "the free memory", result);
  }

  /// Returns the smallest number of `layers` that must be checkpointed so that `target_bytes` stay
  /// free. With a target of 0 the number is c_max - m2 / slope, rounded up, in the symbols of the
  /// sources. Errors: the errors of `free_bytes`.
  [[nodiscard]] checkpoint_count checkpointed_for(std::int64_t layers,
                                                  std::int64_t target_bytes = 0) const {
    std::int64_t const all_free = free_bytes(layers);
    if (all_free < target_bytes) {
      detail::int128 const missing = detail::int128{target_bytes} - all_free;
      return {.status = solve_status::infeasible,
              .layers = layers,
              .missing_bytes = detail::checked_cast<std::int64_t>("checkpoint_line",
                                                                  "the missing memory", missing)};
    }
    detail::int128 const wanted =
        (detail::int128{target_bytes} - start_.free_bytes) * gained_layers_;
    detail::int128 const fewest =
        start_.checkpointed_layers - detail::floored_quotient(-wanted, gained_bytes_);
    return {.layers = fewest > 0 ? static_cast<std::int64_t>(fewest) : 0};
  }

 private:
  friend struct two_point_probe_fn;

  checkpoint_line(memory_reading const& start, std::int64_t gained_layers,
                  std::int64_t gained_bytes)
      : start_(start), gained_layers_(gained_layers), gained_bytes_(gained_bytes) {}

  memory_reading start_;
  std::int64_t gained_layers_;
  std::int64_t gained_bytes_;
};

struct two_point_probe_fn {
  /// Computes the bytes that a checkpointed layer frees, from the free memory of a device with few
  /// and with many checkpointed layers. All layers must be of one kind. For several kinds, use
  /// `affine_fit` with a count for each kind; it requires one more reading than there are kinds.
  ///
  /// Complexity: constant. Allocates nothing. Determinism: portable. Errors:
  /// `std::invalid_argument` for a number of layers that is negative or above 2^24. It is also
  /// thrown unless the second reading has both more checkpointed layers and more free bytes than
  /// the first. Further errors: `std::overflow_error` if the difference exceeds 2^63 - 1 bytes.
  /// Source: Yao et al., OmniBal, ICML 2025; Yao et al., "Hierarchical balance packing", NeurIPS
  /// 2025.
  [[nodiscard]] checkpoint_line operator()(memory_reading const& few,
                                           memory_reading const& many) const {
    constexpr std::string_view name = "two_point_probe";
    detail::check_between(name, "few.checkpointed_layers", few.checkpointed_layers, 0,
                          detail::max_width);
    detail::check_between(name, "many.checkpointed_layers", many.checkpointed_layers, 0,
                          detail::max_width);
    if (many.checkpointed_layers <= few.checkpointed_layers) {
      detail::throw_number(name, "many.checkpointed_layers", many.checkpointed_layers,
                           "must be above ", few.checkpointed_layers);
    }
    if (many.free_bytes <= few.free_bytes) {
      detail::throw_number(name, "many.free_bytes", many.free_bytes, "must be above ",
                           few.free_bytes);
    }
    detail::int128 const gained = detail::int128{many.free_bytes} - few.free_bytes;
    return {few, many.checkpointed_layers - few.checkpointed_layers,
            detail::checked_cast<std::int64_t>(name, "the difference of the readings", gained)};
  }
};

/// Computes the bytes of a checkpointed layer from two readings; see `two_point_probe_fn`.
inline constexpr two_point_probe_fn two_point_probe{};

}  // namespace omnibal::inline v0
