// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A number that identifies data, and the check of a state against it.

#include <omnibal/check.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace omnibal::inline v0::detail {

/// A portable 64-bit digest of a sequence of words. Equal data have equal digests; different data
/// almost surely have different digests.
class data_digest {
 public:
  constexpr void add(std::uint64_t word) {
    value_ = rng::mix((value_ + word) * 0x9e3779b97f4a7c15u + 1);
  }
  constexpr void add(double number) {
    add(std::bit_cast<std::uint64_t>(number + 0.0));  // -0 becomes 0
  }

  /// Adds every amount of a weight or of resources.
  template <measure T>
  constexpr void add_amounts(T const& amounts) {
    using working = working_weight<T>;
    for (auto const value : to_resources<working>({"data_digest", "amount"}, amounts).amounts) {
      if constexpr (std::integral<working>) {
        add(static_cast<std::uint64_t>(value));
      } else {
        add(value);
      }
    }
  }

  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

/// Throws if `given`, the digest of a state, belongs to other data. `sources` names the data of the
/// digest.
inline void check_digest(std::string_view function, std::uint64_t given, std::uint64_t digest,
                         std::string_view sources) {
  if (given == digest) return;
  throw_invalid(function, "state.digest is ", given, ", must be ", digest, ", that of ", sources,
                ": at least one of these has changed since the state was taken");
}

}  // namespace omnibal::inline v0::detail
